//! The SQL of bot checks.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

/// `false` if the challenge was spent before.
pub fn challenge_spend(tx: &mut Tx<'_>, id: Uuid, expires_at: Timestamp) -> DbResult<bool> {
    let sql = "insert into spent_challenges (id, expires_at) values ($1, $2) \
               on conflict (id) do nothing";
    Ok(tx.execute(sql, params![id, expires_at])? == 1)
}

pub fn failure_insert(tx: &mut Tx<'_>, email_index: &[u8], now: Timestamp) -> DbResult<()> {
    let sql = "insert into failed_logins (email_index, failed_at) values ($1, $2)";
    tx.execute(sql, params![email_index, now]).map(drop)
}

/// How many logins failed for this address since then, counted up to `enough`.
pub fn failure_count(
    tx: &mut Tx<'_>,
    email_index: &[u8],
    since: Timestamp,
    enough: u32,
) -> DbResult<u32> {
    let sql = "select count(*) as total from (select id from failed_logins \
               where email_index = $1 and failed_at > $2 limit $3) as recent";
    tx.query_one(sql, params![email_index, since, enough], |row| row.get("total"))
}
