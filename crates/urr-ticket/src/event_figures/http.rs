//! What the organiser of an event looks at before they cancel it, and its reservations as a file.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, Context, CsvLanguage, CsvQuery, Errors, EventReader, Json, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::CancelFigures;
use crate::TicketService;
use crate::http::event_not_found;
use crate::reservations::export::ReservationExport;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(preview_event_cancellation))
        .routes(routes!(export_reservations))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancelPreviewView {
    event_id: Uuid,
    at: Timestamp,
    #[serde(flatten)]
    figures: CancelFigures,
    /// Payments whose outcome is not known yet; null while the payment service is away.
    unclear_payments: Option<u64>,
    /// What they are about.
    #[schema(value_type = Option<i64>)]
    unclear_amount: Option<Won>,
}

/// Returns what would end and be paid back if the event were cancelled now.
///
/// For its organiser, support and administrators. Nothing is changed, and more may be sold before
/// the event is cancelled. Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/cancel-preview", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = CancelPreviewView), Errors<401, 403, 404>),
)]
async fn preview_event_cancellation(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
) -> Result<Json<CancelPreviewView>, ApiError> {
    ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    ticket.check_event(event_id, reader.event_scope()).await?;
    let figures = ticket.cancel_figures(event_id).await?;
    let unclear = ticket.unclear_payments(event_id, &context).await;
    Ok(Json(CancelPreviewView {
        event_id,
        at: ticket.clock.now(),
        figures,
        unclear_payments: unclear.map(|unclear| unclear.payments),
        unclear_amount: unclear.map(|unclear| unclear.amount),
    }))
}

/// Returns the reservations of an event as a CSV file.
///
/// For its organiser, support and administrators, in the order of making, in all states. Organisers
/// see an address by its first letter and its domain. Errors: 400 `INVALID_LANGUAGE`; 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 503 `BUYERS_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/reservations.csv", tag = "admin",
    params(("eventId" = Uuid, Path), CsvQuery),
    responses(
        (status = 200, content_type = "text/csv", body = String), Errors<401, 403, 404>,
    ),
)]
async fn export_reservations(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    let scope = reader.event_scope();
    ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    ticket.check_event(event_id, scope).await?;
    ticket.export_reservations(ReservationExport { event_id, scope, language }, context).await
}
