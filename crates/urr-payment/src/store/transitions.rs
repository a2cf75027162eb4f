//! Where a payment is in its saga: transitions, claims, and what is due.
//!
//! Every change is a compare-and-set on status and step, so of two processes only one moves a
//! payment.

use std::time::Duration;

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Tx, params};

use super::payments::{COLUMNS, payment_get, read};
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep};

/// Where a payment is expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransitionFrom {
    pub id: PaymentId,
    pub status: PaymentStatus,
    pub step: Option<SagaStep>,
}

impl TransitionFrom {
    pub fn of(payment: &Payment) -> TransitionFrom {
        TransitionFrom { id: payment.id, status: payment.status, step: payment.step }
    }

    pub(super) fn step_name(&self) -> &'static str {
        self.step.map_or("", SagaStep::as_str)
    }
}

/// Where a payment goes. With `claimed_until`, the process that moves it takes the step as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransitionTo {
    pub status: PaymentStatus,
    pub step: Option<SagaStep>,
    pub claimed_until: Option<Timestamp>,
    /// When another process may take the step.
    pub attempt_at: Timestamp,
    pub now: Timestamp,
}

/// Moves a payment and returns it; none if it is no longer where it was expected.
pub fn payment_transition(
    tx: &mut Tx<'_>,
    from: TransitionFrom,
    to: TransitionTo,
) -> DbResult<Option<Payment>> {
    let sql = format!(
        "update payments set status = $4, step = $5, claimed_until = $6, next_attempt_at = $7, \
         attempts = 0, wait_code = null, updated_at = $8 \
         where id = $1 and status = $2 and coalesce(step, '') = $3 returning {COLUMNS}"
    );
    tx.query_opt(
        &sql,
        params![
            from.id,
            from.status,
            from.step_name(),
            to.status,
            to.step,
            to.step.and(to.claimed_until),
            to.step.map(|_| to.attempt_at),
            to.now,
        ],
        read,
    )
}

/// The step had no result: it is tried again then, unless the payment has moved.
pub fn payment_retry_at(
    tx: &mut Tx<'_>,
    from: TransitionFrom,
    attempt_at: Timestamp,
    code: Option<&str>,
) -> DbResult<Payment> {
    let sql = format!(
        "update payments set claimed_until = null, next_attempt_at = $4, attempts = attempts + 1, \
         wait_code = coalesce($5, wait_code) \
         where id = $1 and status = $2 and coalesce(step, '') = $3 returning {COLUMNS}"
    );
    let step = from.step_name();
    match tx.query_opt(&sql, params![from.id, from.status, step, attempt_at, code], read)? {
        Some(payment) => Ok(payment),
        None => payment_get(tx, from.id),
    }
}

/// The step broke: it is tried again then, whichever it is.
pub fn payment_postpone(
    tx: &mut Tx<'_>,
    id: PaymentId,
    attempt_at: Timestamp,
    code: &str,
) -> DbResult<()> {
    tx.execute(
        "update payments set claimed_until = null, next_attempt_at = $2, attempts = attempts + 1, \
         wait_code = $3 where id = $1 and step is not null",
        params![id, attempt_at, code],
    )?;
    Ok(())
}

/// Moves the next attempt forward to this time.
pub fn payment_attempt_by(tx: &mut Tx<'_>, id: PaymentId, at: Timestamp) -> DbResult<()> {
    tx.execute(
        "update payments set next_attempt_at = $2 \
         where id = $1 and step is not null and next_attempt_at > $2",
        params![id, at],
    )?;
    Ok(())
}

/// The time of the next attempt; none if the payment has no step left.
pub fn payment_next_attempt(tx: &mut Tx<'_>, id: PaymentId) -> DbResult<Option<Timestamp>> {
    let sql = "select next_attempt_at from payments where id = $1 and step is not null";
    Ok(tx.query_opt(sql, params![id], |row| row.get("next_attempt_at"))?.flatten())
}

/// Claims a payment that has a step left and that no process works on.
pub fn payment_claim(
    tx: &mut Tx<'_>,
    id: PaymentId,
    now: Timestamp,
    ttl: Duration,
) -> DbResult<Option<Payment>> {
    let sql = format!(
        "update payments set claimed_until = $2 where id = $1 and step is not null \
         and (claimed_until is null or claimed_until <= $3) returning {COLUMNS}"
    );
    tx.query_opt(&sql, params![id, now + ttl, now], read)
}

/// The resolver works on purchases and refunds side by side, so that neither waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolverLane {
    Purchases,
    Refunds,
}

impl ResolverLane {
    pub const ALL: [ResolverLane; 2] = [ResolverLane::Purchases, ResolverLane::Refunds];

    /// Word for word the condition of the lane's partial index, or the index is not used.
    fn steps(self) -> &'static str {
        match self {
            ResolverLane::Purchases => "step in ('pin', 'charge', 'query', 'deliver', 'unpin')",
            ResolverLane::Refunds => "step in ('refund', 'report')",
        }
    }

    pub(super) fn due(self) -> String {
        let steps = self.steps();
        format!(
            "select id from payments where {steps} and next_attempt_at <= $1 \
             and (claimed_until is null or claimed_until <= $1) \
             order by next_attempt_at, id limit $2"
        )
    }
}

/// The payments of a lane that are due, the oldest first.
pub fn payment_list_due(
    tx: &mut Tx<'_>,
    lane: ResolverLane,
    now: Timestamp,
    limit: u32,
) -> DbResult<Vec<PaymentId>> {
    tx.query(&lane.due(), params![now, limit], |row| row.get("id"))
}

/// How many payments are due, up to a limit for each lane.
pub fn payment_count_due(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<i64> {
    let mut due = 0;
    for lane in ResolverLane::ALL {
        let sql = format!("select count(*) as due from ({}) as due_now", lane.due());
        due += tx.query_one(&sql, params![now, limit], |row| row.get::<i64>("due"))?;
    }
    Ok(due)
}

pub(super) const STUCK: &str =
    "select count(*) as stuck from payments where step is not null and updated_at < $1";

/// How many payments have been at the same step since then.
pub fn payment_count_stuck(tx: &mut Tx<'_>, since: Timestamp) -> DbResult<i64> {
    tx.query_one(STUCK, params![since], |row| row.get("stuck"))
}

/// The payments that have been at the same step since then, the oldest first.
pub fn payment_list_stuck(tx: &mut Tx<'_>, since: Timestamp, limit: u32) -> DbResult<Vec<Payment>> {
    let sql = format!(
        "select {COLUMNS} from payments where step is not null and updated_at < $1 \
         order by updated_at, id limit $2"
    );
    tx.query(&sql, params![since, limit], read)
}
