//! How a return of money begins: it is written down, with what it means for the books.

use urr_bus::HandlerContext;
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_storage::{StorageError, Tx};

use super::purchase::deliver_late;
use crate::Payments;
use crate::domain::payment::{Payment, PaymentId, Status, Step, TargetKind};
use crate::domain::postings::{Cancelled, Kind, Posting};
use crate::domain::refund::{Cause, Refund, RefundId, RefundStatus};
use crate::office::{Canceller, OfficeError};
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
        declines: 0,
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

/// What the ticket office says when it has cancelled a paid reservation.
#[derive(Clone, Debug)]
pub(crate) struct CancelledReservation {
    pub payment_id: PaymentId,
    pub reservation_id: Uuid,
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
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Begins the refund of a cancelled reservation. The answer is whether it is new.
pub(crate) fn cancelled_request(
    tx: &mut Tx<'_>,
    cancelled: &CancelledReservation,
    context: &HandlerContext,
) -> Result<bool, NotRefundable> {
    let payment = payments::payment_lock(tx, cancelled.payment_id)?;
    let payment = payment.ok_or(NotRefundable::NotFound)?;
    if payment.target.kind != TargetKind::Reservation
        || payment.target.id != cancelled.reservation_id
    {
        return Err(NotRefundable::AnotherTarget);
    }
    if !matches!(payment.status, Status::Confirmed | Status::Refunding | Status::Refunded) {
        return Err(NotRefundable::NotPaid);
    }
    let event_id = context.call.causation_id.expect("an event names itself as the cause");
    let now = context.now;
    if !payments::command_insert(tx, &payment.order_id, Action::Refund, &event_id.to_string(), now)?
    {
        return Ok(false);
    }
    let on_the_way = on_the_way(tx, payment.id)?;
    let left = payment.remaining().minus(on_the_way).expect("no more is returned than taken");
    let amount = cancelled.refund_amount.min(left);
    let refund = Refund {
        id: RefundId(context.derived_id("refund")),
        payment_id: payment.id,
        cause: Cause::Cancelled,
        amount,
        fee: left.minus(amount).expect("it is not more than what is left"),
        reason: cancelled.reason.clone(),
        requested_by: None,
        office_amount: Some(cancelled.refund_amount),
        status: RefundStatus::Requested,
        sent_at: None,
        declines: 0,
        correlation_id: context.call.correlation_id,
        causation_id: context.call.causation_id,
        created_at: now,
        done_at: None,
    };
    if !refunds::refund_insert(tx, &refund)? {
        return Ok(false);
    }
    post_cancellation(tx, &payment, &refund, left, context)?;
    begin_refund(tx, &payment, now)?;
    Ok(true)
}

/// A reservation that is cancelled was delivered, whether we have heard of it or not. If all of its
/// money is on its way back already, there is no sale to undo.
fn post_cancellation(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
    left: Won,
    context: &HandlerContext,
) -> Result<(), StorageError> {
    let now = context.now;
    if ledger::entry_exists(tx, payment.id, Kind::Return)? {
        return Ok(());
    }
    if !ledger::entry_exists(tx, payment.id, Kind::Deliver)? {
        deliver_late(tx, payment, context.derived_id("deliver"), now)?;
    }
    let posting = Posting::cancel(Cancelled {
        amount: payment.charged,
        booking_fee: payment.booking_fee,
        given_before: payment.charged.minus(left).expect("no more is left than was taken"),
        refund: refund.amount,
    });
    let of = EntryOf {
        id: context.derived_id("cancel"),
        payment_id: payment.id,
        refund_id: Some(refund.id),
        now,
    };
    ledger::entry_insert(tx, of, &posting)
}

/// What is to go back and has not.
fn on_the_way(tx: &mut Tx<'_>, id: PaymentId) -> Result<Won, StorageError> {
    let refunds = refunds::refund_list(tx, id)?;
    let open = refunds.iter().filter(|refund| refund.status != RefundStatus::Done);
    let sum: i64 = open.map(|refund| refund.amount.amount()).sum();
    Ok(Won::new(sum))
}

/// Somebody will see to it at once. Whoever is at it already goes on with it.
fn begin_refund(tx: &mut Tx<'_>, payment: &Payment, now: Timestamp) -> Result<(), StorageError> {
    let (status, step) = (Status::Refunding, Some(Step::Refund));
    if (payment.status, payment.step) == (status, step) {
        return payments::payment_hurry(tx, payment.id, now);
    }
    let to = To { status, step, claimed_until: None, look_at: now, now };
    let is_moved = payments::payment_move(tx, From::of(payment), to)?;
    assert!(is_moved, "the payment is locked");
    Ok(())
}

/// An administrator gives money back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminRefund {
    pub admin_id: Uuid,
    /// None: everything that the policy allows, and the reservation is cancelled.
    pub amount: Option<Won>,
    pub reason: String,
    /// The same key is the same refund.
    pub key: String,
}

/// Why no money is given back.
#[derive(Debug, thiserror::Error)]
pub enum RefundError {
    #[error("there is no such payment")]
    NotFound,
    #[error("the payment is not confirmed")]
    NotConfirmed,
    #[error("it is more than what is left of the payment")]
    TooMuch,
    /// A ticket for which all money was given back must not stay valid.
    #[error("all of it is given back by cancelling")]
    CancelInstead,
    #[error(transparent)]
    Office(OfficeError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Payments {
    /// Cancels what a user has paid for; the refund follows from that (P9). The answer is how much
    /// the ticket office gives back.
    pub async fn cancel_by_owner(
        &self,
        user_id: Uuid,
        payment_key: &str,
        context: &CallContext,
    ) -> Result<(Payment, Won), RefundError> {
        let key = payment_key.to_owned();
        let find = move |tx: &mut Tx<'_>| payments::payment_of_key(tx, user_id, &key);
        let found: Result<_, StorageError> = self.0.db.read(find).await;
        let payment = found?.ok_or(RefundError::NotFound)?;
        self.cancel(payment, &Canceller::Owner(user_id), context).await
    }

    async fn cancel(
        &self,
        payment: Payment,
        by: &Canceller,
        context: &CallContext,
    ) -> Result<(Payment, Won), RefundError> {
        if !matches!(payment.status, Status::Confirmed | Status::Refunding | Status::Refunded) {
            return Err(RefundError::NotConfirmed);
        }
        let cancelled = self.0.office.cancel(&payment, by, context).await;
        let reservation = cancelled.map_err(RefundError::Office)?;
        Ok((payment, reservation.refund_amount.unwrap_or(Won::ZERO)))
    }

    /// Gives money back as an administrator: everything by cancelling, a part as it is.
    pub async fn refund_as_admin(
        &self,
        id: PaymentId,
        refund: AdminRefund,
        context: &CallContext,
    ) -> Result<(Payment, Won), RefundError> {
        let Some(amount) = refund.amount else {
            let found: Result<_, StorageError> =
                self.0.db.read(move |tx| payments::payment_find(tx, id)).await;
            let payment = found?.ok_or(RefundError::NotFound)?;
            let by = Canceller::Admin { id: refund.admin_id, reason: refund.reason };
            return self.cancel(payment, &by, context).await;
        };
        let (now, refund_id) = (self.0.clock.now(), RefundId(self.0.ids.next_id()));
        let (entry_id, context) = (self.0.ids.next_id(), *context);
        let begun = self.0.db.write(move |tx| {
            let payment = payments::payment_lock(tx, id)?.ok_or(RefundError::NotFound)?;
            let asked = Refund {
                id: refund_id,
                payment_id: id,
                cause: Cause::Goodwill(refund.key.clone()),
                amount,
                fee: Won::ZERO,
                reason: refund.reason.clone(),
                requested_by: Some(refund.admin_id),
                office_amount: None,
                status: RefundStatus::Requested,
                sent_at: None,
                declines: 0,
                correlation_id: context.correlation_id,
                causation_id: context.causation_id,
                created_at: now,
                done_at: None,
            };
            give_part(tx, &payment, &asked, entry_id, &refund.key)?;
            let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
            Ok::<_, RefundError>(payment)
        });
        let payment = self.0.faults.around("refund requested", begun).await?;
        Ok((payment, amount))
    }
}

fn give_part(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
    entry_id: Uuid,
    key: &str,
) -> Result<(), RefundError> {
    let now = refund.created_at;
    let known = refunds::refund_list(tx, payment.id)?;
    if known.iter().any(|known| known.cause == refund.cause) {
        return Ok(());
    }
    let stands = known.iter().all(|known| matches!(known.cause, Cause::Goodwill(_)));
    let is_delivered = ledger::entry_exists(tx, payment.id, Kind::Deliver)?;
    let is_paid =
        matches!(payment.status, Status::Confirmed | Status::Refunding | Status::Refunded);
    if !is_paid || !is_delivered {
        return Err(RefundError::NotConfirmed);
    }
    let on_the_way = on_the_way(tx, payment.id)?;
    let left = payment.remaining().minus(on_the_way).expect("no more is returned than taken");
    if refund.amount > left || refund.amount <= Won::ZERO {
        return Err(RefundError::TooMuch);
    }
    if stands && refund.amount == left {
        return Err(RefundError::CancelInstead);
    }
    payments::command_insert(tx, &payment.order_id, Action::Refund, key, now)?;
    refunds::refund_insert(tx, refund)?;
    let of = EntryOf { id: entry_id, payment_id: payment.id, refund_id: Some(refund.id), now };
    let posting = match stands {
        true => Posting::goodwill(refund.amount),
        false => Posting::waive_fee(refund.amount),
    };
    ledger::entry_insert(tx, of, &posting)?;
    begin_refund(tx, payment, now)?;
    Ok(())
}
