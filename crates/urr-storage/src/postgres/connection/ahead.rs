//! Statements that travel ahead of another one: nobody waits for their answers in between.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Error, Statement};
use urr_kernel::{Timestamp, Uuid};

use crate::Value;

/// More statements than this are not kept back: the server can begin to work on them.
const AHEAD_MAX: usize = 64;

/// Statements that were not sent yet, in their order.
#[derive(Default)]
pub(super) struct StatementsAhead {
    begin: Option<&'static str>,
    rest: Vec<AheadStatement>,
}

enum AheadStatement {
    Plain(&'static str),
    Prepared(PreparedAhead),
}

struct PreparedAhead {
    statement: Statement,
    sql: String,
    params: Vec<OwnedValue>,
    /// How many rows it must touch, if that matters.
    expected: Option<u64>,
}

/// The first statement that failed.
#[derive(Debug)]
pub(super) struct FailedStatement {
    pub cause: StatementFailure,
    pub sql: String,
    /// Whether the last statement was answered well all the same. A commit is: as a rollback.
    pub is_last_done: bool,
}

#[derive(Debug)]
pub(super) enum StatementFailure {
    Refused(Error),
    WrongRows { expected: u64, touched: u64 },
}

type AheadAnswer<'a> = Pin<Box<dyn Future<Output = Result<u64, Error>> + 'a>>;

impl StatementsAhead {
    pub fn begin(&mut self, sql: &'static str) {
        self.clear();
        self.begin = Some(sql);
    }

    pub fn push_plain(&mut self, sql: &'static str) {
        self.rest.push(AheadStatement::Plain(sql));
    }

    pub fn push(
        &mut self,
        statement: Statement,
        sql: &str,
        params: &[Value<'_>],
        expected: Option<u64>,
    ) {
        let params = params.iter().map(OwnedValue::from).collect();
        let prepared = PreparedAhead { statement, sql: sql.to_owned(), params, expected };
        self.rest.push(AheadStatement::Prepared(prepared));
    }

    pub fn take(&mut self) -> StatementsAhead {
        std::mem::take(self)
    }

    pub fn clear(&mut self) {
        *self = StatementsAhead::default();
    }

    /// Forgets this plain statement, if it was not sent yet, and all after it.
    pub fn remove_from(&mut self, sql: &str) -> bool {
        let is_it =
            |one: &AheadStatement| matches!(one, AheadStatement::Plain(text) if *text == sql);
        let position = self.rest.iter().rposition(is_it);
        position.inspect(|at| self.rest.truncate(*at)).is_some()
    }

    pub fn has_begin(&self) -> bool {
        self.begin.is_some()
    }

    pub fn has_statements(&self) -> bool {
        self.rest.iter().any(|one| matches!(one, AheadStatement::Prepared(_)))
    }

    /// Whether the transaction has had no statement at all.
    pub fn is_unbegun(&self) -> bool {
        self.has_begin() && !self.has_statements()
    }

    /// Whether the rows of a statement are to be counted.
    pub fn is_checked(&self) -> bool {
        let is_checked = |one: &AheadStatement| {
            matches!(one, AheadStatement::Prepared(PreparedAhead { expected: Some(_), .. }))
        };
        self.rest.iter().any(is_checked)
    }

    pub fn is_full(&self) -> bool {
        self.rest.len() >= AHEAD_MAX
    }

    /// Sends these statements and the last one behind them, and waits for all answers.
    pub async fn then<T>(
        self,
        client: &Client,
        last: impl Future<Output = Result<T, Error>>,
        last_sql: &str,
    ) -> Result<T, FailedStatement> {
        if self.begin.is_none() && self.rest.is_empty() {
            return last.await.map_err(|error| FailedStatement::refused(error, last_sql, false));
        }
        let begin: Option<AheadAnswer<'_>> =
            self.begin.map(|sql| -> AheadAnswer<'_> { Box::pin(run_plain(client, sql)) });
        let rest = self.rest.iter().map(|one| one.run(client));
        let (ahead, last) = in_order(begin.into_iter().chain(rest).collect(), last).await;
        let texts = self.begin.iter().copied().chain(self.rest.iter().map(AheadStatement::sql));
        let expected = self.begin.iter().map(|_| None);
        let expected = expected.chain(self.rest.iter().map(AheadStatement::expected));
        let is_last_done = matches!(last, Some(Ok(_)));
        for ((answer, sql), expected) in ahead.into_iter().zip(texts).zip(expected) {
            match (answer, expected) {
                (Err(error), _) => {
                    return Err(FailedStatement::refused(error, sql, is_last_done));
                }
                (Ok(touched), Some(expected)) if touched != expected => {
                    let cause = StatementFailure::WrongRows { expected, touched };
                    return Err(FailedStatement { cause, sql: sql.to_owned(), is_last_done });
                }
                _ => {}
            }
        }
        let last = last.expect("it is sent unless one ahead of it has failed");
        last.map_err(|error| FailedStatement::refused(error, last_sql, false))
    }
}

impl FailedStatement {
    fn refused(error: Error, sql: &str, is_last_done: bool) -> FailedStatement {
        let cause = StatementFailure::Refused(error);
        FailedStatement { cause, sql: sql.to_owned(), is_last_done }
    }
}

impl AheadStatement {
    fn run<'a>(&'a self, client: &'a Client) -> AheadAnswer<'a> {
        match self {
            AheadStatement::Plain(sql) => Box::pin(run_plain(client, sql)),
            AheadStatement::Prepared(PreparedAhead { statement, params, .. }) => {
                Box::pin(async move {
                    let params: Vec<&(dyn ToSql + Sync)> =
                        params.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
                    client.execute(statement, &params).await
                })
            }
        }
    }

    fn sql(&self) -> &str {
        match self {
            AheadStatement::Plain(sql) => sql,
            AheadStatement::Prepared(prepared) => &prepared.sql,
        }
    }

    fn expected(&self) -> Option<u64> {
        match self {
            AheadStatement::Plain(_) => None,
            AheadStatement::Prepared(prepared) => prepared.expected,
        }
    }
}

async fn run_plain(client: &Client, sql: &str) -> Result<u64, Error> {
    client.batch_execute(sql).await.map(|()| 0)
}

/// Sends all of them in this order, and waits for the answers. Each is put into the connection's
/// queue when it is first polled. One that cannot even be sent, because a parameter does not fit,
/// stops those behind it: a commit must not go out without what it commits.
async fn in_order<T>(
    mut ahead: Vec<AheadAnswer<'_>>,
    last: impl Future<Output = Result<T, Error>>,
) -> (Vec<Result<u64, Error>>, Option<Result<T, Error>>) {
    let mut answers: Vec<Option<Result<u64, Error>>> = Vec::with_capacity(ahead.len());
    let (mut last, mut last_answer) = (Box::pin(last), None);
    let mut is_stopped = false;
    poll_fn(|context| {
        for (position, future) in ahead.iter_mut().enumerate() {
            let is_first = position == answers.len();
            if is_first && is_stopped {
                break;
            }
            if is_first {
                answers.push(None);
            }
            if answers[position].is_none()
                && let Poll::Ready(done) = future.as_mut().poll(context)
            {
                is_stopped |= is_first && done.is_err();
                answers[position] = Some(done);
            }
        }
        if !is_stopped
            && last_answer.is_none()
            && let Poll::Ready(done) = last.as_mut().poll(context)
        {
            last_answer = Some(done);
        }
        let is_answered = answers.iter().all(Option::is_some);
        match is_answered && (is_stopped || last_answer.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    (answers.into_iter().flatten().collect(), last_answer)
}

/// A parameter that outlives the call which gave it.
#[derive(Debug)]
enum OwnedValue {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Uuid(Uuid),
    Time(Timestamp),
    Json(serde_json::Value),
}

impl From<&Value<'_>> for OwnedValue {
    fn from(value: &Value<'_>) -> OwnedValue {
        match *value {
            Value::Null => OwnedValue::Null,
            Value::Bool(value) => OwnedValue::Bool(value),
            Value::Int(value) => OwnedValue::Int(value),
            Value::Text(value) => OwnedValue::Text(value.to_owned()),
            Value::Bytes(value) => OwnedValue::Bytes(value.to_owned()),
            Value::Uuid(value) => OwnedValue::Uuid(value),
            Value::Time(value) => OwnedValue::Time(value),
            Value::Json(value) => OwnedValue::Json(value.clone()),
        }
    }
}

impl OwnedValue {
    fn borrow(&self) -> Value<'_> {
        match self {
            OwnedValue::Null => Value::Null,
            OwnedValue::Bool(value) => Value::Bool(*value),
            OwnedValue::Int(value) => Value::Int(*value),
            OwnedValue::Text(value) => Value::Text(value),
            OwnedValue::Bytes(value) => Value::Bytes(value),
            OwnedValue::Uuid(value) => Value::Uuid(*value),
            OwnedValue::Time(value) => Value::Time(*value),
            OwnedValue::Json(value) => Value::Json(value),
        }
    }
}

impl ToSql for OwnedValue {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.borrow().to_sql(ty, out)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
