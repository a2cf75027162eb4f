//! The steps of a purchase: pin the hold, charge, deliver; or undo.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, Tx};

use super::drive::Next;
use super::request::{Giving, give_back};
use crate::domain::charge::{Verdict, judge_charge, judge_charge_again, judge_found};
use crate::domain::payment::{CURRENCY, Payment, Status, Step};
use crate::domain::postings::{Posting, Sale};
use crate::domain::refund::Cause;
use crate::office::OfficeError;
use crate::provider::{Charge, ProviderPayment, ProviderState};
use crate::store::attempts::{self, Attempt};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments;
use crate::{PROVIDER_GONE, Payments};

/// So often a silent ticket office is asked to pin a hold. The buyer is waiting.
const PINS_MAX: u32 = 5;
const OFFICE_SILENT: &str = "TICKET_OFFICE_SILENT";

impl Payments {
    pub(super) async fn take_pin(&self, payment: &Payment) -> Result<Next, StorageError> {
        let failed = (Status::Failed, Some(Step::Unpin));
        let id = payment.id;
        match self.0.faults.around("call pin", self.0.office.pin(payment)).await {
            Ok(_) => {
                let (attempt, now) = (self.attempt_to_charge(payment), self.0.clock.now());
                let charge = (Status::Approving, Some(Step::Charge));
                self.go(payment, "hold pinned", charge, move |tx| {
                    payments::charge_sent(tx, id, now)?;
                    attempts::attempt_insert(tx, &attempt, now)
                })
                .await
            }
            Err(OfficeError::Refused { code, .. }) => {
                self.go(payment, "pin refused", failed, move |tx| {
                    payments::failure_set(tx, id, &code)
                })
                .await
            }
            Err(OfficeError::Silent(_)) if payment.looks >= PINS_MAX => {
                self.go(payment, "pin given up", failed, move |tx| {
                    payments::failure_set(tx, id, OFFICE_SILENT)
                })
                .await
            }
            Err(OfficeError::Silent(_)) => self.wait(payment, None).await,
        }
    }

    /// Asks the provider to take the money. That it will be asked has been committed.
    pub(super) async fn take_charge(&self, payment: &Payment) -> Result<Next, StorageError> {
        if payment.amount == Won::ZERO {
            let paid = nothing_to_pay(payment, self.0.clock.now());
            return self.settle_paid(payment, paid).await;
        }
        let Some(provider) = self.provider_of(payment) else {
            return self.wait(payment, Some(PROVIDER_GONE)).await;
        };
        let charge = charge_of(payment);
        let outcome = self.0.faults.around("call confirm", provider.confirm(&charge)).await;
        self.settle(payment, judge_charge(payment, outcome)).await
    }

    /// Asks the provider what it has done, and if that was nothing, for the same charge once more.
    pub(super) async fn take_query(&self, payment: &Payment) -> Result<Next, StorageError> {
        if payment.amount == Won::ZERO {
            let paid = nothing_to_pay(payment, self.0.clock.now());
            return self.settle_paid(payment, paid).await;
        }
        let Some(provider) = self.provider_of(payment) else {
            return self.wait(payment, Some(PROVIDER_GONE)).await;
        };
        let find = provider.find(&payment.order_id, payment.payment_key.as_deref());
        let found = self.0.faults.around("call find", find).await;
        let verdict = match judge_found(payment, found, &self.0.patience, self.0.clock.now()) {
            // It was given up and stays so: only if it was paid after all is there more to do.
            Verdict::ChargeAgain | Verdict::Failed { .. } if payment.status == Status::Failed => {
                return self.go(payment, "still failed", (Status::Failed, None), |_| Ok(())).await;
            }
            Verdict::ChargeAgain => {
                self.note_charge(payment).await?;
                let charge = charge_of(payment);
                let call = provider.confirm(&charge);
                judge_charge_again(payment, self.0.faults.around("call confirm again", call).await)
            }
            verdict => verdict,
        };
        self.settle(payment, verdict).await
    }

    async fn note_charge(&self, payment: &Payment) -> Result<(), StorageError> {
        let (id, now) = (payment.id, self.0.clock.now());
        let attempt = self.attempt_to_charge(payment);
        let noted = self.0.db.write(move |tx| {
            payments::charge_sent(tx, id, now)?;
            attempts::attempt_insert(tx, &attempt, now)
        });
        self.0.faults.around("charge again", noted).await
    }

    fn attempt_to_charge(&self, payment: &Payment) -> Attempt {
        let (id, payment_id) = (self.0.ids.next_id(), payment.id);
        Attempt { id, payment_id, refund_id: None, action: "confirm" }
    }

    pub(super) async fn take_deliver(&self, payment: &Payment) -> Result<Next, StorageError> {
        let office = &self.0.office;
        let mut answer = self.0.faults.around("call deliver", office.confirm(payment)).await;
        if is_refused(&answer, "NOT_PINNED") {
            // The money came late: if the hold is still there, it is the buyer's.
            answer = match self.0.faults.around("call pin late", office.pin(payment)).await {
                Ok(_) => self.0.faults.around("call deliver late", office.confirm(payment)).await,
                refused => refused,
            };
        }
        match answer {
            Ok(_) => self.delivered(payment).await,
            Err(OfficeError::Silent(_)) => self.wait(payment, None).await,
            Err(OfficeError::Refused { code, .. }) => self.undelivered(payment, code).await,
        }
    }

    async fn delivered(&self, payment: &Payment) -> Result<Next, StorageError> {
        let (entry, posting) = (self.delivery_entry(payment), delivery(payment));
        self.go(payment, "delivered", (Status::Confirmed, None), move |tx| {
            ledger::entry_insert(tx, entry, &posting)
        })
        .await
    }

    fn delivery_entry(&self, payment: &Payment) -> EntryOf {
        let (id, now) = (self.0.ids.next_id(), self.0.clock.now());
        EntryOf { id, payment_id: payment.id, refund_id: None, now }
    }

    /// The ticket office will not give the ticket. Perhaps it has: then the reservation was
    /// cancelled since, and the refund comes by itself.
    async fn undelivered(&self, payment: &Payment, code: String) -> Result<Next, StorageError> {
        let state = self.0.faults.around("call state", self.0.office.state(payment)).await;
        match state {
            Ok(state) if state.payment_id == Some(payment.id.0) => {
                return self.delivered(payment).await;
            }
            Err(OfficeError::Silent(_)) => return self.wait(payment, None).await,
            Ok(_) | Err(OfficeError::Refused { .. }) => {}
        }
        let cause = match code.as_str() {
            "RESERVATION_CONFIRMED" => Cause::Duplicate,
            _ => Cause::NotConfirmable,
        };
        let (order, cause_name) = (&payment.order_id, cause.name());
        tracing::warn!(order, code, cause = cause_name, "paid, and not to be had: it goes back");
        let giving = self.giving(payment, cause, payment.charged, &code);
        let id = payment.id;
        let refunding = (Status::Refunding, Some(Step::Refund));
        self.go(payment, "not deliverable", refunding, move |tx| {
            payments::failure_set(tx, id, &code)?;
            give_back(tx, &giving)
        })
        .await
    }

    pub(super) async fn take_unpin(&self, payment: &Payment) -> Result<Next, StorageError> {
        match self.0.faults.around("call unpin", self.0.office.unpin(payment)).await {
            Err(OfficeError::Silent(_)) => self.wait(payment, None).await,
            // What it does not have, or has given away, it need not let go.
            Ok(_) | Err(OfficeError::Refused { .. }) => {
                self.go(payment, "hold let go", (Status::Failed, None), |_| Ok(())).await
            }
        }
    }

    /// All of a charge for which nothing was given goes back.
    pub(super) fn giving(
        &self,
        payment: &Payment,
        cause: Cause,
        amount: Won,
        reason: &str,
    ) -> Giving {
        Giving {
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
    Posting::deliver(Sale::of(payment))
}

/// A delivery that was heard of before it was written down.
pub(super) fn deliver_late(
    tx: &mut Tx<'_>,
    payment: &Payment,
    entry_id: Uuid,
    now: Timestamp,
) -> Result<(), StorageError> {
    let of = EntryOf { id: entry_id, payment_id: payment.id, refund_id: None, now };
    ledger::entry_insert(tx, of, &delivery(payment))
}

pub(super) fn charge_of(payment: &Payment) -> Charge {
    Charge {
        order_id: payment.order_id.clone(),
        payment_key: payment.payment_key.clone().expect("it was approved with a key"),
        amount: payment.amount,
        idempotency_key: payment.charge_key(),
    }
}

fn nothing_to_pay(payment: &Payment, now: Timestamp) -> ProviderPayment {
    ProviderPayment {
        order_id: payment.order_id.clone(),
        payment_key: payment.order_id.clone(),
        transaction_id: None,
        amount: Won::ZERO,
        currency: CURRENCY.to_owned(),
        state: ProviderState::Paid,
        returned: Won::ZERO,
        method: "free".to_owned(),
        approved_at: Some(now),
        receipt_url: None,
    }
}

fn is_refused<T>(answer: &Result<T, OfficeError>, expected: &str) -> bool {
    matches!(answer, Err(OfficeError::Refused { code, .. }) if code == expected)
}
