//! One SQLite connection: how it is opened, how statements run on it, what its errors mean.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{ErrorCode, OpenFlags, ffi};

use crate::dialect::statement_to_sqlite;
use crate::{ConstraintKind, DbResult, Row, StorageError, Value};

/// Older versions can corrupt a write-ahead log when two connections write and checkpoint.
const OLDEST_SAFE_VERSION: i32 = 3_051_003;

/// The timer is looked at after so many steps of SQLite's virtual machine.
const STEPS_BETWEEN_TIMER_CHECKS: i32 = 10_000;

const STATEMENTS_CACHED_MAX: usize = 256;

/// The pages that the writer keeps in memory, in KiB: those of a sale, with their indexes.
const WRITER_CACHE_KIB: u32 = 16 * 1024;

/// After so many pages the log is copied into the file. A page that changed many times meanwhile is
/// copied once; the log takes 16 MiB at most while nobody reads an old state.
const PAGES_BETWEEN_CHECKPOINTS: u32 = 4_000;

pub(crate) struct SqliteConnection {
    inner: rusqlite::Connection,
    translated: RefCell<HashMap<String, Arc<str>>>,
    constraint_names: RefCell<HashMap<String, String>>,
    timer: Timer,
}

/// Ends statements that run too long. Shared with the handler that SQLite calls.
#[derive(Clone)]
struct Timer {
    started: Instant,
    /// Milliseconds after `started`; `u64::MAX` when nothing is timed.
    deadline_ms: Arc<AtomicU64>,
    limit: Duration,
}

impl Timer {
    fn new(limit: Duration) -> Timer {
        let deadline_ms = Arc::new(AtomicU64::new(u64::MAX));
        Timer { started: Instant::now(), deadline_ms, limit }
    }

    fn elapsed_ms(&self, more: Duration) -> u64 {
        u64::try_from((self.started.elapsed() + more).as_millis()).unwrap_or(u64::MAX)
    }

    fn is_over(&self) -> bool {
        self.elapsed_ms(Duration::ZERO) > self.deadline_ms.load(Ordering::Relaxed)
    }
}

/// Makes the file readable for its owner only, before anything is in it. SQLite gives its log and its
/// shared memory the rights of the file; those of an older program are changed.
fn make_private(path: &Path) -> std::io::Result<()> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    drop(file);
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match fs::metadata(&name) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(&name, Permissions::from_mode(0o600))?;
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl SqliteConnection {
    pub(crate) fn open_writer(path: &Path, limit: Duration) -> DbResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        make_private(path)
            .map_err(|error| StorageError::Unavailable(format!("{}: {error}", path.display())))?;
        let connection = Self::open(path, flags, limit)?;
        connection.pragma("journal_mode", "wal")?;
        connection.pragma("synchronous", "full")?;
        connection.pragma("foreign_keys", "on")?;
        connection.pragma("cache_size", &format!("-{WRITER_CACHE_KIB}"))?;
        connection.pragma("wal_autocheckpoint", &PAGES_BETWEEN_CHECKPOINTS.to_string())?;
        connection.require_safe_settings()?;
        Ok(connection)
    }

    /// An empty database that ends with the connection.
    pub(crate) fn open_in_memory(limit: Duration) -> DbResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = Self::open(Path::new(":memory:"), flags, limit)?;
        connection.pragma("foreign_keys", "on")?;
        Ok(connection)
    }

    pub(crate) fn open_reader(path: &Path, limit: Duration) -> DbResult<Self> {
        let connection = Self::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, limit)?;
        connection.pragma("query_only", "on")?;
        Ok(connection)
    }

    pub(super) fn open(path: &Path, flags: OpenFlags, limit: Duration) -> DbResult<Self> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut inner = rusqlite::Connection::open_with_flags(path, flags)
            .map_err(|error| StorageError::Unavailable(format!("{}: {error}", path.display())))?;
        let timer = Timer::new(limit);
        let handler = timer.clone();
        inner
            .progress_handler(STEPS_BETWEEN_TIMER_CHECKS, Some(move || handler.is_over()))
            .map_err(|error| StorageError::Unavailable(error.to_string()))?;
        // Plans depend on the text alone. Otherwise a statement is prepared again when its parameters
        // change. A partial index is then used only if the statement spells out its condition.
        inner
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
            .map_err(|error| StorageError::Unavailable(error.to_string()))?;
        inner.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
        let connection = SqliteConnection {
            inner,
            translated: RefCell::default(),
            constraint_names: RefCell::default(),
            timer,
        };
        connection.pragma("busy_timeout", "5000")?;
        connection.pragma("temp_store", "memory")?;
        Ok(connection)
    }

    /// Whether the file is a database without damage that a quick look can see.
    pub(crate) fn check(&self) -> DbResult<()> {
        let mut report = String::new();
        self.query("pragma quick_check(1)", &[], &mut |row| {
            report = row.get("quick_check")?;
            Ok(())
        })?;
        match report.as_str() {
            "ok" => Ok(()),
            _ => Err(StorageError::Unavailable(report)),
        }
    }

    fn pragma(&self, name: &str, value: &str) -> DbResult<()> {
        self.run_plain(&format!("pragma {name} = {value}"))
    }

    fn require_safe_settings(&self) -> DbResult<()> {
        if rusqlite::version_number() < OLDEST_SAFE_VERSION {
            return Err(StorageError::Unsafe(format!(
                "SQLite {} can corrupt its log; build with 3.51.3 or newer",
                rusqlite::version()
            )));
        }
        let read = |sql: &str| -> DbResult<String> {
            let value =
                self.inner.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0));
            value.map(|value| format!("{value:?}")).map_err(|error| self.explain(&error, sql))
        };
        let (mode, sync) = (read("pragma journal_mode")?, read("pragma synchronous")?);
        if !mode.contains("wal") || sync != "Integer(2)" {
            return Err(StorageError::Unsafe(format!(
                "SQLite must run with journal_mode=wal and synchronous=full, but has {mode} and \
                 {sync}; put the data folder on a local disk"
            )));
        }
        Ok(())
    }

    /// Runs statements as they are, without parameters: pragmas and translated migrations.
    pub(crate) fn run_plain(&self, sql: &str) -> DbResult<()> {
        self.inner.execute_batch(sql).map_err(|error| self.explain(&error, sql))
    }

    fn run_cached(&self, sql: &str) -> DbResult<()> {
        let run = || self.inner.prepare_cached(sql)?.execute([]);
        run().map(drop).map_err(|error| self.explain(&error, sql))
    }

    pub(crate) fn begin_write(&self) -> DbResult<()> {
        self.run_cached("begin immediate")
    }

    /// Commits. After an error the transaction is certainly over and nothing of it remains.
    pub(crate) fn commit(&self) -> DbResult<()> {
        let outcome = self.run_cached("commit");
        self.abandon();
        outcome
    }

    /// Moves all of the log into the file and makes it empty. Nobody may be reading.
    pub(crate) fn fold_log(&self) -> DbResult<()> {
        self.query("pragma wal_checkpoint(truncate)", &[], &mut |_| Ok(()))
    }

    pub(crate) fn begin_read(&self) -> DbResult<()> {
        self.run_cached("begin deferred")
    }

    /// Ends the transaction without a trace, if one is still open.
    pub(crate) fn abandon(&self) {
        if !self.transaction_is_gone() {
            drop(self.run_cached("rollback"));
        }
    }

    pub(crate) fn savepoint(&self) -> DbResult<()> {
        self.run_cached("savepoint closure")
    }

    pub(crate) fn release_savepoint(&self) -> DbResult<()> {
        self.run_cached("release closure")
    }

    pub(crate) fn roll_back_to_savepoint(&self) -> DbResult<()> {
        self.run_cached("rollback to closure")?;
        self.release_savepoint()
    }

    /// Some failures end the whole transaction, not only the statement.
    pub(crate) fn transaction_is_gone(&self) -> bool {
        self.inner.is_autocommit()
    }

    /// How many rows this connection has changed since it was opened.
    pub(crate) fn total_changes(&self) -> u64 {
        self.inner.total_changes()
    }

    pub(crate) fn start_timer(&self) {
        let deadline = self.timer.elapsed_ms(self.timer.limit);
        self.timer.deadline_ms.store(deadline, Ordering::Relaxed);
    }

    pub(crate) fn stop_timer(&self) {
        self.timer.deadline_ms.store(u64::MAX, Ordering::Relaxed);
    }

    pub(crate) fn execute(&self, sql: &str, params: &[Value<'_>]) -> DbResult<u64> {
        let run = || -> rusqlite::Result<u64> {
            let mut statement = self.inner.prepare_cached(&self.translate(sql))?;
            if statement.column_count() == 0 {
                let rows = statement.execute(rusqlite::params_from_iter(params))?;
                return Ok(u64::try_from(rows).unwrap_or(u64::MAX));
            }
            // `returning` makes rows of what was changed; their number is the answer.
            let mut rows = statement.query(rusqlite::params_from_iter(params))?;
            let mut count = 0;
            while rows.next()?.is_some() {
                count += 1;
            }
            Ok(count)
        };
        run().map_err(|error| self.explain(&error, sql))
    }

    pub(crate) fn query(
        &self,
        sql: &str,
        params: &[Value<'_>],
        take: &mut dyn FnMut(&Row<'_>) -> DbResult<()>,
    ) -> DbResult<()> {
        let explain = |error: rusqlite::Error| self.explain(&error, sql);
        let mut statement = self.inner.prepare_cached(&self.translate(sql)).map_err(explain)?;
        let mut rows = statement.query(rusqlite::params_from_iter(params)).map_err(explain)?;
        while let Some(row) = rows.next().map_err(explain)? {
            take(&Row::of_sqlite(row))?;
        }
        Ok(())
    }

    /// Lets `work` take the rows of a statement one by one.
    pub(crate) fn with_rows<T>(
        &self,
        sql: &str,
        work: impl FnOnce(&mut SqliteRows<'_>) -> DbResult<T>,
    ) -> DbResult<T> {
        let explain = |error: rusqlite::Error| self.explain(&error, sql);
        let mut statement = self.inner.prepare(sql).map_err(explain)?;
        let rows = statement.query([]).map_err(explain)?;
        work(&mut SqliteRows { rows, connection: self, sql })
    }

    fn translate(&self, sql: &str) -> Arc<str> {
        if let Some(translated) = self.translated.borrow().get(sql) {
            return Arc::clone(translated);
        }
        let translated: Arc<str> = statement_to_sqlite(sql).into();
        let mut known = self.translated.borrow_mut();
        if known.len() >= 2 * STATEMENTS_CACHED_MAX {
            known.clear();
        }
        known.insert(sql.to_owned(), Arc::clone(&translated));
        translated
    }

    fn explain(&self, error: &rusqlite::Error, sql: &str) -> StorageError {
        let rusqlite::Error::SqliteFailure(failure, message) = error else {
            return StorageError::Statement { message: error.to_string(), sql: sql.to_owned() };
        };
        let message = message.clone().unwrap_or_else(|| failure.to_string());
        match failure.code {
            ErrorCode::ConstraintViolation => self.explain_constraint(*failure, &message, sql),
            ErrorCode::OperationInterrupted => StorageError::Timeout,
            ErrorCode::DiskFull => StorageError::DiskFull,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StorageError::Contention,
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase => StorageError::Unavailable(message),
            _ => StorageError::Statement { message, sql: sql.to_owned() },
        }
    }

    fn explain_constraint(&self, failure: ffi::Error, message: &str, sql: &str) -> StorageError {
        let detail = message.split_once(": ").map_or("", |(_, detail)| detail);
        let (kind, name) = match failure.extended_code {
            ffi::SQLITE_CONSTRAINT_UNIQUE
            | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_ROWID => {
                (ConstraintKind::Unique, self.unique_constraint_name(detail))
            }
            ffi::SQLITE_CONSTRAINT_CHECK => (ConstraintKind::Check, detail.to_owned()),
            ffi::SQLITE_CONSTRAINT_NOTNULL => (ConstraintKind::NotNull, detail.to_owned()),
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY => {
                (ConstraintKind::ForeignKey, "foreign key".to_owned())
            }
            _ => {
                let message = message.to_owned();
                return StorageError::Statement { message, sql: sql.to_owned() };
            }
        };
        StorageError::Constraint { kind, name }
    }

    /// SQLite names the columns (`seats.event_id, seats.number`); callers know the index by name.
    fn unique_constraint_name(&self, detail: &str) -> String {
        if let Some(name) = detail.strip_prefix("index '") {
            return name.trim_end_matches('\'').to_owned();
        }
        if let Some(name) = self.constraint_names.borrow().get(detail) {
            return name.clone();
        }
        let name = self.find_unique_constraint(detail).unwrap_or_else(|_| detail.to_owned());
        self.constraint_names.borrow_mut().insert(detail.to_owned(), name.clone());
        name
    }

    fn find_unique_constraint(&self, detail: &str) -> rusqlite::Result<String> {
        let columns: Vec<&str> =
            detail.split(", ").filter_map(|part| part.split_once('.').map(|(_, c)| c)).collect();
        let table = detail.split('.').next().unwrap_or_default();
        for index in unique_indexes(&self.inner, table)? {
            if index.columns == columns && !index.is_primary_key {
                return Ok(index.name);
            }
        }
        // PostgreSQL's name for a primary key.
        Ok(format!("{table}_pkey"))
    }

    /// Refuses tables whose unique indexes SQLite could not tell apart in an error.
    pub(crate) fn require_distinct_unique_indexes(&self) -> DbResult<()> {
        let sql = "select name from sqlite_master where type = 'table'";
        let find = || -> rusqlite::Result<Option<(String, String)>> {
            let mut statement = self.inner.prepare(sql)?;
            let tables: Vec<String> =
                statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            for table in tables {
                let indexes = unique_indexes(&self.inner, &table)?;
                for (position, index) in indexes.iter().enumerate() {
                    let twin = indexes[..position].iter().find(|o| o.columns == index.columns);
                    if let Some(twin) = twin {
                        return Ok(Some((twin.name.clone(), index.name.clone())));
                    }
                }
            }
            Ok(None)
        };
        match find().map_err(|error| self.explain(&error, sql))? {
            None => Ok(()),
            Some((one, other)) => Err(StorageError::Unsafe(format!(
                "unique indexes {one} and {other} have the same columns: SQLite cannot say which \
                 one was violated; give one of them another column"
            ))),
        }
    }
}

/// The rows of a statement that is under way.
pub(crate) struct SqliteRows<'a> {
    rows: rusqlite::Rows<'a>,
    connection: &'a SqliteConnection,
    sql: &'a str,
}

impl SqliteRows<'_> {
    pub(crate) fn next(&mut self) -> DbResult<Option<&rusqlite::Row<'_>>> {
        let SqliteRows { rows, connection, sql } = self;
        rows.next().map_err(|error| connection.explain(&error, sql))
    }
}

struct UniqueIndex {
    name: String,
    columns: Vec<String>,
    is_primary_key: bool,
}

fn unique_indexes(
    connection: &rusqlite::Connection,
    table: &str,
) -> rusqlite::Result<Vec<UniqueIndex>> {
    let mut list = connection
        .prepare("select name, origin from pragma_index_list(?1) where \"unique\" = 1")?;
    let found: Vec<(String, String)> =
        list.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut info = connection
        .prepare("select coalesce(name, '') from pragma_index_info(?1) order by seqno")?;
    let mut indexes = Vec::new();
    for (name, origin) in found {
        let columns = info.query_map([&name], |row| row.get(0))?.collect::<Result<_, _>>()?;
        indexes.push(UniqueIndex { name, columns, is_primary_key: origin == "pk" });
    }
    Ok(indexes)
}
