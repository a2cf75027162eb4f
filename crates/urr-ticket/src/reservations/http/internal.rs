//! The internal calls about reservations: payments cancel and reconcile them, mails describe them.

use axum::extract::State;
use axum::routing::{get, post};
use urr_contracts::internal::ticket::{
    CANCEL_RESERVATION, CancelReservationBody, GET_RESERVATION_SUMMARY, LIST_PAID_RESERVATIONS,
    PaidReservationPage, PaidReservationQuery, PayableAnswer, ReservationSummary,
    ReservationSummaryAnswer,
};
use urr_kernel::Uuid;
use urr_service::{ApiError, Context, Json, Path, Query, internal_routes};
use utoipa_axum::router::OpenApiRouter;

use crate::payables::reservation_view;
use crate::reservations::http::admin::parse_reason;
use crate::{AdminCancel, FeeMode, ReservationId, ReservationRecord, TicketService};

const PAID_PER_PAGE: u32 = 200;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<TicketService> {
    let for_payments = OpenApiRouter::new()
        .route(LIST_PAID_RESERVATIONS.path, get(list_paid_reservations))
        .route(CANCEL_RESERVATION.path, post(cancel_reservation));
    let for_mails =
        OpenApiRouter::new().route(GET_RESERVATION_SUMMARY.path, get(get_reservation_summary));
    internal_routes(CANCEL_RESERVATION.callers, for_payments)
        .merge(internal_routes(GET_RESERVATION_SUMMARY.callers, for_mails))
}

/// Every reservation that was ever paid, in the order of ids, for reconciliation.
async fn list_paid_reservations(
    State(ticket): State<TicketService>,
    Query(query): Query<PaidReservationQuery>,
) -> Result<Json<PaidReservationPage>, ApiError> {
    let (records, more) = ticket.list_paid(query.after.map(ReservationId), PAID_PER_PAGE).await?;
    let now = ticket.clock.now();
    let reservations = records.into_iter().map(|record| reservation_view(record, now)).collect();
    Ok(Json(PaidReservationPage { reservations, more }))
}

/// Cancels for a user who asks for a refund where they paid. The refund is decided and announced
/// here; the payment service follows the announcement, so that there is one way only.
async fn cancel_reservation(
    State(ticket): State<TicketService>,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<CancelReservationBody>,
) -> Result<Json<PayableAnswer>, ApiError> {
    let id = ReservationId(id);
    let record = match (body.user_id, body.admin_id) {
        (Some(user_id), None) => ticket.cancel_reservation(id, user_id, context).await?,
        (None, Some(admin_id)) => {
            let (reason, payment_id) = (parse_reason(&body.reason)?, body.payment_id);
            let by = AdminCancel { admin_id, reason, fee: FeeMode::Waived, payment_id };
            ticket.cancel_as_admin(id, by, context).await?
        }
        _ => {
            let sentence = "Either the owner or an administrator cancels.";
            return Err(ApiError::bad_request("INVALID_CANCELLER", sentence));
        }
    };
    let payable = reservation_view(record, ticket.clock.now());
    Ok(Json(PayableAnswer { payable }))
}

async fn get_reservation_summary(
    State(ticket): State<TicketService>,
    Path(id): Path<Uuid>,
) -> Result<Json<ReservationSummaryAnswer>, ApiError> {
    let details = ticket.reservation_details(ReservationId(id)).await?;
    let places = details.places();
    let ReservationRecord { reservation, event_title, venue_name, starts_at, .. } = details.record;
    let reservation = ReservationSummary {
        reservation_number: reservation.number,
        event_id: reservation.event_id,
        event_title,
        venue_name,
        event_starts_at: starts_at,
        places,
        quantity: reservation.quantity,
    };
    Ok(Json(ReservationSummaryAnswer { reservation }))
}
