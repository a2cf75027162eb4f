//! The payments of reservations and events, for the services that show them to organisers.

use urr_contracts::internal::payment::{
    GetUnclearPayments, ListPayablePayments, PAYABLES_PER_CALL_MAX, PayablePayment,
    PayablePaymentsAnswer, PayableRefund, UnclearPaymentsAnswer,
};
use urr_kernel::CallContext;
use urr_service::ApiError;
use urr_storage::{StorageError, Tx};

use crate::PaymentService;
use crate::domain::payment::Payment;
use crate::domain::refund::Refund;
use crate::store::{payments as store, refunds};

/// How many payments an answer has at most. A payable has few.
const PAYMENTS_MAX: usize = 100;

pub async fn list_payable_payments(
    payments: PaymentService,
    call: ListPayablePayments,
    _: CallContext,
) -> Result<PayablePaymentsAnswer, ApiError> {
    if !(1..=PAYABLES_PER_CALL_MAX).contains(&call.payable_ids.len()) {
        let sentence = format!("A request has 1 to {PAYABLES_PER_CALL_MAX} ids.");
        return Err(ApiError::bad_request("INVALID_PAYABLE_IDS", sentence));
    }
    let read = move |tx: &mut Tx<'_>| {
        let mut found = Vec::new();
        for payable_id in &call.payable_ids {
            for payment in store::payment_list_of_payable(tx, *payable_id)? {
                if found.len() == PAYMENTS_MAX {
                    break;
                }
                let refunds = refunds::refund_list(tx, payment.id)?;
                found.push(payable_payment(payment, refunds));
            }
        }
        Ok::<_, StorageError>(found)
    };
    let mut found = payments.0.db.read(read).await?;
    found.sort_by_key(|payment| (payment.created_at, payment.id));
    Ok(PayablePaymentsAnswer { payments: found })
}

fn payable_payment(payment: Payment, refunds: Vec<Refund>) -> PayablePayment {
    PayablePayment {
        id: payment.id.0,
        payable_id: payment.payable.id,
        user_id: payment.user_id,
        status: payment.status.as_str().to_owned(),
        method: payment.method,
        amount: payment.amount,
        failure_code: payment.failure_code,
        created_at: payment.created_at,
        approved_at: payment.approved_at,
        updated_at: payment.updated_at,
        refunds: refunds.into_iter().map(payable_refund).collect(),
    }
}

fn payable_refund(refund: Refund) -> PayableRefund {
    PayableRefund {
        id: refund.id.0,
        amount: refund.amount,
        status: refund.status.as_str().to_owned(),
        reason: refund.reason,
        requested_by: refund.requested_by,
        created_at: refund.created_at,
        done_at: refund.done_at,
    }
}

pub async fn get_unclear_payments(
    payments: PaymentService,
    GetUnclearPayments { event_id }: GetUnclearPayments,
    _: CallContext,
) -> Result<UnclearPaymentsAnswer, ApiError> {
    let read = move |tx: &mut Tx<'_>| store::unclear_sum(tx, event_id);
    let (count, amount) = payments.0.db.read(read).await?;
    Ok(UnclearPaymentsAnswer { payments: count, amount })
}
