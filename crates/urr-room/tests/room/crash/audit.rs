//! What people were told, what is there, and whether it agrees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::Result;
use urr_kernel::Uuid;
use urr_room::{Rooms, UserStatus};

use super::process::{EVENT, RULES, request, user_id};

/// What a process said to people before it was killed. A person is a number.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// The numbers of their places; none if they were told before there was one.
    pub places: BTreeMap<u64, Option<i64>>,
    pub slots: BTreeMap<u64, Uuid>,
    /// A user whose leaving began may be gone; a user whose leaving was confirmed must be.
    pub leaving: BTreeSet<u64>,
    pub left: BTreeSet<u64>,
}

/// What is there after a crash.
#[derive(Debug, Default)]
pub struct Found {
    /// The whole line.
    pub order: Vec<Uuid>,
    pub standings: BTreeMap<u64, UserStatus>,
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

pub async fn poll(rooms: &Rooms, acknowledged: &Acknowledged) -> Result<Found> {
    let mut found = Found { order: rooms.entrants(EVENT, i64::MAX).await?, ..Found::default() };
    for person in acknowledged.places.keys().chain(acknowledged.slots.keys()).copied() {
        let snapshot = rooms.poll(request(person), &RULES).await?;
        found.standings.insert(person, snapshot.status);
    }
    Ok(found)
}

pub fn compare(acknowledged: &Acknowledged, found: &Found) -> Findings {
    let mut findings = Findings::default();
    let mut in_line: BTreeMap<Uuid, usize> = BTreeMap::new();
    for user in &found.order {
        *in_line.entry(*user).or_default() += 1;
    }
    for (person, status) in &found.standings {
        let times = in_line.get(&user_id(*person)).copied().unwrap_or_default();
        let is_waiting = matches!(status, UserStatus::Waiting(_));
        if times != usize::from(is_waiting) {
            findings.doubled.insert(*person);
        }
        check_one(acknowledged, *person, *status, &mut findings);
    }
    let number_of = |user: &Uuid| {
        let person = u64::try_from(user.as_u128()).unwrap();
        acknowledged.places.get(&person).copied().flatten().map(|number| (person, number))
    };
    let numbers: Vec<(u64, i64)> = found.order.iter().filter_map(number_of).collect();
    for pair in numbers.windows(2) {
        if pair[0].1 >= pair[1].1 {
            findings.out_of_order.insert(pair[1].0);
        }
    }
    findings
}

fn check_one(
    acknowledged: &Acknowledged,
    person: u64,
    status: UserStatus,
    findings: &mut Findings,
) {
    if acknowledged.left.contains(&person) {
        if status != UserStatus::Absent {
            findings.returned.insert(person);
        }
        return;
    }
    match (status, acknowledged.slots.get(&person)) {
        (UserStatus::Active(slot), Some(slot_id)) if slot.id == *slot_id => {}
        // They were let in, and the process was killed before it could say so.
        (UserStatus::Active(_), None) => {}
        (UserStatus::Waiting(place), None) => {
            let number = acknowledged.places.get(&person).copied().flatten();
            if number.is_some_and(|number| number != place.number) {
                findings.renumbered.insert(person);
            }
        }
        (UserStatus::Absent, None) if acknowledged.leaving.contains(&person) => {}
        _ => {
            findings.lost.insert(person);
        }
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Timestamp;
    use urr_room::{LinePosition, Slot};

    use super::*;

    fn waiting(number: i64) -> UserStatus {
        UserStatus::Waiting(LinePosition { number, position: 1 })
    }

    fn active(slot: u128) -> UserStatus {
        let time = Timestamp::UNIX_EPOCH;
        let id = Uuid::from_u128(slot);
        UserStatus::Active(Slot { id, admitted_at: time, ends_at: time, last_end: time })
    }

    fn found(order: &[u64], standings: &[(u64, UserStatus)]) -> Found {
        let order = order.iter().copied().map(user_id).collect();
        Found { order, standings: standings.iter().copied().collect() }
    }

    fn acknowledged() -> Acknowledged {
        Acknowledged {
            places: (1..=6).map(|person| (person, i64::try_from(person).ok())).collect(),
            slots: BTreeMap::from([(1, Uuid::from_u128(77))]),
            leaving: BTreeSet::from([4, 5]),
            left: BTreeSet::from([5]),
        }
    }

    #[test]
    fn what_is_as_it_was_told_is_well() {
        let rest = [(1, active(77)), (5, UserStatus::Absent), (6, waiting(6))];
        let stays = [(2, waiting(2)), (3, waiting(3)), (4, waiting(4))];
        let good = found(&[2, 3, 4, 6], &[rest.as_slice(), &stays].concat());
        assert_eq!(compare(&acknowledged(), &good), Findings::default());
        let moved = [(2, active(78)), (3, waiting(3)), (4, UserStatus::Absent)];
        let good = found(&[3, 6], &[rest.as_slice(), &moved].concat());
        assert_eq!(
            compare(&acknowledged(), &good),
            Findings::default(),
            "what was not told may be"
        );
    }

    #[test]
    fn every_kind_of_damage_is_seen() {
        let check = |order: &[u64], standings: &[(u64, UserStatus)], expected: Findings| {
            assert_eq!(compare(&acknowledged(), &found(order, standings)), expected);
        };
        let none = Findings::default;
        let only = |person| BTreeSet::from([person]);
        check(&[], &[(2, UserStatus::Absent)], Findings { lost: only(2), ..none() });
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
