//! The steps of a purchase: pin the hold, charge, deliver; or start_refund.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, Tx};

use super::runner::StepOutcome;
use super::start_refund::{FullRefund, full_refund_insert};
use crate::domain::charge::{
    ChargeDecision, decide_charge, decide_queried_charge, decide_retried_charge,
};
use crate::domain::ledger::{Posting, PurchaseAmounts};
use crate::domain::payment::{CURRENCY, Payment, PaymentStatus, SagaStep};
use crate::domain::refund::RefundCause;
use crate::provider::{ChargeRequest, ProviderPayment, ProviderState};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments;
use crate::store::provider_calls::{self, ProviderCall};
use crate::ticket_client::TicketClientError;
use crate::{PROVIDER_GONE, PaymentService};

/// So often a silent ticket service is asked to pin a hold. The buyer is waiting.
const PINS_MAX: u32 = 5;
const TICKETS_UNAVAILABLE: &str = "TICKET_SERVICE_UNAVAILABLE";

impl PaymentService {
    pub(super) async fn step_pin(&self, payment: &Payment) -> Result<StepOutcome, StorageError> {
        let failed = (PaymentStatus::Failed, Some(SagaStep::Unpin));
        let id = payment.id;
        match self.call("call pin", self.0.tickets.pin(payment)).await {
            Ok(_) => {
                let (attempt, now) = (self.new_charge_call(payment), self.0.clock.now());
                let charge = (PaymentStatus::Approving, Some(SagaStep::Charge));
                self.advance(payment, "hold pinned", charge, move |tx| {
                    payments::charge_sent(tx, id, now)?;
                    provider_calls::provider_call_insert(tx, &attempt, now)
                })
                .await
            }
            Err(TicketClientError::Refused { code, .. }) => {
                self.advance(payment, "pin refused", failed, move |tx| {
                    payments::failure_set(tx, id, &code)
                })
                .await
            }
            Err(TicketClientError::NoAnswer(_)) if payment.attempts >= PINS_MAX => {
                self.advance(payment, "pin given up", failed, move |tx| {
                    payments::failure_set(tx, id, TICKETS_UNAVAILABLE)
                })
                .await
            }
            Err(TicketClientError::NoAnswer(_)) => self.retry_later(payment, None).await,
        }
    }

    /// Asks the provider to take the money. That it will be asked has been committed.
    pub(super) async fn step_charge(&self, payment: &Payment) -> Result<StepOutcome, StorageError> {
        if payment.amount == Won::ZERO {
            let paid = free_payment(payment, self.0.clock.now());
            return self.record_paid(payment, paid).await;
        }
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let charge = charge_request(payment);
        let outcome = self.call("call confirm", provider.confirm(&charge)).await;
        self.record_charge(payment, decide_charge(payment, outcome)).await
    }

    /// Asks the provider what it has done, and if that was nothing, for the same charge once more.
    pub(super) async fn step_query(&self, payment: &Payment) -> Result<StepOutcome, StorageError> {
        if payment.amount == Won::ZERO {
            let paid = free_payment(payment, self.0.clock.now());
            return self.record_paid(payment, paid).await;
        }
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let find = provider.find(&payment.order_id, payment.payment_key.as_deref());
        let found = self.call("call find", find).await;
        let verdict =
            match decide_queried_charge(payment, found, &self.0.timeouts, self.0.clock.now()) {
                // It was given up and stays so: only if it was paid after all is there more to do.
                ChargeDecision::RetryCharge | ChargeDecision::Failed { .. }
                    if payment.status == PaymentStatus::Failed =>
                {
                    return self
                        .advance(payment, "still failed", (PaymentStatus::Failed, None), |_| Ok(()))
                        .await;
                }
                ChargeDecision::RetryCharge => {
                    self.record_charge_call(payment).await?;
                    let charge = charge_request(payment);
                    let call = provider.confirm(&charge);
                    decide_retried_charge(payment, self.call("call confirm again", call).await)
                }
                verdict => verdict,
            };
        self.record_charge(payment, verdict).await
    }

    async fn record_charge_call(&self, payment: &Payment) -> Result<(), StorageError> {
        let (id, now) = (payment.id, self.0.clock.now());
        let attempt = self.new_charge_call(payment);
        self.commit("charge again", move |tx| {
            payments::charge_sent(tx, id, now)?;
            provider_calls::provider_call_insert(tx, &attempt, now)
        })
        .await
    }

    fn new_charge_call(&self, payment: &Payment) -> ProviderCall {
        let (id, payment_id) = (self.0.ids.next_id(), payment.id);
        ProviderCall { id, payment_id, refund_id: None, action: "confirm" }
    }

    pub(super) async fn step_deliver(
        &self,
        payment: &Payment,
    ) -> Result<StepOutcome, StorageError> {
        let tickets = &self.0.tickets;
        let mut answer = self.call("call deliver", tickets.confirm(payment)).await;
        if is_refused(&answer, "NOT_PINNED") {
            // The money came late: if the hold is still there, it is the buyer's.
            answer = match self.call("call pin late", tickets.pin(payment)).await {
                Ok(_) => self.call("call deliver late", tickets.confirm(payment)).await,
                refused => refused,
            };
        }
        match answer {
            Ok(_) => self.delivered(payment).await,
            Err(TicketClientError::NoAnswer(_)) => self.retry_later(payment, None).await,
            Err(TicketClientError::Refused { code, .. }) => self.undelivered(payment, code).await,
        }
    }

    async fn delivered(&self, payment: &Payment) -> Result<StepOutcome, StorageError> {
        let (entry, posting) = (self.delivery_entry(payment), delivery(payment));
        self.advance(payment, "delivered", (PaymentStatus::Confirmed, None), move |tx| {
            ledger::entry_insert(tx, entry, &posting)
        })
        .await
    }

    fn delivery_entry(&self, payment: &Payment) -> EntryOf {
        let (id, now) = (self.0.ids.next_id(), self.0.clock.now());
        EntryOf { id, payment_id: payment.id, refund_id: None, now }
    }

    /// The ticket service will not give the ticket. Perhaps it has: then the reservation was
    /// cancelled since, and the refund comes by itself.
    async fn undelivered(
        &self,
        payment: &Payment,
        code: String,
    ) -> Result<StepOutcome, StorageError> {
        let state = self.call("call state", self.0.tickets.state(payment)).await;
        match state {
            Ok(state) if state.payment_id == Some(payment.id.0) => {
                return self.delivered(payment).await;
            }
            Err(TicketClientError::NoAnswer(_)) => return self.retry_later(payment, None).await,
            Ok(_) | Err(TicketClientError::Refused { .. }) => {}
        }
        let cause = match code.as_str() {
            "RESERVATION_CONFIRMED" => RefundCause::Duplicate,
            _ => RefundCause::NotConfirmable,
        };
        let (order, cause_name) = (&payment.order_id, cause.name());
        tracing::warn!(order, code, cause = cause_name, "paid, and not to be had: it goes back");
        let full_refund = self.full_refund(payment, cause, payment.charged, &code);
        let id = payment.id;
        let refunding = (PaymentStatus::Refunding, Some(SagaStep::Refund));
        self.advance(payment, "not deliverable", refunding, move |tx| {
            payments::failure_set(tx, id, &code)?;
            full_refund_insert(tx, &full_refund)
        })
        .await
    }

    pub(super) async fn step_unpin(&self, payment: &Payment) -> Result<StepOutcome, StorageError> {
        match self.call("call unpin", self.0.tickets.unpin(payment)).await {
            Err(TicketClientError::NoAnswer(_)) => self.retry_later(payment, None).await,
            // What it does not have, or has given away, it need not let go.
            Ok(_) | Err(TicketClientError::Refused { .. }) => {
                self.advance(payment, "hold let go", (PaymentStatus::Failed, None), |_| Ok(()))
                    .await
            }
        }
    }

    /// All of a charge for which nothing was given goes back.
    pub(super) fn full_refund(
        &self,
        payment: &Payment,
        cause: RefundCause,
        amount: Won,
        reason: &str,
    ) -> FullRefund {
        FullRefund {
            refund_id: self.0.ids.next_id(),
            entry_id: self.0.ids.next_id(),
            payment_id: payment.id,
            cause,
            amount,
            reason: reason.to_owned(),
            correlation_id: payment.correlation_id,
            causation_id: payment.confirmed_event_id,
            now: self.0.clock.now(),
        }
    }
}

/// What a delivery is in the books.
pub(super) fn delivery(payment: &Payment) -> Posting {
    Posting::deliver(PurchaseAmounts::of(payment))
}

/// A delivery that was heard of before it was written down.
pub(super) fn delivery_insert(
    tx: &mut Tx<'_>,
    payment: &Payment,
    entry_id: Uuid,
    now: Timestamp,
) -> Result<(), StorageError> {
    let of = EntryOf { id: entry_id, payment_id: payment.id, refund_id: None, now };
    ledger::entry_insert(tx, of, &delivery(payment))
}

pub(super) fn charge_request(payment: &Payment) -> ChargeRequest {
    ChargeRequest {
        order_id: payment.order_id.clone(),
        payment_key: payment.payment_key.clone().expect("it was approved with a key"),
        amount: payment.amount,
        idempotency_key: payment.charge_key(),
    }
}

fn free_payment(payment: &Payment, now: Timestamp) -> ProviderPayment {
    ProviderPayment {
        order_id: payment.order_id.clone(),
        payment_key: payment.order_id.clone(),
        transaction_id: None,
        amount: Won::ZERO,
        currency: CURRENCY.to_owned(),
        state: ProviderState::Paid,
        refunded: Won::ZERO,
        method: "free".to_owned(),
        approved_at: Some(now),
        receipt_url: None,
    }
}

fn is_refused<T>(answer: &Result<T, TicketClientError>, expected: &str) -> bool {
    matches!(answer, Err(TicketClientError::Refused { code, .. }) if code == expected)
}
