//! Those who ask for money back: buyers, and administrators.

use urr_kernel::{CallContext, Uuid, Won};
use urr_service::admin_audit::{self, AdminAction};
use urr_storage::{StorageError, Tx};

use super::start_refund::{
    RefundIntent, is_paid, is_transferred, remaining_after_refunds, schedule_refund, start_refund,
};
use crate::PaymentService;
use crate::domain::ledger::{EntryKind, LedgerAccount, Posting};
use crate::domain::payment::{PayableKind, Payment, PaymentId};
use crate::domain::refund::{
    Refund, RefundCause, RefundId, RefundStatus, purchase_stands, refundable_amount,
};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, CommandAction};
use crate::store::refunds;
use crate::ticket_client::{CancelledBy, TicketClientError};

/// A buyer wants their money back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerCancelRequest {
    pub user_id: Uuid,
    /// In their own words.
    pub reason: Option<String>,
}

/// An administrator gives money back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminRefundRequest {
    pub admin_id: Uuid,
    /// None: everything that the policy allows, and what was paid for is cancelled.
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
    /// The ticket is somebody else's now, and so is the payment that pays for it (M-8).
    #[error("the ticket was handed over")]
    Transferred,
    #[error("memberships are not given back on request")]
    NotCancellable,
    #[error(transparent)]
    Tickets(TicketClientError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl PaymentService {
    /// Cancels what a user has paid for; the refund follows from that (P9). The answer is how much
    /// the ticket service gives back.
    pub async fn cancel_by_owner(
        &self,
        payment_key: &str,
        owner: OwnerCancelRequest,
        context: &CallContext,
    ) -> Result<(Payment, Won), RefundError> {
        let (key, user_id) = (payment_key.to_owned(), owner.user_id);
        let find = move |tx: &mut Tx<'_>| payments::payment_find_by_key(tx, user_id, &key);
        let found: Result<_, StorageError> = self.0.db.read(find).await;
        let payment = found?.ok_or(RefundError::NotFound)?;
        if let Some(reason) = owner.reason {
            let id = payment.id;
            let note = move |tx: &mut Tx<'_>| payments::cancel_reason_set(tx, id, &reason);
            let noted: Result<(), StorageError> = self.0.db.write(note).await;
            noted?;
        }
        self.cancel(payment, &CancelledBy::Owner(user_id), context).await
    }

    /// The answer is what goes back now.
    async fn cancel(
        &self,
        payment: Payment,
        by: &CancelledBy,
        context: &CallContext,
    ) -> Result<(Payment, Won), RefundError> {
        if !is_paid(&payment) {
            return Err(RefundError::NotConfirmed);
        }
        let id = payment.id;
        let known: Result<_, StorageError> =
            self.0.db.read(move |tx| refunds::refund_list(tx, id)).await;
        let mut known = known?;
        if is_transferred(&known) {
            return Err(RefundError::Transferred);
        }
        let reservation_id = payment.reservation().ok_or(RefundError::NotCancellable)?;
        let cancelled = self.0.tickets.cancel(reservation_id, &payment, by, context).await;
        let reservation = cancelled.map_err(RefundError::Tickets)?;
        let asked = reservation.refund_amount.unwrap_or(Won::ZERO);
        known.retain(|refund| refund.cause != RefundCause::Cancelled);
        let amount = refundable_amount(&payment, asked, &known);
        Ok((payment, amount))
    }

    /// Ends a membership and gives back what is left of its price.
    async fn revoke(
        &self,
        id: PaymentId,
        refund: AdminRefundRequest,
        noted: AdminAction,
    ) -> Result<(Payment, Won), RefundError> {
        let [refund_id, cancel_entry_id, deliver_entry_id] = [(); 3].map(|()| self.0.ids.next_id());
        let now = self.0.clock.now();
        self.commit("refund requested", move |tx| {
            let payment = payments::payment_lock(tx, id)?.ok_or(RefundError::NotFound)?;
            let is_delivered = ledger::entry_exists(tx, id, EntryKind::Deliver)?;
            if !is_paid(&payment) || !is_delivered {
                return Err(RefundError::NotConfirmed);
            }
            let known = refunds::refund_list(tx, id)?;
            let asked = RefundIntent {
                refund_id,
                cancel_entry_id,
                deliver_entry_id,
                cause: RefundCause::Cancelled,
                amount: payment.charged,
                is_requested_by_tickets: true,
                reason: refund.reason.clone(),
                requested_by: Some(refund.admin_id),
                correlation_id: payment.correlation_id,
                causation_id: payment.confirmed_event_id,
                now,
            };
            if start_refund(tx, &payment, &known, &asked)? {
                admin_audit::action_insert(tx, &noted)?;
            }
            let known = refunds::refund_list(tx, id)?;
            let back = known.iter().find(|refund| refund.cause == RefundCause::Cancelled);
            let amount = back.expect("it is there now").amount;
            let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
            Ok::<_, RefundError>((payment, amount))
        })
        .await
    }

    /// Gives money back as an administrator: everything by cancelling, a part as it is.
    pub async fn refund_as_admin(
        &self,
        id: PaymentId,
        refund: AdminRefundRequest,
        context: &CallContext,
    ) -> Result<(Payment, Won), RefundError> {
        let Some(amount) = refund.amount else {
            let found: Result<_, StorageError> =
                self.0.db.read(move |tx| payments::payment_find(tx, id)).await;
            let payment = found?.ok_or(RefundError::NotFound)?;
            let noted = self.noted(id, &refund, "PAYMENT_CANCELLED");
            if payment.payable.kind == PayableKind::Membership {
                return self.revoke(id, refund, noted).await;
            }
            let by = CancelledBy::Admin { id: refund.admin_id, reason: refund.reason };
            let cancelled = self.cancel(payment, &by, context).await?;
            let note = move |tx: &mut Tx<'_>| admin_audit::action_insert(tx, &noted);
            let noted: Result<(), StorageError> = self.0.db.write(note).await;
            noted?;
            return Ok(cancelled);
        };
        let (now, refund_id) = (self.0.clock.now(), RefundId(self.0.ids.next_id()));
        let entry_id = self.0.ids.next_id();
        let noted = self.noted(id, &refund, "GOODWILL_REFUND");
        let payment = self
            .commit("refund requested", move |tx| {
                let payment = payments::payment_lock(tx, id)?.ok_or(RefundError::NotFound)?;
                let asked = Refund {
                    id: refund_id,
                    payment_id: id,
                    cause: RefundCause::Goodwill(refund.key.clone()),
                    amount,
                    fee: Won::ZERO,
                    reason: refund.reason.clone(),
                    requested_by: Some(refund.admin_id),
                    requested_amount: None,
                    status: RefundStatus::Requested,
                    sent_at: None,
                    key_number: 0,
                    declines: 0,
                    failure_code: None,
                    correlation_id: payment.correlation_id,
                    causation_id: payment.confirmed_event_id,
                    created_at: now,
                    done_at: None,
                };
                if start_partial_refund(tx, &payment, &asked, entry_id, &refund.key)? {
                    admin_audit::action_insert(tx, &noted)?;
                }
                let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
                Ok::<_, RefundError>(payment)
            })
            .await?;
        Ok((payment, amount))
    }

    /// What the log says of it.
    fn noted(
        &self,
        id: PaymentId,
        refund: &AdminRefundRequest,
        action: &'static str,
    ) -> AdminAction {
        let amount = refund.amount.map_or_else(|| "everything".to_owned(), |won| won.to_string());
        AdminAction {
            id: self.0.ids.next_id(),
            admin_id: refund.admin_id,
            action,
            resource_type: "payment",
            resource_id: id.0,
            summary: format!("{amount}: {}", refund.reason),
            now: self.0.clock.now(),
        }
    }
}

/// The answer is whether it is new.
fn start_partial_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
    entry_id: Uuid,
    key: &str,
) -> Result<bool, RefundError> {
    let now = refund.created_at;
    let known = refunds::refund_list(tx, payment.id)?;
    if known.iter().any(|known| known.cause == refund.cause) {
        return Ok(false);
    }
    let stands = purchase_stands(&known);
    let is_delivered = ledger::entry_exists(tx, payment.id, EntryKind::Deliver)?;
    if !is_paid(payment) || !is_delivered {
        return Err(RefundError::NotConfirmed);
    }
    let left = remaining_after_refunds(payment, &known);
    if refund.amount > left || refund.amount <= Won::ZERO {
        return Err(RefundError::TooMuch);
    }
    if stands && refund.amount == left {
        return Err(RefundError::CancelInstead);
    }
    payments::command_insert(tx, &payment.order_id, CommandAction::Refund, key, now)?;
    refunds::refund_insert(tx, refund)?;
    let of = EntryOf { id: entry_id, payment_id: payment.id, refund_id: Some(refund.id), now };
    let kind = payment.payable.kind;
    let posting = match stands {
        true => Posting::goodwill(kind, refund.amount),
        false => {
            let kept = ledger::balance_of(tx, payment.id, LedgerAccount::CancellationFees)?;
            Posting::waive_fee(kind, refund.amount, Won::new(-kept.amount()))
        }
    };
    ledger::entry_insert(tx, of, &posting)?;
    schedule_refund(tx, payment, now)?;
    Ok(true)
}
