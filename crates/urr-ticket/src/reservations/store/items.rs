//! Items of reservations in SQL.

use std::collections::HashMap;

use urr_kernel::Uuid;
use urr_storage::{DbResult, Row, StorageError, Tx, from_row};

use crate::in_list::for_each_chunk;
use crate::{ItemSubject, ReservationId, ReservationItem};

/// The columns of a [`ReservationItem`] of `reservation_items as i` and `ticket_types as t`, and its
/// reservation.
pub(super) const ITEM: &str = "i.reservation_id, i.position, i.seat_id, i.ticket_type_id, \
    i.quantity, i.unit_price, t.name";

/// The items of a reservation, ended or not, without tickets that were cancelled one by one.
pub fn item_list(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Vec<ReservationItem>> {
    Ok(item_list_of(tx, &[id.0])?.remove(&id.0).unwrap_or_default())
}

/// The items of several reservations.
pub fn item_list_of(
    tx: &mut Tx<'_>,
    ids: &[Uuid],
) -> DbResult<HashMap<Uuid, Vec<ReservationItem>>> {
    let mut items: HashMap<Uuid, Vec<ReservationItem>> = HashMap::new();
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!(
            "select {ITEM} from reservation_items as i \
             left join ticket_types as t on t.id = i.ticket_type_id \
             where i.reservation_id in ({list}) and i.quantity > 0 order by i.reservation_id, i.position"
        );
        let read = |row: &Row<'_>| Ok((row.get::<Uuid>("reservation_id")?, item_read(row)?));
        for (id, item) in tx.query(&sql, values, read)? {
            items.entry(id).or_default().push(item);
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(items)
}

pub(super) fn item_read(row: &Row<'_>) -> DbResult<ReservationItem> {
    let subject = match row.get("seat_id")? {
        Some(seat_id) => ItemSubject::Seat(seat_id),
        None => ItemSubject::TicketType(row.get("ticket_type_id")?),
    };
    Ok(from_row!(row => ReservationItem { position, quantity, unit_price, name; subject: subject }))
}
