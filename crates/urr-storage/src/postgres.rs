//! The PostgreSQL engine: a bounded set of worker threads, each with a connection of its own.

mod address;
mod batch;
mod connection;
mod provisioning;
mod tls;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tracing::{info, warn};

pub(crate) use connection::{PostgresConnection, parse_url};
pub(crate) use provisioning::MIGRATION_LOCK;
pub use provisioning::{ServiceRole, provision};
pub use tls::{PostgresProtection, postgres_protection};

use crate::db::PostgresOptions;
use crate::engine::{
    Access, EngineShared, EngineThreads, QueueLimits, QueuedWork, StorageEngine, WorkQueue, spawn,
};
use crate::job::{Job, TxDecision};
use crate::tx::TxConnection;
use crate::{DbResult, StorageError, Tx};

/// How often a closure is run at most when it conflicts with others.
const ATTEMPTS_MAX: u32 = 8;

/// How often it is run when its connection is lost: once more on a new one.
const ATTEMPTS_WITHOUT_CONNECTION_MAX: u32 = 2;

/// After a failed connect the next try waits this long; until then callers fail at once.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

/// Starts the threads of a schema.
pub(crate) fn start(
    options: &PostgresOptions,
    shared: &Arc<EngineShared>,
) -> DbResult<StorageEngine> {
    // The first connection is made here, so that a wrong address or an unsafe server is told at
    // start and not at the first request.
    let mut first = Some(on_own_thread(|| PostgresConnection::open(options))?);
    let limits = QueueLimits { queue_max: options.queue_max, batch_max: Some(options.batch_max) };
    StorageEngine::start(limits, |writes, reads| {
        let mut threads = EngineThreads::default();
        for number in 0..options.connections {
            let worker = WorkerConnection {
                options: options.clone(),
                connection: first.take(),
                last_failure: None,
            };
            let takes_reads = takes_reads(number, options.connections);
            let reads = takes_reads.then(|| reads.clone());
            let queues = WorkerQueues { writes: writes.clone(), reads };
            let shared = Arc::clone(shared);
            let body = move || run_worker(worker, &queues, &shared);
            threads.writers.push(spawn(&format!("pg {}", options.schema), body));
        }
        Ok(threads)
    })
}

/// Whether a PostgreSQL server answers at this address, be it with a refusal. A server that is absent,
/// or not ready yet, is an error.
pub fn reach_postgres(url: &str) -> DbResult<()> {
    on_own_thread(|| PostgresConnection::reach(url))
}

/// Runs a blocking call of the driver, which may not be made from a thread that drives async tasks.
fn on_own_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    let finished = thread::scope(|scope| scope.spawn(body).join());
    finished.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A worker's connection, or the wait until it may be tried again.
struct WorkerConnection {
    options: PostgresOptions,
    connection: Option<PostgresConnection>,
    last_failure: Option<(Instant, StorageError)>,
}

impl WorkerConnection {
    fn connection(&mut self) -> DbResult<&mut PostgresConnection> {
        if self.connection.as_ref().is_some_and(PostgresConnection::is_unusable) {
            self.connection = None;
        }
        if self.connection.is_none() {
            if let Some((when, error)) = &self.last_failure
                && when.elapsed() < RECONNECT_PAUSE
            {
                return Err(error.clone());
            }
            match PostgresConnection::open(&self.options) {
                Ok(connection) => {
                    if self.last_failure.take().is_some() {
                        info!(schema = self.options.schema, "connected to PostgreSQL again");
                    }
                    self.connection = Some(connection);
                }
                Err(error) => {
                    self.last_failure = Some((Instant::now(), error.clone()));
                    return Err(error);
                }
            }
        }
        Ok(self.connection.as_mut().expect("it was connected above"))
    }
}

/// Some workers take no reads, so that many or slow readers never stop the sale.
fn takes_reads(number: usize, workers: usize) -> bool {
    let only_writing = workers / 3;
    number >= only_writing
}

/// Where a worker gets its jobs.
struct WorkerQueues {
    writes: WorkQueue,
    reads: Option<WorkQueue>,
}

impl WorkerQueues {
    /// The next work, a write if there is one; `None` when both queues are closed and empty.
    fn next(&self) -> Option<(Access, QueuedWork)> {
        let write = |job| (Access::Write, job);
        let Some(reads) = &self.reads else { return self.writes.recv().ok().map(write) };
        if let Ok(job) = self.writes.try_recv() {
            return Some(write(job));
        }
        let read = |job| (Access::Read, job);
        let next = crossbeam_channel::select! {
            recv(self.writes) -> job => job.map(write),
            recv(reads) -> job => job.map(read),
        };
        // One of the queues is closed: what is left in the other is still done.
        let next = next.or_else(|_| self.writes.recv().map(write));
        next.or_else(|_| reads.recv().map(read)).ok()
    }
}

fn run_worker(mut worker: WorkerConnection, queues: &WorkerQueues, shared: &EngineShared) {
    while let Some((access, work)) = queues.next() {
        match work {
            QueuedWork::Job(job) => run_job(&mut worker, access, job, shared),
            QueuedWork::Batch(batch) => batch::run_batches(&mut worker, access, batch, shared),
        }
    }
}

/// Runs a closure until it is decided, and answers its caller.
fn run_job(
    worker: &mut WorkerConnection,
    access: Access,
    mut job: Box<dyn Job>,
    shared: &EngineShared,
) {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let connection = match worker.connection() {
            Ok(connection) => connection,
            Err(error) => return job.finish(Err(error)),
        };
        match run_once(connection, access, job, shared) {
            AttemptOutcome::Finished => return,
            AttemptOutcome::Again(unfinished, error) => {
                shared.count(|stats| stats.retries += 1);
                let is_lost = matches!(error, StorageError::Unavailable(_));
                let attempts_max =
                    if is_lost { ATTEMPTS_WITHOUT_CONNECTION_MAX } else { ATTEMPTS_MAX };
                if attempt >= attempts_max {
                    return unfinished.finish(Err(error));
                }
                if is_lost {
                    warn!(%error, "lost the connection to PostgreSQL before a commit; trying again");
                    worker.connection = None;
                }
                job = unfinished;
                // The collision's other side needs a moment to finish.
                thread::sleep(Duration::from_millis(u64::from(attempt) * 2));
            }
        }
    }
}

enum AttemptOutcome {
    Finished,
    /// Nothing was committed, and another attempt may succeed.
    Again(Box<dyn Job>, StorageError),
}

fn run_once(
    connection: &mut PostgresConnection,
    access: Access,
    mut job: Box<dyn Job>,
    shared: &EngineShared,
) -> AttemptOutcome {
    connection.begin(access == Access::Read);
    let mut tx = Tx::new(TxConnection::Postgres(connection));
    let decision = job.run(&mut tx);
    shared.count(|stats| stats.statements += tx.statements());
    let (mut failure, has_outbox_rows) = (tx.failure().cloned(), tx.has_outbox_rows());
    if access == Access::Read && failure.is_none() && !connection.has_statements_ahead() {
        connection.end_read();
        count_round_trips(connection, shared);
        job.finish(Ok(()));
        return AttemptOutcome::Finished;
    }
    if decision == TxDecision::Commit {
        let Err(error) = connection.flush_checked() else {
            return commit(connection, access, job, has_outbox_rows, shared);
        };
        job.fail(error.clone());
        failure = Some(error);
    }
    drop(connection.roll_back());
    count_round_trips(connection, shared);
    if let Some(error @ (StorageError::Contention | StorageError::Unavailable(_))) = failure {
        return AttemptOutcome::Again(job, error);
    }
    if access == Access::Write {
        shared.count(|stats| stats.rolled_back += 1);
    }
    job.finish(Ok(()));
    AttemptOutcome::Finished
}

fn count_round_trips(connection: &mut PostgresConnection, shared: &EngineShared) {
    shared.count(|stats| stats.round_trips += connection.take_round_trips());
}

fn commit(
    connection: &mut PostgresConnection,
    access: Access,
    job: Box<dyn Job>,
    has_outbox_rows: bool,
    shared: &EngineShared,
) -> AttemptOutcome {
    if shared.dangerous_acknowledge_before_commit {
        job.finish(Ok(()));
        drop(connection.commit());
        return AttemptOutcome::Finished;
    }
    let committed = connection.commit();
    count_round_trips(connection, shared);
    match committed {
        Ok(()) => {
            if access == Access::Write {
                shared.count_group(1, 0);
            }
            job.finish(Ok(()));
            if has_outbox_rows {
                shared.outbox_signal.notify_one();
            }
            AttemptOutcome::Finished
        }
        Err(StorageError::Contention) => AttemptOutcome::Again(job, StorageError::Contention),
        Err(error) => {
            // A read has no outcome that could be unknown.
            let error = match error {
                StorageError::Unavailable(reason) if access == Access::Write => {
                    StorageError::OutcomeUnknown(reason)
                }
                other => other,
            };
            job.finish(Err(error));
            AttemptOutcome::Finished
        }
    }
}
