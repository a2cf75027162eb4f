//! What clients have sent under keys of their own.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

/// Whose key it is, and for what: each action has keys of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKeyRow {
    pub user_id: Uuid,
    /// `confirm`, `process` or `refund`.
    pub action: &'static str,
    pub key: String,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRequest {
    /// What was asked for under it.
    pub request: String,
    pub order_id: Option<String>,
}

/// Notes what a key is used for. What it was used for before, if it was.
pub fn key_claim(
    tx: &mut Tx<'_>,
    key: &ClientKeyRow,
    request: &str,
    now: Timestamp,
) -> Result<Option<KnownRequest>, StorageError> {
    let rows = tx.execute(
        "insert into request_keys (user_id, action, idempotency_key, request, created_at) \
         values ($1, $2, $3, $4, $5) on conflict (user_id, action, idempotency_key) do nothing",
        params![key.user_id, key.action, key.key, request, now],
    )?;
    if rows == 1 {
        return Ok(None);
    }
    tx.query_opt(
        "select request, order_id from request_keys \
         where user_id = $1 and action = $2 and idempotency_key = $3",
        params![key.user_id, key.action, key.key],
        |row| Ok(KnownRequest { request: row.get("request")?, order_id: row.get("order_id")? }),
    )
}

/// Which order came of it.
pub fn key_set_order(
    tx: &mut Tx<'_>,
    key: &ClientKeyRow,
    order_id: &str,
) -> Result<(), StorageError> {
    tx.execute(
        "update request_keys set order_id = $4 \
         where user_id = $1 and action = $2 and idempotency_key = $3",
        params![key.user_id, key.action, key.key, order_id],
    )?;
    Ok(())
}

/// Nothing came of it: the key may be used again.
pub fn key_release(tx: &mut Tx<'_>, key: &ClientKeyRow) -> Result<(), StorageError> {
    tx.execute(
        "delete from request_keys where user_id = $1 and action = $2 and idempotency_key = $3",
        params![key.user_id, key.action, key.key],
    )?;
    Ok(())
}

pub fn keys_delete_old(
    tx: &mut Tx<'_>,
    before: Timestamp,
    limit: u32,
) -> Result<u64, StorageError> {
    tx.execute(
        "delete from request_keys where (user_id, action, idempotency_key) in \
         (select user_id, action, idempotency_key from request_keys \
          where created_at < $1 order by created_at limit $2)",
        params![before, limit],
    )
}
