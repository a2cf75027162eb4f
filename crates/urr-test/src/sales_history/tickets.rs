//! Sales, seats, reservations, their items and tickets.

use urr_storage::{DbResult, Tx, params};

use super::{
    CANCELLED_AFTER, EXPIRED_AFTER, IdKind, MICROS_PER_DAY, MICROS_PER_SECOND, PAID_AFTER, PRICE,
    PastSale,
};

pub(super) fn fill(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    sale_insert(tx, sale)?;
    let sql = sale.sql;
    let (event, reservation) = (sql.event(), sql.id(IdKind::Reservation, "x"));
    sale.insert(
        tx,
        "seats (event_id, seat_id, status, reservation_id, fence)",
        &format!(
            "select {event}, n::integer, case when share > 1 then 'sold' else 'available' end, \
             case when share > 1 then {reservation} end, n from r"
        ),
    )?;
    reservations_insert(tx, sale)?;
    sale.insert(
        tx,
        "reservation_items (reservation_id, position, event_id, seat_id, quantity, unit_price, \
         is_live)",
        &format!("select {reservation}, 0, {event}, n::integer, 1, {PRICE}, share > 1 from r"),
    )?;
    let (ticket, issued) = (sql.id(IdKind::Ticket, "x"), sql.after(PAID_AFTER));
    sale.insert(
        tx,
        "tickets (id, number, reservation_id, event_id, position, unit, seat_id, issue, \
         is_valid, created_at)",
        &format!(
            "select {ticket}, 'PT' || x, {reservation}, {event}, 0, 0, n::integer, 1, share > 1, \
             {issued} from r where share <> 1"
        ),
    )
}

fn sale_insert(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    let sql = sale.sql;
    let time = |days: i64| sql.time(&format!("$2::bigint + {}", days * MICROS_PER_DAY));
    let row = |number: i64| format!(r#"{{"label": "{number}", "seats": 10}}"#);
    let rows = (1..=sale.tenth()).map(row).collect::<Vec<String>>().join(", ");
    let layout = format!(r#"{{"sections": [{{"name": "A", "grade": "R", "rows": [{rows}]}}]}}"#);
    let insert = format!(
        "insert into sales (event_id, revision, kind, status, title, venue_name, starts_at, \
         sale_starts_at, sale_ends_at, has_presale, seats_per_user_max, requires_identity, \
         layout, prices, seats_total, is_complete, fence, created_at) select {event}, 1, 'seated', \
         'open', '지난 공연', '강변 홀', {starts}, {opens}, {closes}, false, 4, false, \
         '{layout}', '{{\"R\": {PRICE}}}', {seats}, true, {seats}, {created}",
        event = sql.id_at(IdKind::Event, "0", "$1::bigint"),
        starts = time(30),
        opens = time(0),
        closes = time(10),
        created = time(-1),
        seats = sale.seats,
    );
    tx.execute(&insert, params![sale.event, sale.begins_micros()])?;
    Ok(())
}

fn reservations_insert(tx: &mut Tx<'_>, sale: &PastSale) -> DbResult<()> {
    let sql = sale.sql;
    let reservation = sql.id(IdKind::Reservation, "x");
    let (event, user) = (sql.event(), sql.user());
    let payment = sql.id(IdKind::Payment, "x");
    let starts = sql.time(&format!("t - n * 1000 + {}", 30 * MICROS_PER_DAY));
    let (created, ends) = (sql.after(0), sql.after(EXPIRED_AFTER));
    let updated = sql.time(&format!(
        "t + case share when 0 then {CANCELLED_AFTER} when 1 then {EXPIRED_AFTER} \
         else {PAID_AFTER} end * {MICROS_PER_SECOND}"
    ));
    let policy = r#"{"grace": {"hours": 24, "daysBeforeMin": 3}, "bands": [{"daysBeforeMin": 0,
        "freeDays": null, "percent": 0, "ticketFeeMax": null}]}"#;
    sale.insert(
        tx,
        "reservations (id, number, user_id, event_id, status, payment_status, total_amount, \
         booking_fee, quantity, fence, expires_at, payment_id, payment_method, cancel_policy, \
         agreed_starts_at, announced_starts_at, refund_amount, end_reason, created_at, updated_at)",
        &format!(
            "select {reservation}, 'PR' || x, {user}, {event}, \
             case share when 0 then 'cancelled' when 1 then 'expired' else 'confirmed' end, \
             case share when 0 then 'refunded' when 1 then 'unpaid' else 'paid' end, {PRICE}, 0, \
             1, n, {ends}, case when share <> 1 then {payment} end, \
             case when share <> 1 then 'card' end, '{policy}', {starts}, {starts}, \
             case share when 0 then {PRICE} end, \
             case share when 0 then 'CANCELLED_BY_OWNER' end, {created}, {updated} from r"
        ),
    )
}
