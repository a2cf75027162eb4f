//! Items of reservations in SQL.

use std::collections::HashMap;

use urr_kernel::{Uuid, Won};
use urr_layout::SeatId;
use urr_storage::{Row, StorageError, Tx, params};

use crate::in_list::for_each_chunk;
use crate::{ItemSubject, ReservationId, ReservationItem};

/// An item with its position in the reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    pub position: u16,
    pub item: ReservationItem,
    /// The name of the ticket type; a seat's follows from its number.
    pub name: Option<String>,
}

/// The seats among the items, in order.
pub fn seat_ids(items: &[StoredItem]) -> Vec<SeatId> {
    let mut seat_ids: Vec<SeatId> = items
        .iter()
        .filter_map(|stored| match stored.item.subject {
            ItemSubject::Seat(seat_id) => Some(seat_id),
            ItemSubject::TicketType(_) => None,
        })
        .collect();
    seat_ids.sort_unstable();
    seat_ids
}

/// The items of a reservation, ended or not.
pub fn item_list(tx: &mut Tx<'_>, id: ReservationId) -> Result<Vec<StoredItem>, StorageError> {
    tx.query(
        "select i.position, i.seat_id, i.ticket_type_id, i.quantity, i.unit_price, t.name \
         from reservation_items as i left join ticket_types as t on t.id = i.ticket_type_id \
         where i.reservation_id = $1 order by i.position",
        params![id],
        item_read,
    )
}

/// The items of several reservations.
pub fn item_list_of(
    tx: &mut Tx<'_>,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, Vec<StoredItem>>, StorageError> {
    let mut items: HashMap<Uuid, Vec<StoredItem>> = HashMap::new();
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!(
            "select i.reservation_id, i.position, i.seat_id, i.ticket_type_id, i.quantity, \
             i.unit_price, t.name from reservation_items as i \
             left join ticket_types as t on t.id = i.ticket_type_id \
             where i.reservation_id in ({list}) order by i.reservation_id, i.position"
        );
        let read = |row: &Row<'_>| Ok((row.get::<Uuid>("reservation_id")?, item_read(row)?));
        for (id, item) in tx.query(&sql, values, read)? {
            items.entry(id).or_default().push(item);
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(items)
}

fn item_read(row: &Row<'_>) -> Result<StoredItem, StorageError> {
    let seat_id: Option<SeatId> = row.get("seat_id")?;
    let subject = match seat_id {
        Some(seat_id) => ItemSubject::Seat(seat_id),
        None => ItemSubject::TicketType(row.get("ticket_type_id")?),
    };
    let (quantity, unit_price) = (row.get("quantity")?, row.get::<Won>("unit_price")?);
    Ok(StoredItem {
        position: row.get("position")?,
        item: ReservationItem { subject, quantity, unit_price },
        name: row.get("name")?,
    })
}
