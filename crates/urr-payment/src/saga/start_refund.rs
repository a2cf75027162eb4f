//! Starts refunds: writes the refund and its ledger entry, and makes it the payment's next step.

use urr_bus::HandlerContext;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{DbResult, StorageError, Tx};

use super::refund_steps::refunding_status;
use crate::domain::ledger::{Cancellation, EntryKind, LedgerAccount, Posting, PurchaseAmounts};
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep};
use crate::domain::refund::{
    PartAmounts, Refund, RefundOrigin, part_amounts, purchase_stands, refund_total,
    refundable_amount, standing_charge, standing_remainder,
};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, CommandAction};
use crate::store::refunds;
use crate::store::transitions::{self, TransitionFrom, TransitionTo};

/// Writes the refund of a whole charge for which nothing was delivered. The caller moves the
/// payment.
pub(super) fn full_refund_insert(tx: &mut Tx<'_>, refund: &Refund, entry_id: Uuid) -> DbResult<()> {
    refunds::refund_insert(tx, refund)?;
    let of = EntryOf::refund(entry_id, refund);
    ledger::entry_insert(tx, of, &Posting::reverse_charge(refund.amount))
}

/// A paid reservation that its buyer no longer owns, as the ticket service announced it.
#[derive(Clone, Debug)]
pub(crate) struct CancelledPurchase {
    pub payment_id: PaymentId,
    pub reservation_id: Uuid,
    /// It was cancelled, partly cancelled or transferred.
    pub origin: RefundOrigin,
    /// What the buyer gets back of what they had.
    pub refund_amount: Won,
    /// The price of what was cancelled, if some tickets stay.
    pub part_price: Option<Won>,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RefundRejection {
    #[error("there is no such payment")]
    NotFound,
    #[error("the payment paid for something else")]
    AnotherPayable,
    #[error("the payment has charged nothing")]
    NotPaid,
    /// What it paid for was delivered, and its charge is about to be recorded.
    #[error("the charge is not recorded yet")]
    NotRecorded,
    /// Another payment pays for the ticket now (M-8).
    #[error("the ticket was transferred, and its seller has been refunded")]
    Transferred,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Starts the refund of a cancelled purchase. Returns whether it is new.
pub(crate) fn start_cancelled_refund(
    tx: &mut Tx<'_>,
    cancelled: &CancelledPurchase,
    context: &HandlerContext,
) -> Result<bool, RefundRejection> {
    let payment = payments::payment_lock(tx, cancelled.payment_id)?;
    let payment = payment.ok_or(RefundRejection::NotFound)?;
    if payment.reservation() != Some(cancelled.reservation_id) {
        return Err(RefundRejection::AnotherPayable);
    }
    match payment.status {
        _ if payment.is_paid() => {}
        PaymentStatus::Approving | PaymentStatus::Unknown => {
            return Err(RefundRejection::NotRecorded);
        }
        _ => return Err(RefundRejection::NotPaid),
    }
    let event_id = context.call.causation_id.expect("an event is the cause of what follows");
    let (now, key) = (context.now, event_id.to_string());
    if !payments::command_insert(tx, &payment.order_id, CommandAction::Refund, &key, now)? {
        return Ok(false);
    }
    let refunds = refunds::refund_list(tx, payment.id)?;
    // The transfer may have been announced before the tickets that were cancelled earlier.
    if cancelled.origin == RefundOrigin::Cancelled && is_transferred(&refunds) {
        return Err(RefundRejection::Transferred);
    }
    let CancelledPurchase { origin, refund_amount, part_price, reason, .. } = cancelled.clone();
    let is_requested = origin == RefundOrigin::Cancelled;
    let id = context.derived_id("refund");
    let refund = Refund {
        requested_amount: is_requested.then_some(refund_amount),
        correlation_id: context.call.correlation_id,
        traceparent: Some(context.call.trace.to_string()),
        causation_id: context.call.causation_id,
        ..Refund::new(id, &payment, origin, refund_amount, reason, now)
    };
    let entries = CancelEntryIds {
        cancel: context.derived_id("cancel"),
        deliver: context.derived_id("deliver"),
    };
    Ok(match part_price {
        None => start_refund(tx, &payment, &refunds, refund, entries)?,
        Some(price) => start_part_refund(tx, &payment, &refunds, (refund, price), entries)?,
    })
}

/// Starts the refund of tickets that were cancelled while others stay. Returns false if the refund
/// exists. The caller has locked the payment and read its refunds.
fn start_part_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refunds: &[Refund],
    (wanted, price): (Refund, Won),
    entries: CancelEntryIds,
) -> DbResult<bool> {
    let now = wanted.created_at;
    let PartAmounts { refund: amount, fee } = part_amounts(payment, price, wanted.amount, refunds);
    let refund = Refund { amount, fee, ..wanted };
    if !refunds::refund_insert(tx, &refund)? {
        return Ok(false);
    }
    if !ledger::entry_exists(tx, payment.id, EntryKind::Return)? {
        record_delivery(tx, payment, entries.deliver, now)?;
        let kind = payment.payable.kind;
        let posting = match purchase_stands(refunds) {
            true => Posting::cancel_part(kind, amount, fee),
            // The price of the tickets was kept as a fee when the rest was handed over.
            false => {
                let kept = ledger::balance_of(tx, payment.id, LedgerAccount::CancellationFees)?;
                Posting::waive_fee(kind, amount, Won::new(-kept.amount()))
            }
        };
        ledger::entry_insert(tx, EntryOf::refund(entries.cancel, &refund), &posting)?;
    }
    schedule_refund(tx, payment, now)?;
    Ok(true)
}

/// A cancelled purchase was delivered, even if our delivery step does not know it yet.
fn record_delivery(
    tx: &mut Tx<'_>,
    payment: &Payment,
    entry_id: Uuid,
    now: Timestamp,
) -> DbResult<()> {
    if ledger::entry_exists(tx, payment.id, EntryKind::Deliver)? {
        return Ok(());
    }
    let of = EntryOf { id: entry_id, payment_id: payment.id, refund_id: None, now };
    ledger::entry_insert(tx, of, &Posting::deliver(PurchaseAmounts::new(payment)))
}

pub(super) fn is_transferred(refunds: &[Refund]) -> bool {
    refunds.iter().any(|refund| refund.origin == RefundOrigin::Transferred)
}

/// The ids of the ledger entries that a cancellation makes.
pub(super) struct CancelEntryIds {
    pub cancel: Uuid,
    /// Used if the delivery is not in the ledger yet.
    pub deliver: Uuid,
}

/// Starts the refund of a purchase. `wanted.amount` is what the buyer gets of what they still had;
/// earlier gifts count towards it. Returns false if the refund exists. The caller has locked the
/// payment and read its refunds.
pub(super) fn start_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refunds: &[Refund],
    wanted: Refund,
    entries: CancelEntryIds,
) -> DbResult<bool> {
    let (left, now) = (standing_remainder(payment, refunds), wanted.created_at);
    let amount = refundable_amount(payment, wanted.amount, refunds);
    let fee = left.minus(amount).expect("no more is refunded than is left");
    let refund = Refund { amount, fee, ..wanted };
    if !refunds::refund_insert(tx, &refund)? {
        return Ok(false);
    }
    // If the whole charge is being refunded already, there is no sale to cancel.
    if !ledger::entry_exists(tx, payment.id, EntryKind::Return)? {
        record_delivery(tx, payment, entries.deliver, now)?;
        let standing = standing_charge(payment, refunds);
        let purchase = PurchaseAmounts { amount: standing, ..PurchaseAmounts::new(payment) };
        let refunded_before = standing.minus(left).expect("no more is left than stands");
        let posting = Posting::cancel(Cancellation { purchase, refunded_before, refund: amount });
        ledger::entry_insert(tx, EntryOf::refund(entries.cancel, &refund), &posting)?;
    }
    schedule_refund(tx, payment, now)?;
    Ok(true)
}

/// What can still be given: of a purchase that stands the price of what stands, of a cancelled one
/// what was kept.
pub(super) fn remaining_after_refunds(payment: &Payment, refunds: &[Refund]) -> Won {
    match purchase_stands(refunds) {
        true => standing_remainder(payment, refunds),
        false => {
            payment.charged.minus(refund_total(refunds)).expect("refunds do not exceed the charge")
        }
    }
}

/// Makes the refund the next step, at once. A process that already works on the payment's refunds
/// takes the new one too.
pub(super) fn schedule_refund(tx: &mut Tx<'_>, payment: &Payment, now: Timestamp) -> DbResult<()> {
    let status = refunding_status(&refunds::refund_list(tx, payment.id)?);
    let step = Some(SagaStep::Refund);
    if (payment.status, payment.step) == (status, step) {
        return transitions::payment_attempt_by(tx, payment.id, now);
    }
    let to = TransitionTo { status, step, claimed_until: None, attempt_at: now, now };
    let moved = transitions::payment_transition(tx, TransitionFrom::of(payment), to)?;
    assert!(moved.is_some(), "the payment is locked");
    Ok(())
}
