//! What sales allow, as it was a moment ago: who cannot buy is told so before they lock a seat.
//!
//! It decides against someone only. Whether they may buy is decided on what the database says then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use urr_kernel::{Clock, Timestamp, Uuid};
use urr_storage::Db;

use crate::SalePolicy;
use crate::batcher::Desk;
use crate::inventory::store::policy_find;

/// Older ones are read again.
const AGE_MAX: Duration = Duration::from_secs(1);

/// About two hundred bytes each, so 2 MiB.
const KNOWN_MAX: usize = 10_000;

/// The policies of a process. Clones share them.
#[derive(Clone)]
pub struct Policies {
    memory: Arc<Memory>,
    /// However many ask at once, a policy is read once.
    desk: Desk<(), Option<Arc<SalePolicy>>>,
}

struct Memory {
    db: Db,
    clock: Clock,
    known: Mutex<HashMap<Uuid, Known>>,
}

struct Known {
    policy: Arc<SalePolicy>,
    /// A moment before it was read.
    read_at: Timestamp,
}

impl Policies {
    pub fn new(db: &Db, clock: &Clock) -> Policies {
        let (db, clock, known) = (db.clone(), clock.clone(), Mutex::default());
        let memory = Arc::new(Memory { db, clock, known });
        let reading = Arc::clone(&memory);
        let work = move |event_id, questions: Vec<()>| {
            let memory = Arc::clone(&reading);
            async move { vec![memory.load(event_id).await; questions.len()] }
        };
        Policies { memory, desk: Desk::new(work, |_| {}) }
    }

    /// None: there is no such sale, or it cannot be told now. Then the database will tell.
    pub async fn get(&self, event_id: Uuid) -> Option<Arc<SalePolicy>> {
        match self.memory.get(event_id) {
            Some(policy) => Some(policy),
            None => self.desk.ask(event_id, ()).await.ok().flatten(),
        }
    }
}

impl Memory {
    fn get(&self, event_id: Uuid) -> Option<Arc<SalePolicy>> {
        let now = self.clock.now();
        let known = self.known();
        let known = known.get(&event_id).filter(|known| known.is_fresh(now))?;
        Some(Arc::clone(&known.policy))
    }

    /// One at a time for an event.
    async fn load(&self, event_id: Uuid) -> Option<Arc<SalePolicy>> {
        if let Some(policy) = self.get(event_id) {
            return Some(policy);
        }
        let read_at = self.clock.now();
        let policy = match self.db.read(move |tx| policy_find(tx, event_id)).await {
            Ok(policy) => Arc::new(policy?),
            Err(error) => {
                tracing::warn!(%error, %event_id, "the policy of a sale could not be read");
                return None;
            }
        };
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.retain(|_, known| known.is_fresh(read_at));
        }
        if known.len() < KNOWN_MAX {
            known.insert(event_id, Known { policy: Arc::clone(&policy), read_at });
        }
        Some(policy)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Uuid, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// A clock that was set back makes nothing young.
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.read_at <= now && now < self.read_at + AGE_MAX
    }
}
