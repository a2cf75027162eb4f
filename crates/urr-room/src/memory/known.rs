//! Which rooms there are: those with people, and what is left of those without.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hashbrown::DefaultHashBuilder;
use urr_kernel::Uuid;

use super::journal::Totals;
use super::lock;
use super::room::Room;

/// So many rooms are put to rest at once.
const RESTED_AT_ONCE_MAX: usize = 256;

/// An event's number never ends, so that it is never given twice. Of a room that has been empty for
/// a while no more is kept than that.
#[derive(Default)]
pub struct Known {
    awake: HashMap<Uuid, Arc<Mutex<Room>>>,
    resting: HashMap<Uuid, Totals>,
}

impl Known {
    /// Those who were in a room before a restart.
    pub fn restore(&mut self, totals: Totals, room: Room) {
        if room.is_occupied() {
            self.awake.insert(totals.event_id, Arc::new(Mutex::new(room)));
        } else {
            self.resting.insert(totals.event_id, totals);
        }
    }

    pub fn find(&self, event_id: Uuid) -> Option<Arc<Mutex<Room>>> {
        self.awake.get(&event_id).cloned()
    }

    pub fn resting(&self, event_id: Uuid) -> Option<&Totals> {
        self.resting.get(&event_id)
    }

    pub fn awake(&self) -> impl Iterator<Item = (&Uuid, &Arc<Mutex<Room>>)> {
        self.awake.iter()
    }

    /// A room to come in. `number` is of one that is new.
    pub fn wake(
        &mut self,
        event_id: Uuid,
        number: impl FnOnce() -> i64,
        hasher: &DefaultHashBuilder,
    ) -> Arc<Mutex<Room>> {
        let Known { awake, resting } = self;
        let room = awake.entry(event_id).or_insert_with(|| {
            let new = || Totals { room: number(), event_id, last_number: 0, admitted: 0, left: 0 };
            let totals = resting.remove(&event_id).unwrap_or_else(new);
            Arc::new(Mutex::new(Room::empty(totals, hasher.clone())))
        });
        Arc::clone(room)
    }

    /// Puts some of these to rest that nobody is in.
    pub fn rest(&mut self, events: &[Uuid], now_second: i64, durable: u64) {
        for event_id in events.iter().take(RESTED_AT_ONCE_MAX) {
            let Some(room) = self.awake.get(event_id) else { continue };
            // Whoever has found it may be about to come in.
            let is_alone = Arc::strong_count(room) == 1;
            let totals = is_alone.then(|| lock(room).rest(now_second, durable)).flatten();
            let Some(totals) = totals else { continue };
            self.awake.remove(event_id);
            if (totals.last_number, totals.admitted) != (0, 0) {
                self.resting.insert(*event_id, totals);
            }
        }
    }

    /// What those that rest take in memory.
    pub fn resting_bytes(&self) -> usize {
        self.resting.capacity() * (size_of::<(Uuid, Totals)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_that_someone_has_found_is_not_put_to_rest() {
        let (mut known, hasher) = (Known::default(), DefaultHashBuilder::default());
        let event_id = Uuid::from_u128(1);
        let found = known.wake(event_id, || 1, &hasher);
        known.rest(&[event_id], 1_800_000_000, 0);
        let again = known.find(event_id).unwrap();
        assert!(Arc::ptr_eq(&found, &again), "they come into the one that is known");
        drop((found, again));
        known.rest(&[event_id], 1_800_000_000, 0);
        assert!(known.find(event_id).is_none() && known.resting(event_id).is_none());
    }
}
