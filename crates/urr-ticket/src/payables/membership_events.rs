//! What memberships learn: artists and their prices from the catalogue, what was paid and given
//! back from payments.

use serde::Deserialize;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, Uuid, Won};
use urr_storage::{Tx, storable};

use crate::consumer::decode;
use crate::memberships::store::{ArtistUpdate, artist_upsert};
use crate::memberships::{MembershipActivation, activate, mark_refunded};
use crate::payables::events::refusal;
use crate::{CompletedPayment, MembershipError, MembershipId, PaymentClaim, SOURCE};

/// `ARTIST_CREATED`, `ARTIST_UPDATED`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArtistChanged {
    artist_id: Uuid,
    name: String,
    membership_price: Won,
}

pub fn update_artist(tx: &mut Tx<'_>, event: &Event) -> Result<Handled, HandleError> {
    let ArtistChanged { artist_id: id, name, membership_price } = decode(event)?;
    if membership_price < Won::ZERO {
        return Err(HandleError::Poison(format!(
            "the price of a membership is {membership_price}"
        )));
    }
    let announced_at = storable(event.time);
    artist_upsert(tx, &ArtistUpdate { id, name, membership_price, announced_at })?;
    Ok(Handled::Done)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MembershipPaid {
    payment_id: Uuid,
    reference_id: Uuid,
    amount: Won,
    payment_method: Option<String>,
    fencing_token: i64,
}

/// The payment service also calls directly, and is usually first: what comes second finds that all
/// is done.
pub fn membership_paid(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let paid: MembershipPaid = decode(event)?;
    let MembershipPaid { payment_id, amount, fencing_token, payment_method, .. } = paid;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let activating = MembershipActivation {
        id: MembershipId(paid.reference_id),
        made: &CompletedPayment::new(claim, payment_method.as_deref()),
        ended: &context.stamp("membership ended", SOURCE),
        activated: &context.stamp("membership activated", SOURCE),
        now: context.now,
    };
    outcome(event, activate(tx, &activating).map(|_| ()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MembershipRefunded {
    payment_id: Uuid,
    reference_id: Uuid,
    amount: Won,
    cause: Option<String>,
    is_whole: Option<bool>,
}

/// Money that goes back because we never gave anything for it.
const CAUSES_OF_OTHERS: [&str; 3] = ["not_confirmable", "duplicate", "mismatch"];

/// A year whose whole price is back counts no more. A part that was given back is a gift.
pub fn membership_refunded(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let back: MembershipRefunded = decode(event)?;
    let concerns_us = back.cause.as_deref().is_none_or(|cause| !CAUSES_OF_OTHERS.contains(&cause));
    if !concerns_us || back.is_whole == Some(false) {
        return Ok(Handled::Ignored);
    }
    let id = MembershipId(back.reference_id);
    // What is whole may have gone back in parts.
    let amount = if back.is_whole == Some(true) { None } else { Some(back.amount) };
    let marked = mark_refunded(tx, id, back.payment_id, amount, context.now);
    outcome(event, marked.map(|_| ()))
}

fn outcome(event: &Event, step: Result<(), MembershipError>) -> Result<Handled, HandleError> {
    match step {
        Ok(()) => Ok(Handled::Done),
        Err(MembershipError::Storage(error)) => Err(error.into()),
        Err(MembershipError::Rejected(refused)) => Ok(refusal(event, &refused)),
    }
}
