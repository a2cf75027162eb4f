//! Purchases whose slots are still to be ended.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

/// Someone has bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotEnd {
    pub reservation_id: Uuid,
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub bought_at: Timestamp,
}

/// Once more changes nothing.
pub fn slot_end_insert(tx: &mut Tx<'_>, purchase: &SlotEnd) -> Result<(), StorageError> {
    let SlotEnd { reservation_id, event_id, user_id, bought_at } = *purchase;
    tx.execute(
        "insert into purchases (reservation_id, event_id, user_id, bought_at) \
         values ($1, $2, $3, $4) on conflict (reservation_id) do nothing",
        params![reservation_id, event_id, user_id, bought_at],
    )?;
    Ok(())
}

/// Some that are left, after the one with this id.
pub fn slot_end_list(
    tx: &mut Tx<'_>,
    after: Uuid,
    count_max: u32,
) -> Result<Vec<SlotEnd>, StorageError> {
    tx.query(
        "select reservation_id, event_id, user_id, bought_at from purchases \
         where reservation_id > $1 order by reservation_id limit $2",
        params![after, count_max],
        |row| {
            Ok(SlotEnd {
                reservation_id: row.get("reservation_id")?,
                event_id: row.get("event_id")?,
                user_id: row.get("user_id")?,
                bought_at: row.get("bought_at")?,
            })
        },
    )
}

pub fn slot_end_delete(tx: &mut Tx<'_>, reservation_ids: &[Uuid]) -> Result<(), StorageError> {
    for reservation_id in reservation_ids {
        tx.execute("delete from purchases where reservation_id = $1", params![*reservation_id])?;
    }
    Ok(())
}
