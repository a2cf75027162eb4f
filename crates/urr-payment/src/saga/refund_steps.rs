//! The steps of a return of money: the provider gives it back, then the ticket service is told.

use urr_kernel::{CallContext, Timestamp, TraceContext, Uuid, Won};
use urr_storage::outbox::{self, Stamp};
use urr_storage::{StorageError, Tx};

use super::runner::StepOutcome;
use crate::domain::ledger::Posting;
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep};
use crate::domain::refund::{
    Refund, RefundBatch, RefundDecision, decide_queried_refund, purchase_stands,
    status_after_refunds,
};
use crate::events::PaymentRefunded;
use crate::provider::{ProviderOutcome, RefundRequest};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, TransitionFrom, TransitionTo};
use crate::store::provider_calls::{self, ProviderCall};
use crate::store::refunds;
use crate::ticket_client::TicketClientError;
use crate::{PROVIDER_GONE, PaymentService, SOURCE};

impl PaymentService {
    pub(super) async fn step_refund(&self, payment: &Payment) -> Result<StepOutcome, StorageError> {
        let id = payment.id;
        // At one moment: only what was given back by then tells which batch are done.
        let read = self.0.db.read(move |tx| {
            let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
            let refunds = refunds::refund_list(tx, id)?;
            Ok::<_, StorageError>((payment, refunds))
        });
        let (current, all) = read.await?;
        if TransitionFrom::of(&current) != TransitionFrom::of(payment) {
            return Ok(StepOutcome::Stop(current));
        }
        let Some(batch) = RefundBatch::choose(&current, &all) else {
            // Somebody else has done the last one.
            return self.retry_later(&current, None).await;
        };
        match batch.is_unclear() {
            _ if batch.amount() == Won::ZERO => self.refunded(&current, batch).await,
            true => self.query_refund(&current, batch).await,
            false => self.send_refund(&current, batch, RefundKey::Same).await,
        }
    }

    async fn query_refund(
        &self,
        payment: &Payment,
        batch: RefundBatch,
    ) -> Result<StepOutcome, StorageError> {
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let find = provider.find(&payment.order_id, payment.payment_key.as_deref());
        let found = self.call("call find return", find).await;
        let quiet = self.0.timeouts.not_found_trusted_after;
        let key = match batch.needs_new_key(quiet, self.0.clock.now()) {
            true => RefundKey::New,
            false => RefundKey::Same,
        };
        match decide_queried_refund(payment, batch.amount(), found) {
            RefundDecision::Refunded => self.refunded(payment, batch).await,
            RefundDecision::NotYet => self.send_refund(payment, batch, key).await,
            RefundDecision::Wait { code } => self.retry_later(payment, Some(&code)).await,
        }
    }

    /// Asks the provider to give money back: first that it will be asked is committed.
    async fn send_refund(
        &self,
        payment: &Payment,
        batch: RefundBatch,
        key: RefundKey,
    ) -> Result<StepOutcome, StorageError> {
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let (id, chosen, now) = (payment.id, batch.clone(), self.0.clock.now());
        let attempt = ProviderCall {
            id: self.0.ids.next_id(),
            payment_id: id,
            refund_id: Some(batch.all()[0].id),
            action: "cancel",
        };
        let Some((what, batch)) = self
            .commit("return sent", move |tx| {
                let payment = payments::payment_lock(tx, id)?.expect("payments are never deleted");
                // Meanwhile somebody may have closed one of them, or asked for more.
                let current = RefundBatch::choose(&payment, &refunds::refund_list(tx, id)?);
                if current.as_ref() != Some(&chosen) {
                    return Ok(None);
                }
                refunds_mark_sent(tx, &chosen, key, now)?;
                provider_calls::provider_call_insert(tx, &attempt, now)?;
                let sent = RefundBatch::choose(&payment, &refunds::refund_list(tx, id)?);
                let sent = sent.expect("it was sent just now");
                Ok::<_, StorageError>(Some((refund_request(&payment, &sent), sent)))
            })
            .await?
        else {
            return self.retry_later(payment, None).await;
        };
        match self.call("call cancel", provider.cancel(&what)).await {
            ProviderOutcome::Done(_) => self.refunded(payment, batch).await,
            ProviderOutcome::Unsent { code } | ProviderOutcome::Unknown { code } => {
                let told = code.clone();
                self.retry_later_with(payment, "return unclear", Some(&code), move |tx| {
                    let mut all = batch.all().iter();
                    all.try_for_each(|refund| refunds::refund_mark_unclear(tx, refund.id, &told))
                })
                .await
            }
            ProviderOutcome::Declined { code } => self.declined(payment, batch, code).await,
        }
    }

    /// The provider will not give it back now. It is owed all the same: somebody has to look, and
    /// we keep trying.
    async fn declined(
        &self,
        payment: &Payment,
        batch: RefundBatch,
        code: String,
    ) -> Result<StepOutcome, StorageError> {
        self.0.metrics.count_alarm("REFUND_DECLINED");
        let (order, amount) = (&payment.order_id, batch.amount());
        tracing::error!(order, %amount, code, "the provider does not give money back");
        let (id, now, told) = (payment.id, self.0.clock.now(), code.clone());
        self.retry_later_with(payment, "return declined", Some(&code), move |tx| {
            provider_calls::provider_calls_finish(tx, id, "declined", Some(&told), now)?;
            let mut all = batch.all().iter();
            all.try_for_each(|refund| refunds::refund_mark_declined(tx, refund.id, &told))
        })
        .await
    }

    /// The money is back: books, news and state in one transaction.
    async fn refunded(
        &self,
        payment: &Payment,
        batch: RefundBatch,
    ) -> Result<StepOutcome, StorageError> {
        let (id, now) = (payment.id, self.0.clock.now());
        let stamps: Vec<(Uuid, Stamp)> = batch
            .all()
            .iter()
            .map(|refund| (self.0.ids.next_id(), self.refund_stamp(refund)))
            .collect();
        let to = self.claimed_transition(PaymentStatus::Refunding, Some(SagaStep::Refund));
        let next = self
            .commit("refunded", move |tx| {
                let payment = payments::payment_lock(tx, id)?.expect("payments are never deleted");
                provider_calls::provider_calls_finish(tx, id, "done", None, now)?;
                let mut is_new = false;
                for (refund, (entry_id, stamp)) in batch.all().iter().zip(&stamps) {
                    if refunds::refund_mark_done(tx, refund.id, now)? {
                        is_new = true;
                        let refund_id = Some(refund.id);
                        let of = EntryOf { id: *entry_id, payment_id: id, refund_id, now };
                        refund_record(tx, refund, of, stamp)?;
                    }
                }
                if is_new {
                    advance_after_refund(tx, &payment, to)?;
                }
                let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
                Ok::<_, StorageError>(if is_new {
                    StepOutcome::Continue(payment)
                } else {
                    StepOutcome::Stop(payment)
                })
            })
            .await?;
        if let StepOutcome::Continue(payment) = &next {
            self.0.metrics.count_transition(payment);
        }
        Ok(next)
    }

    /// The envelope of the news that a return is done.
    pub(super) fn refund_stamp(&self, refund: &Refund) -> Stamp {
        let context = CallContext {
            correlation_id: refund.correlation_id,
            causation_id: refund.causation_id,
            trace: TraceContext::root(refund.correlation_id),
        };
        let (event_id, time) = (self.0.ids.next_id(), self.0.clock.now());
        Stamp { event_id, source: SOURCE, time, context }
    }

    pub(super) async fn step_report(&self, payment: &Payment) -> Result<StepOutcome, StorageError> {
        let id = payment.id;
        let unreported: Vec<Refund> =
            self.0.db.read(move |tx| refunds::refund_list_unreported(tx, id)).await?;
        for refund in &unreported {
            let told = match refund.requested_amount {
                Some(asked) => {
                    let call = self.0.tickets.refunded(payment, asked, refund.amount);
                    self.call("call refunded", call).await
                }
                None if refund.cause.needs_unpin() => {
                    let call = self.0.tickets.unpin(payment);
                    self.call("call unpin refunded", call).await
                }
                None => continue,
            };
            match told {
                Ok(_) => {}
                Err(TicketClientError::NoAnswer(_)) => {
                    return self.retry_later(payment, None).await;
                }
                Err(TicketClientError::Refused { code, .. }) => {
                    let order = &payment.order_id;
                    tracing::warn!(order, code, "the ticket service does not want to know");
                }
            }
        }
        let now = self.0.clock.now();
        self.advance(payment, "told", (payment.status, None), move |tx| {
            refunds::refunds_mark_reported(tx, id, now)
        })
        .await
    }
}

/// By which key the provider is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefundKey {
    Same,
    New,
}

fn refunds_mark_sent(
    tx: &mut Tx<'_>,
    batch: &RefundBatch,
    key: RefundKey,
    now: Timestamp,
) -> Result<(), StorageError> {
    for refund in batch.all() {
        if key == RefundKey::New {
            refunds::refund_renew_key(tx, refund.id)?;
        }
        refunds::refund_mark_sent(tx, refund.id, now)?;
    }
    Ok(())
}

fn refund_record(
    tx: &mut Tx<'_>,
    refund: &Refund,
    of: EntryOf,
    stamp: &Stamp,
) -> Result<(), StorageError> {
    append_refund_event(tx, refund, stamp, of.now)?;
    payments::refunded_add(tx, refund.payment_id, refund.amount)?;
    if refund.amount != Won::ZERO {
        ledger::entry_insert(tx, of, &Posting::refund(refund.amount))?;
    }
    Ok(())
}

/// Tells that the money is back, before that is written down. Of a charge that nobody was told of,
/// nobody is told that it is undone.
pub(super) fn append_refund_event(
    tx: &mut Tx<'_>,
    refund: &Refund,
    stamp: &Stamp,
    now: Timestamp,
) -> Result<(), StorageError> {
    let payment = payments::payment_find(tx, refund.payment_id)?;
    let payment = payment.expect("payments are never deleted");
    match payment.confirmed_event_id {
        Some(_) => outbox::append(tx, stamp, &PaymentRefunded::of(&payment, refund, now)),
        None => Ok(()),
    }
}

/// Moves a payment to what is left to do now that something of it has come to its end.
pub(super) fn advance_after_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    to: TransitionTo,
) -> Result<(), StorageError> {
    let (status, step) = state_after_refund(tx, payment.id)?;
    payments::payment_transition(
        tx,
        TransitionFrom::of(payment),
        TransitionTo { status, step, ..to },
    )?;
    Ok(())
}

fn state_after_refund(
    tx: &mut Tx<'_>,
    id: PaymentId,
) -> Result<(PaymentStatus, Option<SagaStep>), StorageError> {
    let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
    let all = refunds::refund_list(tx, id)?;
    match all.iter().any(|refund| refund.status.is_open()) {
        true => Ok((refunding_status(&all), Some(SagaStep::Refund))),
        false => Ok((status_after_refunds(&payment, &all), Some(SagaStep::Report))),
    }
}

/// The state of a payment of which something is on its way back. While what was paid for stays the
/// buyer's, so does the payment: nobody else may pay for it (M-11).
pub(super) fn refunding_status(refunds: &[Refund]) -> PaymentStatus {
    match purchase_stands(refunds) {
        true => PaymentStatus::Confirmed,
        false => PaymentStatus::Refunding,
    }
}

fn refund_request(payment: &Payment, batch: &RefundBatch) -> RefundRequest {
    RefundRequest {
        order_id: payment.order_id.clone(),
        payment_key: payment.payment_key.clone().expect("it was charged by a key"),
        amount: batch.amount(),
        remaining: payment.remaining(),
        reason: batch.reason_text(payment.cancel_reason.as_deref()),
        idempotency_key: batch.key(),
    }
}
