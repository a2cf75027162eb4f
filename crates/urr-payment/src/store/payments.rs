//! Payments: insert, find, list, and the columns that a step fills.

use urr_contracts::clients::PayableRef;
use urr_kernel::{Timestamp, UnknownName, Uuid, Won};
use urr_service::Page;
use urr_storage::{
    DbResult, Row, StorageError, ToValue, Tx, Value, from_row, params, storable_enum,
};

use crate::domain::payment::{Payment, PaymentId, PaymentStatus};
use crate::provider::ProviderPayment;

pub(super) const COLUMNS: &str = "id, order_id, user_id, payable_kind, payable_id, event_id, \
    reservation_id, fencing_token, order_name, amount, booking_fee, currency, provider, \
    payment_key, provider_key, method, status, step, attempts, pin_attempt, charge_sent_at, \
    last_charge_at, failure_code, wait_code, cancel_reason, approved_at, receipt_url, charged_amount, \
    refunded_amount, correlation_id, traceparent, cause_event_id, confirmed_event_id, \
    created_at, updated_at";

pub(super) fn read(row: &Row<'_>) -> DbResult<Payment> {
    Ok(from_row!(row => Payment {
        id, order_id, user_id, event_id, reservation_id, fencing_token, order_name, amount,
        booking_fee, currency, provider, payment_key, provider_key, method, status, step, attempts,
        pin_attempt, charge_sent_at, last_charge_at, failure_code, wait_code, cancel_reason, approved_at,
        receipt_url, correlation_id, traceparent, cause_event_id, confirmed_event_id, created_at,
        updated_at;
        payable: read_payable(row)?,
        charged: row.get("charged_amount")?,
        refunded: row.get("refunded_amount")?,
    }))
}

fn read_payable(row: &Row<'_>) -> DbResult<PayableRef> {
    let kind: String = row.get("payable_kind")?;
    let kind = kind.parse().map_err(|error: UnknownName| StorageError::Decode {
        column: "payable_kind".to_owned(),
        reason: error.to_string(),
    })?;
    Ok(PayableRef { kind, id: row.get("payable_id")? })
}

const PAYMENT_INSERT: &str = "insert into payments (id, order_id, user_id, payable_kind, payable_id, event_id, \
     fencing_token, order_name, amount, booking_fee, currency, provider, status, attempts, \
     charged_amount, refunded_amount, correlation_id, cause_event_id, created_at, updated_at, \
     reservation_id, step, payment_key, traceparent, charge_sent_at, last_charge_at, \
     claimed_until, next_attempt_at) \
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, 0, 0, $14, $15, $16, \
     $17, $18, $19, $20, $21, $22, $23, $24, $25) \
     on conflict (order_id) do nothing";

/// Returns whether the payment was inserted; false if its order exists.
pub fn payment_insert(tx: &mut Tx<'_>, payment: &Payment) -> DbResult<bool> {
    Ok(tx.execute(PAYMENT_INSERT, &payment_values(payment, None, None))? == 1)
}

/// Fills what is known of a sale at the box office.
pub fn box_office_fill(tx: &mut Tx<'_>, payment: &Payment) -> DbResult<()> {
    tx.execute_later(
        "update payments set method = $2, charged_amount = $3, approved_at = $4, \
         confirmed_event_id = $5, traceparent = $6 where id = $1",
        params![
            payment.id,
            payment.method,
            payment.charged,
            payment.approved_at,
            payment.confirmed_event_id,
            payment.traceparent
        ],
    )
}

/// Inserts the payment of a new order. With a step, this process takes it until `claimed_until`.
pub(super) fn new_payment_insert(
    tx: &mut Tx<'_>,
    payment: &Payment,
    claimed_until: Option<Timestamp>,
    next_attempt_at: Option<Timestamp>,
) -> DbResult<()> {
    tx.change_later(PAYMENT_INSERT, &payment_values(payment, claimed_until, next_attempt_at), 1)
}

fn payment_values(
    payment: &Payment,
    claimed_until: Option<Timestamp>,
    next_attempt_at: Option<Timestamp>,
) -> [Value<'_>; 25] {
    let p = payment;
    [
        p.id.to_value(),
        p.order_id.to_value(),
        p.user_id.to_value(),
        Value::Text(p.payable.kind.as_str()),
        p.payable.id.to_value(),
        p.event_id.to_value(),
        p.fencing_token.to_value(),
        p.order_name.to_value(),
        p.amount.to_value(),
        p.booking_fee.to_value(),
        p.currency.to_value(),
        p.provider.to_value(),
        p.status.to_value(),
        p.correlation_id.to_value(),
        p.cause_event_id.to_value(),
        p.created_at.to_value(),
        p.updated_at.to_value(),
        p.reservation_id.to_value(),
        p.step.to_value(),
        p.payment_key.to_value(),
        p.traceparent.to_value(),
        p.charge_sent_at.to_value(),
        p.last_charge_at.to_value(),
        claimed_until.map_or(Value::Null, Value::Time),
        next_attempt_at.map_or(Value::Null, Value::Time),
    ]
}

/// A payment that is known to exist.
pub fn payment_get(tx: &mut Tx<'_>, id: PaymentId) -> DbResult<Payment> {
    Ok(payment_find(tx, id)?.expect("only payments that ended long ago are deleted"))
}

pub fn payment_find(tx: &mut Tx<'_>, id: PaymentId) -> DbResult<Option<Payment>> {
    tx.query_opt(&format!("select {COLUMNS} from payments where id = $1"), params![id], read)
}

pub fn payment_lock(tx: &mut Tx<'_>, id: PaymentId) -> DbResult<Option<Payment>> {
    let sql = format!("select {COLUMNS} from payments where id = $1 for update");
    tx.query_opt(&sql, params![id], read)
}

pub fn payment_find_by_order(tx: &mut Tx<'_>, order_id: &str) -> DbResult<Option<Payment>> {
    let sql = format!("select {COLUMNS} from payments where order_id = $1");
    tx.query_opt(&sql, params![order_id], read)
}

pub fn payment_lock_by_order(tx: &mut Tx<'_>, order_id: &str) -> DbResult<Option<Payment>> {
    let sql = format!("select {COLUMNS} from payments where order_id = $1 for update");
    tx.query_opt(&sql, params![order_id], read)
}

/// A user's payment by the provider's key of the checkout. Of several, the one that was paid.
pub fn payment_find_by_key(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    payment_key: &str,
) -> DbResult<Option<Payment>> {
    let sql = format!(
        "select {COLUMNS} from payments where user_id = $1 and payment_key = $2 \
         order by case when status in ('confirmed', 'refunding', 'refunded') then 0 else 1 end, \
         id desc limit 1"
    );
    tx.query_opt(&sql, params![user_id, payment_key], read)
}

/// A user's order for this payable that is not paid yet (M-7).
pub fn payment_find_pending(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    payable: PayableRef,
) -> DbResult<Option<Payment>> {
    let sql = format!(
        "select {COLUMNS} from payments where payable_id = $1 and payable_kind = $2 \
         and user_id = $3 and status = 'pending' order by id desc limit 1"
    );
    tx.query_opt(&sql, params![payable.id, payable.kind.as_str(), user_id], read)
}

/// All payments of a payable, the oldest first; a hundred at most.
pub fn payment_list_of_payable(tx: &mut Tx<'_>, payable_id: Uuid) -> DbResult<Vec<Payment>> {
    let sql = format!("select {COLUMNS} from payments where payable_id = $1 order by id limit 100");
    tx.query(&sql, params![payable_id], read)
}

/// How many payments of an event have no outcome yet, and what they are about.
pub fn unclear_sum(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<(u64, Won)> {
    tx.query_one(
        "select count(*) as payments, cast(coalesce(sum(amount), 0) as bigint) as amount \
         from payments where event_id = $1 and status in ('approving', 'unknown')",
        params![event_id],
        |row| Ok((row.get("payments")?, row.get("amount")?)),
    )
}

/// How often the provider has declined a user's payments of a payable since then.
pub fn decline_count(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    payable: PayableRef,
    since: Timestamp,
) -> DbResult<u32> {
    let PayableRef { kind, id } = payable;
    tx.query_one(
        "select count(*) as declines from payments \
         where payable_id = $1 and payable_kind = $2 and user_id = $3 and status = 'failed' \
         and charged_amount = 0 and charge_sent_at is not null and updated_at > $4",
        params![id, kind.as_str(), user_id, since],
        |row| row.get("declines"),
    )
}

/// What else is known of a payable that is about to be paid: the status of another payment that is
/// under way or stands, and the number of declines as by [`decline_count`]. A membership is paid
/// anew for each term.
pub fn rival_and_declines(
    tx: &mut Tx<'_>,
    payment: &Payment,
    since: Timestamp,
) -> DbResult<(Option<PaymentStatus>, u32)> {
    let PayableRef { kind, id } = payment.payable;
    tx.query_one(
        "select (select status from payments where payable_kind = $1 and payable_id = $2 \
         and id <> $3 and status in ('approving', 'unknown', 'confirmed') \
         and (payable_kind <> 'membership' or fencing_token = $4) limit 1) as rival, \
         (select count(*) from payments where payable_id = $2 and payable_kind = $1 \
         and user_id = $5 and status = 'failed' and charged_amount = 0 \
         and charge_sent_at is not null and updated_at > $6) as declines",
        params![kind.as_str(), id, payment.id, payment.fencing_token, payment.user_id, since],
        |row| Ok((row.get("rival")?, row.get("declines")?)),
    )
}

/// Deletes payments of a status that charged nothing and ended before that time, with their
/// commands and calls. Those on which a provider and we differ are kept. Returns how many.
pub fn payments_delete_old(
    tx: &mut Tx<'_>,
    status: PaymentStatus,
    before: Timestamp,
    limit: u32,
) -> DbResult<u64> {
    let old: Vec<(PaymentId, String)> = tx.query(
        "select id, order_id from payments where status = $1 and step is null \
         and charged_amount = 0 and updated_at < $2 \
         and order_id not in (select order_id from differing_orders) \
         and id not in (select payment_id from unexplained_payments) order by id limit $3",
        params![status, before, limit],
        |row| Ok((row.get("id")?, row.get("order_id")?)),
    )?;
    let mut deleted = 0;
    for (id, order_id) in &old {
        tx.execute("delete from payment_idempotency where order_id = $1", params![order_id])?;
        tx.execute("delete from provider_calls where payment_id = $1", params![id])?;
        let sql = "delete from payments where id = $1";
        deleted += tx.execute(sql, params![id])?;
    }
    Ok(deleted)
}

/// The payments of a payable, the newest first.
pub fn payment_list_by_payable(
    tx: &mut Tx<'_>,
    payable_id: Uuid,
    limit: u32,
) -> DbResult<Vec<Payment>> {
    let sql =
        format!("select {COLUMNS} from payments where payable_id = $1 order by id desc limit $2");
    tx.query(&sql, params![payable_id, limit], read)
}

/// Payments of reservations that were charged or are under way, in the order of the reservations:
/// those after one id, up to another.
pub fn payment_list_by_reservation(
    tx: &mut Tx<'_>,
    after: Uuid,
    until: Uuid,
    limit: u32,
) -> DbResult<Vec<Payment>> {
    let sql = format!(
        "select {COLUMNS} from payments where payable_id > $1 and payable_id <= $2 \
         and payable_kind = 'reservation' \
         and (status in ('confirmed', 'refunding', 'refunded') or step is not null) \
         order by payable_id, id limit $3"
    );
    tx.query(&sql, params![after, until, limit], read)
}

pub(super) const CHARGED: &str = "select order_id, charged_amount from payments \
    where provider = $1 and approved_at >= $2 and approved_at < $3 and charged_amount > 0 \
    order by order_id";

/// The orders that a provider has charged in a time range, as far as we know.
pub fn payment_list_charged(
    tx: &mut Tx<'_>,
    provider: &str,
    from: Timestamp,
    to: Timestamp,
) -> DbResult<Vec<(String, Won)>> {
    tx.query(CHARGED, params![provider, from, to], |row| {
        Ok((row.get("order_id")?, row.get("charged_amount")?))
    })
}

/// Which payments are listed. `None` in a field means all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaymentFilter {
    pub user_id: Option<Uuid>,
    pub payable_id: Option<Uuid>,
    pub event_id: Option<Uuid>,
    pub status: Option<PaymentStatus>,
    /// Only payments for this organiser's events.
    pub organiser_id: Option<Uuid>,
}

impl PaymentFilter {
    /// The condition and its parameters. It names only the columns that matter, so that the database
    /// can choose an index.
    pub(super) fn conditions(&self) -> (String, Vec<Value<'_>>) {
        let wanted = [
            ("user_id", self.user_id.map(Value::Uuid)),
            ("payable_id", self.payable_id.map(Value::Uuid)),
            ("event_id", self.event_id.map(Value::Uuid)),
            ("status", self.status.map(|status| Value::Text(status.as_str()))),
        ];
        let (mut conditions, mut values) = (vec!["true".to_owned()], Vec::new());
        for (column, value) in wanted {
            if let Some(value) = value {
                values.push(value);
                conditions.push(format!("{column} = ${}", values.len()));
            }
        }
        if let Some(organiser_id) = self.organiser_id {
            values.push(Value::Uuid(organiser_id));
            conditions.push(format!(
                "event_id in (select event_id from event_organisers where organiser_id = ${})",
                values.len()
            ));
        }
        (conditions.join(" and "), values)
    }
}

/// More payments than this are not counted.
const COUNTED_MAX: u32 = 10_000;

/// A page, the newest first, and how many payments there are, up to [`COUNTED_MAX`].
pub fn payment_list(
    tx: &mut Tx<'_>,
    filter: PaymentFilter,
    page: Page,
) -> DbResult<(Vec<Payment>, u64)> {
    let (conditions, mut values) = filter.conditions();
    let sql = format!(
        "select count(*) as total from \
         (select 1 from payments where {conditions} limit {COUNTED_MAX}) as counted"
    );
    let total = tx.query_one(&sql, &values, |row| row.get("total"))?;
    let sql = page_sql(&conditions, values.len());
    let (limit, offset) = (page.limit(), page.offset());
    values.extend([limit.to_value(), offset.to_value()]);
    Ok((tx.query(&sql, &values, read)?, total))
}

/// `parameters` is the number of parameters before those of the page.
pub(super) fn page_sql(conditions: &str, parameters: usize) -> String {
    let (limit, offset) = (parameters + 1, parameters + 2);
    format!(
        "select {COLUMNS} from payments where {conditions} \
         order by id desc limit ${limit} offset ${offset}"
    )
}

/// The commands that are executed once per order and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandAction {
    Create,
    Approve,
    Refund,
}

storable_enum!(CommandAction { Create => "CREATE", Approve => "APPROVE", Refund => "REFUND" });

const COMMAND_INSERT: &str = "insert into payment_idempotency (order_id, action, idempotency_key, created_at) \
     values ($1, $2, $3, $4) on conflict (order_id, action, idempotency_key) do nothing";

/// Returns whether the command is executed for the first time.
pub fn command_insert(
    tx: &mut Tx<'_>,
    order_id: &str,
    action: CommandAction,
    key: &str,
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(COMMAND_INSERT, params![order_id, action, key, now])?;
    Ok(rows == 1)
}

/// The same for a command of a new order, which nobody else can have executed.
pub(super) fn new_command_insert(
    tx: &mut Tx<'_>,
    order_id: &str,
    action: CommandAction,
    key: &str,
    now: Timestamp,
) -> DbResult<()> {
    tx.change_later(COMMAND_INSERT, params![order_id, action, key, now], 1)
}

/// The command may be executed once more.
pub fn command_delete(tx: &mut Tx<'_>, order_id: &str, action: CommandAction) -> DbResult<()> {
    tx.execute_later(
        "delete from payment_idempotency where order_id = $1 and action = $2",
        params![order_id, action],
    )
}

/// The provider was not asked to charge after all.
pub fn charge_unsent(tx: &mut Tx<'_>, payment: &mut Payment) -> DbResult<()> {
    (payment.charge_sent_at, payment.last_charge_at) = (None, None);
    tx.execute_later(
        "update payments set charge_sent_at = null, last_charge_at = null where id = $1",
        params![payment.id],
    )
}

/// The provider is about to be asked to charge: from now on only it knows whether it did.
pub fn charge_sent(tx: &mut Tx<'_>, payment: &mut Payment, now: Timestamp) -> DbResult<()> {
    payment.charge_sent_at.get_or_insert(now);
    payment.last_charge_at = Some(now);
    tx.execute_later(
        "update payments set charge_sent_at = coalesce(charge_sent_at, $2), last_charge_at = $2 \
         where id = $1",
        params![payment.id, now],
    )
}

pub fn failure_set(tx: &mut Tx<'_>, payment: &mut Payment, code: &str) -> DbResult<()> {
    payment.failure_code = Some(code.to_owned());
    let sql = "update payments set failure_code = $2 where id = $1";
    tx.execute_later(sql, params![payment.id, code])
}

/// Why the buyer cancels, in their own words.
pub fn cancel_reason_set(tx: &mut Tx<'_>, id: PaymentId, reason: &str) -> DbResult<()> {
    tx.execute(
        "update payments set cancel_reason = $2 where id = $1 and status = 'confirmed'",
        params![id, reason],
    )?;
    Ok(())
}

/// The payment after the charge, in memory only; see [`charge_set`].
pub fn charge_fill(
    payment: &mut Payment,
    paid: &ProviderPayment,
    provider_key: Option<&str>,
    confirmed_event_id: Option<Uuid>,
) {
    payment.payment_key = Some(paid.payment_key.clone());
    payment.method = Some(paid.method.clone());
    payment.approved_at = paid.approved_at.map(to_microseconds);
    payment.receipt_url.clone_from(&paid.receipt_url);
    payment.charged = paid.amount;
    payment.confirmed_event_id = confirmed_event_id;
    payment.provider_key = provider_key.map(str::to_owned);
    payment.failure_code = None;
}

/// The payable was unpinned: a pin from now on is a new attempt.
pub fn pin_attempt_end(tx: &mut Tx<'_>, payment: &mut Payment) -> DbResult<()> {
    payment.pin_attempt += 1;
    let sql = "update payments set pin_attempt = pin_attempt + 1 where id = $1";
    tx.execute_later(sql, params![payment.id])
}

/// What the provider says about the charge. Without a key, another order was paid by the same
/// charge. The attempt to pay may have been unpinned meanwhile, so a pin from now on is a new one.
pub fn charge_set(
    tx: &mut Tx<'_>,
    payment: &mut Payment,
    paid: &ProviderPayment,
    provider_key: Option<&str>,
    confirmed_event_id: Option<Uuid>,
) -> DbResult<()> {
    charge_fill(payment, paid, provider_key, confirmed_event_id);
    payment.pin_attempt += 1;
    tx.execute_later(
        "update payments set payment_key = $2, method = $3, approved_at = $4, receipt_url = $5, \
         charged_amount = $6, confirmed_event_id = $7, provider_key = $8, failure_code = null, \
         pin_attempt = pin_attempt + 1 where id = $1",
        params![
            payment.id,
            paid.payment_key,
            paid.method,
            payment.approved_at,
            paid.receipt_url,
            paid.amount,
            confirmed_event_id,
            provider_key,
        ],
    )
}

/// Whether a charge of a provider belongs to an order of ours.
pub fn provider_key_exists(tx: &mut Tx<'_>, provider: &str, key: &str) -> DbResult<bool> {
    let sql = "select id from payments where provider = $1 and provider_key = $2 \
               and provider_key is not null";
    let found = tx.query_opt(sql, params![provider, key], |row| row.get::<Uuid>("id"))?;
    Ok(found.is_some())
}

/// As it is stored.
fn to_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

pub fn refunded_add(tx: &mut Tx<'_>, id: PaymentId, amount: Won) -> DbResult<()> {
    tx.execute(
        "update payments set refunded_amount = refunded_amount + $2 where id = $1",
        params![id, amount],
    )?;
    Ok(())
}
