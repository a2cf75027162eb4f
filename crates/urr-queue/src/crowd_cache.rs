//! The crowds of the rooms, at most a second old: each is read once for all who ask.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use urr_kernel::{Clock, Timestamp, Uuid};
use urr_room::{AdmissionRules, Crowd, RoomError, Rooms};
use urr_service::cache::{Cache, CacheOptions};

use crate::domain::estimate::WaitEstimator;
use crate::http::CrowdDocument;

const CROWD_TTL: Duration = Duration::from_secs(1);
const CROWDS_MAX: usize = 10_000;

pub struct CrowdCache {
    rooms: Rooms,
    cache: Cache<Uuid, Arc<CrowdSnapshot>, RoomError>,
}

/// The crowd of a room at a moment, with what is made of it once for all who ask.
#[derive(Debug)]
pub struct CrowdSnapshot {
    pub crowd: Crowd,
    pub at: Timestamp,
    wait_estimator: OnceLock<WaitEstimator>,
    document: Mutex<Option<CrowdDocument>>,
}

impl CrowdSnapshot {
    pub fn wait_estimator(&self, rules: &AdmissionRules) -> &WaitEstimator {
        self.wait_estimator.get_or_init(|| WaitEstimator::new(&self.crowd, rules))
    }

    pub fn document(&self) -> Option<CrowdDocument> {
        self.document.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_document(&self, document: CrowdDocument) {
        *self.document.lock().unwrap_or_else(PoisonError::into_inner) = Some(document);
    }
}

impl CrowdCache {
    pub fn new(rooms: Rooms, clock: Clock) -> CrowdCache {
        let options = CacheOptions { ttl: CROWD_TTL, entries_max: CROWDS_MAX };
        CrowdCache { rooms, cache: Cache::new(clock, options) }
    }

    pub async fn get(
        &self,
        event_id: Uuid,
        now: Timestamp,
    ) -> Result<Arc<CrowdSnapshot>, RoomError> {
        let load = || {
            let rooms = self.rooms.clone();
            async move {
                let crowd = rooms.crowd(event_id, now).await?;
                let (wait_estimator, document) = (OnceLock::new(), Mutex::default());
                Ok(Arc::new(CrowdSnapshot { crowd, at: now, wait_estimator, document }))
            }
        };
        self.cache.get_or_load(event_id, load).await
    }
}
