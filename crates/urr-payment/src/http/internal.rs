//! What the ticket office asks.

use axum::extract::State;
use axum::routing::get;
use serde::Serialize;
use urr_kernel::{Uuid, Won};
use urr_service::{ApiError, Caller, Internal, Json, Path};
use utoipa_axum::router::OpenApiRouter;

use crate::Payments;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<Payments> {
    OpenApiRouter::new().route("/internal/payment/by-reservation/{id}", get(get_by_reservation))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ByReservationView {
    found: bool,
    reservation_id: Uuid,
    payment_id: Option<Uuid>,
    status: Option<&'static str>,
    method: Option<String>,
    amount: Option<Won>,
}

/// The newest payment of a reservation.
async fn get_by_reservation(
    State(payments): State<Payments>,
    caller: Internal,
    Path(reservation_id): Path<Uuid>,
) -> Result<Json<ByReservationView>, ApiError> {
    if caller.caller() != Caller::Ticket {
        return Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for the ticket office."));
    }
    let newest = payments.list_of_target(reservation_id).await?.into_iter().next();
    Ok(Json(ByReservationView {
        found: newest.is_some(),
        reservation_id,
        payment_id: newest.as_ref().map(|payment| payment.id.0),
        status: newest.as_ref().map(|payment| payment.status.name()),
        amount: newest.as_ref().map(|payment| payment.amount),
        method: newest.and_then(|payment| payment.method),
    }))
}
