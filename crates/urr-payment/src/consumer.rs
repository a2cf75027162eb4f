//! What payments learn from the ticket service: what was cancelled or handed over, and how much goes
//! back (M-1, M-8).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, Uuid, Won};
use urr_storage::Tx;

use crate::domain::payment::PaymentId;
use crate::domain::refund::RefundCause;
use crate::saga::{CancelledPurchase, RefundRejection, start_cancelled_refund};

/// The name of the payment service among the consumers.
pub const GROUP: &str = "payment-service-group";

/// The topics that it listens to.
pub const TOPICS: &[&str] = &["reservation-events", "transfer-events"];

/// Why the seller of a ticket gets their money back.
const HANDED_OVER: &str = "TRANSFER_COMPLETED";

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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransferCompleted {
    reservation_id: Uuid,
    /// What the seller had paid.
    seller_payout: Won,
    /// Missing if the seller had never paid.
    seller_payment_id: Option<Uuid>,
}

/// Begins the refund of what was paid and is not its buyer's any more.
///
/// A refund that cannot begin is no rejection: somebody is owed money. It becomes a dead letter that
/// somebody has to look at.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let undone = match event.event_type.as_str() {
        "RESERVATION_CANCELLED" => cancelled(decode(event)?),
        "TRANSFER_COMPLETED" => handed_over(decode(event)?),
        _ => None,
    };
    let Some(undone) = undone else { return Ok(Handled::Ignored) };
    if undone.refund_amount < Won::ZERO {
        return Err(HandleError::Poison("a refund below zero".to_owned()));
    }
    match start_cancelled_refund(tx, &undone, context) {
        Ok(_) => Ok(Handled::Done),
        Err(RefundRejection::Storage(error)) => Err(error.into()),
        Err(refused) => Err(HandleError::Poison(refused.to_string())),
    }
}

fn cancelled(cancelled: ReservationCancelled) -> Option<CancelledPurchase> {
    Some(CancelledPurchase {
        payment_id: PaymentId(cancelled.payment_id?),
        reservation_id: cancelled.reservation_id,
        cause: RefundCause::Cancelled,
        refund_amount: cancelled.refund_amount,
        reason: cancelled.reason,
    })
}

/// The seller gets back what they paid; the ticket is paid by its new owner.
fn handed_over(completed: TransferCompleted) -> Option<CancelledPurchase> {
    Some(CancelledPurchase {
        payment_id: PaymentId(completed.seller_payment_id?),
        reservation_id: completed.reservation_id,
        cause: RefundCause::Transferred,
        refund_amount: completed.seller_payout,
        reason: HANDED_OVER.to_owned(),
    })
}

fn decode<T: DeserializeOwned>(event: &Event) -> Result<T, HandleError> {
    T::deserialize(&event.data).map_err(|error| {
        let kind = &event.event_type;
        HandleError::Poison(format!("the data of a {kind} are not what they should be: {error}"))
    })
}
