//! Our own copy of the catalogue's events. Revisions decide what is newer.

use serde_json::Value;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

/// What the catalogue says of an event.
pub struct EventCopy<'a> {
    pub id: Uuid,
    pub revision: i64,
    pub title: &'a str,
    pub venue: &'a str,
    pub kind: &'a str,
    pub starts_at: Timestamp,
    pub prices: &'a Value,
}

/// A type of standing tickets. The higher fence is newer.
pub struct TicketTypeCopy {
    pub event_id: Uuid,
    pub id: Uuid,
    pub price: i64,
    pub total: i64,
    pub fence: i64,
}

/// Older than any revision.
const UNKNOWN: i64 = -1;

/// An event that something is said about, even if the catalogue's word was not heard yet.
pub fn event_note(tx: &mut Tx<'_>, id: Uuid) -> Result<(), StorageError> {
    tx.execute(
        "insert into events (id, revision, status_revision, seats, places) \
         values ($1, $2, $2, 0, 0) on conflict (id) do nothing",
        params![id, UNKNOWN],
    )?;
    Ok(())
}

pub fn event_update(tx: &mut Tx<'_>, event: &EventCopy<'_>) -> Result<(), StorageError> {
    event_note(tx, event.id)?;
    tx.execute(
        "update events set revision = $2, title = $3, venue = $4, kind = $5, starts_at = $6, \
         prices = $7 where id = $1 and revision <= $2",
        params![
            event.id,
            event.revision,
            event.title,
            event.venue,
            event.kind,
            event.starts_at,
            event.prices
        ],
    )?;
    Ok(())
}

pub fn event_set_status(
    tx: &mut Tx<'_>,
    id: Uuid,
    status: &str,
    revision: i64,
) -> Result<(), StorageError> {
    event_note(tx, id)?;
    tx.execute(
        "update events set status = $2, status_revision = $3 \
         where id = $1 and status_revision <= $3",
        params![id, status, revision],
    )?;
    Ok(())
}

/// The seats of an event, which never change.
pub fn event_set_layout(
    tx: &mut Tx<'_>,
    id: Uuid,
    layout: &Value,
    seats: u32,
) -> Result<(), StorageError> {
    let sql = "update events set layout = $2, seats = $3 where id = $1";
    tx.execute(sql, params![id, layout, seats])?;
    Ok(())
}

pub fn ticket_type_write(tx: &mut Tx<'_>, kind: &TicketTypeCopy) -> Result<(), StorageError> {
    event_note(tx, kind.event_id)?;
    tx.execute(
        "insert into ticket_types (event_id, id, price, total, fence) values ($1, $2, $3, $4, $5) \
         on conflict (event_id, id) do update set price = excluded.price, \
         total = excluded.total, fence = excluded.fence \
         where ticket_types.fence <= excluded.fence",
        params![kind.event_id, kind.id, kind.price, kind.total, kind.fence],
    )?;
    Ok(())
}

/// After seats or ticket types: how many can come.
pub fn event_count_places(tx: &mut Tx<'_>, id: Uuid) -> Result<(), StorageError> {
    tx.execute(
        "update events set places = seats + (select coalesce(sum(total), 0)::bigint \
         from ticket_types where event_id = $1) where id = $1",
        params![id],
    )?;
    Ok(())
}
