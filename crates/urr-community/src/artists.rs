//! Artists and who may speak for them, as the catalogue announces it.
//!
//! An artist has no owner of their own. An organiser with an event of the artist that is not cancelled
//! counts as the artist's organiser.

use urr_kernel::{Timestamp, Uuid};
use urr_service::UserRole;
use urr_storage::{DbResult, Tx, params};

use crate::CommunityActor;

/// An event of an artist, at one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArtistEvent {
    pub event_id: Uuid,
    pub artist_id: Option<Uuid>,
    pub organiser_id: Option<Uuid>,
    pub revision: i64,
    pub is_live: bool,
}

pub fn artist_upsert(tx: &mut Tx<'_>, id: Uuid, name: &str, at: Timestamp) -> DbResult<()> {
    tx.execute(
        "insert into artists (id, name, announced_at) values ($1, $2, $3) \
         on conflict (id) do update set name = excluded.name, \
         announced_at = excluded.announced_at where artists.announced_at <= excluded.announced_at",
        params![id, name, at],
    )?;
    Ok(())
}

pub fn artist_exists(tx: &mut Tx<'_>, id: Uuid) -> DbResult<bool> {
    let sql = "select id from artists where id = $1";
    Ok(tx.query_opt(sql, params![id], |row| row.get::<Uuid>("id"))?.is_some())
}

pub fn event_upsert(tx: &mut Tx<'_>, event: ArtistEvent) -> DbResult<()> {
    tx.execute(
        "insert into artist_events (event_id, artist_id, organiser_id, revision, is_live) \
         values ($1, $2, $3, $4, $5) on conflict (event_id) do update set \
         artist_id = excluded.artist_id, organiser_id = excluded.organiser_id, \
         revision = excluded.revision, is_live = excluded.is_live \
         where artist_events.revision < excluded.revision",
        params![event.event_id, event.artist_id, event.organiser_id, event.revision, event.is_live],
    )?;
    Ok(())
}

/// Whether somebody may write an artist's news and moderate the board. News about everything and
/// boards of all artists belong to administrators and support.
pub fn may_moderate(
    tx: &mut Tx<'_>,
    actor: CommunityActor,
    artist_id: Option<Uuid>,
) -> DbResult<bool> {
    match (actor.role, artist_id) {
        (UserRole::Admin | UserRole::Support, _) => Ok(true),
        (UserRole::Organiser, Some(artist_id)) => is_organiser_of(tx, actor.user_id, artist_id),
        (UserRole::Organiser | UserRole::Staff | UserRole::User, _) => Ok(false),
    }
}

fn is_organiser_of(tx: &mut Tx<'_>, organiser_id: Uuid, artist_id: Uuid) -> DbResult<bool> {
    let sql = "select event_id from artist_events where organiser_id = $1 and artist_id = $2 \
               and is_live limit 1";
    let found =
        tx.query_opt(sql, params![organiser_id, artist_id], |row| row.get::<Uuid>("event_id"))?;
    Ok(found.is_some())
}
