//! The routes for check-in: for those who stand at the entrance with a scanner.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, DoorStaff, Errors, Identity, Json, Path, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::check_in::rules::{DoorName, ScanDirection};
use crate::check_in::signature::InvalidPayload;
use crate::check_in::store::{CheckInCounts, CheckInEvent, CheckInTicket};
use crate::check_in::{
    AcceptedScan, CheckInError, EntryNote, ScannedTicket, TicketCode, UndoScan, UndoScanError,
};
use crate::http::event_not_found;
use crate::reserve::http::SeatView;
use crate::{Inventory, TicketService};

const PAYLOAD_CHARS_MAX: usize = 500;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(check_in_ticket, count_check_ins))
        .routes(routes!(undo_check_in))
        .routes(routes!(list_check_in_events))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CheckInBody {
    /// The text of the ticket's QR code, or its number, typed.
    #[schema(max_length = 500)]
    payload: String,
    /// The event at whose entrance it is scanned.
    event_id: Uuid,
    /// The phone's name for this scan. A repetition with the same id gives the same answer; without
    /// one, a retry may find the ticket checked in by the first attempt.
    scan_id: Option<Uuid>,
    /// `exit` if the visitor goes out and may come back.
    #[serde(default)]
    direction: DirectionBody,
    /// At which door.
    #[serde(default)]
    #[schema(max_length = 40, example = "1번 출입구")]
    door: String,
}

/// Which way a visitor goes.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DirectionBody {
    #[default]
    Entry,
    Exit,
}

impl From<DirectionBody> for ScanDirection {
    fn from(direction: DirectionBody) -> ScanDirection {
        match direction {
            DirectionBody::Entry => ScanDirection::Entry,
            DirectionBody::Exit => ScanDirection::Exit,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct CheckInView {
    ticket: CheckedInView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CheckedInView {
    #[serde(flatten)]
    ticket: ScannedTicketView,
    /// Names the scan, if it is to be undone.
    scan_id: Uuid,
    /// `entry` or `exit`.
    direction: &'static str,
    door: String,
    checked_in_at: Timestamp,
}

/// A ticket, as staff at a door see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScannedTicketView {
    id: Uuid,
    number: String,
    reservation_number: String,
    event_id: Uuid,
    /// The seat; null for a standing ticket.
    seat: Option<SeatView>,
    ticket_type_name: Option<String>,
}

impl ScannedTicketView {
    pub fn new(ticket: CheckInTicket, inventory: &Inventory) -> ScannedTicketView {
        ScannedTicketView {
            id: ticket.id,
            number: ticket.number,
            reservation_number: ticket.reservation_number,
            event_id: ticket.event_id,
            seat: ticket.seat_id.and_then(|id| SeatView::of(inventory, id)),
            ticket_type_name: ticket.ticket_type_name,
        }
    }
}

impl CheckedInView {
    fn new(accepted: AcceptedScan, inventory: &Inventory) -> CheckedInView {
        let AcceptedScan { ticket, scan } = accepted;
        CheckedInView {
            ticket: ScannedTicketView::new(ticket, inventory),
            scan_id: scan.id,
            direction: scan.direction.as_str(),
            door: scan.door.as_str().to_owned(),
            checked_in_at: scan.scanned_at,
        }
    }
}

/// Checks a ticket in or out.
///
/// For door staff who are assigned to the event, its organiser and administrators. `payload` is the
/// text of the QR code or the number of the ticket, `eventId` the event of this entrance. A ticket
/// admits once. If the event allows re-entry, a ticket that was scanned with `direction` `exit`
/// admits again. Send a `scanId` of your own, so that a retry gives the first answer.
///
/// Errors: 400 `INVALID_TICKET`, `INVALID_DOOR`; 403 `NOT_YOUR_EVENT`; 404 `TICKET_NOT_FOUND`,
/// `EVENT_NOT_FOUND`; 409 `ALREADY_CHECKED_IN` (with `checkedInAt`, `checkedInBy`, `door`),
/// `TICKET_FOR_OTHER_EVENT`, `TICKET_REISSUED`, `TICKET_CANCELLED`, `VISITOR_NOT_INSIDE`,
/// `REENTRY_NOT_ALLOWED`, `SCAN_ID_REUSED`; 422 `TICKET_FORGED`.
#[utoipa::path(
    post, path = "/api/admin/check-ins", tag = "tickets", request_body = CheckInBody,
    responses((status = 200, body = CheckInView), Errors<401, 403, 404, 409, 422>),
)]
async fn check_in_ticket(
    State(ticket): State<TicketService>,
    DoorStaff(staff): DoorStaff,
    Json(body): Json<CheckInBody>,
) -> Result<Json<CheckInView>, ApiError> {
    let CheckInBody { payload, event_id, scan_id, direction, door } = body;
    let shown = ScannedTicket {
        scan_id: scan_id.unwrap_or_else(|| ticket.ids.next_id()),
        code: parse_code(&payload)?,
        event_id,
        direction: direction.into(),
        door: parse_door(&door)?,
        staff_id: staff.user_id,
    };
    let inventory = ticket.check_door(event_id, &staff).await?;
    let accepted = ticket.check_in(shown).await?;
    Ok(Json(CheckInView { ticket: CheckedInView::new(accepted, &inventory) }))
}

impl TicketService {
    /// The inventory of an event at whose doors this user may act.
    pub(crate) async fn check_door(
        &self,
        event_id: Uuid,
        staff: &Identity,
    ) -> Result<std::sync::Arc<Inventory>, ApiError> {
        let inventory = self.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
        self.check_event(event_id, staff.event_scope()).await?;
        Ok(inventory)
    }
}

pub fn parse_code(payload: &str) -> Result<TicketCode, ApiError> {
    match payload.chars().count() > PAYLOAD_CHARS_MAX {
        true => Err(InvalidPayload::Malformed.into()),
        false => Ok(TicketCode::parse(payload)),
    }
}

pub fn parse_door(door: &str) -> Result<DoorName, ApiError> {
    DoorName::parse(door).map_err(|_| {
        let sentence = "The name of a door has up to 40 characters in one line.";
        ApiError::bad_request("INVALID_DOOR", sentence)
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UndoCheckInBody {
    /// Which scan of the ticket.
    scan_id: Uuid,
}

/// Takes a scan back, within one minute.
///
/// For door staff of the event, its organiser and administrators: the visitor did not pass the
/// door after all. The admin log keeps it. Repeating it changes nothing. Errors: 403
/// `NOT_YOUR_EVENT`; 404 `TICKET_NOT_FOUND`; 409 `SCAN_NOT_FOUND`, `UNDO_TOO_LATE`.
#[utoipa::path(
    post, path = "/api/admin/check-ins/{ticketId}/undo", tag = "tickets",
    params(("ticketId" = Uuid, Path)), request_body = UndoCheckInBody,
    responses((status = 200, body = CheckInCounts), Errors<401, 403, 404, 409>),
)]
async fn undo_check_in(
    State(ticket): State<TicketService>,
    DoorStaff(staff): DoorStaff,
    Path(ticket_id): Path<Uuid>,
    Json(body): Json<UndoCheckInBody>,
) -> Result<Json<CheckInCounts>, ApiError> {
    let event_id = ticket.event_of_ticket(ticket_id).await?.ok_or(CheckInError::NotFound)?;
    ticket.check_event(event_id, staff.event_scope()).await?;
    let staff_id = staff.user_id;
    ticket.undo_scan(UndoScan { ticket_id, scan_id: body.scan_id, event_id, staff_id }).await?;
    Ok(Json(ticket.count_check_ins(event_id).await?))
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
    ticket.check_door(query.event_id, &staff).await?;
    Ok(Json(ticket.count_check_ins(query.event_id).await?))
}

#[derive(Serialize, ToSchema)]
struct CheckInEventsView {
    events: Vec<CheckInEvent>,
}

/// Lists the events at whose doors the user may check tickets in.
///
/// For door staff (the events that they are assigned to), organisers (their own) and administrators
/// (all). The next event comes first; events that began more than 36 hours ago are left out.
#[utoipa::path(
    get, path = "/api/admin/check-ins/events", tag = "tickets",
    responses((status = 200, body = CheckInEventsView), Errors<401, 403>),
)]
async fn list_check_in_events(
    State(ticket): State<TicketService>,
    DoorStaff(staff): DoorStaff,
) -> Result<Json<CheckInEventsView>, ApiError> {
    Ok(Json(CheckInEventsView { events: ticket.check_in_events(staff.event_scope()).await? }))
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
            CheckInError::AlreadyCheckedIn(EntryNote { at, by, door }) => {
                ApiError::conflict("ALREADY_CHECKED_IN", sentence)
                    .with("checkedInAt", at.to_string())
                    .with("checkedInBy", by.to_string())
                    .with("door", door.as_str())
            }
            CheckInError::NotInside => ApiError::conflict("VISITOR_NOT_INSIDE", sentence),
            CheckInError::ReentryNotAllowed => ApiError::conflict("REENTRY_NOT_ALLOWED", sentence),
            CheckInError::ScanIdReused => ApiError::conflict("SCAN_ID_REUSED", sentence),
            CheckInError::Storage(error) => error.into(),
        }
    }
}

impl From<UndoScanError> for ApiError {
    fn from(error: UndoScanError) -> ApiError {
        let sentence = error.to_string();
        match error {
            UndoScanError::NotFound => ApiError::conflict("SCAN_NOT_FOUND", sentence),
            UndoScanError::TooLate => ApiError::conflict("UNDO_TOO_LATE", sentence),
            UndoScanError::Storage(error) => error.into(),
        }
    }
}
