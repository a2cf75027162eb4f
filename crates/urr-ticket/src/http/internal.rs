//! What payments ask and say. Only the payment service is let in.

use axum::extract::State;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, Caller, Context, Internal, Json, Path, Query};
use utoipa_axum::router::OpenApiRouter;

use crate::{PaymentClaim, PaymentMade, Record, ReservationId, Ticket};

const METHOD_CHARS_MAX: usize = 50;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<Ticket> {
    OpenApiRouter::new()
        .route("/internal/ticket/reservations/{id}", get(get_state))
        .route("/internal/ticket/reservations/{id}/validate", get(validate))
        .route("/internal/ticket/reservations/{id}/pin", post(pin))
        .route("/internal/ticket/reservations/{id}/unpin", post(unpin))
        .route("/internal/ticket/reservations/{id}/confirm", post(confirm))
        .route("/internal/ticket/reservations/{id}/refunded", post(refunded))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateView {
    id: Uuid,
    reservation_number: String,
    user_id: Uuid,
    event_id: Uuid,
    status: &'static str,
    payment_status: &'static str,
    total_amount: Won,
    booking_fee: Won,
    quantity: u32,
    expires_at: Timestamp,
    fencing_token: i64,
    pinned_by: Option<Uuid>,
    payment_id: Option<Uuid>,
    refund_amount: Option<Won>,
}

#[derive(Serialize)]
struct StateAnswer {
    reservation: StateView,
}

fn answer(ticket: &Ticket, record: Record) -> Json<StateAnswer> {
    let status = record.status(ticket.clock.now()).name();
    let Record { reservation, quantity, payment_id, refund_amount, .. } = record;
    Json(StateAnswer {
        reservation: StateView {
            id: reservation.id.0,
            reservation_number: reservation.number,
            user_id: reservation.user_id,
            event_id: reservation.event_id,
            status,
            payment_status: reservation.payment_status.name(),
            total_amount: reservation.total_amount,
            booking_fee: reservation.booking_fee,
            quantity,
            expires_at: reservation.expires_at,
            fencing_token: reservation.fence,
            pinned_by: reservation.pinned_by,
            payment_id,
            refund_amount,
        },
    })
}

fn only_payments(caller: Internal) -> Result<(), ApiError> {
    match caller.caller() {
        Caller::Payment => Ok(()),
        _ => Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for the payment service.")),
    }
}

/// A reservation in whatever state, for reconciliation.
async fn get_state(
    State(ticket): State<Ticket>,
    caller: Internal,
    Path(id): Path<Uuid>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let record = ticket.find_reservation(ReservationId(id)).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ValidateQuery {
    user_id: Uuid,
}

/// A user's reservation if it can be paid now.
async fn validate(
    State(ticket): State<Ticket>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Query(query): Query<ValidateQuery>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let record = ticket.validate_for_payment(ReservationId(id), query.user_id).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PinBody {
    payment_id: Uuid,
    user_id: Uuid,
    fencing_token: i64,
    amount: Won,
}

async fn pin(
    State(ticket): State<Ticket>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<PinBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let PinBody { payment_id, user_id, fencing_token, amount } = body;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let record = ticket.pin_hold(ReservationId(id), user_id, claim).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UnpinBody {
    payment_id: Uuid,
}

async fn unpin(
    State(ticket): State<Ticket>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<UnpinBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let record = ticket.unpin_hold(ReservationId(id), body.payment_id).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfirmBody {
    payment_id: Uuid,
    fencing_token: i64,
    amount: Won,
    payment_method: String,
}

async fn confirm(
    State(ticket): State<Ticket>,
    caller: Internal,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<ConfirmBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let ConfirmBody { payment_id, fencing_token, amount, payment_method: method } = body;
    if !(1..=METHOD_CHARS_MAX).contains(&method.chars().count()) {
        let sentence = format!("A payment method has 1 to {METHOD_CHARS_MAX} characters.");
        return Err(ApiError::bad_request("INVALID_PAYMENT_METHOD", sentence));
    }
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let made = PaymentMade { claim, method };
    let record = ticket.confirm_reservation(ReservationId(id), made, context).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RefundedBody {
    payment_id: Uuid,
    amount: Won,
}

async fn refunded(
    State(ticket): State<Ticket>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<RefundedBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let RefundedBody { payment_id, amount } = body;
    let record = ticket.mark_refunded(ReservationId(id), payment_id, amount).await?;
    Ok(answer(&ticket, record))
}
