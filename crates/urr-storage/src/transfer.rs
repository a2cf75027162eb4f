//! Moves the rows of SQLite files into PostgreSQL schemas that have none.
//!
//! Which tables and columns there are is read from both databases, and a difference is refused, so no
//! list can be forgotten when a migration adds a table. All schemas are filled in one transaction.
//! Before its commit every row is read again and compared with the source: the target has all or
//! nothing, and what it has is right.

mod catalogue;
mod moved_value;
mod summary;

use std::path::Path;
use std::time::Duration;

use urr_kernel::Timestamp;

use self::catalogue::TableShape;
use self::moved_value::MovedValue;
pub use self::summary::TableSummary;
use crate::migrate::{self, Schema};
use crate::postgres::{MIGRATION_LOCK, PostgresConnection, parse_url};
use crate::sqlite::SqliteConnection;
use crate::tx::TxConnection;
use crate::{DbResult, Row, StorageError, Tx};

/// A large table takes a while.
const STATEMENT_TIME_MAX: Duration = Duration::from_hours(6);
/// How often the progress is told.
const ROWS_BETWEEN_REPORTS: u64 = 10_000;
/// How many rows are read at once when they are compared.
const ROWS_FETCHED_AT_ONCE: u32 = 5_000;
/// Migrations are remembered by each database itself.
const MIGRATIONS_TABLE: &str = "schema_migrations";

/// A file that nobody writes to, at one moment. It is not changed, not even its log.
pub struct TransferSource {
    connection: SqliteConnection,
    schema: Schema,
}

/// One table on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferredTable {
    pub source: TableSummary,
    pub target: TableSummary,
}

impl TransferredTable {
    pub fn is_equal(&self) -> bool {
        self.source == self.target
    }
}

impl TransferSource {
    /// Opens a file that has all migrations of this program and no others.
    pub fn open(path: &Path, schema: &Schema) -> DbResult<TransferSource> {
        let connection = SqliteConnection::open_reader(path, STATEMENT_TIME_MAX)?;
        connection.begin_read()?;
        let source = TransferSource { connection, schema: *schema };
        let missing = source.read(|tx| migrate::missing(tx, schema))?;
        match missing.as_slice() {
            [] => Ok(source),
            missing => Err(StorageError::Unsafe(format!(
                "{} lacks migrations ({}); run `urr migrate` on it first",
                path.display(),
                missing.join(", ")
            ))),
        }
    }

    /// Reads something else from it.
    pub fn read<T>(&self, body: impl FnOnce(&mut Tx<'_>) -> DbResult<T>) -> DbResult<T> {
        body(&mut Tx::new(TxConnection::Sqlite(&self.connection)))
    }

    /// How many rows each table has.
    pub fn count_rows(&self) -> DbResult<Vec<(String, u64)>> {
        self.read(|tx| {
            let tables = catalogue::sqlite_tables(tx)?;
            let names = tables.keys().filter(|name| *name != MIGRATIONS_TABLE);
            let count = |name: &String| {
                let sql = format!("select count(*) as rows from {name}");
                Ok((name.clone(), tx.query_one(&sql, &[], |row| row.get("rows"))?))
            };
            names.map(count).collect()
        })
    }

    fn summarise(&self, table: &TableShape) -> DbResult<TableSummary> {
        let mut summary = TableSummary::new(table);
        self.connection.query(&table.select(), &[], &mut |row| summary.add(table, row))?;
        Ok(summary)
    }

    /// The highest number that an identity column has given, also to rows that are gone.
    fn last_identity(&self, table: &TableShape) -> DbResult<Option<i64>> {
        self.read(|tx| {
            let sql = "select seq from sqlite_sequence where name = $1";
            tx.query_opt(sql, crate::params![table.name], |row| row.get("seq"))
        })
    }
}

/// A database of PostgreSQL, in a transaction that only [`TransferTarget::commit`] keeps.
///
/// Its methods block: do not call them on a thread that drives async tasks.
pub struct TransferTarget {
    connection: PostgresConnection,
}

impl TransferTarget {
    /// Connects as the administrator and begins. Another move into this database, or a migration of
    /// it, waits until this one has ended.
    pub fn begin(admin_url: &str) -> DbResult<TransferTarget> {
        let address = parse_url(admin_url)?;
        let mut connection = PostgresConnection::connect(&address, STATEMENT_TIME_MAX)?;
        connection.run_plain("begin")?;
        connection.run_plain(&format!("select pg_advisory_xact_lock({MIGRATION_LOCK})"))?;
        Ok(TransferTarget { connection })
    }

    /// Whether a schema has no tables yet, or only what its migrations put there.
    pub fn is_unused(&mut self, schema: &Schema, now: Timestamp) -> DbResult<bool> {
        let tables = self.read(schema, |tx| catalogue::postgres_tables(tx, schema.name))?;
        if tables.is_empty() {
            return Ok(true);
        }
        let fresh = fresh_source(schema, now)?;
        for table in tables.iter().filter(|table| table.name != MIGRATIONS_TABLE) {
            if self.summarise(schema, table)? != fresh.summarise(table)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads something in a schema.
    pub fn read<T>(
        &mut self,
        schema: &Schema,
        body: impl FnOnce(&mut Tx<'_>) -> DbResult<T>,
    ) -> DbResult<T> {
        self.connection.run_plain(&format!("set local search_path to {}", schema.name))?;
        body(&mut Tx::new(TxConnection::Postgres(&mut self.connection)))
    }

    /// Copies all tables of a file into its schema, and reads them again. `report` is told the table
    /// and how many of its rows were copied.
    pub fn fill(
        &mut self,
        source: &TransferSource,
        report: &mut dyn FnMut(&str, u64),
    ) -> DbResult<Vec<TransferredTable>> {
        let tables = self.tables_in_order(source)?;
        self.lock(&tables)?;
        for table in tables.iter().rev() {
            // What migrations have put there is in the source too.
            self.connection.run_plain(&format!("delete from {}", table.name))?;
        }
        let mut transferred = Vec::new();
        for table in &tables {
            self.copy(source, table, report)?;
            self.continue_identity(source, table)?;
            let target = self.summarise(&source.schema, table)?;
            transferred.push(TransferredTable { source: source.summarise(table)?, target });
        }
        transferred.sort_by(|a, b| a.source.table.cmp(&b.source.table));
        Ok(transferred)
    }

    /// Those that others refer to come first.
    fn tables_in_order(&mut self, source: &TransferSource) -> DbResult<Vec<TableShape>> {
        let schema = source.schema;
        let missing = self.read(&schema, |tx| migrate::missing(tx, &schema))?;
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let name = schema.name;
            return Err(StorageError::Unsafe(format!("the schema {name} lacks {missing}")));
        }
        let of_source = source.read(catalogue::sqlite_tables)?;
        self.read(&schema, |tx| {
            let mut tables = catalogue::postgres_tables(tx, schema.name)?;
            catalogue::require_same(schema.name, &of_source, &tables)?;
            tables.retain(|table| table.name != MIGRATIONS_TABLE);
            catalogue::order(tables, &catalogue::references(tx, schema.name)?)
        })
    }

    /// A service that runs already waits, and fails: it must not write beside us.
    fn lock(&mut self, tables: &[TableShape]) -> DbResult<()> {
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        let sql = format!("lock table {} in share row exclusive mode", names.join(", "));
        self.connection.run_plain(&sql)
    }

    fn copy(
        &mut self,
        source: &TransferSource,
        table: &TableShape,
        report: &mut dyn FnMut(&str, u64),
    ) -> DbResult<()> {
        let into = format!("copy {} ({}) from stdin binary", table.name, table.column_list());
        let mut count = 0;
        source.connection.with_rows(&table.select(), |rows| {
            self.connection.copy_in(&into, &table.types(), || {
                let Some(row) = rows.next()? else { return Ok(None) };
                count += 1;
                if count % ROWS_BETWEEN_REPORTS == 0 {
                    report(&table.name, count);
                }
                let row = Row::of_sqlite(row);
                let value = |index| Ok(MovedValue::from(row.value(index)?));
                (0..table.columns.len()).map(value).collect::<DbResult<Vec<_>>>().map(Some)
            })
        })?;
        report(&table.name, count);
        Ok(())
    }

    /// New rows get numbers behind those that were ever given.
    fn continue_identity(&mut self, source: &TransferSource, table: &TableShape) -> DbResult<()> {
        let Some(column) = table.identity() else { return Ok(()) };
        let Some(last) = source.last_identity(table)?.filter(|last| *last > 0) else {
            return Ok(());
        };
        let (schema, name) = (source.schema.name, &table.name);
        self.connection.run_plain(&format!(
            "select setval(pg_get_serial_sequence('{schema}.{name}', '{column}'), {last})"
        ))
    }

    fn summarise(&mut self, schema: &Schema, table: &TableShape) -> DbResult<TableSummary> {
        let mut summary = TableSummary::new(table);
        let cursor = format!("moved_{}_{}", schema.name, table.name);
        let select = table.select();
        self.read(schema, |_| Ok(()))?;
        self.connection.run_plain(&format!("declare {cursor} no scroll cursor for {select}"))?;
        let fetch = format!("fetch {ROWS_FETCHED_AT_ONCE} from {cursor}");
        loop {
            let before = summary.rows;
            self.connection.query(&fetch, &[], &mut |row| summary.add(table, row))?;
            if summary.rows == before {
                break;
            }
        }
        self.connection.run_plain(&format!("close {cursor}"))?;
        Ok(summary)
    }

    /// Keeps what was moved. After an error it is not known whether it was kept.
    pub fn commit(mut self) -> DbResult<()> {
        self.connection.run_plain("commit")?;
        // The first plans should know how large the tables are; the server finds out later anyway.
        self.connection.run_plain("analyze").ok();
        Ok(())
    }
}

/// What migrations alone make.
fn fresh_source(schema: &Schema, now: Timestamp) -> DbResult<TransferSource> {
    let connection = SqliteConnection::open_in_memory(STATEMENT_TIME_MAX)?;
    migrate::migrate_in_transaction(&connection, schema, now)?;
    Ok(TransferSource { connection, schema: *schema })
}
