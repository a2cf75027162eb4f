//! Migrations: written once, applied in order, each exactly once, never changed afterwards.

use std::fmt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use urr_kernel::{Timestamp, hex};

use crate::dialect::{MigrationStatement, SqlEngine, definition_to_sqlite, split_migration};
use crate::sqlite::SqliteConnection;
use crate::tx::TxConnection;
use crate::{DbResult, Row, StorageError, Tx, Value, from_row};

/// The tables of one service.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Its name on PostgreSQL, and the name of its file on SQLite.
    pub name: &'static str,
    /// In rising order of their versions.
    pub migrations: &'static [Migration],
}

/// One step. Its text must suit the code before and after it: expand, move, contract.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// `service` for a service's own tables; `kit` for those that every service has.
    pub series: &'static str,
    pub version: i64,
    pub name: &'static str,
    pub sql: &'static str,
}

/// Declares a service's migrations: `migrations![1 "artists" => "../migrations/0001_artists.sql"]`.
#[macro_export]
macro_rules! migrations {
    ($($version:literal $name:literal => $file:literal),* $(,)?) => {
        &[$($crate::Migration {
            series: "service",
            version: $version,
            name: $name,
            sql: include_str!($file),
        }),*]
    };
}

/// How long a single step of a migration may take.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(3600);
/// How long a program waits for another one that migrates the same file.
const MIGRATION_LOCK_WAIT_MAX: Duration = Duration::from_secs(60);
const MIGRATION_LOCK_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The tables that every schema has.
const KIT: &[Migration] = &[
    kit(1, "outbox and inbox", include_str!("../migrations/0001_outbox_and_inbox.sql")),
    kit(2, "admin log", include_str!("../migrations/0002_admin_actions.sql")),
    kit(3, "idempotency keys", include_str!("../migrations/0003_idempotency_keys.sql")),
    kit(4, "whole audits", include_str!("../migrations/0004_whole_audits.sql")),
];

const fn kit(version: i64, name: &'static str, sql: &'static str) -> Migration {
    Migration { series: "kit", version, name, sql }
}

impl Migration {
    /// A fingerprint of the text, so that a changed migration is noticed.
    pub(crate) fn checksum(&self) -> String {
        hex::encode(Sha256::digest(self.sql.as_bytes()))
    }

    pub(crate) fn statements(&self) -> DbResult<Vec<MigrationStatement<'static>>> {
        split_migration(self.sql).map_err(|reason| self.broken(&reason))
    }

    /// What is remembered of it.
    pub(crate) fn journal_row<'a>(&self, checksum: &'a str, now: Timestamp) -> [Value<'a>; 5] {
        [
            Value::Text(self.series),
            Value::Int(self.version),
            Value::Text(self.name),
            Value::Text(checksum),
            Value::Int(now.as_microsecond()),
        ]
    }

    fn broken(&self, reason: &str) -> StorageError {
        StorageError::Statement { message: reason.to_owned(), sql: self.to_string() }
    }
}

impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.series, self.version, self.name)
    }
}

pub(crate) const JOURNAL_POSTGRES: &str = "create table if not exists schema_migrations (\
     series text not null, version bigint not null, name text not null, checksum text not null, \
     applied_at_us bigint not null, primary key (series, version))";
const JOURNAL_SQLITE: &str = "create table if not exists schema_migrations (\
     series text not null, version integer not null, name text not null, checksum text not null, \
     applied_at_us integer not null, primary key (series, version)) strict";
const JOURNAL_SELECT: &str =
    "select series, version, checksum from schema_migrations order by series, version";
pub(crate) const JOURNAL_INSERT: &str = "insert into schema_migrations \
     (series, version, name, checksum, applied_at_us) values ($1, $2, $3, $4, $5)";

/// A migration that the database remembers.
#[derive(Debug)]
struct AppliedMigration {
    series: String,
    version: i64,
    checksum: String,
}

/// What is still to do. A migration that was changed after it had been applied is refused; one
/// that only the database knows comes from a newer program and is left alone.
fn plan(schema: &Schema, applied: &[AppliedMigration]) -> DbResult<Vec<Migration>> {
    let mut missing = Vec::new();
    for migration in KIT.iter().chain(schema.migrations) {
        let known =
            applied.iter().find(|a| a.series == migration.series && a.version == migration.version);
        match known {
            None => missing.push(*migration),
            Some(known) if known.checksum == migration.checksum() => {}
            Some(_) => {
                return Err(StorageError::Unsafe(format!(
                    "migration {migration} of {} was changed after it had been applied; \
                     write a new migration instead",
                    schema.name
                )));
            }
        }
    }
    Ok(missing)
}

/// Brings a SQLite file up to date. Returns the migrations that were applied now.
pub fn migrate_sqlite(path: &Path, schema: &Schema, now: Timestamp) -> DbResult<Vec<String>> {
    let connection = take_turn(path)?;
    let outcome = migrate_in_transaction(&connection, schema, now);
    match outcome {
        Ok(names) => {
            connection.commit()?;
            Ok(names)
        }
        Err(error) => {
            connection.abandon();
            Err(error)
        }
    }
}

/// Opens the file for writing and takes its lock, which is the write transaction. SQLite waits for
/// the lock of a transaction but not for the one that changes the form of a file's journal: a
/// second program that comes at that moment is told "busy" at once and comes again.
fn take_turn(path: &Path) -> DbResult<SqliteConnection> {
    let start = Instant::now();
    loop {
        let turn = SqliteConnection::open_writer(path, STATEMENT_TIME_MAX)
            .and_then(|connection| connection.begin_write().map(|()| connection));
        match turn {
            Err(StorageError::Contention) if start.elapsed() < MIGRATION_LOCK_WAIT_MAX => {
                sleep(MIGRATION_LOCK_RETRY_PAUSE)
            }
            turn => return turn,
        }
    }
}

pub(crate) fn migrate_in_transaction(
    connection: &SqliteConnection,
    schema: &Schema,
    now: Timestamp,
) -> DbResult<Vec<String>> {
    connection.run_plain(JOURNAL_SQLITE)?;
    let mut names = Vec::new();
    for migration in pending(&mut Tx::new(TxConnection::Sqlite(connection)), schema)? {
        for statement in migration.statements()? {
            let sql = match statement.only {
                Some(SqlEngine::Postgres) => continue,
                Some(SqlEngine::Sqlite) => statement.sql.into_owned(),
                None => definition_to_sqlite(&statement.sql)
                    .map_err(|reason| migration.broken(&reason))?,
            };
            connection.run_plain(&sql)?;
        }
        connection.execute(JOURNAL_INSERT, &migration.journal_row(&migration.checksum(), now))?;
        names.push(migration.to_string());
    }
    connection.require_distinct_unique_indexes()?;
    Ok(names)
}

/// The migrations that this program has and the database lacks: none, or `urr migrate` must run.
pub fn missing(tx: &mut Tx<'_>, schema: &Schema) -> DbResult<Vec<String>> {
    Ok(pending(tx, schema)?.iter().map(ToString::to_string).collect())
}

pub(crate) fn pending(tx: &mut Tx<'_>, schema: &Schema) -> DbResult<Vec<Migration>> {
    let read = |row: &Row<'_>| Ok(from_row!(row => AppliedMigration { series, version, checksum }));
    plan(schema, &tx.query(JOURNAL_SELECT, &[], read)?)
}
