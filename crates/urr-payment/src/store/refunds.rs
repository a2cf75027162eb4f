//! Refunds of payments.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Row, Tx, from_row, params};

use crate::domain::payment::PaymentId;
use crate::domain::refund::{Refund, RefundId, RefundStatus};

const COLUMNS: &str = "id, payment_id, cause, amount, fee, reason, requested_by, requested_amount, \
    status, sent_at, key_number, declines, failure_code, correlation_id, traceparent, \
    causation_id, created_at, done_at";

fn read(row: &Row<'_>) -> DbResult<Refund> {
    Ok(from_row!(row => Refund {
        id, payment_id, amount, fee, reason, requested_by, requested_amount, status, sent_at,
        key_number, declines, failure_code, correlation_id, traceparent, causation_id, created_at,
        done_at;
        origin: row.get("cause")?,
    }))
}

/// Inserts a refund once per origin. Returns whether it is new.
pub fn refund_insert(tx: &mut Tx<'_>, refund: &Refund) -> DbResult<bool> {
    let r = refund;
    let rows = tx.execute(
        "insert into refunds (id, payment_id, cause, amount, fee, reason, requested_by, \
         requested_amount, status, key_number, declines, correlation_id, traceparent, \
         causation_id, created_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10, $11, $12, $13) \
         on conflict (payment_id, cause) do nothing",
        params![
            r.id,
            r.payment_id,
            r.origin.to_string(),
            r.amount,
            r.fee,
            r.reason,
            r.requested_by,
            r.requested_amount,
            r.status,
            r.correlation_id,
            r.traceparent,
            r.causation_id,
            r.created_at,
        ],
    )?;
    Ok(rows == 1)
}

pub fn refund_list(tx: &mut Tx<'_>, id: PaymentId) -> DbResult<Vec<Refund>> {
    let sql =
        format!("select {COLUMNS} from refunds where payment_id = $1 order by created_at, id");
    tx.query(&sql, params![id], read)
}

/// Refunds that are done and not reported to the ticket service.
pub fn refund_list_unreported(tx: &mut Tx<'_>, id: PaymentId) -> DbResult<Vec<Refund>> {
    let sql = format!(
        "select {COLUMNS} from refunds where payment_id = $1 \
         and status in ('done', 'closed') and reported_at is null order by created_at, id"
    );
    tx.query(&sql, params![id], read)
}

/// The provider is about to be asked: from now on only it knows whether it refunded.
pub fn refund_mark_sent(tx: &mut Tx<'_>, id: RefundId, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "update refunds set status = 'unknown', sent_at = coalesce(sent_at, $2) \
         where id = $1 and status in ('requested', 'unknown')",
        params![id, now],
    )?;
    Ok(())
}

/// The next request has another idempotency key.
pub fn refund_renew_key(tx: &mut Tx<'_>, id: RefundId) -> DbResult<()> {
    tx.execute(
        "update refunds set key_number = key_number + 1, sent_at = null \
         where id = $1 and status in ('requested', 'unknown')",
        params![id],
    )?;
    Ok(())
}

/// The provider's answer does not say whether it refunded.
pub fn refund_mark_unclear(tx: &mut Tx<'_>, id: RefundId, code: &str) -> DbResult<()> {
    tx.execute(
        "update refunds set failure_code = $2 where id = $1 and status = 'unknown'",
        params![id, code],
    )?;
    Ok(())
}

/// The provider has declined. The next request has another idempotency key.
pub fn refund_mark_declined(tx: &mut Tx<'_>, id: RefundId, code: &str) -> DbResult<()> {
    tx.execute(
        "update refunds set status = 'requested', declines = declines + 1, \
         key_number = key_number + 1, sent_at = null, failure_code = $2 \
         where id = $1 and status in ('requested', 'unknown')",
        params![id, code],
    )?;
    Ok(())
}

/// An administrator has closed the refund.
pub fn refund_close(
    tx: &mut Tx<'_>,
    id: RefundId,
    status: RefundStatus,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "update refunds set status = $2, done_at = $3 where id = $1 and status = 'requested'",
        params![id, status, now],
    )?;
    Ok(())
}

/// The provider has refunded. Returns false if that was recorded before.
pub fn refund_mark_done(tx: &mut Tx<'_>, id: RefundId, now: Timestamp) -> DbResult<bool> {
    let rows = tx.execute(
        "update refunds set status = 'done', done_at = $2 \
         where id = $1 and status in ('requested', 'unknown')",
        params![id, now],
    )?;
    Ok(rows == 1)
}

pub fn refunds_mark_reported(tx: &mut Tx<'_>, id: PaymentId, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "update refunds set reported_at = $2 \
         where payment_id = $1 and status in ('done', 'closed') and reported_at is null",
        params![id, now],
    )?;
    Ok(())
}
