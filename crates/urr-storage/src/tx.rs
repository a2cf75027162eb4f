//! A transaction as its closure sees it.

use crate::postgres::PostgresConnection;
use crate::sqlite::SqliteConnection;
use crate::{DbResult, Row, StorageError, Value};

/// The running transaction. It ends with the closure that was given it.
///
/// After a failed statement nothing more can be done in it and it will be rolled back, whatever
/// the closure returns: PostgreSQL works like that, and SQLite is held to the same. To expect a
/// conflict, write `on conflict do nothing` and look at the number of rows.
pub struct Tx<'a> {
    connection: TxConnection<'a>,
    failure: Option<StorageError>,
    has_outbox_rows: bool,
    has_written: bool,
    statements: u64,
}

pub(crate) enum TxConnection<'a> {
    Sqlite(&'a SqliteConnection),
    Postgres(&'a mut PostgresConnection),
}

impl<'a> Tx<'a> {
    pub(crate) fn new(connection: TxConnection<'a>) -> Tx<'a> {
        Tx { connection, failure: None, has_outbox_rows: false, has_written: false, statements: 0 }
    }

    /// Runs a statement and says how many rows it touched.
    pub fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> DbResult<u64> {
        self.begin_statement(sql, params)?;
        let outcome = match &mut self.connection {
            TxConnection::Sqlite(connection) => connection.execute(sql, params),
            TxConnection::Postgres(connection) => connection.execute(sql, params),
        };
        self.note_failure(outcome)
    }

    /// Runs a statement whose number of rows nobody needs. On PostgreSQL it travels with the next
    /// statement or with the commit, and costs no round trip; so a failure may be told there.
    pub fn execute_later(&mut self, sql: &str, params: &[Value<'_>]) -> DbResult<()> {
        self.run_later(sql, params, None)
    }

    /// The same for a statement that must touch this many rows: otherwise it fails.
    pub fn change_later(&mut self, sql: &str, params: &[Value<'_>], rows: u64) -> DbResult<()> {
        self.run_later(sql, params, Some(rows))
    }

    fn run_later(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        expected: Option<u64>,
    ) -> DbResult<()> {
        self.begin_statement(sql, params)?;
        let outcome = match &mut self.connection {
            TxConnection::Sqlite(connection) => match (connection.execute(sql, params), expected) {
                (Ok(touched), Some(expected)) if touched != expected => {
                    let message =
                        format!("{expected} rows were expected, and {touched} were touched");
                    Err(StorageError::Statement { message, sql: sql.to_owned() })
                }
                (done, _) => done.map(drop),
            },
            TxConnection::Postgres(connection) => connection.execute_later(sql, params, expected),
        };
        self.note_failure(outcome)
    }

    /// All rows of the answer, each turned into a `T`.
    pub fn query<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> DbResult<T>,
    ) -> DbResult<Vec<T>> {
        self.begin_statement(sql, params)?;
        let mut rows = Vec::new();
        let mut take = |row: &Row<'_>| {
            rows.push(read(row)?);
            Ok(())
        };
        let outcome = match &mut self.connection {
            TxConnection::Sqlite(connection) => connection.query(sql, params, &mut take),
            TxConnection::Postgres(connection) => connection.query(sql, params, &mut take),
        };
        self.note_failure(outcome)?;
        Ok(rows)
    }

    /// The only row of the answer, or none. Two rows are a bug of ours.
    pub fn query_opt<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> DbResult<T>,
    ) -> DbResult<Option<T>> {
        let mut rows = self.query(sql, params, read)?;
        assert!(rows.len() <= 1, "at most one row was expected of {sql:?}");
        Ok(rows.pop())
    }

    /// The only row of the answer. None is a bug of ours: aggregates and `returning` give one.
    pub fn query_one<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> DbResult<T>,
    ) -> DbResult<T> {
        let row = self.query_opt(sql, params, read)?;
        Ok(row.unwrap_or_else(|| panic!("one row was expected of {sql:?}")))
    }

    /// Whether this is PostgreSQL: for the few operations that need another body to be fast there.
    pub fn is_postgres(&self) -> bool {
        matches!(self.connection, TxConnection::Postgres(_))
    }

    /// Waits until no other transaction has this name, and keeps it until the end of this one: for a
    /// decision about rows that do not exist yet and so cannot be locked. SQLite has one writer.
    pub fn lock_name(&mut self, name: &str) -> DbResult<()> {
        if self.is_postgres() {
            let sql = "select pg_advisory_xact_lock(hashtextextended($1, 0))";
            self.execute_later(sql, &[Value::Text(name)])?;
        }
        Ok(())
    }

    /// The same for several names, in their order, so that two transactions do not wait for each
    /// other.
    pub fn lock_names(&mut self, names: Vec<String>) -> DbResult<()> {
        if self.is_postgres() {
            let sql = "select pg_advisory_xact_lock(hashtextextended(name, 0)) from \
                       (select name from jsonb_array_elements_text($1) as name order by name) \
                       as ordered";
            self.execute_later(sql, &[Value::Json(&serde_json::Value::from(names))])?;
        }
        Ok(())
    }

    pub(crate) fn note_outbox_row(&mut self) {
        self.has_outbox_rows = true;
    }

    pub(crate) fn has_outbox_rows(&self) -> bool {
        self.has_outbox_rows
    }

    /// Whether a statement was run that may have changed something. All of ours are lower case.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// How many statements were run so far.
    pub(crate) fn statements(&self) -> u64 {
        self.statements
    }

    /// The first failed statement, if there was one.
    pub(crate) fn failure(&self) -> Option<&StorageError> {
        self.failure.as_ref()
    }

    /// Refuses a statement after a failed one, and one with a text that has U+0000: PostgreSQL cannot
    /// store it, and SQLite is held to the same. Whatever a client can send is refused long before.
    fn begin_statement(&mut self, sql: &str, params: &[Value<'_>]) -> DbResult<()> {
        if self.failure.is_some() {
            return Err(StorageError::Aborted);
        }
        let has_nul = |value: &Value<'_>| matches!(value, Value::Text(text) if text.contains('\0'));
        if params.iter().any(has_nul) {
            let message = "a text has the character U+0000".to_owned();
            return self
                .note_failure(Err(StorageError::Statement { message, sql: sql.to_owned() }));
        }
        self.statements += 1;
        self.has_written |= !sql.trim_start().starts_with("select");
        Ok(())
    }

    fn note_failure<T>(&mut self, outcome: DbResult<T>) -> DbResult<T> {
        if let Err(error) = &outcome {
            self.failure = Some(error.clone());
        }
        outcome
    }
}
