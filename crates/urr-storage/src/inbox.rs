//! Events that came in: remembered with their effect, so that a second delivery has none.

use urr_kernel::{Timestamp, Uuid};

use crate::{StorageError, Tx, params};

/// Notes that `consumer` handles an event in this transaction. `false`: it already has.
pub fn record(
    tx: &mut Tx<'_>,
    consumer: &str,
    event_id: Uuid,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "insert into inbox (consumer, event_id, handled_at) values ($1, $2, $3) \
         on conflict (consumer, event_id) do nothing",
        params![consumer, event_id, now],
    )?;
    Ok(rows == 1)
}

/// Forgets events handled before `before`, a bounded number at a time. Returns how many.
///
/// Keep them longer than the bus keeps its messages: a forgotten event would have an effect again.
pub fn purge(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> Result<u64, StorageError> {
    // SQLite and PostgreSQL both compare rows of columns.
    tx.execute(
        "delete from inbox where (consumer, event_id) in \
         (select consumer, event_id from inbox where handled_at < $1 order by handled_at limit $2)",
        params![before, limit],
    )
}
