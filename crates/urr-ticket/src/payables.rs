//! Reservations, transfers and memberships as payables: one interface for payments.
//!
//! The same payment can repeat every call, and each call has its effect once. A call by another
//! payment, with an old fencing token or with another amount is rejected, and so is a pin by an
//! attempt that is over.

pub(crate) mod attempts;
pub(crate) mod consumer;

use urr_contracts::internal::ticket::{
    Acknowledged, ConfirmPayable, GetPayable, MarkPayableRefunded, PayableAnswer, PayableKind,
    PayablePaymentStatus, PayableRef, PayableStatus, PayableView, PinPayable, UnpinPayable,
    ValidatePayable,
};
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_service::ApiError;

use crate::memberships::rules::MembershipStatus;
use crate::reservations::details::shorten_order_name;
use crate::reservations::model::EventChain;
use crate::transfers::rules::TransferStatus;
use crate::{
    CompletedPayment, Membership, MembershipError, MembershipId, PaymentClaim, ReservationId,
    ReservationKind, ReservationPaymentStatus, ReservationRecord, ReservationStatus, ReturnedMoney,
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
}

type PayableResult = Result<PayableAnswer, ApiError>;
type ChangeResult = Result<Acknowledged, ApiError>;

/// A payable in whatever state.
pub(crate) async fn get_payable(
    ticket: TicketService,
    GetPayable { payable: PayableRef { kind, id } }: GetPayable,
    _: CallContext,
) -> PayableResult {
    let now = ticket.clock.now();
    let payable = match kind {
        PayableKind::Reservation => {
            reservation_view(ticket.find_reservation(ReservationId(id)).await?, now)
        }
        PayableKind::Transfer => transfer_view(&ticket.find_transfer(TransferId(id)).await?),
        PayableKind::Membership => {
            membership_view(&ticket.find_membership(MembershipId(id)).await?, now)
        }
    };
    Ok(PayableAnswer { payable })
}

/// A payable if this user can pay it now, with the name of its order.
pub(crate) async fn validate_payable(
    ticket: TicketService,
    ValidatePayable { payable: PayableRef { kind, id }, user_id }: ValidatePayable,
    _: CallContext,
) -> PayableResult {
    let now = ticket.clock.now();
    let payable = match kind {
        PayableKind::Reservation => {
            let id = ReservationId(id);
            let (details, chain) = ticket.validate_reservation(id, user_id).await?;
            let order_name = Some(details.order_name());
            let EventChain { correlation_id, last_event_id } = chain;
            let view = reservation_view(details.record, now);
            PayableView { order_name, correlation_id, last_event_id, ..view }
        }
        PayableKind::Transfer => {
            let (offer, name) = ticket.validate_transfer(TransferId(id), user_id).await?;
            let (order_name, user_id) = (Some(name), Some(user_id));
            PayableView { order_name, user_id, ..transfer_view(&offer) }
        }
        PayableKind::Membership => {
            let membership = ticket.validate_membership(MembershipId(id), user_id).await?;
            let artist = membership.artist.as_ref().map_or("", |artist| &artist.name);
            let order_name = Some(shorten_order_name(format!("{artist} 멤버십 1년")));
            PayableView { order_name, ..membership_view(&membership, now) }
        }
    };
    Ok(PayableAnswer { payable })
}

/// Keeps a payable for a payment that is about to charge.
pub(crate) async fn pin_payable(
    ticket: TicketService,
    call: PinPayable,
    _: CallContext,
) -> ChangeResult {
    let PinPayable { payable: PayableRef { kind, id }, payment_id, user_id, .. } = call;
    let PinPayable { fencing_token, amount, event_id, attempt, .. } = call;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    match kind {
        PayableKind::Reservation => {
            ticket.pin_hold(ReservationId(id), user_id, claim, attempt, event_id).await?;
        }
        PayableKind::Transfer => {
            ticket.pin_transfer(TransferId(id), user_id, claim, attempt).await.map(drop)?;
        }
        PayableKind::Membership => {
            ticket.pin_membership(MembershipId(id), user_id, claim, attempt).await.map(drop)?;
        }
    }
    Ok(Acknowledged {})
}

/// Releases a payable whose payment has failed.
pub(crate) async fn unpin_payable(
    ticket: TicketService,
    UnpinPayable { payable: PayableRef { kind, id }, payment_id, attempt }: UnpinPayable,
    _: CallContext,
) -> ChangeResult {
    match kind {
        PayableKind::Reservation => {
            ticket.unpin_hold(ReservationId(id), payment_id, attempt).await?;
        }
        PayableKind::Transfer => {
            ticket.unpin_transfer(TransferId(id), payment_id, attempt).await.map(drop)?;
        }
        PayableKind::Membership => {
            ticket.unpin_membership(MembershipId(id), payment_id, attempt).await.map(drop)?;
        }
    }
    Ok(Acknowledged {})
}

/// Gives the buyer what was paid for.
pub(crate) async fn confirm_payable(
    ticket: TicketService,
    call: ConfirmPayable,
    context: CallContext,
) -> ChangeResult {
    let ConfirmPayable { payable, payment_id, fencing_token, amount, payment_method, event_id } =
        call;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let payment = CompletedPayment::new(claim, payment_method.as_deref());
    let PayableRef { kind, id } = payable;
    match kind {
        PayableKind::Reservation => {
            ticket.confirm_reservation(ReservationId(id), payment, context, event_id).await?;
        }
        PayableKind::Transfer => {
            ticket.complete_transfer(TransferId(id), payment, context).await.map(drop)?;
        }
        PayableKind::Membership => {
            ticket.activate_membership(MembershipId(id), payment, context).await.map(drop)?;
        }
    }
    Ok(Acknowledged {})
}

/// Notes that money has gone back.
pub(crate) async fn mark_payable_refunded(
    ticket: TicketService,
    call: MarkPayableRefunded,
    _: CallContext,
) -> ChangeResult {
    let MarkPayableRefunded { payable, payment_id, amount: requested, returned_amount } = call;
    let money = ReturnedMoney { requested, returned: returned_amount.unwrap_or(requested) };
    let PayableRef { kind, id } = payable;
    match kind {
        PayableKind::Reservation => {
            ticket.mark_refunded(ReservationId(id), payment_id, money).await?;
        }
        PayableKind::Transfer => {
            ticket.mark_transfer_refunded(TransferId(id), payment_id, money).await.map(drop)?;
        }
        PayableKind::Membership => {
            ticket.mark_membership_refunded(MembershipId(id), payment_id, requested).await?;
        }
    }
    Ok(Acknowledged {})
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
        is_box_office: false,
        refund_amount: None,
        cancellation_fee: None,
        cancelled_amount: Won::ZERO,
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
        status: reservation_status(status),
        payment_status: payment_status(reservation.payment_status),
        total_amount: reservation.total_amount,
        booking_fee: reservation.booking_fee,
        quantity: Some(reservation.quantity),
        expires_at: Some(reservation.expires_at),
        fencing_token: reservation.fence,
        pinned_by: reservation.pinned_by,
        payment_id,
        is_box_office: record.kind == ReservationKind::BoxOffice,
        refund_amount,
        cancellation_fee,
        cancelled_amount: record.cancelled_amount,
        updated_at: Some(record.updated_at),
        ..blank_view(PayableKind::Reservation, reservation.id.0)
    }
}

pub(crate) fn reservation_status(status: ReservationStatus) -> PayableStatus {
    match status {
        ReservationStatus::Pending => PayableStatus::Pending,
        ReservationStatus::Confirmed => PayableStatus::Confirmed,
        ReservationStatus::Cancelled => PayableStatus::Cancelled,
        ReservationStatus::Expired => PayableStatus::Expired,
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
