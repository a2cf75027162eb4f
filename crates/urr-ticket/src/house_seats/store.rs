//! House seats in SQL, under the lock of the sale.

pub mod guests;

use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_storage::outbox::EventMetadata;
use urr_storage::{DbResult, Row, Tx, from_row, params};

use super::guests::{HouseGuest, SealedGuest};
use super::issue::{HouseList, HouseReservation, NewHouseReservation};
use super::{BlockRequest, BlockedSeats};
use crate::reserve::store::policy_json;
use crate::{CancelPolicy, Reservation, SeatStatus};

/// `false`: the seat is held or sold. A blocked seat gets the new reason.
pub fn seat_block(
    tx: &mut Tx<'_>,
    request: &BlockRequest,
    seat_id: SeatId,
    fence: i64,
    now: Timestamp,
) -> DbResult<bool> {
    let event_id = request.event_id;
    let rows = tx.execute(
        "update seats set status = 'blocked', fence = $3 \
         where event_id = $1 and seat_id = $2 and status = 'available'",
        params![event_id, seat_id, fence],
    )?;
    if rows == 0 && seat_status(tx, event_id, seat_id)? != Some(SeatStatus::Blocked) {
        return Ok(false);
    }
    tx.execute(
        "insert into house_seats (event_id, seat_id, reason, blocked_by, blocked_at) \
         values ($1, $2, $3, $4, $5) on conflict (event_id, seat_id) \
         do update set reason = excluded.reason",
        params![event_id, seat_id, request.reason, request.organiser_id, now],
    )?;
    Ok(true)
}

fn seat_status(tx: &mut Tx<'_>, event_id: Uuid, seat_id: SeatId) -> DbResult<Option<SeatStatus>> {
    let sql = "select status from seats where event_id = $1 and seat_id = $2";
    tx.query_opt(sql, params![event_id, seat_id], |row| row.get("status"))
}

/// `false`: the seat is not blocked.
pub fn seat_release(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    seat_id: SeatId,
    fence: i64,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update seats set status = 'available', fence = $3 \
         where event_id = $1 and seat_id = $2 and status = 'blocked'",
        params![event_id, seat_id, fence],
    )?;
    reason_delete(tx, event_id, seat_id)?;
    Ok(rows == 1)
}

fn reason_delete(tx: &mut Tx<'_>, event_id: Uuid, seat_id: SeatId) -> DbResult<()> {
    let sql = "delete from house_seats where event_id = $1 and seat_id = $2";
    tx.execute(sql, params![event_id, seat_id]).map(drop)
}

/// Sells a free or blocked seat. `false`: it is held or sold.
pub fn seat_sell(tx: &mut Tx<'_>, reservation: &Reservation, seat_id: SeatId) -> DbResult<bool> {
    let rows = tx.execute(
        "update seats set status = 'sold', reservation_id = $3, fence = $4 \
         where event_id = $1 and seat_id = $2 and status in ('available', 'blocked')",
        params![reservation.event_id, seat_id, reservation.id, reservation.fence],
    )?;
    reason_delete(tx, reservation.event_id, seat_id)?;
    Ok(rows == 1)
}

pub fn type_exists(tx: &mut Tx<'_>, event_id: Uuid, id: Uuid) -> DbResult<bool> {
    let sql = "select 1 as one from ticket_types where id = $1 and event_id = $2";
    Ok(tx.query_opt(sql, params![id, event_id], |_| Ok(()))?.is_some())
}

pub fn type_price(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Won> {
    let sql = "select price from ticket_types where id = $1";
    tx.query_one(sql, params![id], |row| row.get("price"))
}

/// `false`: there are fewer tickets left.
pub fn stock_take(tx: &mut Tx<'_>, type_id: Uuid, quantity: u32) -> DbResult<bool> {
    let sql = "update ticket_types set available = available - $2 \
        where id = $1 and available >= $2";
    Ok(tx.execute(sql, params![type_id, quantity])? == 1)
}

pub fn stock_return(tx: &mut Tx<'_>, type_id: Uuid, quantity: u32) -> DbResult<()> {
    let sql = "update ticket_types set available = available + $2 where id = $1";
    tx.execute(sql, params![type_id, quantity]).map(drop)
}

/// Adds to the blocked tickets of a type.
pub fn stock_block(
    tx: &mut Tx<'_>,
    request: &BlockRequest,
    type_id: Uuid,
    quantity: u32,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "insert into house_stock (ticket_type_id, event_id, quantity, reason, blocked_by, \
         blocked_at) values ($1, $2, $3, $4, $5, $6) on conflict (ticket_type_id) do update \
         set quantity = house_stock.quantity + excluded.quantity, reason = excluded.reason",
        params![type_id, request.event_id, quantity, request.reason, request.organiser_id, now],
    )?;
    Ok(())
}

/// Takes tickets from the blocked ones. `false`: there are fewer.
pub fn stock_unblock(tx: &mut Tx<'_>, type_id: Uuid, quantity: u32) -> DbResult<bool> {
    let sql = "delete from house_stock where ticket_type_id = $1 and quantity = $2";
    if tx.execute(sql, params![type_id, quantity])? == 1 {
        return Ok(true);
    }
    let sql = "update house_stock set quantity = quantity - $2 \
        where ticket_type_id = $1 and quantity > $2";
    Ok(tx.execute(sql, params![type_id, quantity])? == 1)
}

/// Seats and standing tickets together.
pub fn blocked_count(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<u32> {
    let blocked: i64 = tx.query_one(
        "select (select count(*) from house_seats where event_id = $1) \
         + (select coalesce(sum(quantity), 0) from house_stock where event_id = $1)::bigint \
         as blocked",
        params![event_id],
        |row| row.get("blocked"),
    )?;
    Ok(u32::try_from(blocked).unwrap_or(u32::MAX))
}

/// What is blocked, by reason and block.
pub fn blocked_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<BlockedSeats>> {
    let mut blocks: Vec<BlockedSeats> = Vec::new();
    let blank = |row: &Row<'_>| -> DbResult<BlockedSeats> {
        Ok(from_row!(row => BlockedSeats {
            reason, blocked_by, blocked_at;
            seat_ids: Vec::new(),
            items: std::collections::BTreeMap::new(),
        }))
    };
    let seats = tx.query(
        "select seat_id, reason, blocked_by, blocked_at from house_seats where event_id = $1 \
         order by blocked_at, reason, seat_id",
        params![event_id],
        |row| Ok((blank(row)?, row.get::<SeatId>("seat_id")?)),
    )?;
    for (block, seat_id) in seats {
        let is_same = |last: &&mut BlockedSeats| {
            (&last.reason, last.blocked_at) == (&block.reason, block.blocked_at)
        };
        match blocks.last_mut().filter(is_same) {
            Some(last) => last.seat_ids.push(seat_id),
            None => blocks.push(BlockedSeats { seat_ids: vec![seat_id], ..block }),
        }
    }
    let stock = tx.query(
        "select ticket_type_id, quantity, reason, blocked_by, blocked_at from house_stock \
         where event_id = $1 order by blocked_at, ticket_type_id",
        params![event_id],
        |row| Ok((blank(row)?, row.get::<Uuid>("ticket_type_id")?, row.get::<u32>("quantity")?)),
    )?;
    for (block, type_id, quantity) in stock {
        blocks.push(BlockedSeats { items: [(type_id, quantity)].into(), ..block });
    }
    Ok(blocks)
}

/// Inserts a reservation that is paid and confirmed at once.
pub fn reservation_insert(
    tx: &mut Tx<'_>,
    new: &NewHouseReservation<'_>,
    policy: &CancelPolicy,
    starts_at: Timestamp,
    stamp: &EventMetadata,
) -> DbResult<()> {
    let reservation = new.reservation;
    tx.execute(
        "insert into reservations (id, number, user_id, event_id, kind, status, payment_status, \
         total_amount, booking_fee, quantity, fence, expires_at, payment_id, payment_method, \
         cancel_policy, agreed_starts_at, announced_starts_at, correlation_id, last_event_id, \
         created_at, updated_at) values ($1, $2, $3, $4, $5, 'confirmed', 'paid', $6, 0, $7, $8, \
         $9, $10, $11, $12, $13, $13, $14, $15, $9, $9)",
        params![
            reservation.id,
            reservation.number,
            reservation.user_id,
            reservation.event_id,
            new.kind,
            reservation.total_amount,
            reservation.quantity,
            reservation.fence,
            reservation.created_at,
            new.payment.map(|(id, _)| id),
            new.payment.map(|(_, method)| method),
            policy_json(policy),
            starts_at,
            stamp.context.correlation_id,
            stamp.event_id
        ],
    )?;
    tx.execute(
        "insert into house_reservations (reservation_id, issued_by, reason, receipt_number) \
         values ($1, $2, $3, $4)",
        params![reservation.id, new.issued_by, new.reason, new.receipt_number],
    )?;
    Ok(())
}

/// The newest complimentary tickets and sales of an event, or the sales alone, each with its guest
/// as stored.
pub fn reservation_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    listed: HouseList,
    limit: u32,
) -> DbResult<Vec<(HouseReservation, Option<SealedGuest>)>> {
    let kinds = match listed {
        HouseList::All => "",
        HouseList::Sales => "and r.kind = 'box_office'",
    };
    let sql = format!(
        "select r.id, r.user_id, r.number, r.kind, r.status, r.payment_status, r.payment_method, \
         r.quantity, r.total_amount, r.created_at, h.issued_by, h.reason, h.receipt_number, \
         g.reservation_id as guest_of, g.key_version, g.name_cipher, g.name_index, \
         g.email_cipher, g.email_index from reservations as r \
         join house_reservations as h on h.reservation_id = r.id \
         left join house_guests as g on g.reservation_id = r.id \
         where r.event_id = $1 and r.kind <> 'online' {kinds} order by r.id desc limit $2"
    );
    tx.query(&sql, params![event_id, limit], |row| {
        let has_guest = row.get::<Option<Uuid>>("guest_of")?.is_some();
        let reservation = from_row!(row => HouseReservation {
            id, user_id, number, kind, status, payment_status, payment_method, quantity,
            total_amount, created_at, issued_by, reason, receipt_number;
            guest: HouseGuest::default(),
        });
        Ok((reservation, has_guest.then(|| guests::guest_read(row)).transpose()?))
    })
}

/// How many complimentary tickets of an event are valid.
pub fn complimentary_count(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<u64> {
    tx.query_one(
        "select coalesce(sum(quantity), 0)::bigint as total from reservations \
         where event_id = $1 and kind = 'complimentary' and status = 'confirmed'",
        params![event_id],
        |row| row.get("total"),
    )
}
