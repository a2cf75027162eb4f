//! Batches of closures: those that wait for the same batch share a transaction.
//!
//! There is no timer. A single closure starts at once; what arrives while a batch runs forms the
//! next one. Each has an outcome of its own: one that fails harms no other. SQLite commits all
//! writes in groups and reads without a round trip, so only PostgreSQL has batches.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;
use urr_kernel::Uuid;

use crate::engine::QueuedWork;
use crate::job::Job;
use crate::{DbResult, StorageError};

/// More closures than this wait for one batch are refused.
const PENDING_MAX: usize = 8_192;

/// Which closures may share a transaction: those with the same name and id.
///
/// Choose writes that lock the same row first, or none that another process locks in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchKey {
    pub name: &'static str,
    pub id: Uuid,
}

impl BatchKey {
    /// One batch for all closures of this name.
    pub const fn named(name: &'static str) -> BatchKey {
        BatchKey { name, id: Uuid::nil() }
    }
}

/// The batches of a database that write, or those that read.
pub(crate) struct Batches {
    /// Keys with a batch that is queued or runs, and the closures of the next one.
    pending: Mutex<HashMap<BatchKey, VecDeque<Box<dyn Job>>>>,
    /// Where the next batch goes; none after the engine was closed.
    queue: Mutex<Option<Sender<QueuedWork>>>,
    batch_max: usize,
}

/// Closures that share a transaction.
pub(crate) struct Batch {
    key: BatchKey,
    members: Vec<Box<dyn Job>>,
    batches: Arc<Batches>,
    is_over: bool,
}

impl Batches {
    pub(crate) fn new(queue: Sender<QueuedWork>, batch_max: usize) -> Arc<Batches> {
        let (pending, queue) = (Mutex::default(), Mutex::new(Some(queue)));
        Arc::new(Batches { pending, queue, batch_max })
    }

    /// From now on, what waits is run by the thread that ran the batch before it.
    pub(crate) fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Adds a closure to the next batch of a key. If none runs, it is a batch to be queued.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: BatchKey,
        job: Box<dyn Job>,
    ) -> DbResult<Option<Batch>> {
        let mut pending = self.pending();
        let Some(waiting) = pending.get_mut(&key) else {
            pending.insert(key, VecDeque::new());
            return Ok(Some(self.batch(key, vec![job])));
        };
        if waiting.len() >= PENDING_MAX {
            return Err(StorageError::Overloaded);
        }
        waiting.push_back(job);
        Ok(None)
    }

    fn batch(self: &Arc<Self>, key: BatchKey, members: Vec<Box<dyn Job>>) -> Batch {
        Batch { key, members, batches: Arc::clone(self), is_over: false }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<BatchKey, VecDeque<Box<dyn Job>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch of a key; none ends the work on it.
    fn next(self: &Arc<Self>, key: BatchKey) -> Option<Batch> {
        let mut pending = self.pending();
        let waiting = pending.get_mut(&key)?;
        let size = waiting.len().min(self.batch_max);
        if size == 0 {
            pending.remove(&key);
            return None;
        }
        let members = waiting.drain(..size).collect();
        Some(self.batch(key, members))
    }
}

impl Batch {
    pub(crate) fn take_members(&mut self) -> Vec<Box<dyn Job>> {
        std::mem::take(&mut self.members)
    }

    /// Queues what has gathered meanwhile, behind other work. If it cannot be queued, it is returned
    /// and must be run now: it was accepted.
    pub(crate) fn follow(mut self) -> Option<Batch> {
        self.is_over = true;
        let next = self.batches.next(self.key)?;
        let queue = self.batches.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = queue.as_ref() else { return Some(next) };
        match queue.try_send(QueuedWork::Batch(next)).map_err(|refused| refused.into_inner()) {
            Err(QueuedWork::Batch(next)) => Some(next),
            Ok(()) | Err(QueuedWork::Job(_)) => None,
        }
    }

    /// Answers all of it with a failure.
    pub(crate) fn refuse(mut self, error: &StorageError) {
        self.is_over = true;
        let waiting = self.batches.pending().remove(&self.key).unwrap_or_default();
        for job in self.take_members().into_iter().chain(waiting) {
            job.finish(Err(error.clone()));
        }
    }
}

impl Drop for Batch {
    /// If the thread has panicked, what waits fails, and the next closure starts anew.
    fn drop(&mut self) {
        if !self.is_over {
            drop(self.batches.pending().remove(&self.key));
        }
    }
}
