//! The availability of standing events in SQL.

use urr_contracts::internal::ticket::EventAvailability;
use urr_kernel::Uuid;
use urr_storage::{Row, StorageError, Tx, params};

/// The tickets of all types of an event. One statement, so that all three numbers are of one moment:
/// between two statements a hold could be released, and the event would look sold out.
pub fn standing_availability(
    tx: &mut Tx<'_>,
    event_id: Uuid,
) -> Result<EventAvailability, StorageError> {
    let number = |row: &Row<'_>, column: &str| -> Result<u32, StorageError> {
        let number: i64 = row.get(column)?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    };
    tx.query_one(
        "select \
         (select coalesce(sum(available), 0) from ticket_types where event_id = $1) as available, \
         (select coalesce(sum(quantity), 0) from reservations \
             where event_id = $1 and status = 'pending') as held, \
         (select coalesce(sum(total), 0) from ticket_types where event_id = $1) as total",
        params![event_id],
        |row| {
            Ok(EventAvailability {
                available: number(row, "available")?,
                held: number(row, "held")?,
                total: number(row, "total")?,
            })
        },
    )
}
