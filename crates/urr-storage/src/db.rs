//! The database of one service, whichever engine it runs on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::batches::BatchKey;
use crate::engine::{Access, EngineShared, StorageEngine};
use crate::job::{Job, job, set_job};
use crate::sets::{SetRead, SetReadMember, SetWrite};
use crate::{DbResult, StorageError, Tx, postgres, sqlite};

/// A service's own database. Clones share it.
#[derive(Clone)]
pub struct Db {
    engine: Arc<StorageEngine>,
    shared: Arc<EngineShared>,
}

/// How to run on SQLite.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub readers: usize,
    /// More transactions than this waiting are refused.
    pub queue_max: usize,
    /// A closure's statements may take this long together.
    pub statement_timeout: Duration,
    /// Answers before the commit. It loses acknowledged writes in a crash: for the control of the
    /// crash test, which must see it fail.
    pub dangerous_acknowledge_before_commit: bool,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            readers: 4,
            queue_max: 1024,
            statement_timeout: Duration::from_secs(5),
            dangerous_acknowledge_before_commit: false,
        }
    }
}

/// How to run on PostgreSQL.
#[derive(Clone)]
pub struct PostgresOptions {
    /// With the service's own role. It holds a password and is never printed.
    pub url: String,
    pub schema: &'static str,
    pub connections: usize,
    /// More transactions than this waiting are refused.
    pub queue_max: usize,
    /// How many writes of one batch share a transaction.
    pub batch_max: usize,
    /// Each statement may take this long, waiting for row locks included.
    pub statement_timeout: Duration,
    /// See [`SqliteOptions::dangerous_acknowledge_before_commit`].
    pub dangerous_acknowledge_before_commit: bool,
}

impl PostgresOptions {
    pub fn new(url: impl Into<String>, schema: &'static str) -> PostgresOptions {
        PostgresOptions {
            url: url.into(),
            schema,
            connections: 5,
            queue_max: 1024,
            batch_max: 128,
            statement_timeout: Duration::from_secs(5),
            dangerous_acknowledge_before_commit: false,
        }
    }
}

impl Db {
    /// Opens a file that `migrate_sqlite` has brought up to date.
    pub fn open_sqlite(path: &Path, options: &SqliteOptions) -> DbResult<Db> {
        let shared = EngineShared::new(options.dangerous_acknowledge_before_commit);
        let engine = Arc::new(sqlite::start(path, options, &shared)?);
        Ok(Db { engine, shared })
    }

    /// Opens a file that is only looked at, and creates, changes and migrates nothing. A transaction
    /// that writes is refused with `Closed`.
    pub fn open_sqlite_read_only(path: &Path, options: &SqliteOptions) -> DbResult<Db> {
        let shared = EngineShared::new(false);
        let engine = Arc::new(sqlite::start_read_only(path, options, &shared)?);
        Ok(Db { engine, shared })
    }

    /// Connects to a schema that `provision` has brought up to date.
    ///
    /// It blocks while it connects: call it at start.
    pub fn open_postgres(options: &PostgresOptions) -> DbResult<Db> {
        let shared = EngineShared::new(options.dangerous_acknowledge_before_commit);
        let engine = Arc::new(postgres::start(options, &shared)?);
        Ok(Db { engine, shared })
    }

    /// A handle on an engine of a simulation.
    #[cfg(feature = "simulation")]
    pub(crate) fn of_engine(engine: StorageEngine, shared: Arc<EngineShared>) -> Db {
        Db { engine: Arc::new(engine), shared }
    }

    /// Runs a closure in a transaction: committed if it returns `Ok`, undone otherwise.
    ///
    /// The closure may run more than once; it runs to its end even when the caller goes away.
    pub async fn write<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let (job, reply) = job(body);
        self.submit(Access::Write, job)?;
        reply.await.unwrap_or_else(|_| Err(StorageError::Closed.into()))
    }

    /// The same in a transaction that is shared with other closures of the same key which wait at the
    /// same moment. Each is committed or undone on its own account, as if it were alone.
    pub async fn write_batched<T, E, F>(&self, key: BatchKey, body: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let (job, reply) = job(body);
        self.submit_to_batch(Access::Write, key, job)?;
        reply.await.unwrap_or_else(|_| Err(StorageError::Closed.into()))
    }

    /// The same for a write that is done by the same statements as others of its kind.
    pub async fn write_in_set<W: SetWrite>(
        &self,
        key: BatchKey,
        member: W,
    ) -> Result<W::Answer, W::Error> {
        let (job, reply) = set_job(member);
        self.submit_to_batch(Access::Write, key, job)?;
        reply.await.unwrap_or_else(|_| Err(StorageError::Closed.into()))
    }

    /// Reads by the same statements as others of its kind which wait at the same moment.
    pub async fn read_in_set<R: SetRead>(
        &self,
        key: BatchKey,
        member: R,
    ) -> Result<R::Answer, R::Error> {
        let (job, reply) = set_job(SetReadMember(member));
        self.submit_to_batch(Access::Read, key, job)?;
        reply.await.unwrap_or_else(|_| Err(StorageError::Closed.into()))
    }

    /// Runs a closure that only reads. It sees one moment of the database throughout.
    pub async fn read<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let (job, reply) = job(body);
        self.submit(Access::Read, job)?;
        reply.await.unwrap_or_else(|_| Err(StorageError::Closed.into()))
    }

    /// Waits until a commit has put something into the outbox. One waiter is woken for it.
    pub async fn outbox_filled(&self) {
        self.shared.outbox_signal.notified().await;
    }

    /// Finishes what is queued and ends the threads. Later calls are refused with `Closed`.
    ///
    /// It blocks until the last commit: call it off the async threads.
    pub fn close(&self) {
        self.engine.close();
    }

    /// Statistics for the metrics.
    pub fn stats(&self) -> DbStats {
        let queue_length = self.engine.write_queue_length();
        let queue_length = u64::try_from(queue_length).unwrap_or(u64::MAX);
        DbStats { queue_length, ..self.shared.stats() }
    }

    fn submit(&self, access: Access, job: Box<dyn Job>) -> DbResult<()> {
        self.count_refused(self.engine.submit(access, job))
    }

    fn submit_to_batch(&self, access: Access, key: BatchKey, job: Box<dyn Job>) -> DbResult<()> {
        self.count_refused(self.engine.submit_to_batch(access, key, job))
    }

    fn count_refused(&self, accepted: DbResult<()>) -> DbResult<()> {
        if accepted == Err(StorageError::Overloaded) {
            self.shared.count(|stats| stats.refused += 1);
        }
        accepted
    }
}

/// How the storage is doing, counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbStats {
    pub queue_length: u64,
    /// Writing closures that were committed.
    pub committed: u64,
    /// Writing closures that refused, failed or were lost with their commit.
    pub rolled_back: u64,
    /// Commits of the database. Each carries a group of closures on SQLite, a batch on PostgreSQL.
    pub groups: u64,
    /// Groups that were run again because one closure broke the transaction.
    pub groups_lost: u64,
    pub retries: u64,
    pub refused: u64,
    /// Statements of all closures, of those that only read too.
    pub statements: u64,
    /// Times that a closure waited for PostgreSQL.
    pub round_trips: u64,
}
