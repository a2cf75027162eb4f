//! Reads of seat maps in SQL.

use urr_kernel::Uuid;
use urr_storage::{StorageError, Tx, from_row, params};

use crate::seat_map::SeatChange;
use crate::{SaleStatus, TicketTypeStock};

/// The last change of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaleMark {
    /// The number of the last change of the event's seats, stock or reservations.
    pub fence: i64,
    pub status: SaleStatus,
}

pub fn sale_mark(tx: &mut Tx<'_>, event_id: Uuid) -> Result<Option<SaleMark>, StorageError> {
    tx.query_opt("select fence, status from sales where event_id = $1", params![event_id], |row| {
        let status = row.get("status")?;
        Ok(SaleMark { fence: row.get("fence")?, status })
    })
}

/// The seats that changed after a number, in the order of their changes. Seats are made with the
/// number 0, so after 0 are all that ever changed.
pub fn seats_changed(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    after: i64,
) -> Result<Vec<SeatChange>, StorageError> {
    tx.query(
        "select seat_id, status, fence from seats where event_id = $1 and fence > $2 \
         order by fence, seat_id",
        params![event_id, after],
        |row| {
            Ok(SeatChange {
                seat_id: row.get("seat_id")?,
                status: row.get("status")?,
                fence: row.get("fence")?,
            })
        },
    )
}

/// The dearest first.
pub fn ticket_types_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
) -> Result<Vec<TicketTypeStock>, StorageError> {
    tx.query(
        "select id, name, description, price, total, available from ticket_types \
         where event_id = $1 order by price desc, name collate \"C\"",
        params![event_id],
        |row| {
            Ok(from_row!(row => TicketTypeStock {
                id, name, description, price, total, available;
                event_id: event_id,
            }))
        },
    )
}

/// The event that a ticket type belongs to.
pub fn ticket_type_event(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<Uuid>, StorageError> {
    tx.query_opt("select event_id from ticket_types where id = $1", params![id], |row| {
        row.get("event_id")
    })
}
