//! Refunds that buyers and administrators ask for.

use urr_contracts::clients::ClientError;
use urr_contracts::internal::ticket::{CancelReservation, PayableKind};
use urr_kernel::{CallContext, Uuid, Won};
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{StorageError, Tx};

use super::start_refund::{
    CancelEntryIds, is_transferred, remaining_after_refunds, schedule_refund, start_refund,
};
use crate::PaymentService;
use crate::domain::ledger::{EntryKind, LedgerAccount, Posting};
use crate::domain::payment::{Payment, PaymentId};
use crate::domain::refund::{Refund, RefundOrigin, purchase_stands, refundable_amount};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, CommandAction};
use crate::store::refunds;

/// A buyer cancels what they paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerCancelRequest {
    pub user_id: Uuid,
    /// In their own words.
    pub reason: Option<String>,
}

/// An administrator refunds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminRefundRequest {
    pub admin_id: Uuid,
    /// None: all that the policy allows, and the purchase is cancelled.
    pub amount: Option<Won>,
    pub reason: String,
    /// The same key is the same refund.
    pub key: String,
    /// The most that may be refunded of the payment, all refunds together. None: everything.
    pub refund_max: Option<Won>,
}

#[derive(Debug, thiserror::Error)]
pub enum RefundError {
    #[error("there is no such payment")]
    NotFound,
    #[error("the payment is not confirmed")]
    NotConfirmed,
    #[error("it is more than what is left of the payment")]
    TooMuch,
    /// A ticket whose whole price is refunded must not stay valid.
    #[error("a full refund needs a cancellation")]
    CancelInstead,
    /// The ticket has another owner, whose payment pays for it (M-8).
    #[error("the ticket was transferred")]
    Transferred,
    #[error("memberships are not refunded on request")]
    NotCancellable,
    #[error("This is more than support may refund. Please ask an administrator.")]
    AboveLimit(Won),
    #[error(transparent)]
    Tickets(#[from] ClientError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl PaymentService {
    /// Cancels what a user has paid; the refund follows from the cancellation (P9). Returns the
    /// amount of the refund.
    pub async fn cancel_by_owner(
        &self,
        payment_key: &str,
        owner: OwnerCancelRequest,
        context: &CallContext,
    ) -> Result<Won, RefundError> {
        let (key, user_id) = (payment_key.to_owned(), owner.user_id);
        let found = self.read(move |tx| payments::payment_find_by_key(tx, user_id, &key)).await?;
        let payment = found.ok_or(RefundError::NotFound)?;
        if let Some(reason) = owner.reason {
            let id = payment.id;
            self.write(move |tx| payments::cancel_reason_set(tx, id, &reason)).await?;
        }
        let by = CancelReservation { user_id: Some(user_id), ..CancelReservation::default() };
        self.cancel(payment, by, context).await
    }

    /// Cancels the reservation of a payment. Returns what is refunded now.
    async fn cancel(
        &self,
        payment: Payment,
        by: CancelReservation,
        context: &CallContext,
    ) -> Result<Won, RefundError> {
        if !payment.is_paid() {
            return Err(RefundError::NotConfirmed);
        }
        let mut refunds = self.list_refunds(payment.id).await?;
        if is_transferred(&refunds) {
            return Err(RefundError::Transferred);
        }
        let id = payment.reservation().ok_or(RefundError::NotCancellable)?;
        let cancelled = self.0.tickets.call(CancelReservation { id, ..by }, context).await?;
        let asked = cancelled.payable.refund_amount.unwrap_or(Won::ZERO);
        refunds.retain(|refund| refund.origin != RefundOrigin::Cancelled);
        Ok(refundable_amount(&payment, asked, &refunds))
    }

    /// Refunds as an administrator: everything by cancelling, a part without.
    pub async fn refund_as_admin(
        &self,
        id: PaymentId,
        request: AdminRefundRequest,
        context: &CallContext,
    ) -> Result<Won, RefundError> {
        if let Some(amount) = request.amount {
            return self.refund_part(id, request, amount, context).await;
        }
        let payment = self.find(id).await?.ok_or(RefundError::NotFound)?;
        check_limit(request.refund_max, payment.charged)?;
        if payment.payable.kind == PayableKind::Membership {
            return self.revoke_membership(id, request, context).await;
        }
        let action = self.admin_action(id, &request, "PAYMENT_CANCELLED");
        let by = CancelReservation {
            admin_id: Some(request.admin_id),
            reason: request.reason,
            // If the ticket was sold on, another payment is the one to refund (M-8).
            payment_id: Some(id.0),
            ..CancelReservation::default()
        };
        let amount = self.cancel(payment, by, context).await?;
        self.write(move |tx| admin_log::insert(tx, &action)).await?;
        Ok(amount)
    }

    /// Ends a membership and refunds what is left of its price.
    async fn revoke_membership(
        &self,
        id: PaymentId,
        request: AdminRefundRequest,
        context: &CallContext,
    ) -> Result<Won, RefundError> {
        let traceparent = context.trace.to_string();
        let [refund_id, cancel, deliver] = [(); 3].map(|()| self.0.ids.next_id());
        let (now, action) =
            (self.0.clock.now(), self.admin_action(id, &request, "PAYMENT_CANCELLED"));
        self.commit("refund requested", move |tx| {
            let payment = payments::payment_lock(tx, id)?.ok_or(RefundError::NotFound)?;
            require_delivered(tx, &payment)?;
            let (origin, reason) = (RefundOrigin::Cancelled, request.reason.clone());
            let refund = Refund {
                requested_by: Some(request.admin_id),
                requested_amount: Some(payment.charged),
                traceparent: Some(traceparent.clone()),
                ..Refund::new(refund_id, &payment, origin, payment.charged, reason, now)
            };
            let refunds = refunds::refund_list(tx, id)?;
            let entries = CancelEntryIds { cancel, deliver };
            if start_refund(tx, &payment, &refunds, refund, entries)? {
                admin_log::insert(tx, &action)?;
            }
            let refunds = refunds::refund_list(tx, id)?;
            let refund = refunds.iter().find(|refund| refund.origin == RefundOrigin::Cancelled);
            Ok(refund.expect("the refund exists now").amount)
        })
        .await
    }

    async fn refund_part(
        &self,
        id: PaymentId,
        request: AdminRefundRequest,
        amount: Won,
        context: &CallContext,
    ) -> Result<Won, RefundError> {
        let traceparent = context.trace.to_string();
        let [refund_id, entry_id] = [(); 2].map(|()| self.0.ids.next_id());
        let (now, action) =
            (self.0.clock.now(), self.admin_action(id, &request, "GOODWILL_REFUND"));
        self.commit("refund requested", move |tx| {
            let payment = payments::payment_lock(tx, id)?.ok_or(RefundError::NotFound)?;
            let AdminRefundRequest { admin_id, reason, key, .. } = request.clone();
            let origin = RefundOrigin::Goodwill(key.clone());
            let refund = Refund {
                requested_by: Some(admin_id),
                traceparent: Some(traceparent.clone()),
                ..Refund::new(refund_id, &payment, origin, amount, reason, now)
            };
            let limit = request.refund_max;
            if start_partial_refund(tx, &payment, &refund, (entry_id, &key), limit)? {
                admin_log::insert(tx, &action)?;
            }
            Ok(amount)
        })
        .await
    }

    fn admin_action(
        &self,
        id: PaymentId,
        request: &AdminRefundRequest,
        action: &'static str,
    ) -> AdminAction {
        let amount = request.amount.map_or_else(|| "everything".to_owned(), |won| won.to_string());
        AdminAction {
            id: self.0.ids.next_id(),
            admin_id: Some(request.admin_id),
            action: action.into(),
            resource_type: "payment".into(),
            resource_id: id.to_string(),
            summary: format!("{amount}: {}", request.reason),
            details: None,
            created_at: self.0.clock.now(),
        }
    }
}

/// Refuses what is more than somebody with a limit may refund.
fn check_limit(limit: Option<Won>, refunded: Won) -> Result<(), RefundError> {
    match limit {
        Some(limit) if refunded > limit => Err(RefundError::AboveLimit(limit)),
        _ => Ok(()),
    }
}

fn require_delivered(tx: &mut Tx<'_>, payment: &Payment) -> Result<(), RefundError> {
    let is_delivered = ledger::entry_exists(tx, payment.id, EntryKind::Deliver)?;
    match payment.is_paid() && is_delivered {
        true => Ok(()),
        false => Err(RefundError::NotConfirmed),
    }
}

/// Returns whether the refund is new.
fn start_partial_refund(
    tx: &mut Tx<'_>,
    payment: &Payment,
    refund: &Refund,
    (entry_id, key): (Uuid, &str),
    limit: Option<Won>,
) -> Result<bool, RefundError> {
    let refunds = refunds::refund_list(tx, payment.id)?;
    if refunds.iter().any(|known| known.origin == refund.origin) {
        return Ok(false);
    }
    require_delivered(tx, payment)?;
    let (stands, left) = (purchase_stands(&refunds), remaining_after_refunds(payment, &refunds));
    if refund.amount > left || refund.amount <= Won::ZERO {
        return Err(RefundError::TooMuch);
    }
    let refunded = payment.charged.minus(left).and_then(|before| before.plus(refund.amount));
    check_limit(limit, refunded.expect("amounts are bounded where they enter"))?;
    if stands && refund.amount == left {
        return Err(RefundError::CancelInstead);
    }
    let now = refund.created_at;
    payments::command_insert(tx, &payment.order_id, CommandAction::Refund, key, now)?;
    refunds::refund_insert(tx, refund)?;
    let kind = payment.payable.kind;
    let posting = match stands {
        true => Posting::goodwill(kind, refund.amount),
        false => {
            let kept = ledger::balance_of(tx, payment.id, LedgerAccount::CancellationFees)?;
            Posting::waive_fee(kind, refund.amount, Won::new(-kept.amount()))
        }
    };
    ledger::entry_insert(tx, EntryOf::refund(entry_id, refund), &posting)?;
    schedule_refund(tx, payment, now)?;
    Ok(true)
}
