//! What is now known of a charge is written down: the money is ours, or goes back, or was never
//! taken.

use urr_storage::outbox::{self, Stamp};
use urr_storage::{StorageError, Tx};

use super::purchase_steps::charge_request;
use super::runner::StepOutcome;
use super::start_refund::full_refund_insert;
use crate::domain::charge::{ChargeDecision, METHOD_NOT_SUPPORTED};
use crate::domain::ledger::Posting;
use crate::domain::payment::{Payment, PaymentStatus, SagaStep};
use crate::domain::refund::RefundCause;
use crate::events::PaymentConfirmed;
use crate::provider::{ChargeRequest, ProviderOutcome, ProviderPayment};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments;
use crate::store::provider_calls;
use crate::ticket_client;
use crate::{PROVIDER_GONE, PaymentService, SOURCE};

/// So often money that was taken is written down although others move the payment.
const TAKEN_UP_MAX: u32 = 5;

/// Money that was taken.
enum TakenMoney {
    AsOrdered(ProviderPayment),
    Unwanted { paid: ProviderPayment, cause: RefundCause, code: &'static str },
}

/// Why nothing is given for money that was taken.
struct UnwantedCharge<'a> {
    cause: RefundCause,
    code: &'static str,
    /// What the provider calls the charge; none if another order is called so.
    key: Option<&'a str>,
}

/// Whether something else was paid for the same.
pub(super) fn is_paid_otherwise(error: &StorageError) -> bool {
    error.violates("payments_one_charge") || error.violates("payments_one_charge_of_term")
}

impl PaymentService {
    /// Writes down what is now known of the charge.
    pub(super) async fn record_charge(
        &self,
        payment: &Payment,
        verdict: ChargeDecision,
    ) -> Result<StepOutcome, StorageError> {
        let (id, now) = (payment.id, self.0.clock.now());
        match verdict {
            ChargeDecision::Paid(paid) => {
                self.record_taken(payment, TakenMoney::AsOrdered(paid)).await
            }
            ChargeDecision::Mismatch { paid, code } => {
                let taken = TakenMoney::Unwanted { paid, cause: RefundCause::Mismatch, code };
                self.record_taken(payment, taken).await
            }
            ChargeDecision::Failed { code } => {
                let failed = (PaymentStatus::Failed, Some(SagaStep::Unpin));
                self.advance(payment, "charge failed", failed, move |tx| {
                    provider_calls::provider_calls_finish(tx, id, "declined", Some(&code), now)?;
                    payments::failure_set(tx, id, &code)
                })
                .await
            }
            ChargeDecision::Wait { code } if payment.status == PaymentStatus::Approving => {
                self.raise_alarm(payment, &code);
                self.query_soon(payment, move |tx| {
                    provider_calls::provider_calls_finish(tx, id, "unknown", Some(&code), now)?;
                    payments::failure_set(tx, id, &code)
                })
                .await
            }
            ChargeDecision::Wait { code } => self.retry_later(payment, Some(&code)).await,
            ChargeDecision::CloseDeposit => self.close_deposit(payment).await,
            ChargeDecision::RetryCharge => unreachable!("only a look leads to another charge"),
        }
    }

    /// The buyer was given an account to pay into, and the seats do not wait so long: it is closed.
    /// Until that is sure, nobody knows whether something was paid.
    async fn close_deposit(&self, payment: &Payment) -> Result<StepOutcome, StorageError> {
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let charge = ChargeRequest {
            idempotency_key: payment.close_deposit_key(),
            ..charge_request(payment)
        };
        let outcome = self.call("call close deposit", provider.close_deposit(&charge)).await;
        let (id, now) = (payment.id, self.0.clock.now());
        let note = move |tx: &mut Tx<'_>| {
            provider_calls::provider_calls_finish(
                tx,
                id,
                "declined",
                Some(METHOD_NOT_SUPPORTED),
                now,
            )?;
            payments::failure_set(tx, id, METHOD_NOT_SUPPORTED)
        };
        match outcome {
            ProviderOutcome::Done(_) => {
                let failed = (PaymentStatus::Failed, Some(SagaStep::Unpin));
                self.advance(payment, "deposit closed", failed, note).await
            }
            _ if payment.status == PaymentStatus::Approving => self.query_soon(payment, note).await,
            _ => self.retry_later_with(payment, "wait", Some(METHOD_NOT_SUPPORTED), note).await,
        }
    }

    /// Money was taken: whatever has become of the payment meanwhile, this is never dropped.
    async fn record_taken(
        &self,
        payment: &Payment,
        taken: TakenMoney,
    ) -> Result<StepOutcome, StorageError> {
        let mut payment = payment.clone();
        for _ in 0..TAKEN_UP_MAX {
            if payment.is_abandoned() {
                self.0.metrics.count_alarm("PAID_AFTER_ALL");
                let order = &payment.order_id;
                tracing::error!(order, "it was given up, and the provider has taken the money");
            }
            let settled = match &taken {
                TakenMoney::AsOrdered(paid) => self.record_paid(&payment, paid.clone()).await?,
                TakenMoney::Unwanted { paid, cause, code } => {
                    let why = UnwantedCharge {
                        cause: cause.clone(),
                        code,
                        key: Some(paid.provider_key()),
                    };
                    self.record_unwanted(&payment, paid.clone(), why).await?
                }
            };
            match settled {
                // Somebody else, who could not know of it, has given it up.
                StepOutcome::Stop(current) if current.is_abandoned() => payment = current,
                settled => return Ok(settled),
            }
        }
        // It is being moved by others again and again. Comparing the books will find it.
        Ok(StepOutcome::Stop(payment))
    }

    /// The money is ours: from here on everybody is told, and the ticket is due.
    pub(super) async fn record_paid(
        &self,
        payment: &Payment,
        paid: ProviderPayment,
    ) -> Result<StepOutcome, StorageError> {
        let (id, now) = (payment.id, self.0.clock.now());
        let (entry_id, event_id) = (self.0.ids.next_id(), self.0.ids.next_id());
        let context = ticket_client::call_context(payment);
        let stamp = Stamp { event_id, source: SOURCE, time: now, context };
        let fact = PaymentConfirmed::of(payment, &paid.method, now);
        let (amount, known) = (payment.amount, paid.clone());
        let deliver = (PaymentStatus::Confirmed, Some(SagaStep::Deliver));
        let settled = self.advance(payment, "charged", deliver, move |tx| {
            provider_calls::provider_calls_finish(tx, id, "done", None, now)?;
            payments::charge_set(tx, id, &known, Some(known.provider_key()), Some(event_id))?;
            let of = EntryOf { id: entry_id, payment_id: id, refund_id: None, now };
            ledger::entry_insert(tx, of, &Posting::charge(amount))?;
            outbox::append(tx, &stamp, &fact)
        });
        let why = match settled.await {
            // It was given up, something else was paid in its place, and now it was paid too.
            Err(error) if is_paid_otherwise(&error) => {
                let key = Some(paid.provider_key());
                UnwantedCharge { cause: RefundCause::Duplicate, code: "ALREADY_PAID", key }
            }
            // What the provider calls it is what another order of ours was paid by.
            Err(error) if error.violates("payments_key") => {
                UnwantedCharge { cause: RefundCause::Mismatch, code: "KEY_USED_TWICE", key: None }
            }
            settled => return settled,
        };
        self.record_unwanted(payment, paid.clone(), why).await
    }

    /// Money that was taken and that nothing is given for goes back at once. Nobody is told that it
    /// had come.
    async fn record_unwanted(
        &self,
        payment: &Payment,
        paid: ProviderPayment,
        why: UnwantedCharge<'_>,
    ) -> Result<StepOutcome, StorageError> {
        let UnwantedCharge { cause, code, key } = why;
        self.0.metrics.count_alarm(code);
        let (order, amount) = (&payment.order_id, paid.amount);
        tracing::error!(order, %amount, code, "money that nobody asked for: it goes back");
        let full_refund = self.full_refund(payment, cause, paid.amount, code);
        let (id, entry_id, now) = (payment.id, self.0.ids.next_id(), self.0.clock.now());
        let refunding = (PaymentStatus::Refunding, Some(SagaStep::Refund));
        let key = key.map(str::to_owned);
        let note = move |key: Option<String>| {
            let (paid, full_refund) = (paid.clone(), full_refund.clone());
            self.advance(payment, "charge unwanted", refunding, move |tx| {
                provider_calls::provider_calls_finish(tx, id, "unwanted", Some(code), now)?;
                payments::charge_set(tx, id, &paid, key.as_deref(), None)?;
                payments::failure_set(tx, id, code)?;
                let of = EntryOf { id: entry_id, payment_id: id, refund_id: None, now };
                ledger::entry_insert(tx, of, &Posting::charge(paid.amount))?;
                full_refund_insert(tx, &full_refund)
            })
        };
        match note(key).await {
            // It goes back all the same: by its order, and by the key that it came with.
            Err(error) if error.violates("payments_key") => note(None).await,
            noted => noted,
        }
    }
}
