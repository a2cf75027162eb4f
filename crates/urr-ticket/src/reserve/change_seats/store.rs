//! Seat changes of a hold in SQL, row by row, under the lock of the sale.

use urr_kernel::{Uuid, Won};
use urr_layout::SeatId;
use urr_storage::outbox::EventMetadata;
use urr_storage::{StorageError, Tx, params};

use crate::Reservation;

/// The seats that are not available.
pub fn seat_list_taken(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    seat_ids: &[SeatId],
) -> Result<Vec<SeatId>, StorageError> {
    let mut taken = Vec::new();
    for &seat_id in seat_ids {
        let status: Option<String> = tx.query_opt(
            "select status from seats where event_id = $1 and seat_id = $2",
            params![event_id, seat_id],
            |row| row.get("status"),
        )?;
        if status.as_deref() != Some("available") {
            taken.push(seat_id);
        }
    }
    Ok(taken)
}

/// What the holder has of the event in other reservations.
pub fn live_quantity_elsewhere(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
) -> Result<u32, StorageError> {
    tx.query_one(
        "select coalesce(sum(quantity), 0) as total from reservations where event_id = $1 \
         and user_id = $2 and status in ('pending', 'confirmed') and id <> $3",
        params![reservation.event_id, reservation.user_id, reservation.id],
        |row| row.get("total"),
    )
}

/// Gives a seat of the hold back. `false`: it is not its own.
pub fn seat_drop(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    seat_id: SeatId,
    fence: i64,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update seats set status = 'available', reservation_id = null, fence = $4 \
         where event_id = $1 and seat_id = $2 and reservation_id = $3 and status = 'held'",
        params![reservation.event_id, seat_id, reservation.id, fence],
    )?;
    tx.execute(
        "delete from reservation_items where reservation_id = $1 and seat_id = $2",
        params![reservation.id, seat_id],
    )?;
    Ok(rows == 1)
}

/// Takes a seat for the hold. `false`: it is not available.
pub fn seat_take(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    seat_id: SeatId,
    fence: i64,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update seats set status = 'held', reservation_id = $3, fence = $4 \
         where event_id = $1 and seat_id = $2 and status = 'available'",
        params![reservation.event_id, seat_id, reservation.id, fence],
    )?;
    Ok(rows == 1)
}

pub fn item_insert(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    position: u16,
    seat_id: SeatId,
    unit_price: Won,
) -> Result<(), StorageError> {
    tx.execute(
        "insert into reservation_items (reservation_id, position, event_id, seat_id, quantity, \
         unit_price, is_live) values ($1, $2, $3, $4, 1, $5, true)",
        params![reservation.id, position, reservation.event_id, seat_id, unit_price],
    )?;
    Ok(())
}

/// The hold has a new token, and the amount of its present items. Its fee stays. `stamp` is that of
/// the announcement.
pub fn hold_update(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    fence: i64,
    stamp: &EventMetadata,
) -> Result<(), StorageError> {
    let rows = tx.execute(
        "update reservations set fence = $3, updated_at = $4, last_event_id = $5, \
         quantity = (select sum(quantity) from reservation_items where reservation_id = $1), \
         total_amount = booking_fee + (select sum(quantity * unit_price)::bigint from reservation_items \
             where reservation_id = $1) \
         where id = $1 and fence = $2 and status = 'pending' and pinned_by is null",
        params![reservation.id, reservation.fence, fence, stamp.time, stamp.event_id],
    )?;
    assert_eq!(rows, 1, "the hold was seen under the lock");
    Ok(())
}
