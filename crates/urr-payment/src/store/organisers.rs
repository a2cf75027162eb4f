//! Whose events payments are for: a projection of the catalog.

use urr_kernel::Uuid;
use urr_storage::{DbResult, Tx, params};

/// Keeps the organiser of an event. An older revision changes nothing.
pub fn organiser_upsert(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    revision: i64,
    organiser_id: Option<Uuid>,
) -> DbResult<()> {
    tx.execute(
        "insert into event_organisers (event_id, revision, organiser_id) values ($1, $2, $3) \
         on conflict (event_id) do update set revision = excluded.revision, \
         organiser_id = excluded.organiser_id \
         where event_organisers.revision < excluded.revision",
        params![event_id, revision, organiser_id],
    )?;
    Ok(())
}

/// The organiser of an event. The outer `None`: the catalog has not announced the event.
#[expect(clippy::option_option, reason = "an event may have no organiser")]
pub fn event_organiser_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<Option<Uuid>>> {
    let sql = "select organiser_id from event_organisers where event_id = $1";
    tx.query_opt(sql, params![event_id], |row| row.get("organiser_id"))
}

/// The organiser of an event, as far as the catalog has said.
pub fn organiser_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<Uuid>> {
    Ok(event_organiser_find(tx, event_id)?.flatten())
}
