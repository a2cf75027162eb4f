//! The database of one service, whichever engine it runs on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::job::job;
use crate::postgres::PostgresEngine;
use crate::sqlite::SqliteEngine;
use crate::{StorageError, Tx};

/// A service's own database. Clones share it.
#[derive(Clone)]
pub struct Db {
    engine: Arc<DbEngine>,
    shared: Arc<EngineShared>,
}

enum DbEngine {
    Sqlite(SqliteEngine),
    Postgres(PostgresEngine),
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
            statement_timeout: Duration::from_secs(5),
            dangerous_acknowledge_before_commit: false,
        }
    }
}

/// State that the engine's threads and the handles share.
pub(crate) struct EngineShared {
    pub(crate) outbox_signal: Notify,
    pub(crate) stats: DbCounters,
    pub(crate) dangerous_acknowledge_before_commit: bool,
}

impl EngineShared {
    fn new(dangerous_acknowledge_before_commit: bool) -> Arc<EngineShared> {
        Arc::new(EngineShared {
            outbox_signal: Notify::new(),
            stats: DbCounters::default(),
            dangerous_acknowledge_before_commit,
        })
    }
}

impl Db {
    /// Opens a file that `migrate_sqlite` has brought up to date.
    pub fn open_sqlite(path: &Path, options: &SqliteOptions) -> Result<Db, StorageError> {
        let shared = EngineShared::new(options.dangerous_acknowledge_before_commit);
        let engine = DbEngine::Sqlite(SqliteEngine::open(path, options, &shared)?);
        Ok(Db { engine: Arc::new(engine), shared })
    }

    /// Connects to a schema that `provision` has brought up to date.
    ///
    /// It blocks while it connects: call it at start.
    pub fn open_postgres(options: &PostgresOptions) -> Result<Db, StorageError> {
        let shared = EngineShared::new(options.dangerous_acknowledge_before_commit);
        let engine = DbEngine::Postgres(PostgresEngine::open(options, &shared)?);
        Ok(Db { engine: Arc::new(engine), shared })
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
        let accepted = match &*self.engine {
            DbEngine::Sqlite(engine) => engine.submit_write(job),
            DbEngine::Postgres(engine) => engine.submit_write(job),
        };
        self.count_refusal(&accepted);
        accepted?;
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
        let accepted = match &*self.engine {
            DbEngine::Sqlite(engine) => engine.submit_read(job),
            DbEngine::Postgres(engine) => engine.submit_read(job),
        };
        self.count_refusal(&accepted);
        accepted?;
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
        match &*self.engine {
            DbEngine::Sqlite(engine) => engine.close(),
            DbEngine::Postgres(engine) => engine.close(),
        }
    }

    /// Statistics for the metrics.
    pub fn stats(&self) -> DbStats {
        let queue_length = match &*self.engine {
            DbEngine::Sqlite(engine) => engine.write_queue_length(),
            DbEngine::Postgres(engine) => engine.write_queue_length(),
        };
        self.shared.stats.snapshot(u64::try_from(queue_length).unwrap_or(u64::MAX))
    }

    fn count_refusal(&self, accepted: &Result<(), StorageError>) {
        if *accepted == Err(StorageError::Overloaded) {
            self.shared.stats.refused.fetch_add(1, Ordering::Relaxed);
        }
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
    /// Commits of the database. On SQLite each carries a group of closures.
    pub groups: u64,
    /// Groups that were run again because one closure broke the transaction.
    pub groups_lost: u64,
    pub retries: u64,
    pub refused: u64,
    /// Statements of all closures, of those that only read too. Each is a round trip on PostgreSQL.
    pub statements: u64,
}

#[derive(Default)]
pub(crate) struct DbCounters {
    committed: AtomicU64,
    rolled_back: AtomicU64,
    groups: AtomicU64,
    groups_lost: AtomicU64,
    retries: AtomicU64,
    refused: AtomicU64,
    statements: AtomicU64,
}

impl DbCounters {
    /// A commit of the database that carried `committed` closures, `rolled_back` having refused.
    pub(crate) fn count_group(&self, committed: u64, rolled_back: u64) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.committed.fetch_add(committed, Ordering::Relaxed);
        self.count_rolled_back(rolled_back);
    }

    pub(crate) fn count_rolled_back(&self, count: u64) {
        self.rolled_back.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn count_lost_group(&self) {
        self.groups_lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_statements(&self, count: u64) {
        self.statements.fetch_add(count, Ordering::Relaxed);
    }

    fn snapshot(&self, queue_length: u64) -> DbStats {
        DbStats {
            queue_length,
            committed: self.committed.load(Ordering::Relaxed),
            rolled_back: self.rolled_back.load(Ordering::Relaxed),
            groups: self.groups.load(Ordering::Relaxed),
            groups_lost: self.groups_lost.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            statements: self.statements.load(Ordering::Relaxed),
        }
    }
}
