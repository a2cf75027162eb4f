//! Records what is known of a charge: the money is ours, goes back, or was never taken.

use urr_contracts::clients::ClientError;
use urr_contracts::events::payment::PaymentConfirmed;
use urr_kernel::Timestamp;
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, SetWrite, StorageError, Tx};

use super::purchase_steps::{NOT_PINNED, charge_request};
use super::runner::StepOutcome;
use super::start_refund::full_refund_insert;
use crate::domain::charge_outcome::{ChargeDecision, METHOD_NOT_SUPPORTED, PROVIDER_UNAVAILABLE};
use crate::domain::ledger::{Posting, PurchaseAmounts};
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep};
use crate::domain::refund::{Refund, RefundOrigin};
use crate::events;
use crate::provider::{ChargeRequest, ProviderOutcome, ProviderPayment};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, CommandAction};
use crate::store::provider_calls;
use crate::store::purchase_sets::{self, ChargedPayment};
use crate::store::transitions::TransitionFrom;
use crate::ticket_calls::call_context;
use crate::{PROVIDER_GONE, PaymentService, SOURCE};

/// How often recording a charge is tried while other processes move the payment.
const RECORD_ATTEMPTS_MAX: u32 = 7;

const FAILED: (PaymentStatus, Option<SagaStep>) = (PaymentStatus::Failed, Some(SagaStep::Unpin));
/// The order can be confirmed again when its pin is released.
const OPEN: (PaymentStatus, Option<SagaStep>) = (PaymentStatus::Pending, Some(SagaStep::Unpin));
const DELIVER: (PaymentStatus, Option<SagaStep>) =
    (PaymentStatus::Confirmed, Some(SagaStep::Deliver));
const REFUND: (PaymentStatus, Option<SagaStep>) =
    (PaymentStatus::Refunding, Some(SagaStep::Refund));

/// Why a charge is refunded at once.
#[derive(Clone, Debug)]
struct UnwantedCharge {
    origin: RefundOrigin,
    code: &'static str,
}

/// Whether another payment has paid for the same payable.
pub(super) fn is_paid_otherwise(error: &StorageError) -> bool {
    error.violates("payments_one_charge") || error.violates("payments_one_charge_of_term")
}

/// Ends the calls to the provider, with the code of their failure.
fn record_failure(
    tx: &mut Tx<'_>,
    payment: &mut Payment,
    outcome: &'static str,
    code: &str,
    now: Timestamp,
) -> DbResult<()> {
    provider_calls::provider_calls_finish(tx, payment.id, outcome, Some(code), now)?;
    payments::failure_set(tx, payment, code)
}

/// Ends the calls to the provider: it was not asked to charge.
pub(super) fn record_unsent(
    tx: &mut Tx<'_>,
    payment: &mut Payment,
    code: &str,
    now: Timestamp,
) -> DbResult<()> {
    provider_calls::provider_calls_finish(tx, payment.id, "unsent", Some(code), now)?;
    payments::charge_unsent(tx, payment)
}

/// A charge that was delivered: its result, its ledger entries and its event.
struct DeliveredCharge {
    from: TransitionFrom,
    /// The payment as it is afterwards.
    charged: Payment,
    entries: [(EntryOf, Posting); 2],
    stamp: EventMetadata,
    event: PaymentConfirmed,
}

impl SetWrite for DeliveredCharge {
    /// Whether the payment was moved, and the payment.
    type Answer = (bool, Payment);
    type Error = StorageError;

    fn subject(&self) -> Option<String> {
        Some(self.charged.order_id.clone())
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<DbResult<(bool, Payment)>>> {
        let charged =
            set.iter().map(|one| ChargedPayment { from: one.from, payment: &one.charged });
        let charged: Vec<ChargedPayment<'_>> = charged.collect();
        let moved = purchase_sets::payments_charge(tx, &charged)?;
        let delivered: Vec<&DeliveredCharge> =
            set.iter().copied().filter(|one| moved.contains(&one.from.id)).collect();
        if let Some(first) = delivered.first() {
            let ids: Vec<PaymentId> = delivered.iter().map(|one| one.from.id).collect();
            purchase_sets::provider_calls_done(tx, &ids, first.stamp.time)?;
            let entries = delivered.iter().flat_map(|one| one.entries.clone());
            purchase_sets::entries_insert(tx, &entries.collect::<Vec<_>>())?;
            let facts = delivered.iter().map(|one| (one.stamp, one.event.clone()));
            outbox::append_all(tx, &facts.collect::<Vec<_>>())?;
        }
        let result = |one: &&DeliveredCharge| match moved.contains(&one.from.id) {
            true => Ok((true, one.charged.clone())),
            false => Ok((false, payments::payment_get(tx, one.from.id)?)),
        };
        set.iter().map(result).map(|result: DbResult<_>| result.map(Ok)).collect()
    }
}

impl PaymentService {
    pub(super) async fn record_charge(
        &self,
        payment: &Payment,
        decision: ChargeDecision,
    ) -> DbResult<StepOutcome> {
        let now = self.0.clock.now();
        match decision {
            ChargeDecision::Paid(paid) => self.record_charged(payment, paid, None).await,
            ChargeDecision::Mismatch { paid, code } => {
                let unwanted = UnwantedCharge { origin: RefundOrigin::Mismatch, code };
                self.record_charged(payment, paid, Some(unwanted)).await
            }
            ChargeDecision::Failed { code } => {
                self.advance(payment, "charge failed", FAILED, move |tx, payment| {
                    record_failure(tx, payment, "declined", &code, now)
                })
                .await
            }
            ChargeDecision::Reopen => {
                self.advance(payment, "charge unsent", OPEN, move |tx, payment| {
                    record_unsent(tx, payment, PROVIDER_UNAVAILABLE, now)?;
                    payments::failure_set(tx, payment, PROVIDER_UNAVAILABLE)?;
                    payments::command_delete(tx, &payment.order_id, CommandAction::Approve)
                })
                .await
            }
            ChargeDecision::Wait { code } if payment.status == PaymentStatus::Approving => {
                self.raise_alarm(payment, &code);
                self.query_soon(payment, move |tx, payment| {
                    record_failure(tx, payment, "unknown", &code, now)
                })
                .await
            }
            ChargeDecision::Wait { code } => self.retry_later(payment, Some(&code)).await,
            ChargeDecision::CloseDeposit => self.close_deposit(payment).await,
            ChargeDecision::RetryCharge => unreachable!("step_query retries the charge itself"),
        }
    }

    /// Closes the deposit account that the buyer was given, because seats are not held that long.
    /// Until the provider has closed it, the buyer may still pay.
    async fn close_deposit(&self, payment: &Payment) -> DbResult<StepOutcome> {
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let charge = ChargeRequest {
            idempotency_key: payment.close_deposit_key(),
            ..charge_request(payment)
        };
        let outcome = self.call("call close deposit", provider.close_deposit(&charge)).await;
        let (now, code) = (self.0.clock.now(), METHOD_NOT_SUPPORTED);
        let effect = move |tx: &mut Tx<'_>, payment: &mut Payment| {
            record_failure(tx, payment, "declined", code, now)
        };
        match outcome {
            ProviderOutcome::Done(_) => {
                self.advance(payment, "deposit closed", FAILED, effect).await
            }
            _ if payment.status == PaymentStatus::Approving => {
                self.query_soon(payment, effect).await
            }
            _ => self.retry_later_with(payment, "wait", Some(code), effect).await,
        }
    }

    /// The provider has charged: what was paid for is delivered, and both are recorded in one
    /// transaction. A process that ends in between is followed by one that asks the provider and
    /// delivers again, which changes nothing. If it cannot be delivered at once, the charge is
    /// recorded first.
    pub(super) async fn deliver_and_record(
        &self,
        payment: &Payment,
        paid: ProviderPayment,
    ) -> DbResult<StepOutcome> {
        // Nothing is delivered for a charge that belongs to another order.
        let (provider, key) = (payment.provider.clone(), paid.provider_key().to_owned());
        let used = self.read(move |tx| payments::provider_key_exists(tx, &provider, &key));
        if used.await? {
            return self.record_charged(payment, paid, None).await;
        }
        let charged = Payment {
            method: Some(paid.method.clone()),
            confirmed_event_id: Some(events::confirmed_event_id(payment)),
            ..payment.clone()
        };
        let deliver = charged.confirm_payable();
        let refused = match self.ask_tickets("call deliver", &charged, deliver).await {
            Ok(_) => return self.record_delivered(payment, paid).await,
            Err(refused) => refused,
        };
        let recorded = match self.record_charged(payment, paid, None).await? {
            StepOutcome::Continue(recorded) if recorded.step == DELIVER.1 => recorded,
            outcome => return Ok(outcome),
        };
        match refused {
            ClientError::NoAnswer { .. } => self.retry_later(&recorded, None).await,
            // The delivery pins once more. Only what is recorded can do that, by a new attempt.
            ClientError::Refused { code, .. } if code == NOT_PINNED => {
                Ok(StepOutcome::Continue(recorded))
            }
            ClientError::Refused { code, .. } => self.not_delivered(&recorded, code).await,
        }
    }

    /// Records the charge and its delivery.
    async fn record_delivered(
        &self,
        payment: &Payment,
        paid: ProviderPayment,
    ) -> DbResult<StepOutcome> {
        let (key, now) = (paid.provider_key().to_owned(), self.0.clock.now());
        let event_id = events::confirmed_event_id(payment);
        let mut charged = payment.clone();
        payments::charge_fill(&mut charged, &paid, Some(&key), Some(event_id));
        let charged = Payment {
            status: PaymentStatus::Confirmed,
            step: None,
            attempts: 0,
            wait_code: None,
            updated_at: now,
            ..charged
        };
        let entry_of = |id| EntryOf { id, payment_id: payment.id, refund_id: None, now };
        let [charge_id, deliver_id] = [(); 2].map(|()| self.0.ids.next_id());
        let delivered = DeliveredCharge {
            from: TransitionFrom::of(payment),
            entries: [
                (entry_of(charge_id), Posting::charge(payment.amount)),
                (entry_of(deliver_id), Posting::deliver(PurchaseAmounts::new(&charged))),
            ],
            stamp: EventMetadata {
                event_id,
                source: SOURCE,
                time: now,
                context: call_context(payment),
            },
            event: events::payment_confirmed(payment, &paid.method, now),
            charged,
        };
        match self.commit_in_set("charged and delivered", delivered).await {
            Ok((true, payment)) => {
                self.0.metrics.count_transition(&payment);
                Ok(StepOutcome::Continue(payment))
            }
            // Another process has moved the payment meanwhile, and may not know of the charge.
            Ok((false, current)) if !current.is_paid() => {
                self.record_charged(&current, paid, None).await
            }
            Ok((false, current)) => Ok(StepOutcome::Stop(current)),
            Err(StorageError::Constraint { .. }) => self.record_charged(payment, paid, None).await,
            Err(error) => Err(error),
        }
    }

    /// Records that the provider has charged, whatever has become of the payment meanwhile: a charge
    /// is never dropped. It leads to the delivery, or to a refund if it is unwanted.
    async fn record_charged(
        &self,
        payment: &Payment,
        paid: ProviderPayment,
        mut unwanted: Option<UnwantedCharge>,
    ) -> DbResult<StepOutcome> {
        let mut payment = payment.clone();
        let mut provider_key = Some(paid.provider_key().to_owned());
        for _ in 0..RECORD_ATTEMPTS_MAX {
            if payment.is_abandoned() {
                self.0.metrics.count_alarm("PAID_AFTER_ALL");
                let order = &payment.order_id;
                tracing::error!(order, "the payment was given up, and the provider has charged");
            }
            let recorded = match unwanted.clone() {
                None => self.commit_wanted(&payment, &paid, provider_key.clone()).await,
                Some(unwanted) => {
                    self.commit_unwanted(&payment, &paid, provider_key.clone(), unwanted).await
                }
            };
            match recorded {
                // Another process has moved the payment, or given it up, and may not know of the
                // charge.
                Ok(StepOutcome::Stop(current)) if !current.is_paid() => payment = current,
                // The payment was given up, another one replaced it, and now both are charged.
                Err(error) if unwanted.is_none() && is_paid_otherwise(&error) => {
                    let (origin, code) = (RefundOrigin::Duplicate, "ALREADY_PAID");
                    unwanted = Some(UnwantedCharge { origin, code });
                }
                // Another order of ours was paid by this charge. It is refunded by its order.
                Err(error) if error.violates("payments_key") => {
                    let (origin, code) = (RefundOrigin::Mismatch, "KEY_USED_TWICE");
                    unwanted.get_or_insert(UnwantedCharge { origin, code });
                    provider_key = None;
                }
                recorded => return recorded,
            }
        }
        // Other processes keep moving the payment. The reconciliation will find the charge.
        Ok(StepOutcome::Stop(payment))
    }

    /// The money is ours: the payment is announced, and the delivery is due.
    async fn commit_wanted(
        &self,
        payment: &Payment,
        paid: &ProviderPayment,
        provider_key: Option<String>,
    ) -> DbResult<StepOutcome> {
        let effect = self.charge_effect(payment, paid, provider_key);
        self.advance(payment, "charged", DELIVER, effect).await
    }

    /// Writes a charge that is ours: its result, its ledger entry and its event.
    fn charge_effect(
        &self,
        payment: &Payment,
        paid: &ProviderPayment,
        provider_key: Option<String>,
    ) -> impl Fn(&mut Tx<'_>, &mut Payment) -> DbResult<()> + Send + 'static + use<> {
        let (id, now, paid) = (payment.id, self.0.clock.now(), paid.clone());
        let (entry_id, event_id) = (self.0.ids.next_id(), events::confirmed_event_id(payment));
        let stamp =
            EventMetadata { event_id, source: SOURCE, time: now, context: call_context(payment) };
        let event = events::payment_confirmed(payment, &paid.method, now);
        let amount = payment.amount;
        move |tx, payment| {
            provider_calls::provider_calls_finish(tx, id, "done", None, now)?;
            payments::charge_set(tx, payment, &paid, provider_key.as_deref(), Some(event_id))?;
            let of = EntryOf { id: entry_id, payment_id: id, refund_id: None, now };
            ledger::entry_insert(tx, of, &Posting::charge(amount))?;
            outbox::append(tx, &stamp, &event)
        }
    }

    /// Nothing is delivered for the money, so it is refunded. The charge is not announced.
    async fn commit_unwanted(
        &self,
        payment: &Payment,
        paid: &ProviderPayment,
        provider_key: Option<String>,
        UnwantedCharge { origin, code }: UnwantedCharge,
    ) -> DbResult<StepOutcome> {
        self.0.metrics.count_alarm(code);
        let (order, amount) = (&payment.order_id, paid.amount);
        tracing::error!(order, %amount, code, "an unwanted charge is refunded");
        let (id, now, paid) = (payment.id, self.0.clock.now(), paid.clone());
        let [charge_entry_id, refund_entry_id, refund_id] = [(); 3].map(|()| self.0.ids.next_id());
        let refund = Refund::new(refund_id, payment, origin, amount, code.to_owned(), now);
        self.advance(payment, "charge unwanted", REFUND, move |tx, payment| {
            provider_calls::provider_calls_finish(tx, id, "unwanted", Some(code), now)?;
            payments::charge_set(tx, payment, &paid, provider_key.as_deref(), None)?;
            payments::failure_set(tx, payment, code)?;
            let of = EntryOf { id: charge_entry_id, payment_id: id, refund_id: None, now };
            ledger::entry_insert(tx, of, &Posting::charge(paid.amount))?;
            full_refund_insert(tx, &refund, refund_entry_id)
        })
        .await
    }
}
