//! The tables of the sandbox: checkouts, and movements of money, once per idempotency key.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use urr_kernel::{Timestamp, Won};
use urr_storage::{DbResult, Row, SetWrite, StorageError, Tx, from_row, params};

use super::TestCard;
use crate::provider::{
    CURRENCY, ChargeRequest, PaymentChannel, ProviderPayment, ProviderState, RefundRequest,
};

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SandboxOutcome {
    /// The money was moved now.
    Moved(ProviderPayment),
    /// The money was moved by an earlier request with the same key.
    MovedBefore(ProviderPayment),
    /// No money was moved, and none will be.
    Refused(String),
    /// Nothing was moved now; it may have been before.
    Unclear(&'static str),
    /// The request never arrived.
    Lost,
}

#[derive(Clone, Debug)]
struct SandboxPayment {
    payment_key: String,
    order_id: String,
    amount: Won,
    attempts: i64,
    charged: Won,
    refunded: Won,
    refusal: Option<String>,
    created_at: Timestamp,
    approved_at: Option<Timestamp>,
}

const COLUMNS: &str =
    "payment_key, order_id, amount, attempts, charged, refunded, refusal, created_at, approved_at";
/// How long a buyer's agreement can be used for a first charge, as with Toss.
const KEY_LIFE: Duration = Duration::from_mins(10);

impl SandboxPayment {
    fn read(row: &Row<'_>) -> DbResult<SandboxPayment> {
        Ok(from_row!(row => SandboxPayment {
            payment_key, order_id, amount, attempts, charged, refunded, refusal, created_at,
            approved_at
        }))
    }

    fn is_charged(&self) -> bool {
        self.charged > Won::ZERO
    }

    fn state(&self) -> ProviderState {
        match (self.is_charged(), &self.refusal) {
            (true, _) if self.refunded == self.charged => ProviderState::Refunded,
            (true, _) => ProviderState::Paid,
            (false, Some(_)) => ProviderState::Dead,
            (false, None) => ProviderState::Open,
        }
    }

    fn into_payment(self) -> ProviderPayment {
        let channel = match TestCard::of_key(&self.payment_key) {
            Some(TestCard::TestChannel) => PaymentChannel::Test,
            _ => PaymentChannel::Configured,
        };
        ProviderPayment {
            channel,
            state: self.state(),
            amount: if self.is_charged() { self.charged } else { self.amount },
            order_id: self.order_id,
            payment_key: self.payment_key,
            transaction_id: None,
            currency: CURRENCY.to_owned(),
            refunded: self.refunded,
            method: "card".to_owned(),
            approved_at: self.approved_at,
            receipt_url: None,
        }
    }
}

/// The buyer agrees to pay.
#[derive(Clone, Debug)]
pub(super) struct CheckoutAgreement {
    pub payment_key: String,
    pub order_id: String,
    pub amount: Won,
    pub now: Timestamp,
}

impl SetWrite for CheckoutAgreement {
    type Answer = ();
    type Error = StorageError;

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<DbResult<()>>> {
        if tx.is_postgres() {
            let row = |agreed: &&Self| {
                json!({
                    "payment_key": agreed.payment_key, "order_id": agreed.order_id,
                    "amount": agreed.amount.amount(), "created_at": agreed.now,
                })
            };
            let rows: Json = set.iter().map(row).collect();
            tx.execute_later(
                "insert into sandbox_payments \
                 (payment_key, order_id, amount, attempts, charged, refunded, created_at) \
                 select payment_key, order_id, amount, 0, 0, 0, created_at \
                 from jsonb_to_recordset($1) as agreed (payment_key text, order_id text, \
                 amount bigint, created_at timestamptz)",
                params![rows],
            )?;
            return Ok(vec![Ok(()); set.len()]);
        }
        for agreed in set {
            tx.execute_later(
                "insert into sandbox_payments \
                 (payment_key, order_id, amount, attempts, charged, refunded, created_at) \
                 values ($1, $2, $3, 0, 0, 0, $4)",
                params![agreed.payment_key, agreed.order_id, agreed.amount, agreed.now],
            )?;
        }
        Ok(vec![Ok(()); set.len()])
    }
}

/// A charge with a card. Charges of one order are made one after the other.
#[derive(Clone, Debug)]
pub(super) struct CardCharge {
    pub charge: ChargeRequest,
    pub card: TestCard,
    pub now: Timestamp,
}

impl SetWrite for CardCharge {
    type Answer = SandboxOutcome;
    type Error = StorageError;

    fn subject(&self) -> Option<String> {
        Some(self.charge.order_id.clone())
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<DbResult<SandboxOutcome>>> {
        let mut lines = payments_lock_for_charge(tx, set)?;
        let (mut outcomes, mut movements) = (Vec::new(), Vec::new());
        for one in set {
            let found = lines.remove(&one.charge.payment_key);
            let outcome = payment_charge(tx, one, found)?;
            if let SandboxOutcome::Moved(payment) = &outcome {
                movements.push(ChargeMovement {
                    idempotency_key: &one.charge.idempotency_key,
                    payment_key: &one.charge.payment_key,
                    amount: payment.amount,
                    now: one.now,
                });
            }
            outcomes.push(Ok(outcome));
        }
        charges_write(tx, &movements)?;
        Ok(outcomes)
    }
}

/// Money that a card pays.
struct ChargeMovement<'a> {
    idempotency_key: &'a str,
    payment_key: &'a str,
    amount: Won,
    now: Timestamp,
}

fn charges_write(tx: &mut Tx<'_>, movements: &[ChargeMovement<'_>]) -> DbResult<()> {
    if !tx.is_postgres() {
        return movements.iter().try_for_each(|one| {
            movement_insert(tx, one.idempotency_key, one.payment_key, one.amount, one.now)?;
            tx.execute_later(
                "update sandbox_payments set attempts = attempts + 1, charged = $2, \
                 approved_at = $3 where payment_key = $1",
                params![one.payment_key, one.amount, one.now],
            )
        });
    }
    if movements.is_empty() {
        return Ok(());
    }
    let row = |one: &ChargeMovement<'_>| {
        json!({
            "idempotency_key": one.idempotency_key, "payment_key": one.payment_key,
            "amount": one.amount.amount(), "at": one.now,
        })
    };
    let rows: Json = movements.iter().map(row).collect();
    tx.execute_later(
        "with moved as (select * from jsonb_to_recordset($1) as moved (idempotency_key text, \
         payment_key text, amount bigint, at timestamptz)), \
         noted as (insert into sandbox_movements (idempotency_key, payment_key, amount, moved_at) \
         select idempotency_key, payment_key, amount, at from moved) \
         update sandbox_payments set attempts = attempts + 1, charged = place.amount, \
         approved_at = place.at from (select moved.amount, moved.at, found.place from moved \
         cross join lateral (select ctid as place from sandbox_payments \
         where sandbox_payments.payment_key = moved.payment_key limit 1) as found) as place \
         where sandbox_payments.ctid = place.place",
        params![rows],
    )
}

/// Charges what was agreed to, in the way of the card. What is moved is written by the caller.
fn payment_charge(
    tx: &mut Tx<'_>,
    CardCharge { charge, card, now }: &CardCharge,
    found: Option<(SandboxPayment, EarlierMovement)>,
) -> DbResult<SandboxOutcome> {
    let (card, now) = (*card, *now);
    let Some((line, moved)) = found else {
        return Ok(SandboxOutcome::Refused("NOT_FOUND_PAYMENT".to_owned()));
    };
    if line.order_id != charge.order_id || line.amount != charge.amount {
        return Ok(SandboxOutcome::Refused("INFORMATION_MISMATCH".to_owned()));
    }
    if let Some(refusal) = line.refusal {
        return Ok(SandboxOutcome::Refused(refusal));
    }
    // An attempt that was made in time may be repeated later.
    if line.attempts == 0 && now > line.created_at + KEY_LIFE {
        return payment_refuse(tx, &line, "NOT_FOUND_PAYMENT_SESSION");
    }
    let moved_key = match moved.payment_key {
        // It was charged while this request waited for the lock.
        None if line.is_charged() => movement_payment_key(tx, &charge.idempotency_key)?,
        moved_key => moved_key,
    };
    match moved_key {
        Some(key) if key == line.payment_key => {
            return Ok(SandboxOutcome::MovedBefore(line.into_payment()));
        }
        Some(_) => return Ok(SandboxOutcome::Unclear("IDEMPOTENCY_KEY_REUSED")),
        None if line.is_charged() => {
            return Ok(SandboxOutcome::Unclear("ALREADY_PROCESSED_PAYMENT"));
        }
        None => {}
    }
    if moved.is_order_charged {
        return Ok(SandboxOutcome::Unclear("DUPLICATED_ORDER_ID"));
    }
    let charged = match charge_by_card(card, &line) {
        Ok(charged) => charged,
        Err(refusal) => {
            let (outcome, code) = match refusal {
                CardRefusal::Declined(code) => {
                    (SandboxOutcome::Refused(code.to_owned()), Some(code))
                }
                CardRefusal::Unclear(code) => (SandboxOutcome::Unclear(code), None),
                CardRefusal::Lost => (SandboxOutcome::Lost, None),
            };
            attempt_add(tx, &line, code)?;
            return Ok(outcome);
        }
    };
    Ok(SandboxOutcome::Moved(
        SandboxPayment { charged, approved_at: Some(now), ..line }.into_payment(),
    ))
}

/// What a card does instead of paying.
enum CardRefusal {
    Declined(&'static str),
    Unclear(&'static str),
    Lost,
}

fn charge_by_card(card: TestCard, line: &SandboxPayment) -> Result<Won, CardRefusal> {
    match card {
        TestCard::Decline => Err(CardRefusal::Declined("REJECT_CARD_PAYMENT")),
        TestCard::Insufficient => Err(CardRefusal::Declined("INSUFFICIENT_FUNDS")),
        TestCard::UnknownCode => Err(CardRefusal::Unclear("SANDBOX_UNHEARD_OF")),
        TestCard::TimeOut => Err(CardRefusal::Lost),
        TestCard::Stumble if line.attempts == 0 => Err(CardRefusal::Lost),
        TestCard::WrongAmount => Ok(Won::new((line.amount.amount() - 1).max(1))),
        _ => Ok(line.amount),
    }
}

/// Counts an attempt that did not charge.
fn attempt_add(tx: &mut Tx<'_>, line: &SandboxPayment, refusal: Option<&str>) -> DbResult<()> {
    tx.execute_later(
        "update sandbox_payments set attempts = attempts + 1, refusal = coalesce($2, refusal) \
         where payment_key = $1",
        params![line.payment_key, refusal],
    )
}

/// What was moved before, by the key of a charge and for its order.
struct EarlierMovement {
    payment_key: Option<String>,
    is_order_charged: bool,
}

/// The payments of charges by their keys, locked.
fn payments_lock_for_charge(
    tx: &mut Tx<'_>,
    set: &[&CardCharge],
) -> DbResult<HashMap<String, (SandboxPayment, EarlierMovement)>> {
    let read = |row: &Row<'_>| {
        let moved = EarlierMovement {
            payment_key: row.get("moved_key")?,
            is_order_charged: row.get::<i64>("charges")? > 0,
        };
        Ok((row.get::<String>("payment_key")?, (SandboxPayment::read(row)?, moved)))
    };
    let found = "(select moved.payment_key from sandbox_movements as moved \
         where moved.idempotency_key = asked_movement) as moved_key, (select count(*) from \
         sandbox_payments as other where other.order_id = line.order_id and other.charged > 0) \
         as charges";
    if tx.is_postgres() {
        let row = |one: &&CardCharge| json!({"asked": one.charge.payment_key, "asked_movement": one.charge.idempotency_key});
        // Rows are locked in the order in which they are asked for.
        let mut asked = set.to_vec();
        asked.sort_by_key(|one| &one.charge.payment_key);
        let rows: Json = asked.iter().map(row).collect();
        let sql = format!(
            "select line.*, {found} from jsonb_to_recordset($1) as sent (asked text, \
             asked_movement text) cross join lateral (select {COLUMNS} from sandbox_payments \
             where payment_key = asked for update) as line"
        );
        return Ok(tx.query(&sql, params![rows], read)?.into_iter().collect());
    }
    let mut lines = HashMap::new();
    for CardCharge { charge, .. } in set {
        let sql = format!(
            "select {COLUMNS}, {} from sandbox_payments as line where line.payment_key = $1",
            found.replace("asked_movement", "$2")
        );
        lines.extend(tx.query(&sql, params![charge.payment_key, charge.idempotency_key], read)?);
    }
    Ok(lines)
}

/// Refunds.
pub(super) fn payment_return(
    tx: &mut Tx<'_>,
    what: &RefundRequest,
    card: TestCard,
    now: Timestamp,
) -> DbResult<SandboxOutcome> {
    let line = payment_lock(tx, &what.payment_key)?.filter(|line| line.order_id == what.order_id);
    let Some(line) = line else {
        return Ok(SandboxOutcome::Refused("NOT_FOUND_PAYMENT".to_owned()));
    };
    match movement_payment_key(tx, &what.idempotency_key)? {
        Some(key) if key == line.payment_key => {
            return Ok(SandboxOutcome::MovedBefore(line.into_payment()));
        }
        Some(_) => return Ok(SandboxOutcome::Unclear("IDEMPOTENCY_KEY_REUSED")),
        None => {}
    }
    let left = line.charged.amount() - line.refunded.amount();
    if left != what.remaining.amount() {
        return Ok(SandboxOutcome::Unclear("NOT_MATCHES_REFUNDABLE_AMOUNT"));
    }
    if what.amount <= Won::ZERO || what.amount.amount() > left {
        return Ok(SandboxOutcome::Refused("NOT_CANCELABLE_AMOUNT".to_owned()));
    }
    if card == TestCard::PartDeclined && what.amount.amount() < left {
        return Ok(SandboxOutcome::Refused("NOT_ALLOWED_PARTIAL_REFUND".to_owned()));
    }
    if card == TestCard::RefundDeclined {
        return Ok(SandboxOutcome::Refused("REFUND_REJECTED".to_owned()));
    }
    let given = Won::new(-what.amount.amount());
    movement_insert(tx, &what.idempotency_key, &line.payment_key, given, now)?;
    let refunded = Won::new(line.refunded.amount() + what.amount.amount());
    tx.execute(
        "update sandbox_payments set refunded = $2 where payment_key = $1",
        params![line.payment_key, refunded],
    )?;
    Ok(SandboxOutcome::Moved(SandboxPayment { refunded, ..line }.into_payment()))
}

/// The payment of an order: the one that was charged, or else the one of the key, or else the last.
pub(super) fn payment_find(
    tx: &mut Tx<'_>,
    order_id: &str,
    payment_key: Option<&str>,
) -> DbResult<Option<ProviderPayment>> {
    let sql = format!(
        "select {COLUMNS} from sandbox_payments where order_id = $1 \
         order by created_at, payment_key"
    );
    let mut lines = tx.query(&sql, params![order_id], SandboxPayment::read)?;
    let chosen = lines
        .iter()
        .position(SandboxPayment::is_charged)
        .or_else(|| lines.iter().position(|line| payment_key == Some(line.payment_key.as_str())));
    let chosen = chosen.or_else(|| lines.len().checked_sub(1));
    Ok(chosen.map(|index| lines.swap_remove(index).into_payment()))
}

/// The payments whose money moved from `from` on and before `to`.
pub(super) fn payment_list(
    tx: &mut Tx<'_>,
    from: Timestamp,
    to: Timestamp,
) -> DbResult<Vec<ProviderPayment>> {
    let sql = format!(
        "select {COLUMNS} from sandbox_payments where payment_key in \
         (select payment_key from sandbox_movements where moved_at >= $1 and moved_at < $2) \
         order by approved_at, payment_key"
    );
    let lines = tx.query(&sql, params![from, to], SandboxPayment::read)?;
    Ok(lines.into_iter().map(SandboxPayment::into_payment).collect())
}

/// Deletes checkouts that were never charged. Returns how many.
pub(super) fn payments_delete_old(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from sandbox_payments where payment_key in \
         (select payment_key from sandbox_payments where charged = 0 and created_at < $1 \
          limit $2)",
        params![before, limit],
    )
}

fn payment_lock(tx: &mut Tx<'_>, payment_key: &str) -> DbResult<Option<SandboxPayment>> {
    let sql = format!("select {COLUMNS} from sandbox_payments where payment_key = $1 for update");
    tx.query_opt(&sql, params![payment_key], SandboxPayment::read)
}

fn payment_refuse(tx: &mut Tx<'_>, line: &SandboxPayment, code: &str) -> DbResult<SandboxOutcome> {
    tx.execute(
        "update sandbox_payments set refusal = $2 where payment_key = $1",
        params![line.payment_key, code],
    )?;
    Ok(SandboxOutcome::Refused(code.to_owned()))
}

fn movement_payment_key(tx: &mut Tx<'_>, key: &str) -> DbResult<Option<String>> {
    let sql = "select payment_key from sandbox_movements where idempotency_key = $1";
    tx.query_opt(sql, params![key], |row| row.get("payment_key"))
}

fn movement_insert(
    tx: &mut Tx<'_>,
    idempotency_key: &str,
    payment_key: &str,
    amount: Won,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute_later(
        "insert into sandbox_movements (idempotency_key, payment_key, amount, moved_at) \
         values ($1, $2, $3, $4)",
        params![idempotency_key, payment_key, amount, now],
    )
}
