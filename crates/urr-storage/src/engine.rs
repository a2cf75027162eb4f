//! What both engines have in common: queues of closures, and the threads that run them.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use tokio::sync::Notify;
use tracing::error;

use crate::batches::{Batch, BatchKey, Batches};
use crate::job::Job;
use crate::{DbResult, DbStats, StorageError};

/// What a closure does with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Where a thread gets its work. It ends when the engine is closed and the queue is empty.
pub(crate) type WorkQueue = Receiver<QueuedWork>;

/// A closure, or several that share a transaction.
pub(crate) enum QueuedWork {
    Job(Box<dyn Job>),
    Batch(Batch),
}

pub(crate) struct StorageEngine {
    /// None after `close`.
    senders: RwLock<Option<JobSenders>>,
    /// None if the engine commits all writes in groups.
    batches: Option<EngineBatches>,
    threads: Mutex<EngineThreads>,
    /// Only in a simulation: there are no threads, and all work waits here.
    #[cfg(feature = "simulation")]
    stepped: Option<crate::stepped::StepQueue>,
}

/// The queues of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// More closures than this waiting are refused.
    pub queue_max: usize,
    /// How many closures share a transaction; none if the engine commits all of them in groups.
    pub batch_max: Option<usize>,
}

struct JobSenders {
    writes: Sender<QueuedWork>,
    reads: Sender<QueuedWork>,
}

impl JobSenders {
    fn queue(&self, access: Access) -> &Sender<QueuedWork> {
        match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        }
    }
}

/// Batches of an engine: of writes, and of reads.
struct EngineBatches {
    writes: Arc<Batches>,
    reads: Arc<Batches>,
}

#[derive(Default)]
pub(crate) struct EngineThreads {
    /// They run what only reads, and end first.
    pub(crate) readers: Vec<thread::JoinHandle<()>>,
    pub(crate) writers: Vec<thread::JoinHandle<()>>,
}

impl StorageEngine {
    /// Makes the queues, and starts the threads with the ends of writes and of reads.
    pub(crate) fn start(
        limits: QueueLimits,
        start: impl FnOnce(WorkQueue, WorkQueue) -> DbResult<EngineThreads>,
    ) -> DbResult<StorageEngine> {
        let (writes, write_queue) = bounded(limits.queue_max);
        let (reads, read_queue) = bounded(limits.queue_max);
        let batches = limits.batch_max.map(|max| EngineBatches {
            writes: Batches::new(writes.clone(), max),
            reads: Batches::new(reads.clone(), max),
        });
        let threads = Mutex::new(start(write_queue, read_queue)?);
        let senders = RwLock::new(Some(JobSenders { writes, reads }));
        Ok(StorageEngine {
            senders,
            batches,
            threads,
            #[cfg(feature = "simulation")]
            stepped: None,
        })
    }

    /// An engine without threads, whose work waits for a simulation.
    #[cfg(feature = "simulation")]
    pub(crate) fn stepped(queue: crate::stepped::StepQueue) -> StorageEngine {
        StorageEngine {
            senders: RwLock::new(None),
            batches: None,
            threads: Mutex::default(),
            stepped: Some(queue),
        }
    }

    pub(crate) fn submit(&self, access: Access, job: Box<dyn Job>) -> DbResult<()> {
        #[cfg(feature = "simulation")]
        if let Some(queue) = &self.stepped {
            queue.push(access, job);
            return Ok(());
        }
        let senders = self.senders.read().unwrap_or_else(PoisonError::into_inner);
        let queue = senders.as_ref().ok_or(StorageError::Closed)?.queue(access);
        queue.try_send(QueuedWork::Job(job)).map_err(|refused| refusal(&refused))
    }

    /// Submits a closure that may share its transaction with others of the same key.
    pub(crate) fn submit_to_batch(
        &self,
        access: Access,
        key: BatchKey,
        job: Box<dyn Job>,
    ) -> DbResult<()> {
        let batches = match (&self.batches, access) {
            (None, _) => return self.submit(access, job),
            (Some(batches), Access::Read) => &batches.reads,
            (Some(batches), Access::Write) => &batches.writes,
        };
        let senders = self.senders.read().unwrap_or_else(PoisonError::into_inner);
        let queue = senders.as_ref().ok_or(StorageError::Closed)?.queue(access);
        let Some(batch) = batches.join(key, job)? else { return Ok(()) };
        queue.try_send(QueuedWork::Batch(batch)).map_err(|refused| {
            let error = refusal(&refused);
            if let QueuedWork::Batch(batch) = refused.into_inner() {
                batch.refuse(&error);
            }
            error
        })
    }

    pub(crate) fn write_queue_length(&self) -> usize {
        let senders = self.senders.read().unwrap_or_else(PoisonError::into_inner);
        senders.as_ref().map_or(0, |senders| senders.writes.len())
    }

    /// Refuses new work, finishes what is queued, and waits for the threads.
    pub(crate) fn close(&self) {
        let senders = self.senders.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(JobSenders { writes, reads }) = senders else { return };
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        drop(reads);
        threads.readers.drain(..).for_each(join);
        if let Some(batches) = &self.batches {
            batches.reads.close();
            batches.writes.close();
        }
        drop(writes);
        threads.writers.drain(..).for_each(join);
    }
}

fn refusal(refused: &TrySendError<QueuedWork>) -> StorageError {
    match refused {
        TrySendError::Full(_) => StorageError::Overloaded,
        TrySendError::Disconnected(_) => StorageError::Closed,
    }
}

/// The system shows the first 15 characters of the name, for example in `top -H`.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(body).expect("the operating system can start a thread")
}

fn join(thread: thread::JoinHandle<()>) {
    if thread.join().is_err() {
        error!("a storage thread had panicked");
    }
}

/// State that the engine's threads and the handles share.
pub(crate) struct EngineShared {
    pub(crate) outbox_signal: Notify,
    pub(crate) dangerous_acknowledge_before_commit: bool,
    stats: Mutex<DbStats>,
}

impl EngineShared {
    pub(crate) fn new(dangerous_acknowledge_before_commit: bool) -> Arc<EngineShared> {
        Arc::new(EngineShared {
            outbox_signal: Notify::new(),
            dangerous_acknowledge_before_commit,
            stats: Mutex::default(),
        })
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut DbStats)) {
        change(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts a commit of the database that carried `committed` closures, `rolled_back` having
    /// refused.
    pub(crate) fn count_group(&self, committed: u64, rolled_back: u64) {
        self.count(|stats| {
            stats.groups += 1;
            stats.committed += committed;
            stats.rolled_back += rolled_back;
        });
    }

    pub(crate) fn stats(&self) -> DbStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
