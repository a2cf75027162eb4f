//! Slots that have to end because their owners have bought.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, from_row, params};

/// A purchase after which the buyer's slot ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotEnd {
    pub reservation_id: Uuid,
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub bought_at: Timestamp,
}

/// Inserting the same purchase again changes nothing.
pub fn slot_end_insert(tx: &mut Tx<'_>, slot_end: &SlotEnd) -> DbResult<()> {
    let SlotEnd { reservation_id, event_id, user_id, bought_at } = *slot_end;
    tx.execute_later(
        "insert into slot_ends (reservation_id, event_id, user_id, bought_at) \
         values ($1, $2, $3, $4) on conflict (reservation_id) do nothing",
        params![reservation_id, event_id, user_id, bought_at],
    )
}

/// The next ones after this reservation.
pub fn slot_end_list(tx: &mut Tx<'_>, after: Uuid, count_max: u32) -> DbResult<Vec<SlotEnd>> {
    tx.query(
        "select reservation_id, event_id, user_id, bought_at from slot_ends \
         where reservation_id > $1 order by reservation_id limit $2",
        params![after, count_max],
        |row| Ok(from_row!(row => SlotEnd { reservation_id, event_id, user_id, bought_at })),
    )
}

pub fn slot_end_delete(tx: &mut Tx<'_>, reservation_ids: &[Uuid]) -> DbResult<()> {
    let sql = "delete from slot_ends where reservation_id = $1";
    reservation_ids.iter().try_for_each(|id| tx.execute_later(sql, params![*id]))
}
