//! The projection of the catalog in SQL.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

use crate::SaleStatus;
use crate::inventory::projection::CatalogState;
use crate::inventory::store::SaleFacts;
use urr_contracts::events::inventory::InventoryReady;

/// The state of an event under the lock that orders its changes. The row is created if there is
/// none, so that concurrent consumers wait for it.
pub fn catalog_state_lock(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<CatalogState> {
    tx.execute(
        "insert into event_states (event_id, status) values ($1, 'open') \
         on conflict (event_id) do nothing",
        params![event_id],
    )?;
    tx.query_one(
        "select status, facts from event_states where event_id = $1 for update",
        params![event_id],
        |row| Ok(CatalogState { status: row.get("status")?, facts: row.get_json("facts")? }),
    )
}

pub fn catalog_state_update(tx: &mut Tx<'_>, event_id: Uuid, state: &CatalogState) -> DbResult<()> {
    let to_json = |facts| serde_json::to_value(facts).expect("facts are JSON");
    tx.execute(
        "update event_states set status = $2, facts = $3 where event_id = $1",
        params![event_id, state.status, state.facts.as_ref().map(to_json)],
    )?;
    Ok(())
}

/// Changes nothing if the sale has newer facts or does not exist yet.
pub fn sale_update(tx: &mut Tx<'_>, event_id: Uuid, facts: &SaleFacts) -> DbResult<()> {
    tx.execute(
        "update sales set revision = $2, title = $3, venue_name = $4, artist_id = $5, \
         has_unannounced_start = (has_unannounced_start or starts_at <> $6), starts_at = $6, \
         sale_starts_at = $7, sale_ends_at = $8, has_presale = $9, seats_per_user_max = $10, \
         cancel_policy = $11, requires_identity = $12, organiser_id = $13, \
         allows_reentry = $14 \
         where event_id = $1 and revision < $2",
        params![
            event_id,
            facts.revision,
            facts.title,
            facts.venue_name,
            facts.artist_id,
            facts.starts_at,
            facts.sale_starts_at,
            facts.sale_ends_at,
            facts.has_presale,
            facts.seats_per_user_max,
            facts.cancel_policy_json(),
            facts.requires_identity,
            facts.organiser_id,
            facts.allows_reentry
        ],
    )?;
    Ok(())
}

/// `cause` is the id of the catalog's event.
pub fn sale_close(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    status: SaleStatus,
    cause: Uuid,
) -> DbResult<()> {
    tx.execute(
        "update sales set status = $2, closed_by = $3 where event_id = $1 and status <> $2",
        params![event_id, status, cause],
    )?;
    Ok(())
}

/// Marks the sale as emptied: what was sold stays as it is.
pub fn sale_mark_emptied(tx: &mut Tx<'_>, event_id: Uuid, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "update sales set emptied_at = $2 where event_id = $1 and emptied_at is null",
        params![event_id, now],
    )?;
    Ok(())
}

/// Counts the inventory of an event. The caller fills in the revision.
pub fn inventory_count(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<InventoryReady> {
    tx.query_one(
        "select (select count(*) from seats where event_id = $1) as seats, \
         count(*) as ticket_types, coalesce(sum(total), 0)::bigint as tickets \
         from ticket_types where event_id = $1",
        params![event_id],
        |row| {
            let (seats, ticket_types): (u32, u32) = (row.get("seats")?, row.get("ticket_types")?);
            let tickets: i64 = row.get("tickets")?;
            let total = i64::from(seats) + tickets;
            Ok(InventoryReady { event_id, revision: 0, seats, ticket_types, total })
        },
    )
}
