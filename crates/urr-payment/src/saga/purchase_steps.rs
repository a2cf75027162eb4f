//! The steps of a purchase: pin the hold, charge, deliver; or unpin after a failure.

use urr_contracts::clients::ClientError;
use urr_kernel::Won;
use urr_storage::DbResult;

use super::record_charge::record_unsent;
use super::runner::StepOutcome;
use super::start_refund::full_refund_insert;
use crate::domain::charge_outcome::{
    ChargeDecision, decide_charge, decide_queried_charge, decide_retried_charge,
};
use crate::domain::ledger::{Posting, PurchaseAmounts};
use crate::domain::payment::{CURRENCY, Payment, PaymentStatus, SagaStep};
use crate::domain::refund::{Refund, RefundOrigin};
use crate::provider::{
    ChargeRequest, PaymentChannel, ProviderClient, ProviderPayment, ProviderState,
};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments;
use crate::store::provider_calls::{self, ProviderCall};
use crate::{PROVIDER_GONE, PaymentService};

/// How often a ticket service that does not answer is asked to pin, while the buyer waits.
const PIN_ATTEMPTS_MAX: u32 = 5;
/// The payable is there, and its pin is not.
pub(super) const NOT_PINNED: &str = "NOT_PINNED";
/// Why a payment failed whose hold could not be pinned for lack of an answer.
pub(crate) const TICKETS_UNAVAILABLE: &str = "TICKET_SERVICE_UNAVAILABLE";

/// The purchase has failed, and its hold is released.
const FAILED: (PaymentStatus, Option<SagaStep>) = (PaymentStatus::Failed, Some(SagaStep::Unpin));

impl PaymentService {
    /// Pins the hold and charges. That the charge may be sent has been committed: until the outcome
    /// is, another process asks the provider first.
    pub(super) async fn pin_and_charge(&self, payment: &Payment) -> DbResult<StepOutcome> {
        let now = self.0.clock.now();
        match self.ask_tickets("call pin", payment, payment.pin_payable()).await {
            Ok(_) => self.step_charge(payment).await,
            Err(ClientError::Refused { code, .. }) => self.pin_refused(payment, code).await,
            Err(ClientError::NoAnswer { .. }) => {
                self.retry_later_with(payment, "wait", None, move |tx, payment| {
                    record_unsent(tx, payment, TICKETS_UNAVAILABLE, now)
                })
                .await
            }
        }
    }

    /// The hold cannot be pinned, and nothing was charged.
    async fn pin_refused(&self, payment: &Payment, code: String) -> DbResult<StepOutcome> {
        let now = self.0.clock.now();
        self.advance(payment, "pin refused", FAILED, move |tx, payment| {
            record_unsent(tx, payment, &code, now)?;
            payments::failure_set(tx, payment, &code)
        })
        .await
    }

    /// Pins the hold of a payment whose charge was certainly not sent.
    pub(super) async fn step_pin(&self, payment: &Payment) -> DbResult<StepOutcome> {
        let (name, code) = match self.ask_tickets("call pin", payment, payment.pin_payable()).await
        {
            Ok(_) => {
                let (call, now) = (self.new_charge_call(payment), self.0.clock.now());
                let charge = (PaymentStatus::Approving, Some(SagaStep::Charge));
                return self
                    .advance(payment, "hold pinned", charge, move |tx, payment| {
                        payments::charge_sent(tx, payment, now)?;
                        provider_calls::provider_call_insert(tx, &call, now)
                    })
                    .await;
            }
            Err(ClientError::Refused { code, .. }) => ("pin refused", code),
            Err(ClientError::NoAnswer { .. }) if payment.attempts >= PIN_ATTEMPTS_MAX => {
                ("pin given up", TICKETS_UNAVAILABLE.to_owned())
            }
            Err(ClientError::NoAnswer { .. }) => return self.retry_later(payment, None).await,
        };
        self.advance(payment, name, FAILED, move |tx, payment| {
            payments::failure_set(tx, payment, &code)
        })
        .await
    }

    /// Asks the provider to charge. That it will be asked has been committed before.
    pub(super) async fn step_charge(&self, payment: &Payment) -> DbResult<StepOutcome> {
        if payment.amount == Won::ZERO {
            return self.record_free(payment).await;
        }
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let charge = charge_request(payment);
        let outcome = self.call("call confirm", provider.confirm(&charge)).await;
        match decide_charge(payment, outcome) {
            ChargeDecision::Paid(paid) => self.deliver_and_record(payment, paid).await,
            decision => self.record_charge(payment, decision).await,
        }
    }

    /// Asks the provider what it did, and if that was nothing, for the same charge once more.
    pub(super) async fn step_query(&self, payment: &Payment) -> DbResult<StepOutcome> {
        if payment.amount == Won::ZERO {
            return self.record_free(payment).await;
        }
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let find = provider.find(&payment.order_id, payment.payment_key.as_deref());
        let found = self.call("call find", find).await;
        let (timeouts, now) = (&self.0.timeouts, self.0.clock.now());
        let decision = match decide_queried_charge(payment, found, timeouts, now) {
            // The payment was given up before. Only a charge would change that.
            ChargeDecision::RetryCharge | ChargeDecision::Failed { .. }
                if payment.status == PaymentStatus::Failed =>
            {
                let failed = (PaymentStatus::Failed, None);
                return self.advance(payment, "still failed", failed, |_, _| Ok(())).await;
            }
            ChargeDecision::RetryCharge => return self.retry_charge(payment, provider).await,
            decision => decision,
        };
        self.record_charge(payment, decision).await
    }

    /// Sends the same charge once more. The process that began the payment may have ended before it
    /// pinned the hold, so that is done again.
    async fn retry_charge(
        &self,
        payment: &Payment,
        provider: &ProviderClient,
    ) -> DbResult<StepOutcome> {
        match self.ask_tickets("call pin again", payment, payment.pin_payable()).await {
            Ok(_) => {}
            Err(ClientError::NoAnswer { .. }) => return self.retry_later(payment, None).await,
            Err(ClientError::Refused { code, .. }) => {
                let sent_at = payment.last_charge_at.unwrap_or(payment.updated_at);
                let is_trusted =
                    self.0.clock.now() >= sent_at + self.0.timeouts.not_found_trusted_after;
                // Whoever delivered it has charged, after we asked the provider.
                let is_delivered = self.is_delivered(payment).await;
                return match is_trusted && is_delivered == Some(false) {
                    true => self.pin_refused(payment, code).await,
                    false => self.retry_later(payment, None).await,
                };
            }
        }
        let (call, now) = (self.new_charge_call(payment), self.0.clock.now());
        let again = payment.clone();
        self.commit("charge again", move |tx| {
            payments::charge_sent(tx, &mut again.clone(), now)?;
            provider_calls::provider_call_insert(tx, &call, now)
        })
        .await?;
        let charge = charge_request(payment);
        let outcome = self.call("call confirm again", provider.confirm(&charge)).await;
        self.record_charge(payment, decide_retried_charge(payment, outcome)).await
    }

    /// A free order needs no provider.
    async fn record_free(&self, payment: &Payment) -> DbResult<StepOutcome> {
        let paid = ProviderPayment {
            order_id: payment.order_id.clone(),
            payment_key: payment.order_id.clone(),
            transaction_id: None,
            amount: Won::ZERO,
            currency: CURRENCY.to_owned(),
            state: ProviderState::Paid,
            refunded: Won::ZERO,
            method: "free".to_owned(),
            approved_at: Some(self.0.clock.now()),
            receipt_url: None,
            channel: PaymentChannel::Configured,
        };
        self.record_charge(payment, ChargeDecision::Paid(paid)).await
    }

    fn new_charge_call(&self, payment: &Payment) -> ProviderCall {
        ProviderCall::charge(self.0.ids.next_id(), payment.id)
    }

    /// Asks the ticket service to give the buyer what was paid for. The charge was recorded.
    async fn ask_delivery(&self, payment: &Payment) -> Result<(), ClientError> {
        let answer = self.ask_tickets("call deliver", payment, payment.confirm_payable()).await;
        match answer {
            // The charge came late. If the hold is still there, it is the buyer's.
            Err(error) if error.code() == Some(NOT_PINNED) => {
                self.ask_tickets("call pin late", payment, payment.pin_payable()).await?;
                self.ask_tickets("call deliver late", payment, payment.confirm_payable()).await?;
                Ok(())
            }
            answer => answer.map(|_| ()),
        }
    }

    pub(super) async fn step_deliver(&self, payment: &Payment) -> DbResult<StepOutcome> {
        match self.ask_delivery(payment).await {
            Ok(()) => self.delivered(payment).await,
            Err(ClientError::NoAnswer { .. }) => self.retry_later(payment, None).await,
            Err(ClientError::Refused { code, .. }) => self.not_delivered(payment, code).await,
        }
    }

    async fn delivered(&self, payment: &Payment) -> DbResult<StepOutcome> {
        let (id, now) = (self.0.ids.next_id(), self.0.clock.now());
        let entry = EntryOf { id, payment_id: payment.id, refund_id: None, now };
        let posting = Posting::deliver(PurchaseAmounts::new(payment));
        self.advance(payment, "delivered", (PaymentStatus::Confirmed, None), move |tx, _| {
            ledger::entry_insert(tx, entry, &posting)
        })
        .await
    }

    /// The ticket service refuses to confirm. It may have confirmed before: then the reservation was
    /// cancelled since, and its refund is announced.
    pub(super) async fn not_delivered(
        &self,
        payment: &Payment,
        code: String,
    ) -> DbResult<StepOutcome> {
        match self.is_delivered(payment).await {
            Some(true) => return self.delivered(payment).await,
            None => return self.retry_later(payment, None).await,
            Some(false) => {}
        }
        let origin = match code.as_str() {
            "RESERVATION_CONFIRMED" => RefundOrigin::Duplicate,
            _ => RefundOrigin::NotConfirmable,
        };
        let order = &payment.order_id;
        tracing::warn!(order, code, cause = %origin, "what was paid is refused; it is refunded");
        let [refund_id, entry_id] = [(); 2].map(|()| self.0.ids.next_id());
        let now = self.0.clock.now();
        let refund = Refund::new(refund_id, payment, origin, payment.charged, code.clone(), now);
        let refunding = (PaymentStatus::Refunding, Some(SagaStep::Refund));
        self.advance(payment, "not deliverable", refunding, move |tx, payment| {
            payments::failure_set(tx, payment, &code)?;
            full_refund_insert(tx, &refund, entry_id)
        })
        .await
    }

    /// Whether the payable carries this payment; none without an answer.
    async fn is_delivered(&self, payment: &Payment) -> Option<bool> {
        match self.ask_tickets("call state", payment, payment.get_payable()).await {
            Ok(answer) => Some(answer.payable.payment_id == Some(payment.id.0)),
            Err(ClientError::Refused { .. }) => Some(false),
            Err(ClientError::NoAnswer { .. }) => None,
        }
    }

    /// Releases the pin, and after too many declines the hold as well.
    pub(super) async fn step_unpin(&self, payment: &Payment) -> DbResult<StepOutcome> {
        // A hold that does not exist or is no longer pinned needs no unpin.
        if let Err(ClientError::NoAnswer { .. }) =
            self.ask_tickets("call unpin", payment, payment.unpin_payable()).await
        {
            return self.retry_later(payment, None).await;
        }
        // A hold that was released, has expired or was changed needs no release.
        if let Some(release) = payment.release_hold()
            && self.declines_left(payment).await? == Some(0)
            && let Err(ClientError::NoAnswer { .. }) =
                self.ask_tickets("call release", payment, release).await
        {
            return self.retry_later(payment, None).await;
        }
        self.advance(payment, "unpinned", (payment.status, None), payments::pin_attempt_end).await
    }
}

pub(super) fn charge_request(payment: &Payment) -> ChargeRequest {
    ChargeRequest {
        order_id: payment.order_id.clone(),
        payment_key: payment.payment_key.clone().expect("an approved payment has a key"),
        amount: payment.amount,
        idempotency_key: payment.charge_key(),
    }
}
