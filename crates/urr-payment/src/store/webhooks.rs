//! Webhooks of providers, each stored once.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Tx, params};

/// Returns whether the message is new.
pub fn webhook_insert(
    tx: &mut Tx<'_>,
    provider: &str,
    message_id: &str,
    order_id: &str,
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into webhooks (provider, message_id, received_at, order_id) \
         values ($1, $2, $3, $4) on conflict (provider, message_id) do nothing",
        params![provider, message_id, now, order_id],
    )?;
    Ok(rows == 1)
}

pub fn webhook_exists(tx: &mut Tx<'_>, provider: &str, message_id: &str) -> DbResult<bool> {
    let sql = "select 1 as known from webhooks where provider = $1 and message_id = $2";
    let known = tx.query_opt(sql, params![provider, message_id], |row| row.get::<i64>("known"))?;
    Ok(known.is_some())
}

pub(super) const COUNT: &str =
    "select count(*) as messages from webhooks where order_id = $1 and received_at > $2";

/// How many messages about an order were stored since then.
pub fn webhook_count(tx: &mut Tx<'_>, order_id: &str, since: Timestamp) -> DbResult<i64> {
    tx.query_one(COUNT, params![order_id, since], |row| row.get("messages"))
}

pub fn webhooks_delete_old(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from webhooks where (provider, message_id) in \
         (select provider, message_id from webhooks where received_at < $1 \
          order by received_at limit $2)",
        params![before, limit],
    )
}
