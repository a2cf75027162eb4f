//! The cached map of one event: the published snapshot, and who may refresh it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use urr_kernel::{Clock, Timestamp};
use urr_storage::StorageError;

use crate::seat_map::InventorySnapshot;

#[derive(Debug)]
pub struct MapEntry {
    /// Held during a refresh.
    pub refreshing: tokio::sync::Mutex<()>,
    view: RwLock<Option<Arc<InventorySnapshot>>>,
    changed: AtomicU64,
    freed: AtomicU64,
    attempts: AtomicU64,
    failure: Mutex<Option<(u64, LoadFailure)>>,
    last_read_at_us: AtomicI64,
}

/// How many changes of this process were marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeCounts {
    pub changed: u64,
    pub freed: u64,
}

/// Why a refresh has no snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFailure {
    /// There is no such event.
    NotFound,
    Failed(StorageError),
}

/// The counters when a read began.
#[derive(Clone, Copy, Debug)]
pub struct ReadStart {
    changed: u64,
    attempts: u64,
}

impl MapEntry {
    pub fn new() -> MapEntry {
        MapEntry {
            refreshing: tokio::sync::Mutex::new(()),
            view: RwLock::new(None),
            changed: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            failure: Mutex::new(None),
            last_read_at_us: AtomicI64::new(0),
        }
    }

    pub fn begin_read(&self, now: Timestamp) -> ReadStart {
        self.last_read_at_us.store(now.as_microsecond(), Ordering::Relaxed);
        ReadStart {
            changed: self.changed.load(Ordering::Acquire),
            attempts: self.attempts.load(Ordering::Acquire),
        }
    }

    pub fn last_read_at(&self) -> i64 {
        self.last_read_at_us.load(Ordering::Relaxed)
    }

    pub fn view(&self) -> Option<Arc<InventorySnapshot>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn publish(&self, view: Arc<InventorySnapshot>) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Some(view);
    }

    /// The snapshot, if it is young enough and has all changes that were marked when the read
    /// began, or if its refresh began after that. By age alone a refresh that took long would help
    /// nobody, and all requests that waited for it would read the database one after the other.
    pub fn current(
        &self,
        started: &ReadStart,
        clock: &Clock,
        age_max: Duration,
    ) -> Option<Arc<InventorySnapshot>> {
        let view = self.view()?;
        let is_young = view.age(clock.now()).is_some_and(|age| age < age_max);
        let is_good = is_young && view.change_counts.changed >= started.changed;
        (is_good || view.attempt > started.attempts).then_some(view)
    }

    pub fn mark(&self, is_freed: bool) {
        if is_freed {
            self.freed.fetch_add(1, Ordering::Release);
        }
        self.changed.fetch_add(1, Ordering::Release);
    }

    /// To be read before the database is: changes marked later may or may not be included.
    pub fn change_counts(&self) -> ChangeCounts {
        ChangeCounts {
            changed: self.changed.load(Ordering::Acquire),
            freed: self.freed.load(Ordering::Acquire),
        }
    }

    /// Begins a refresh and numbers it.
    pub fn begin_refresh(&self) -> u64 {
        self.attempts.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub fn publish_failure(&self, attempt: u64, reason: LoadFailure) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some((attempt, reason));
    }

    /// The failure of a refresh that began after the read: it is the answer of this read too. A
    /// database that is down is not asked once per reader.
    pub fn failure_after(&self, started: &ReadStart) -> Option<LoadFailure> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let (attempt, reason) = failure.as_ref()?;
        (*attempt > started.attempts).then(|| reason.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_the_answer_of_those_who_waited_for_it_and_of_nobody_else() {
        let entry = MapEntry::new();
        let waiting = entry.begin_read(Timestamp::UNIX_EPOCH);
        let attempt = entry.begin_refresh();
        let late = entry.begin_read(Timestamp::UNIX_EPOCH);
        let failed = LoadFailure::Failed(StorageError::Timeout);
        entry.publish_failure(attempt, failed.clone());
        assert_eq!(entry.failure_after(&waiting), Some(failed));
        assert_eq!(entry.failure_after(&late), None, "its attempt had begun before");
        let next = entry.begin_read(Timestamp::UNIX_EPOCH);
        assert_eq!(entry.failure_after(&next), None);
    }
}
