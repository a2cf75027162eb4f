//! A user's payments and refunds, for the copy of their data.

use serde_json::{Value, json};
use urr_contracts::internal::payment::{GetPaymentRecords, PaymentRecordsAnswer};
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_service::ApiError;
use urr_service::own_records::bounded_records;
use urr_storage::{DbResult, Tx, params};

use crate::PaymentService;

/// How many rows of each table a copy has at most, the newest.
const RECORDS_MAX: u32 = 2_000;

pub async fn get_payment_records(
    payments: PaymentService,
    GetPaymentRecords { user_id }: GetPaymentRecords,
    _: CallContext,
) -> Result<PaymentRecordsAnswer, ApiError> {
    let read = move |tx: &mut Tx<'_>| {
        let tables = [
            ("payments", payment_records(tx, user_id)?),
            ("refunds", refund_records(tx, user_id)?),
        ];
        let records = bounded_records(tables, RECORDS_MAX);
        Ok::<_, urr_storage::StorageError>(PaymentRecordsAnswer { records })
    };
    Ok(payments.0.db.read(read).await?)
}

fn payment_records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    let sql = "select id, order_id, order_name, payable_kind, payable_id, amount, currency, \
               provider, method, status, failure_code, cancel_reason, approved_at, receipt_url, \
               charged_amount, refunded_amount, created_at from payments \
               where user_id = $1 order by id desc limit $2";
    tx.query(sql, params![user_id, RECORDS_MAX + 1], |row| {
        Ok(json!({
            "id": row.get::<Uuid>("id")?,
            "orderId": row.get::<String>("order_id")?,
            "orderName": row.get::<String>("order_name")?,
            "payableKind": row.get::<String>("payable_kind")?,
            "payableId": row.get::<Uuid>("payable_id")?,
            "amount": row.get::<Won>("amount")?,
            "currency": row.get::<String>("currency")?,
            "provider": row.get::<String>("provider")?,
            "method": row.get::<Option<String>>("method")?,
            "status": row.get::<String>("status")?,
            "failureCode": row.get::<Option<String>>("failure_code")?,
            "cancelReason": row.get::<Option<String>>("cancel_reason")?,
            "approvedAt": row.get::<Option<Timestamp>>("approved_at")?,
            "receiptUrl": row.get::<Option<String>>("receipt_url")?,
            "chargedAmount": row.get::<Won>("charged_amount")?,
            "refundedAmount": row.get::<Won>("refunded_amount")?,
            "createdAt": row.get::<Timestamp>("created_at")?,
        }))
    })
}

fn refund_records(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    let sql = "select r.id, r.payment_id, r.amount, r.fee, r.reason, r.status, r.created_at, \
               r.done_at from refunds as r join payments as p on p.id = r.payment_id \
               where p.user_id = $1 order by r.id desc limit $2";
    tx.query(sql, params![user_id, RECORDS_MAX + 1], |row| {
        Ok(json!({
            "id": row.get::<Uuid>("id")?,
            "paymentId": row.get::<Uuid>("payment_id")?,
            "amount": row.get::<Won>("amount")?,
            "fee": row.get::<Won>("fee")?,
            "reason": row.get::<String>("reason")?,
            "status": row.get::<String>("status")?,
            "createdAt": row.get::<Timestamp>("created_at")?,
            "doneAt": row.get::<Option<Timestamp>>("done_at")?,
        }))
    })
}
