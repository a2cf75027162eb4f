//! Reservations, transfers and memberships as payables: one interface for payments.
//!
//! The same payment can repeat every call, and each call has its effect once. A call by another
//! payment, with an old fencing token or with another amount is rejected.

pub(crate) mod consumer;
pub(crate) mod http;

use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::{
    PayableKind, PayablePaymentStatus, PayableStatus, PayableView,
};
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_storage::StorageError;

use crate::memberships::rules::MembershipStatus;
use crate::reservations::details::shorten_order_name;
use crate::reservations::model::EventChain;
use crate::transfers::rules::TransferStatus;
use crate::{
    CompletedPayment, Membership, MembershipError, MembershipId, PaymentClaim, ReservationId,
    ReservationPaymentStatus, ReservationRecord, ReservationStatus, ReturnedMoney,
    TermPaymentStatus, TicketService, TransferError, TransferId, TransferOffer, TransitionError,
};

/// Why a payable did not take a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayableError {
    #[error(transparent)]
    Reservation(#[from] TransitionError),
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error(transparent)]
    Membership(#[from] MembershipError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl TicketService {
    /// A payable in whatever state.
    pub async fn get_payable(&self, payable: PayableRef) -> Result<PayableView, PayableError> {
        let (id, now) = (payable.id, self.clock.now());
        Ok(match payable.kind {
            PayableKind::Reservation => {
                reservation_view(self.find_reservation(ReservationId(id)).await?, now)
            }
            PayableKind::Transfer => transfer_view(&self.find_transfer(TransferId(id)).await?),
            PayableKind::Membership => {
                membership_view(&self.find_membership(MembershipId(id)).await?, now)
            }
        })
    }

    /// A payable if this user can pay it now, with the name of its order.
    pub async fn validate_payable(
        &self,
        payable: PayableRef,
        user_id: Uuid,
    ) -> Result<PayableView, PayableError> {
        let (id, now) = (payable.id, self.clock.now());
        match payable.kind {
            PayableKind::Reservation => {
                let id = ReservationId(id);
                let details = self.validate_reservation(id, user_id).await?;
                let order_name = Some(details.order_name());
                let EventChain { correlation_id, last_event_id } = self.find_chain(id).await?;
                let view = reservation_view(details.record, now);
                Ok(PayableView { order_name, correlation_id, last_event_id, ..view })
            }
            PayableKind::Transfer => {
                let (offer, name) = self.validate_transfer(TransferId(id), user_id).await?;
                let (order_name, user_id) = (Some(name), Some(user_id));
                Ok(PayableView { order_name, user_id, ..transfer_view(&offer) })
            }
            PayableKind::Membership => {
                let membership = self.validate_membership(MembershipId(id), user_id).await?;
                let artist = membership.artist.as_ref().map_or("", |artist| &artist.name);
                let order_name = Some(shorten_order_name(format!("{artist} 멤버십 1년")));
                Ok(PayableView { order_name, ..membership_view(&membership, now) })
            }
        }
    }

    /// Keeps a payable for a payment that is about to charge.
    pub async fn pin_payable(
        &self,
        payable: PayableRef,
        user_id: Uuid,
        claim: PaymentClaim,
    ) -> Result<PayableView, PayableError> {
        let (id, now) = (payable.id, self.clock.now());
        Ok(match payable.kind {
            PayableKind::Reservation => {
                reservation_view(self.pin_hold(ReservationId(id), user_id, claim).await?, now)
            }
            PayableKind::Transfer => {
                transfer_view(&self.pin_transfer(TransferId(id), user_id, claim).await?)
            }
            PayableKind::Membership => {
                membership_view(&self.pin_membership(MembershipId(id), user_id, claim).await?, now)
            }
        })
    }

    /// Releases a payable whose payment has failed.
    pub async fn unpin_payable(
        &self,
        payable: PayableRef,
        payment_id: Uuid,
    ) -> Result<PayableView, PayableError> {
        let (id, now) = (payable.id, self.clock.now());
        Ok(match payable.kind {
            PayableKind::Reservation => {
                reservation_view(self.unpin_hold(ReservationId(id), payment_id).await?, now)
            }
            PayableKind::Transfer => {
                transfer_view(&self.unpin_transfer(TransferId(id), payment_id).await?)
            }
            PayableKind::Membership => {
                membership_view(&self.unpin_membership(MembershipId(id), payment_id).await?, now)
            }
        })
    }

    /// Gives the buyer what was paid for.
    pub async fn confirm_payable(
        &self,
        payable: PayableRef,
        payment: CompletedPayment,
        context: CallContext,
    ) -> Result<PayableView, PayableError> {
        let (id, now) = (payable.id, self.clock.now());
        Ok(match payable.kind {
            PayableKind::Reservation => {
                let id = ReservationId(id);
                reservation_view(self.confirm_reservation(id, payment, context).await?, now)
            }
            PayableKind::Transfer => {
                transfer_view(&self.complete_transfer(TransferId(id), payment, context).await?)
            }
            PayableKind::Membership => {
                let id = MembershipId(id);
                membership_view(&self.activate_membership(id, payment, context).await?, now)
            }
        })
    }

    /// Notes that money has gone back.
    pub async fn mark_payable_refunded(
        &self,
        payable: PayableRef,
        payment_id: Uuid,
        money: ReturnedMoney,
    ) -> Result<PayableView, PayableError> {
        let (id, now) = (payable.id, self.clock.now());
        Ok(match payable.kind {
            PayableKind::Reservation => {
                let id = ReservationId(id);
                reservation_view(self.mark_refunded(id, payment_id, money).await?, now)
            }
            PayableKind::Transfer => {
                let id = TransferId(id);
                transfer_view(&self.mark_transfer_refunded(id, payment_id, money).await?)
            }
            PayableKind::Membership => {
                let (id, amount) = (MembershipId(id), money.requested);
                membership_view(&self.mark_membership_refunded(id, payment_id, amount).await?, now)
            }
        })
    }
}

/// A view in which everything is absent that only some kinds have.
fn blank_view(kind: PayableKind, id: Uuid) -> PayableView {
    PayableView {
        kind,
        id,
        order_name: None,
        user_id: None,
        event_id: None,
        artist_id: None,
        reservation_number: None,
        reservation_id: None,
        seller_id: None,
        status: PayableStatus::Pending,
        payment_status: PayablePaymentStatus::Unpaid,
        total_amount: Won::ZERO,
        booking_fee: Won::ZERO,
        transfer_fee: Won::ZERO,
        quantity: None,
        expires_at: None,
        fencing_token: 0,
        pinned_by: None,
        payment_id: None,
        refund_amount: None,
        cancellation_fee: None,
        updated_at: None,
        correlation_id: None,
        last_event_id: None,
    }
}

pub(crate) fn reservation_view(record: ReservationRecord, now: Timestamp) -> PayableView {
    let (status, cancellation_fee) = (record.status(now), record.cancellation_fee());
    let ReservationRecord { reservation, payment_id, refund_amount, .. } = record;
    PayableView {
        user_id: Some(reservation.user_id),
        event_id: Some(reservation.event_id),
        reservation_number: Some(reservation.number),
        status: match status {
            ReservationStatus::Pending => PayableStatus::Pending,
            ReservationStatus::Confirmed => PayableStatus::Confirmed,
            ReservationStatus::Cancelled => PayableStatus::Cancelled,
            ReservationStatus::Expired => PayableStatus::Expired,
        },
        payment_status: payment_status(reservation.payment_status),
        total_amount: reservation.total_amount,
        booking_fee: reservation.booking_fee,
        quantity: Some(reservation.quantity),
        expires_at: Some(reservation.expires_at),
        fencing_token: reservation.fence,
        pinned_by: reservation.pinned_by,
        payment_id,
        refund_amount,
        cancellation_fee,
        updated_at: Some(record.updated_at),
        ..blank_view(PayableKind::Reservation, reservation.id.0)
    }
}

fn transfer_view(offer: &TransferOffer) -> PayableView {
    let transfer = &offer.transfer;
    PayableView {
        user_id: transfer.buyer_id,
        event_id: Some(transfer.event_id),
        reservation_id: Some(transfer.reservation_id.0),
        seller_id: Some(transfer.seller_id),
        status: match transfer.status {
            TransferStatus::Listed => PayableStatus::Listed,
            TransferStatus::Completed => PayableStatus::Completed,
            TransferStatus::Cancelled => PayableStatus::Cancelled,
        },
        payment_status: payment_status(offer.payment_status()),
        total_amount: transfer.price.total(),
        transfer_fee: transfer.price.fee,
        fencing_token: transfer.number,
        pinned_by: transfer.pinned_by,
        payment_id: transfer.payment_id,
        refund_amount: offer.refund_amount(),
        ..blank_view(PayableKind::Transfer, transfer.id.0)
    }
}

fn membership_view(membership: &Membership, now: Timestamp) -> PayableView {
    let term = membership.term.as_ref();
    let payment_status = match term.map(|term| term.payment_status) {
        None | Some(TermPaymentStatus::Unpaid) => PayablePaymentStatus::Unpaid,
        Some(TermPaymentStatus::Paid) => PayablePaymentStatus::Paid,
        Some(TermPaymentStatus::Refunded) => PayablePaymentStatus::Refunded,
    };
    let is_refunded = payment_status == PayablePaymentStatus::Refunded;
    PayableView {
        user_id: Some(membership.user_id),
        artist_id: Some(membership.artist_id),
        status: match membership.status(now) {
            MembershipStatus::Pending => PayableStatus::Pending,
            MembershipStatus::Active => PayableStatus::Active,
            MembershipStatus::Expired => PayableStatus::Expired,
        },
        payment_status,
        total_amount: membership.amount(),
        fencing_token: term.map_or(membership.last_term, |term| term.number),
        pinned_by: term.and_then(|term| term.pinned_by),
        payment_id: term.and_then(|term| term.payment_id),
        refund_amount: is_refunded.then(|| membership.amount()),
        ..blank_view(PayableKind::Membership, membership.id.0)
    }
}

fn payment_status(status: ReservationPaymentStatus) -> PayablePaymentStatus {
    match status {
        ReservationPaymentStatus::Unpaid => PayablePaymentStatus::Unpaid,
        ReservationPaymentStatus::Paid => PayablePaymentStatus::Paid,
        ReservationPaymentStatus::Refunding => PayablePaymentStatus::Refunding,
        ReservationPaymentStatus::Refunded => PayablePaymentStatus::Refunded,
    }
}
