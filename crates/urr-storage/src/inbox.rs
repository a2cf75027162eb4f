//! The inbox: which domain events were handled, so that a second delivery has no effect.

use std::collections::HashSet;

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

/// Records that `consumer` handles several events in this transaction. Returns those that it had
/// not handled before.
pub fn record_all(
    tx: &mut Tx<'_>,
    consumer: &str,
    event_ids: &[Uuid],
    now: Timestamp,
) -> DbResult<HashSet<Uuid>> {
    let mut fresh = HashSet::with_capacity(event_ids.len());
    if !tx.is_postgres() {
        // A statement costs SQLite no round trip.
        for event_id in event_ids {
            if record(tx, consumer, *event_id, now)? {
                fresh.insert(*event_id);
            }
        }
        return Ok(fresh);
    }
    // In one order, so that two deliveries of the same events do not wait for each other.
    let mut ids: Vec<String> = event_ids.iter().map(Uuid::to_string).collect();
    ids.sort_unstable();
    let rows = tx.query(
        "insert into inbox (consumer, event_id, handled_at) \
         select $1, event_id, $3 \
         from unnest(string_to_array($2, ',')::uuid[]) as sent (event_id) \
         on conflict (consumer, event_id) do nothing returning event_id",
        params![consumer, ids.join(","), now],
        |row| row.get::<Uuid>("event_id"),
    )?;
    fresh.extend(rows);
    Ok(fresh)
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
