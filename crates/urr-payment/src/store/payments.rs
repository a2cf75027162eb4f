//! Payments in SQL. Every change is a compare-and-set on what is to be done next.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{Row, StorageError, Tx, params};

use crate::domain::payment::{
    PayableKind, PayableRef, Payment, PaymentId, PaymentStatus, SagaStep,
};
use crate::provider::ProviderPayment;

pub(super) const COLUMNS: &str = "id, order_id, user_id, payable_kind, payable_id, event_id, \
    reservation_id, fencing_token, order_name, amount, booking_fee, currency, provider, \
    payment_key, provider_key, method, status, step, attempts, charge_sent_at, last_charge_at, \
    failure_code, wait_code, cancel_reason, approved_at, receipt_url, charged_amount, \
    refunded_amount, correlation_id, cause_event_id, confirmed_event_id, created_at, \
    updated_at";

pub(super) fn read(row: &Row<'_>) -> Result<Payment, StorageError> {
    let (kind, status): (String, String) = (row.get("payable_kind")?, row.get("status")?);
    let step: Option<String> = row.get("step")?;
    let known = "only known names are stored";
    Ok(Payment {
        id: PaymentId(row.get("id")?),
        order_id: row.get("order_id")?,
        user_id: row.get("user_id")?,
        payable: PayableRef {
            kind: PayableKind::parse(&kind).expect(known),
            id: row.get("payable_id")?,
        },
        event_id: row.get("event_id")?,
        reservation_id: row.get("reservation_id")?,
        fencing_token: row.get("fencing_token")?,
        order_name: row.get("order_name")?,
        amount: row.get("amount")?,
        booking_fee: row.get("booking_fee")?,
        currency: row.get("currency")?,
        provider: row.get("provider")?,
        payment_key: row.get("payment_key")?,
        provider_key: row.get("provider_key")?,
        method: row.get("method")?,
        status: PaymentStatus::parse(&status).expect(known),
        step: step.map(|step| SagaStep::parse(&step).expect(known)),
        attempts: row.get("attempts")?,
        charge_sent_at: row.get("charge_sent_at")?,
        last_charge_at: row.get("last_charge_at")?,
        failure_code: row.get("failure_code")?,
        wait_code: row.get("wait_code")?,
        cancel_reason: row.get("cancel_reason")?,
        approved_at: row.get("approved_at")?,
        receipt_url: row.get("receipt_url")?,
        charged: row.get("charged_amount")?,
        refunded: row.get("refunded_amount")?,
        correlation_id: row.get("correlation_id")?,
        cause_event_id: row.get("cause_event_id")?,
        confirmed_event_id: row.get("confirmed_event_id")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

/// An order whose number is taken is not made a second time: the answer is whether it was made.
pub fn payment_insert(tx: &mut Tx<'_>, payment: &Payment) -> Result<bool, StorageError> {
    let p = payment;
    let rows = tx.execute(
        "insert into payments (id, order_id, user_id, payable_kind, payable_id, event_id, \
         fencing_token, order_name, amount, booking_fee, currency, provider, status, attempts, \
         charged_amount, refunded_amount, correlation_id, cause_event_id, created_at, updated_at, \
         reservation_id) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, 0, 0, $14, $15, $16, \
         $16, $17) \
         on conflict (order_id) do nothing",
        params![
            p.id.0,
            p.order_id,
            p.user_id,
            p.payable.kind.name(),
            p.payable.id,
            p.event_id,
            p.fencing_token,
            p.order_name,
            p.amount,
            p.booking_fee,
            p.currency,
            p.provider,
            p.status.name(),
            p.correlation_id,
            p.cause_event_id,
            p.created_at,
            p.reservation_id,
        ],
    )?;
    Ok(rows == 1)
}

pub fn payment_find(tx: &mut Tx<'_>, id: PaymentId) -> Result<Option<Payment>, StorageError> {
    tx.query_opt(&format!("select {COLUMNS} from payments where id = $1"), params![id.0], read)
}

pub fn payment_lock(tx: &mut Tx<'_>, id: PaymentId) -> Result<Option<Payment>, StorageError> {
    let sql = format!("select {COLUMNS} from payments where id = $1 for update");
    tx.query_opt(&sql, params![id.0], read)
}

pub fn payment_find_by_order(
    tx: &mut Tx<'_>,
    order_id: &str,
) -> Result<Option<Payment>, StorageError> {
    let sql = format!("select {COLUMNS} from payments where order_id = $1");
    tx.query_opt(&sql, params![order_id], read)
}

pub fn payment_lock_by_order(
    tx: &mut Tx<'_>,
    order_id: &str,
) -> Result<Option<Payment>, StorageError> {
    let sql = format!("select {COLUMNS} from payments where order_id = $1 for update");
    tx.query_opt(&sql, params![order_id], read)
}

/// The one of a user with what the provider calls it: the one that was paid, if several were begun.
pub fn payment_find_by_key(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    payment_key: &str,
) -> Result<Option<Payment>, StorageError> {
    let sql = format!(
        "select {COLUMNS} from payments where user_id = $1 and payment_key = $2 \
         order by case when status in ('confirmed', 'refunding', 'refunded') then 0 else 1 end, \
         id desc limit 1"
    );
    tx.query_opt(&sql, params![user_id, payment_key], read)
}

/// An order of the user's own that nobody has paid yet, of the very hold (M-7).
pub fn payment_find_pending(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    payable: PayableRef,
) -> Result<Option<Payment>, StorageError> {
    let sql = format!(
        "select {COLUMNS} from payments where payable_id = $1 and payable_kind = $2 \
         and user_id = $3 and status = 'pending' order by id desc limit 1"
    );
    tx.query_opt(&sql, params![payable.id, payable.kind.name(), user_id], read)
}

/// Another payment of the same payable that is under way or stands. A membership is paid anew for
/// each term.
pub fn payment_find_rival(
    tx: &mut Tx<'_>,
    payment: &Payment,
) -> Result<Option<PaymentStatus>, StorageError> {
    let rival = tx.query_opt(
        "select status from payments where payable_kind = $1 and payable_id = $2 and id <> $3 \
         and status in ('approving', 'unknown', 'confirmed') \
         and (payable_kind <> 'membership' or fencing_token = $4) limit 1",
        params![
            payment.payable.kind.name(),
            payment.payable.id,
            payment.id.0,
            payment.fencing_token,
        ],
        |row| row.get::<String>("status"),
    )?;
    Ok(rival.map(|status| PaymentStatus::parse(&status).expect("only known names are stored")))
}

/// A command is done once per order, action and key. The answer is whether this is the first time.
pub fn command_insert(
    tx: &mut Tx<'_>,
    order_id: &str,
    action: CommandAction,
    key: &str,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "insert into payment_idempotency (order_id, action, idempotency_key, created_at) \
         values ($1, $2, $3, $4) \
         on conflict (order_id, action, idempotency_key) do nothing",
        params![order_id, action.name(), key, now],
    )?;
    Ok(rows == 1)
}

/// What can be commanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandAction {
    Create,
    Approve,
    Refund,
}

impl CommandAction {
    fn name(self) -> &'static str {
        match self {
            CommandAction::Create => "CREATE",
            CommandAction::Approve => "APPROVE",
            CommandAction::Refund => "REFUND",
        }
    }
}

/// Where a payment was, so that only one of two who move it does.
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
}

/// Where it goes. With a step, whoever moves it takes that step as well: others wait until
/// `claimed_until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransitionTo {
    pub status: PaymentStatus,
    pub step: Option<SagaStep>,
    pub claimed_until: Option<Timestamp>,
    /// When somebody attempts who has no claim.
    pub attempt_at: Timestamp,
    pub now: Timestamp,
}

/// Moves a payment. False: it was not there any more.
pub fn payment_transition(
    tx: &mut Tx<'_>,
    from: TransitionFrom,
    to: TransitionTo,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update payments set status = $4, step = $5, claimed_until = $6, next_attempt_at = $7, \
         attempts = 0, wait_code = null, updated_at = $8 \
         where id = $1 and status = $2 and coalesce(step, '') = $3",
        params![
            from.id.0,
            from.status.name(),
            from.step.map_or("", SagaStep::name),
            to.status.name(),
            to.step.map(SagaStep::name),
            to.step.and(to.claimed_until),
            to.step.map(|_| to.attempt_at),
            to.now,
        ],
    )?;
    Ok(rows == 1)
}

/// It could not get on: somebody attempts again later.
pub fn payment_retry_at(
    tx: &mut Tx<'_>,
    from: TransitionFrom,
    attempt_at: Timestamp,
    code: Option<&str>,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update payments set claimed_until = null, next_attempt_at = $4, attempts = attempts + 1, \
         wait_code = coalesce($5, wait_code) \
         where id = $1 and status = $2 and coalesce(step, '') = $3",
        params![
            from.id.0,
            from.status.name(),
            from.step.map_or("", SagaStep::name),
            attempt_at,
            code,
        ],
    )?;
    Ok(rows == 1)
}

/// Takes the right to work on a payment that has something to do and that nobody works on.
pub fn payment_claim(
    tx: &mut Tx<'_>,
    id: PaymentId,
    now: Timestamp,
    claim: Duration,
) -> Result<Option<Payment>, StorageError> {
    let rows = tx.execute(
        "update payments set claimed_until = $2 \
         where id = $1 and step is not null and (claimed_until is null or claimed_until <= $3)",
        params![id.0, now + claim, now],
    )?;
    if rows == 0 { Ok(None) } else { payment_find(tx, id) }
}

/// What somebody has to go on with. Neither sort waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolverLane {
    Purchases,
    /// Money that goes back.
    Refunds,
}

impl ResolverLane {
    pub const ALL: [ResolverLane; 2] = [ResolverLane::Purchases, ResolverLane::Refunds];

    /// As the index of each has it: another wording is not found there.
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

/// Those of a lane that have something to do now, the oldest first.
pub fn payments_due(
    tx: &mut Tx<'_>,
    lane: ResolverLane,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PaymentId>, StorageError> {
    tx.query(&lane.due(), params![now, limit], |row| Ok(PaymentId(row.get("id")?)))
}

/// How many have something to do now, up to a limit for each lane.
pub fn payments_due_count(
    tx: &mut Tx<'_>,
    now: Timestamp,
    limit: u32,
) -> Result<i64, StorageError> {
    let mut due = 0;
    for lane in ResolverLane::ALL {
        let sql = format!("select count(*) as due from ({}) as due_now", lane.due());
        due += tx.query_one(&sql, params![now, limit], |row| row.get::<i64>("due"))?;
    }
    Ok(due)
}

/// It broke while somebody was at it: somebody attempts again later.
pub fn payment_postpone(
    tx: &mut Tx<'_>,
    id: PaymentId,
    attempt_at: Timestamp,
    code: &str,
) -> Result<(), StorageError> {
    tx.execute(
        "update payments set claimed_until = null, next_attempt_at = $2, attempts = attempts + 1, \
         wait_code = $3 where id = $1 and step is not null",
        params![id.0, attempt_at, code],
    )?;
    Ok(())
}

pub(super) const STUCK: &str =
    "select count(*) as stuck from payments where step is not null and updated_at < $1";

/// How many have had the same thing to do since then.
pub fn payments_stuck(tx: &mut Tx<'_>, since: Timestamp) -> Result<i64, StorageError> {
    tx.query_one(STUCK, params![since], |row| row.get("stuck"))
}

/// Those that have had the same thing to do since then, the oldest first.
pub fn payments_stuck_list(
    tx: &mut Tx<'_>,
    since: Timestamp,
    limit: u32,
) -> Result<Vec<Payment>, StorageError> {
    let sql = format!(
        "select {COLUMNS} from payments where step is not null and updated_at < $1 \
         order by updated_at, id limit $2"
    );
    tx.query(&sql, params![since, limit], read)
}

/// Which of what is paid for: the ids after one, up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayableRange {
    pub after: Uuid,
    pub until: Uuid,
}

/// Payments of reservations that were taken at some time or are under way, in the order of the
/// reservations.
pub fn payments_of_reservations(
    tx: &mut Tx<'_>,
    span: PayableRange,
    limit: u32,
) -> Result<Vec<Payment>, StorageError> {
    let sql = format!(
        "select {COLUMNS} from payments where payable_id > $1 and payable_id <= $2 \
         and payable_kind = 'reservation' \
         and (status in ('confirmed', 'refunding', 'refunded') or step is not null) \
         order by payable_id, id limit $3"
    );
    tx.query(&sql, params![span.after, span.until, limit], read)
}

pub(super) const CHARGED: &str = "select order_id, charged_amount from payments \
    where provider = $1 and approved_at >= $2 and approved_at < $3 and charged_amount > 0 \
    order by order_id";

/// Orders that a provider has charged in a span of time, as far as we know.
pub fn payments_charged(
    tx: &mut Tx<'_>,
    provider: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(String, Won)>, StorageError> {
    tx.query(CHARGED, params![provider, from, to], |row| {
        Ok((row.get("order_id")?, row.get("charged_amount")?))
    })
}

/// Somebody has reason to believe that a look is worth while, by then at the latest.
pub fn payment_attempt_by(
    tx: &mut Tx<'_>,
    id: PaymentId,
    at: Timestamp,
) -> Result<(), StorageError> {
    tx.execute(
        "update payments set next_attempt_at = $2 \
         where id = $1 and step is not null and next_attempt_at > $2",
        params![id.0, at],
    )?;
    Ok(())
}

/// When somebody attempts at a payment; none if nobody does.
pub fn payment_next_attempt(
    tx: &mut Tx<'_>,
    id: PaymentId,
) -> Result<Option<Timestamp>, StorageError> {
    let sql = "select next_attempt_at from payments where id = $1 and step is not null";
    Ok(tx.query_opt(sql, params![id.0], |row| row.get("next_attempt_at"))?.flatten())
}

/// What the buyer says, and the flow in which they say it.
pub fn approval_set(
    tx: &mut Tx<'_>,
    id: PaymentId,
    payment_key: &str,
    correlation_id: Uuid,
) -> Result<(), StorageError> {
    tx.execute(
        "update payments set payment_key = $2, correlation_id = $3 where id = $1",
        params![id.0, payment_key, correlation_id],
    )?;
    Ok(())
}

/// From now on only the provider knows whether it was charged.
pub fn charge_sent(tx: &mut Tx<'_>, id: PaymentId, now: Timestamp) -> Result<(), StorageError> {
    tx.execute(
        "update payments set charge_sent_at = coalesce(charge_sent_at, $2), last_charge_at = $2 \
         where id = $1",
        params![id.0, now],
    )?;
    Ok(())
}

pub fn failure_set(tx: &mut Tx<'_>, id: PaymentId, code: &str) -> Result<(), StorageError> {
    tx.execute("update payments set failure_code = $2 where id = $1", params![id.0, code])?;
    Ok(())
}

/// Why the buyer cancels what is paid.
pub fn cancel_reason_set(tx: &mut Tx<'_>, id: PaymentId, reason: &str) -> Result<(), StorageError> {
    tx.execute(
        "update payments set cancel_reason = $2 where id = $1 and status = 'confirmed'",
        params![id.0, reason],
    )?;
    Ok(())
}

/// What the provider says of the charge. Without a name of its own it may be another order's.
pub fn charge_set(
    tx: &mut Tx<'_>,
    id: PaymentId,
    paid: &ProviderPayment,
    provider_key: Option<&str>,
    confirmed_event_id: Option<Uuid>,
) -> Result<(), StorageError> {
    tx.execute(
        "update payments set payment_key = $2, method = $3, approved_at = $4, receipt_url = $5, \
         charged_amount = $6, confirmed_event_id = $7, provider_key = $8, failure_code = null \
         where id = $1",
        params![
            id.0,
            paid.payment_key,
            paid.method,
            paid.approved_at,
            paid.receipt_url,
            paid.amount,
            confirmed_event_id,
            provider_key,
        ],
    )?;
    Ok(())
}

pub fn refunded_add(tx: &mut Tx<'_>, id: PaymentId, amount: Won) -> Result<(), StorageError> {
    tx.execute(
        "update payments set refunded_amount = refunded_amount + $2 where id = $1",
        params![id.0, amount],
    )?;
    Ok(())
}
