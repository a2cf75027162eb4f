//! The calls to the ticket service about what a payment pays. Each can be repeated without harm.

use urr_contracts::clients::ClientError;
use urr_contracts::internal::ticket::{
    ConfirmPayable, GetPayable, MarkPayableRefunded, PayableKind, PinPayable, ReleaseHold,
    TicketCalls, UnpinPayable,
};
use urr_kernel::{CallContext, TraceContext, Uuid, Won};
use urr_service::InternalCall;

use crate::PaymentService;
use crate::domain::payment::Payment;

impl PaymentService {
    /// Makes a call in the context of a payment, with the fault points of its name.
    pub(crate) async fn ask_tickets<C: InternalCall<Service = TicketCalls>>(
        &self,
        name: &'static str,
        payment: &Payment,
        request: C,
    ) -> Result<C::Answer, ClientError> {
        let context = call_context(payment);
        self.call(name, self.0.tickets.call(request, &context)).await
    }
}

impl Payment {
    pub(crate) fn get_payable(&self) -> GetPayable {
        GetPayable { payable: self.payable }
    }

    pub(crate) fn pin_payable(&self) -> PinPayable {
        PinPayable {
            payable: self.payable,
            payment_id: self.id.0,
            user_id: self.user_id,
            fencing_token: self.claimed_token(),
            amount: self.amount,
            attempt: self.pin_attempt,
            event_id: self.event_id,
        }
    }

    pub(crate) fn unpin_payable(&self) -> UnpinPayable {
        let attempt = self.pin_attempt;
        UnpinPayable { payable: self.payable, payment_id: self.id.0, attempt }
    }

    /// None if what is paid is not a hold.
    pub(crate) fn release_hold(&self) -> Option<ReleaseHold> {
        let is_hold = self.payable.kind == PayableKind::Reservation;
        is_hold.then(|| ReleaseHold {
            id: self.payable.id,
            user_id: self.user_id,
            fencing_token: self.claimed_token(),
        })
    }

    pub(crate) fn confirm_payable(&self) -> ConfirmPayable {
        ConfirmPayable {
            payable: self.payable,
            payment_id: self.id.0,
            fencing_token: self.claimed_token(),
            amount: self.amount,
            payment_method: self.method.clone(),
            event_id: self.event_id,
        }
    }

    /// Reports a refund. `requested` is what the ticket service asked for; less was refunded if an
    /// administrator had refunded a part before.
    pub(crate) fn mark_payable_refunded(
        &self,
        requested: Won,
        refunded: Won,
    ) -> MarkPayableRefunded {
        MarkPayableRefunded {
            payable: self.payable,
            payment_id: self.id.0,
            amount: requested,
            returned_amount: Some(refunded).filter(|refunded| *refunded != requested),
        }
    }

    /// Orders of commands may have no token. No hold has this one, so the ticket service refuses it.
    fn claimed_token(&self) -> i64 {
        self.fencing_token.unwrap_or(-1)
    }
}

/// The context of everything that a payment causes: the flow of what is paid, caused by the charge,
/// or before that by the event that announced the hold.
pub(crate) fn call_context(payment: &Payment) -> CallContext {
    CallContext {
        correlation_id: payment.correlation_id,
        causation_id: payment.confirmed_event_id.or(payment.cause_event_id),
        trace: parse_trace(payment.traceparent.as_deref(), payment.correlation_id),
    }
}

/// The stored trace, or a new one named by the flow.
pub(crate) fn parse_trace(traceparent: Option<&str>, correlation_id: Uuid) -> TraceContext {
    let trace = traceparent.and_then(|text| text.parse().ok());
    trace.unwrap_or_else(|| TraceContext::root(correlation_id))
}
