//! A draw that anyone can verify: the order follows from a committed secret, the tags of the entrants
//! and a value of a public beacon, and from nothing else. `docs/DRAW.md` specifies every byte.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};
use urr_kernel::{Uuid, hex};

use super::beacon::BeaconValue;

/// A SHA-256.
pub type Digest = [u8; 32];

/// The secret of a draw. It is published after the draw.
#[derive(Clone, PartialEq, Eq)]
pub struct DrawSecret([u8; 32]);

/// Names an entrant: users can compute their own tag, and no id follows from a tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntrantTag(pub [u8; 16]);

/// A user who takes part in a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entrant {
    pub tag: EntrantTag,
    /// The first entrant to join has 1.
    pub arrival: u32,
}

/// Those who take part in a draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrantList {
    pub digest: Digest,
    pub arrivals: Digest,
    /// In the order of arrival, or as drawn.
    pub entrants: Vec<Entrant>,
}

impl DrawSecret {
    pub fn new(bytes: [u8; 32]) -> DrawSecret {
        DrawSecret(bytes)
    }

    /// The bytes, for the table of draws and for the file of a draw that is done.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash that is published before anybody joins. It fixes the secret without revealing it.
    pub fn commitment(&self, event_id: Uuid) -> Digest {
        sha256("urr-draw-v2", &[event_id.as_bytes(), &self.0])
    }

    /// The seed of the order. It follows from the entrants and from the secret, so that the entrants
    /// cannot choose it, and from a beacon, so that whoever knows the secret cannot either.
    pub fn seed(&self, digest: &Digest, beacon: &BeaconValue) -> Digest {
        sha256("urr-seed-v2", &[&self.0, digest, &beacon.randomness()])
    }
}

impl fmt::Debug for DrawSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl EntrantTag {
    pub fn of(event_id: Uuid, user_id: Uuid) -> EntrantTag {
        let hash = sha256("urr-entrant-v1", &[event_id.as_bytes(), user_id.as_bytes()]);
        let (tag, _) = hash.split_first_chunk().expect("a SHA-256 is longer than a tag");
        EntrantTag(*tag)
    }
}

impl fmt::Display for EntrantTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for EntrantTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({self})")
    }
}

impl EntrantList {
    /// The list of the entrants with these tags, which are in the order of arrival.
    pub fn new(tags: &[EntrantTag]) -> EntrantList {
        let entrant = |(arrival, tag): (u32, &EntrantTag)| Entrant { tag: *tag, arrival };
        EntrantList {
            digest: digest_of_entrants(tags.to_vec()),
            arrivals: digest_of_arrivals(tags),
            entrants: (1..).zip(tags).map(entrant).collect(),
        }
    }

    /// The same list in the order that is drawn.
    pub fn drawn(mut self, secret: &DrawSecret, beacon: &BeaconValue) -> EntrantList {
        let order = DrawOrder::new(&secret.seed(&self.digest, beacon));
        self.entrants.sort_by_cached_key(|entrant| (order.score(entrant.tag), entrant.tag));
        self
    }
}

/// Over the sorted tags: the order of arrival does not change the seed.
pub fn digest_of_entrants(mut tags: Vec<EntrantTag>) -> Digest {
    tags.sort_unstable();
    digest_of_tags("urr-entrants-v1", &tags)
}

/// Over the tags in the order of arrival. Nothing follows from it: it fixes the arrivals.
pub fn digest_of_arrivals(tags: &[EntrantTag]) -> Digest {
    digest_of_tags("urr-arrivals-v1", tags)
}

/// The number in line of the entrant with this rank, counted from 1. It is below zero, so that later
/// arrivals stand behind, and without gaps, so that a position follows from a number.
pub fn number_in_line(rank: u32, count: u32) -> i64 {
    assert!((1..=count).contains(&rank), "a rank is one of the entrants'");
    i64::from(rank) - 1 - i64::from(count)
}

/// The order that follows from a seed.
pub struct DrawOrder(Hmac<Sha256>);

impl DrawOrder {
    pub fn new(seed: &Digest) -> DrawOrder {
        DrawOrder(Hmac::new_from_slice(seed).expect("HMAC takes a key of any length"))
    }

    /// Smaller scores stand in front.
    pub fn score(&self, tag: EntrantTag) -> Digest {
        let mut mac = self.0.clone();
        mac.update(&tag.0);
        mac.finalize().into_bytes().into()
    }
}

fn sha256(purpose: &str, parts: &[&[u8]]) -> Digest {
    let mut hash = begin(purpose);
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

fn digest_of_tags(purpose: &str, tags: &[EntrantTag]) -> Digest {
    let mut hash = begin(purpose);
    for tag in tags {
        hash.update(tag.0);
    }
    hash.finalize().into()
}

/// Every hash begins with its purpose, so that none can be taken for another.
fn begin(purpose: &str) -> Sha256 {
    Sha256::new().chain_update(purpose).chain_update([0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: Uuid = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);

    /// Tags of people who do not exist.
    fn tags(count: u32) -> Vec<EntrantTag> {
        (0..count).map(|n| EntrantTag::of(EVENT, Uuid::from_u128(n.into()))).collect()
    }

    fn secret(number: u32) -> DrawSecret {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        DrawSecret::new(bytes)
    }

    const BEACON: BeaconValue = BeaconValue::Offline([3; 32]);

    fn drawn(number: u32, tags: &[EntrantTag]) -> EntrantList {
        EntrantList::new(tags).drawn(&secret(number), &BEACON)
    }

    /// Otherwise whoever knows the secret could choose the entrants until the order suits them.
    #[test]
    fn another_value_of_the_beacon_makes_another_order() {
        let list = EntrantList::new(&tags(100));
        let [one, other] = [[3; 32], [4; 32]]
            .map(|value| list.clone().drawn(&secret(7), &BeaconValue::Offline(value)).entrants);
        assert_ne!(one, other);
        assert_eq!(one, drawn(7, &tags(100)).entrants);
    }

    /// How often the one who came as `n` was drawn at each position, over many secrets.
    fn positions(
        people: usize,
        draws: u32,
        order: impl Fn(u32, &[EntrantTag]) -> Vec<Entrant>,
    ) -> Vec<Vec<u64>> {
        let tags = tags(u32::try_from(people).unwrap());
        let mut counts = vec![vec![0; people]; people];
        for number in 0..draws {
            for (position, entrant) in order(number, &tags).iter().enumerate() {
                counts[entrant.arrival as usize - 1][position] += 1;
            }
        }
        counts
    }

    /// A thousand times the statistic of Pearson: how far the counts are from being equal.
    fn chi_square_milli(counts: &[u64], expected: u64) -> u64 {
        let squares = counts.iter().map(|count| count.abs_diff(expected).pow(2)).sum::<u64>();
        squares * 1_000 / expected
    }

    /// With 9 degrees of freedom, one in 100,000 is above by chance.
    const CHI_SQUARE_MILLI_MAX: u64 = 39_300;

    #[test]
    fn everybody_has_the_same_chance_of_every_position() {
        let counts = positions(10, 10_000, |number, tags| drawn(number, tags).entrants);
        for (arrival, counts) in counts.iter().enumerate() {
            let chi = chi_square_milli(counts, 1_000);
            assert!(chi < CHI_SQUARE_MILLI_MAX, "arrival {arrival}: {chi}, {counts:?}");
        }
    }

    /// The control: a draw that looks at a byte of the score alone favours who came first.
    #[test]
    fn the_count_would_show_a_draw_that_favours_someone() {
        let counts = positions(10, 10_000, |number, tags| {
            let mut entrants = drawn(number, tags).entrants;
            let order =
                DrawOrder::new(&secret(number).seed(&digest_of_entrants(tags.to_vec()), &BEACON));
            entrants.sort_by_key(|entrant| (order.score(entrant.tag)[0] >> 5, entrant.arrival));
            entrants
        });
        assert!(chi_square_milli(&counts[0], 1_000) > CHI_SQUARE_MILLI_MAX, "{counts:?}");
    }

    #[test]
    fn the_order_of_arrival_changes_nothing_but_the_arrivals() {
        let forward = tags(100);
        let backward: Vec<EntrantTag> = forward.iter().rev().copied().collect();
        let (one, other) = (drawn(7, &forward), drawn(7, &backward));
        let order = |drawn: &EntrantList| drawn.entrants.iter().map(|e| e.tag).collect::<Vec<_>>();
        assert_eq!((one.digest, order(&one)), (other.digest, order(&other)));
        assert_ne!(one.arrivals, other.arrivals);
        assert_eq!(one.entrants[0].arrival, 101 - other.entrants[0].arrival);
    }

    /// Otherwise someone who knows the secret could tell the order before people came.
    #[test]
    fn one_more_entrant_makes_another_order() {
        let order = |count| {
            let drawn = drawn(7, &tags(count));
            let mut arrivals: Vec<u32> = drawn.entrants.iter().map(|e| e.arrival).collect();
            arrivals.retain(|arrival| *arrival <= 100);
            arrivals
        };
        assert_ne!(order(100), order(101));
        assert_eq!(order(100), order(100));
    }

    #[test]
    fn another_secret_or_event_makes_another_commitment_and_other_tags() {
        let other_event = Uuid::from_u128(EVENT.as_u128() + 1);
        let user = Uuid::from_u128(5);
        assert_ne!(secret(1).commitment(EVENT), secret(2).commitment(EVENT));
        assert_ne!(secret(1).commitment(EVENT), secret(1).commitment(other_event));
        assert_ne!(EntrantTag::of(EVENT, user), EntrantTag::of(other_event, user));
        assert_ne!(EntrantTag::of(EVENT, user), EntrantTag::of(EVENT, Uuid::from_u128(6)));
    }

    #[test]
    fn numbers_in_line_are_below_zero_and_rise_with_the_rank() {
        let numbers: Vec<i64> = (1..=4).map(|rank| number_in_line(rank, 4)).collect();
        assert_eq!(numbers, [-4, -3, -2, -1]);
    }

    #[test]
    fn nobody_can_take_part_in_a_draw() {
        let drawn = drawn(1, &[]);
        assert_eq!(drawn.entrants, []);
        assert_ne!(drawn.digest, drawn.arrivals, "hashes say what they are for");
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", secret(1)), "[secret]");
    }
}
