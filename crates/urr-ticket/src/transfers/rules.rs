//! Rules of transfers: an owner lists a paid reservation, and another user buys it.
//!
//! The caller loads the offer under the lock of its sale and writes the decision. Every step of a
//! payment can be repeated: [`Transition::AlreadyDone`] means that it was taken before.

use urr_kernel::{Timestamp, Uuid, Won, define_id};
use urr_storage::{storable_enum, storable_id};

use crate::inventory::rules::{SaleStatus, Tier};
use crate::memberships::rules::Benefits;
use crate::payables::attempts::EndedAttempts;
use crate::reservations::model::{
    ReservationId, ReservationKind, ReservationPaymentStatus, ReservationStatus,
};
use crate::reservations::rules::{PaymentClaim, ReservationRecord, Transition};

define_id!(
    /// Which attempt to sell a reservation.
    TransferId
);
storable_id!(TransferId);

/// The fee of an event without an artist.
const FEE_PERCENT_WITHOUT_ARTIST: u8 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStatus {
    Listed,
    Completed,
    Cancelled,
}

/// One attempt to sell a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub id: TransferId,
    pub reservation_id: ReservationId,
    /// The fencing token: which attempt it is.
    pub number: i64,
    pub event_id: Uuid,
    pub seller_id: Uuid,
    pub seller_payment_id: Uuid,
    pub price: TransferPrice,
    pub status: TransferStatus,
    pub end_reason: Option<String>,
    /// Of one that is being paid, or was sold.
    pub buyer_id: Option<Uuid>,
    pub pinned_by: Option<Uuid>,
    /// The attempts to pay that have released it.
    pub ended_attempts: EndedAttempts,
    pub payment_id: Option<Uuid>,
    /// What came back of the buyer's payment.
    pub refund_amount: Option<Won>,
    pub created_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

/// What a transfer costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferPrice {
    /// What the seller had paid.
    pub original: Won,
    pub fee_percent: u8,
    /// Of the original price, rounded down to a whole won. It is the platform's.
    pub fee: Won,
}

/// A transfer and the reservation that it hands over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOffer {
    pub transfer: Transfer,
    pub record: ReservationRecord,
}

/// What the rules ask of a buyer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferBuyer {
    pub user_id: Uuid,
    /// Of the event's artist.
    pub is_member: bool,
    /// What they have of the event.
    pub live_quantity: u32,
    pub seats_per_user_max: u32,
}

/// Why a transfer cannot take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferRejection {
    #[error("There is no such transfer.")]
    NotFound,
    #[error("There is no such reservation.")]
    ReservationNotFound,
    #[error("Only what is paid can be passed on.")]
    NotConfirmed,
    /// The event requires a checked identity: its limit holds per person.
    #[error("Tickets of this event are personal and cannot be passed on.")]
    Personal,
    #[error("Complimentary tickets and those of the box office cannot be passed on.")]
    NotForSale,
    #[error("This is for sale already.")]
    AlreadyListed,
    #[error("Only members of the artist can pass tickets on.")]
    SellerNotMember,
    #[error("Only members of the artist can buy this.")]
    BuyerNotMember,
    #[error("This is your own ticket.")]
    OwnTransfer,
    #[error("With these there would be too many of this event.")]
    SeatLimit,
    #[error("Someone is paying for this.")]
    BeingPaid,
    #[error("This payment has not pinned it.")]
    NotPinned,
    #[error("This attempt to pay is over.")]
    AttemptOver,
    #[error("This is sold.")]
    Sold,
    #[error("This is not for sale any more.")]
    Cancelled,
    #[error("The event has begun.")]
    EventStarted,
    #[error("This event was cancelled.")]
    EventCancelled,
    #[error("A ticket of this reservation has been used.")]
    CheckedIn,
    #[error("Nothing of this payment is to be refunded.")]
    NotRefunding,
    #[error("This is another attempt to sell it.")]
    StaleToken,
    #[error("This is not its price.")]
    WrongAmount,
}

storable_enum!(TransferStatus { Listed => "listed", Completed => "completed", Cancelled => "cancelled" });

impl TransferPrice {
    pub fn new(original: Won, fee_percent: u8) -> TransferPrice {
        let fee = original.percent(fee_percent).expect("prices are bounded");
        TransferPrice { original, fee_percent, fee }
    }

    /// What the buyer pays.
    pub fn total(self) -> Won {
        self.original.plus(self.fee).expect("prices are bounded")
    }
}

impl Transfer {
    /// Whether it is still on offer.
    fn check_listed(&self) -> Result<(), TransferRejection> {
        match self.status {
            TransferStatus::Listed => Ok(()),
            TransferStatus::Completed => Err(TransferRejection::Sold),
            TransferStatus::Cancelled => Err(TransferRejection::Cancelled),
        }
    }

    fn check_claim(&self, claim: &PaymentClaim) -> Result<(), TransferRejection> {
        if claim.fencing_token != self.number {
            return Err(TransferRejection::StaleToken);
        }
        match claim.amount == self.price.total() {
            true => Ok(()),
            false => Err(TransferRejection::WrongAmount),
        }
    }
}

impl TransferOffer {
    /// Whether the reservation is paid by the buyer's payment of this transfer still.
    fn is_present(&self) -> bool {
        self.transfer.payment_id.is_some() && self.transfer.payment_id == self.record.payment_id
    }

    /// The status of the buyer's money.
    pub fn payment_status(&self) -> ReservationPaymentStatus {
        match self.transfer.status {
            TransferStatus::Listed | TransferStatus::Cancelled => ReservationPaymentStatus::Unpaid,
            TransferStatus::Completed if self.transfer.refund_amount.is_some() => {
                ReservationPaymentStatus::Refunded
            }
            TransferStatus::Completed if self.is_present() => {
                self.record.reservation.payment_status
            }
            // They have sold it on: they get back what they paid.
            TransferStatus::Completed => ReservationPaymentStatus::Refunding,
        }
    }

    /// What goes back of the buyer's money, or has gone.
    pub fn refund_amount(&self) -> Option<Won> {
        match self.payment_status() {
            ReservationPaymentStatus::Unpaid | ReservationPaymentStatus::Paid => None,
            ReservationPaymentStatus::Refunding | ReservationPaymentStatus::Refunded => {
                let asked = if self.is_present() { self.record.refund_amount } else { None };
                self.transfer.refund_amount.or(asked).or(Some(self.transfer.price.total()))
            }
        }
    }

    fn check_event(&self, now: Timestamp) -> Result<(), TransferRejection> {
        check_event(&self.record, now)
    }

    fn check_room(&self, buyer: &TransferBuyer) -> Result<(), TransferRejection> {
        let quantity = buyer.live_quantity.saturating_add(self.record.reservation.quantity);
        match quantity <= buyer.seats_per_user_max {
            true => Ok(()),
            false => Err(TransferRejection::SeatLimit),
        }
    }
}

fn check_event(record: &ReservationRecord, now: Timestamp) -> Result<(), TransferRejection> {
    match record.sale_status {
        SaleStatus::Open if now < record.starts_at => Ok(()),
        SaleStatus::Open => Err(TransferRejection::EventStarted),
        SaleStatus::Cancelled | SaleStatus::Deleted => Err(TransferRejection::EventCancelled),
    }
}

/// Whether an owner may pass a reservation on now, and for how much.
pub fn decide_list(
    record: &ReservationRecord,
    tier: Option<Tier>,
    now: Timestamp,
) -> Result<TransferPrice, TransferRejection> {
    let reservation = &record.reservation;
    let is_paid = reservation.payment_status == ReservationPaymentStatus::Paid;
    if reservation.status != ReservationStatus::Confirmed || !is_paid {
        return Err(TransferRejection::NotConfirmed);
    }
    if record.kind != ReservationKind::Online {
        return Err(TransferRejection::NotForSale);
    }
    check_event(record, now)?;
    let percent = match record.artist_id {
        None => FEE_PERCENT_WITHOUT_ARTIST,
        Some(_) => {
            let percent = Benefits::of(tier).transfer_fee_percent;
            percent.ok_or(TransferRejection::SellerNotMember)?
        }
    };
    Ok(TransferPrice::new(reservation.total_amount, percent))
}

/// Whether a user may buy now.
pub fn decide_pay(
    offer: &TransferOffer,
    buyer: &TransferBuyer,
    now: Timestamp,
) -> Result<(), TransferRejection> {
    offer.transfer.check_listed()?;
    if offer.transfer.pinned_by.is_some() {
        return Err(TransferRejection::BeingPaid);
    }
    offer.check_event(now)?;
    if buyer.user_id == offer.transfer.seller_id {
        return Err(TransferRejection::OwnTransfer);
    }
    if offer.record.artist_id.is_some() && !buyer.is_member {
        return Err(TransferRejection::BuyerNotMember);
    }
    offer.check_room(buyer)
}

/// A payment is about to charge: until it is decided no other user can buy, and the seller cannot
/// cancel (M-7, M-11).
pub fn decide_pin(
    offer: &TransferOffer,
    buyer: &TransferBuyer,
    claim: &PaymentClaim,
    attempt: i64,
    now: Timestamp,
) -> Result<Transition, TransferRejection> {
    let transfer = &offer.transfer;
    if transfer.ended_attempts.contains(claim.payment_id, attempt) {
        return Err(TransferRejection::AttemptOver);
    }
    let is_its_own = transfer.pinned_by == Some(claim.payment_id);
    if is_its_own && transfer.buyer_id == Some(buyer.user_id) {
        return transfer.check_claim(claim).map(|()| Transition::AlreadyDone);
    }
    decide_pay(offer, buyer, now)?;
    transfer.check_claim(claim).map(|()| Transition::Apply)
}

/// An attempt to pay has failed. It is recorded without a pin as well, because the pin may still be
/// on its way. A completed purchase stays completed.
pub fn decide_unpin(
    transfer: &Transfer,
    payment_id: Uuid,
    attempt: i64,
) -> Result<Transition, TransferRejection> {
    if transfer.ended_attempts.contains(payment_id, attempt) {
        return Ok(Transition::AlreadyDone);
    }
    match transfer.status {
        TransferStatus::Listed => Ok(Transition::Apply),
        _ if transfer.payment_id == Some(payment_id) => Err(TransferRejection::Sold),
        TransferStatus::Completed | TransferStatus::Cancelled => Ok(Transition::AlreadyDone),
    }
}

/// A payment was made. Only the payment that pinned the transfer completes it. The start of the
/// event is not checked again, as for a hold (M-16); a cancelled event is not handed over.
pub fn decide_complete(
    offer: &TransferOffer,
    claim: &PaymentClaim,
    buyer: Option<&TransferBuyer>,
) -> Result<Transition, TransferRejection> {
    let transfer = &offer.transfer;
    if transfer.payment_id == Some(claim.payment_id) {
        return transfer.check_claim(claim).map(|()| Transition::AlreadyDone);
    }
    transfer.check_listed()?;
    match transfer.pinned_by {
        Some(by) if by == claim.payment_id => {}
        Some(_) => return Err(TransferRejection::BeingPaid),
        None => return Err(TransferRejection::NotPinned),
    }
    transfer.check_claim(claim)?;
    if offer.record.sale_status != SaleStatus::Open {
        return Err(TransferRejection::EventCancelled);
    }
    offer.check_room(buyer.expect("a pin is that of a buyer"))?;
    Ok(Transition::Apply)
}

/// Whether a seller may cancel. A completed sale stays completed, whoever came first.
pub fn decide_cancel(transfer: &Transfer, user_id: Uuid) -> Result<Transition, TransferRejection> {
    if transfer.seller_id != user_id {
        return Err(TransferRejection::NotFound);
    }
    match transfer.status {
        TransferStatus::Listed if transfer.pinned_by.is_some() => Err(TransferRejection::BeingPaid),
        TransferStatus::Listed => Ok(Transition::Apply),
        TransferStatus::Cancelled => Ok(Transition::AlreadyDone),
        TransferStatus::Completed => Err(TransferRejection::Sold),
    }
}

/// Money of the buyer has gone back.
pub fn decide_refunded(
    transfer: &Transfer,
    payment_id: Uuid,
    amount: Won,
) -> Result<Transition, TransferRejection> {
    if transfer.payment_id != Some(payment_id) {
        return Err(TransferRejection::NotRefunding);
    }
    match transfer.refund_amount {
        Some(noted) if noted == amount => Ok(Transition::AlreadyDone),
        Some(_) => Err(TransferRejection::WrongAmount),
        None if amount > transfer.price.total() => Err(TransferRejection::WrongAmount),
        None => Ok(Transition::Apply),
    }
}

#[cfg(test)]
mod tests;
