//! The SQLite engine: one writer thread that commits in groups, several readers.

mod connection;
mod cut;
mod read_only;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tracing::warn;

pub(crate) use connection::SqliteConnection;
pub use cut::SqliteCut;
pub(crate) use read_only::start_read_only;

use crate::db::SqliteOptions;
use crate::engine::{
    EngineShared, EngineThreads, QueueLimits, QueuedWork, StorageEngine, WorkQueue, spawn,
};
use crate::job::{Job, TxDecision};
use crate::tx::TxConnection;
use crate::{DbResult, StorageError, Tx};

/// Looks whether a file is a sound database, without changing it.
pub fn check_sqlite(path: &Path) -> DbResult<()> {
    SqliteConnection::open_reader(path, Duration::from_secs(3600))?.check()
}

/// At most so many closures share a commit: enough to hide the disk's sync, few enough to keep the
/// wait of the first one short.
const GROUP_MAX: usize = 256;

/// A log longer than this is shortened, even if readers must wait for it.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;
const GROUPS_BETWEEN_LOOKS: u32 = 64;

/// After a closure broke its group, this many groups run with savepoints from the start, because a
/// closure that fails after writing tends to be retried.
const CAREFUL_GROUPS: u32 = 64;

/// Starts the threads of a file. The writer ends after the readers, because the last connection folds
/// the log into the file, and of two that close at the same moment neither is the last.
pub(crate) fn start(
    path: &Path,
    options: &SqliteOptions,
    shared: &Arc<EngineShared>,
) -> DbResult<StorageEngine> {
    let limits = QueueLimits { queue_max: options.queue_max, batch_max: None };
    StorageEngine::start(limits, |writes, reads| {
        let gate = ReadGate::default();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let writer = SqliteConnection::open_writer(path, options.statement_timeout)?;
        let mut threads = EngineThreads::default();
        for _ in 0..options.readers {
            let reader = SqliteConnection::open_reader(path, options.statement_timeout)?;
            let (queue, gate, shared) = (reads.clone(), Arc::clone(&gate), Arc::clone(shared));
            let body = move || run_reader(&reader, &queue, &gate, &shared);
            threads.readers.push(spawn(&format!("r {name}"), body));
        }
        let (log, shared) = (WriteAheadLog::new(path, gate), Arc::clone(shared));
        let body = move || run_writer(&writer, &writes, &log, &shared);
        threads.writers.push(spawn(&format!("w {name}"), body));
        Ok(threads)
    })
}

/// Readers hold it while they read; the writer takes it whole to shorten the log.
type ReadGate = Arc<RwLock<()>>;

fn run_reader(
    connection: &SqliteConnection,
    queue: &WorkQueue,
    gate: &ReadGate,
    shared: &EngineShared,
) {
    while let Ok(QueuedWork::Job(mut job)) = queue.recv() {
        let _pass = gate.read().unwrap_or_else(PoisonError::into_inner);
        let outcome = connection.begin_read().map(|()| {
            connection.start_timer();
            let mut tx = Tx::new(TxConnection::Sqlite(connection));
            job.run(&mut tx);
            shared.count(|stats| stats.statements += tx.statements());
            connection.stop_timer();
            connection.abandon();
        });
        job.finish(outcome);
    }
}

/// The log beside the file. SQLite starts it anew only at a moment without readers; under steady
/// reading that moment never comes by itself, and the log would grow without end.
struct WriteAheadLog {
    path: PathBuf,
    gate: ReadGate,
}

impl WriteAheadLog {
    fn new(database: &Path, gate: ReadGate) -> WriteAheadLog {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        WriteAheadLog { path: path.into(), gate }
    }

    /// Stops the readers for a moment and folds the log into the file, if it has grown long.
    fn shorten(&self, connection: &SqliteConnection) {
        let bytes = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        if bytes < LOG_BYTES_MAX {
            return;
        }
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = connection.fold_log() {
            warn!(%error, bytes, "the write-ahead log could not be shortened");
        }
    }
}

fn run_writer(
    connection: &SqliteConnection,
    queue: &WorkQueue,
    log: &WriteAheadLog,
    shared: &EngineShared,
) {
    let mut careful_groups = 0_u32;
    let mut groups = 0_u32;
    // It has no batches: all closures are committed in groups.
    while let Ok(QueuedWork::Job(first)) = queue.recv() {
        let mut group = CommitGroup {
            connection,
            shared,
            waiting: VecDeque::from([first]),
            done: Vec::new(),
            committed: 0,
            has_outbox_rows: false,
            is_careful: careful_groups > 0,
            is_spoiled: false,
        };
        group.run(queue);
        careful_groups = match group.is_spoiled {
            true => CAREFUL_GROUPS,
            false => careful_groups.saturating_sub(1),
        };
        groups = groups.wrapping_add(1);
        if groups.is_multiple_of(GROUPS_BETWEEN_LOOKS) {
            log.shorten(connection);
        }
    }
}

/// Closures that share a commit.
///
/// Most closures either succeed or refuse before they write, so a group first runs without
/// savepoints, which cost a copy of every page touched. When a closure fails after it has written,
/// the whole group is undone and run again with a savepoint for each.
struct CommitGroup<'a> {
    connection: &'a SqliteConnection,
    shared: &'a EngineShared,
    waiting: VecDeque<Box<dyn Job>>,
    done: Vec<Box<dyn Job>>,
    /// How many of `done` are to be committed.
    committed: u64,
    has_outbox_rows: bool,
    /// A savepoint for each closure.
    is_careful: bool,
    is_spoiled: bool,
}

impl CommitGroup<'_> {
    /// Runs what is queued, up to a full group, and answers everyone after the commit.
    ///
    /// Also rejections are answered only then: they may rest on what a neighbour wrote before.
    fn run(&mut self, queue: &WorkQueue) {
        match self.connection.begin_write().and_then(|()| self.run_jobs(queue)) {
            Ok(()) => self.finish(),
            Err(error) => {
                for job in self.waiting.drain(..) {
                    job.finish(Err(error.clone()));
                }
            }
        }
    }

    fn run_jobs(&mut self, queue: &WorkQueue) -> DbResult<()> {
        while self.done.len() < GROUP_MAX {
            let next = self.waiting.pop_front().map(QueuedWork::Job);
            let next = next.or_else(|| queue.try_recv().ok());
            let Some(QueuedWork::Job(job)) = next else { break };
            self.run_job(job)?;
        }
        Ok(())
    }

    /// Runs one closure. An error means that no transaction can be had at all.
    fn run_job(&mut self, mut job: Box<dyn Job>) -> DbResult<()> {
        match run_closure(self.connection, self.shared, job.as_mut(), self.is_careful) {
            Ok(ClosureOutcome::Stands { decision, has_outbox_rows }) => {
                self.has_outbox_rows |= has_outbox_rows;
                self.committed += u64::from(decision == TxDecision::Commit);
                self.done.push(job);
                Ok(())
            }
            Ok(ClosureOutcome::MustBeUndone) => {
                self.waiting.push_front(job);
                self.is_careful = true;
                self.is_spoiled = true;
                self.start_again()
            }
            Err(error) => {
                // The statement took the whole transaction with it (out of time in the middle of a
                // write, disk full, …). Only this closure is to blame: the others run again.
                job.finish(Err(error));
                self.start_again()
            }
        }
    }

    fn start_again(&mut self) -> DbResult<()> {
        self.shared.count(|stats| stats.groups_lost += 1);
        for job in self.done.drain(..).rev() {
            self.waiting.push_front(job);
        }
        self.committed = 0;
        self.has_outbox_rows = false;
        self.connection.abandon();
        self.connection.begin_write()
    }

    /// Commits and answers.
    fn finish(&mut self) {
        let done = std::mem::take(&mut self.done);
        if self.shared.dangerous_acknowledge_before_commit {
            for job in done {
                job.finish(Ok(()));
            }
            drop(self.connection.commit());
            return;
        }
        let closures = u64::try_from(done.len()).unwrap_or(u64::MAX);
        let outcome = self.connection.commit();
        match &outcome {
            Ok(()) => self.shared.count_group(self.committed, closures - self.committed),
            Err(error) => {
                warn!(%error, closures, "a group commit failed; all of it is undone");
                self.shared.count(|stats| stats.rolled_back += closures);
            }
        }
        for job in done {
            job.finish(outcome.clone());
        }
        if self.has_outbox_rows && outcome.is_ok() {
            self.shared.outbox_signal.notify_one();
        }
    }
}

pub(crate) enum ClosureOutcome {
    /// What the closure wrote, if anything, is part of the transaction or undone, as it asked.
    Stands { decision: TxDecision, has_outbox_rows: bool },
    /// It failed after it had written, and there is no savepoint to go back to.
    MustBeUndone,
}

/// Runs one closure. An error means that the surrounding transaction is gone.
pub(crate) fn run_closure(
    connection: &SqliteConnection,
    shared: &EngineShared,
    job: &mut dyn Job,
    with_savepoint: bool,
) -> DbResult<ClosureOutcome> {
    if with_savepoint {
        connection.savepoint()?;
    }
    let changes_before = connection.total_changes();
    connection.start_timer();
    let mut tx = Tx::new(TxConnection::Sqlite(connection));
    let decision = job.run(&mut tx);
    shared.count(|stats| stats.statements += tx.statements());
    connection.stop_timer();
    if connection.transaction_is_gone() {
        return Err(tx.failure().cloned().unwrap_or(StorageError::Aborted));
    }
    let has_outbox_rows = tx.has_outbox_rows() && decision == TxDecision::Commit;
    match (decision, with_savepoint) {
        (TxDecision::Commit, false) => {}
        (TxDecision::Commit, true) => connection.release_savepoint()?,
        (TxDecision::RollBack, true) => connection.roll_back_to_savepoint()?,
        (TxDecision::RollBack, false) if connection.total_changes() == changes_before => {}
        (TxDecision::RollBack, false) => return Ok(ClosureOutcome::MustBeUndone),
    }
    Ok(ClosureOutcome::Stands { decision, has_outbox_rows })
}
