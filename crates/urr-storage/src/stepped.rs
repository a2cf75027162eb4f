//! Databases of a simulation: in memory, without threads, and a transaction runs when the
//! simulation says so.
//!
//! Every handle ([`SteppedDatabase::open`]) stands for the connections of one process. What it
//! submits waits in a [`StepQueue`] until the simulation runs it, refuses it, loses its answer, or
//! drops it with the process. The closures, the SQL and the constraints are the real ones.
//!
//! A run happens inside one transaction of SQLite that is rolled back at its end, so that tables
//! and prepared statements serve many runs. Its "commits" are released savepoints.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use urr_kernel::Timestamp;

use crate::engine::{Access, EngineShared, StorageEngine};
use crate::job::{Job, TxDecision};
use crate::migrate::{Schema, migrate_in_transaction};
use crate::sqlite::{ClosureOutcome, SqliteConnection, run_closure};
use crate::tx::TxConnection;
use crate::{Db, DbResult, StorageError, Tx};

/// Real time, for a statement that never ends.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// A database of a simulation. Clones share it.
#[derive(Clone)]
pub struct SteppedDatabase(Arc<Mutex<SqliteConnection>>);

impl SteppedDatabase {
    /// An empty database with the tables of a schema.
    pub fn new(schema: &Schema, now: Timestamp) -> DbResult<SteppedDatabase> {
        let connection = SqliteConnection::open_in_memory(STATEMENT_TIMEOUT)?;
        connection.begin_write()?;
        migrate_in_transaction(&connection, schema, now)?;
        connection.commit()?;
        Ok(SteppedDatabase(Arc::new(Mutex::new(connection))))
    }

    /// Runs statements as SQLite knows them, outside of any run: to remove a guard.
    pub fn alter(&self, sql: &str) -> DbResult<()> {
        self.connection().run_plain(sql)
    }

    /// Begins a run.
    pub fn begin_run(&self) -> DbResult<()> {
        self.connection().begin_write()
    }

    /// Ends a run and keeps what it wrote, as the beginning of all runs that follow.
    pub fn keep_run(&self) -> DbResult<()> {
        self.connection().commit()
    }

    /// Ends a run and forgets everything that it wrote.
    pub fn end_run(&self) {
        self.connection().abandon();
    }

    /// A handle for one process, and the queue in which its transactions wait.
    pub fn open(&self) -> (Db, StepQueue) {
        let shared = EngineShared::new(false);
        let (database, jobs) = (self.clone(), Mutex::default());
        let queue = StepQueue(Arc::new(QueueInner { database, shared: Arc::clone(&shared), jobs }));
        (Db::of_engine(StorageEngine::stepped(queue.clone()), shared), queue)
    }

    /// Looks at the tables between two steps, or changes them as nobody else could.
    pub fn inspect<T>(&self, body: impl FnOnce(&mut Tx<'_>) -> DbResult<T>) -> DbResult<T> {
        let connection = self.connection();
        body(&mut Tx::new(TxConnection::Sqlite(&connection)))
    }

    fn connection(&self) -> MutexGuard<'_, SqliteConnection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The transactions of one process that wait to run, in the order in which they were submitted.
/// Clones share it.
#[derive(Clone)]
pub struct StepQueue(Arc<QueueInner>);

struct QueueInner {
    database: SteppedDatabase,
    shared: Arc<EngineShared>,
    jobs: Mutex<Vec<(Access, Box<dyn Job>)>>,
}

/// A transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingStep {
    pub is_write: bool,
    /// The path of its closure, for people.
    pub name: &'static str,
}

/// What goes wrong with a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFault {
    None,
    /// The database cannot be reached: nothing happens.
    Refused,
    /// It is committed, and the connection breaks before the answer.
    AnswerLost,
    /// It is answered, and then undone. No database of ours does that: for a negative control.
    AnsweredAndUndone,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepReport {
    pub step: PendingStep,
    pub is_committed: bool,
}

impl StepQueue {
    /// How many transactions wait.
    pub fn count(&self) -> usize {
        self.jobs().len()
    }

    /// Runs the transaction with this index, and answers its caller.
    pub fn run(&self, index: usize, fault: StepFault) -> StepReport {
        let (access, mut job) = self.jobs().remove(index);
        let step = pending_step(access, job.as_ref());
        let unavailable = || StorageError::Unavailable("the simulated network".to_owned());
        if fault == StepFault::Refused {
            job.finish(Err(unavailable()));
            return StepReport { step, is_committed: false };
        }
        let is_lost = fault == StepFault::AnswerLost;
        let is_undone = fault == StepFault::AnsweredAndUndone;
        match self.run_job(access, job.as_mut(), is_undone) {
            Ok(is_committed) => {
                let answer = match (is_lost, access) {
                    (false, _) => Ok(()),
                    (true, Access::Read) => Err(unavailable()),
                    (true, Access::Write) => {
                        let what = "the simulated network".to_owned();
                        Err(StorageError::OutcomeUnknown(what))
                    }
                };
                job.finish(answer);
                StepReport { step, is_committed }
            }
            Err(error) => {
                job.finish(Err(error));
                StepReport { step, is_committed: false }
            }
        }
    }

    /// Forgets what waits. A transaction of a dead process is left alone until the end of the run,
    /// because its caller would notice that there will be no answer.
    pub fn clear(&self) {
        let jobs = std::mem::take(&mut *self.jobs());
        drop(jobs);
    }

    pub(crate) fn push(&self, access: Access, job: Box<dyn Job>) {
        self.jobs().push((access, job));
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<(Access, Box<dyn Job>)>> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether something was committed.
    fn run_job(&self, access: Access, job: &mut dyn Job, is_undone: bool) -> DbResult<bool> {
        let QueueInner { database, shared, .. } = &*self.0;
        let connection = database.connection();
        if is_undone {
            connection.savepoint()?;
        }
        let outcome = run_closure(&connection, shared, job, true)?;
        if is_undone {
            connection.roll_back_to_savepoint()?;
            return Ok(false);
        }
        let ClosureOutcome::Stands { decision, has_outbox_rows } = outcome else {
            unreachable!("a closure with a savepoint can be undone")
        };
        if has_outbox_rows {
            shared.outbox_signal.notify_one();
        }
        Ok(decision == TxDecision::Commit && access == Access::Write)
    }
}

fn pending_step(access: Access, job: &dyn Job) -> PendingStep {
    PendingStep { is_write: access == Access::Write, name: job.name() }
}
