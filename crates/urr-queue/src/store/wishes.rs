//! How the organiser wants a room to be run.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

use super::rooms::room_find;
use crate::{EventRoom, RoomSettings};

/// An event that nobody else changes until the transaction ends.
pub fn room_lock(tx: &mut Tx<'_>, event_id: Uuid) -> Result<Option<EventRoom>, StorageError> {
    let sql = "select event_id from rooms where event_id = $1 for update";
    tx.query_opt(sql, params![event_id], |_| Ok(()))?;
    // Read behind the lock: what someone else changed while we waited for it is seen.
    room_find(tx, event_id)
}

pub fn room_settings_update(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    room_settings: &RoomSettings,
    now: Timestamp,
) -> Result<(), StorageError> {
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
            room_settings.opening.name(),
            room_settings.is_paused,
            room_settings.has_autopilot,
            room_settings.message,
            now
        ],
    )?;
    Ok(())
}
