//! The events and their rooms, in memory: who asks for a place reads no database (P-1).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use urr_kernel::Uuid;
use urr_storage::{Db, StorageError};

use crate::EventRoom;
use crate::store::rooms::{self, ListedRoom};

/// What is known of all events.
#[derive(Default)]
pub struct Directory(RwLock<Arc<Known>>);

#[derive(Default)]
struct Known {
    /// Of the table: another number there means that there is something new.
    revision: i64,
    rooms: HashMap<Uuid, Arc<EventRoom>>,
    /// Of lotteries.
    commitments: HashMap<Uuid, Vec<u8>>,
}

impl Directory {
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

    pub fn all(&self) -> Vec<Arc<EventRoom>> {
        self.known().rooms.values().cloned().collect()
    }

    /// Reads what is new since the last time.
    pub async fn refresh(&self, db: &Db) -> Result<(), StorageError> {
        let known = self.known().revision;
        let read = db.read(move |tx| {
            let revision = rooms::revision_read(tx)?;
            // The number first: what changes after it is read again next time.
            let is_new = revision != known;
            let all = if is_new { Some(rooms::room_list(tx)?) } else { None };
            Ok::<_, StorageError>(all.map(|all| (revision, all)))
        });
        if let Some((revision, all)) = read.await? {
            self.learn(revision, all);
        }
        Ok(())
    }

    /// Takes over what was read, unless someone has read something newer meanwhile.
    fn learn(&self, revision: i64, all: Vec<ListedRoom>) {
        let mut read = Known { revision, ..Known::default() };
        for ListedRoom { room, commitment } in all {
            if let Some(commitment) = commitment {
                read.commitments.insert(room.event_id, commitment);
            }
            read.rooms.insert(room.event_id, Arc::new(room));
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if revision >= known.revision {
            *known = Arc::new(read);
        }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
