//! A mutex per key, for requests about one order that arrive at the same time in one process.
//!
//! The second request waits and then reports what the first one achieved. Correctness does not
//! depend on it: the database makes sure that an order is charged once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

#[derive(Debug, Default)]
pub struct KeyedMutex(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// Holds the lock of one key until it is dropped.
pub struct KeyedMutexGuard<'a> {
    mutex: &'a KeyedMutex,
    key: String,
    held: Option<OwnedMutexGuard<()>>,
}

impl KeyedMutex {
    pub async fn lock(&self, key: &str) -> KeyedMutexGuard<'_> {
        let mut guard = KeyedMutexGuard { mutex: self, key: key.to_owned(), held: None };
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(key.to_owned()).or_default())
        };
        guard.held = Some(lock.lock_owned().await);
        guard
    }
}

impl Drop for KeyedMutexGuard<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut locks = self.mutex.0.lock().unwrap_or_else(PoisonError::into_inner);
        // With one strong reference, the map's own, no other request waits for this key.
        if locks.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_kept_of_an_order_that_nobody_waits_for() {
        let mutex = KeyedMutex::default();
        let first = mutex.lock("a").await;
        let other = mutex.lock("b").await;
        assert_eq!(mutex.0.lock().unwrap().len(), 2);
        drop((first, other));
        assert!(mutex.0.lock().unwrap().is_empty());
        drop(mutex.lock("a").await);
        assert!(mutex.0.lock().unwrap().is_empty());
    }
}
