//! The calls to the ticket service about what a payment pays. Each can be repeated without harm.

use urr_contracts::clients::ClientError;
use urr_contracts::internal::ticket::{
    ConfirmPayableBody, PayableView, PinPayableBody, RefundedPayableBody, UnpinPayableBody,
};
use urr_kernel::{CallContext, TraceContext, Won};

use crate::PaymentService;
use crate::domain::payment::Payment;

type PayableResult = Result<PayableView, ClientError>;

impl PaymentService {
    pub(crate) async fn payable(&self, payment: &Payment) -> PayableResult {
        self.0.tickets.get_payable(payment.payable, &call_context(payment)).await
    }

    pub(crate) async fn pin(&self, payment: &Payment) -> PayableResult {
        let body = PinPayableBody {
            payment_id: payment.id.0,
            user_id: payment.user_id,
            fencing_token: fencing_token(payment),
            amount: payment.amount,
        };
        self.0.tickets.pin_payable(payment.payable, &body, &call_context(payment)).await
    }

    pub(crate) async fn unpin(&self, payment: &Payment) -> PayableResult {
        let body = UnpinPayableBody { payment_id: payment.id.0 };
        self.0.tickets.unpin_payable(payment.payable, &body, &call_context(payment)).await
    }

    pub(crate) async fn confirm(&self, payment: &Payment) -> PayableResult {
        let body = ConfirmPayableBody {
            payment_id: payment.id.0,
            fencing_token: fencing_token(payment),
            amount: payment.amount,
            payment_method: payment.method.clone(),
        };
        self.0.tickets.confirm_payable(payment.payable, &body, &call_context(payment)).await
    }

    /// Reports a refund. `requested` is what the ticket service asked for; less was refunded if an
    /// administrator had refunded a part before.
    pub(crate) async fn report_refund(
        &self,
        payment: &Payment,
        requested: Won,
        refunded: Won,
    ) -> PayableResult {
        let body = RefundedPayableBody {
            payment_id: payment.id.0,
            amount: requested,
            returned_amount: Some(refunded).filter(|refunded| *refunded != requested),
        };
        self.0.tickets.mark_payable_refunded(payment.payable, &body, &call_context(payment)).await
    }
}

/// Orders of commands may have no token. No hold has this one, so the ticket service refuses it.
fn fencing_token(payment: &Payment) -> i64 {
    payment.fencing_token.unwrap_or(-1)
}

/// The context of everything that a payment causes: the flow of what is paid, caused by the charge,
/// or before that by the event that announced the hold.
pub(crate) fn call_context(payment: &Payment) -> CallContext {
    CallContext {
        correlation_id: payment.correlation_id,
        causation_id: payment.confirmed_event_id.or(payment.cause_event_id),
        trace: TraceContext::root(payment.correlation_id),
    }
}
