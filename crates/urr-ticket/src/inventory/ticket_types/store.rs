//! Ticket types in SQL.

use urr_kernel::Uuid;
use urr_storage::{DbResult, Row, Tx, from_row, params};

use crate::inventory::ticket_types::rules::TicketTypeStock;

/// The columns of a [`TicketTypeStock`].
const TICKET_TYPE: &str = "id, event_id, name, description, price, total, available";

fn ticket_type_read(row: &Row<'_>) -> DbResult<TicketTypeStock> {
    Ok(from_row!(row => TicketTypeStock {
        id, event_id, name, description, price, total, available
    }))
}

pub fn ticket_type_find(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<TicketTypeStock>> {
    let sql = format!("select {TICKET_TYPE} from ticket_types where id = $1");
    tx.query_opt(&sql, params![id], ticket_type_read)
}

/// The ticket types of an event, the dearest first.
pub fn ticket_type_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<TicketTypeStock>> {
    let sql = format!(
        "select {TICKET_TYPE} from ticket_types where event_id = $1 \
         order by price desc, name collate \"C\""
    );
    tx.query(&sql, params![event_id], ticket_type_read)
}

/// Whether the event has another ticket type of this name.
pub fn name_exists(tx: &mut Tx<'_>, event_id: Uuid, name: &str, except_id: Uuid) -> DbResult<bool> {
    let found = tx.query_opt(
        "select 1 as found from ticket_types where event_id = $1 and name = $2 and id <> $3",
        params![event_id, name, except_id],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

pub fn ticket_type_count(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<usize> {
    let sql = "select count(*) as types from ticket_types where event_id = $1";
    let types: u32 = tx.query_one(sql, params![event_id], |row| row.get("types"))?;
    Ok(types as usize)
}

/// Writes all columns. The caller has the lock of the event's sale, so `available` is current.
pub fn ticket_type_update(tx: &mut Tx<'_>, to: &TicketTypeStock) -> DbResult<()> {
    let rows = tx.execute(
        "update ticket_types set name = $2, description = $3, price = $4, total = $5, \
         available = $6 where id = $1",
        params![to.id, to.name, to.description, to.price, to.total, to.available],
    )?;
    assert_eq!(rows, 1, "it was read under the same lock");
    Ok(())
}
