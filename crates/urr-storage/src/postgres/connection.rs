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
use urr_kernel::{causes, error_chain};

use crate::db::PostgresOptions;
use crate::{ConstraintKind, DbResult, Row, StorageError, Value};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The server ends what takes too long. If it does not say so within this time, it is gone.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);

/// A peer that acknowledges nothing for this long is dead.
const PEER_SILENT_MAX: Duration = Duration::from_secs(10);

/// Prepared statements take memory on both sides. More texts than this come from a search with many
/// forms; then all of them are prepared anew.
const STATEMENTS_MAX: usize = 500;

pub(crate) struct PostgresConnection {
    runtime: Runtime,
    client: Client,
    statements: HashMap<String, Statement>,
    /// The `begin` that goes out with the first statement.
    pending_begin: Option<&'static str>,
    only_reads: bool,
    answer_timeout: Duration,
    is_broken: bool,
}

impl PostgresConnection {
    pub(crate) fn open(options: &PostgresOptions) -> DbResult<PostgresConnection> {
        let mut config = parse_url(&options.url)?;
        let timeout_ms = options.statement_timeout.as_millis();
        // Read-only unless a transaction says otherwise: a statement whose `begin` failed in front
        // of it would else be committed alone.
        config.options(format!(
            "-c search_path={} -c statement_timeout={timeout_ms} -c lock_timeout={timeout_ms} \
             -c idle_in_transaction_session_timeout={timeout_ms} \
             -c default_transaction_read_only=on",
            options.schema
        ));
        PostgresConnection::connect(&config, options.statement_timeout)
    }

    /// Connects and refuses a server that may forget acknowledged commits.
    pub(crate) fn connect(
        config: &Config,
        statement_timeout: Duration,
    ) -> DbResult<PostgresConnection> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StorageError::Unavailable(error.to_string()))?;
        let connecting =
            async { tokio::time::timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await };
        let (client, connection) = match runtime.block_on(connecting) {
            Ok(connected) => connected.map_err(|error| explain_connect(config, &error))?,
            Err(_) => return Err(unreachable_at(config, "no answer in time")),
        };
        // It moves the bytes. How it ends, the client tells with every statement.
        runtime.spawn(async move { drop(connection.await) });
        let mut connection = PostgresConnection {
            runtime,
            client,
            statements: HashMap::new(),
            pending_begin: None,
            only_reads: false,
            answer_timeout: statement_timeout + ANSWER_MARGIN,
            is_broken: false,
        };
        connection.require_safe_settings()?;
        Ok(connection)
    }

    /// Whether a server answers, be it with a refusal. The error says why nobody does.
    pub(crate) fn reach(url: &str) -> DbResult<()> {
        let config = parse_url(url)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StorageError::Unavailable(error.to_string()))?;
        let connecting =
            async { tokio::time::timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await };
        match runtime.block_on(connecting) {
            Err(_) => Err(unreachable_at(&config, "no answer in time")),
            Ok(Ok(_connected)) => Ok(()),
            Ok(Err(error)) => match error.code() {
                // It refuses us, and will do so in a minute.
                Some(code) if !is_passing(code) => Ok(()),
                _ => Err(explain_connect(&config, &error)),
            },
        }
    }

    /// Whether it must be given up: closed by the other side, silent, or in an unknown state.
    pub(crate) fn is_unusable(&self) -> bool {
        self.is_broken || self.client.is_closed()
    }

    /// Begins with the first statement. A reader sees one moment for all of its statements.
    pub(crate) fn begin(&mut self, read_only: bool) {
        self.only_reads = read_only;
        self.pending_begin = Some(match read_only {
            true => "begin isolation level repeatable read, read only",
            false => "begin read write",
        });
    }

    pub(crate) fn commit(&mut self) -> DbResult<()> {
        self.end("commit")
    }

    pub(crate) fn roll_back(&mut self) -> DbResult<()> {
        self.end("rollback")
    }

    /// A transaction without statements was never begun.
    fn end(&mut self, sql: &str) -> DbResult<()> {
        match self.pending_begin.take() {
            Some(_) => Ok(()),
            None => {
                let ended = self.run_plain(sql);
                // Whether the transaction is over is not known; the next closure must not be in it.
                self.is_broken |= ended.is_err();
                ended
            }
        }
    }

    /// Runs statements as they are, without parameters.
    pub(crate) fn run_plain(&mut self, sql: &str) -> DbResult<()> {
        let done = answer(&self.runtime, self.answer_timeout, self.client.batch_execute(sql));
        self.settle(done, sql)
    }

    /// Explains a failure and remembers what it means for the connection.
    fn settle<T>(&mut self, done: ServerAnswer<T>, sql: &str) -> DbResult<T> {
        match done {
            ServerAnswer::Given(value) => Ok(value),
            ServerAnswer::Refused(error) => {
                if is_stale_statement(&error) {
                    self.statements.clear();
                }
                let writes_in_a_read =
                    self.only_reads && error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION);
                let error = match explain(&error, sql) {
                    StorageError::Unavailable(message) if writes_in_a_read => {
                        StorageError::Statement { message, sql: sql.to_owned() }
                    }
                    error => error,
                };
                self.is_broken |= matches!(error, StorageError::Unavailable(_));
                Err(error)
            }
            ServerAnswer::Missing => {
                self.is_broken = true;
                Err(StorageError::Unavailable("PostgreSQL has fallen silent".to_owned()))
            }
        }
    }

    pub(crate) fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> DbResult<u64> {
        let statement = self.prepare(sql)?;
        let begin = self.pending_begin.take();
        let (client, params) = (&self.client, as_parameters(params));
        let work = after(begin, client, client.execute(&statement, &params));
        let done = answer(&self.runtime, self.answer_timeout, work);
        self.settle(done, sql)
    }

    pub(crate) fn query(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        take: &mut dyn FnMut(&Row<'_>) -> DbResult<()>,
    ) -> DbResult<()> {
        let statement = self.prepare(sql)?;
        let begin = self.pending_begin.take();
        let (client, params) = (&self.client, as_parameters(params));
        let work = after(begin, client, client.query(&statement, &params));
        let rows = answer(&self.runtime, self.answer_timeout, work);
        for row in self.settle(rows, sql)? {
            take(&Row::Postgres(&row))?;
        }
        Ok(())
    }

    fn prepare(&mut self, sql: &str) -> DbResult<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        // A statement that cannot be prepared ends the transaction, so that must have begun.
        let begin = self.pending_begin.take();
        let work = after(begin, &self.client, self.client.prepare(sql));
        let prepared = answer(&self.runtime, self.answer_timeout, work);
        let statement = self.settle(prepared, sql)?;
        if self.statements.len() >= STATEMENTS_MAX {
            // Letting go of them tells the server to forget them too.
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// A server that may forget acknowledged commits is refused.
    fn require_safe_settings(&mut self) -> DbResult<()> {
        let sql = "select current_setting('fsync') as fsync, \
                   current_setting('full_page_writes') as full_page_writes, \
                   current_setting('synchronous_commit') as synchronous_commit";
        let row = answer(&self.runtime, self.answer_timeout, self.client.query_one(sql, &[]));
        let row = self.settle(row, sql)?;
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

/// What came of asking the server.
enum ServerAnswer<T> {
    Given(T),
    Refused(tokio_postgres::Error),
    /// Nothing, although the server's own limit is long over.
    Missing,
}

fn answer<T>(
    runtime: &Runtime,
    limit: Duration,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> ServerAnswer<T> {
    match runtime.block_on(async { tokio::time::timeout(limit, work).await }) {
        Ok(Ok(value)) => ServerAnswer::Given(value),
        Ok(Err(error)) => ServerAnswer::Refused(error),
        Err(_) => ServerAnswer::Missing,
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
pub(crate) fn parse_url(url: &str) -> DbResult<Config> {
    let mut config: Config = url.parse().map_err(|error| {
        StorageError::Unavailable(format!("the database URL is wrong: {error}"))
    })?;
    config
        .application_name("urr")
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_user_timeout(PEER_SILENT_MAX)
        .keepalives_idle(PEER_SILENT_MAX)
        .keepalives_interval(Duration::from_secs(2))
        .keepalives_retries(3);
    Ok(config)
}

/// Says where we tried to connect: the password stays out.
pub(crate) fn explain_connect(config: &Config, error: &tokio_postgres::Error) -> StorageError {
    let reason =
        error.as_db_error().map_or_else(|| error_chain(error), |db| db.message().to_owned());
    unreachable_at(config, &reason)
}

fn unreachable_at(config: &Config, reason: &str) -> StorageError {
    let hosts: Vec<String> = config.get_hosts().iter().map(|host| format!("{host:?}")).collect();
    let user = config.get_user().unwrap_or("?");
    let place = format!("{} port {:?} as {user}", hosts.join(","), config.get_ports());
    StorageError::Unavailable(format!("cannot connect to PostgreSQL at {place}: {reason}"))
}

pub(crate) fn explain(error: &tokio_postgres::Error, sql: &str) -> StorageError {
    let Some(db) = error.as_db_error() else {
        // The driver keeps the interesting half in the source.
        let text = error_chain(error);
        return if error.is_closed() || causes(error).any(|cause| cause.is::<std::io::Error>()) {
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
        // Prepared against tables that have changed since: prepared anew, it works.
        _ if is_stale_statement(error) => StorageError::Contention,
        code if is_passing(code) => StorageError::Unavailable(db.message().to_owned()),
        code => StorageError::Statement {
            message: format!("{} ({})", db.message(), code.code()),
            sql: sql.to_owned(),
        },
    }
}

/// Failures of the server or the way to it, which pass: lost connections (08), lack of resources
/// (53), shutdowns (57), errors of its disk (58), and a server that only reads, as it does while
/// another one takes over.
fn is_passing(code: &SqlState) -> bool {
    ["08", "53", "57", "58"].into_iter().any(|class| code.code().starts_with(class))
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
        || *code == SqlState::IN_FAILED_SQL_TRANSACTION
}

fn is_stale_statement(error: &tokio_postgres::Error) -> bool {
    let is_old_plan = |db: &tokio_postgres::error::DbError| {
        db.code() == &SqlState::FEATURE_NOT_SUPPORTED && db.message().contains("cached plan")
    };
    error.code() == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
        || error.as_db_error().is_some_and(is_old_plan)
}
