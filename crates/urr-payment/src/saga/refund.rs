//! The steps of a return of money: the provider gives it back, then the ticket office is told.

use urr_kernel::{CallContext, TraceContext, Won};
use urr_storage::outbox::{self, Stamp};
use urr_storage::{StorageError, Tx};

use super::drive::Next;
use crate::domain::payment::{Payment, Status, Step};
use crate::domain::postings::Posting;
use crate::domain::refund::{
    Cause, Refund, RefundStatus, ReturnVerdict, judge_return, status_after,
};
use crate::events::PaymentRefunded;
use crate::office::OfficeError;
use crate::provider::{Outcome, Return};
use crate::store::attempts::{self, Attempt};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, From};
use crate::store::refunds;
use crate::{PROVIDER_GONE, Payments, SOURCE};

impl Payments {
    pub(super) async fn take_refund(&self, payment: &Payment) -> Result<Next, StorageError> {
        let id = payment.id;
        let next: Option<Refund> = self.0.db.read(move |tx| refunds::refund_next(tx, id)).await?;
        let Some(refund) = next else {
            // Somebody else has done the last one.
            return self.wait(payment, None).await;
        };
        match refund.status {
            RefundStatus::Requested if refund.amount == Won::ZERO => {
                self.returned(payment, refund).await
            }
            RefundStatus::Requested => self.send_return(payment, refund).await,
            RefundStatus::Unknown | RefundStatus::Done => self.query_return(payment, refund).await,
        }
    }

    async fn query_return(&self, payment: &Payment, refund: Refund) -> Result<Next, StorageError> {
        let Some(provider) = self.provider_of(payment) else {
            return self.wait(payment, Some(PROVIDER_GONE)).await;
        };
        let find = provider.find(&payment.order_id, payment.payment_key.as_deref());
        let found = self.0.faults.around("call find return", find).await;
        match judge_return(payment, refund.amount, found) {
            ReturnVerdict::Returned => self.returned(payment, refund).await,
            ReturnVerdict::NotYet => self.send_return(payment, refund).await,
            ReturnVerdict::Wait { code } => self.wait(payment, Some(&code)).await,
        }
    }

    /// Asks the provider to give money back: first that it will be asked is committed.
    async fn send_return(&self, payment: &Payment, refund: Refund) -> Result<Next, StorageError> {
        let Some(provider) = self.provider_of(payment) else {
            return self.wait(payment, Some(PROVIDER_GONE)).await;
        };
        let (refund_id, now) = (refund.id, self.0.clock.now());
        let attempt = Attempt {
            id: self.0.ids.next_id(),
            payment_id: payment.id,
            refund_id: Some(refund_id),
            action: "cancel",
        };
        let sent = self.0.db.write(move |tx| {
            refunds::refund_sent(tx, refund_id, now)?;
            attempts::attempt_insert(tx, &attempt, now)
        });
        let sent: Result<(), StorageError> = self.0.faults.around("return sent", sent).await;
        sent?;
        let what = return_of(payment, &refund);
        match self.0.faults.around("call cancel", provider.cancel(&what)).await {
            Outcome::Done(_) => self.returned(payment, refund).await,
            Outcome::Unknown { code } => self.wait(payment, Some(&code)).await,
            Outcome::Declined { code } => self.declined(payment, refund, code).await,
        }
    }

    /// The provider will not give it back now. It is owed all the same: somebody has to look, and
    /// we keep trying.
    async fn declined(
        &self,
        payment: &Payment,
        refund: Refund,
        code: String,
    ) -> Result<Next, StorageError> {
        self.0.figures.count_alarm("REFUND_DECLINED");
        let (order, amount) = (&payment.order_id, refund.amount);
        tracing::error!(order, %amount, code, "the provider does not give money back");
        let (payment_id, now, told) = (payment.id, self.0.clock.now(), code.clone());
        let noted = self.0.db.write(move |tx| {
            attempts::attempts_finish(tx, payment_id, "declined", Some(&told), now)?;
            refunds::refund_decline(tx, refund.id, &told)
        });
        let noted: Result<(), StorageError> = self.0.faults.around("return declined", noted).await;
        noted?;
        self.wait(payment, Some(&code)).await
    }

    /// The money is back: books, news and state in one transaction.
    async fn returned(&self, payment: &Payment, refund: Refund) -> Result<Next, StorageError> {
        let (entry_id, event_id) = (self.0.ids.next_id(), self.0.ids.next_id());
        let (id, now) = (payment.id, self.0.clock.now());
        let context = CallContext {
            correlation_id: refund.correlation_id,
            causation_id: refund.causation_id,
            trace: TraceContext::root(refund.correlation_id),
        };
        let stamp = Stamp { event_id, source: SOURCE, time: now, context };
        let to = self.claimed(Status::Refunding, Some(Step::Refund));
        let returned = self.0.db.write(move |tx| {
            let payment = payments::payment_lock(tx, id)?.expect("payments are never deleted");
            let is_new = refunds::refund_done(tx, refund.id, now)?;
            if is_new {
                let of = EntryOf { id: entry_id, payment_id: id, refund_id: Some(refund.id), now };
                note_return(tx, &payment, &refund, of, &stamp)?;
                let (status, step) = state_after(tx, &payment, &refund)?;
                payments::payment_move(tx, From::of(&payment), super::drive::to(to, status, step))?;
            }
            let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
            Ok::<_, StorageError>(if is_new { Next::Go(payment) } else { Next::Stop(payment) })
        });
        let next = self.0.faults.around("returned", returned).await?;
        if let Next::Go(payment) = &next {
            self.0.figures.count_moved(payment);
        }
        Ok(next)
    }

    pub(super) async fn take_tell(&self, payment: &Payment) -> Result<Next, StorageError> {
        let id = payment.id;
        let untold: Vec<Refund> = self.0.db.read(move |tx| refunds::refund_untold(tx, id)).await?;
        for refund in &untold {
            let told = match refund.office_amount {
                Some(amount) => {
                    let call = self.0.office.refunded(payment, amount);
                    self.0.faults.around("call refunded", call).await
                }
                None if refund.cause.leaves_a_hold() => {
                    let call = self.0.office.unpin(payment);
                    self.0.faults.around("call unpin returned", call).await
                }
                None => continue,
            };
            match told {
                Ok(_) => {}
                Err(OfficeError::Silent(_)) => return self.wait(payment, None).await,
                Err(OfficeError::Refused { code, .. }) => {
                    let order = &payment.order_id;
                    tracing::warn!(order, code, "the ticket office does not want to know");
                }
            }
        }
        let now = self.0.clock.now();
        self.go(payment, "told", (payment.status, None), move |tx| {
            refunds::refunds_told(tx, id, now)
        })
        .await
    }
}

fn note_return(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
    of: EntryOf,
    stamp: &Stamp,
) -> Result<(), StorageError> {
    attempts::attempts_finish(tx, payment.id, "done", None, of.now)?;
    payments::refunded_add(tx, payment.id, refund.amount)?;
    if refund.amount != Won::ZERO {
        ledger::entry_insert(tx, of, &Posting::refund(refund.amount))?;
    }
    // Of a charge that nobody was told of, nobody is told that it is undone.
    if payment.confirmed_event_id.is_some() {
        outbox::append(tx, stamp, &PaymentRefunded::of(payment, refund, of.now))?;
    }
    Ok(())
}

/// What is left to do when this return is done.
fn state_after(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
) -> Result<(Status, Option<Step>), StorageError> {
    let all = refunds::refund_list(tx, payment.id)?;
    if all.iter().any(|other| other.status != RefundStatus::Done) {
        return Ok((Status::Refunding, Some(Step::Refund)));
    }
    let refunded = payment.refunded.plus(refund.amount).expect("no more is returned than taken");
    let payment = Payment { refunded, ..payment.clone() };
    let causes: Vec<Cause> = all.into_iter().map(|refund| refund.cause).collect();
    Ok((status_after(&payment, &causes), Some(Step::Tell)))
}

fn return_of(payment: &Payment, refund: &Refund) -> Return {
    Return {
        order_id: payment.order_id.clone(),
        payment_key: payment.payment_key.clone().expect("it was charged by a key"),
        amount: refund.amount,
        remaining: payment.remaining(),
        reason: refund.reason.clone(),
        idempotency_key: refund.key(),
    }
}
