//! Reads of seat maps in SQL.

use urr_kernel::Uuid;
use urr_storage::{DbResult, Tx, from_row, params};

use crate::SaleStatus;
use crate::seat_map::SeatChange;

/// The last change of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaleMark {
    /// The number of the last change of the event's seats, stock or reservations.
    pub fence: i64,
    pub status: SaleStatus,
}

pub fn sale_mark(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<SaleMark>> {
    tx.query_opt("select fence, status from sales where event_id = $1", params![event_id], |row| {
        Ok(from_row!(row => SaleMark { fence, status }))
    })
}

/// The seats that changed after a number, in the order of their changes. Seats are made with the
/// number 0, so after 0 are all that ever changed.
pub fn seats_changed(tx: &mut Tx<'_>, event_id: Uuid, after: i64) -> DbResult<Vec<SeatChange>> {
    tx.query(
        "select seat_id, status, fence from seats where event_id = $1 and fence > $2 \
         order by fence, seat_id",
        params![event_id, after],
        |row| Ok(from_row!(row => SeatChange { seat_id, status, fence })),
    )
}

/// The event that a ticket type belongs to.
pub fn ticket_type_event(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<Uuid>> {
    tx.query_opt("select event_id from ticket_types where id = $1", params![id], |row| {
        row.get("event_id")
    })
}
