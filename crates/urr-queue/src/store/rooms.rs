//! The rows of `rooms`: events with the settings of their rooms.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, from_row, params};

use crate::{DrawState, EventRoom, RoomSettings};

const SELECT_ROOMS: &str = "select rooms.event_id, status, title, artist_id, artist_name, organiser_id, \
     sale_starts_at, sale_ends_at, has_presale, threshold, admitted_per_second_max, \
     gathering_seconds, opening, is_paused, has_autopilot, message, \
     draws.event_id is not null as has_draw, done_at is not null as is_drawn, \
     commitment, awaits_clearing \
     from rooms left join draws on draws.event_id = rooms.event_id where revision > 0";

/// The number of changes of all rooms so far.
pub fn revision_read(tx: &mut Tx<'_>) -> DbResult<i64> {
    tx.query_one("select revision from rooms_revision where id = 1", &[], |row| row.get("revision"))
}

/// Every transaction that changes a room or a draw calls it, so that other processes load the change.
pub fn revision_raise(tx: &mut Tx<'_>) -> DbResult<()> {
    tx.execute("update rooms_revision set revision = revision + 1 where id = 1", &[])?;
    Ok(())
}

/// A room with the commitment of its draw.
pub struct ListedRoom {
    pub room: EventRoom,
    pub commitment: Option<Vec<u8>>,
}

/// The events whose sale ends after this time.
pub fn room_list(tx: &mut Tx<'_>, ends_after: Timestamp) -> DbResult<Vec<ListedRoom>> {
    let sql = format!("{SELECT_ROOMS} and sale_ends_at > $1");
    tx.query(&sql, params![ends_after], |row| {
        Ok(ListedRoom { room: room_read(row)?, commitment: row.get("commitment")? })
    })
}

pub fn room_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<EventRoom>> {
    let sql = format!("{SELECT_ROOMS} and rooms.event_id = $1");
    tx.query_opt(&sql, params![event_id], room_read)
}

fn room_read(row: &Row<'_>) -> DbResult<EventRoom> {
    let draw = match (row.get("has_draw")?, row.get("is_drawn")?) {
        (false, _) => None,
        (true, false) => Some(DrawState::Committed),
        (true, true) => Some(DrawState::Done),
    };
    let sale_starts_at: Option<Timestamp> = row.get("sale_starts_at")?;
    let sale_ends_at: Option<Timestamp> = row.get("sale_ends_at")?;
    Ok(from_row!(row => EventRoom {
        event_id, status, title, artist_id, artist_name, organiser_id, has_presale,
        awaits_clearing;
        sale_starts_at: sale_starts_at.expect("a row with a revision has a sale"),
        sale_ends_at: sale_ends_at.expect("a row with a revision has a sale"),
        room_settings: room_settings_read(row)?,
        draw: draw,
    }))
}

/// The revision of an event whose room is to be cleared; none if it was cleared.
pub fn clearing_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<i64>> {
    tx.query_opt(
        "select revision from rooms where event_id = $1 and awaits_clearing",
        params![event_id],
        |row| row.get("revision"),
    )
}

/// Notes that a room was cleared, unless the event was updated meanwhile: then it is cleared again.
pub fn clearing_finish(tx: &mut Tx<'_>, event_id: Uuid, revision: i64) -> DbResult<()> {
    let rows = tx.execute(
        "update rooms set awaits_clearing = false \
         where event_id = $1 and revision = $2 and awaits_clearing",
        params![event_id, revision],
    )?;
    if rows == 1 { revision_raise(tx) } else { Ok(()) }
}

fn room_settings_read(row: &Row<'_>) -> DbResult<RoomSettings> {
    let gathering: Option<u32> = row.get("gathering_seconds")?;
    Ok(from_row!(row => RoomSettings {
        threshold, admitted_per_second_max, opening, is_paused, has_autopilot, message;
        gathering: gathering.map(|seconds| Duration::from_secs(u64::from(seconds))),
    }))
}

/// Locks the row of an event until the end of the transaction.
pub fn room_lock(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<EventRoom>> {
    let sql = "select event_id from rooms where event_id = $1 for update";
    tx.query_opt(sql, params![event_id], |_| Ok(()))?;
    // Read after the lock was taken, so that changes made meanwhile are seen.
    room_find(tx, event_id)
}

pub fn room_settings_update(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    room_settings: &RoomSettings,
    now: Timestamp,
) -> DbResult<()> {
    let gathering_seconds = room_settings.gathering.map(|gathering| {
        i64::try_from(gathering.as_secs()).expect("a gathering has at most a week")
    });
    tx.execute(
        "update rooms set threshold = $2, admitted_per_second_max = $3, gathering_seconds = $4, \
         opening = $5, is_paused = $6, has_autopilot = $7, message = $8, updated_at = $9 \
         where event_id = $1",
        params![
            event_id,
            room_settings.threshold,
            room_settings.admitted_per_second_max,
            gathering_seconds,
            room_settings.opening,
            room_settings.is_paused,
            room_settings.has_autopilot,
            room_settings.message,
            now
        ],
    )?;
    Ok(())
}
