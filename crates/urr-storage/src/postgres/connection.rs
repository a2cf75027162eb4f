//! One PostgreSQL connection: how it is opened, how statements run on it, what its errors mean.
//!
//! The driver is asynchronous, the closures are not: each connection has a runtime of its own that
//! runs while a closure waits for an answer. That allows what a blocking driver cannot: `begin`, and
//! statements whose answer nobody needs, travel together with the next statement or the commit.

mod ahead;

use std::collections::HashMap;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Statement};
use urr_kernel::{causes, error_chain};

use self::ahead::{FailedStatement, StatementFailure, StatementsAhead};
use super::address::{ConnectFailure, PostgresServerAddress};
use crate::db::PostgresOptions;
use crate::{ConstraintKind, DbResult, Row, StorageError, Value};

/// The server ends what takes too long. If it does not say so within this time, it is gone.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);

/// Prepared statements take memory on both sides. More texts than this come from a search with many
/// forms; then all of them are prepared anew.
const STATEMENTS_MAX: usize = 500;

const BEGIN_WRITE: &str = "begin read write";

pub(crate) struct PostgresConnection {
    runtime: Runtime,
    client: Client,
    statements: HashMap<String, Statement>,
    /// What goes out with the next statement that waits for its answer.
    ahead: StatementsAhead,
    only_reads: bool,
    answer_timeout: Duration,
    is_broken: bool,
    /// How often an answer was waited for.
    round_trips: u64,
}

impl PostgresConnection {
    pub(crate) fn open(options: &PostgresOptions) -> DbResult<PostgresConnection> {
        let mut address = parse_url(&options.url)?;
        let timeout_ms = options.statement_timeout.as_millis();
        // Read-only unless a transaction says otherwise: a statement whose `begin` failed in front
        // of it would else be committed alone. Without sequential scans: a plan that was made when a
        // table was nearly empty is kept, and the sale fills the table within seconds.
        address.set_options(&format!(
            "-c search_path={} -c statement_timeout={timeout_ms} -c lock_timeout={timeout_ms} \
             -c idle_in_transaction_session_timeout={timeout_ms} \
             -c default_transaction_read_only=on -c enable_seqscan=off -c jit=off",
            options.schema
        ));
        PostgresConnection::connect(&address, options.statement_timeout)
    }

    /// Connects and refuses a server that may forget acknowledged commits.
    pub(crate) fn connect(
        address: &PostgresServerAddress,
        statement_timeout: Duration,
    ) -> DbResult<PostgresConnection> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StorageError::Unavailable(error.to_string()))?;
        let client = runtime.block_on(address.connect()).map_err(ConnectFailure::into_error)?;
        let mut connection = PostgresConnection {
            runtime,
            client,
            statements: HashMap::new(),
            ahead: StatementsAhead::default(),
            only_reads: false,
            answer_timeout: statement_timeout + ANSWER_MARGIN,
            is_broken: false,
            round_trips: 0,
        };
        connection.require_safe_settings()?;
        Ok(connection)
    }

    /// Whether a server answers, be it with a refusal. The error says why nobody does.
    pub(crate) fn reach(url: &str) -> DbResult<()> {
        let address = parse_url(url)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StorageError::Unavailable(error.to_string()))?;
        match runtime.block_on(address.connect()) {
            Ok(_connected) => Ok(()),
            Err(failure) if failure.is_refused => Ok(()),
            Err(failure) => Err(failure.into_error()),
        }
    }

    /// Whether it must be given up: closed by the other side, silent, or in an unknown state.
    pub(crate) fn is_unusable(&self) -> bool {
        self.is_broken || self.client.is_closed()
    }

    /// Whether statements were not sent yet.
    pub(crate) fn has_statements_ahead(&self) -> bool {
        self.ahead.has_statements()
    }

    /// How often an answer was waited for since this was last asked.
    pub(crate) fn take_round_trips(&mut self) -> u64 {
        std::mem::take(&mut self.round_trips)
    }

    /// Begins with the first statement. A reader sees one moment for all of its statements.
    pub(crate) fn begin(&mut self, read_only: bool) {
        self.only_reads = read_only;
        self.ahead.begin(match read_only {
            true => "begin isolation level repeatable read, read only",
            false => BEGIN_WRITE,
        });
    }

    /// Commits, together with the statements that were not sent yet. If one of them fails, nothing
    /// is committed: the server takes the commit of a failed transaction for a rollback.
    pub(crate) fn commit(&mut self) -> DbResult<()> {
        assert!(!self.ahead.is_checked(), "rows are counted before the commit");
        match self.ahead.is_unbegun() {
            true => {
                self.ahead.clear();
                Ok(())
            }
            false => self.end("commit"),
        }
    }

    /// Ends a transaction that has only read. Nobody needs the answer, so nobody waits for it; the
    /// next statement would be told of a lost connection.
    pub(crate) fn end_read(&mut self) {
        let is_begun = !self.ahead.has_begin();
        self.ahead.clear();
        if is_begun {
            let mut commit = std::pin::pin!(self.client.batch_execute("commit"));
            self.runtime.block_on(async {
                let is_sent = std::future::poll_fn(|context| {
                    std::task::Poll::Ready(commit.as_mut().poll(context).is_pending())
                });
                // The task of the connection writes it when it is its turn.
                if is_sent.await {
                    tokio::task::yield_now().await;
                }
            });
        }
    }

    /// A transaction without statements was never begun.
    pub(crate) fn roll_back(&mut self) -> DbResult<()> {
        let is_unbegun = self.ahead.has_begin();
        self.ahead.clear();
        if is_unbegun { Ok(()) } else { self.end("rollback") }
    }

    fn end(&mut self, sql: &str) -> DbResult<()> {
        let ahead = self.ahead.take();
        let work = ahead.then(&self.client, self.client.batch_execute(sql), sql);
        let ended = answer(&self.runtime, self.answer_timeout, work);
        // Otherwise it is not known whether the transaction is over, and the next closure must not
        // be in it.
        let is_over = match &ended {
            ServerAnswer::Given(()) => true,
            ServerAnswer::Failed(failed) => failed.is_last_done,
            ServerAnswer::Missing => false,
        };
        let ended = self.settle(ended);
        self.is_broken |= !is_over;
        ended
    }

    /// Marks the place to which [`PostgresConnection::roll_back_to_savepoint`] goes back.
    pub(crate) fn savepoint(&mut self) {
        self.ahead.push_plain("savepoint member");
    }

    pub(crate) fn release_savepoint(&mut self) {
        self.ahead.push_plain("release savepoint member");
    }

    /// What was not sent yet, the savepoint included, need not be undone.
    pub(crate) fn roll_back_to_savepoint(&mut self) {
        if !self.ahead.remove_from("savepoint member") {
            self.ahead.push_plain("rollback to savepoint member");
            self.release_savepoint();
        }
    }

    /// Sends what was not sent yet, and waits for the answers.
    pub(crate) fn flush(&mut self) -> DbResult<()> {
        if !self.ahead.has_statements() {
            return Ok(());
        }
        let ahead = self.ahead.take();
        let work = ahead.then(&self.client, std::future::ready(Ok(())), "");
        let done = answer(&self.runtime, self.answer_timeout, work);
        self.settle(done)
    }

    /// Looks at the statements that must touch a certain number of rows, before a commit.
    pub(crate) fn flush_checked(&mut self) -> DbResult<()> {
        if self.ahead.is_checked() { self.flush() } else { Ok(()) }
    }

    /// Runs statements as they are, without parameters.
    pub(crate) fn run_plain(&mut self, sql: &str) -> DbResult<()> {
        let work = StatementsAhead::default();
        let work = work.then(&self.client, self.client.batch_execute(sql), sql);
        let done = answer(&self.runtime, self.answer_timeout, work);
        self.settle(done)
    }

    /// Explains a failure and remembers what it means for the connection.
    fn settle<T>(&mut self, done: ServerAnswer<T>) -> DbResult<T> {
        self.round_trips += 1;
        let FailedStatement { cause, sql, .. } = match done {
            ServerAnswer::Given(value) => return Ok(value),
            ServerAnswer::Failed(failed) => failed,
            ServerAnswer::Missing => {
                self.is_broken = true;
                return Err(StorageError::Unavailable("PostgreSQL has fallen silent".to_owned()));
            }
        };
        let error = match cause {
            StatementFailure::Refused(error) => error,
            StatementFailure::WrongRows { expected, touched } => {
                let message = format!("{expected} rows were expected, and {touched} were touched");
                return Err(StorageError::Statement { message, sql });
            }
        };
        if is_stale_statement(&error) {
            self.statements.clear();
        }
        let writes_in_a_read =
            self.only_reads && error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION);
        let error = match explain(&error, &sql) {
            StorageError::Unavailable(message) if writes_in_a_read => {
                StorageError::Statement { message, sql }
            }
            error => error,
        };
        self.is_broken |= matches!(error, StorageError::Unavailable(_));
        Err(error)
    }

    pub(crate) fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> DbResult<u64> {
        let statement = self.prepare(sql)?;
        let ahead = self.ahead.take();
        let (client, params) = (&self.client, as_parameters(params));
        let work = ahead.then(client, client.execute(&statement, &params), sql);
        let done = answer(&self.runtime, self.answer_timeout, work);
        self.settle(done)
    }

    /// Runs a statement with the next one that waits for its answer, or with the commit.
    pub(crate) fn execute_later(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        expected: Option<u64>,
    ) -> DbResult<()> {
        let statement = self.prepare(sql)?;
        self.ahead.push(statement, sql, params, expected);
        if self.ahead.is_full() { self.flush() } else { Ok(()) }
    }

    pub(crate) fn query(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        take: &mut dyn FnMut(&Row<'_>) -> DbResult<()>,
    ) -> DbResult<()> {
        let statement = self.prepare(sql)?;
        let ahead = self.ahead.take();
        let (client, params) = (&self.client, as_parameters(params));
        let work = ahead.then(client, client.query(&statement, &params), sql);
        let rows = answer(&self.runtime, self.answer_timeout, work);
        for row in self.settle(rows)? {
            take(&Row::of_postgres(&row))?;
        }
        Ok(())
    }

    /// Runs a `copy … from stdin binary` with rows until there are no more. It may take hours.
    pub(crate) fn copy_in<V: ToSql + Sync>(
        &mut self,
        sql: &str,
        types: &[Type],
        mut next_row: impl FnMut() -> DbResult<Option<Vec<V>>>,
    ) -> DbResult<u64> {
        assert!(!self.ahead.has_statements(), "nothing waits to be sent");
        let client = &self.client;
        let copied = self.runtime.block_on(async {
            let refused = |error: tokio_postgres::Error| explain(&error, sql);
            let sink = client.copy_in(sql).await.map_err(refused)?;
            let mut writer = std::pin::pin!(BinaryCopyInWriter::new(sink, types));
            while let Some(row) = next_row()? {
                let row = as_parameters(&row);
                writer.as_mut().write(&row).await.map_err(refused)?;
            }
            writer.finish().await.map_err(refused)
        });
        // What came of a broken copy is undone with its transaction.
        self.is_broken |= copied.is_err();
        copied
    }

    fn prepare(&mut self, sql: &str) -> DbResult<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        // A statement that cannot be prepared ends the transaction, so that must have begun.
        let ahead = self.ahead.take();
        let work = ahead.then(&self.client, self.client.prepare(sql), sql);
        let prepared = answer(&self.runtime, self.answer_timeout, work);
        let statement = self.settle(prepared)?;
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
        let work = StatementsAhead::default();
        let work = work.then(&self.client, self.client.query_one(sql, &[]), sql);
        let row = answer(&self.runtime, self.answer_timeout, work);
        let row = self.settle(row)?;
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
    Failed(FailedStatement),
    /// Nothing, although the server's own limit is long over.
    Missing,
}

fn answer<T>(
    runtime: &Runtime,
    limit: Duration,
    work: impl Future<Output = Result<T, FailedStatement>>,
) -> ServerAnswer<T> {
    match runtime.block_on(async { tokio::time::timeout(limit, work).await }) {
        Ok(Ok(value)) => ServerAnswer::Given(value),
        Ok(Err(failed)) => ServerAnswer::Failed(failed),
        Err(_) => ServerAnswer::Missing,
    }
}

fn as_parameters<V: ToSql + Sync>(params: &[V]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Reads a connection URL.
pub(crate) fn parse_url(url: &str) -> DbResult<PostgresServerAddress> {
    PostgresServerAddress::parse(url)
        .map_err(|error| StorageError::Unavailable(format!("the database URL is wrong: {error}")))
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
        // PostgreSQL has no code of its own for a limit of the size of files.
        &SqlState::INTERNAL_ERROR if db.message().ends_with("File too large") => {
            StorageError::DiskFull
        }
        // So a standby refuses `begin read write`.
        &SqlState::FEATURE_NOT_SUPPORTED if sql == BEGIN_WRITE => {
            StorageError::Unavailable(db.message().to_owned())
        }
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
pub(super) fn is_passing(code: &SqlState) -> bool {
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
