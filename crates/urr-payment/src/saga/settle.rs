//! What is now known of a charge is written down: the money is ours, or goes back, or was never
//! taken.

use urr_storage::outbox::{self, Stamp};
use urr_storage::{StorageError, Tx};

use super::drive::Next;
use super::purchase::charge_of;
use super::request::give_back;
use crate::domain::charge::{METHOD_NOT_SUPPORTED, Verdict};
use crate::domain::payment::{Payment, Status, Step};
use crate::domain::postings::Posting;
use crate::domain::refund::Cause;
use crate::events::PaymentConfirmed;
use crate::office;
use crate::provider::{Charge, Outcome, ProviderPayment};
use crate::store::attempts;
use crate::store::ledger::{self, EntryOf};
use crate::store::payments;
use crate::{PROVIDER_GONE, Payments, SOURCE};

/// So often money that was taken is written down although others move the payment.
const TAKEN_UP_MAX: u32 = 5;

/// Money that was taken.
enum Taken {
    AsOrdered(ProviderPayment),
    Unwanted { paid: ProviderPayment, cause: Cause, code: &'static str },
}

/// Why nothing is given for money that was taken.
struct Unwanted<'a> {
    cause: Cause,
    code: &'static str,
    /// What the provider calls the charge; none if another order is called so.
    key: Option<&'a str>,
}

/// Whether something else was paid for the same.
pub(super) fn is_paid_otherwise(error: &StorageError) -> bool {
    error.violates("payments_one_charge") || error.violates("payments_one_charge_of_term")
}

impl Payments {
    /// Writes down what is now known of the charge.
    pub(super) async fn settle(
        &self,
        payment: &Payment,
        verdict: Verdict,
    ) -> Result<Next, StorageError> {
        let (id, now) = (payment.id, self.0.clock.now());
        match verdict {
            Verdict::Paid(paid) => self.settle_taken(payment, Taken::AsOrdered(paid)).await,
            Verdict::Mismatch { paid, code } => {
                let taken = Taken::Unwanted { paid, cause: Cause::Mismatch, code };
                self.settle_taken(payment, taken).await
            }
            Verdict::Failed { code } => {
                let failed = (Status::Failed, Some(Step::Unpin));
                self.go(payment, "charge failed", failed, move |tx| {
                    attempts::attempts_finish(tx, id, "declined", Some(&code), now)?;
                    payments::failure_set(tx, id, &code)
                })
                .await
            }
            Verdict::Wait { code } if payment.status == Status::Approving => {
                self.sound(payment, &code);
                self.doubt(payment, move |tx| {
                    attempts::attempts_finish(tx, id, "unknown", Some(&code), now)?;
                    payments::failure_set(tx, id, &code)
                })
                .await
            }
            Verdict::Wait { code } => self.wait(payment, Some(&code)).await,
            Verdict::CallOff => self.call_off(payment).await,
            Verdict::ChargeAgain => unreachable!("only a look leads to another charge"),
        }
    }

    /// The buyer was given an account to pay into, and the seats do not wait so long: it is closed.
    /// Until that is sure, nobody knows whether something was paid.
    async fn call_off(&self, payment: &Payment) -> Result<Next, StorageError> {
        let Some(provider) = self.provider_of(payment) else {
            return self.wait(payment, Some(PROVIDER_GONE)).await;
        };
        let charge = Charge { idempotency_key: payment.call_off_key(), ..charge_of(payment) };
        let outcome = self.0.faults.around("call off", provider.call_off(&charge)).await;
        let (id, now) = (payment.id, self.0.clock.now());
        let note = move |tx: &mut Tx<'_>| {
            attempts::attempts_finish(tx, id, "declined", Some(METHOD_NOT_SUPPORTED), now)?;
            payments::failure_set(tx, id, METHOD_NOT_SUPPORTED)
        };
        match outcome {
            Outcome::Done(_) => {
                let failed = (Status::Failed, Some(Step::Unpin));
                self.go(payment, "called off", failed, note).await
            }
            _ if payment.status == Status::Approving => self.doubt(payment, note).await,
            _ => self.wait_with(payment, "wait", Some(METHOD_NOT_SUPPORTED), note).await,
        }
    }

    /// Money was taken: whatever has become of the payment meanwhile, this is never dropped.
    async fn settle_taken(&self, payment: &Payment, taken: Taken) -> Result<Next, StorageError> {
        let mut payment = payment.clone();
        for _ in 0..TAKEN_UP_MAX {
            if payment.is_given_up() {
                self.0.figures.count_alarm("PAID_AFTER_ALL");
                let order = &payment.order_id;
                tracing::error!(order, "it was given up, and the provider has taken the money");
            }
            let settled = match &taken {
                Taken::AsOrdered(paid) => self.settle_paid(&payment, paid.clone()).await?,
                Taken::Unwanted { paid, cause, code } => {
                    let why =
                        Unwanted { cause: cause.clone(), code, key: Some(paid.provider_key()) };
                    self.settle_unwanted(&payment, paid.clone(), why).await?
                }
            };
            match settled {
                // Somebody else, who could not know of it, has given it up.
                Next::Stop(current) if current.is_given_up() => payment = current,
                settled => return Ok(settled),
            }
        }
        // It is being moved by others again and again. Comparing the books will find it.
        Ok(Next::Stop(payment))
    }

    /// The money is ours: from here on everybody is told, and the ticket is due.
    pub(super) async fn settle_paid(
        &self,
        payment: &Payment,
        paid: ProviderPayment,
    ) -> Result<Next, StorageError> {
        let (id, now) = (payment.id, self.0.clock.now());
        let (entry_id, event_id) = (self.0.ids.next_id(), self.0.ids.next_id());
        let context = office::context(payment);
        let stamp = Stamp { event_id, source: SOURCE, time: now, context };
        let fact = PaymentConfirmed::of(payment, &paid.method, now);
        let (amount, known) = (payment.amount, paid.clone());
        let deliver = (Status::Confirmed, Some(Step::Deliver));
        let settled = self.go(payment, "charged", deliver, move |tx| {
            attempts::attempts_finish(tx, id, "done", None, now)?;
            payments::charge_note(tx, id, &known, Some(known.provider_key()), Some(event_id))?;
            let of = EntryOf { id: entry_id, payment_id: id, refund_id: None, now };
            ledger::entry_insert(tx, of, &Posting::charge(amount))?;
            outbox::append(tx, &stamp, &fact)
        });
        let why = match settled.await {
            // It was given up, something else was paid in its place, and now it was paid too.
            Err(error) if is_paid_otherwise(&error) => {
                let key = Some(paid.provider_key());
                Unwanted { cause: Cause::Duplicate, code: "ALREADY_PAID", key }
            }
            // What the provider calls it is what another order of ours was paid by.
            Err(error) if error.violates("payments_key") => {
                Unwanted { cause: Cause::Mismatch, code: "KEY_USED_TWICE", key: None }
            }
            settled => return settled,
        };
        self.settle_unwanted(payment, paid.clone(), why).await
    }

    /// Money that was taken and that nothing is given for goes back at once. Nobody is told that it
    /// had come.
    async fn settle_unwanted(
        &self,
        payment: &Payment,
        paid: ProviderPayment,
        why: Unwanted<'_>,
    ) -> Result<Next, StorageError> {
        let Unwanted { cause, code, key } = why;
        self.0.figures.count_alarm(code);
        let (order, amount) = (&payment.order_id, paid.amount);
        tracing::error!(order, %amount, code, "money that nobody asked for: it goes back");
        let giving = self.giving(payment, cause, paid.amount, code);
        let (id, entry_id, now) = (payment.id, self.0.ids.next_id(), self.0.clock.now());
        let refunding = (Status::Refunding, Some(Step::Refund));
        let key = key.map(str::to_owned);
        let note = move |key: Option<String>| {
            let (paid, giving) = (paid.clone(), giving.clone());
            self.go(payment, "charge unwanted", refunding, move |tx| {
                attempts::attempts_finish(tx, id, "unwanted", Some(code), now)?;
                payments::charge_note(tx, id, &paid, key.as_deref(), None)?;
                payments::failure_set(tx, id, code)?;
                let of = EntryOf { id: entry_id, payment_id: id, refund_id: None, now };
                ledger::entry_insert(tx, of, &Posting::charge(paid.amount))?;
                give_back(tx, &giving)
            })
        };
        match note(key).await {
            // It goes back all the same: by its order, and by the key that it came with.
            Err(error) if error.violates("payments_key") => note(None).await,
            noted => noted,
        }
    }
}
