//! The payments of an event that did not work, for its live board.

use urr_contracts::internal::payment::{GetPaymentFigures, PaymentFigures};
use urr_kernel::{CallContext, Uuid};
use urr_service::ApiError;
use urr_storage::{DbResult, Tx, params};

use crate::PaymentService;

pub async fn get_payment_figures(
    payments: PaymentService,
    GetPaymentFigures { event_id }: GetPaymentFigures,
    _: CallContext,
) -> Result<PaymentFigures, ApiError> {
    Ok(payments.0.db.read(move |tx| figures(tx, event_id)).await?)
}

/// One statement on the index `payments_unsettled_of_event`.
fn figures(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<PaymentFigures> {
    let sql = "select \
         (select count(*) from payments where event_id = $1 and status = 'failed' \
             and charge_sent_at is not null) as declined, \
         (select count(*) from payments where event_id = $1 and status = 'unknown') as unclear";
    tx.query_one(sql, params![event_id], |row| {
        let number = |column| row.get::<i64>(column).map(i64::unsigned_abs);
        Ok(PaymentFigures { declined: number("declined")?, unclear: number("unclear")? })
    })
}
