//! What the ticket office learns from payments: what was paid, and what was given back.
//!
//! The payment service also calls directly, and is usually first. Whatever comes second finds that
//! all is done (K-1). A refusal of ours is no failure: it is final, and the payment service hears of
//! it where it calls, and gives the money back (K-9).

use std::fmt::Display;

use serde::Deserialize;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, Uuid, Won};
use urr_storage::Tx;

use crate::consumer::decode;
use crate::payables::membership_events as memberships;
use crate::payables::transfer_events as transfers;
use crate::reservations::payment::{HoldConfirmation, confirm, mark_refunded};
use crate::reservations::store as transitions;
use crate::{
    CompletedPayment, PaymentClaim, ReservationId, ReservationRejection, ReturnedMoney, SOURCE,
    TransitionError,
};

const OF_RESERVATION: &str = "reservation";
const OF_MEMBERSHIP: &str = "membership";
const OF_TRANSFER: &str = "transfer";

/// Money that goes back because we cancelled. For other causes we have nothing to mark.
const CAUSE_CANCELLED: &str = "cancelled";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PaymentOf {
    payment_type: String,
}

/// What was paid for. A reservation is named twice, if at all.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    reservation_id: Option<Uuid>,
    reference_id: Option<Uuid>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PaymentConfirmed {
    payment_id: Uuid,
    #[serde(flatten)]
    target: Target,
    amount: Won,
    payment_method: Option<String>,
    fencing_token: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PaymentRefunded {
    payment_id: Uuid,
    #[serde(flatten)]
    target: Target,
    amount: Won,
    /// What we asked for, where a part was given back before.
    requested_amount: Option<Won>,
    cause: Option<String>,
}

impl Target {
    fn id(&self) -> Result<ReservationId, HandleError> {
        match (self.reservation_id, self.reference_id) {
            (Some(id), Some(other)) if id != other => {
                Err(HandleError::Poison("it names two reservations".to_owned()))
            }
            (Some(id), _) | (None, Some(id)) => Ok(ReservationId(id)),
            (None, None) => Err(HandleError::Poison("it names no reservation".to_owned())),
        }
    }
}

/// What else is paid for does not concern us.
pub fn payment_confirmed(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let PaymentOf { payment_type } = decode(event)?;
    match payment_type.as_str() {
        OF_RESERVATION => reservation_paid(tx, event, context),
        OF_MEMBERSHIP => memberships::membership_paid(tx, event, context),
        OF_TRANSFER => transfers::transfer_paid(tx, event, context),
        _ => Ok(Handled::Ignored),
    }
}

pub fn payment_refunded(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let PaymentOf { payment_type } = decode(event)?;
    match payment_type.as_str() {
        OF_RESERVATION => reservation_refunded(tx, event, context),
        OF_MEMBERSHIP => memberships::membership_refunded(tx, event, context),
        OF_TRANSFER => transfers::transfer_refunded(tx, event, context),
        _ => Ok(Handled::Ignored),
    }
}

fn reservation_paid(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let paid: PaymentConfirmed = decode(event)?;
    let id = paid.target.id()?;
    let PaymentConfirmed { payment_id, amount, fencing_token, payment_method, .. } = paid;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let Some(record) = transitions::record_find(tx, id)? else {
        return outcome(event, Err(ReservationRejection::NotFound.into()));
    };
    let ticket_id = |number| context.derived_id(&format!("ticket {number}"));
    let confirming = HoldConfirmation {
        id,
        made: &CompletedPayment::new(claim, payment_method.as_deref()),
        ticket_ids: &(0..record.quantity).map(ticket_id).collect::<Vec<Uuid>>(),
        stamp: &context.stamp("confirmed", SOURCE),
        now: context.now,
    };
    let confirmed = confirm(tx, &confirming).map(|_| ());
    outcome(event, confirmed)
}

fn reservation_refunded(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let back: PaymentRefunded = decode(event)?;
    if back.cause.as_deref().is_some_and(|cause| cause != CAUSE_CANCELLED) {
        return Ok(Handled::Ignored);
    }
    let came = ReturnedMoney {
        asked: back.requested_amount.unwrap_or(back.amount),
        returned: back.amount,
    };
    let marked = mark_refunded(tx, back.target.id()?, back.payment_id, came, context.now);
    outcome(event, marked.map(|_| ()))
}

fn outcome(event: &Event, step: Result<(), TransitionError>) -> Result<Handled, HandleError> {
    match step {
        Ok(()) => Ok(Handled::Done),
        Err(TransitionError::Storage(error)) => Err(error.into()),
        Err(TransitionError::Rejected(refused)) => Ok(refusal(event, &refused)),
    }
}

pub fn refusal(event: &Event, refused: &impl Display) -> Handled {
    let kind = &event.event_type;
    tracing::warn!(event_id = %event.id, kind, %refused, "news of a payment has no effect");
    Handled::Rejected { reason: refused.to_string() }
}
