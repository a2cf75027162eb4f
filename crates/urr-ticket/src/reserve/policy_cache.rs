//! A cache of sale policies for early rejections.
//!
//! It only rejects. Whether a user may buy is decided on what the database says then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use urr_kernel::{Clock, Timestamp, Uuid};
use urr_storage::Db;

use crate::SalePolicy;
use crate::batcher::Batcher;
use crate::inventory::store::policy_find;

/// Older ones are read again.
const AGE_MAX: Duration = Duration::from_secs(1);

/// About two hundred bytes each, so 2 MiB.
const POLICIES_MAX: usize = 10_000;

/// The policies of a process. Clones share them.
#[derive(Clone)]
pub struct PolicyCache {
    policies: Arc<PolicyMap>,
    /// However many ask at once, a policy is read once.
    batcher: Batcher<(), Option<Arc<SalePolicy>>>,
}

struct PolicyMap {
    db: Db,
    clock: Clock,
    cached: Mutex<HashMap<Uuid, CachedPolicy>>,
}

struct CachedPolicy {
    policy: Arc<SalePolicy>,
    /// A moment before it was read.
    read_at: Timestamp,
}

impl PolicyCache {
    pub fn new(db: &Db, clock: &Clock) -> PolicyCache {
        let (db, clock, cached) = (db.clone(), clock.clone(), Mutex::default());
        let policies = Arc::new(PolicyMap { db, clock, cached });
        let reading = Arc::clone(&policies);
        let work = move |event_id, requests: Vec<()>| {
            let policies = Arc::clone(&reading);
            async move { vec![policies.load(event_id).await; requests.len()] }
        };
        PolicyCache { policies, batcher: Batcher::new(work, |_| {}) }
    }

    /// None if there is no such sale or the database fails: then the reservation itself finds out.
    pub async fn get(&self, event_id: Uuid) -> Option<Arc<SalePolicy>> {
        match self.policies.get(event_id) {
            Some(policy) => Some(policy),
            None => self.batcher.submit(event_id, ()).await.ok().flatten(),
        }
    }
}

impl PolicyMap {
    fn get(&self, event_id: Uuid) -> Option<Arc<SalePolicy>> {
        let now = self.clock.now();
        let cached = self.cached();
        let cached = cached.get(&event_id).filter(|cached| cached.is_fresh(now))?;
        Some(Arc::clone(&cached.policy))
    }

    /// Runs once at a time per event.
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
        let mut cached = self.cached();
        if cached.len() >= POLICIES_MAX {
            cached.retain(|_, cached| cached.is_fresh(read_at));
        }
        if cached.len() < POLICIES_MAX {
            cached.insert(event_id, CachedPolicy { policy: Arc::clone(&policy), read_at });
        }
        Some(policy)
    }

    fn cached(&self) -> MutexGuard<'_, HashMap<Uuid, CachedPolicy>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedPolicy {
    /// A clock that was set back does not make an entry fresh.
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.read_at <= now && now < self.read_at + AGE_MAX
    }
}
