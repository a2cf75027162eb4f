//! Payment events: what was paid, and what was given back.
//!
//! The payment service also calls directly and is usually first; whatever comes second has no
//! effect (K-1, R-9). A rejection is final and no failure of the consumer: the payment service gets
//! it as the answer of its call and refunds the money (K-9).

use std::collections::{HashMap, HashSet};

use urr_bus::{HandleError, HandledEvent, HandlerContext, HandlerOutcome, decode_event};
use urr_contracts::events::payment::{
    PaymentConfirmed, PaymentRefunded, PaymentSnapshot, PaymentType, RefundCause,
};
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{DomainEvent, EventData, Uuid};
use urr_storage::{StorageError, Tx};

use crate::memberships::{MembershipActivation, activate};
use crate::metrics::TicketMetrics;
use crate::payables::PayableError;
use crate::reservations::hold_steps::{HoldConfirmation, HoldStep, HoldStepResult, take_steps};
use crate::transfers::{TransferCompletion, complete};
use crate::{
    CompletedPayment, MembershipError, MembershipId, PaymentClaim, ReservationId, ReturnedMoney,
    SOURCE, TransferError, TransferId, TransitionError, memberships, reservations, transfers,
};

/// Payments of types that are newer than this program are ignored, whatever else they say.
fn is_foreign(event: &DomainEvent) -> bool {
    let name = event.data["paymentType"].as_str();
    name.is_some_and(|name| name.parse::<PayableKind>().is_err())
}

/// What a payment event says was paid for.
struct PaidPayable {
    payment_type: PaymentType,
    id: Uuid,
    payment: CompletedPayment,
}

impl PaidPayable {
    fn read(event: &DomainEvent) -> Result<PaidPayable, HandleError> {
        let confirmed: PaymentConfirmed = decode_event(event)?;
        let (payment, amount) = (&confirmed.payment, confirmed.amount);
        check_target(payment)?;
        let fencing_token = confirmed.fencing_token.ok_or_else(|| poison("no fencing token"))?;
        let claim = PaymentClaim { payment_id: payment.payment_id, fencing_token, amount };
        Ok(PaidPayable {
            payment_type: payment.payment_type,
            id: payment.reference_id,
            payment: CompletedPayment::new(claim, payment.payment_method.as_deref()),
        })
    }
}

/// Gives the buyer what was paid for, if the call of the payment service has not done so.
pub fn payment_confirmed(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
    metrics: &TicketMetrics,
) -> Result<HandlerOutcome, HandleError> {
    if is_foreign(event) {
        return Ok(HandlerOutcome::Ignored);
    }
    let paid = PaidPayable::read(event)?;
    let result = match paid.payment_type {
        PaymentType::Reservation => {
            let confirmed = confirm_reservations(tx, &[(context, &paid)], metrics);
            confirmed?.pop().expect("one reservation has one result")
        }
        PaymentType::Transfer => complete_transfer(tx, context, paid.id, &paid.payment),
        PaymentType::Membership => activate_membership(tx, context, paid.id, &paid.payment),
        PaymentType::Other => return Ok(HandlerOutcome::Ignored),
    };
    outcome(event, result)
}

/// Confirms the reservations that events say are paid, all at once. Returns the outcomes by event.
/// Other events have none, nor has a second payment of a reservation, or one that cannot be read.
pub fn reservations_confirmed(
    tx: &mut Tx<'_>,
    events: &[HandledEvent<'_>],
    metrics: &TicketMetrics,
) -> Result<HashMap<Uuid, HandlerOutcome>, HandleError> {
    let (mut seen, mut confirmed) = (HashSet::new(), Vec::new());
    for (event, context) in events {
        if event.event_type != PaymentConfirmed::TYPE || is_foreign(event) {
            continue;
        }
        if let Ok(paid) = PaidPayable::read(event)
            && paid.payment_type == PaymentType::Reservation
            && seen.insert(paid.id)
        {
            confirmed.push((*event, context, paid));
        }
    }
    if confirmed.is_empty() {
        return Ok(HashMap::new());
    }
    let paid: Vec<(&HandlerContext, &PaidPayable)> =
        confirmed.iter().map(|(_, context, paid)| (*context, paid)).collect();
    let results = confirm_reservations(tx, &paid, metrics)?;
    let outcomes = confirmed.iter().zip(results);
    outcomes.map(|((event, ..), result)| Ok((event.id, outcome(event, result)?))).collect()
}

/// A reservation is named twice.
fn check_target(payment: &PaymentSnapshot) -> Result<(), HandleError> {
    let is_other = payment.reservation_id.is_some_and(|id| id != payment.reference_id);
    match payment.payment_type {
        PaymentType::Reservation if is_other => Err(poison("two reservations")),
        _ => Ok(()),
    }
}

fn poison(what: &str) -> HandleError {
    HandleError::Poison(format!("the payment names {what}"))
}

/// Confirms different reservations. Returns the result of each.
fn confirm_reservations(
    tx: &mut Tx<'_>,
    paid: &[(&HandlerContext, &PaidPayable)],
    metrics: &TicketMetrics,
) -> Result<Vec<Result<(), PayableError>>, HandleError> {
    let ticket_ids: Vec<_> = paid
        .iter()
        .map(|(context, _)| |number| context.derived_id(&format!("ticket {number}")))
        .collect();
    let step = |((context, paid), ticket_id)| {
        let (context, paid): (&HandlerContext, &PaidPayable) = (context, paid);
        HoldStep::Confirm(Box::new(HoldConfirmation {
            id: ReservationId(paid.id),
            payment: &paid.payment,
            ticket_id,
            stamp: context.event_metadata("confirmed", SOURCE),
            moved_stamp: context.event_metadata("rescheduled", SOURCE),
            now: context.now,
        }))
    };
    let ids = ticket_ids.iter().map(|ticket_id| ticket_id as &dyn Fn(usize) -> Uuid);
    let steps: Vec<HoldStep<'_>> = paid.iter().copied().zip(ids).map(step).collect();
    let taken = take_steps(tx, &steps)?;
    let result = |((context, _), taken): (&(&HandlerContext, &PaidPayable), HoldStepResult)| {
        // Whoever confirms counts: this event or the call of the payment service, not both.
        if taken?.is_some() {
            let metrics = metrics.clone();
            context.after_commit(move || metrics.count_confirmed());
        }
        Ok(())
    };
    Ok(paid.iter().zip(taken).map(result).collect())
}

fn complete_transfer(
    tx: &mut Tx<'_>,
    context: &HandlerContext,
    id: Uuid,
    payment: &CompletedPayment,
) -> Result<(), PayableError> {
    let completion = TransferCompletion {
        id: TransferId(id),
        payment,
        number_id: &|number| context.derived_id(&format!("reissued ticket {number}")),
        stamp: &context.event_metadata("transfer completed", SOURCE),
        moved_stamp: &context.event_metadata("rescheduled", SOURCE),
        now: context.now,
    };
    complete(tx, &completion)?;
    Ok(())
}

fn activate_membership(
    tx: &mut Tx<'_>,
    context: &HandlerContext,
    id: Uuid,
    payment: &CompletedPayment,
) -> Result<(), PayableError> {
    let activation = MembershipActivation {
        id: MembershipId(id),
        payment,
        ended: &context.event_metadata("membership ended", SOURCE),
        activated: &context.event_metadata("membership activated", SOURCE),
        now: context.now,
    };
    activate(tx, &activation)?;
    Ok(())
}

/// Notes what has gone back, unless the refund had nothing to do with the payable: an
/// administrator's gift, or a charge for which nothing was given.
pub fn payment_refunded(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    if is_foreign(event) {
        return Ok(HandlerOutcome::Ignored);
    }
    let refunded: PaymentRefunded = decode_event(event)?;
    let PaymentRefunded { payment, amount, requested_amount, cause, is_whole, .. } = refunded;
    check_target(&payment)?;
    let money = ReturnedMoney { requested: requested_amount.unwrap_or(amount), returned: amount };
    let (id, payment_id, now) = (payment.reference_id, payment.payment_id, context.now);
    let result: Result<(), PayableError> = match (payment.payment_type, cause) {
        (PaymentType::Reservation, RefundCause::Cancelled) => {
            let id = ReservationId(id);
            let marked = reservations::payment::mark_refunded(tx, id, payment_id, money, now);
            marked.map(drop).map_err(PayableError::from)
        }
        (PaymentType::Transfer, RefundCause::Cancelled | RefundCause::Transferred) => {
            let marked = transfers::mark_refunded(tx, TransferId(id), payment_id, money, now);
            marked.map(drop).map_err(PayableError::from)
        }
        (_, RefundCause::NotConfirmable | RefundCause::Duplicate | RefundCause::Mismatch) => {
            return Ok(HandlerOutcome::Ignored);
        }
        // A year whose whole price is back does not count any more; a part is a gift.
        (PaymentType::Membership, _) if is_whole != Some(false) => {
            // The whole price may have gone back in parts.
            let amount = if is_whole == Some(true) { None } else { Some(amount) };
            let marked = memberships::mark_refunded(tx, MembershipId(id), payment_id, amount, now);
            marked.map(drop).map_err(PayableError::from)
        }
        _ => return Ok(HandlerOutcome::Ignored),
    };
    outcome(event, result)
}

fn outcome(
    event: &DomainEvent,
    result: Result<(), PayableError>,
) -> Result<HandlerOutcome, HandleError> {
    let rejection = match result {
        Ok(()) => return Ok(HandlerOutcome::Done),
        Err(error) => match storage_error(error) {
            Ok(storage) => return Err(storage.into()),
            Err(rejection) => rejection,
        },
    };
    let kind = &event.event_type;
    tracing::warn!(event_id = %event.id, kind, rejection, "a payment event has no effect");
    Ok(HandlerOutcome::Rejected { reason: rejection })
}

/// The failure of the database, or the sentence of the rule that said no.
fn storage_error(error: PayableError) -> Result<StorageError, String> {
    match error {
        PayableError::Reservation(TransitionError::Storage(error))
        | PayableError::Transfer(TransferError::Storage(error))
        | PayableError::Membership(MembershipError::Storage(error)) => Ok(error),
        rejection => Err(rejection.to_string()),
    }
}
