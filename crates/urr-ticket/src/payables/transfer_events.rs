//! What transfers learn from payments: what was paid and given back.

use serde::Deserialize;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, Uuid, Won};
use urr_storage::Tx;

use crate::consumer::decode;
use crate::payables::events::refusal;
use crate::reservations::store::record_find;
use crate::transfers::store::transfer_find;
use crate::transfers::{TransferCompletion, complete, mark_refunded};
use crate::{
    CompletedPayment, PaymentClaim, ReturnedMoney, SOURCE, TransferError, TransferId,
    TransferRejection,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransferPaid {
    payment_id: Uuid,
    reference_id: Uuid,
    amount: Won,
    payment_method: Option<String>,
    fencing_token: i64,
}

/// The payment service also calls directly, and is usually first: what comes second finds that all
/// is done (K-1).
pub fn transfer_paid(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let paid: TransferPaid = decode(event)?;
    let TransferPaid { payment_id, amount, fencing_token, payment_method, .. } = paid;
    let id = TransferId(paid.reference_id);
    let Some(transfer) = transfer_find(tx, id)? else {
        return outcome(event, Err(TransferRejection::NotFound.into()));
    };
    let record = record_find(tx, transfer.reservation_id)?;
    let quantity = record.expect("reservations are never deleted").quantity;
    let number_id = |number| context.derived_id(&format!("reissued ticket {number}"));
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let completing = TransferCompletion {
        id,
        made: &CompletedPayment::new(claim, payment_method.as_deref()),
        number_ids: &(0..quantity).map(number_id).collect::<Vec<Uuid>>(),
        stamp: &context.stamp("transfer completed", SOURCE),
        now: context.now,
    };
    outcome(event, complete(tx, &completing).map(|_| ()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransferRefunded {
    payment_id: Uuid,
    reference_id: Uuid,
    amount: Won,
    /// What we asked for, where a part was given back before.
    requested_amount: Option<Won>,
    cause: Option<String>,
}

/// Money that goes back because its owner cancelled, or sold the ticket to the next one.
const CAUSES: [&str; 2] = ["cancelled", "transferred"];

pub fn transfer_refunded(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let back: TransferRefunded = decode(event)?;
    if back.cause.as_deref().is_some_and(|cause| !CAUSES.contains(&cause)) {
        return Ok(Handled::Ignored);
    }
    let id = TransferId(back.reference_id);
    let came = ReturnedMoney {
        asked: back.requested_amount.unwrap_or(back.amount),
        returned: back.amount,
    };
    let marked = mark_refunded(tx, id, back.payment_id, came, context.now);
    outcome(event, marked.map(|_| ()))
}

fn outcome(event: &Event, step: Result<(), TransferError>) -> Result<Handled, HandleError> {
    match step {
        Ok(()) => Ok(Handled::Done),
        Err(TransferError::Storage(error)) => Err(error.into()),
        Err(TransferError::Rejected(refused)) => Ok(refusal(event, &refused)),
    }
}
