//! Handles events of the ticket service: what was cancelled or transferred is refunded (M-1, M-8), and
//! what the box office sold is recorded.
//! From the catalog it keeps whose event it is.

use urr_bus::{HandleError, HandlerContext, HandlerOutcome, decode_event};
use urr_contracts::events::catalog::{EventCreated, EventSnapshot, EventUpdated};
use urr_contracts::events::reservation::{
    BoxOfficeSold, REFUNDED_AT_BOX_OFFICE, ReservationCancelled, ReservationPartlyCancelled,
};
use urr_contracts::events::transfer::TransferCompleted;
use urr_contracts::events::{catalog, reservation, transfer};
use urr_kernel::{DomainEvent, EventData, Won};
use urr_storage::Tx;

use crate::domain::payment::PaymentId;
use crate::domain::refund::RefundOrigin;
use crate::saga::{
    CancelledPurchase, RefundRejection, record_sale, refund_handed_over, start_cancelled_refund,
};
use crate::store::organisers;

/// The name of the consumer group.
pub const GROUP: &str = "payment-service-group";

pub const TOPICS: &[&str] = &[catalog::TOPIC, reservation::TOPIC, transfer::TOPIC];

/// The types that [`handle`] handles. It ignores others.
pub const TYPES: &[&str] = &[
    BoxOfficeSold::TYPE,
    ReservationCancelled::TYPE,
    ReservationPartlyCancelled::TYPE,
    TransferCompleted::TYPE,
    EventCreated::TYPE,
    EventUpdated::TYPE,
];

/// Starts the refund of a purchase that its buyer no longer owns.
///
/// A refund that cannot start is no rejection, because somebody is owed money: it becomes a dead
/// letter for an operator.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    let cancelled = match event.event_type.as_str() {
        ReservationCancelled::TYPE => cancelled(decode_event(event)?),
        ReservationPartlyCancelled::TYPE => Some(partly_cancelled(decode_event(event)?)),
        TransferCompleted::TYPE => transferred(decode_event(event)?),
        BoxOfficeSold::TYPE => {
            record_sale(tx, &decode_event(event)?, context)?;
            return Ok(HandlerOutcome::Done);
        }
        EventCreated::TYPE => return keep_organiser(tx, &decode_event::<EventCreated>(event)?.0),
        EventUpdated::TYPE => return keep_organiser(tx, &decode_event::<EventUpdated>(event)?.0),
        _ => None,
    };
    let Some(cancelled) = cancelled else { return Ok(HandlerOutcome::Ignored) };
    if cancelled.refund_amount < Won::ZERO {
        return Err(HandleError::Poison("a refund below zero".to_owned()));
    }
    match start_cancelled_refund(tx, &cancelled, context) {
        Ok(_) => {
            if cancelled.reason.starts_with(REFUNDED_AT_BOX_OFFICE) {
                refund_handed_over(tx, cancelled.payment_id, context)?;
            }
            Ok(HandlerOutcome::Done)
        }
        Err(RefundRejection::Storage(error)) => Err(error.into()),
        Err(rejection @ RefundRejection::NotRecorded) => {
            Err(HandleError::NotYet(rejection.to_string()))
        }
        Err(rejection) => Err(HandleError::Poison(rejection.to_string())),
    }
}

fn keep_organiser(tx: &mut Tx<'_>, event: &EventSnapshot) -> Result<HandlerOutcome, HandleError> {
    organisers::organiser_upsert(tx, event.event_id, event.revision, event.organiser_id)?;
    Ok(HandlerOutcome::Done)
}

/// None for a reservation that was never paid.
fn cancelled(event: ReservationCancelled) -> Option<CancelledPurchase> {
    Some(CancelledPurchase {
        payment_id: PaymentId(event.payment_id?),
        reservation_id: event.reservation.reservation_id,
        origin: RefundOrigin::Cancelled,
        refund_amount: event.refund_amount,
        part_price: None,
        reason: event.reason,
    })
}

/// Some tickets were cancelled, the others stay.
fn partly_cancelled(event: ReservationPartlyCancelled) -> CancelledPurchase {
    CancelledPurchase {
        payment_id: PaymentId(event.payment_id),
        reservation_id: event.reservation.reservation_id,
        origin: RefundOrigin::PartlyCancelled(event.cancellation_id.to_string()),
        refund_amount: event.refund_amount,
        part_price: Some(event.cancelled_amount),
        reason: event.reason,
    }
}

/// The seller gets back what they paid; the new owner pays for the ticket. None for a seller who
/// never paid.
fn transferred(event: TransferCompleted) -> Option<CancelledPurchase> {
    Some(CancelledPurchase {
        payment_id: PaymentId(event.seller_payment_id?),
        reservation_id: event.reservation_id,
        origin: RefundOrigin::Transferred,
        refund_amount: event.seller_payout,
        part_price: None,
        reason: TransferCompleted::TYPE.to_owned(),
    })
}
