//! Payments in SQL. Every change is a compare-and-set on what is to be done next.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{Row, StorageError, Tx, params};

use crate::domain::payment::{Payment, PaymentId, Status, Step, Target, TargetKind};
use crate::provider::ProviderPayment;

pub(super) const COLUMNS: &str = "id, order_id, user_id, target_type, target_id, event_id, \
    fencing_token, order_name, amount, booking_fee, currency, provider, payment_key, method, \
    status, step, looks, charge_sent_at, failure_code, approved_at, receipt_url, charged_amount, \
    refunded_amount, correlation_id, confirmed_event_id, created_at, updated_at";

pub(super) fn read(row: &Row<'_>) -> Result<Payment, StorageError> {
    let (kind, status): (String, String) = (row.get("target_type")?, row.get("status")?);
    let step: Option<String> = row.get("step")?;
    let known = "only known names are stored";
    Ok(Payment {
        id: PaymentId(row.get("id")?),
        order_id: row.get("order_id")?,
        user_id: row.get("user_id")?,
        target: Target { kind: TargetKind::parse(&kind).expect(known), id: row.get("target_id")? },
        event_id: row.get("event_id")?,
        fencing_token: row.get("fencing_token")?,
        order_name: row.get("order_name")?,
        amount: row.get("amount")?,
        booking_fee: row.get("booking_fee")?,
        currency: row.get("currency")?,
        provider: row.get("provider")?,
        payment_key: row.get("payment_key")?,
        method: row.get("method")?,
        status: Status::parse(&status).expect(known),
        step: step.map(|step| Step::parse(&step).expect(known)),
        looks: row.get("looks")?,
        charge_sent_at: row.get("charge_sent_at")?,
        failure_code: row.get("failure_code")?,
        approved_at: row.get("approved_at")?,
        receipt_url: row.get("receipt_url")?,
        charged: row.get("charged_amount")?,
        refunded: row.get("refunded_amount")?,
        correlation_id: row.get("correlation_id")?,
        confirmed_event_id: row.get("confirmed_event_id")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

/// An order whose number is taken is not made a second time: the answer is whether it was made.
pub fn payment_insert(tx: &mut Tx<'_>, payment: &Payment) -> Result<bool, StorageError> {
    let p = payment;
    let rows = tx.execute(
        "insert into payments (id, order_id, user_id, target_type, target_id, event_id, \
         fencing_token, order_name, amount, booking_fee, currency, provider, status, looks, \
         charged_amount, refunded_amount, correlation_id, created_at, updated_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, 0, 0, $14, $15, $15) \
         on conflict (order_id) do nothing",
        params![
            p.id.0,
            p.order_id,
            p.user_id,
            p.target.kind.name(),
            p.target.id,
            p.event_id,
            p.fencing_token,
            p.order_name,
            p.amount,
            p.booking_fee,
            p.currency,
            p.provider,
            p.status.name(),
            p.correlation_id,
            p.created_at,
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

pub fn payment_of_order(tx: &mut Tx<'_>, order_id: &str) -> Result<Option<Payment>, StorageError> {
    let sql = format!("select {COLUMNS} from payments where order_id = $1");
    tx.query_opt(&sql, params![order_id], read)
}

pub fn payment_of_order_lock(
    tx: &mut Tx<'_>,
    order_id: &str,
) -> Result<Option<Payment>, StorageError> {
    let sql = format!("select {COLUMNS} from payments where order_id = $1 for update");
    tx.query_opt(&sql, params![order_id], read)
}

/// The newest one of a user with what the provider calls it.
pub fn payment_of_key(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    payment_key: &str,
) -> Result<Option<Payment>, StorageError> {
    let sql = format!(
        "select {COLUMNS} from payments where user_id = $1 and payment_key = $2 \
         order by id desc limit 1"
    );
    tx.query_opt(&sql, params![user_id, payment_key], read)
}

/// An order of the user's own that nobody has paid yet, of the very hold (M-7).
pub fn payment_pending(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    target: Target,
) -> Result<Option<Payment>, StorageError> {
    let sql = format!(
        "select {COLUMNS} from payments where target_id = $1 and target_type = $2 \
         and user_id = $3 and status = 'pending' order by id desc limit 1"
    );
    tx.query_opt(&sql, params![target.id, target.kind.name(), user_id], read)
}

/// Another payment of the same target that is under way or stands.
pub fn payment_rival(tx: &mut Tx<'_>, payment: &Payment) -> Result<Option<Status>, StorageError> {
    let rival = tx.query_opt(
        "select status from payments where target_type = $1 and target_id = $2 and id <> $3 \
         and status in ('approving', 'unknown', 'confirmed')",
        params![payment.target.kind.name(), payment.target.id, payment.id.0],
        |row| row.get::<String>("status"),
    )?;
    Ok(rival.map(|status| Status::parse(&status).expect("only known names are stored")))
}

/// A command is done once per order, action and key. The answer is whether this is the first time.
pub fn command_insert(
    tx: &mut Tx<'_>,
    order_id: &str,
    action: Action,
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
pub enum Action {
    Create,
    Approve,
    Refund,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Create => "CREATE",
            Action::Approve => "APPROVE",
            Action::Refund => "REFUND",
        }
    }
}

/// Where a payment was, so that only one of two who move it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct From {
    pub id: PaymentId,
    pub status: Status,
    pub step: Option<Step>,
}

impl From {
    pub fn of(payment: &Payment) -> From {
        From { id: payment.id, status: payment.status, step: payment.step }
    }
}

/// Where it goes. With a step, whoever moves it takes that step as well: others wait until
/// `claimed_until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct To {
    pub status: Status,
    pub step: Option<Step>,
    pub claimed_until: Option<Timestamp>,
    /// When somebody looks who has no claim.
    pub look_at: Timestamp,
    pub now: Timestamp,
}

/// Moves a payment. False: it was not there any more.
pub fn payment_move(tx: &mut Tx<'_>, from: From, to: To) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update payments set status = $4, step = $5, claimed_until = $6, next_look_at = $7, \
         looks = 0, updated_at = $8 \
         where id = $1 and status = $2 and coalesce(step, '') = $3",
        params![
            from.id.0,
            from.status.name(),
            from.step.map_or("", Step::name),
            to.status.name(),
            to.step.map(Step::name),
            to.step.and(to.claimed_until),
            to.step.map(|_| to.look_at),
            to.now,
        ],
    )?;
    Ok(rows == 1)
}

/// It could not get on: somebody looks again later.
pub fn payment_wait(
    tx: &mut Tx<'_>,
    from: From,
    look_at: Timestamp,
    code: Option<&str>,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update payments set claimed_until = null, next_look_at = $4, looks = looks + 1, \
         failure_code = coalesce($5, failure_code) \
         where id = $1 and status = $2 and coalesce(step, '') = $3",
        params![from.id.0, from.status.name(), from.step.map_or("", Step::name), look_at, code,],
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

/// Those that have something to do now, the oldest first.
pub fn payments_due(
    tx: &mut Tx<'_>,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PaymentId>, StorageError> {
    tx.query(
        "select id from payments where step is not null and next_look_at <= $1 \
         and (claimed_until is null or claimed_until <= $1) \
         order by next_look_at, id limit $2",
        params![now, limit],
        |row| Ok(PaymentId(row.get("id")?)),
    )
}

/// How many have had the same thing to do since then.
pub fn payments_stuck(tx: &mut Tx<'_>, since: Timestamp) -> Result<i64, StorageError> {
    tx.query_one(
        "select count(*) as stuck from payments where step is not null and updated_at < $1",
        params![since],
        |row| row.get("stuck"),
    )
}

/// Orders that a provider has charged in a span of time, as far as we know.
pub fn payments_charged(
    tx: &mut Tx<'_>,
    provider: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(String, Won)>, StorageError> {
    tx.query(
        "select order_id, charged_amount from payments where provider = $1 \
         and approved_at >= $2 and approved_at < $3 and charged_amount > 0 order by order_id",
        params![provider, from, to],
        |row| Ok((row.get("order_id")?, row.get("charged_amount")?)),
    )
}

/// Somebody has reason to believe that a look is worth while.
pub fn payment_hurry(tx: &mut Tx<'_>, id: PaymentId, now: Timestamp) -> Result<(), StorageError> {
    tx.execute(
        "update payments set next_look_at = $2 \
         where id = $1 and step is not null and next_look_at > $2",
        params![id.0, now],
    )?;
    Ok(())
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
    tx.execute("update payments set charge_sent_at = $2 where id = $1", params![id.0, now])?;
    Ok(())
}

pub fn failure_set(tx: &mut Tx<'_>, id: PaymentId, code: &str) -> Result<(), StorageError> {
    tx.execute("update payments set failure_code = $2 where id = $1", params![id.0, code])?;
    Ok(())
}

/// What the provider says of the charge.
pub fn charge_note(
    tx: &mut Tx<'_>,
    id: PaymentId,
    paid: &ProviderPayment,
    confirmed_event_id: Option<Uuid>,
) -> Result<(), StorageError> {
    tx.execute(
        "update payments set payment_key = $2, method = $3, approved_at = $4, receipt_url = $5, \
         charged_amount = $6, confirmed_event_id = $7, failure_code = null where id = $1",
        params![
            id.0,
            paid.payment_key,
            paid.method,
            paid.approved_at,
            paid.receipt_url,
            paid.amount,
            confirmed_event_id,
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
