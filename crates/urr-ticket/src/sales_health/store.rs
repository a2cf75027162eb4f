//! What the waiting room is told of a sale.

use urr_kernel::Uuid;
use urr_storage::{Row, StorageError, Tx, params};

/// Tickets without a seat, of all types of an event together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockTotals {
    pub available: u32,
    pub held: u32,
    pub total: u32,
}

/// One statement, so that all three are of one moment: between two, what was held may have become
/// available, and the event would look sold out.
pub fn stock_totals_load(tx: &mut Tx<'_>, event_id: Uuid) -> Result<StockTotals, StorageError> {
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
            Ok(StockTotals {
                available: number(row, "available")?,
                held: number(row, "held")?,
                total: number(row, "total")?,
            })
        },
    )
}
