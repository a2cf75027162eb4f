//! The steps of a refund: the provider refunds, then the ticket service gets a report.

use urr_contracts::clients::ClientError;
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx};

use super::runner::StepOutcome;
use crate::domain::ledger::Posting;
use crate::domain::payment::{Payment, PaymentStatus, SagaStep};
use crate::domain::refund::{
    Refund, RefundBatch, RefundDecision, decide_queried_refund, purchase_stands,
    status_after_refunds,
};
use crate::provider::{ProviderOutcome, RefundRequest};
use crate::store::ledger::{self, EntryOf};
use crate::store::provider_calls::{self, ProviderCall};
use crate::store::transitions::{self, TransitionFrom, TransitionTo};
use crate::store::{payments, refunds};
use crate::ticket_calls::parse_trace;
use crate::{PROVIDER_GONE, PaymentService, SOURCE, events};

/// The code of a refund that only the box office can pay.
const PAY_AT_BOX_OFFICE: &str = "PAY_AT_BOX_OFFICE";

impl PaymentService {
    pub(super) async fn step_refund(&self, payment: &Payment) -> DbResult<StepOutcome> {
        let id = payment.id;
        // Both in one transaction: only the sum of that moment tells which refunds are done.
        let read = self
            .read(move |tx| Ok((payments::payment_get(tx, id)?, refunds::refund_list(tx, id)?)));
        let (current, all) = read.await?;
        if TransitionFrom::of(&current) != TransitionFrom::of(payment) {
            return Ok(StepOutcome::Stop(current));
        }
        let Some(batch) = RefundBatch::choose(&current, &all) else {
            // Another process has made the last refund.
            return self.retry_later(&current, None).await;
        };
        match batch.is_unclear() {
            _ if batch.amount() == Won::ZERO => self.refunded(&current, batch).await,
            // The staff have the money. Until somebody says that it was handed over, it is owed.
            _ if current.is_box_office() => {
                self.declined(&current, batch, PAY_AT_BOX_OFFICE.to_owned()).await
            }
            true => self.query_refund(&current, batch).await,
            false => self.send_refund(&current, batch, false).await,
        }
    }

    async fn query_refund(&self, payment: &Payment, batch: RefundBatch) -> DbResult<StepOutcome> {
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let find = provider.find(&payment.order_id, payment.payment_key.as_deref());
        let found = self.call("call find refund", find).await;
        let quiet = self.0.timeouts.not_found_trusted_after;
        let needs_new_key = batch.needs_new_key(quiet, self.0.clock.now());
        match decide_queried_refund(payment, batch.amount(), found) {
            RefundDecision::Refunded => self.refunded(payment, batch).await,
            RefundDecision::NotYet => self.send_refund(payment, batch, needs_new_key).await,
            RefundDecision::Wait { code } => self.retry_later(payment, Some(&code)).await,
        }
    }

    /// Asks the provider to refund. That it will be asked is committed first.
    async fn send_refund(
        &self,
        payment: &Payment,
        batch: RefundBatch,
        needs_new_key: bool,
    ) -> DbResult<StepOutcome> {
        let Some(provider) = self.provider_of(payment) else {
            return self.retry_later(payment, Some(PROVIDER_GONE)).await;
        };
        let (id, chosen, now) = (payment.id, batch.clone(), self.0.clock.now());
        let call = ProviderCall {
            id: self.0.ids.next_id(),
            payment_id: id,
            refund_id: Some(batch.all()[0].id),
            action: "cancel",
        };
        let sent = self.commit("refund sent", move |tx| {
            let payment =
                payments::payment_lock(tx, id)?.expect("a payment with refunds is never deleted");
            // Meanwhile a refund may have been closed or added.
            let current = RefundBatch::choose(&payment, &refunds::refund_list(tx, id)?);
            if current.as_ref() != Some(&chosen) {
                return Ok(None);
            }
            for refund in chosen.all() {
                if needs_new_key {
                    refunds::refund_renew_key(tx, refund.id)?;
                }
                refunds::refund_mark_sent(tx, refund.id, now)?;
            }
            provider_calls::provider_call_insert(tx, &call, now)?;
            let sent = RefundBatch::choose(&payment, &refunds::refund_list(tx, id)?);
            let sent = sent.expect("the batch was sent just now");
            Ok::<_, StorageError>(Some((refund_request(&payment, &sent), sent)))
        });
        let Some((request, batch)) = sent.await? else {
            return self.retry_later(payment, None).await;
        };
        match self.call("call cancel", provider.cancel(&request)).await {
            ProviderOutcome::Done(_) => self.refunded(payment, batch).await,
            ProviderOutcome::Unsent { code } | ProviderOutcome::Unknown { code } => {
                let unclear = code.clone();
                self.retry_later_with(payment, "refund unclear", Some(&code), move |tx, _| {
                    let mut all = batch.all().iter();
                    all.try_for_each(|refund| refunds::refund_mark_unclear(tx, refund.id, &unclear))
                })
                .await
            }
            ProviderOutcome::Declined { code } => self.declined(payment, batch, code).await,
        }
    }

    /// The provider declines the refund. The buyer is still owed it, so we keep trying, and an
    /// operator has to look at it.
    async fn declined(
        &self,
        payment: &Payment,
        batch: RefundBatch,
        code: String,
    ) -> DbResult<StepOutcome> {
        self.0.metrics.count_alarm("REFUND_DECLINED");
        let (order, amount) = (&payment.order_id, batch.amount());
        tracing::error!(order, %amount, code, "the provider declines a refund");
        let (id, now, declined) = (payment.id, self.0.clock.now(), code.clone());
        self.retry_later_with(payment, "refund declined", Some(&code), move |tx, _| {
            provider_calls::provider_calls_finish(tx, id, "declined", Some(&declined), now)?;
            let mut all = batch.all().iter();
            all.try_for_each(|refund| refunds::refund_mark_declined(tx, refund.id, &declined))
        })
        .await
    }

    /// The provider has refunded: ledger, event and status in one transaction.
    async fn refunded(&self, payment: &Payment, batch: RefundBatch) -> DbResult<StepOutcome> {
        let (id, now) = (payment.id, self.0.clock.now());
        let stamp = |refund| (self.0.ids.next_id(), self.refund_stamp(refund));
        let stamps: Vec<(Uuid, EventMetadata)> = batch.all().iter().map(stamp).collect();
        let to = self.claimed_transition(PaymentStatus::Refunding, Some(SagaStep::Refund));
        let refunded = self.commit("refunded", move |tx| {
            let payment =
                payments::payment_lock(tx, id)?.expect("a payment with refunds is never deleted");
            provider_calls::provider_calls_finish(tx, id, "done", None, now)?;
            let mut is_new = false;
            for (refund, (entry_id, stamp)) in batch.all().iter().zip(&stamps) {
                is_new |= record_refund(tx, &payment, refund, (*entry_id, stamp), now)?;
            }
            if is_new {
                advance_after_refund(tx, &payment, to)?;
            }
            Ok::<_, StorageError>((is_new, payments::payment_get(tx, id)?))
        });
        let (is_new, payment) = refunded.await?;
        if !is_new {
            return Ok(StepOutcome::Stop(payment));
        }
        self.0.metrics.count_transition(&payment);
        Ok(StepOutcome::Continue(payment))
    }

    /// The envelope of the event that a refund is done.
    pub(super) fn refund_stamp(&self, refund: &Refund) -> EventMetadata {
        let context = CallContext {
            correlation_id: refund.correlation_id,
            causation_id: refund.causation_id,
            trace: parse_trace(refund.traceparent.as_deref(), refund.correlation_id),
        };
        let (event_id, time) = (self.0.ids.next_id(), self.0.clock.now());
        EventMetadata { event_id, source: SOURCE, time, context }
    }

    pub(super) async fn step_report(&self, payment: &Payment) -> DbResult<StepOutcome> {
        let id = payment.id;
        for refund in &self.read(move |tx| refunds::refund_list_unreported(tx, id)).await? {
            let reported = match refund.requested_amount {
                Some(requested) => {
                    let report = payment.mark_payable_refunded(requested, refund.amount);
                    self.ask_tickets("call refunded", payment, report).await
                }
                None if refund.origin.needs_unpin() => {
                    let unpin = payment.unpin_payable();
                    self.ask_tickets("call unpin refunded", payment, unpin).await
                }
                None => continue,
            };
            match reported {
                Ok(_) => {}
                Err(ClientError::NoAnswer { .. }) => return self.retry_later(payment, None).await,
                Err(ClientError::Refused { code, .. }) => {
                    let order = &payment.order_id;
                    tracing::warn!(
                        order,
                        code,
                        "the ticket service refuses the report of a refund"
                    );
                }
            }
        }
        let now = self.0.clock.now();
        self.advance(payment, "reported", (payment.status, None), move |tx, _| {
            refunds::refunds_mark_reported(tx, id, now)
        })
        .await
    }
}

/// Records that a refund was paid, with its event and its ledger entry. Returns false if that was
/// recorded before.
pub(super) fn record_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
    (entry_id, stamp): (Uuid, &EventMetadata),
    now: Timestamp,
) -> DbResult<bool> {
    if !refunds::refund_mark_done(tx, refund.id, now)? {
        return Ok(false);
    }
    append_refund_event(tx, refund, stamp, now)?;
    payments::refunded_add(tx, payment.id, refund.amount)?;
    if refund.amount != Won::ZERO {
        let of = EntryOf { now, ..EntryOf::refund(entry_id, refund) };
        let posting = Posting::give_back(payment.keeping_account(), refund.amount);
        ledger::entry_insert(tx, of, &posting)?;
    }
    Ok(true)
}

/// Announces a refund, before it is added to the payment. A charge that was not announced because
/// it was unwanted has an event of its own, so that sums of sales and refunds leave it out.
pub(super) fn append_refund_event(
    tx: &mut Tx<'_>,
    refund: &Refund,
    stamp: &EventMetadata,
    now: Timestamp,
) -> DbResult<()> {
    let payment = payments::payment_get(tx, refund.payment_id)?;
    match payment.confirmed_event_id {
        Some(_) => outbox::append(tx, stamp, &events::payment_refunded(&payment, refund, now)),
        None => outbox::append(tx, stamp, &events::charge_reversed(&payment, refund, now)),
    }
}

/// Moves a payment to what is left to do after one of its refunds has ended.
pub(super) fn advance_after_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    to: TransitionTo,
) -> DbResult<()> {
    let all = refunds::refund_list(tx, payment.id)?;
    let (status, step) = match all.iter().any(|refund| refund.status.is_open()) {
        true => (refunding_status(&all), SagaStep::Refund),
        false => (status_after_refunds(payment, &all), SagaStep::Report),
    };
    let to = TransitionTo { status, step: Some(step), ..to };
    transitions::payment_transition(tx, TransitionFrom::of(payment), to)?;
    Ok(())
}

/// The status of a payment with open refunds. While the buyer still owns what was paid, the payment
/// stays confirmed, so that nobody else can pay for it (M-11).
pub(super) fn refunding_status(refunds: &[Refund]) -> PaymentStatus {
    match purchase_stands(refunds) {
        true => PaymentStatus::Confirmed,
        false => PaymentStatus::Refunding,
    }
}

fn refund_request(payment: &Payment, batch: &RefundBatch) -> RefundRequest {
    RefundRequest {
        order_id: payment.order_id.clone(),
        payment_key: payment.payment_key.clone().expect("a charged payment has a key"),
        amount: batch.amount(),
        remaining: payment.remaining(),
        reason: batch.reason_text(payment.cancel_reason.as_deref()),
        idempotency_key: batch.key(),
    }
}
