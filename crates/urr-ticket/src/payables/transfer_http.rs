//! What payments ask and say about transfers. Nobody else is let in.

use axum::extract::State;
use axum::routing::{get, post};
use serde::Serialize;
use urr_kernel::{Uuid, Won};
use urr_service::{ApiError, Context, Internal, Json, Path, Query};
use utoipa_axum::router::OpenApiRouter;

use crate::payables::http::{
    ConfirmBody, PinBody, RefundedBody, UnpinBody, ValidateQuery, only_payments,
};
use crate::{
    CompletedPayment, PaymentClaim, ReturnedMoney, TicketService, TransferId, TransferOffer,
};

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .route("/internal/ticket/transfers/{id}", get(get_state))
        .route("/internal/ticket/transfers/{id}/validate", get(validate))
        .route("/internal/ticket/transfers/{id}/pin", post(pin))
        .route("/internal/ticket/transfers/{id}/unpin", post(unpin))
        .route("/internal/ticket/transfers/{id}/confirm", post(confirm))
        .route("/internal/ticket/transfers/{id}/refunded", post(refunded))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateView {
    id: Uuid,
    /// Only of one that can be paid.
    order_name: Option<String>,
    /// Who pays: whoever asks, has pinned it or has bought it.
    user_id: Option<Uuid>,
    reservation_id: Uuid,
    event_id: Uuid,
    seller_id: Uuid,
    status: &'static str,
    payment_status: &'static str,
    original_price: Won,
    /// Part of the total.
    fee: Won,
    total_amount: Won,
    booking_fee: Won,
    fencing_token: i64,
    pinned_by: Option<Uuid>,
    payment_id: Option<Uuid>,
    refund_amount: Option<Won>,
}

#[derive(Serialize)]
struct StateAnswer {
    transfer: StateView,
}

fn answer(offer: &TransferOffer) -> Json<StateAnswer> {
    let transfer = &offer.transfer;
    let view = StateView {
        id: transfer.id.0,
        order_name: None,
        user_id: transfer.buyer_id,
        reservation_id: transfer.reservation_id.0,
        event_id: transfer.event_id,
        seller_id: transfer.seller_id,
        status: transfer.status.name(),
        payment_status: offer.payment_status().name(),
        original_price: transfer.price.original,
        fee: transfer.price.fee,
        total_amount: transfer.price.total(),
        booking_fee: Won::ZERO,
        fencing_token: transfer.number,
        pinned_by: transfer.pinned_by,
        payment_id: transfer.payment_id,
        refund_amount: offer.refund_amount(),
    };
    Json(StateAnswer { transfer: view })
}

/// A transfer in whatever state, for reconciliation.
async fn get_state(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    Ok(answer(&ticket.find_transfer(TransferId(id)).await?))
}

/// A transfer if this user can buy it now.
async fn validate(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Query(query): Query<ValidateQuery>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let (offer, order_name) = ticket.validate_transfer(TransferId(id), query.user_id).await?;
    let Json(mut payable) = answer(&offer);
    payable.transfer.order_name = Some(order_name);
    payable.transfer.user_id = Some(query.user_id);
    Ok(Json(payable))
}

async fn pin(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<PinBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let PinBody { payment_id, user_id, fencing_token, amount } = body;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    Ok(answer(&ticket.pin_transfer(TransferId(id), user_id, claim).await?))
}

async fn unpin(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<UnpinBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    Ok(answer(&ticket.unpin_transfer(TransferId(id), body.payment_id).await?))
}

async fn confirm(
    State(ticket): State<TicketService>,
    caller: Internal,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<ConfirmBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let ConfirmBody { payment_id, fencing_token, amount, payment_method } = body;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let made = CompletedPayment::new(claim, payment_method.as_deref());
    Ok(answer(&ticket.complete_transfer(TransferId(id), made, context).await?))
}

async fn refunded(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<RefundedBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let RefundedBody { payment_id, amount: asked, returned_amount } = body;
    let back = ReturnedMoney { asked, returned: returned_amount.unwrap_or(asked) };
    Ok(answer(&ticket.mark_transfer_refunded(TransferId(id), payment_id, back).await?))
}
