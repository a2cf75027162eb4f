//! A cache of sale policies for early rejections.
//!
//! It only rejects. Whether a user may buy is decided on what the database says then.

use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{Clock, Uuid};
use urr_service::cache::{Cache, CacheOptions};
use urr_storage::Db;

use crate::SalePolicy;
use crate::inventory::store::policy_find;

/// A policy takes about two hundred bytes, so 2 MiB.
const OPTIONS: CacheOptions = CacheOptions { ttl: Duration::from_secs(1), entries_max: 10_000 };

/// The policies of a process. Clones share them.
#[derive(Clone)]
pub struct PolicyCache {
    db: Db,
    policies: Cache<Uuid, Arc<SalePolicy>, PolicyMiss>,
}

/// There is no such sale, or the database failed.
#[derive(Clone)]
struct PolicyMiss;

impl PolicyCache {
    pub fn new(db: &Db, clock: &Clock) -> PolicyCache {
        PolicyCache { db: db.clone(), policies: Cache::new(clock.clone(), OPTIONS) }
    }

    /// None if there is no such sale or the database fails: then the reservation itself finds out.
    pub async fn get(&self, event_id: Uuid) -> Option<Arc<SalePolicy>> {
        let db = self.db.clone();
        let load = || async move {
            match db.read(move |tx| policy_find(tx, event_id)).await {
                Ok(policy) => policy.map(Arc::new).ok_or(PolicyMiss),
                Err(error) => {
                    tracing::warn!(%error, %event_id, "the policy of a sale could not be read");
                    Err(PolicyMiss)
                }
            }
        };
        self.policies.get_or_load(event_id, load).await.ok()
    }
}
