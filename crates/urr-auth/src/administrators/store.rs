//! The SQL of invitations for the first administrator.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Tx, params};

use crate::accounts::account::UserId;

/// Replaces unused invitations.
pub fn invite_replace(
    tx: &mut Tx<'_>,
    hash: &[u8],
    now: Timestamp,
    expires_at: Timestamp,
) -> DbResult<()> {
    tx.execute("delete from admin_invites where used_at is null", &[])?;
    tx.execute(
        "insert into admin_invites (token_hash, created_at, expires_at) values ($1, $2, $3)",
        params![hash, now, expires_at],
    )
    .map(drop)
}

pub fn invite_is_open(tx: &mut Tx<'_>, hash: &[u8], now: Timestamp) -> DbResult<bool> {
    let sql = "select created_at from admin_invites \
               where token_hash = $1 and used_at is null and expires_at > $2";
    Ok(tx.query_opt(sql, params![hash, now], |row| row.get::<Timestamp>("created_at"))?.is_some())
}

/// `false` if it is unknown, used or expired.
pub fn invite_use(tx: &mut Tx<'_>, hash: &[u8], user_id: UserId, now: Timestamp) -> DbResult<bool> {
    let rows = tx.execute(
        "update admin_invites set used_at = $3, used_by = $2 \
         where token_hash = $1 and used_at is null and expires_at > $3",
        params![hash, user_id, now],
    )?;
    Ok(rows == 1)
}
