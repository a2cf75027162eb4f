//! The routes for check-in: for those who stand at the entrance with a scanner.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, DoorStaff, Errors, Json, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::check_in::signature::InvalidPayload;
use crate::check_in::store::{CheckInCounts, CheckInTicket};
use crate::check_in::{CheckInError, ScannedTicket};
use crate::http::event_not_found;
use crate::reserve::http::SeatView;
use crate::{Inventory, TicketService};

const PAYLOAD_CHARS_MAX: usize = 500;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(check_in_ticket)).routes(routes!(count_check_ins))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CheckInBody {
    /// The text of the ticket's QR code.
    #[schema(max_length = 500)]
    payload: String,
    /// The event at whose entrance it is scanned.
    event_id: Uuid,
}

#[derive(Serialize, ToSchema)]
struct CheckInView {
    ticket: CheckedInView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CheckedInView {
    id: Uuid,
    number: String,
    reservation_number: String,
    event_id: Uuid,
    /// The seat; null for a standing ticket.
    seat: Option<SeatView>,
    ticket_type_name: Option<String>,
    checked_in_at: Timestamp,
}

impl CheckedInView {
    fn of(checked_in: CheckInTicket, inventory: &Inventory) -> CheckedInView {
        CheckedInView {
            id: checked_in.id,
            number: checked_in.number,
            reservation_number: checked_in.reservation_number,
            event_id: checked_in.event_id,
            seat: checked_in.seat_id.and_then(|id| SeatView::of(inventory, id)),
            ticket_type_name: checked_in.ticket_type_name,
            checked_in_at: checked_in.checked_in_at.expect("it was checked in just now"),
        }
    }
}

/// Checks a ticket in.
///
/// For door staff who are assigned to the event, its organiser and administrators. `payload` is the
/// text of the QR code, `eventId` the event of this entrance. A ticket is checked in once; after an unknown outcome a retry may answer `ALREADY_CHECKED_IN`
/// for the first attempt.
///
/// Errors: 400 `INVALID_TICKET`; 403 `NOT_YOUR_EVENT`; 404 `TICKET_NOT_FOUND`, `EVENT_NOT_FOUND`; 409
/// `ALREADY_CHECKED_IN` (with `checkedInAt`, `checkedInBy`), `TICKET_FOR_OTHER_EVENT`,
/// `TICKET_REISSUED`, `TICKET_CANCELLED`; 422 `TICKET_FORGED`.
#[utoipa::path(
    post, path = "/api/admin/check-ins", tag = "tickets", request_body = CheckInBody,
    responses((status = 200, body = CheckInView), Errors<401, 403, 404, 409, 422>),
)]
async fn check_in_ticket(
    State(ticket): State<TicketService>,
    DoorStaff(staff): DoorStaff,
    Json(body): Json<CheckInBody>,
) -> Result<Json<CheckInView>, ApiError> {
    if body.payload.chars().count() > PAYLOAD_CHARS_MAX {
        return Err(InvalidPayload::Malformed.into());
    }
    let event_id = body.event_id;
    let inventory = ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    ticket.check_event(event_id, staff.event_scope()).await?;
    let shown = ScannedTicket { payload: body.payload, event_id, admin_id: staff.user_id };
    let checked_in = ticket.check_in(&shown).await?;
    Ok(Json(CheckInView { ticket: CheckedInView::of(checked_in, &inventory) }))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
struct CheckInsQuery {
    event_id: Uuid,
}

/// Counts the tickets of an event and those checked in.
///
/// For door staff who are assigned to the event, its organiser and administrators. Errors: 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/check-ins", tag = "tickets", params(CheckInsQuery),
    responses((status = 200, body = CheckInCounts), Errors<401, 403, 404>),
)]
async fn count_check_ins(
    State(ticket): State<TicketService>,
    DoorStaff(staff): DoorStaff,
    Query(query): Query<CheckInsQuery>,
) -> Result<Json<CheckInCounts>, ApiError> {
    let event_id = query.event_id;
    ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    ticket.check_event(event_id, staff.event_scope()).await?;
    Ok(Json(ticket.count_check_ins(event_id).await?))
}

impl From<InvalidPayload> for ApiError {
    fn from(invalid: InvalidPayload) -> ApiError {
        let sentence = invalid.to_string();
        match invalid {
            InvalidPayload::Malformed => ApiError::bad_request("INVALID_TICKET", sentence),
            InvalidPayload::Forged => ApiError::unprocessable("TICKET_FORGED", sentence),
        }
    }
}

impl From<CheckInError> for ApiError {
    fn from(error: CheckInError) -> ApiError {
        let sentence = error.to_string();
        match error {
            CheckInError::Payload(invalid) => invalid.into(),
            CheckInError::OtherEvent { event_id } => {
                ApiError::conflict("TICKET_FOR_OTHER_EVENT", sentence)
                    .with("ticketEventId", event_id.to_string())
            }
            CheckInError::NotFound => ApiError::not_found("TICKET_NOT_FOUND", sentence),
            CheckInError::Reissued => ApiError::conflict("TICKET_REISSUED", sentence),
            CheckInError::Cancelled => ApiError::conflict("TICKET_CANCELLED", sentence),
            CheckInError::AlreadyCheckedIn { at, by } => {
                ApiError::conflict("ALREADY_CHECKED_IN", sentence)
                    .with("checkedInAt", at.to_string())
                    .with("checkedInBy", by.map(|by| by.to_string()))
            }
            CheckInError::Storage(error) => error.into(),
        }
    }
}
