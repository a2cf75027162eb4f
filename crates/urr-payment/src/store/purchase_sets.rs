//! The writes of a purchase for a set of payments: on PostgreSQL one statement for all of them, on
//! SQLite, where a set has one member, one for each.
//!
//! Updates find their rows one by one and then take them by place (`ctid`): a join by id whose plan
//! was made while the table was nearly empty reads every payment.

use std::collections::{HashMap, HashSet};

use serde_json::{Value as Json, json};
use urr_contracts::clients::PayableRef;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, params};

use super::ledger::{self, EntryOf};
use super::payments::{
    COLUMNS, CommandAction, command_insert, new_command_insert, new_payment_insert,
    payment_find_pending, payment_lock_by_order, read, rival_and_declines,
};
use super::provider_calls::{ProviderCall, provider_call_insert, provider_calls_finish};
use super::transitions::{TransitionFrom, TransitionTo};
use crate::domain::ledger::Posting;
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep};

/// What else is known of a payable that is about to be paid.
#[derive(Clone, Debug)]
pub struct PayableHistory {
    /// The user's order that is not paid yet (M-7).
    pub pending: Option<Payment>,
    /// Another payment that is under way or stands.
    pub rival: Option<PaymentStatus>,
    pub declines: u32,
}

/// The history of the payable of each payment, in their order.
pub fn payable_histories(
    tx: &mut Tx<'_>,
    payments: &[&Payment],
    since: Timestamp,
) -> DbResult<Vec<PayableHistory>> {
    if !tx.is_postgres() {
        let history = |payment: &&Payment| {
            let pending = payment_find_pending(tx, payment.user_id, payment.payable)?;
            let (rival, declines) = rival_and_declines(tx, payment, since)?;
            Ok(PayableHistory { pending, rival, declines })
        };
        return payments.iter().map(history).collect();
    }
    let asked: Json = payments
        .iter()
        .enumerate()
        .map(|(position, payment)| {
            let PayableRef { kind, id } = payment.payable;
            json!({
                "position": position, "asked_kind": kind.as_str(), "asked_payable": id,
                "asked_payment": payment.id.0, "asked_token": payment.fencing_token,
                "asked_user": payment.user_id,
            })
        })
        .collect();
    if payments.is_empty() {
        return Ok(Vec::new());
    }
    tx.query(&histories_sql(), params![asked, since], |row| {
        let is_pending = row.get::<Option<Uuid>>("id")?.is_some();
        Ok(PayableHistory {
            pending: is_pending.then(|| read(row)).transpose()?,
            rival: row.get("rival")?,
            declines: row.get("declines")?,
        })
    })
}

fn histories_sql() -> String {
    format!(
        "select (select status from payments where payable_kind = asked_kind \
         and payable_id = asked_payable and id <> asked_payment \
         and status in ('approving', 'unknown', 'confirmed') \
         and (payable_kind <> 'membership' or fencing_token = asked_token) limit 1) as rival, \
         (select count(*) from payments where payable_id = asked_payable \
         and payable_kind = asked_kind and user_id = asked_user and status = 'failed' \
         and charged_amount = 0 and charge_sent_at is not null and updated_at > $2) as declines, \
         pending.* from jsonb_to_recordset($1) as asked (position integer, asked_kind text, \
         asked_payable uuid, asked_payment uuid, asked_token bigint, asked_user uuid) \
         left join lateral (select {COLUMNS} from payments where payable_id = asked_payable \
         and payable_kind = asked_kind and user_id = asked_user and status = 'pending' \
         order by id desc limit 1) as pending on true order by position"
    )
}

/// A new order.
#[derive(Clone, Debug)]
pub struct NewOrder {
    pub payment: Payment,
    /// Of the command that makes it.
    pub key: String,
    /// If its payment begins at once.
    pub begun: Option<BegunOrder>,
}

/// The beginning of the payment of a new order.
#[derive(Clone, Debug)]
pub struct BegunOrder {
    pub to: TransitionTo,
    /// Of the command that approves it.
    pub key: String,
}

impl NewOrder {
    /// The commands that it executes, with their keys.
    fn commands(&self) -> impl Iterator<Item = (CommandAction, &str)> {
        let approved =
            self.begun.as_ref().map(|begun| (CommandAction::Approve, begun.key.as_str()));
        std::iter::once((CommandAction::Create, self.key.as_str())).chain(approved)
    }

    fn claimed_until(&self) -> Option<Timestamp> {
        self.begun.as_ref().and_then(|begun| claim_of(self.payment.step, &begun.to))
    }

    fn next_attempt_at(&self) -> Option<Timestamp> {
        self.begun.as_ref().and_then(|begun| attempt_of(self.payment.step, &begun.to))
    }
}

/// Inserts the payments of new orders, and their commands.
pub fn orders_insert(tx: &mut Tx<'_>, orders: &[NewOrder]) -> DbResult<()> {
    if !tx.is_postgres() {
        return orders.iter().try_for_each(|order| order_insert(tx, order));
    }
    if orders.is_empty() {
        return Ok(());
    }
    let commands = orders.iter().flat_map(|order| {
        order.commands().map(|(action, key)| {
            json!({
                "order_id": order.payment.order_id, "action": action.as_str(),
                "command_key": key, "created_at": order.payment.created_at,
            })
        })
    });
    let commands: Vec<Json> = commands.collect();
    let count = commands.len() as u64;
    tx.change_later(
        "insert into payment_idempotency (order_id, action, idempotency_key, created_at) \
         select order_id, action, command_key, created_at from jsonb_to_recordset($1) \
         as one (order_id text, action text, command_key text, created_at timestamptz) \
         on conflict (order_id, action, idempotency_key) do nothing",
        params![Json::from(commands)],
        count,
    )?;
    let rows: Json = orders.iter().map(order_json).collect();
    tx.change_later(
        "insert into payments (id, order_id, user_id, payable_kind, payable_id, event_id, \
         fencing_token, order_name, amount, booking_fee, currency, provider, status, attempts, \
         charged_amount, refunded_amount, correlation_id, cause_event_id, created_at, updated_at, \
         reservation_id, step, claimed_until, next_attempt_at, payment_key, traceparent, \
         charge_sent_at, last_charge_at) \
         select id, order_id, user_id, payable_kind, payable_id, event_id, \
         fencing_token, order_name, amount, booking_fee, currency, provider, status, 0, 0, 0, \
         correlation_id, cause_event_id, created_at, updated_at, reservation_id, step, \
         claimed_until, next_attempt_at, payment_key, traceparent, charge_sent_at, last_charge_at \
         from jsonb_to_recordset($1) as one (id uuid, order_id text, user_id uuid, \
         payable_kind text, payable_id uuid, event_id uuid, fencing_token bigint, \
         order_name text, amount bigint, booking_fee bigint, currency text, provider text, \
         status text, correlation_id uuid, cause_event_id uuid, created_at timestamptz, \
         updated_at timestamptz, reservation_id uuid, step text, claimed_until timestamptz, \
         next_attempt_at timestamptz, payment_key text, traceparent text, \
         charge_sent_at timestamptz, last_charge_at timestamptz) \
         on conflict (order_id) do nothing",
        params![rows],
        orders.len() as u64,
    )
}

fn order_insert(tx: &mut Tx<'_>, order: &NewOrder) -> DbResult<()> {
    let payment = &order.payment;
    for (action, key) in order.commands() {
        new_command_insert(tx, &payment.order_id, action, key, payment.created_at)?;
    }
    new_payment_insert(tx, payment, order.claimed_until(), order.next_attempt_at())
}

fn order_json(order: &NewOrder) -> Json {
    let payment = &order.payment;
    json!({
        "id": payment.id.0, "order_id": payment.order_id, "user_id": payment.user_id,
        "payable_kind": payment.payable.kind.as_str(), "payable_id": payment.payable.id,
        "event_id": payment.event_id, "fencing_token": payment.fencing_token,
        "order_name": payment.order_name, "amount": payment.amount.amount(),
        "booking_fee": payment.booking_fee.amount(), "currency": payment.currency,
        "provider": payment.provider, "status": payment.status.as_str(),
        "correlation_id": payment.correlation_id, "cause_event_id": payment.cause_event_id,
        "created_at": payment.created_at, "updated_at": payment.updated_at,
        "reservation_id": payment.reservation_id, "step": payment.step.map(SagaStep::as_str),
        "claimed_until": order.claimed_until(), "next_attempt_at": order.next_attempt_at(),
        "payment_key": payment.payment_key, "traceparent": payment.traceparent,
        "charge_sent_at": payment.charge_sent_at, "last_charge_at": payment.last_charge_at,
    })
}

/// Locks the payments of orders, in the order of their names.
pub fn payments_lock_by_order(
    tx: &mut Tx<'_>,
    order_ids: &[&str],
) -> DbResult<HashMap<String, Payment>> {
    let payments = match tx.is_postgres() {
        false => {
            let lock = |order_id: &&str| payment_lock_by_order(tx, order_id).transpose();
            order_ids.iter().filter_map(lock).collect::<DbResult<Vec<Payment>>>()?
        }
        true => {
            // An order id has no white space.
            let sql = format!(
                "select {COLUMNS} from payments where order_id = any(string_to_array($1, ' ')) \
                 order by order_id for update"
            );
            tx.query(&sql, params![order_ids.join(" ")], read)?
        }
    };
    Ok(payments.into_iter().map(|payment| (payment.order_id.clone(), payment)).collect())
}

/// An order and the key of a command for it.
pub type OrderCommand<'a> = (&'a str, &'a str);

/// Returns the orders for which the command is executed for the first time.
pub fn commands_insert(
    tx: &mut Tx<'_>,
    commands: &[OrderCommand<'_>],
    action: CommandAction,
    now: Timestamp,
) -> DbResult<HashSet<String>> {
    if !tx.is_postgres() {
        let mut first = HashSet::new();
        for (order_id, key) in commands {
            if command_insert(tx, order_id, action, key, now)? {
                first.insert((*order_id).to_owned());
            }
        }
        return Ok(first);
    }
    if commands.is_empty() {
        return Ok(HashSet::new());
    }
    let row =
        |(order_id, key): &OrderCommand<'_>| json!({"order_id": order_id, "command_key": key});
    let rows: Json = commands.iter().map(row).collect();
    let first = tx.query(
        "insert into payment_idempotency (order_id, action, idempotency_key, created_at) \
         select order_id, $2, command_key, $3 from jsonb_to_recordset($1) \
         as one (order_id text, command_key text) \
         on conflict (order_id, action, idempotency_key) do nothing returning order_id",
        params![rows, action, now],
        |row: &Row<'_>| row.get("order_id"),
    )?;
    Ok(first.into_iter().collect())
}

/// A payment as it is after its transition.
pub type MovedPayment<'a> = (&'a Payment, TransitionTo);

/// Writes payments that have begun. They are locked and were pending.
pub fn payments_begin(tx: &mut Tx<'_>, begun: &[MovedPayment<'_>]) -> DbResult<()> {
    if !tx.is_postgres() {
        return begun.iter().try_for_each(|moved| payment_begin(tx, moved));
    }
    if begun.is_empty() {
        return Ok(());
    }
    let rows: Json = begun.iter().map(begun_json).collect();
    tx.change_later(
        "update payments set status = one.status, step = one.step, \
         claimed_until = one.claimed_until, next_attempt_at = one.next_attempt_at, attempts = 0, \
         wait_code = null, failure_code = null, updated_at = one.updated_at, \
         payment_key = one.payment_key, correlation_id = one.correlation_id, \
         traceparent = one.traceparent, charge_sent_at = one.charge_sent_at, \
         last_charge_at = one.last_charge_at from (select sent.*, found.at \
         from jsonb_to_recordset($1) as sent (id uuid, \
         status text, step text, claimed_until timestamptz, next_attempt_at timestamptz, \
         updated_at timestamptz, payment_key text, correlation_id uuid, traceparent text, \
         charge_sent_at timestamptz, last_charge_at timestamptz) \
         cross join lateral (select ctid as at from payments where payments.id = sent.id \
         and payments.status = 'pending' and payments.step is null limit 1) as found) as one \
         where payments.ctid = one.at",
        params![rows],
        begun.len() as u64,
    )
}

fn payment_begin(tx: &mut Tx<'_>, (payment, to): &MovedPayment<'_>) -> DbResult<()> {
    tx.change_later(
        "update payments set status = $2, step = $3, claimed_until = $4, next_attempt_at = $5, \
         attempts = 0, wait_code = null, failure_code = null, updated_at = $6, payment_key = $7, \
         correlation_id = $8, traceparent = $9, charge_sent_at = $10, last_charge_at = $11 \
         where id = $1 and status = 'pending' and step is null",
        params![
            payment.id,
            payment.status,
            payment.step,
            claim_of(payment.step, to),
            attempt_of(payment.step, to),
            payment.updated_at,
            payment.payment_key,
            payment.correlation_id,
            payment.traceparent,
            payment.charge_sent_at,
            payment.last_charge_at,
        ],
        1,
    )
}

fn claim_of(step: Option<SagaStep>, to: &TransitionTo) -> Option<Timestamp> {
    step.and(to.claimed_until)
}

fn attempt_of(step: Option<SagaStep>, to: &TransitionTo) -> Option<Timestamp> {
    step.map(|_| to.attempt_at)
}

fn begun_json((payment, to): &MovedPayment<'_>) -> Json {
    json!({
        "id": payment.id.0, "status": payment.status.as_str(),
        "step": payment.step.map(SagaStep::as_str), "claimed_until": claim_of(payment.step, to),
        "next_attempt_at": attempt_of(payment.step, to), "updated_at": payment.updated_at,
        "payment_key": payment.payment_key, "correlation_id": payment.correlation_id,
        "traceparent": payment.traceparent, "charge_sent_at": payment.charge_sent_at,
        "last_charge_at": payment.last_charge_at,
    })
}

pub fn provider_calls_insert(
    tx: &mut Tx<'_>,
    calls: &[ProviderCall],
    now: Timestamp,
) -> DbResult<()> {
    if !tx.is_postgres() {
        return calls.iter().try_for_each(|call| provider_call_insert(tx, call, now));
    }
    if calls.is_empty() {
        return Ok(());
    }
    let row = |call: &ProviderCall| {
        let refund_id = call.refund_id.map(|id| id.0);
        json!({
            "id": call.id, "payment_id": call.payment_id.0, "refund_id": refund_id,
            "action": call.action,
        })
    };
    let rows: Json = calls.iter().map(row).collect();
    tx.execute_later(
        "insert into provider_calls (id, payment_id, refund_id, action, started_at) \
         select id, payment_id, refund_id, action, $2 from jsonb_to_recordset($1) \
         as one (id uuid, payment_id uuid, refund_id uuid, action text)",
        params![rows, now],
    )
}

/// A charge that was delivered.
#[derive(Clone, Copy, Debug)]
pub struct ChargedPayment<'a> {
    pub from: TransitionFrom,
    /// As it is afterwards.
    pub payment: &'a Payment,
}

/// Records charges whose delivery is done. Returns the payments that were where they were expected;
/// the others are not changed.
pub fn payments_charge(
    tx: &mut Tx<'_>,
    charged: &[ChargedPayment<'_>],
) -> DbResult<HashSet<PaymentId>> {
    let ids = match tx.is_postgres() {
        false => {
            let charge = |one: &ChargedPayment<'_>| payment_charge(tx, one).transpose();
            charged.iter().filter_map(charge).collect::<DbResult<Vec<PaymentId>>>()?
        }
        true => {
            let rows: Json = charged.iter().map(charged_json).collect();
            tx.query(
                "update payments set status = one.status, step = null, claimed_until = null, \
                 next_attempt_at = null, attempts = 0, wait_code = null, failure_code = null, \
                 updated_at = one.updated_at, payment_key = one.payment_key, method = one.method, \
                 approved_at = one.approved_at, receipt_url = one.receipt_url, \
                 charged_amount = one.charged, confirmed_event_id = one.confirmed_event_id, \
                 provider_key = one.provider_key from (select sent.*, found.at \
                 from jsonb_to_recordset($1) as sent (id uuid, \
                 from_status text, from_step text, status text, updated_at timestamptz, \
                 payment_key text, method text, approved_at timestamptz, receipt_url text, \
                 charged bigint, confirmed_event_id uuid, provider_key text) \
                 cross join lateral (select ctid as at from payments where payments.id = sent.id \
                 and payments.status is not distinct from sent.from_status \
                 and coalesce(payments.step, '') = sent.from_step limit 1) as found) as one \
                 where payments.ctid = one.at returning payments.id as id",
                params![rows],
                |row| row.get("id"),
            )?
        }
    };
    Ok(ids.into_iter().collect())
}

fn payment_charge(
    tx: &mut Tx<'_>,
    ChargedPayment { from, payment }: &ChargedPayment<'_>,
) -> DbResult<Option<PaymentId>> {
    tx.query_opt(
        "update payments set status = $4, step = null, claimed_until = null, \
         next_attempt_at = null, attempts = 0, wait_code = null, failure_code = null, \
         updated_at = $5, payment_key = $6, method = $7, approved_at = $8, receipt_url = $9, \
         charged_amount = $10, confirmed_event_id = $11, provider_key = $12 \
         where id = $1 and status = $2 and coalesce(step, '') = $3 returning id",
        params![
            from.id,
            from.status,
            from.step_name(),
            payment.status,
            payment.updated_at,
            payment.payment_key,
            payment.method,
            payment.approved_at,
            payment.receipt_url,
            payment.charged,
            payment.confirmed_event_id,
            payment.provider_key,
        ],
        |row| row.get("id"),
    )
}

fn charged_json(ChargedPayment { from, payment }: &ChargedPayment<'_>) -> Json {
    json!({
        "id": from.id.0, "from_status": from.status.as_str(), "from_step": from.step_name(),
        "status": payment.status.as_str(), "updated_at": payment.updated_at,
        "payment_key": payment.payment_key, "method": payment.method,
        "approved_at": payment.approved_at, "receipt_url": payment.receipt_url,
        "charged": payment.charged.amount(), "confirmed_event_id": payment.confirmed_event_id,
        "provider_key": payment.provider_key,
    })
}

/// Records that the calls of these payments which have no outcome yet were successful.
pub fn provider_calls_done(tx: &mut Tx<'_>, ids: &[PaymentId], now: Timestamp) -> DbResult<()> {
    if !tx.is_postgres() {
        let mut ids = ids.iter();
        return ids.try_for_each(|id| provider_calls_finish(tx, *id, "done", None, now));
    }
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = ids.iter().map(PaymentId::to_string).collect();
    tx.execute_later(
        "update provider_calls set finished_at = $2, outcome = 'done', code = null \
         where payment_id = any(string_to_array($1, ',')::uuid[]) and finished_at is null",
        params![ids.join(","), now],
    )
}

/// Inserts ledger entries with their lines.
pub fn entries_insert(tx: &mut Tx<'_>, entries: &[(EntryOf, Posting)]) -> DbResult<()> {
    if !tx.is_postgres() {
        let mut entries = entries.iter();
        return entries.try_for_each(|(of, posting)| ledger::entry_insert(tx, *of, posting));
    }
    if entries.is_empty() {
        return Ok(());
    }
    let entry = |(of, posting): &(EntryOf, Posting)| {
        let refund_id = of.refund_id.map(|id| id.0);
        json!({
            "id": of.id, "at": of.now, "payment_id": of.payment_id.0, "refund_id": refund_id,
            "kind": posting.kind.as_str(),
        })
    };
    let rows: Json = entries.iter().map(entry).collect();
    tx.execute_later(
        "insert into ledger_entries (id, at, payment_id, refund_id, kind) \
         select id, at, payment_id, refund_id, kind from jsonb_to_recordset($1) \
         as one (id uuid, at timestamptz, payment_id uuid, refund_id uuid, kind text)",
        params![rows],
    )?;
    let lines = entries.iter().flat_map(|(of, posting)| {
        posting.lines.iter().map(|(account, amount)| {
            json!({"entry_id": of.id, "account": account.as_str(), "amount": amount.amount()})
        })
    });
    let lines: Json = lines.collect();
    tx.execute_later(
        "insert into ledger_lines (entry_id, account, amount) \
         select entry_id, account, amount from jsonb_to_recordset($1) \
         as one (entry_id uuid, account text, amount bigint)",
        params![lines],
    )
}
