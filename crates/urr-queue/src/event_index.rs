//! The events and their room settings in memory, so that a poll reads no database (P-1).
//!
//! Events whose sale ended more than a day ago are not in it and count as unknown. Their draws stay
//! public; those are read from the database.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use urr_kernel::{Clock, Timestamp, Uuid};
use urr_storage::{Db, DbResult, StorageError};

use crate::store::rooms::{self, ListedRoom};
use crate::{DrawState, EventRoom, OpeningOrder, RoomEventStatus};

/// For this time after the sale, users are told that it has ended.
const KEPT_AFTER_END: Duration = Duration::from_hours(24);
/// A process that could not refresh its index for this long admits nobody.
const STALE_AFTER: Duration = Duration::from_secs(15);

pub struct EventIndex {
    clock: Clock,
    loaded: RwLock<Arc<LoadedEvents>>,
    /// The start of the first refresh that has not succeeded yet, because it fails or is slow.
    unread_since: RwLock<Option<Timestamp>>,
}

#[derive(Default)]
struct LoadedEvents {
    /// The revision of the table: another number there means that something has changed.
    revision: i64,
    rooms: HashMap<Uuid, Arc<EventRoom>>,
    /// Only of lotteries.
    commitments: HashMap<Uuid, Vec<u8>>,
    /// Lotteries whose draw is still to come.
    undrawn: Vec<Arc<EventRoom>>,
    /// Rooms that are to be cleared.
    awaiting_clearing: Vec<Uuid>,
}

impl EventIndex {
    pub fn new(clock: Clock) -> EventIndex {
        EventIndex { clock, loaded: RwLock::default(), unread_since: RwLock::default() }
    }

    pub fn get(&self, event_id: Uuid) -> Option<Arc<EventRoom>> {
        self.loaded().rooms.get(&event_id).cloned()
    }

    /// The commitment of a lottery.
    pub fn commitment(&self, event_id: Uuid) -> Option<Vec<u8>> {
        self.loaded().commitments.get(&event_id).cloned()
    }

    /// Whether it was loaded once. Before that, a missing event may well exist.
    pub fn is_loaded(&self) -> bool {
        self.loaded().revision > 0
    }

    /// Whether a pause, a cancellation or a pre-sale may have been missed. Then this process admits
    /// nobody; others may.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let since = *self.unread_since.read().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| now >= since + STALE_AFTER)
    }

    pub fn all(&self) -> Vec<Arc<EventRoom>> {
        self.loaded().rooms.values().cloned().collect()
    }

    /// The lotteries whose draw is still to come.
    pub fn undrawn(&self) -> Vec<Arc<EventRoom>> {
        self.loaded().undrawn.clone()
    }

    /// The rooms that are to be cleared.
    pub fn awaiting_clearing(&self) -> Vec<Uuid> {
        self.loaded().awaiting_clearing.clone()
    }

    /// Loads what has changed since the last time.
    pub async fn refresh(&self, db: &Db) -> DbResult<()> {
        let (loaded, now) = (self.loaded().revision, self.clock.now());
        self.unread_since.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
        let read = db.read(move |tx| {
            let revision = rooms::revision_read(tx)?;
            // The revision first: what changes after it is loaded by the next refresh.
            let is_new = revision != loaded;
            let listed = |tx| rooms::room_list(tx, now - KEPT_AFTER_END);
            let all = if is_new { Some(listed(tx)?) } else { None };
            Ok::<_, StorageError>(all.map(|all| (revision, all)))
        });
        if let Some((revision, all)) = read.await? {
            self.replace(revision, all);
        }
        *self.unread_since.write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Replaces the index, unless a concurrent refresh has loaded a newer revision.
    fn replace(&self, revision: i64, all: Vec<ListedRoom>) {
        let mut read = LoadedEvents { revision, ..LoadedEvents::default() };
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
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        if revision >= loaded.revision {
            *loaded = Arc::new(read);
        }
    }

    fn loaded(&self) -> Arc<LoadedEvents> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_undrawn(room: &EventRoom) -> bool {
    let is_drawn = room.draw == Some(DrawState::Done);
    room.room_settings.opening == OpeningOrder::Lottery
        && room.status == RoomEventStatus::Open
        && !is_drawn
}
