//! The SQLite engine: one writer thread that commits in groups, several readers.

mod connection;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use tracing::{error, warn};

pub(crate) use connection::SqliteConnection;

use crate::db::{Shared, SqliteOptions};
use crate::job::{Job, Verdict};
use crate::tx::Connection;
use crate::{StorageError, Tx};

/// At most so many closures share a commit: enough to hide the disk's sync, few enough to keep the
/// wait of the first one short.
const GROUP_MAX: usize = 256;

pub(crate) struct SqliteEngine {
    writes: Sender<Message>,
    reads: Sender<Message>,
    readers: usize,
    closed: AtomicBool,
    threads: std::sync::Mutex<Vec<thread::JoinHandle<()>>>,
}

enum Message {
    Job(Box<dyn Job>),
    /// Sent behind the last job: what was queued before it is still done.
    Stop,
}

impl SqliteEngine {
    pub(crate) fn open(
        path: &Path,
        options: &SqliteOptions,
        shared: &Arc<Shared>,
    ) -> Result<SqliteEngine, StorageError> {
        let (writes, write_queue) = bounded(options.queue_max);
        let (reads, read_queue) = bounded(options.queue_max);
        let mut threads = Vec::new();
        let writer = SqliteConnection::open_writer(path, options.statement_timeout)?;
        let writer_shared = Arc::clone(shared);
        threads.push(spawn("urr-sqlite-writer", move || {
            run_writer(&writer, &write_queue, &writer_shared);
        }));
        for _ in 0..options.readers {
            let reader = SqliteConnection::open_reader(path, options.statement_timeout)?;
            let queue = read_queue.clone();
            threads.push(spawn("urr-sqlite-reader", move || run_reader(&reader, &queue)));
        }
        Ok(SqliteEngine {
            writes,
            reads,
            readers: options.readers,
            closed: AtomicBool::new(false),
            threads: std::sync::Mutex::new(threads),
        })
    }

    pub(crate) fn submit_write(&self, job: Box<dyn Job>) -> Result<(), StorageError> {
        self.submit(&self.writes, job)
    }

    pub(crate) fn submit_read(&self, job: Box<dyn Job>) -> Result<(), StorageError> {
        self.submit(&self.reads, job)
    }

    fn submit(&self, queue: &Sender<Message>, job: Box<dyn Job>) -> Result<(), StorageError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(StorageError::Closed);
        }
        queue.try_send(Message::Job(job)).map_err(|refused| match refused {
            TrySendError::Full(_) => StorageError::Overloaded,
            TrySendError::Disconnected(_) => StorageError::Closed,
        })
    }

    pub(crate) fn write_queue_length(&self) -> usize {
        self.writes.len()
    }

    /// Refuses new work, finishes what is queued, and waits for the threads.
    pub(crate) fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        // A thread that has already ended no longer takes the message; that is the goal.
        drop(self.writes.send(Message::Stop));
        for _ in 0..self.readers {
            drop(self.reads.send(Message::Stop));
        }
        let mut threads = self.threads.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for handle in threads.drain(..) {
            if handle.join().is_err() {
                error!("a storage thread had panicked");
            }
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(body).expect("the operating system can start a thread")
}

fn run_reader(connection: &SqliteConnection, queue: &Receiver<Message>) {
    while let Ok(Message::Job(mut job)) = queue.recv() {
        let outcome = connection.begin_read().map(|()| {
            connection.start_timer();
            let mut tx = Tx::new(Connection::Sqlite(connection));
            job.run(&mut tx);
            connection.stop_timer();
            connection.abandon();
        });
        job.finish(outcome);
    }
}

fn run_writer(connection: &SqliteConnection, queue: &Receiver<Message>, shared: &Shared) {
    loop {
        let Ok(Message::Job(first)) = queue.recv() else {
            break;
        };
        let stop = run_group(connection, first, queue, shared);
        if stop {
            break;
        }
    }
}

/// Runs a group in one transaction, each closure in a savepoint of its own, and answers them all
/// after the commit. Says whether the message to stop came along.
///
/// Also rejections are answered only then: they may rest on what a neighbour wrote before.
fn run_group(
    connection: &SqliteConnection,
    first: Box<dyn Job>,
    queue: &Receiver<Message>,
    shared: &Shared,
) -> bool {
    let mut waiting = VecDeque::from([first]);
    let mut done: Vec<Box<dyn Job>> = Vec::new();
    let (mut stop, mut has_outbox_rows) = (false, false);
    if let Err(error) = connection.begin_write() {
        for job in waiting {
            job.finish(Err(error.clone()));
        }
        return false;
    }
    while done.len() < GROUP_MAX {
        if waiting.is_empty() && !stop {
            match queue.try_recv() {
                Ok(Message::Job(job)) => waiting.push_back(job),
                Ok(Message::Stop) => stop = true,
                Err(_) => break,
            }
        }
        let Some(mut job) = waiting.pop_front() else {
            break;
        };
        match run_in_savepoint(connection, job.as_mut()) {
            Ok(outcome) => {
                has_outbox_rows |= outcome.has_outbox_rows;
                shared.stats.count_closure(outcome.verdict == Verdict::Commit);
                done.push(job);
            }
            Err(error) => {
                // The statement took the whole transaction with it (out of time in the middle of a
                // write, disk full, …). Only this closure is to blame: the others run again.
                job.finish(Err(error));
                shared.stats.count_lost_group();
                for innocent in done.drain(..).rev() {
                    waiting.push_front(innocent);
                }
                has_outbox_rows = false;
                connection.abandon();
                if let Err(error) = connection.begin_write() {
                    for job in waiting.drain(..) {
                        job.finish(Err(error.clone()));
                    }
                    return stop;
                }
            }
        }
    }
    finish_group(connection, done, has_outbox_rows, shared);
    stop
}

fn finish_group(
    connection: &SqliteConnection,
    done: Vec<Box<dyn Job>>,
    has_outbox_rows: bool,
    shared: &Shared,
) {
    if shared.dangerous_acknowledge_before_commit {
        for job in done {
            job.finish(Ok(()));
        }
        drop(connection.commit());
        return;
    }
    let outcome = connection.commit();
    if let Err(error) = &outcome {
        warn!(%error, closures = done.len(), "a group commit failed; all of it is undone");
    }
    shared.stats.count_group();
    for job in done {
        job.finish(outcome.clone());
    }
    if has_outbox_rows && outcome.is_ok() {
        shared.outbox_signal.notify_one();
    }
}

struct SavepointOutcome {
    verdict: Verdict,
    has_outbox_rows: bool,
}

/// Runs one closure. An error means that the surrounding transaction is gone.
fn run_in_savepoint(
    connection: &SqliteConnection,
    job: &mut dyn Job,
) -> Result<SavepointOutcome, StorageError> {
    connection.savepoint()?;
    connection.start_timer();
    let mut tx = Tx::new(Connection::Sqlite(connection));
    let verdict = job.run(&mut tx);
    connection.stop_timer();
    if connection.transaction_is_gone() {
        return Err(tx.failure().cloned().unwrap_or(StorageError::Aborted));
    }
    let has_outbox_rows = tx.has_outbox_rows() && verdict == Verdict::Commit;
    match verdict {
        Verdict::Commit => connection.release_savepoint()?,
        Verdict::RollBack => connection.roll_back_to_savepoint()?,
    }
    Ok(SavepointOutcome { verdict, has_outbox_rows })
}
