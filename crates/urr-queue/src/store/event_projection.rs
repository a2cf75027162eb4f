//! The projection of catalog events: the newest facts and the final status of each event.

use urr_contracts::events::catalog::EventSnapshot;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

use super::rooms::revision_raise;
use crate::RoomEventStatus;
use crate::domain::event::SaleWindow;

/// What a domain event says about an event.
pub struct EventUpdate {
    pub event_id: Uuid,
    pub status: RoomEventStatus,
    /// None if the message only ends the event.
    pub facts: Option<EventSnapshot>,
}

/// Applies what is newer than the stored row. A cancelled or deleted event stays so, whatever a later
/// update says.
pub fn event_merge(tx: &mut Tx<'_>, update: EventUpdate, now: Timestamp) -> DbResult<()> {
    let event_id = update.event_id;
    let stored = event_lock(tx, event_id, now)?;
    let status = stored.status.max(update.status);
    let facts = update.facts.filter(|facts| facts.revision > stored.revision);
    if facts.is_none() && status == stored.status {
        return Ok(());
    }
    if let Some(facts) = facts {
        let EventSnapshot { sale_starts_at, has_presale, .. } = facts;
        let window = SaleWindow { sale_starts_at, has_presale };
        let is_shut_out = stored.window.is_some_and(|before| window.shuts_out(&before, now));
        facts_update(tx, event_id, &facts, stored.awaits_clearing || is_shut_out)?;
    }
    tx.execute(
        "update rooms set status = $2, updated_at = $3 where event_id = $1",
        params![event_id, status, now],
    )?;
    revision_raise(tx)
}

struct StoredEvent {
    revision: i64,
    status: RoomEventStatus,
    /// None if only the end of the event was announced so far.
    window: Option<SaleWindow>,
    awaits_clearing: bool,
}

/// Locks the row of an event, which orders its updates. A missing row is inserted first, so that
/// concurrent updates of a new event wait for each other.
fn event_lock(tx: &mut Tx<'_>, event_id: Uuid, now: Timestamp) -> DbResult<StoredEvent> {
    tx.execute(
        "insert into rooms (event_id, revision, status, title, has_presale, opening, is_paused, \
         has_autopilot, updated_at) values ($1, 0, 'open', '', false, 'fifo', false, false, $2) \
         on conflict (event_id) do nothing",
        params![event_id, now],
    )?;
    tx.query_one(
        "select revision, status, sale_starts_at, has_presale, awaits_clearing \
         from rooms where event_id = $1 for update",
        params![event_id],
        |row| {
            let sale_starts_at: Option<Timestamp> = row.get("sale_starts_at")?;
            let has_presale = row.get("has_presale")?;
            Ok(StoredEvent {
                revision: row.get("revision")?,
                status: row.get("status")?,
                window: sale_starts_at
                    .map(|sale_starts_at| SaleWindow { sale_starts_at, has_presale }),
                awaits_clearing: row.get("awaits_clearing")?,
            })
        },
    )
}

fn facts_update(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    facts: &EventSnapshot,
    awaits_clearing: bool,
) -> DbResult<()> {
    tx.execute(
        "update rooms set revision = $2, title = $3, artist_id = $4, artist_name = $5, \
         sale_starts_at = $6, sale_ends_at = $7, has_presale = $8, awaits_clearing = $9, \
         organiser_id = $10 where event_id = $1",
        params![
            event_id,
            facts.revision,
            facts.title,
            facts.artist_id,
            facts.artist_name,
            facts.sale_starts_at,
            facts.sale_ends_at,
            facts.has_presale,
            awaits_clearing,
            facts.organiser_id
        ],
    )?;
    Ok(())
}
