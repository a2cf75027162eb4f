//! The inbox: which domain events were handled, so that a second delivery has no effect.

use urr_kernel::{Timestamp, Uuid};

use crate::{DbResult, Tx, params};

/// Records that `consumer` handles an event in this transaction. `false`: it was handled before.
pub fn record(tx: &mut Tx<'_>, consumer: &str, event_id: Uuid, now: Timestamp) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into inbox (consumer, event_id, handled_at) values ($1, $2, $3) \
         on conflict (consumer, event_id) do nothing",
        params![consumer, event_id, now],
    )?;
    Ok(rows == 1)
}

/// Deletes the rows of events handled before `before`, a bounded number at a time. Returns how many.
///
/// Keep them longer than the bus keeps its messages: a deleted event would have its effect again.
pub fn purge(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    // SQLite and PostgreSQL both compare rows of columns.
    tx.execute(
        "delete from inbox where (consumer, event_id) in \
         (select consumer, event_id from inbox where handled_at < $1 order by handled_at limit $2)",
        params![before, limit],
    )
}
