//! Single tickets that are cancelled, in SQL, under the lock of the sale.

use std::collections::BTreeMap;

use urr_kernel::Won;
use urr_storage::outbox::EventMetadata;
use urr_storage::{DbResult, Tx, params};

use crate::Reservation;
use crate::reservations::rules::ReservationRecord;
use crate::reservations::store::list::StoredTicket;

/// Tickets that are cancelled together.
#[derive(Clone, Copy)]
pub struct TicketCancellation<'a> {
    pub chosen: &'a [StoredTicket],
    pub fence: i64,
    /// Their price.
    pub amount: Won,
    /// What of it is refunded.
    pub refund: Won,
    /// Of the announcement.
    pub stamp: &'a EventMetadata,
}

/// Cancels tickets, and gives back exactly their seats and stock. `false`: a seat is not the
/// reservation's own, and the transaction must not be committed.
pub fn tickets_cancel(
    tx: &mut Tx<'_>,
    record: &ReservationRecord,
    cancellation: &TicketCancellation<'_>,
) -> DbResult<bool> {
    let reservation = &record.reservation;
    let mut by_position: BTreeMap<u16, u32> = BTreeMap::new();
    for ticket in cancellation.chosen {
        *by_position.entry(ticket.position).or_default() += 1;
        let sql = "update tickets set is_valid = false where id = $1 and is_valid";
        assert_eq!(tx.execute(sql, params![ticket.id])?, 1, "the ticket was seen under the lock");
        if !seat_free(tx, reservation, ticket, cancellation.fence)? {
            return Ok(false);
        }
    }
    for (position, quantity) in by_position {
        item_reduce(tx, reservation, position, quantity)?;
    }
    let rows = tx.execute(
        "update reservations set quantity = quantity - $2, total_amount = total_amount - $3, \
         cancelled_amount = cancelled_amount + $3, \
         cancelled_refund_amount = cancelled_refund_amount + $4, updated_at = $5, \
         last_event_id = $6 where id = $1 and status = 'confirmed' and payment_status = 'paid' \
         and quantity > $2",
        params![
            reservation.id,
            u32::try_from(cancellation.chosen.len()).expect("they are few"),
            cancellation.amount,
            cancellation.refund,
            cancellation.stamp.time,
            cancellation.stamp.event_id
        ],
    )?;
    assert_eq!(rows, 1, "the state was seen under the lock");
    Ok(true)
}

/// `false`: the seat is not the reservation's own.
fn seat_free(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    ticket: &StoredTicket,
    fence: i64,
) -> DbResult<bool> {
    let Some(seat_id) = ticket.seat_id else { return Ok(true) };
    let rows = tx.execute(
        "update seats set status = 'available', reservation_id = null, fence = $4 \
         where event_id = $1 and seat_id = $2 and reservation_id = $3 and status = 'sold'",
        params![reservation.event_id, seat_id, reservation.id, fence],
    )?;
    Ok(rows == 1)
}

/// Takes this many tickets out of an item, and gives standing tickets back to the stock.
fn item_reduce(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    position: u16,
    quantity: u32,
) -> DbResult<()> {
    let rows = tx.execute(
        "update reservation_items set quantity = quantity - $3, \
         cancelled_quantity = cancelled_quantity + $3, is_live = (quantity > $3) \
         where reservation_id = $1 and position = $2 and is_live and quantity >= $3",
        params![reservation.id, position, quantity],
    )?;
    assert_eq!(rows, 1, "a valid ticket is part of a live item");
    tx.execute(
        "update ticket_types set available = available + $3 where id = (\
             select ticket_type_id from reservation_items where reservation_id = $1 \
             and position = $2)",
        params![reservation.id, position, quantity],
    )?;
    Ok(())
}
