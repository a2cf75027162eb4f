//! Messages of providers, each once.

use urr_kernel::Timestamp;
use urr_storage::{StorageError, Tx, params};

/// The answer is whether it is new.
pub fn webhook_insert(
    tx: &mut Tx<'_>,
    provider: &str,
    message_id: &str,
    order_id: &str,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "insert into webhooks (provider, message_id, received_at, order_id) \
         values ($1, $2, $3, $4) on conflict (provider, message_id) do nothing",
        params![provider, message_id, now, order_id],
    )?;
    Ok(rows == 1)
}

/// How many messages there were about an order.
pub fn webhook_count(tx: &mut Tx<'_>, order_id: &str) -> Result<i64, StorageError> {
    let sql = "select count(*) as messages from webhooks where order_id = $1";
    tx.query_one(sql, params![order_id], |row| row.get("messages"))
}
