//! What people were told, what is there, and whether it agrees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::Result;
use urr_kernel::Uuid;
use urr_room::{Rooms, Standing};

use super::process::{EVENT, RULES, ask, user_id};

/// What a process said to people before it was killed. A person is a number.
#[derive(Debug, Default)]
pub struct Told {
    /// The numbers of their places; none if they were told before there was one.
    pub places: BTreeMap<u64, Option<i64>>,
    pub slots: BTreeMap<u64, Uuid>,
    /// Who began to leave may be gone; who was told so must be.
    pub leaving: BTreeSet<u64>,
    pub left: BTreeSet<u64>,
}

/// What is there after a crash.
#[derive(Debug, Default)]
pub struct Found {
    /// The whole line.
    pub order: Vec<Uuid>,
    pub standings: BTreeMap<u64, Standing>,
}

/// What must not be. Empty is good.
#[derive(Default, PartialEq, Eq)]
pub struct Findings {
    /// Told of a place or a slot, and without it.
    pub lost: BTreeSet<u64>,
    /// With another number than they were told.
    pub renumbered: BTreeSet<u64>,
    /// Behind someone whom they were before.
    pub out_of_order: BTreeSet<u64>,
    /// In line twice, or in line and in.
    pub doubled: BTreeSet<u64>,
    /// Told that they have left, and still there.
    pub returned: BTreeSet<u64>,
}

/// How many, and who for example: a crash can hit a hundred thousand.
impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |people: &BTreeSet<u64>| {
            (people.len(), people.iter().take(5).copied().collect::<Vec<_>>())
        };
        f.debug_struct("Findings")
            .field("lost", &some(&self.lost))
            .field("renumbered", &some(&self.renumbered))
            .field("out_of_order", &some(&self.out_of_order))
            .field("doubled", &some(&self.doubled))
            .field("returned", &some(&self.returned))
            .finish()
    }
}

pub async fn look(rooms: &Rooms, told: &Told) -> Result<Found> {
    let mut found = Found { order: rooms.entrants(EVENT, i64::MAX).await?, ..Found::default() };
    for person in told.places.keys().chain(told.slots.keys()).copied() {
        let seen = rooms.look(ask(person), &RULES).await?;
        found.standings.insert(person, seen.standing);
    }
    Ok(found)
}

pub fn compare(told: &Told, found: &Found) -> Findings {
    let mut findings = Findings::default();
    let mut in_line: BTreeMap<Uuid, usize> = BTreeMap::new();
    for user in &found.order {
        *in_line.entry(*user).or_default() += 1;
    }
    for (person, standing) in &found.standings {
        let times = in_line.get(&user_id(*person)).copied().unwrap_or_default();
        let is_waiting = matches!(standing, Standing::Waiting(_));
        if times != usize::from(is_waiting) {
            findings.doubled.insert(*person);
        }
        check_one(told, *person, *standing, &mut findings);
    }
    let number_of = |user: &Uuid| {
        let person = u64::try_from(user.as_u128()).unwrap();
        told.places.get(&person).copied().flatten().map(|number| (person, number))
    };
    let numbers: Vec<(u64, i64)> = found.order.iter().filter_map(number_of).collect();
    for pair in numbers.windows(2) {
        if pair[0].1 >= pair[1].1 {
            findings.out_of_order.insert(pair[1].0);
        }
    }
    findings
}

fn check_one(told: &Told, person: u64, standing: Standing, findings: &mut Findings) {
    if told.left.contains(&person) {
        if standing != Standing::Absent {
            findings.returned.insert(person);
        }
        return;
    }
    match (standing, told.slots.get(&person)) {
        (Standing::Active(slot), Some(slot_id)) if slot.id == *slot_id => {}
        // They were let in, and the process was killed before it could say so.
        (Standing::Active(_), None) => {}
        (Standing::Waiting(place), None) => {
            let number = told.places.get(&person).copied().flatten();
            if number.is_some_and(|number| number != place.number) {
                findings.renumbered.insert(person);
            }
        }
        (Standing::Absent, None) if told.leaving.contains(&person) => {}
        _ => {
            findings.lost.insert(person);
        }
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Timestamp;
    use urr_room::{Place, Slot};

    use super::*;

    fn waiting(number: i64) -> Standing {
        Standing::Waiting(Place { number, position: 1 })
    }

    fn active(slot: u128) -> Standing {
        let time = Timestamp::UNIX_EPOCH;
        let id = Uuid::from_u128(slot);
        Standing::Active(Slot { id, admitted_at: time, ends_at: time, last_end: time })
    }

    fn found(order: &[u64], standings: &[(u64, Standing)]) -> Found {
        let order = order.iter().copied().map(user_id).collect();
        Found { order, standings: standings.iter().copied().collect() }
    }

    fn told() -> Told {
        Told {
            places: (1..=6).map(|person| (person, i64::try_from(person).ok())).collect(),
            slots: BTreeMap::from([(1, Uuid::from_u128(77))]),
            leaving: BTreeSet::from([4, 5]),
            left: BTreeSet::from([5]),
        }
    }

    #[test]
    fn what_is_as_it_was_told_is_well() {
        let rest = [(1, active(77)), (5, Standing::Absent), (6, waiting(6))];
        let stays = [(2, waiting(2)), (3, waiting(3)), (4, waiting(4))];
        let good = found(&[2, 3, 4, 6], &[rest.as_slice(), &stays].concat());
        assert_eq!(compare(&told(), &good), Findings::default());
        let moved = [(2, active(78)), (3, waiting(3)), (4, Standing::Absent)];
        let good = found(&[3, 6], &[rest.as_slice(), &moved].concat());
        assert_eq!(compare(&told(), &good), Findings::default(), "what was not told may be");
    }

    #[test]
    fn every_kind_of_damage_is_seen() {
        let check = |order: &[u64], standings: &[(u64, Standing)], expected: Findings| {
            assert_eq!(compare(&told(), &found(order, standings)), expected);
        };
        let none = Findings::default;
        let only = |person| BTreeSet::from([person]);
        check(&[], &[(2, Standing::Absent)], Findings { lost: only(2), ..none() });
        check(&[], &[(1, active(78))], Findings { lost: only(1), ..none() });
        check(&[1], &[(1, waiting(1))], Findings { lost: only(1), ..none() });
        check(&[2], &[(2, waiting(9))], Findings { renumbered: only(2), ..none() });
        check(&[5], &[(5, waiting(5))], Findings { returned: only(5), ..none() });
        check(&[2], &[(2, active(78))], Findings { doubled: only(2), ..none() });
        check(&[], &[(2, waiting(2))], Findings { doubled: only(2), ..none() });
        let both = [(2, waiting(2)), (3, waiting(3))];
        check(&[3, 2], &both, Findings { out_of_order: only(2), ..none() });
        let twice = Findings { doubled: only(2), out_of_order: only(2), ..none() };
        check(&[2, 2, 3], &both, twice);
    }
}
