//! Helpers for the SQL of the auth service.
//!
//! Whatever changes a user's sessions, role or password first locks the user's row with
//! `user_lock`. So a refresh and a concurrent logout, change of role or deletion run one after the
//! other, and none misses a token that another issues. The counter of revocations is locked last.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Tx, params};

/// Deletes up to `limit` rows of a table, the oldest first. `is_old` compares a column with `time`,
/// such as `expires_at <=`.
pub fn rows_purge(
    tx: &mut Tx<'_>,
    (table, key, is_old): (&str, &str, &str),
    time: Timestamp,
    limit: u32,
) -> DbResult<u64> {
    let sql = format!(
        "delete from {table} where {key} in (select {key} from {table} \
         where {is_old} $1 order by {} limit $2)",
        is_old.trim_end_matches([' ', '<', '='])
    );
    tx.execute(&sql, params![time, limit])
}

/// Placeholders such as `$2, $3, $4` for three parameters from the second on.
pub fn parameters(first: usize, count: usize) -> String {
    let numbers: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
    numbers.join(", ")
}
