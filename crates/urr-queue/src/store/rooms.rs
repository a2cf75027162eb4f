//! The rows of the rooms.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Row, StorageError, Tx, params};

use crate::{DrawState, EventRoom, EventStatus, OpeningOrder, RoomSettings};

const SELECT_ROOMS: &str = "select rooms.event_id, status, title, artist_id, artist_name, \
     sale_starts_at, sale_ends_at, has_presale, threshold, admitted_per_second_max, \
     gathering_seconds, opening, is_paused, has_autopilot, message, \
     draws.event_id is not null as has_draw, done_at is not null as is_drawn, \
     commitment, awaits_clearing \
     from rooms left join draws on draws.event_id = rooms.event_id where revision > 0";

/// Counts every change of a room.
pub fn revision_read(tx: &mut Tx<'_>) -> Result<i64, StorageError> {
    tx.query_one("select revision from rooms_revision where id = 1", &[], |row| row.get("revision"))
}

/// To be called in every transaction that changes a room or a draw: the other processes learn of it.
pub fn revision_raise(tx: &mut Tx<'_>) -> Result<(), StorageError> {
    tx.execute("update rooms_revision set revision = revision + 1 where id = 1", &[])?;
    Ok(())
}

/// A room with what was committed to before its draw.
pub struct ListedRoom {
    pub room: EventRoom,
    pub commitment: Option<Vec<u8>>,
}

/// The events whose sale is known and ends after this.
pub fn room_list(tx: &mut Tx<'_>, ends_after: Timestamp) -> Result<Vec<ListedRoom>, StorageError> {
    let sql = format!("{SELECT_ROOMS} and sale_ends_at > $1");
    tx.query(&sql, params![ends_after], |row| {
        Ok(ListedRoom { room: room_read(row)?, commitment: row.get("commitment")? })
    })
}

/// One event, if its sale is known.
pub fn room_find(tx: &mut Tx<'_>, event_id: Uuid) -> Result<Option<EventRoom>, StorageError> {
    let sql = format!("{SELECT_ROOMS} and rooms.event_id = $1");
    tx.query_opt(&sql, params![event_id], room_read)
}

fn room_read(row: &Row<'_>) -> Result<EventRoom, StorageError> {
    let status: String = row.get("status")?;
    let draw = match (row.get("has_draw")?, row.get("is_drawn")?) {
        (false, _) => None,
        (true, false) => Some(DrawState::Committed),
        (true, true) => Some(DrawState::Done),
    };
    let sale_starts_at: Option<Timestamp> = row.get("sale_starts_at")?;
    let sale_ends_at: Option<Timestamp> = row.get("sale_ends_at")?;
    Ok(EventRoom {
        event_id: row.get("event_id")?,
        status: EventStatus::parse(&status).expect("only known states are stored"),
        title: row.get("title")?,
        artist_id: row.get("artist_id")?,
        artist_name: row.get("artist_name")?,
        sale_starts_at: sale_starts_at.expect("facts with a revision have a sale"),
        sale_ends_at: sale_ends_at.expect("facts with a revision have a sale"),
        has_presale: row.get("has_presale")?,
        room_settings: room_settings_read(row)?,
        draw,
        awaits_clearing: row.get("awaits_clearing")?,
    })
}

/// The revision of an event whose room is to be cleared; none if that is done.
pub fn clearing_find(tx: &mut Tx<'_>, event_id: Uuid) -> Result<Option<i64>, StorageError> {
    tx.query_opt(
        "select revision from rooms where event_id = $1 and awaits_clearing",
        params![event_id],
        |row| row.get("revision"),
    )
}

/// Says that a room was cleared, unless there is newer news of the event: then it is cleared again.
pub fn clearing_finish(tx: &mut Tx<'_>, event_id: Uuid, revision: i64) -> Result<(), StorageError> {
    let rows = tx.execute(
        "update rooms set awaits_clearing = false \
         where event_id = $1 and revision = $2 and awaits_clearing",
        params![event_id, revision],
    )?;
    if rows == 1 { revision_raise(tx) } else { Ok(()) }
}

/// The organiser's wishes in a row of `rooms`.
pub fn room_settings_read(row: &Row<'_>) -> Result<RoomSettings, StorageError> {
    let gathering: Option<u32> = row.get("gathering_seconds")?;
    let opening: String = row.get("opening")?;
    Ok(RoomSettings {
        threshold: row.get("threshold")?,
        admitted_per_second_max: row.get("admitted_per_second_max")?,
        gathering: gathering.map(|seconds| Duration::from_secs(u64::from(seconds))),
        opening: OpeningOrder::parse(&opening).expect("only known openings are stored"),
        is_paused: row.get("is_paused")?,
        has_autopilot: row.get("has_autopilot")?,
        message: row.get("message")?,
    })
}
