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

/// Returns what a cancellation would refund now.
///
/// The amounts stay the same until `until` unless the event is moved or cancelled. The policy of
/// the booking applies, by calendar days in Korea: free within 24 hours of the booking if the event
/// is at least 3 days away, and 10 days before the event within 7 days of the booking; otherwise
/// the fee is 10 % (at most 4,000 won per ticket 10 days before), 10 % up to 7 days, 20 % up to 3
/// days, 30 % up to 1 day before, and 90 % on the day. The booking fee goes back on the day of the
/// booking only.
///
/// Errors: 404 `RESERVATION_NOT_FOUND`; 409 `RESERVATION_CANCELLED`, `EVENT_STARTED`,
/// `ALREADY_CHECKED_IN`, `RESERVATION_LISTED`.
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
