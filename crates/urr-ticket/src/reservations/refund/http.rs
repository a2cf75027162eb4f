//! The route of the refund preview.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, ErrorBody, Json, Path, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{RefundPreview, ReservationId, TicketService};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(preview_refund))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RefundPreviewView {
    #[schema(value_type = i64, example = 180_000)]
    refund_amount: Won,
    /// What would be kept; refund and fee together are the paid amount.
    #[schema(value_type = i64, example = 20_000)]
    cancellation_fee: Won,
    /// `UNPAID`, `FULL` (the event was cancelled), `GRACE`, `FREE_DAYS`, `PERCENT_…` (so much of each
    /// ticket) or `PERCENT_…_CAPPED` (but not more than a fixed fee).
    #[schema(example = "PERCENT_10")]
    rule: String,
    /// Until when it is valid, unless the event is moved or cancelled.
    #[schema(value_type = String, format = DateTime)]
    until: Timestamp,
}

/// The refund if one's own reservation were cancelled now, and until when it is valid.
#[utoipa::path(
    get, path = "/api/reservations/{id}/refund-preview", tag = "reservations",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = RefundPreviewView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
async fn preview_refund(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(id): Path<Uuid>,
) -> Result<Json<RefundPreviewView>, ApiError> {
    let RefundPreview { refund, until } =
        ticket.preview_refund(ReservationId(id), user.user_id).await?;
    Ok(Json(RefundPreviewView {
        refund_amount: refund.refund,
        cancellation_fee: refund.fee,
        rule: refund.rule.name(),
        until,
    }))
}
