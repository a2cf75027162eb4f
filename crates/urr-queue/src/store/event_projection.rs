//! What the catalogue says of an event, merged into its row: the newest facts and the last status.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

use super::rooms::revision_raise;
use crate::EventStatus;
use crate::domain::event::SaleWindow;

/// Something that was heard of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventUpdate {
    pub status: EventStatus,
    /// None: only its end was heard of.
    pub facts: Option<ProjectedFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectedFacts {
    pub revision: i64,
    pub title: String,
    pub artist_id: Option<Uuid>,
    pub artist_name: Option<String>,
    pub sale_starts_at: Timestamp,
    pub sale_ends_at: Timestamp,
    pub has_presale: bool,
}

/// Takes over what is newer than what is known. What is over stays over, whatever an edit says.
pub fn news_merge(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    event_projection: EventUpdate,
    now: Timestamp,
) -> Result<(), StorageError> {
    let known = known_lock(tx, event_id, now)?;
    let status = known.status.max(event_projection.status);
    let facts = event_projection.facts.filter(|facts| facts.revision > known.revision);
    if facts.is_none() && status == known.status {
        return Ok(());
    }
    if let Some(facts) = facts {
        let window = facts.window();
        let is_shut_out = known.window.is_some_and(|before| window.shuts_out(&before, now));
        facts_write(tx, event_id, &facts, known.awaits_clearing || is_shut_out)?;
    }
    tx.execute(
        "update rooms set status = $2, updated_at = $3 where event_id = $1",
        params![event_id, status.name(), now],
    )?;
    revision_raise(tx)
}

impl ProjectedFacts {
    fn window(&self) -> SaleWindow {
        SaleWindow { sale_starts_at: self.sale_starts_at, has_presale: self.has_presale }
    }
}

struct Known {
    revision: i64,
    status: EventStatus,
    /// None: only its end was heard of.
    window: Option<SaleWindow>,
    awaits_clearing: bool,
}

/// What is known of an event, under the lock that orders its news. The row is made if there is none:
/// who comes at the same moment waits for it.
fn known_lock(tx: &mut Tx<'_>, event_id: Uuid, now: Timestamp) -> Result<Known, StorageError> {
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
            let status: String = row.get("status")?;
            let status = EventStatus::parse(&status).expect("only known states are stored");
            let sale_starts_at: Option<Timestamp> = row.get("sale_starts_at")?;
            let has_presale = row.get("has_presale")?;
            Ok(Known {
                revision: row.get("revision")?,
                status,
                window: sale_starts_at.map(|sale_starts_at| SaleWindow { sale_starts_at, has_presale }),
                awaits_clearing: row.get("awaits_clearing")?,
            })
        },
    )
}

fn facts_write(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    facts: &ProjectedFacts,
    awaits_clearing: bool,
) -> Result<(), StorageError> {
    tx.execute(
        "update rooms set revision = $2, title = $3, artist_id = $4, artist_name = $5, \
         sale_starts_at = $6, sale_ends_at = $7, has_presale = $8, awaits_clearing = $9 \
         where event_id = $1",
        params![
            event_id,
            facts.revision,
            facts.title,
            facts.artist_id,
            facts.artist_name,
            facts.sale_starts_at,
            facts.sale_ends_at,
            facts.has_presale,
            awaits_clearing
        ],
    )?;
    Ok(())
}
