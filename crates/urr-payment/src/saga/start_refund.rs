//! How a return of money begins: it is written down, with what it means for the books.

use urr_bus::HandlerContext;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, Tx};

use super::purchase_steps::delivery_insert;
use super::refund_steps::refunding_status;
use crate::domain::ledger::{Cancellation, EntryKind, Posting, PurchaseAmounts};
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep};
use crate::domain::refund::{
    Refund, RefundCause, RefundId, RefundStatus, refund_total, refundable_amount,
};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, CommandAction, TransitionFrom, TransitionTo};
use crate::store::refunds;

/// A charge for which nothing was given.
#[derive(Clone, Debug)]
pub(super) struct FullRefund {
    pub refund_id: Uuid,
    pub entry_id: Uuid,
    pub payment_id: PaymentId,
    pub cause: RefundCause,
    pub amount: Won,
    pub reason: String,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub now: Timestamp,
}

/// All of it is to go back. The caller moves the payment.
pub(super) fn full_refund_insert(
    tx: &mut Tx<'_>,
    full_refund: &FullRefund,
) -> Result<(), StorageError> {
    let refund = Refund {
        id: RefundId(full_refund.refund_id),
        payment_id: full_refund.payment_id,
        cause: full_refund.cause.clone(),
        amount: full_refund.amount,
        fee: Won::ZERO,
        reason: full_refund.reason.clone(),
        requested_by: None,
        requested_amount: None,
        status: RefundStatus::Requested,
        sent_at: None,
        key_number: 0,
        declines: 0,
        failure_code: None,
        correlation_id: full_refund.correlation_id,
        causation_id: full_refund.causation_id,
        created_at: full_refund.now,
        done_at: None,
    };
    refunds::refund_insert(tx, &refund)?;
    let (payment_id, now) = (full_refund.payment_id, full_refund.now);
    let of = EntryOf { id: full_refund.entry_id, payment_id, refund_id: Some(refund.id), now };
    ledger::entry_insert(tx, of, &Posting::reverse_charge(full_refund.amount))
}

/// What the ticket service says when a paid reservation is not its buyer's any more.
#[derive(Clone, Debug)]
pub(crate) struct CancelledPurchase {
    pub payment_id: PaymentId,
    pub reservation_id: Uuid,
    /// It was cancelled, or handed over.
    pub cause: RefundCause,
    /// What is to be the buyer's again, of all that was paid.
    pub refund_amount: Won,
    pub reason: String,
}

/// Why a return is not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RefundRejection {
    #[error("there is no such payment")]
    NotFound,
    #[error("the payment paid for something else")]
    AnotherTarget,
    #[error("the payment has taken no money")]
    NotPaid,
    /// The ticket is paid by somebody else now (M-8).
    #[error("what was paid for was handed over, and the money has gone back")]
    Transferred,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Begins the refund of what is not its buyer's any more. The answer is whether it is new.
pub(crate) fn start_cancelled_refund(
    tx: &mut Tx<'_>,
    undone: &CancelledPurchase,
    context: &HandlerContext,
) -> Result<bool, RefundRejection> {
    let payment = payments::payment_lock(tx, undone.payment_id)?;
    let payment = payment.ok_or(RefundRejection::NotFound)?;
    if payment.reservation() != Some(undone.reservation_id) {
        return Err(RefundRejection::AnotherTarget);
    }
    if !is_paid(&payment) {
        return Err(RefundRejection::NotPaid);
    }
    let event_id = context.call.causation_id.expect("an event names itself as the cause");
    let now = context.now;
    if !payments::command_insert(
        tx,
        &payment.order_id,
        CommandAction::Refund,
        &event_id.to_string(),
        now,
    )? {
        return Ok(false);
    }
    let known = refunds::refund_list(tx, payment.id)?;
    if undone.cause != RefundCause::Transferred && is_transferred(&known) {
        return Err(RefundRejection::Transferred);
    }
    let asked = RefundIntent {
        refund_id: context.derived_id("refund"),
        cancel_entry_id: context.derived_id("cancel"),
        deliver_entry_id: context.derived_id("deliver"),
        cause: undone.cause.clone(),
        amount: undone.refund_amount,
        is_requested_by_tickets: undone.cause == RefundCause::Cancelled,
        reason: undone.reason.clone(),
        requested_by: None,
        correlation_id: context.call.correlation_id,
        causation_id: context.call.causation_id,
        now,
    };
    Ok(start_refund(tx, &payment, &known, &asked)?)
}

pub(super) fn is_paid(payment: &Payment) -> bool {
    matches!(
        payment.status,
        PaymentStatus::Confirmed | PaymentStatus::Refunding | PaymentStatus::Refunded
    )
}

pub(super) fn is_transferred(refunds: &[Refund]) -> bool {
    refunds.iter().any(|refund| refund.cause == RefundCause::Transferred)
}

/// A sale that is to be undone.
#[derive(Clone, Debug)]
pub(super) struct RefundIntent {
    pub refund_id: Uuid,
    pub cancel_entry_id: Uuid,
    pub deliver_entry_id: Uuid,
    pub cause: RefundCause,
    /// What is to be the buyer's again, of all that was paid.
    pub amount: Won,
    /// Whether the ticket service has asked, or is to hear of it for another reason.
    pub is_requested_by_tickets: bool,
    pub reason: String,
    pub requested_by: Option<Uuid>,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub now: Timestamp,
}

/// Begins to give back what is to go back of a sale. False: that was done before. The caller has
/// locked the payment and read what is known of its returns.
pub(super) fn start_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    known: &[Refund],
    asked: &RefundIntent,
) -> Result<bool, StorageError> {
    let left = remaining_after_refunds(payment, known);
    let amount = refundable_amount(payment, asked.amount, known);
    let refund = Refund {
        id: RefundId(asked.refund_id),
        payment_id: payment.id,
        cause: asked.cause.clone(),
        amount,
        fee: left.minus(amount).expect("it is not more than what is left"),
        reason: asked.reason.clone(),
        requested_by: asked.requested_by,
        requested_amount: asked.is_requested_by_tickets.then_some(asked.amount),
        status: RefundStatus::Requested,
        sent_at: None,
        key_number: 0,
        declines: 0,
        failure_code: None,
        correlation_id: asked.correlation_id,
        causation_id: asked.causation_id,
        created_at: asked.now,
        done_at: None,
    };
    if !refunds::refund_insert(tx, &refund)? {
        return Ok(false);
    }
    post_cancellation(tx, payment, &refund, left, asked)?;
    schedule_refund(tx, payment, asked.now)?;
    Ok(true)
}

/// What is undone was delivered, whether we have heard of it or not. If all of its money is on its
/// way back already, there is no sale to start_refund.
fn post_cancellation(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
    left: Won,
    asked: &RefundIntent,
) -> Result<(), StorageError> {
    let now = asked.now;
    if ledger::entry_exists(tx, payment.id, EntryKind::Return)? {
        return Ok(());
    }
    if !ledger::entry_exists(tx, payment.id, EntryKind::Deliver)? {
        delivery_insert(tx, payment, asked.deliver_entry_id, now)?;
    }
    let posting = Posting::cancel(Cancellation {
        sale: PurchaseAmounts::of(payment),
        given_before: payment.charged.minus(left).expect("no more is left than was taken"),
        refund: refund.amount,
    });
    let of = EntryOf {
        id: asked.cancel_entry_id,
        payment_id: payment.id,
        refund_id: Some(refund.id),
        now,
    };
    ledger::entry_insert(tx, of, &posting)
}

/// What was neither given back nor is to be.
pub(super) fn remaining_after_refunds(payment: &Payment, refunds: &[Refund]) -> Won {
    payment.charged.minus(refund_total(refunds)).expect("no more is refund_total than was taken")
}

/// Somebody will see to it at once. Whoever is at it already goes on with it.
pub(super) fn schedule_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    now: Timestamp,
) -> Result<(), StorageError> {
    let status = refunding_status(&refunds::refund_list(tx, payment.id)?);
    let step = Some(SagaStep::Refund);
    if (payment.status, payment.step) == (status, step) {
        return payments::payment_attempt_by(tx, payment.id, now);
    }
    let to = TransitionTo { status, step, claimed_until: None, attempt_at: now, now };
    let is_moved = payments::payment_transition(tx, TransitionFrom::of(payment), to)?;
    assert!(is_moved, "the payment is locked");
    Ok(())
}
