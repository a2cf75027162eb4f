//! What payments learn from the ticket office: what was cancelled, and how much goes back (M-1).

use serde::Deserialize;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, Uuid, Won};
use urr_storage::Tx;

use crate::domain::payment::PaymentId;
use crate::saga::{CancelledReservation, NotRefundable, cancelled_request};

/// The name of the payment service among the consumers.
pub const GROUP: &str = "payment-service-group";

/// The topics that it listens to.
pub const TOPICS: &[&str] = &["reservation-events"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReservationCancelled {
    reservation_id: Uuid,
    reason: String,
    #[serde(default)]
    refund_amount: Won,
    /// Missing if it was never paid.
    payment_id: Option<Uuid>,
}

/// Begins the refund of what was paid and cancelled.
///
/// A refund that cannot begin is no rejection: somebody is owed money. It becomes a dead letter that
/// somebody has to look at.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    if event.event_type != "RESERVATION_CANCELLED" {
        return Ok(Handled::Ignored);
    }
    let cancelled = ReservationCancelled::deserialize(&event.data).map_err(|error| {
        HandleError::Poison(format!(
            "the data of a cancellation are not what they should be: {error}"
        ))
    })?;
    let Some(payment_id) = cancelled.payment_id else { return Ok(Handled::Ignored) };
    if cancelled.refund_amount < Won::ZERO {
        return Err(HandleError::Poison("a refund below zero".to_owned()));
    }
    let cancelled = CancelledReservation {
        payment_id: PaymentId(payment_id),
        reservation_id: cancelled.reservation_id,
        refund_amount: cancelled.refund_amount,
        reason: cancelled.reason,
    };
    match cancelled_request(tx, &cancelled, context) {
        Ok(_) => Ok(Handled::Done),
        Err(NotRefundable::Storage(error)) => Err(error.into()),
        Err(refused) => Err(HandleError::Poison(refused.to_string())),
    }
}
