//! The slots of a room and their expiry.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use hashbrown::DefaultHashBuilder;
use urr_kernel::{Timestamp, Uuid};

use crate::{AdmissionRules, Slot};

/// A slot as the room stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSlot {
    pub id: Uuid,
    pub admitted_at_us: i64,
    ends_at_us: i64,
    /// The number of the admission in this room.
    pub admission: u64,
    /// The end in the heap. The real end is usually later.
    queued_end_us: i64,
}

/// The heap has one live entry per slot. A slot that was extended is queued again when its old end
/// comes up, so that extending a slot does not touch the heap.
pub struct SlotTable {
    held: HashMap<Uuid, HeldSlot, DefaultHashBuilder>,
    ends: BinaryHeap<Reverse<SlotExpiry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotExpiry {
    at_us: i64,
    admission: u64,
    user_id: Uuid,
}

impl SlotTable {
    pub fn new(hasher: DefaultHashBuilder) -> SlotTable {
        SlotTable { held: HashMap::with_hasher(hasher), ends: BinaryHeap::new() }
    }

    pub fn len(&self) -> u32 {
        u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }

    pub fn get(&self, user_id: Uuid) -> Option<&HeldSlot> {
        self.held.get(&user_id)
    }

    /// Adds a slot for a user who has none.
    pub fn insert(
        &mut self,
        user_id: Uuid,
        id: Uuid,
        admission: u64,
        now_us: i64,
        rules: &AdmissionRules,
    ) {
        let (_, ends_at_us) = ends(now_us, now_us, rules);
        let held = HeldSlot {
            id,
            admitted_at_us: now_us,
            ends_at_us,
            admission,
            queued_end_us: ends_at_us,
        };
        let before = self.held.insert(user_id, held);
        assert!(before.is_none(), "nobody is in twice");
        self.queue(user_id, &held);
    }

    /// Adds a recovered slot. It does not expire before [`SlotTable::set_expiries`].
    pub fn restore(&mut self, user_id: Uuid, id: Uuid, admitted_at_us: i64) {
        let (ends_at_us, queued_end_us) = (i64::MAX, i64::MAX);
        let held = HeldSlot { id, admitted_at_us, ends_at_us, admission: 0, queued_end_us };
        self.held.insert(user_id, held);
    }

    /// Sets the ends of recovered slots, as if their owners had been seen then.
    pub fn set_expiries(&mut self, seen_at_us: i64, rules: &AdmissionRules) {
        let restored = self.held.iter_mut().filter(|(_, held)| held.ends_at_us == i64::MAX);
        for (user_id, held) in restored {
            (_, held.ends_at_us) = ends(held.admitted_at_us, seen_at_us, rules);
            held.queued_end_us = held.ends_at_us;
            let (at_us, admission) = (held.ends_at_us, held.admission);
            self.ends.push(Reverse(SlotExpiry { at_us, admission, user_id: *user_id }));
        }
    }

    /// Extends a user's slot. `None` if there is none, or if it has expired by the present rules:
    /// then [`SlotTable::remove`] it.
    pub fn mark_seen(
        &mut self,
        user_id: Uuid,
        now_us: i64,
        rules: &AdmissionRules,
    ) -> Option<Slot> {
        let held = self.held.get_mut(&user_id)?;
        let (last_end_us, ends_at_us) = ends(held.admitted_at_us, now_us, rules);
        if last_end_us <= now_us {
            return None;
        }
        held.ends_at_us = ends_at_us;
        let slot = Slot {
            id: held.id,
            admitted_at: time(held.admitted_at_us),
            ends_at: time(ends_at_us),
            last_end: time(last_end_us),
        };
        // The rules have become stricter, so the end in the heap is too late.
        if ends_at_us < held.queued_end_us {
            held.queued_end_us = ends_at_us;
            let held = *held;
            self.queue(user_id, &held);
        }
        Some(slot)
    }

    pub fn remove(&mut self, user_id: Uuid) -> Option<HeldSlot> {
        let held = self.held.remove(&user_id);
        self.drop_stale_expiries();
        held
    }

    /// Removes a slot that has expired.
    pub fn pop_expired(&mut self, now_us: i64) -> Option<(Uuid, HeldSlot)> {
        while let Some(Reverse(end)) = self.ends.peek().copied() {
            if end.at_us > now_us {
                return None;
            }
            self.ends.pop();
            let Some(held) = self.held.get_mut(&end.user_id) else { continue };
            if held.admission != end.admission || held.queued_end_us != end.at_us {
                continue;
            }
            if held.ends_at_us <= now_us {
                let held = self.held.remove(&end.user_id).expect("it was just there");
                return Some((end.user_id, held));
            }
            held.queued_end_us = held.ends_at_us;
            let held = *held;
            self.queue(end.user_id, &held);
        }
        None
    }

    pub fn bytes(&self) -> usize {
        // Eight buckets for seven entries, and a control byte each.
        let buckets = self.held.capacity() / 7 * 8;
        buckets * (size_of::<(Uuid, HeldSlot)>() + 1)
            + self.ends.capacity() * size_of::<SlotExpiry>()
    }

    fn queue(&mut self, user_id: Uuid, held: &HeldSlot) {
        let end = SlotExpiry { at_us: held.queued_end_us, admission: held.admission, user_id };
        self.ends.push(Reverse(end));
    }

    /// A removed slot leaves its entry in the heap; too many of them are dropped.
    fn drop_stale_expiries(&mut self) {
        if self.ends.len() <= 2 * self.held.len() + 64 {
            return;
        }
        let held = &self.held;
        self.ends.retain(|Reverse(end)| {
            held.get(&end.user_id).is_some_and(|held| {
                (held.admission, held.queued_end_us) == (end.admission, end.at_us)
            })
        });
        self.ends.shrink_to(2 * self.ends.len());
    }
}

/// The last possible end of a slot, and its end if its owner is seen now.
fn ends(admitted_at_us: i64, now_us: i64, rules: &AdmissionRules) -> (i64, i64) {
    let micros = |span: std::time::Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    let last_end_us = admitted_at_us.saturating_add(micros(rules.slot_max)).min(i64::MAX - 1);
    (last_end_us, now_us.saturating_add(micros(rules.slot_ttl)).min(last_end_us))
}

fn time(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::AdmissionState;

    const SECOND: i64 = 1_000_000;
    const EMPTY_ROOM: [Uuid; 0] = [];

    fn rules(ttl: u64, max: u64) -> AdmissionRules {
        AdmissionRules {
            admission: AdmissionState::Open,
            threshold: 10,
            admitted_per_second_max: 10,
            slot_ttl: Duration::from_secs(ttl),
            slot_max: Duration::from_secs(max),
            waiting_max: 10,
            queues_per_user_max: 10,
        }
    }

    fn user(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn slots() -> SlotTable {
        SlotTable::new(DefaultHashBuilder::default())
    }

    fn over(slots: &mut SlotTable, now_us: i64) -> Vec<Uuid> {
        std::iter::from_fn(|| slots.pop_expired(now_us)).map(|(user_id, _)| user_id).collect()
    }

    #[test]
    fn a_slot_is_over_at_its_end_and_not_before() {
        let mut slots = slots();
        slots.insert(user(1), user(101), 1, 0, &rules(10, 30));
        slots.insert(user(2), user(102), 2, SECOND, &rules(10, 30));
        assert_eq!(over(&mut slots, 10 * SECOND - 1), EMPTY_ROOM);
        assert_eq!(over(&mut slots, 10 * SECOND), [user(1)]);
        assert_eq!(over(&mut slots, 11 * SECOND), [user(2)]);
        assert_eq!(slots.len(), 0);
    }

    #[test]
    fn being_seen_moves_the_end_on_up_to_the_last_one() {
        let (mut slots, rules) = (slots(), rules(10, 30));
        slots.insert(user(1), user(101), 1, 0, &rules);
        for second in [9, 18, 27] {
            assert_eq!(over(&mut slots, second * SECOND), EMPTY_ROOM);
            let slot = slots.mark_seen(user(1), second * SECOND, &rules).unwrap();
            let end = (second + 10).min(30);
            assert_eq!(slot.ends_at, Timestamp::from_second(end).unwrap());
            assert_eq!(slot.last_end, Timestamp::from_second(30).unwrap());
        }
        assert_eq!(over(&mut slots, 30 * SECOND - 1), EMPTY_ROOM);
        assert_eq!(slots.ends.len(), 1, "one entry for each slot");
        assert_eq!(over(&mut slots, 30 * SECOND), [user(1)]);
    }

    #[test]
    fn the_end_of_an_older_slot_does_not_end_a_newer_one() {
        let (mut slots, rules) = (slots(), rules(10, 30));
        slots.insert(user(1), user(101), 1, 0, &rules);
        slots.remove(user(1)).unwrap();
        slots.insert(user(1), user(102), 2, 0, &rules);
        slots.mark_seen(user(1), 5 * SECOND, &rules).unwrap();
        assert_eq!(over(&mut slots, 10 * SECOND), EMPTY_ROOM);
        assert_eq!(over(&mut slots, 15 * SECOND), [user(1)]);
    }

    #[test]
    fn stricter_rules_hold_for_those_who_are_in_as_soon_as_they_are_seen() {
        let mut slots = slots();
        slots.insert(user(1), user(101), 1, 0, &rules(100, 300));
        slots.mark_seen(user(1), SECOND, &rules(10, 300)).unwrap();
        assert_eq!(over(&mut slots, 11 * SECOND), [user(1)]);
        slots.insert(user(1), user(102), 2, 0, &rules(100, 300));
        assert_eq!(slots.mark_seen(user(1), 20 * SECOND, &rules(10, 20)), None);
        assert!(slots.remove(user(1)).is_some());
    }

    #[test]
    fn those_who_come_and_go_leave_nothing_behind() {
        let (mut slots, rules) = (slots(), rules(600, 1_800));
        for number in 0..10_000 {
            slots.insert(user(number), user(1), u64::try_from(number).unwrap(), 0, &rules);
            slots.remove(user(number)).unwrap();
        }
        assert!(slots.ends.len() <= 65, "{}", slots.ends.len());
    }

    #[test]
    fn who_was_restored_stays_until_the_rules_are_known() {
        let (mut slots, rules) = (slots(), rules(10, 30));
        slots.restore(user(1), user(101), 0);
        slots.restore(user(2), user(102), 20 * SECOND);
        assert_eq!(over(&mut slots, 1_000 * SECOND), EMPTY_ROOM);
        slots.set_expiries(25 * SECOND, &rules);
        assert_eq!(over(&mut slots, 30 * SECOND), [user(1)], "the last end counts");
        assert_eq!(over(&mut slots, 35 * SECOND), [user(2)], "seen at the restart");
    }
}
