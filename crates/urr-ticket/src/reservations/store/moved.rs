//! Moved events in SQL: the reservations whose owners are to be told.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

use crate::reservations::rules::ReservationRecord;
use crate::reservations::store::{RECORD, record_read};

/// A sale whose start has changed. It is not locked.
pub fn sale_find_moved(tx: &mut Tx<'_>) -> DbResult<Option<Uuid>> {
    tx.query_opt(
        "select event_id from sales where has_unannounced_start order by event_id limit 1",
        &[],
        |row| row.get("event_id"),
    )
}

/// Paid reservations whose owners were told another start. The sale is locked.
pub fn record_list_moved(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    starts_at: Timestamp,
    limit: u32,
) -> DbResult<Vec<ReservationRecord>> {
    let sql = format!(
        "{RECORD} r.event_id = $1 and r.status = 'confirmed' and r.announced_starts_at <> $2 \
         order by r.id limit $3"
    );
    tx.query(&sql, params![event_id, starts_at, limit], record_read)
}

pub fn reservation_mark_announced(tx: &mut Tx<'_>, record: &ReservationRecord) -> DbResult<()> {
    tx.execute(
        "update reservations set announced_starts_at = $2 where id = $1",
        params![record.reservation.id, record.starts_at],
    )?;
    Ok(())
}

/// Nobody is left to be told.
pub fn sale_mark_announced(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<()> {
    let sql = "update sales set has_unannounced_start = false where event_id = $1";
    tx.execute(sql, params![event_id])?;
    Ok(())
}
