//! Caches of sales: what a sale sells never changes, so it is read once; its policy is read every
//! second.

use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{Clock, Uuid};
use urr_service::cache::{Cache, CacheOptions};
use urr_storage::{Db, DbResult, StorageError};

use crate::inventory::store::{inventory_find, policy_find};
use crate::{Inventory, SalePolicy};

const INVENTORIES: CacheOptions =
    CacheOptions { ttl: Duration::from_hours(24), entries_max: 1_000 };

/// A policy takes about two hundred bytes, so 2 MiB.
const POLICIES: CacheOptions = CacheOptions { ttl: Duration::from_secs(1), entries_max: 10_000 };

/// Inventories and policies by event. Clones share them.
#[derive(Clone)]
pub struct InventoryCache {
    db: Db,
    inventories: Cache<Uuid, Arc<Inventory>, SaleMiss>,
    policies: Cache<Uuid, Arc<SalePolicy>, SaleMiss>,
}

/// Why there is nothing to cache.
#[derive(Clone)]
enum SaleMiss {
    NotFound,
    Storage(StorageError),
}

impl SaleMiss {
    fn of<T>(found: DbResult<Option<T>>) -> Result<Arc<T>, SaleMiss> {
        found.map_err(SaleMiss::Storage)?.map(Arc::new).ok_or(SaleMiss::NotFound)
    }
}

impl InventoryCache {
    pub fn new(db: Db, clock: Clock) -> InventoryCache {
        let inventories = Cache::new(clock.clone(), INVENTORIES);
        InventoryCache { db, inventories, policies: Cache::new(clock, POLICIES) }
    }

    /// The inventory of an event; none if there is no complete sale.
    pub async fn get(&self, event_id: Uuid) -> DbResult<Option<Arc<Inventory>>> {
        let db = self.db.clone();
        let load =
            || async move { SaleMiss::of(db.read(move |tx| inventory_find(tx, event_id)).await) };
        match self.inventories.get_or_load(event_id, load).await {
            Ok(inventory) => Ok(Some(inventory)),
            Err(SaleMiss::NotFound) => Ok(None),
            Err(SaleMiss::Storage(error)) => Err(error),
        }
    }

    /// A policy that may be a second old, for early rejections. None if there is no such sale or the
    /// database fails: then the reservation itself finds out.
    pub async fn policy(&self, event_id: Uuid) -> Option<Arc<SalePolicy>> {
        let db = self.db.clone();
        let load = || async move {
            let found = db.read(move |tx| policy_find(tx, event_id)).await;
            SaleMiss::of(found.inspect_err(|error: &StorageError| {
                tracing::warn!(%error, %event_id, "the policy of a sale could not be read");
            }))
        };
        self.policies.get_or_load(event_id, load).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use urr_kernel::Timestamp;
    use urr_layout::Layout;
    use urr_storage::{SqliteOptions, Tx, migrate};

    use super::*;
    use crate::inventory::store::{NewSale, SaleFacts, sale_create};
    use crate::{InventoryKind, SCHEMA};

    fn new_sale(event_id: Uuid) -> NewSale {
        let now = Timestamp::UNIX_EPOCH;
        let layout = Layout { sections: Vec::new() };
        let prices = std::collections::BTreeMap::new();
        NewSale {
            inventory: Inventory { event_id, kind: InventoryKind::Standing, layout, prices },
            facts: SaleFacts {
                revision: 1,
                title: "한강의 밤".to_owned(),
                venue_name: "강변 홀".to_owned(),
                artist_id: None,
                starts_at: now + Duration::from_secs(2),
                sale_starts_at: now,
                sale_ends_at: now + Duration::from_secs(1),
                has_presale: false,
                seats_per_user_max: 4,
                requires_identity: false,
                allows_reentry: false,
                organiser_id: None,
                cancel_policy: None,
            },
            ticket_types: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_crowd_that_finds_the_cache_empty_reads_once() {
        let folder = tempfile::tempdir().expect("there is space");
        let path = folder.path().join("tickets.db");
        let now = Timestamp::UNIX_EPOCH;
        migrate::migrate_sqlite(&path, &SCHEMA, now).expect("it is new");
        let db = Db::open_sqlite(&path, &SqliteOptions::default()).expect("it is there");
        let event_id = Uuid::from_u128(1);
        let create = move |tx: &mut Tx<'_>| sale_create(tx, &new_sale(event_id), now);
        assert_eq!(db.write(create).await, Ok(true));
        let inventories = InventoryCache::new(db.clone(), Clock::manual(now));
        let before = db.stats().statements;
        let reads = (0..1_000).map(|_| inventories.get(event_id));
        for found in join_all(reads).await {
            assert!(found.is_ok_and(|found| found.is_some()));
        }
        assert_eq!(db.stats().statements - before, 1);
        let unknown = inventories.get(Uuid::from_u128(2)).await;
        assert!(unknown.is_ok_and(|found| found.is_none()));
    }
}
