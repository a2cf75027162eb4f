//! What is to be ended: holds whose time is over, and what is left of closed sales.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

use super::sales;
use crate::SaleStatus;

/// A hold whose time is over, and its place in the order of such holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    pub expires_at: Timestamp,
    pub id: Uuid,
    pub event_id: Uuid,
}

impl Overdue {
    /// Before all others.
    pub const FIRST: Overdue =
        Overdue { expires_at: Timestamp::UNIX_EPOCH, id: Uuid::nil(), event_id: Uuid::nil() };
}

/// The next holds whose time is over. Those that are being paid are not among them.
pub fn hold_list(
    tx: &mut Tx<'_>,
    now: Timestamp,
    after: Overdue,
    limit: u32,
) -> Result<Vec<Overdue>, StorageError> {
    tx.query(
        "select expires_at, id, event_id from reservations \
         where status = 'pending' and pinned_by is null and expires_at <= $1 \
         and (expires_at, id) > ($2, $3) order by expires_at, id limit $4",
        params![now, after.expires_at, after.id, limit],
        |row| {
            let (expires_at, id) = (row.get("expires_at")?, row.get("id")?);
            Ok(Overdue { expires_at, id, event_id: row.get("event_id")? })
        },
    )
}

/// Whether nobody has the lock of the sale at this moment; if so, this transaction has it.
pub fn sale_is_free(tx: &mut Tx<'_>, event_id: Uuid) -> Result<bool, StorageError> {
    let free = tx.query_opt(
        "select event_id from sales where event_id = $1 for update skip locked",
        params![event_id],
        |row| row.get::<Uuid>("event_id"),
    )?;
    Ok(free.is_some())
}

/// Sales that were closed and may still have live reservations.
pub fn sale_list_to_empty(tx: &mut Tx<'_>) -> Result<Vec<(Uuid, SaleStatus)>, StorageError> {
    tx.query(
        "select event_id, status from sales where status <> 'open' and emptied_at is null \
         order by event_id limit 100",
        &[],
        |row| {
            let status: String = row.get("status")?;
            let status = SaleStatus::parse(&status).expect("only known states are stored");
            Ok((row.get("event_id")?, status))
        },
    )
}

/// The next live reservations of an event that no payment is busy with.
pub fn live_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    after: Uuid,
    limit: u32,
) -> Result<Vec<Uuid>, StorageError> {
    tx.query(
        "select id from reservations where event_id = $1 and id > $2 \
         and status in ('pending', 'confirmed') and pinned_by is null order by id limit $3",
        params![event_id, after, limit],
        |row| row.get("id"),
    )
}

/// Notes that nothing live is left of a closed sale, if that is so.
pub fn sale_mark_emptied(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    now: Timestamp,
) -> Result<(), StorageError> {
    // Under the lock: whoever reserved before the sale was closed has committed.
    if sales::sale_lock(tx, event_id, 1)?.is_none() {
        return Ok(());
    }
    tx.execute(
        "update sales set emptied_at = $2 where event_id = $1 and status <> 'open' \
         and not exists (select 1 from reservations where event_id = $1 \
         and status in ('pending', 'confirmed'))",
        params![event_id, now],
    )?;
    Ok(())
}
