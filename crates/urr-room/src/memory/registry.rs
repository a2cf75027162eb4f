//! The rooms of this process: loaded ones, and the counters of empty ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hashbrown::DefaultHashBuilder;
use urr_kernel::Uuid;

use super::journal::RoomTotals;
use super::lock;
use super::room::MemoryRoom;

/// How many rooms are unloaded at once.
const UNLOADED_AT_ONCE_MAX: usize = 256;

/// A room that has been empty for a while is unloaded except for its counters, so that no number is
/// given twice.
#[derive(Default)]
pub struct RoomRegistry {
    loaded: HashMap<Uuid, Arc<Mutex<MemoryRoom>>>,
    dormant: HashMap<Uuid, RoomTotals>,
}

impl RoomRegistry {
    /// A room as it was before a restart.
    pub fn restore(&mut self, totals: RoomTotals, room: MemoryRoom) {
        if room.is_occupied() {
            self.loaded.insert(totals.event_id, Arc::new(Mutex::new(room)));
        } else {
            self.dormant.insert(totals.event_id, totals);
        }
    }

    pub fn find(&self, event_id: Uuid) -> Option<Arc<Mutex<MemoryRoom>>> {
        self.loaded.get(&event_id).cloned()
    }

    pub fn dormant(&self, event_id: Uuid) -> Option<&RoomTotals> {
        self.dormant.get(&event_id)
    }

    pub fn loaded(&self) -> impl Iterator<Item = (&Uuid, &Arc<Mutex<MemoryRoom>>)> {
        self.loaded.iter()
    }

    /// Loads the room of an event. `number` is for a new room.
    pub fn load(
        &mut self,
        event_id: Uuid,
        number: impl FnOnce() -> i64,
        hasher: &DefaultHashBuilder,
    ) -> Arc<Mutex<MemoryRoom>> {
        let RoomRegistry { loaded, dormant } = self;
        let room = loaded.entry(event_id).or_insert_with(|| {
            let new = || RoomTotals {
                room: number(),
                event_id,
                last_number: 0,
                admitted: 0,
                left: 0,
                logged: 0,
            };
            let totals = dormant.remove(&event_id).unwrap_or_else(new);
            Arc::new(Mutex::new(MemoryRoom::empty(totals, hasher.clone())))
        });
        Arc::clone(room)
    }

    /// Unloads some of these rooms if they are empty.
    pub fn unload(&mut self, occupied_events: &[Uuid], now_second: i64, durable: u64) {
        for event_id in occupied_events.iter().take(UNLOADED_AT_ONCE_MAX) {
            let Some(room) = self.loaded.get(event_id) else { continue };
            // A request that holds the room may be about to change it.
            let is_alone = Arc::strong_count(room) == 1;
            let totals = is_alone.then(|| lock(room).unload(now_second, durable)).flatten();
            let Some(totals) = totals else { continue };
            self.loaded.remove(event_id);
            if (totals.last_number, totals.admitted) != (0, 0) {
                self.dormant.insert(*event_id, totals);
            }
        }
    }

    /// The memory of unloaded rooms.
    pub fn dormant_bytes(&self) -> usize {
        self.dormant.capacity() * (size_of::<(Uuid, RoomTotals)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_that_someone_has_found_is_not_put_to_rest() {
        let (mut registry, hasher) = (RoomRegistry::default(), DefaultHashBuilder::default());
        let event_id = Uuid::from_u128(1);
        let found = registry.load(event_id, || 1, &hasher);
        registry.unload(&[event_id], 1_800_000_000, 0);
        let again = registry.find(event_id).unwrap();
        assert!(Arc::ptr_eq(&found, &again), "they come into the one that is known");
        drop((found, again));
        registry.unload(&[event_id], 1_800_000_000, 0);
        assert!(registry.find(event_id).is_none() && registry.dormant(event_id).is_none());
    }
}
