//! The events and their rooms, in memory: who asks for a place reads no database (P-1).
//!
//! Events whose sale ended more than a day ago are not in it: to those who ask there is no such
//! event any more. Their draws stay public; those are read from the database.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use urr_kernel::{Clock, Timestamp, Uuid};
use urr_storage::{Db, StorageError};

use crate::store::rooms::{self, ListedRoom};
use crate::{DrawState, EventRoom, EventStatus, OpeningOrder};

/// Who looks after the sale is told for so long that it is over.
const KEPT_AFTER_END: Duration = Duration::from_hours(24);
/// A process that has tried for so long to read what is new knows too little to let anybody in.
const STALE_AFTER: Duration = Duration::from_secs(15);

/// What is known of the events.
pub struct EventIndex {
    clock: Clock,
    known: RwLock<Arc<Known>>,
    /// Since when reading was tried without success, be it that it fails or that it takes so long.
    unread_since: RwLock<Option<Timestamp>>,
}

#[derive(Default)]
struct Known {
    /// Of the table: another number there means that there is something new.
    revision: i64,
    rooms: HashMap<Uuid, Arc<EventRoom>>,
    /// Of lotteries.
    commitments: HashMap<Uuid, Vec<u8>>,
    /// Lotteries whose draw is still to come.
    undrawn: Vec<Arc<EventRoom>>,
    /// Rooms that are to be cleared.
    awaiting_clearing: Vec<Uuid>,
}

impl EventIndex {
    pub fn new(clock: Clock) -> EventIndex {
        EventIndex { clock, known: RwLock::default(), unread_since: RwLock::default() }
    }

    pub fn get(&self, event_id: Uuid) -> Option<Arc<EventRoom>> {
        self.known().rooms.get(&event_id).cloned()
    }

    /// What was committed to before the draw of a lottery.
    pub fn commitment(&self, event_id: Uuid) -> Option<Vec<u8>> {
        self.known().commitments.get(&event_id).cloned()
    }

    /// Whether it was ever read: before that an event that is not there may well exist.
    pub fn is_loaded(&self) -> bool {
        self.known().revision > 0
    }

    /// Whether what is known may be outdated: a pause, a cancellation or a pre-sale may have been
    /// missed. Then this process lets nobody in; others may.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let since = *self.unread_since.read().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| now >= since + STALE_AFTER)
    }

    pub fn all(&self) -> Vec<Arc<EventRoom>> {
        self.known().rooms.values().cloned().collect()
    }

    /// The lotteries whose draw is still to come.
    pub fn undrawn(&self) -> Vec<Arc<EventRoom>> {
        self.known().undrawn.clone()
    }

    /// The rooms that are to be cleared.
    pub fn awaiting_clearing(&self) -> Vec<Uuid> {
        self.known().awaiting_clearing.clone()
    }

    /// Reads what is new since the last time.
    pub async fn refresh(&self, db: &Db) -> Result<(), StorageError> {
        let (known, now) = (self.known().revision, self.clock.now());
        self.unread_since.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
        let read = db.read(move |tx| {
            let revision = rooms::revision_read(tx)?;
            // The number first: what changes after it is read again next time.
            let is_new = revision != known;
            let listed = |tx| rooms::room_list(tx, now - KEPT_AFTER_END);
            let all = if is_new { Some(listed(tx)?) } else { None };
            Ok::<_, StorageError>(all.map(|all| (revision, all)))
        });
        if let Some((revision, all)) = read.await? {
            self.learn(revision, all);
        }
        *self.unread_since.write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Takes over what was read, unless someone has read something newer meanwhile.
    fn learn(&self, revision: i64, all: Vec<ListedRoom>) {
        let mut read = Known { revision, ..Known::default() };
        for ListedRoom { room, commitment } in all {
            let room = Arc::new(room);
            if let Some(commitment) = commitment {
                read.commitments.insert(room.event_id, commitment);
            }
            if is_undrawn(&room) {
                read.undrawn.push(Arc::clone(&room));
            }
            if room.awaits_clearing {
                read.awaiting_clearing.push(room.event_id);
            }
            read.rooms.insert(room.event_id, room);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if revision >= known.revision {
            *known = Arc::new(read);
        }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_undrawn(room: &EventRoom) -> bool {
    let is_drawn = room.draw == Some(DrawState::Done);
    room.room_settings.opening == OpeningOrder::Lottery && room.status == EventStatus::Open && !is_drawn
}
