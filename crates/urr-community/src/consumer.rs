//! What the community learns from domain events: artists, whose events they play, closed accounts.

use urr_bus::{HandleError, HandlerContext, HandlerOutcome, decode_event};
use urr_contracts::events::catalog::{
    self, ArtistCreated, ArtistUpdated, CatalogEventStatus, EventCancelled, EventCreated,
    EventDeleted, EventSnapshot, EventUpdated,
};
use urr_contracts::events::user::{self, UserDeleted};
use urr_kernel::{DomainEvent, EventData, Uuid};
use urr_storage::{DbResult, Tx, params, storable_time};

use crate::artists::{ArtistEvent, artist_upsert, event_upsert};

/// The consumer group of the community.
pub const GROUP: &str = "community-service-group";

pub const TOPICS: &[&str] = &[catalog::TOPIC, user::TOPIC];

/// The types that [`handle`] handles. It ignores others.
pub const TYPES: &[&str] = &[
    ArtistCreated::TYPE,
    ArtistUpdated::TYPE,
    EventCreated::TYPE,
    EventUpdated::TYPE,
    EventCancelled::TYPE,
    EventDeleted::TYPE,
    UserDeleted::TYPE,
];

pub fn handle(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    _context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    let at = storable_time(event.time);
    match event.event_type.as_str() {
        ArtistCreated::TYPE => {
            let ArtistCreated { artist_id, name, .. } = decode_event(event)?;
            artist_upsert(tx, artist_id, &name, at)?;
        }
        ArtistUpdated::TYPE => {
            let ArtistUpdated { artist_id, name, .. } = decode_event(event)?;
            artist_upsert(tx, artist_id, &name, at)?;
        }
        EventCreated::TYPE => {
            event_upsert(tx, artist_event(&decode_event::<EventCreated>(event)?.0))?;
        }
        EventUpdated::TYPE => {
            event_upsert(tx, artist_event(&decode_event::<EventUpdated>(event)?.0))?;
        }
        EventCancelled::TYPE => {
            let EventCancelled { event_id, revision, .. } = decode_event(event)?;
            event_upsert(tx, ended_event(event_id, revision))?;
        }
        EventDeleted::TYPE => {
            let EventDeleted { event_id, revision, .. } = decode_event(event)?;
            event_upsert(tx, ended_event(event_id, revision))?;
        }
        UserDeleted::TYPE => author_forget(tx, decode_event::<UserDeleted>(event)?.user_id)?,
        _ => return Ok(HandlerOutcome::Ignored),
    }
    Ok(HandlerOutcome::Done)
}

fn artist_event(event: &EventSnapshot) -> ArtistEvent {
    ArtistEvent {
        event_id: event.event_id,
        artist_id: event.artist_id,
        organiser_id: event.organiser_id,
        revision: event.revision,
        is_live: event.status != CatalogEventStatus::Cancelled,
    }
}

fn ended_event(event_id: Uuid, revision: i64) -> ArtistEvent {
    ArtistEvent { event_id, artist_id: None, organiser_id: None, revision, is_live: false }
}

/// What a user wrote stays, and nobody can tell who it was.
fn author_forget(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<()> {
    for (table, column) in
        [("posts", "author_id"), ("comments", "author_id"), ("reports", "reporter_id")]
    {
        let sql = format!("update {table} set {column} = null where {column} = $1");
        tx.execute(&sql, params![user_id])?;
    }
    Ok(())
}
