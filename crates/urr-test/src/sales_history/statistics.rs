//! Facts, and the counters that are their sums.

use urr_storage::{DbResult, Tx, params};

use super::{CANCELLED_AFTER, EXPIRED_AFTER, IdKind, PAID_AFTER, PRICE, PastSale};

/// The messages about a reservation: type, and which shares have it.
const MESSAGES: [(&str, &str); 6] = [
    ("RESERVATION_CREATED", "share >= 0"),
    ("RESERVATION_CONFIRMED", "share <> 1"),
    ("PAYMENT_CONFIRMED", "share <> 1"),
    ("RESERVATION_EXPIRED", "share = 1"),
    ("RESERVATION_CANCELLED", "share = 0"),
    ("PAYMENT_REFUNDED", "share = 0"),
];
/// Noon in Korea.
const HOUR: i64 = 12;

pub(super) fn fill(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    facts_insert(tx, sale)?;
    messages_insert(tx, sale)?;
    let event = sale.sql.event();
    sale.insert(
        tx,
        "sold_seats (event_id, seat_id, sold)",
        &format!("select {event}, n, 1 from r where share > 1"),
    )?;
    counters_insert(tx, sale)
}

fn facts_insert(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    let sql = sale.sql;
    let (event, user) = (sql.event(), sql.user());
    let (reservation, message) = (sql.id(IdKind::Reservation, "x"), sql.id(IdKind::Message, "x"));
    let (created, paid) = (sql.after(0), sql.after(PAID_AFTER));
    let (cancelled, expired) = (sql.after(CANCELLED_AFTER), sql.after(EXPIRED_AFTER));
    sale.insert(
        tx,
        "reservations (id, event_id, user_id, amount, quantity, seat_ids, terms_rank, terms_at, \
         terms_message_id, created_at, hold_ends_at, confirmed_at, cancelled_at, expired_at, \
         refund_amount)",
        &format!(
            "select {reservation}, {event}, {user}, {PRICE}, 1, ('[' || n || ']')::jsonb, 2, \
             case share when 0 then {cancelled} when 1 then {expired} else {paid} end, {message}, \
             {created}, {expired}, case when share <> 1 then {paid} end, \
             case share when 0 then {cancelled} end, case share when 1 then {expired} end, \
             case share when 0 then {PRICE} else 0 end from r"
        ),
    )?;
    let transactions =
        "transactions (kind, id, happened_at, user_id, event_id, amount, method, cause)";
    let (payment, refund) = (sql.id(IdKind::Payment, "x"), sql.id(IdKind::Refund, "x"));
    sale.insert(
        tx,
        transactions,
        &format!(
            "select 'charge', {payment}, {paid}, {user}, {event}, {PRICE}, 'card', '' from r \
             where share <> 1"
        ),
    )?;
    sale.insert(
        tx,
        transactions,
        &format!(
            "select 'refund', {refund}, {cancelled}, {user}, {event}, {PRICE}, 'card', \
             'cancelled' from r where share = 0"
        ),
    )
}

fn messages_insert(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    let day = sale.day();
    for (place, (event_type, wanted)) in (0..).zip(MESSAGES) {
        let message = sale.sql.id(IdKind::Message, &format!("x * 8 + {place}"));
        sale.insert(
            tx,
            "counted_messages (id, day, event_type)",
            &format!("select {message}, '{day}', '{event_type}' from r where {wanted}"),
        )?;
        let tenths = match wanted {
            "share >= 0" => 10,
            "share <> 1" => 9,
            _ => 1,
        };
        tx.execute(
            "insert into activity (day, event_type, total) values ($1, $2, $3)",
            params![day, event_type, tenths * sale.tenth()],
        )?;
    }
    Ok(())
}

fn counters_insert(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    let (tenth, day) = (sale.tenth(), sale.day());
    let (all, paid, confirmed) = (10 * tenth, 9 * tenth, 8 * tenth);
    let held = paid * PAID_AFTER + tenth * EXPIRED_AFTER;
    let counters = [
        ("created", all),
        ("confirmed", paid),
        ("cancelled", tenth),
        ("expired", tenth),
        ("completed", confirmed),
        ("dropped", tenth),
        ("lapsed", tenth),
        ("pending", 0),
        ("places_sold", confirmed),
        ("held_seconds", held),
        ("holds", all),
        ("paid_seconds", paid * PAID_AFTER),
        ("pays", paid),
        ("cancelled_seconds", tenth * CANCELLED_AFTER),
        ("cancels", tenth),
        ("owed", tenth * PRICE),
        ("charges", paid),
        ("charged", paid * PRICE),
        ("refunds", tenth),
        ("refunded", tenth * PRICE),
        ("undelivered", 0),
        ("transfers", 0),
        ("transferred", 0),
        ("memberships", 0),
        ("registered", 0),
        ("deleted", 0),
    ];
    let columns = counters.map(|(name, _)| name).join(", ");
    let values = counters.map(|(_, value)| value.to_string()).join(", ");
    let event = sale.sql.id_at(IdKind::Event, "0", &sale.event.to_string());
    let insert =
        |into: &str, key: &str| format!("insert into {into}, {columns}) values ({key}, {values})");
    tx.execute(&insert("hour_counters (day, hour", &format!("'{day}', {HOUR}")), &[])?;
    tx.execute(&insert("event_counters (event_id, day", &format!("{event}, '{day}'")), &[])?;
    tx.execute(
        "insert into method_totals (day, method, charges, charged, refunds, refunded) \
         values ($1, 'card', $2, $3, $4, $5)",
        params![day, paid, paid * PRICE, tenth, tenth * PRICE],
    )?;
    Ok(())
}
