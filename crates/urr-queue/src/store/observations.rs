//! The last minute for which the statistics of each room were published.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

/// Takes the minute of a room. Of concurrent calls one gets true; an older minute gets false.
pub fn observation_take(tx: &mut Tx<'_>, event_id: Uuid, minute: Timestamp) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into observations (event_id, minute) values ($1, $2) \
         on conflict (event_id) do update set minute = excluded.minute \
         where observations.minute < excluded.minute",
        params![event_id, minute],
    )?;
    Ok(rows == 1)
}
