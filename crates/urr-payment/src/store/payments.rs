//! Payments in SQL. Every change is a compare-and-set on what is to be done next.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{Row, StorageError, Tx, params};

use crate::domain::payment::{Payment, PaymentId, Status, Step, Target, TargetKind};
use crate::provider::ProviderPayment;

pub(super) const COLUMNS: &str = "id, order_id, user_id, target_type, target_id, event_id, \
    reservation_id, fencing_token, order_name, amount, booking_fee, currency, provider, \
    payment_key, provider_key, method, status, step, looks, charge_sent_at, last_charge_at, \
    failure_code, wait_code, cancel_reason, approved_at, receipt_url, charged_amount, \
    refunded_amount, correlation_id, cause_event_id, confirmed_event_id, created_at, \
    updated_at";

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
        status: Status::parse(&status).expect(known),
        step: step.map(|step| Step::parse(&step).expect(known)),
        looks: row.get("looks")?,
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
        "insert into payments (id, order_id, user_id, target_type, target_id, event_id, \
         fencing_token, order_name, amount, booking_fee, currency, provider, status, looks, \
         charged_amount, refunded_amount, correlation_id, cause_event_id, created_at, updated_at, \
         reservation_id) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, 0, 0, $14, $15, $16, \
         $16, $17) \
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

/// The one of a user with what the provider calls it: the one that was paid, if several were begun.
pub fn payment_of_key(
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

/// Another payment of the same target that is under way or stands. A membership is paid anew for
/// each term.
pub fn payment_rival(tx: &mut Tx<'_>, payment: &Payment) -> Result<Option<Status>, StorageError> {
    let rival =
        tx.query_opt(
            "select status from payments where target_type = $1 and target_id = $2 and id <> $3 \
         and status in ('approving', 'unknown', 'confirmed') \
         and (target_type <> 'membership' or fencing_token = $4) limit 1",
            params![
                payment.target.kind.name(),
                payment.target.id,
                payment.id.0,
                payment.fencing_token,
            ],
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
         looks = 0, wait_code = null, updated_at = $8 \
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
         wait_code = coalesce($5, wait_code) \
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

/// What somebody has to go on with. Neither sort waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Purchases,
    /// Money that goes back.
    Returns,
}

impl Lane {
    pub const ALL: [Lane; 2] = [Lane::Purchases, Lane::Returns];

    /// As the index of each has it: another wording is not found there.
    fn steps(self) -> &'static str {
        match self {
            Lane::Purchases => "step in ('pin', 'charge', 'query', 'deliver', 'unpin')",
            Lane::Returns => "step in ('refund', 'tell')",
        }
    }

    pub(super) fn due(self) -> String {
        let steps = self.steps();
        format!(
            "select id from payments where {steps} and next_look_at <= $1 \
             and (claimed_until is null or claimed_until <= $1) \
             order by next_look_at, id limit $2"
        )
    }
}

/// Those of a lane that have something to do now, the oldest first.
pub fn payments_due(
    tx: &mut Tx<'_>,
    lane: Lane,
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
    for lane in Lane::ALL {
        let sql = format!("select count(*) as due from ({}) as due_now", lane.due());
        due += tx.query_one(&sql, params![now, limit], |row| row.get::<i64>("due"))?;
    }
    Ok(due)
}

/// It broke while somebody was at it: somebody looks again later.
pub fn payment_put_off(
    tx: &mut Tx<'_>,
    id: PaymentId,
    look_at: Timestamp,
    code: &str,
) -> Result<(), StorageError> {
    tx.execute(
        "update payments set claimed_until = null, next_look_at = $2, looks = looks + 1, \
         wait_code = $3 where id = $1 and step is not null",
        params![id.0, look_at, code],
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
pub struct TargetSpan {
    pub after: Uuid,
    pub until: Uuid,
}

/// Payments of reservations that were taken at some time or are under way, in the order of the
/// reservations.
pub fn payments_of_reservations(
    tx: &mut Tx<'_>,
    span: TargetSpan,
    limit: u32,
) -> Result<Vec<Payment>, StorageError> {
    let sql = format!(
        "select {COLUMNS} from payments where target_id > $1 and target_id <= $2 \
         and target_type = 'reservation' \
         and (status in ('confirmed', 'refunding', 'refunded') or step is not null) \
         order by target_id, id limit $3"
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
pub fn payment_hurry(tx: &mut Tx<'_>, id: PaymentId, at: Timestamp) -> Result<(), StorageError> {
    tx.execute(
        "update payments set next_look_at = $2 \
         where id = $1 and step is not null and next_look_at > $2",
        params![id.0, at],
    )?;
    Ok(())
}

/// When somebody looks at a payment; none if nobody does.
pub fn payment_look_at(tx: &mut Tx<'_>, id: PaymentId) -> Result<Option<Timestamp>, StorageError> {
    let sql = "select next_look_at from payments where id = $1 and step is not null";
    Ok(tx.query_opt(sql, params![id.0], |row| row.get("next_look_at"))?.flatten())
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
pub fn charge_note(
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
