//! What a user has and did here, for the auth service: before it closes an account, and for the copy
//! of a user's own data.

use std::time::Duration;

use serde_json::{Value, json};
use urr_contracts::internal::ticket::{GetHoldings, Holding, HoldingKind, HoldingsAnswer};
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_service::ApiError;
use urr_service::own_records::bounded_records;
use urr_storage::{DbResult, Row, StorageError, Tx, params};

use crate::TicketService;

/// A ticket is worth something until the event is over, which nobody announces.
const EVENT_LASTS_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How many rows of each table a user's copy has at most, the newest.
const RECORDS_MAX: u32 = 2_000;

pub async fn get_holdings(
    ticket: TicketService,
    call: GetHoldings,
    _: CallContext,
) -> Result<HoldingsAnswer, ApiError> {
    let (user_id, now) = (call.user_id, ticket.clock.now());
    let read = move |tx: &mut Tx<'_>| {
        let mut holdings = reservation_holdings(tx, user_id, now)?;
        holdings.extend(listing_holdings(tx, user_id)?);
        holdings.extend(membership_holdings(tx, user_id, now)?);
        holdings.sort_by_key(|holding| holding.id);
        let has_bought = has_paid(tx, user_id)? || !holdings.is_empty();
        let records = records(tx, user_id)?;
        Ok::<_, StorageError>(HoldingsAnswer { has_bought, holdings, records })
    };
    Ok(ticket.db.read(read).await?)
}

/// Whether the user ever paid for anything, or has a payment under way.
fn has_paid(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<bool> {
    let sql = "select 1 as found from reservations where user_id = $1 and \
               (payment_status <> 'unpaid' or pinned_by is not null or status = 'confirmed') \
               union all select 1 from transfers where buyer_id = $1 \
               union all select 1 from membership_terms as t join memberships as m \
               on m.id = t.membership_id where m.user_id = $1 \
               and (t.payment_status <> 'unpaid' or t.pinned_by is not null) limit 1";
    Ok(tx.query_opt(sql, params![user_id], |row| row.get::<i64>("found"))?.is_some())
}

fn reservation_holdings(tx: &mut Tx<'_>, user_id: Uuid, now: Timestamp) -> DbResult<Vec<Holding>> {
    let sql = "select r.id, r.number, r.status, r.quantity, s.title, s.starts_at \
               from reservations as r join sales as s on s.event_id = r.event_id \
               where r.user_id = $1 and s.status = 'open' and (r.status = 'pending' \
               or (r.status = 'confirmed' and s.starts_at > $2)) order by r.id desc limit $3";
    tx.query(sql, params![user_id, now - EVENT_LASTS_MAX, RECORDS_MAX], |row| {
        let kind = match row.get::<String>("status")?.as_str() {
            "pending" => HoldingKind::Hold,
            _ => HoldingKind::Reservation,
        };
        Ok(Holding {
            kind,
            id: row.get("id")?,
            title: row.get("title")?,
            number: row.get("number")?,
            quantity: row.get("quantity")?,
            time: row.get("starts_at")?,
        })
    })
}

fn listing_holdings(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Holding>> {
    let sql = "select t.id, s.title, s.starts_at from transfers as t \
               join sales as s on s.event_id = t.event_id \
               where t.seller_id = $1 and t.status = 'listed' order by t.id desc limit $2";
    tx.query(sql, params![user_id, RECORDS_MAX], |row| {
        Ok(Holding {
            kind: HoldingKind::Listing,
            id: row.get("id")?,
            title: row.get("title")?,
            number: None,
            quantity: None,
            time: row.get("starts_at")?,
        })
    })
}

fn membership_holdings(tx: &mut Tx<'_>, user_id: Uuid, now: Timestamp) -> DbResult<Vec<Holding>> {
    let sql = "select m.id, a.name, m.expires_at from memberships as m \
               left join artists as a on a.id = m.artist_id \
               where m.user_id = $1 and m.status = 'active' and m.expires_at > $2 \
               order by m.id desc limit $3";
    tx.query(sql, params![user_id, now, RECORDS_MAX], |row| {
        Ok(Holding {
            kind: HoldingKind::Membership,
            id: row.get("id")?,
            title: row.get::<Option<String>>("name")?.unwrap_or_default(),
            number: None,
            quantity: None,
            time: row.get("expires_at")?,
        })
    })
}

/// All that is stored about a user, the newest first. What did not fit is named.
fn records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Value> {
    let tables = [
        ("reservations", reservation_records(tx, user_id)?),
        ("tickets", ticket_records(tx, user_id)?),
        ("transfers", transfer_records(tx, user_id)?),
        ("memberships", membership_records(tx, user_id)?),
        ("points", point_records(tx, user_id)?),
        ("alerts", alert_records(tx, user_id)?),
    ];
    Ok(bounded_records(tables, RECORDS_MAX))
}

fn list_records(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    sql: &str,
    read: fn(&Row<'_>) -> DbResult<Value>,
) -> DbResult<Vec<Value>> {
    tx.query(sql, params![user_id, RECORDS_MAX + 1], read)
}

fn reservation_records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    let sql = "select r.id, r.number, r.status, r.payment_status, r.total_amount, r.quantity, \
               r.refund_amount, r.created_at, s.title, s.venue_name, s.starts_at \
               from reservations as r join sales as s on s.event_id = r.event_id \
               where r.user_id = $1 order by r.id desc limit $2";
    list_records(tx, user_id, sql, |row| {
        Ok(json!({
            "id": row.get::<Uuid>("id")?,
            "number": row.get::<String>("number")?,
            "status": row.get::<String>("status")?,
            "paymentStatus": row.get::<String>("payment_status")?,
            "totalAmount": row.get::<Won>("total_amount")?,
            "quantity": row.get::<u32>("quantity")?,
            "refundAmount": row.get::<Option<Won>>("refund_amount")?,
            "createdAt": row.get::<Timestamp>("created_at")?,
            "eventTitle": row.get::<String>("title")?,
            "venueName": row.get::<String>("venue_name")?,
            "eventStartsAt": row.get::<Timestamp>("starts_at")?,
        }))
    })
}

fn ticket_records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    let sql = "select t.id, t.number, t.reservation_id, t.is_valid, t.checked_in_at, t.created_at \
               from tickets as t join reservations as r on r.id = t.reservation_id \
               where r.user_id = $1 order by t.id desc limit $2";
    list_records(tx, user_id, sql, |row| {
        Ok(json!({
            "id": row.get::<Uuid>("id")?,
            "number": row.get::<String>("number")?,
            "reservationId": row.get::<Uuid>("reservation_id")?,
            "isValid": row.get::<bool>("is_valid")?,
            "checkedInAt": row.get::<Option<Timestamp>>("checked_in_at")?,
            "createdAt": row.get::<Timestamp>("created_at")?,
        }))
    })
}

/// The other party of a transfer stays private.
fn transfer_records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    let sql = "select id, reservation_id, status, original_price, fee, created_at, completed_at, \
               case when seller_id = $1 then 'seller' else 'buyer' end as part from transfers \
               where seller_id = $1 or buyer_id = $1 order by id desc limit $2";
    list_records(tx, user_id, sql, |row| {
        Ok(json!({
            "id": row.get::<Uuid>("id")?,
            "reservationId": row.get::<Uuid>("reservation_id")?,
            "part": row.get::<String>("part")?,
            "status": row.get::<String>("status")?,
            "price": row.get::<Won>("original_price")?,
            "fee": row.get::<Won>("fee")?,
            "createdAt": row.get::<Timestamp>("created_at")?,
            "completedAt": row.get::<Option<Timestamp>>("completed_at")?,
        }))
    })
}

fn membership_records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    let sql = "select m.id, m.artist_id, a.name, m.tier, m.points, m.status, m.joined_at, \
               m.expires_at from memberships as m left join artists as a on a.id = m.artist_id \
               where m.user_id = $1 order by m.id desc limit $2";
    list_records(tx, user_id, sql, |row| {
        Ok(json!({
            "id": row.get::<Uuid>("id")?,
            "artistId": row.get::<Uuid>("artist_id")?,
            "artistName": row.get::<Option<String>>("name")?,
            "tier": row.get::<String>("tier")?,
            "points": row.get::<i64>("points")?,
            "status": row.get::<String>("status")?,
            "joinedAt": row.get::<Option<Timestamp>>("joined_at")?,
            "expiresAt": row.get::<Timestamp>("expires_at")?,
        }))
    })
}

fn point_records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    let sql = "select p.membership_id, p.action, p.points, p.created_at \
               from membership_points as p join memberships as m on m.id = p.membership_id \
               where m.user_id = $1 order by p.created_at desc limit $2";
    list_records(tx, user_id, sql, |row| {
        Ok(json!({
            "membershipId": row.get::<Uuid>("membership_id")?,
            "action": row.get::<String>("action")?,
            "points": row.get::<i64>("points")?,
            "createdAt": row.get::<Timestamp>("created_at")?,
        }))
    })
}

fn alert_records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    let sql = "select 'sale' as kind, event_id, '' as subject, 0 as quantity, asked_at, told_at \
               from sale_alerts where user_id = $1 union all \
               select 'seat', event_id, subject, quantity, asked_at, told_at \
               from seat_alerts where user_id = $1 order by asked_at desc limit $2";
    list_records(tx, user_id, sql, |row| {
        Ok(json!({
            "kind": row.get::<String>("kind")?,
            "eventId": row.get::<Uuid>("event_id")?,
            "grade": row.get::<String>("subject")?,
            "quantity": row.get::<u32>("quantity")?,
            "askedAt": row.get::<Timestamp>("asked_at")?,
            "toldAt": row.get::<Option<Timestamp>>("told_at")?,
        }))
    })
}
