//! How a return of money begins: it is written down, with what it means for the books.

use urr_bus::HandlerContext;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, Tx};

use super::purchase::deliver_late;
use super::refund::returning;
use crate::domain::payment::{Payment, PaymentId, Status, Step};
use crate::domain::postings::{Cancelled, Kind, Posting, Sale};
use crate::domain::refund::{Cause, Refund, RefundId, RefundStatus, amount_back, promised};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, Action, From, To};
use crate::store::refunds;

/// A charge for which nothing was given.
#[derive(Clone, Debug)]
pub(super) struct Giving {
    pub refund_id: Uuid,
    pub entry_id: Uuid,
    pub payment_id: PaymentId,
    pub cause: Cause,
    pub amount: Won,
    pub reason: String,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub now: Timestamp,
}

/// All of it is to go back. The caller moves the payment.
pub(super) fn give_back(tx: &mut Tx<'_>, giving: &Giving) -> Result<(), StorageError> {
    let refund = Refund {
        id: RefundId(giving.refund_id),
        payment_id: giving.payment_id,
        cause: giving.cause.clone(),
        amount: giving.amount,
        fee: Won::ZERO,
        reason: giving.reason.clone(),
        requested_by: None,
        office_amount: None,
        status: RefundStatus::Requested,
        sent_at: None,
        attempt: 0,
        declines: 0,
        failure_code: None,
        correlation_id: giving.correlation_id,
        causation_id: giving.causation_id,
        created_at: giving.now,
        done_at: None,
    };
    refunds::refund_insert(tx, &refund)?;
    let (payment_id, now) = (giving.payment_id, giving.now);
    let of = EntryOf { id: giving.entry_id, payment_id, refund_id: Some(refund.id), now };
    ledger::entry_insert(tx, of, &Posting::give_back(giving.amount))
}

/// What the ticket office says when a paid reservation is not its buyer's any more.
#[derive(Clone, Debug)]
pub(crate) struct Undone {
    pub payment_id: PaymentId,
    pub reservation_id: Uuid,
    /// It was cancelled, or handed over.
    pub cause: Cause,
    /// What is to be the buyer's again, of all that was paid.
    pub refund_amount: Won,
    pub reason: String,
}

/// Why a return is not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotRefundable {
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
pub(crate) fn undone_request(
    tx: &mut Tx<'_>,
    undone: &Undone,
    context: &HandlerContext,
) -> Result<bool, NotRefundable> {
    let payment = payments::payment_lock(tx, undone.payment_id)?;
    let payment = payment.ok_or(NotRefundable::NotFound)?;
    if payment.reservation() != Some(undone.reservation_id) {
        return Err(NotRefundable::AnotherTarget);
    }
    if !is_paid(&payment) {
        return Err(NotRefundable::NotPaid);
    }
    let event_id = context.call.causation_id.expect("an event names itself as the cause");
    let now = context.now;
    if !payments::command_insert(tx, &payment.order_id, Action::Refund, &event_id.to_string(), now)?
    {
        return Ok(false);
    }
    let known = refunds::refund_list(tx, payment.id)?;
    if undone.cause != Cause::Transferred && is_transferred(&known) {
        return Err(NotRefundable::Transferred);
    }
    let asked = Asked {
        refund_id: context.derived_id("refund"),
        cancel_entry_id: context.derived_id("cancel"),
        deliver_entry_id: context.derived_id("deliver"),
        cause: undone.cause.clone(),
        amount: undone.refund_amount,
        is_the_offices: undone.cause == Cause::Cancelled,
        reason: undone.reason.clone(),
        requested_by: None,
        correlation_id: context.call.correlation_id,
        causation_id: context.call.causation_id,
        now,
    };
    Ok(undo(tx, &payment, &known, &asked)?)
}

pub(super) fn is_paid(payment: &Payment) -> bool {
    matches!(payment.status, Status::Confirmed | Status::Refunding | Status::Refunded)
}

pub(super) fn is_transferred(refunds: &[Refund]) -> bool {
    refunds.iter().any(|refund| refund.cause == Cause::Transferred)
}

/// A sale that is to be undone.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub refund_id: Uuid,
    pub cancel_entry_id: Uuid,
    pub deliver_entry_id: Uuid,
    pub cause: Cause,
    /// What is to be the buyer's again, of all that was paid.
    pub amount: Won,
    /// Whether the ticket office has asked, or is to hear of it for another reason.
    pub is_the_offices: bool,
    pub reason: String,
    pub requested_by: Option<Uuid>,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub now: Timestamp,
}

/// Begins to give back what is to go back of a sale. False: that was done before. The caller has
/// locked the payment and read what is known of its returns.
pub(super) fn undo(
    tx: &mut Tx<'_>,
    payment: &Payment,
    known: &[Refund],
    asked: &Asked,
) -> Result<bool, StorageError> {
    let left = left_of(payment, known);
    let amount = amount_back(payment, asked.amount, known);
    let refund = Refund {
        id: RefundId(asked.refund_id),
        payment_id: payment.id,
        cause: asked.cause.clone(),
        amount,
        fee: left.minus(amount).expect("it is not more than what is left"),
        reason: asked.reason.clone(),
        requested_by: asked.requested_by,
        office_amount: asked.is_the_offices.then_some(asked.amount),
        status: RefundStatus::Requested,
        sent_at: None,
        attempt: 0,
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
    begin_refund(tx, payment, asked.now)?;
    Ok(true)
}

/// What is undone was delivered, whether we have heard of it or not. If all of its money is on its
/// way back already, there is no sale to undo.
fn post_cancellation(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
    left: Won,
    asked: &Asked,
) -> Result<(), StorageError> {
    let now = asked.now;
    if ledger::entry_exists(tx, payment.id, Kind::Return)? {
        return Ok(());
    }
    if !ledger::entry_exists(tx, payment.id, Kind::Deliver)? {
        deliver_late(tx, payment, asked.deliver_entry_id, now)?;
    }
    let posting = Posting::cancel(Cancelled {
        sale: Sale::of(payment),
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
pub(super) fn left_of(payment: &Payment, refunds: &[Refund]) -> Won {
    payment.charged.minus(promised(refunds)).expect("no more is promised than was taken")
}

/// Somebody will see to it at once. Whoever is at it already goes on with it.
pub(super) fn begin_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    now: Timestamp,
) -> Result<(), StorageError> {
    let status = returning(&refunds::refund_list(tx, payment.id)?);
    let step = Some(Step::Refund);
    if (payment.status, payment.step) == (status, step) {
        return payments::payment_hurry(tx, payment.id, now);
    }
    let to = To { status, step, claimed_until: None, look_at: now, now };
    let is_moved = payments::payment_move(tx, From::of(payment), to)?;
    assert!(is_moved, "the payment is locked");
    Ok(())
}
