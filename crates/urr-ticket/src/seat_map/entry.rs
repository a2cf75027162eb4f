//! The place of one event in memory: the view that is shown, and who may bring it up to date.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use urr_kernel::{Clock, Timestamp};
use urr_storage::StorageError;

use crate::seat_map::EventView;

/// See the head of this file.
#[derive(Debug)]
pub struct Slot {
    /// Whoever holds it is at the database.
    pub flight: tokio::sync::Mutex<()>,
    view: RwLock<Option<Arc<EventView>>>,
    changed: AtomicU64,
    freed: AtomicU64,
    attempts: AtomicU64,
    nothing: Mutex<Option<(u64, Nothing)>>,
    looked_at_us: AtomicI64,
}

/// How many changes of this process were marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    pub changed: u64,
    pub freed: u64,
}

/// Why an attempt to bring the view up to date has none to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// There is no such event.
    Gone,
    Failed(StorageError),
}

/// How things stood when somebody came to look.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    changed: u64,
    attempts: u64,
}

impl Slot {
    pub fn new() -> Slot {
        Slot {
            flight: tokio::sync::Mutex::new(()),
            view: RwLock::new(None),
            changed: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            nothing: Mutex::new(None),
            looked_at_us: AtomicI64::new(0),
        }
    }

    pub fn arrive(&self, now: Timestamp) -> Arrival {
        self.looked_at_us.store(now.as_microsecond(), Ordering::Relaxed);
        Arrival {
            changed: self.changed.load(Ordering::Acquire),
            attempts: self.attempts.load(Ordering::Acquire),
        }
    }

    pub fn looked_at(&self) -> i64 {
        self.looked_at_us.load(Ordering::Relaxed)
    }

    pub fn view(&self) -> Option<Arc<EventView>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn show(&self, view: Arc<EventView>) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Some(view);
    }

    /// The view, if it is young enough and has all that was marked when the viewer came, or if its
    /// drawing began after that. By its age alone a view that took long to draw would be nobody's
    /// answer, and all who waited for it would go to the database one after the other.
    pub fn fresh(
        &self,
        arrived: &Arrival,
        clock: &Clock,
        age_max: Duration,
    ) -> Option<Arc<EventView>> {
        let view = self.view()?;
        let is_young = view.age(clock.now()).is_some_and(|age| age < age_max);
        let is_good = is_young && view.marks.changed >= arrived.changed;
        (is_good || view.attempt > arrived.attempts).then_some(view)
    }

    pub fn mark(&self, is_freed: bool) {
        if is_freed {
            self.freed.fetch_add(1, Ordering::Release);
        }
        self.changed.fetch_add(1, Ordering::Release);
    }

    /// To be read before the database is: what is marked later may or may not be seen.
    pub fn marks(&self) -> Marks {
        Marks {
            changed: self.changed.load(Ordering::Acquire),
            freed: self.freed.load(Ordering::Acquire),
        }
    }

    /// Begins an attempt to bring the view up to date, and numbers it.
    pub fn begin(&self) -> u64 {
        self.attempts.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub fn show_nothing(&self, attempt: u64, reason: Nothing) {
        let mut nothing = self.nothing.lock().unwrap_or_else(PoisonError::into_inner);
        *nothing = Some((attempt, reason));
    }

    /// What an attempt found that began after somebody came, if there was nothing to show: it is
    /// their answer too. A database that is down is not asked once per viewer.
    pub fn nothing_after(&self, arrived: &Arrival) -> Option<Nothing> {
        let nothing = self.nothing.lock().unwrap_or_else(PoisonError::into_inner);
        let (attempt, reason) = nothing.as_ref()?;
        (*attempt > arrived.attempts).then(|| reason.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_the_answer_of_those_who_waited_for_it_and_of_nobody_else() {
        let slot = Slot::new();
        let waiting = slot.arrive(Timestamp::UNIX_EPOCH);
        let attempt = slot.begin();
        let late = slot.arrive(Timestamp::UNIX_EPOCH);
        let failed = Nothing::Failed(StorageError::Timeout);
        slot.show_nothing(attempt, failed.clone());
        assert_eq!(slot.nothing_after(&waiting), Some(failed));
        assert_eq!(slot.nothing_after(&late), None, "its attempt had begun before");
        let next = slot.arrive(Timestamp::UNIX_EPOCH);
        assert_eq!(slot.nothing_after(&next), None);
    }
}
