//! One PostgreSQL connection: how it is opened, how statements run on it, what its errors mean.
//!
//! The driver is asynchronous, the closures are not: each connection has a runtime of its own that
//! runs while a closure waits for an answer. That allows what a blocking driver cannot: `begin`
//! travels together with the first statement.

use std::collections::HashMap;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Statement};

use crate::db::PostgresOptions;
use crate::{ConstraintKind, Row, StorageError, Value};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A peer that acknowledges nothing for this long is dead.
const PEER_SILENT_MAX: Duration = Duration::from_secs(10);

pub(crate) struct PostgresConnection {
    runtime: Runtime,
    client: Client,
    statements: HashMap<String, Statement>,
    /// The `begin` that goes out with the first statement.
    pending_begin: Option<&'static str>,
}

impl PostgresConnection {
    pub(crate) fn open(options: &PostgresOptions) -> Result<PostgresConnection, StorageError> {
        let mut config = parse_url(&options.url)?;
        let timeout_ms = options.statement_timeout.as_millis();
        config.options(format!(
            "-c search_path={} -c statement_timeout={timeout_ms} -c lock_timeout={timeout_ms} \
             -c idle_in_transaction_session_timeout={timeout_ms}",
            options.schema
        ));
        PostgresConnection::connect(&config)
    }

    /// Connects and refuses a server that may forget acknowledged commits.
    pub(crate) fn connect(config: &Config) -> Result<PostgresConnection, StorageError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StorageError::Unavailable(error.to_string()))?;
        let (client, connection) = runtime
            .block_on(config.connect(NoTls))
            .map_err(|error| explain_connect(config, &error))?;
        // It moves the bytes. How it ends, the client tells with every statement.
        runtime.spawn(async move { drop(connection.await) });
        let statements = HashMap::new();
        let mut connection =
            PostgresConnection { runtime, client, statements, pending_begin: None };
        connection.require_safe_settings()?;
        Ok(connection)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Begins with the first statement. A reader sees one moment for all of its statements.
    pub(crate) fn begin(&mut self, read_only: bool) {
        self.pending_begin = Some(match read_only {
            true => "begin isolation level repeatable read, read only",
            false => "begin",
        });
    }

    pub(crate) fn commit(&mut self) -> Result<(), StorageError> {
        self.end("commit")
    }

    pub(crate) fn roll_back(&mut self) -> Result<(), StorageError> {
        self.end("rollback")
    }

    /// A transaction without statements was never begun.
    fn end(&mut self, sql: &str) -> Result<(), StorageError> {
        match self.pending_begin.take() {
            Some(_) => Ok(()),
            None => self.run_plain(sql),
        }
    }

    /// Runs statements as they are, without parameters.
    pub(crate) fn run_plain(&mut self, sql: &str) -> Result<(), StorageError> {
        let done = self.runtime.block_on(self.client.batch_execute(sql));
        done.map_err(|error| explain(&error, sql))
    }

    pub(crate) fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64, StorageError> {
        let statement = self.prepare(sql)?;
        let begin = self.pending_begin.take();
        let (client, params) = (&self.client, as_parameters(params));
        let done = self.runtime.block_on(after(begin, client, client.execute(&statement, &params)));
        done.map_err(|error| explain(&error, sql))
    }

    pub(crate) fn query(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        take: &mut dyn FnMut(&Row<'_>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let statement = self.prepare(sql)?;
        let begin = self.pending_begin.take();
        let (client, params) = (&self.client, as_parameters(params));
        let rows = self.runtime.block_on(after(begin, client, client.query(&statement, &params)));
        for row in rows.map_err(|error| explain(&error, sql))? {
            take(&Row::Postgres(&row))?;
        }
        Ok(())
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, StorageError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        // A statement that cannot be prepared ends the transaction, so that must have begun.
        let begin = self.pending_begin.take();
        let prepared = self.runtime.block_on(after(begin, &self.client, self.client.prepare(sql)));
        let statement = prepared.map_err(|error| explain(&error, sql))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// A server that may forget acknowledged commits is refused.
    fn require_safe_settings(&mut self) -> Result<(), StorageError> {
        let sql = "select current_setting('fsync') as fsync, \
                   current_setting('full_page_writes') as full_page_writes, \
                   current_setting('synchronous_commit') as synchronous_commit";
        let row = self.runtime.block_on(self.client.query_one(sql, &[]));
        let row = row.map_err(|error| explain(&error, sql))?;
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            let value: &str = row.get(name);
            if value == "off" {
                return Err(StorageError::Unsafe(format!(
                    "PostgreSQL runs with {name} = off and could lose acknowledged sales; \
                     set {name} = on"
                )));
            }
        }
        Ok(())
    }
}

/// Sends `begin`, if it is still due, and the statement behind it without waiting in between.
async fn after<T>(
    begin: Option<&str>,
    client: &Client,
    statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, tokio_postgres::Error> {
    let Some(begin) = begin else { return statement.await };
    // Both are put into the connection's queue in this order when they are first polled.
    let (begun, done) = tokio::join!(biased; client.batch_execute(begin), statement);
    begun?;
    done
}

fn as_parameters<'a>(params: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Reads a connection URL and adds the limits that every connection of ours has.
pub(crate) fn parse_url(url: &str) -> Result<Config, StorageError> {
    let mut config: Config = url.parse().map_err(|error| {
        StorageError::Unavailable(format!("the database URL is wrong: {error}"))
    })?;
    config
        .application_name("urr")
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_user_timeout(PEER_SILENT_MAX)
        .keepalives_idle(PEER_SILENT_MAX);
    Ok(config)
}

/// Says where we tried to connect: the password stays out.
pub(crate) fn explain_connect(config: &Config, error: &tokio_postgres::Error) -> StorageError {
    let reason =
        error.as_db_error().map_or_else(|| whole_text(error), |db| db.message().to_owned());
    let hosts: Vec<String> = config.get_hosts().iter().map(|host| format!("{host:?}")).collect();
    let user = config.get_user().unwrap_or("?");
    let place = format!("{} port {:?} as {user}", hosts.join(","), config.get_ports());
    StorageError::Unavailable(format!("cannot connect to PostgreSQL at {place}: {reason}"))
}

/// An error with its causes in one line: the driver keeps the interesting half in the source.
fn whole_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

pub(crate) fn explain(error: &tokio_postgres::Error, sql: &str) -> StorageError {
    let Some(db) = error.as_db_error() else {
        let text = whole_text(error);
        return if error.is_closed() || is_io(error) {
            StorageError::Unavailable(text)
        } else {
            StorageError::Statement { message: text, sql: sql.to_owned() }
        };
    };
    let constraint = |kind| StorageError::Constraint {
        kind,
        name: db.constraint().unwrap_or("unnamed").to_owned(),
    };
    match db.code() {
        &SqlState::UNIQUE_VIOLATION => constraint(ConstraintKind::Unique),
        &SqlState::CHECK_VIOLATION => constraint(ConstraintKind::Check),
        &SqlState::FOREIGN_KEY_VIOLATION => StorageError::Constraint {
            kind: ConstraintKind::ForeignKey,
            name: "foreign key".to_owned(),
        },
        &SqlState::NOT_NULL_VIOLATION => StorageError::Constraint {
            kind: ConstraintKind::NotNull,
            name: format!("{}.{}", db.table().unwrap_or("?"), db.column().unwrap_or("?")),
        },
        &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => {
            StorageError::Contention
        }
        &SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE => StorageError::Timeout,
        &SqlState::DISK_FULL => StorageError::DiskFull,
        &SqlState::ADMIN_SHUTDOWN
        | &SqlState::CRASH_SHUTDOWN
        | &SqlState::CANNOT_CONNECT_NOW
        | &SqlState::TOO_MANY_CONNECTIONS
        | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => {
            StorageError::Unavailable(db.message().to_owned())
        }
        code => StorageError::Statement {
            message: format!("{} ({})", db.message(), code.code()),
            sql: sql.to_owned(),
        },
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}
