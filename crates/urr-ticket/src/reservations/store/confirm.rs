//! Confirmation in SQL, under the lock of the sale.

use urr_kernel::{Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{DbResult, Tx, params};

use crate::{Reservation, ReservationId};

/// The values of a confirmation.
#[derive(Clone, Debug)]
pub struct SoldHold<'a> {
    pub id: ReservationId,
    pub payment_id: Uuid,
    pub payment_method: &'a str,
    /// As many as were found to be its own.
    pub seats: u64,
    pub fence: i64,
    /// The id of its event.
    pub event_id: Uuid,
    pub now: Timestamp,
}

/// How many seats the hold has. None: they are not all its own, which only a bug can cause, and
/// then nothing may be sold. Seat by seat: a join might read all seats of the event.
pub fn own_seats_count(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Option<u64>> {
    tx.query_one(
        "select count(*) as total, coalesce(sum((select count(*) from seats \
         where seats.event_id = item.event_id and seats.seat_id = item.seat_id \
         and seats.reservation_id = item.reservation_id and seats.status = 'held')), 0)::bigint \
         as own from reservation_items as item \
         where item.reservation_id = $1 and item.is_live and item.seat_id is not null",
        params![id],
        |row| {
            let (total, own): (u64, u64) = (row.get("total")?, row.get("own")?);
            Ok((own == total).then_some(total))
        },
    )
}

/// A pinned hold is sold. The pin and the seats were seen under the lock, so a miss is a bug.
pub fn hold_confirm(tx: &mut Tx<'_>, sold: &SoldHold<'_>) -> DbResult<()> {
    tx.change_later(
        "update reservations set status = 'confirmed', payment_status = 'paid', \
         payment_id = pinned_by, pinned_by = null, pinned_at = null, payment_method = $3, \
         updated_at = $4, last_event_id = $5 \
         where id = $1 and status = 'pending' and pinned_by = $2",
        params![sold.id, sold.payment_id, sold.payment_method, sold.now, sold.event_id],
        1,
    )?;
    tx.change_later(
        "update seats set status = 'sold', fence = $2 from reservation_items as item \
         where item.reservation_id = $1 and item.is_live and seats.event_id = item.event_id \
         and seats.seat_id = item.seat_id and seats.reservation_id = item.reservation_id \
         and seats.status = 'held'",
        params![sold.id, sold.fence],
        sold.seats,
    )
}

/// A ticket that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTicket {
    pub id: Uuid,
    pub number: String,
    pub position: u16,
    pub unit: u16,
    pub seat_id: Option<SeatId>,
}

pub fn ticket_insert(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    new: &NewTicket,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute_later(
        "insert into tickets (id, number, reservation_id, event_id, position, unit, seat_id, \
         issue, is_valid, created_at) values ($1, $2, $3, $4, $5, $6, $7, 1, true, $8)",
        params![
            new.id,
            new.number,
            reservation.id,
            reservation.event_id,
            new.position,
            new.unit,
            new.seat_id,
            now
        ],
    )
}
