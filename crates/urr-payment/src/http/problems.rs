//! What is wrong with payments at the moment.

use std::time::Duration;

use urr_contracts::internal::problems::{ListPaymentProblems, Problem, ProblemCode, ProblemList};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::ApiError;
use urr_storage::{DbResult, StorageError, Tx, Value, params};

use crate::PaymentService;

/// A charge usually takes seconds.
const UNCLEAR_AFTER: Duration = Duration::from_mins(1);
/// Alarms are shown for so long.
const ALARM_SHOWN: Duration = Duration::from_hours(1);

pub async fn list_payment_problems(
    payments: PaymentService,
    ListPaymentProblems { organiser_id }: ListPaymentProblems,
    _: CallContext,
) -> Result<ProblemList, ApiError> {
    let now = payments.0.clock.now();
    let read = move |tx: &mut Tx<'_>| {
        let mut problems = event_problems(tx, organiser_id, now)?;
        if organiser_id.is_none() {
            problems.extend(audit_problems(tx)?);
        }
        Ok::<_, StorageError>(problems)
    };
    let mut problems = payments.0.db.read(read).await?;
    if organiser_id.is_none() {
        let open = payments.0.tickets.open_breaker();
        problems.extend(open.map(|target| Problem::breaker("payment", target)));
        problems.extend(payments.0.metrics.recent_alarms(ALARM_SHOWN).map(alarm(now)));
    }
    problems.retain(|problem| problem.count > 0);
    Ok(ProblemList { problems })
}

fn alarm(now: Timestamp) -> impl Fn((&'static str, u64, Duration)) -> Problem {
    move |(code, count, ago)| Problem {
        since: Some(now - ago),
        subject: Some(code.to_owned()),
        ..Problem::new(ProblemCode::PaymentAlarm, count)
    }
}

/// Unclear payments and declined refunds of an organiser's events, or of all.
fn event_problems(
    tx: &mut Tx<'_>,
    organiser_id: Option<Uuid>,
    now: Timestamp,
) -> DbResult<Vec<Problem>> {
    let own = "($1 or p.event_id in \
               (select event_id from event_organisers where organiser_id = $2))";
    let unclear = format!(
        "select count(*) as count, min(p.charge_sent_at) as since from payments as p \
         where p.status = 'unknown' and p.charge_sent_at < $3 and {own}"
    );
    let declined = format!(
        "select count(*) as count, min(r.created_at) as since from refunds as r \
         join payments as p on p.id = r.payment_id \
         where r.status = 'requested' and r.declines > 0 and {own}"
    );
    let (is_all, id) = (organiser_id.is_none(), organiser_id.unwrap_or(Uuid::nil()));
    let before = now - UNCLEAR_AFTER;
    Ok(vec![
        counted(tx, ProblemCode::PaymentsUnclear, &unclear, params![is_all, id, before])?,
        counted(tx, ProblemCode::RefundsDeclined, &declined, params![is_all, id])?,
    ])
}

/// What the periodic audits have found and not found explained since.
fn audit_problems(tx: &mut Tx<'_>) -> DbResult<Vec<Problem>> {
    let ledger = "select count(*) as count, min(found_at) as since from unexplained_payments";
    let provider = "select count(*) as count, min(found_at) as since from differing_orders";
    Ok(vec![
        counted(tx, ProblemCode::LedgerUnexplained, ledger, &[])?,
        counted(tx, ProblemCode::ProviderDiffers, provider, &[])?,
    ])
}

fn counted(
    tx: &mut Tx<'_>,
    code: ProblemCode,
    sql: &str,
    values: &[Value<'_>],
) -> DbResult<Problem> {
    tx.query_one(sql, values, |row| {
        let count = row.get::<i64>("count")?.unsigned_abs();
        Ok(Problem { since: row.get("since")?, ..Problem::new(code, count) })
    })
}
