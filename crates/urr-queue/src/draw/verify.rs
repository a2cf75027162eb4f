//! Verifies a draw from its file alone. It shares only the hash functions with the code that draws.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead};
use std::str::FromStr;

use urr_kernel::{Uuid, hex};

use super::file::{DrawFileHeader, FORMAT};
use crate::domain::beacon::{BeaconValue, round_for};
use crate::domain::draw::{
    Digest, DrawOrder, DrawSecret, Entrant, EntrantTag, digest_of_arrivals, digest_of_entrants,
};

/// No line of a draw is longer. Another file may be one endless line.
const LINE_BYTES_MAX: u64 = 200;

/// Why a file does not show a fair draw.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("the file could not be read")]
    Io(#[from] io::Error),
    #[error("line {line}: expected {expected}")]
    Malformed { line: u64, expected: &'static str },
    #[error("the file ends in the middle: it names {count} entrants, and {found} are there")]
    Truncated { count: u32, found: u32 },
    #[error("the file names {count} entrants, and more follow")]
    TooMany { count: u32 },
    #[error("the commitment is not that of the secret: another secret was used")]
    Commitment,
    #[error("the secret was committed to after the draw was closed: it could have been chosen")]
    CommittedTooLate,
    #[error("line {line}: this entrant is named a second time")]
    Twice { line: u64 },
    #[error("the digest is not that of the entrants: someone was added, removed or replaced")]
    Digest,
    #[error("the seed does not follow from the secret, the digest and the beacon")]
    Seed,
    #[error(
        "the beacon's round is not the one that belongs to the time at which the list was fixed"
    )]
    BeaconRound,
    #[error("the beacon's value is not signed by drand: it was made up")]
    BeaconSignature,
    #[error("line {line}: this entrant does not stand where the seed puts them")]
    DrawOrder { line: u64 },
    #[error("line {line}: the arrivals do not count from 1 to the number of entrants")]
    ArrivalNumber { line: u64 },
    #[error("the arrivals are not those that were published")]
    Arrivals,
}

/// A verified draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawReport {
    pub header: DrawFileHeader,
    /// In drawn order.
    pub entrants: Vec<Entrant>,
}

impl DrawReport {
    /// The rank of a user, counted from 1; `None` if they did not take part.
    pub fn rank_of(&self, user_id: Uuid) -> Option<u32> {
        let tag = EntrantTag::of(self.header.event_id, user_id);
        let ranked = self.entrants.iter().zip(1..);
        ranked.into_iter().find(|(entrant, _)| entrant.tag == tag).map(|(_, rank)| rank)
    }
}

impl fmt::Display for DrawReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DrawFileHeader { event_id, commitment, committed_at, digest, arrivals, count, .. } =
            &self.header;
        let (beacon, fixed_at) = (&self.header.beacon, self.header.fixed_at);
        let (commitment, digest, arrivals) =
            (hex::encode(commitment), hex::encode(digest), hex::encode(arrivals));
        writeln!(f, "The draw of event {event_id} is as it should be.")?;
        writeln!(f, "- The secret is the one of the commitment {commitment}.")?;
        writeln!(f, "- {count} took part, nobody twice; their digest is {digest}.")?;
        match beacon {
            BeaconValue::Drand { round, .. } => writeln!(
                f,
                "- The beacon's value is signed by drand for round {round}, which appeared after \
                 {fixed_at}."
            )?,
            BeaconValue::Offline(_) => writeln!(
                f,
                "- NO PUBLIC BEACON was used: whoever runs the sale could have chosen the value."
            )?,
        }
        writeln!(f, "- The seed follows from the secret, that digest and the beacon alone.")?;
        writeln!(f, "- All {count} stand in the order that follows from the seed.")?;
        writeln!(f, "- The arrivals count from 1 to {count}; their digest is {arrivals}.")?;
        writeln!(f, "What a file cannot show, and you can compare:")?;
        writeln!(
            f,
            "- that the commitment was published before the sale (it says {committed_at});"
        )?;
        writeln!(
            f,
            "- that the digests were published before the beacon's round (it says {fixed_at});"
        )?;
        write!(f, "- that {count} is about how many were seen waiting, all of them real.")
    }
}

/// Recomputes a draw from its file.
pub fn verify_draw(reader: impl BufRead) -> Result<DrawReport, VerifyError> {
    let mut lines = NumberedLines { reader, number: 0, line: String::new() };
    let header = read_header(&mut lines)?;
    if header.secret.commitment(header.event_id) != header.commitment {
        return Err(VerifyError::Commitment);
    }
    if header.committed_at >= header.closed_at {
        return Err(VerifyError::CommittedTooLate);
    }
    let first_line = lines.number + 1;
    let entrants = read_entrants(&mut lines, header.count)?;
    refuse_twice(&entrants, first_line)?;
    if digest_of_entrants(entrants.iter().map(|entrant| entrant.tag).collect()) != header.digest {
        return Err(VerifyError::Digest);
    }
    check_beacon(&header)?;
    if header.secret.seed(&header.digest, &header.beacon) != header.seed {
        return Err(VerifyError::Seed);
    }
    check_order(&entrants, &header.seed, first_line)?;
    check_arrivals(&entrants, &header.arrivals, first_line)?;
    Ok(DrawReport { header, entrants })
}

/// An offline value has nothing to check; the report says so.
fn check_beacon(header: &DrawFileHeader) -> Result<(), VerifyError> {
    match &header.beacon {
        BeaconValue::Offline(_) => Ok(()),
        BeaconValue::Drand { round, .. } if *round != round_for(header.fixed_at) => {
            Err(VerifyError::BeaconRound)
        }
        beacon if !beacon.is_signed() => Err(VerifyError::BeaconSignature),
        BeaconValue::Drand { .. } => Ok(()),
    }
}

/// The lines of a file, with their numbers.
struct NumberedLines<R> {
    reader: R,
    number: u64,
    line: String,
}

impl<R: BufRead> NumberedLines<R> {
    /// The next line; `None` at the end. The last one ends with a line feed as well.
    fn next(&mut self) -> Result<Option<&str>, VerifyError> {
        self.number += 1;
        self.line.clear();
        let mut limited = io::Read::take(&mut self.reader, LINE_BYTES_MAX);
        match limited.read_line(&mut self.line) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(self.malformed("plain text"));
            }
            Err(error) => return Err(error.into()),
        }
        match self.line.strip_suffix('\n') {
            Some(line) => Ok(Some(line)),
            None => Err(self.malformed("a short line that ends with a line feed")),
        }
    }

    /// The value of the next line, which has this name.
    fn value<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, VerifyError> {
        let value = match self.next()? {
            Some(line) => line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')),
            None => None,
        };
        value.and_then(parse).ok_or_else(|| self.malformed(expected))
    }

    fn malformed(&self, expected: &'static str) -> VerifyError {
        VerifyError::Malformed { line: self.number, expected }
    }
}

fn read_header(lines: &mut NumberedLines<impl BufRead>) -> Result<DrawFileHeader, VerifyError> {
    if lines.next()? != Some(FORMAT) {
        return Err(lines.malformed("\"urr-draw-v2\": this is no file of a draw"));
    }
    let secret = |text: &str| hex::decode_array(text).map(DrawSecret::new);
    Ok(DrawFileHeader {
        event_id: lines.value("event", "\"event\" and its id", as_written)?,
        commitment: lines.value("commitment", "\"commitment\" and 64 digits", hex::decode_array)?,
        committed_at: lines.value("committedAt", "\"committedAt\" and a time", as_written)?,
        closed_at: lines.value("closedAt", "\"closedAt\" and a time", as_written)?,
        secret: lines.value("secret", "\"secret\" and 64 digits", secret)?,
        digest: lines.value("digest", "\"digest\" and 64 digits", hex::decode_array)?,
        arrivals: lines.value("arrivals", "\"arrivals\" and 64 digits", hex::decode_array)?,
        fixed_at: lines.value("fixedAt", "\"fixedAt\" and a time", as_written)?,
        beacon: lines.value("beacon", "\"beacon\" and its value", as_written)?,
        seed: lines.value("seed", "\"seed\" and 64 digits", hex::decode_array)?,
        count: lines.value("count", "\"count\" and a number", as_written)?,
    })
}

/// Reads a value and rejects any other spelling of it.
fn as_written<T: FromStr + ToString>(text: &str) -> Option<T> {
    text.parse().ok().filter(|value: &T| value.to_string() == text)
}

fn read_entrants(
    lines: &mut NumberedLines<impl BufRead>,
    count: u32,
) -> Result<Vec<Entrant>, VerifyError> {
    let mut entrants = Vec::new();
    for found in 0..count {
        let line = lines.next()?.ok_or(VerifyError::Truncated { count, found })?;
        let entrant = line.split_once(' ').and_then(|(tag, arrival)| {
            Some(Entrant {
                tag: EntrantTag(hex::decode_array(tag)?),
                arrival: as_written(arrival)?,
            })
        });
        let expected = "the 32 digits of an entrant and the number of their arrival";
        entrants.push(entrant.ok_or_else(|| lines.malformed(expected))?);
    }
    match lines.next()? {
        Some(_) => Err(VerifyError::TooMany { count }),
        None => Ok(entrants),
    }
}

fn refuse_twice(entrants: &[Entrant], first_line: u64) -> Result<(), VerifyError> {
    let mut seen = HashMap::with_capacity(entrants.len());
    for (line, entrant) in (first_line..).zip(entrants) {
        if seen.insert(entrant.tag, line).is_some() {
            return Err(VerifyError::Twice { line });
        }
    }
    Ok(())
}

fn check_order(entrants: &[Entrant], seed: &Digest, first_line: u64) -> Result<(), VerifyError> {
    let order = DrawOrder::new(seed);
    let mut in_front = None;
    for (line, entrant) in (first_line..).zip(entrants) {
        let place = Some((order.score(entrant.tag), entrant.tag));
        if in_front >= place {
            return Err(VerifyError::DrawOrder { line });
        }
        in_front = place;
    }
    Ok(())
}

fn check_arrivals(
    entrants: &[Entrant],
    arrivals: &Digest,
    first_line: u64,
) -> Result<(), VerifyError> {
    let mut by_arrival = vec![None; entrants.len()];
    for (line, Entrant { tag, arrival }) in (first_line..).zip(entrants) {
        let index = (*arrival as usize).checked_sub(1);
        match index.and_then(|index| by_arrival.get_mut(index)) {
            Some(place) if place.is_none() => *place = Some(*tag),
            _ => return Err(VerifyError::ArrivalNumber { line }),
        }
    }
    let tags: Vec<EntrantTag> = by_arrival.into_iter().flatten().collect();
    match digest_of_arrivals(&tags) == *arrivals {
        true => Ok(()),
        false => Err(VerifyError::Arrivals),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::beacon::tests::published;
    use crate::domain::draw::EntrantList;
    use crate::draw::lines;

    /// A few seconds before the round that the tests know.
    const FIXED_AT: &str = "2023-09-15T10:59:58Z";
    const SPECIFICATION: &str = include_str!("../../../../docs/DRAW.md");

    /// A file of these people, of event 1 and the secret of nines.
    fn file(users: &[u128]) -> String {
        file_with(users, BeaconValue::Offline([5; 32]))
    }

    fn file_with(users: &[u128], beacon: BeaconValue) -> String {
        let (event_id, secret) = (Uuid::from_u128(1), DrawSecret::new([9; 32]));
        let tag = |user: &u128| EntrantTag::of(event_id, Uuid::from_u128(*user));
        let list = EntrantList::new(&users.iter().map(tag).collect::<Vec<_>>());
        let drawn = list.drawn(&secret, &beacon);
        let header = DrawFileHeader {
            event_id,
            commitment: secret.commitment(event_id),
            committed_at: "2023-09-01T09:00:00Z".parse().unwrap(),
            closed_at: "2023-09-15T10:59:57Z".parse().unwrap(),
            fixed_at: FIXED_AT.parse().unwrap(),
            seed: secret.seed(&drawn.digest, &beacon),
            secret,
            beacon,
            digest: drawn.digest,
            arrivals: drawn.arrivals,
            count: u32::try_from(users.len()).unwrap(),
        };
        format!("{header}{}", lines(&drawn.entrants))
    }

    fn verify(file: &str) -> Result<DrawReport, VerifyError> {
        verify_draw(file.as_bytes())
    }

    /// The value of a line of the header.
    fn value<'a>(file: &'a str, name: &str) -> &'a str {
        let mut values = file.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        values.next().unwrap()
    }

    fn with(file: &str, name: &str, new: &str) -> String {
        let old = format!("\n{name} {}\n", value(file, name));
        file.replacen(&old, &format!("\n{name} {new}\n"), 1)
    }

    /// The lines after the header changed by `tamper`.
    fn with_entrants(file: &str, tamper: impl FnOnce(&mut Vec<String>)) -> String {
        let mut all: Vec<String> = file.lines().map(ToOwned::to_owned).collect();
        let mut entrants = all.split_off(12);
        tamper(&mut entrants);
        all.extend(entrants);
        all.join("\n") + "\n"
    }

    const PEOPLE: [u128; 6] = [11, 12, 13, 14, 15, 16];

    #[test]
    fn a_file_as_we_write_it_is_right() {
        let report = verify(&file(&PEOPLE)).unwrap();
        let mut ranks: Vec<_> =
            PEOPLE.iter().filter_map(|user| report.rank_of(Uuid::from_u128(*user))).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, [1, 2, 3, 4, 5, 6]);
        assert_eq!(report.rank_of(Uuid::from_u128(17)), None);
        assert!(verify(&file(&[])).is_ok(), "a draw in which nobody took part");
        assert!(verify(&file(&[11])).is_ok());
    }

    #[test]
    fn the_report_says_in_sentences_what_was_checked() {
        let report = verify(&file(&PEOPLE)).unwrap().to_string();
        for part in ["6 took part, nobody twice", "the order that follows", "cannot show"] {
            assert!(report.contains(part), "{report}");
        }
    }

    #[test]
    fn the_example_of_the_specification_is_right() {
        let (_, example) = SPECIFICATION.split_once("```text\n").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        let report = verify(example).unwrap();
        let user = |last: u128| Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0000 + last);
        let ranks: Vec<_> = (0xa1..=0xa6).map(|last| report.rank_of(user(last))).collect();
        assert_eq!(ranks, [Some(1), Some(2), Some(5), Some(4), Some(3), None]);
    }

    #[track_caller]
    fn refused(file: &str, expected: &str) {
        let refusal = verify(file).expect_err("it was tampered with").to_string();
        assert!(refusal.contains(expected), "{refusal:?} should say {expected:?}");
    }

    #[test]
    fn nobody_can_be_moved() {
        let file = file(&PEOPLE);
        for (one, other) in [(0, 1), (0, 5), (2, 3), (4, 5)] {
            let swapped = with_entrants(&file, |entrants| entrants.swap(one, other));
            refused(&swapped, "does not stand where the seed puts them");
        }
        let moved = with_entrants(&file, |entrants| entrants.rotate_right(1));
        refused(&moved, "does not stand where the seed puts them");
    }

    #[test]
    fn nobody_can_be_removed_added_replaced_or_named_twice() {
        let file = file(&PEOPLE);
        let stranger = format!("{} 7", EntrantTag::of(Uuid::from_u128(1), Uuid::from_u128(99)));
        let removed = with_entrants(&file, |entrants| drop(entrants.pop()));
        refused(&removed, "ends in the middle: it names 6 entrants, and 5");
        refused(&with(&removed, "count", "5"), "added, removed or replaced");
        let added = with_entrants(&file, |entrants| entrants.push(stranger.clone()));
        refused(&added, "names 6 entrants, and more follow");
        refused(&with(&added, "count", "7"), "added, removed or replaced");
        let stranger = stranger.replace(" 7", " 1");
        let replaced = with_entrants(&file, |entrants| entrants[3] = stranger);
        refused(&replaced, "added, removed or replaced");
        let twice = with_entrants(&file, |entrants| entrants[3] = entrants[2].clone());
        refused(&twice, "line 16: this entrant is named a second time");
    }

    /// One more entrant, and a digest that suits: then the seed does not.
    #[test]
    fn a_new_digest_needs_a_new_seed_and_a_new_order() {
        let (file, larger) = (file(&PEOPLE), file(&[11, 12, 13, 14, 15, 16, 17]));
        let added = with_entrants(&file, |entrants| {
            let seventh = larger.lines().skip(12).find(|line| line.ends_with(" 7"));
            entrants.push(seventh.unwrap().to_owned());
        });
        let added = with(&added, "count", "7");
        let digest = with(&added, "digest", value(&larger, "digest"));
        refused(&digest, "the seed does not follow");
        let seed = with(&digest, "seed", value(&larger, "seed"));
        refused(&seed, "does not stand where the seed puts them");
    }

    #[test]
    fn the_secret_cannot_be_exchanged_without_its_commitment() {
        let file = file(&PEOPLE);
        let other = DrawSecret::new([8; 32]);
        refused(&with(&file, "secret", &hex::encode(other.expose())), "not that of the secret");
        let commitment = hex::encode(other.commitment(Uuid::from_u128(1)));
        refused(&with(&file, "commitment", &commitment), "not that of the secret");
        let other_event = Uuid::from_u128(2).to_string();
        refused(&with(&file, "event", &other_event), "not that of the secret");
    }

    #[test]
    fn digest_seed_and_count_are_recomputed() {
        let (file, nines) = (file(&PEOPLE), "9".repeat(64));
        refused(&with(&file, "digest", &nines), "added, removed or replaced");
        refused(&with(&file, "seed", &nines), "the seed does not follow");
        refused(&with(&file, "count", "5"), "names 5 entrants, and more follow");
        refused(&with(&file, "count", "7"), "names 7 entrants, and 6 are there");
        refused(&with(&file, "count", "4294967295"), "and 6 are there");
    }

    /// The control is the file as it was written, with the value that drand published.
    #[test]
    fn the_beacon_cannot_be_chosen() {
        let file = file_with(&PEOPLE, published());
        let report = verify(&file).unwrap().to_string();
        assert!(report.contains("signed by drand for round 657413"), "{report}");
        let other_time = with(&file, "fixedAt", "2023-09-15T11:00:01Z");
        refused(&other_time, "not the one that belongs to the time");
        let made_up = value(&file, "beacon").replace("b713", "b813");
        refused(&with(&file, "beacon", &made_up), "not signed by drand");
        // Without a signature it is an offline value, and the seed is another one.
        let offline = format!("offline {}", "5".repeat(64));
        refused(&with(&file, "beacon", &offline), "the seed does not follow");
        let offline = verify(&self::file(&PEOPLE)).unwrap().to_string();
        assert!(offline.contains("NO PUBLIC BEACON"), "{offline}");
    }

    #[test]
    fn arrivals_cannot_be_exchanged() {
        let file = file(&PEOPLE);
        let exchanged = file.replace(" 3\n", " x\n").replace(" 4\n", " 3\n");
        refused(&exchanged.replace(" x\n", " 4\n"), "not those that were published");
        refused(&file.replace(" 3\n", " 4\n"), "do not count from 1");
        refused(&file.replace(" 3\n", " 0\n"), "do not count from 1");
        refused(&file.replace(" 3\n", " 7\n"), "do not count from 1");
        refused(&with(&file, "arrivals", &"9".repeat(64)), "not those that were published");
    }

    #[test]
    fn a_commitment_after_the_closing_is_worth_nothing() {
        let late = with(&file(&PEOPLE), "committedAt", "2023-09-15T10:59:57Z");
        refused(&late, "committed to after the draw was closed");
    }

    #[test]
    fn a_file_that_was_cut_is_refused_wherever_it_was_cut() {
        let file = file(&PEOPLE);
        for length in 0..file.len() {
            assert!(verify(&file[..length]).is_err(), "{:?}", &file[..length]);
        }
    }

    #[test]
    fn a_file_with_any_other_character_is_refused() {
        let file = file(&[11, 12, 13]).into_bytes();
        for index in 0..file.len() {
            // The times are ours to say: no hash is over them.
            let line = file[..index].iter().filter(|byte| **byte == b'\n').count();
            if [3, 4, 8].contains(&line) {
                continue;
            }
            for byte in [b'0', b'x', b' ', b'\n', 0xff] {
                let mut changed = file.clone();
                if std::mem::replace(&mut changed[index], byte) != byte {
                    assert!(verify_draw(&*changed).is_err(), "byte {index} as {byte}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_draw_is_refused() {
        refused("", "no file of a draw");
        refused("urr-draw-v1\n", "no file of a draw");
        refused(&file(&PEOPLE).replace('\n', "\r\n"), "no file of a draw");
        refused(&"urr-draw-v2 ".repeat(100_000), "a short line");
        refused(&(file(&PEOPLE) + "\n"), "and more follow");
        refused(&file(&PEOPLE).replace("commitment", "Commitment"), "line 3: expected");
        let capitals = with(&file(&PEOPLE), "digest", &"A".repeat(64));
        refused(&capitals, "line 7: expected");
        assert!(verify_draw(&b"urr-draw-v2\n\xff\xfe\n"[..]).is_err());
        let endless = io::BufReader::new(io::repeat(b'u'));
        assert!(verify_draw(endless).is_err());
    }
}
