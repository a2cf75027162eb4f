//! A cache of inventories: what a sale sells never changes, so it is read once.
//!
//! Requests for an event that is not cached are batched: when a sale opens, one of them reads the
//! inventory for all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use urr_kernel::Uuid;
use urr_storage::{Db, StorageError};

use crate::Inventory;
use crate::batcher::{Batcher, BatcherError};
use crate::inventory::store as sales;

/// When the cache is full, the least recently used inventory is dropped.
const INVENTORIES_MAX: usize = 1_000;

type InventoryResult = Result<Option<Arc<Inventory>>, StorageError>;

/// Inventories by event. Clones share them.
#[derive(Clone)]
pub struct InventoryCache {
    memory: Arc<InventoryMap>,
    batcher: Batcher<(), InventoryResult>,
}

struct InventoryMap {
    db: Db,
    max: usize,
    cached: RwLock<HashMap<Uuid, CachedInventory>>,
    /// A counter of uses, as a clock.
    asked: AtomicU64,
    reads: AtomicU64,
}

struct CachedInventory {
    inventory: Arc<Inventory>,
    last_asked: AtomicU64,
}

impl InventoryCache {
    pub fn new(db: Db) -> InventoryCache {
        InventoryCache::with_max(db, INVENTORIES_MAX)
    }

    fn with_max(db: Db, max: usize) -> InventoryCache {
        let memory = Arc::new(InventoryMap {
            db,
            max,
            cached: RwLock::default(),
            asked: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        });
        let reading = Arc::clone(&memory);
        let work = move |event_id, requests: Vec<()>| {
            let memory = Arc::clone(&reading);
            async move { vec![memory.load(event_id).await; requests.len()] }
        };
        InventoryCache { memory, batcher: Batcher::new(work, |_| {}) }
    }

    /// The inventory of an event; none if there is no complete sale.
    pub async fn get(&self, event_id: Uuid) -> InventoryResult {
        if let Some(inventory) = self.memory.get(event_id) {
            return Ok(Some(inventory));
        }
        match self.batcher.submit(event_id, ()).await {
            Ok(found) => found,
            Err(BatcherError::Full) => Err(StorageError::Overloaded),
            Err(BatcherError::Failed) => {
                Err(StorageError::Panicked("the desk broke down".to_owned()))
            }
        }
    }
}

impl InventoryMap {
    fn get(&self, event_id: Uuid) -> Option<Arc<Inventory>> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let cached = cached.get(&event_id)?;
        cached.last_asked.store(self.tick(), Ordering::Relaxed);
        Some(Arc::clone(&cached.inventory))
    }

    /// Runs once at a time per event.
    async fn load(&self, event_id: Uuid) -> InventoryResult {
        if let Some(inventory) = self.get(event_id) {
            return Ok(Some(inventory));
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        let found = self.db.read(move |tx| sales::inventory_find(tx, event_id)).await?;
        let Some(inventory) = found.map(Arc::new) else { return Ok(None) };
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= self.max {
            let last_asked = |cached: &CachedInventory| cached.last_asked.load(Ordering::Relaxed);
            let oldest = cached.iter().min_by_key(|(_, cached)| last_asked(cached));
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                cached.remove(&oldest);
            }
        }
        let last_asked = AtomicU64::new(self.tick());
        cached.insert(event_id, CachedInventory { inventory: Arc::clone(&inventory), last_asked });
        Ok(Some(inventory))
    }

    fn tick(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use urr_kernel::Timestamp;
    use urr_layout::Layout;
    use urr_storage::{SqliteOptions, Tx, migrate};

    use super::*;
    use crate::InventoryKind;
    use crate::SCHEMA;
    use crate::inventory::store::NewSale;
    use crate::inventory::store::SaleFacts;

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
            },
            ticket_types: Vec::new(),
        }
    }

    /// A memory for two events of three.
    async fn memory_for_two() -> (tempfile::TempDir, InventoryCache, [Uuid; 3]) {
        let folder = tempfile::tempdir().expect("there is space");
        let path = folder.path().join("tickets.db");
        let now = Timestamp::UNIX_EPOCH;
        migrate::migrate_sqlite(&path, &SCHEMA, now).expect("it is new");
        let db = Db::open_sqlite(&path, &SqliteOptions::default()).expect("it is there");
        let events = [1, 2, 3].map(Uuid::from_u128);
        for event_id in events {
            let create = move |tx: &mut Tx<'_>| sales::sale_create(tx, &new_sale(event_id), now);
            assert_eq!(db.write(create).await, Ok(true));
        }
        (folder, InventoryCache::with_max(db, 2), events)
    }

    #[tokio::test]
    async fn a_crowd_that_finds_the_memory_empty_reads_once() {
        let (_folder, inventories, [event_id, ..]) = memory_for_two().await;
        let mut asking: Vec<_> = (0..1_000).map(|_| Box::pin(inventories.get(event_id))).collect();
        assert!(asking.iter_mut().all(|asking| asking.as_mut().now_or_never().is_none()));
        for found in join_all(asking).await {
            assert!(found.is_ok_and(|found| found.is_some()));
        }
        assert_eq!(inventories.memory.reads.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_full_memory_forgets_only_what_was_not_asked_for_longest() {
        let (_folder, inventories, [first, second, third]) = memory_for_two().await;
        let reads_for = async |event_id| {
            let before = inventories.memory.reads.load(Ordering::Relaxed);
            assert!(inventories.get(event_id).await.is_ok_and(|found| found.is_some()));
            inventories.memory.reads.load(Ordering::Relaxed) - before
        };
        assert_eq!((reads_for(first).await, reads_for(second).await), (1, 1));
        assert_eq!(reads_for(first).await, 0);
        assert_eq!(reads_for(third).await, 1);
        assert_eq!(reads_for(first).await, 0, "it was asked for after the second");
        assert_eq!(reads_for(second).await, 1);
    }
}
