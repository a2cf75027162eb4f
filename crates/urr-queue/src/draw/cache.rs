//! What everybody may read of draws, without a login: so it is read from the database at most once
//! a second for all who ask, and few files are sent at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use urr_kernel::{Timestamp, Uuid};
use urr_storage::StorageError;

use crate::store::draws::{self, StoredDraw};
use crate::store::rooms;
use crate::{DrawState, EventRoom, QueueService};

/// A draw may get on at any moment until it is done.
const AGE_MAX: Duration = Duration::from_secs(1);
/// Then only the event itself can change.
const AGE_MAX_DONE: Duration = Duration::from_mins(1);
const KEPT_MAX: usize = 1_000;
/// So many files are sent at a time.
const DOWNLOADS_MAX: usize = 16;

/// The draws that were asked for lately, and the files that are being sent.
pub struct DrawCache {
    latest: Mutex<HashMap<Uuid, Arc<PublicDraw>>>,
    /// Held by who reads; the others wait for what is read. One for all events: whatever strangers
    /// ask for, it costs the database one statement at a time.
    reading: tokio::sync::Mutex<()>,
    downloads: Arc<Semaphore>,
}

/// An event with its draw, as it was at a moment.
pub struct PublicDraw {
    pub event: EventRoom,
    /// None: it never was a lottery.
    pub draw: Option<StoredDraw>,
    at: Timestamp,
}

impl Default for DrawCache {
    fn default() -> DrawCache {
        DrawCache {
            latest: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            downloads: Arc::new(Semaphore::new(DOWNLOADS_MAX)),
        }
    }
}

impl QueueService {
    /// An event with its draw, also long after its sale; none if it is not known.
    pub(crate) async fn public_draw(
        &self,
        event_id: Uuid,
    ) -> Result<Option<Arc<PublicDraw>>, StorageError> {
        let (draw_cache, now) = (&self.0.draw_cache, self.0.clock.now());
        // Of a draw that is done everybody may know at once.
        let is_done = self.0.event_index.get(event_id).and_then(|event| event.draw);
        let is_done = is_done == Some(DrawState::Done);
        if let Some(latest) = draw_cache.latest(event_id, is_done, now) {
            return Ok(Some(latest));
        }
        let _reading = draw_cache.reading.lock().await;
        if let Some(latest) = draw_cache.latest(event_id, is_done, now) {
            return Ok(Some(latest));
        }
        let read = self.0.db.read(move |tx| {
            let event = rooms::room_find(tx, event_id)?;
            let draw = draws::draw_find(tx, event_id)?;
            Ok::<_, StorageError>(event.map(|event| PublicDraw { event, draw, at: now }))
        });
        let read = read.await?.map(Arc::new);
        if let Some(read) = &read {
            draw_cache.keep(event_id, read, now);
        }
        Ok(read)
    }

    /// The right to be sent a file; none if too many are being sent.
    pub(crate) fn begin_download(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.draw_cache.downloads).try_acquire_owned().ok()
    }
}

impl DrawCache {
    fn latest(&self, event_id: Uuid, is_done: bool, now: Timestamp) -> Option<Arc<PublicDraw>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = latest.get(&event_id)?;
        (latest.is_fresh(now) && latest.is_done() >= is_done).then(|| Arc::clone(latest))
    }

    fn keep(&self, event_id: Uuid, read: &Arc<PublicDraw>, now: Timestamp) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() >= KEPT_MAX {
            latest.retain(|_, kept| kept.is_fresh(now));
        }
        if latest.len() < KEPT_MAX {
            latest.insert(event_id, Arc::clone(read));
        }
    }
}

impl PublicDraw {
    fn is_done(&self) -> bool {
        self.draw.as_ref().is_some_and(|draw| draw.done_at.is_some())
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        let age_max = if self.is_done() { AGE_MAX_DONE } else { AGE_MAX };
        self.at <= now && now < self.at + age_max
    }
}
