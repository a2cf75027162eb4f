//! The journal's tables.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, params};

use super::{JournalRecord, RoomTotals};
use crate::slot_log::{SlotChange, SlotLogEntry};

/// Bounds the rows of one transaction.
const READ_MAX: u32 = 5_000;
const REMOVED_MAX: u32 = 1_000;

/// A position as it is stored.
pub struct StoredPosition {
    pub arrival: i64,
    pub user_id: Uuid,
    pub drawn: Option<i64>,
}

/// Writing a record again changes nothing: a batch is retried also if only its commit was reported
/// as failed.
pub fn record_write(tx: &mut Tx<'_>, record: &JournalRecord) -> DbResult<()> {
    match *record {
        JournalRecord::LineJoined { room, arrival, user_id } => {
            let sql = "insert into places (room, arrival, user_id) values ($1, $2, $3) \
                       on conflict (room, arrival) do nothing";
            tx.execute(sql, params![room, arrival, user_id])?;
        }
        JournalRecord::LineLeft { room, arrival } => {
            let sql = "delete from places where room = $1 and arrival = $2";
            tx.execute(sql, params![room, arrival])?;
        }
        // The user may have left meanwhile.
        JournalRecord::NumberDrawn { room, arrival, number } => {
            let sql = "update places set drawn = $3 where room = $1 and arrival = $2";
            tx.execute(sql, params![room, arrival, number])?;
        }
        JournalRecord::SlotGiven { room, user_id, slot_id, admitted_at_us } => {
            let admitted_at =
                Timestamp::from_microsecond(admitted_at_us).expect("it was made from a time");
            let sql = "insert into slots (room, user_id, slot_id, admitted_at) \
                       values ($1, $2, $3, $4) on conflict (room, user_id) do nothing";
            tx.execute(sql, params![room, user_id, slot_id, admitted_at])?;
        }
        JournalRecord::SlotEnded { room, user_id } => {
            let sql = "delete from slots where room = $1 and user_id = $2";
            tx.execute(sql, params![room, user_id])?;
        }
        JournalRecord::SlotLogged { event_id, logged } => slot_log_insert(tx, event_id, &logged)?,
        JournalRecord::RoomRetired { room } => {
            tx.execute("delete from journal_rooms where room = $1", params![room])?;
            tx.execute("delete from slots where room = $1", params![room])?;
        }
    }
    Ok(())
}

pub fn room_upsert(tx: &mut Tx<'_>, totals: &RoomTotals) -> DbResult<()> {
    let count = |total: u64| i64::try_from(total).unwrap_or(i64::MAX);
    let RoomTotals { room, event_id, last_number, admitted, left, logged } = *totals;
    tx.execute(
        "insert into journal_rooms (room, event_id, last_number, admitted_total, left_total, \
         logged_total) values ($1, $2, $3, $4, $5, $6) on conflict (room) do update \
         set last_number = excluded.last_number, admitted_total = excluded.admitted_total, \
         left_total = excluded.left_total, logged_total = excluded.logged_total",
        params![room, event_id, last_number, count(admitted), count(left), logged],
    )?;
    Ok(())
}

pub fn room_list(tx: &mut Tx<'_>) -> DbResult<Vec<RoomTotals>> {
    let sql = "select room, event_id, last_number, admitted_total, left_total, logged_total \
               from journal_rooms";
    tx.query(sql, &[], |row| {
        Ok(RoomTotals {
            room: row.get("room")?,
            event_id: row.get("event_id")?,
            last_number: row.get("last_number")?,
            admitted: row.get("admitted_total")?,
            left: row.get("left_total")?,
            logged: row.get("logged_total")?,
        })
    })
}

/// The next positions of a room behind an arrival, in order of arrival. Empty at the end.
pub fn position_list(tx: &mut Tx<'_>, room: i64, behind: i64) -> DbResult<Vec<StoredPosition>> {
    let sql = "select arrival, user_id, drawn from places \
               where room = $1 and arrival > $2 order by arrival limit $3";
    let read = |row: &Row<'_>| {
        let (arrival, user_id) = (row.get("arrival")?, row.get("user_id")?);
        Ok(StoredPosition { arrival, user_id, drawn: row.get("drawn")? })
    };
    tx.query(sql, params![room, behind, READ_MAX], read)
}

/// The slots of a room: user, slot id, admission.
pub fn slot_list(tx: &mut Tx<'_>, room: i64) -> DbResult<Vec<(Uuid, Uuid, Timestamp)>> {
    let sql = "select user_id, slot_id, admitted_at from slots where room = $1";
    tx.query(sql, params![room], |row| {
        Ok((row.get("user_id")?, row.get("slot_id")?, row.get("admitted_at")?))
    })
}

/// Numbers of retired rooms whose positions were not all deleted.
pub fn orphan_room_list(tx: &mut Tx<'_>, known: &[i64]) -> DbResult<Vec<i64>> {
    let sql = "select room from places where room > $1 order by room limit 1";
    let mut strays = Vec::new();
    let mut last = i64::MIN;
    while let Some(room) = tx.query_opt(sql, params![last], |row| row.get("room"))? {
        last = room;
        if !known.contains(&room) {
            strays.push(room);
        }
    }
    Ok(strays)
}

/// Deletes some positions of a retired room. False if there are none left.
pub fn position_delete_some(tx: &mut Tx<'_>, room: i64) -> DbResult<bool> {
    let sql = "delete from places where room = $1 and arrival in \
               (select arrival from places where room = $1 order by arrival limit $2)";
    let removed = tx.execute(sql, params![room, REMOVED_MAX])?;
    Ok(removed == u64::from(REMOVED_MAX))
}

fn slot_log_insert(tx: &mut Tx<'_>, event_id: Uuid, logged: &SlotLogEntry) -> DbResult<()> {
    let SlotLogEntry { entry, user_id, at, change } = *logged;
    let (number, last_number, inside_max) = match change {
        SlotChange::Admitted { number, last_number, inside_max } => {
            (number, Some(last_number), Some(inside_max))
        }
        SlotChange::Ended | SlotChange::Cleared => (None, None, None),
    };
    tx.execute(
        "insert into slot_log (event_id, entry, change, user_id, at, number, last_number, \
         inside_max) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (event_id, entry) \
         do nothing",
        params![
            event_id,
            entry,
            change.name(),
            user_id,
            at,
            number,
            last_number,
            inside_max.map(i64::from)
        ],
    )?;
    Ok(())
}

/// The next entries of the log of slots of an event. Empty at the end.
pub fn slot_log_list(tx: &mut Tx<'_>, event_id: Uuid, after: i64) -> DbResult<Vec<SlotLogEntry>> {
    let sql = "select entry, change, user_id, at, number, last_number, inside_max from slot_log \
               where event_id = $1 and entry > $2 order by entry limit $3";
    tx.query(sql, params![event_id, after, READ_MAX], slot_log_read)
}

/// The entries of the log of slots before one, the newest first. Empty at the beginning.
pub fn slot_log_list_back(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    before: i64,
) -> DbResult<Vec<SlotLogEntry>> {
    let sql = "select entry, change, user_id, at, number, last_number, inside_max from slot_log \
               where event_id = $1 and entry < $2 order by entry desc limit $3";
    tx.query(sql, params![event_id, before, READ_MAX], slot_log_read)
}

fn slot_log_read(row: &Row<'_>) -> DbResult<SlotLogEntry> {
    let change: String = row.get("change")?;
    let change = match change.as_str() {
        "admitted" => SlotChange::Admitted {
            number: row.get("number")?,
            last_number: row.get::<Option<i64>>("last_number")?.unwrap_or(0),
            inside_max: row
                .get::<Option<i64>>("inside_max")?
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(0),
        },
        "ended" => SlotChange::Ended,
        _ => SlotChange::Cleared,
    };
    let (entry, user_id, at) = (row.get("entry")?, row.get("user_id")?, row.get("at")?);
    Ok(SlotLogEntry { entry, user_id, at, change })
}

/// The number of the first in line.
pub fn position_first(tx: &mut Tx<'_>, room: i64) -> DbResult<Option<i64>> {
    let sql = "select min(coalesce(drawn, arrival)) as first from places where room = $1";
    tx.query_one(sql, params![room], |row| row.get("first"))
}

/// Users who wait twice, or wait and have a slot.
pub fn twice_waiting_list(tx: &mut Tx<'_>, room: i64) -> DbResult<Vec<Uuid>> {
    let sql = "select user_id from (select user_id from places where room = $1 \
               union all select user_id from slots where room = $1) as present \
               group by user_id having count(*) > 1 order by user_id limit $2";
    tx.query(sql, params![room, REMOVED_MAX], |row| row.get("user_id"))
}

/// Whether nothing was added to a log of slots since `before`. One without entries is not old.
pub fn slot_log_is_older(tx: &mut Tx<'_>, event_id: Uuid, before: Timestamp) -> DbResult<bool> {
    let sql = "select at from slot_log where event_id = $1 order by entry desc limit 1";
    let newest: Option<Timestamp> = tx.query_opt(sql, params![event_id], |row| row.get("at"))?;
    Ok(newest.is_some_and(|newest| newest < before))
}

/// Deletes the first entries of a log of slots. False if there are none left.
pub fn slot_log_delete_some(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<bool> {
    let sql = "delete from slot_log where event_id = $1 and entry in \
               (select entry from slot_log where event_id = $1 order by entry limit $2)";
    let removed = tx.execute(sql, params![event_id, REMOVED_MAX])?;
    Ok(removed == u64::from(REMOVED_MAX))
}
