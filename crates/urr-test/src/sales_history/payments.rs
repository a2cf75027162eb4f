//! Payments with what a purchase leaves beside them, the ledger, and the books of the sandbox.

use urr_storage::{DbResult, Tx};

use super::{CANCELLED_AFTER, IdKind, PAID_AFTER, PRICE, PastSale};

/// The entries of a payment: kind, whether only a refunded payment has it, seconds after the hold, and
/// the accounts to which and from which the price goes.
const ENTRIES: [(&str, bool, i64, &str, &str); 4] = [
    ("charge", false, PAID_AFTER, "provider", "deposits"),
    ("deliver", false, PAID_AFTER, "deposits", "sales"),
    ("cancel", true, CANCELLED_AFTER, "sales", "refunds_due"),
    ("refund", true, CANCELLED_AFTER, "refunds_due", "provider"),
];

pub(super) fn fill(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    payments_insert(tx, sale)?;
    let sql = sale.sql;
    let (created, paid) = (sql.after(0), sql.after(PAID_AFTER));
    for (action, at) in [("CREATE", &created), ("APPROVE", &paid)] {
        sale.insert(
            tx,
            "payment_idempotency (order_id, action, idempotency_key, created_at)",
            &format!("select 'order-' || x, '{action}', 'key-' || x, {at} from r where share <> 1"),
        )?;
    }
    let (payment, refund) = (sql.id(IdKind::Payment, "x"), sql.id(IdKind::Refund, "x"));
    let call = sql.id(IdKind::Call, "x");
    sale.insert(
        tx,
        "provider_calls (id, payment_id, action, started_at, finished_at, outcome)",
        &format!(
            "select {call}, {payment}, 'confirm', {paid}, {paid}, 'done' from r where share <> 1"
        ),
    )?;
    let (message, cancelled) = (sql.id(IdKind::Message, "x * 8"), sql.after(CANCELLED_AFTER));
    sale.insert(
        tx,
        "refunds (id, payment_id, cause, amount, fee, reason, requested_amount, status, \
         key_number, declines, correlation_id, created_at, done_at, reported_at)",
        &format!(
            "select {refund}, {payment}, 'cancelled', {PRICE}, 0, 'CANCELLED_BY_OWNER', {PRICE}, \
             'done', 1, 0, {message}, {cancelled}, {cancelled}, {cancelled} from r \
             where share = 0"
        ),
    )?;
    ledger_insert(tx, sale)?;
    sandbox_insert(tx, sale)
}

fn payments_insert(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    let sql = sale.sql;
    let (payment, user) = (sql.id(IdKind::Payment, "x"), sql.user());
    let (reservation, event) = (sql.id(IdKind::Reservation, "x"), sql.event());
    let (created, paid) = (sql.after(0), sql.after(PAID_AFTER));
    let message = sql.id(IdKind::Message, "x * 8");
    sale.insert(
        tx,
        "payments (id, order_id, user_id, payable_kind, payable_id, event_id, reservation_id, \
         fencing_token, order_name, amount, booking_fee, currency, provider, payment_key, \
         provider_key, method, status, attempts, charge_sent_at, last_charge_at, approved_at, \
         charged_amount, refunded_amount, correlation_id, confirmed_event_id, created_at, \
         updated_at)",
        &format!(
            "select {payment}, 'order-' || x, {user}, 'reservation', {reservation}, {event}, \
             {reservation}, n, '지난 공연', {PRICE}, 0, 'KRW', 'sandbox', 'checkout-' || x, \
             'charge-' || x, 'card', case share when 0 then 'refunded' else 'confirmed' end, 1, \
             {paid}, {paid}, {paid}, {PRICE}, case share when 0 then {PRICE} else 0 end, \
             {message}, {message}, {created}, {paid} from r where share <> 1"
        ),
    )
}

fn ledger_insert(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    let sql = sale.sql;
    let (payment, refund) = (sql.id(IdKind::Payment, "x"), sql.id(IdKind::Refund, "x"));
    for (place, (kind, is_of_refund, seconds, to, from)) in (0..).zip(ENTRIES) {
        let entry = sql.id(IdKind::Entry, &format!("x * 4 + {place}"));
        let at = sql.after(seconds);
        let (wanted, refund) = match is_of_refund {
            true => ("share = 0", refund.as_str()),
            false => ("share <> 1", "null::uuid"),
        };
        sale.insert(
            tx,
            "ledger_entries (id, at, payment_id, refund_id, kind)",
            &format!("select {entry}, {at}, {payment}, {refund}, '{kind}' from r where {wanted}"),
        )?;
        for (account, amount) in [(to, PRICE), (from, -PRICE)] {
            sale.insert(
                tx,
                "ledger_lines (entry_id, account, amount)",
                &format!("select {entry}, '{account}', {amount} from r where {wanted}"),
            )?;
        }
    }
    Ok(())
}

fn sandbox_insert(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    let sql = sale.sql;
    let (created, paid) = (sql.after(0), sql.after(PAID_AFTER));
    let cancelled = sql.after(CANCELLED_AFTER);
    sale.insert(
        tx,
        "sandbox_payments (payment_key, order_id, amount, attempts, charged, refunded, \
         created_at, approved_at)",
        &format!(
            "select 'checkout-' || x, 'order-' || x, {PRICE}, 1, {PRICE}, \
             case share when 0 then {PRICE} else 0 end, {created}, {paid} from r where share <> 1"
        ),
    )?;
    let movements = "sandbox_movements (idempotency_key, payment_key, amount, moved_at)";
    sale.insert(
        tx,
        movements,
        &format!("select 'c' || x, 'checkout-' || x, {PRICE}, {paid} from r where share <> 1"),
    )?;
    sale.insert(
        tx,
        movements,
        &format!("select 'r' || x, 'checkout-' || x, -{PRICE}, {cancelled} from r where share = 0"),
    )
}
