//! What is sold never changes, so it is read once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use urr_kernel::Uuid;
use urr_storage::{Db, StorageError};

use crate::Inventory;
use crate::store::sales;

/// More events than this in memory at once and the memory starts anew.
const INVENTORIES_MAX: usize = 1_000;

/// The inventories of the events that were asked for. Clones share them.
#[derive(Clone)]
pub struct Inventories {
    db: Db,
    known: Arc<RwLock<HashMap<Uuid, Arc<Inventory>>>>,
}

impl Inventories {
    pub fn new(db: Db) -> Inventories {
        Inventories { db, known: Arc::default() }
    }

    /// What an event sells; none while the ticket office has not heard of it.
    pub async fn get(&self, event_id: Uuid) -> Result<Option<Arc<Inventory>>, StorageError> {
        let known =
            self.known.read().unwrap_or_else(PoisonError::into_inner).get(&event_id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let found = self.db.read(move |tx| sales::inventory_find(tx, event_id)).await?;
        let Some(inventory) = found.map(Arc::new) else { return Ok(None) };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= INVENTORIES_MAX {
            known.clear();
        }
        known.insert(event_id, Arc::clone(&inventory));
        Ok(Some(inventory))
    }
}
