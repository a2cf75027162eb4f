//! The journal's tables.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, params};

use super::{JournalRecord, RoomTotals};

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
        JournalRecord::RoomRetired { room } => {
            tx.execute("delete from journal_rooms where room = $1", params![room])?;
            tx.execute("delete from slots where room = $1", params![room])?;
        }
    }
    Ok(())
}

pub fn room_upsert(tx: &mut Tx<'_>, totals: &RoomTotals) -> DbResult<()> {
    let count = |total: u64| i64::try_from(total).unwrap_or(i64::MAX);
    let RoomTotals { room, event_id, last_number, admitted, left } = *totals;
    tx.execute(
        "insert into journal_rooms (room, event_id, last_number, admitted_total, left_total) \
         values ($1, $2, $3, $4, $5) on conflict (room) do update \
         set last_number = excluded.last_number, admitted_total = excluded.admitted_total, \
         left_total = excluded.left_total",
        params![room, event_id, last_number, count(admitted), count(left)],
    )?;
    Ok(())
}

pub fn room_list(tx: &mut Tx<'_>) -> DbResult<Vec<RoomTotals>> {
    let sql = "select room, event_id, last_number, admitted_total, left_total from journal_rooms";
    tx.query(sql, &[], |row| {
        Ok(RoomTotals {
            room: row.get("room")?,
            event_id: row.get("event_id")?,
            last_number: row.get("last_number")?,
            admitted: row.get("admitted_total")?,
            left: row.get("left_total")?,
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
