//! The projection of the catalog's events. A newer revision wins.

use serde_json::Value;
use urr_contracts::events::catalog::EventSnapshot;
use urr_kernel::Uuid;
use urr_storage::{DbResult, Tx, params, storable_time};

/// A ticket type. The higher fence is newer.
pub struct TicketTypeProjection {
    pub event_id: Uuid,
    pub id: Uuid,
    pub price: i64,
    pub total: i64,
    pub fence: i64,
}

/// Older than any revision.
const UNKNOWN: i64 = -1;

/// Makes sure that an event has a row, even before the catalog has announced it.
pub fn event_insert_unknown(tx: &mut Tx<'_>, id: Uuid) -> DbResult<()> {
    tx.execute_later(
        "insert into events (id, revision, status_revision, seats, places) \
         values ($1, $2, $2, 0, 0) on conflict (id) do nothing",
        params![id, UNKNOWN],
    )
}

pub fn event_update(tx: &mut Tx<'_>, event: &EventSnapshot) -> DbResult<()> {
    event_insert_unknown(tx, event.event_id)?;
    let prices = serde_json::to_value(&event.prices).expect("prices are plain JSON");
    tx.execute(
        "update events set revision = $2, title = $3, venue = $4, kind = $5, starts_at = $6, \
         prices = $7, organiser_id = $8 where id = $1 and revision <= $2",
        params![
            event.event_id,
            event.revision,
            event.title,
            event.venue_name,
            event.kind.as_str(),
            storable_time(event.starts_at),
            prices,
            event.organiser_id
        ],
    )?;
    Ok(())
}

pub fn event_set_status(tx: &mut Tx<'_>, id: Uuid, status: &str, revision: i64) -> DbResult<()> {
    event_insert_unknown(tx, id)?;
    tx.execute(
        "update events set status = $2, status_revision = $3 \
         where id = $1 and status_revision <= $3",
        params![id, status, revision],
    )?;
    Ok(())
}

/// Sets the layout of an event, which never changes.
pub fn event_set_layout(tx: &mut Tx<'_>, id: Uuid, layout: &Value, seats: u32) -> DbResult<()> {
    let sql = "update events set layout = $2, seats = $3 where id = $1";
    tx.execute(sql, params![id, layout, seats])?;
    Ok(())
}

/// How many places the organiser keeps out of the sale. The higher fence is newer.
pub fn event_set_blocked(tx: &mut Tx<'_>, id: Uuid, blocked: u32, fence: i64) -> DbResult<()> {
    event_insert_unknown(tx, id)?;
    tx.execute(
        "update events set blocked = $2, blocked_fence = $3 where id = $1 and blocked_fence <= $3",
        params![id, blocked, fence],
    )?;
    Ok(())
}

pub fn ticket_type_update(tx: &mut Tx<'_>, ticket_type: &TicketTypeProjection) -> DbResult<()> {
    event_insert_unknown(tx, ticket_type.event_id)?;
    tx.execute(
        "insert into ticket_types (event_id, id, price, total, fence) values ($1, $2, $3, $4, $5) \
         on conflict (event_id, id) do update set price = excluded.price, \
         total = excluded.total, fence = excluded.fence \
         where ticket_types.fence <= excluded.fence",
        params![
            ticket_type.event_id,
            ticket_type.id,
            ticket_type.price,
            ticket_type.total,
            ticket_type.fence
        ],
    )?;
    Ok(())
}

/// Counts the places again after a change of seats or ticket types.
pub fn event_count_places(tx: &mut Tx<'_>, id: Uuid) -> DbResult<()> {
    tx.execute(
        "update events set places = seats + (select coalesce(sum(total), 0)::bigint \
         from ticket_types where event_id = $1) where id = $1",
        params![id],
    )?;
    Ok(())
}
