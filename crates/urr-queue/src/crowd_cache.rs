//! What is known of each room as a whole: never older than a second, and read once for all who ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};

use crate::domain::estimate::WaitEstimator;
use crate::http::Document;
use urr_room::{AdmissionRules, Crowd, RoomError, Rooms};

/// How old what is known may be.
const AGE_MAX: Duration = Duration::from_secs(1);
/// With more rooms than this in memory those are forgotten that nobody asked for lately.
const CROWDS_MAX: usize = 10_000;

/// The crowds of the rooms that were asked for.
pub struct CrowdCache {
    rooms: Rooms,
    known: RwLock<HashMap<Uuid, Arc<Known>>>,
}

#[derive(Default)]
struct Known {
    latest: RwLock<Option<Arc<CrowdSnapshot>>>,
    /// Held by who reads; the others wait for what is read.
    reading: tokio::sync::Mutex<()>,
}

/// A room as a whole, as it was at a moment.
#[derive(Debug)]
pub struct CrowdSnapshot {
    pub crowd: Crowd,
    pub at: Timestamp,
    wait_estimator: OnceLock<WaitEstimator>,
    /// What is sent to all who ask for it.
    document: Mutex<Option<Document>>,
}

impl CrowdSnapshot {
    /// How fast the line moves: made once for all who ask within the second.
    pub fn wait_estimator(&self, rules: &AdmissionRules, open_for: Duration) -> &WaitEstimator {
        self.wait_estimator.get_or_init(|| WaitEstimator::new(&self.crowd, rules, open_for))
    }

    pub fn document(&self) -> Option<Document> {
        self.document.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn keep_document(&self, document: Document) {
        *self.document.lock().unwrap_or_else(PoisonError::into_inner) = Some(document);
    }
}

impl CrowdCache {
    pub fn new(rooms: Rooms) -> CrowdCache {
        CrowdCache { rooms, known: RwLock::default() }
    }

    /// The crowd of an event's room.
    pub async fn get(&self, event_id: Uuid, now: Timestamp) -> Result<Arc<CrowdSnapshot>, RoomError> {
        let known = self.known(event_id, now);
        if let Some(latest) = known.latest(now) {
            return Ok(latest);
        }
        let _reading = known.reading.lock().await;
        if let Some(latest) = known.latest(now) {
            return Ok(latest);
        }
        let crowd = self.rooms.crowd(event_id, now).await?;
        let (wait_estimator, document) = (OnceLock::new(), Mutex::default());
        let read = Arc::new(CrowdSnapshot { crowd, at: now, wait_estimator, document });
        *known.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&read));
        Ok(read)
    }

    fn known(&self, event_id: Uuid, now: Timestamp) -> Arc<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&event_id) {
            return Arc::clone(known);
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CROWDS_MAX {
            known.retain(|_, known| known.latest(now).is_some());
        }
        Arc::clone(known.entry(event_id).or_default())
    }
}

impl Known {
    /// What is known, unless it is too old, or from the future: then the clock was set back.
    fn latest(&self, now: Timestamp) -> Option<Arc<CrowdSnapshot>> {
        let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |latest: &&Arc<CrowdSnapshot>| latest.at <= now && now < latest.at + AGE_MAX;
        latest.as_ref().filter(is_fresh).cloned()
    }
}
