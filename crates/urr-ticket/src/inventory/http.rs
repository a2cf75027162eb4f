//! The routes for availability by grade and ticket type, and the keys that sign tickets.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::{Uuid, Won};
use urr_service::{ApiError, Errors, Json, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::TicketService;
use crate::TicketTypeStock;
use crate::check_in::signature::PublicKey;
use crate::http::event_not_found;
use crate::seat_map::InventorySnapshot;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(get_event_availability))
        .routes(routes!(get_ticket_type_availability))
        .routes(routes!(list_ticket_keys))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventAvailabilityView {
    event_id: Uuid,
    /// The seats by grade, in the order of the hall; none for a standing event.
    grades: Vec<GradeView>,
    /// The tickets without a seat, the dearest first.
    ticket_types: Vec<TicketTypeStock>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GradeView {
    #[schema(example = "VIP")]
    grade: String,
    /// In won.
    #[schema(value_type = i64, example = 165_000)]
    price: Won,
    total: u32,
    available: u32,
}

impl EventAvailabilityView {
    fn of(view: &InventorySnapshot) -> EventAvailabilityView {
        let inventory = &view.inventory;
        let layout = &inventory.layout;
        let grade = |grade: &str| GradeView {
            grade: grade.to_owned(),
            price: *inventory.prices.get(grade).expect("every grade has a price"),
            total: layout
                .sections
                .iter()
                .filter(|s| s.grade == grade)
                .map(|s| s.seat_count())
                .sum(),
            available: view.seats.available(layout, grade),
        };
        EventAvailabilityView {
            event_id: inventory.event_id,
            grades: layout.grades().into_iter().map(grade).collect(),
            ticket_types: view.ticket_types.clone(),
        }
    }
}

/// Returns how many seats or tickets of an event are left.
///
/// Public, and up to 0.3 s old. Errors: 404 `EVENT_NOT_FOUND`, also while the inventory is not
/// ready.
#[utoipa::path(
    get, path = "/api/tickets/event/{eventId}", tag = "tickets",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = EventAvailabilityView), Errors<404>),
)]
async fn get_event_availability(
    State(ticket): State<TicketService>,
    Path(event_id): Path<Uuid>,
) -> Result<Json<EventAvailabilityView>, ApiError> {
    let view = ticket.maps.load(event_id).await?.ok_or_else(event_not_found)?;
    Ok(Json(EventAvailabilityView::of(&view)))
}

#[derive(Serialize, ToSchema)]
struct AvailabilityView {
    total: u32,
    available: u32,
}

/// Returns how many tickets of a type are left.
///
/// Public, and up to 0.3 s old. Errors: 404 `TICKET_TYPE_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/tickets/availability/{ticketTypeId}", tag = "tickets",
    params(("ticketTypeId" = Uuid, Path)),
    responses((status = 200, body = AvailabilityView), Errors<404>),
)]
async fn get_ticket_type_availability(
    State(ticket): State<TicketService>,
    Path(ticket_type_id): Path<Uuid>,
) -> Result<Json<AvailabilityView>, ApiError> {
    let view = ticket.maps.load_by_ticket_type(ticket_type_id).await?;
    let types = view.iter().flat_map(|view| &view.ticket_types);
    let stock = types.into_iter().find(|stock| stock.id == ticket_type_id).ok_or_else(|| {
        ApiError::not_found("TICKET_TYPE_NOT_FOUND", "There are no tickets with this id.")
    })?;
    Ok(Json(AvailabilityView { total: stock.total, available: stock.available }))
}

#[derive(Serialize, ToSchema)]
struct TicketKeysView {
    /// The one that signs now is the first; tickets signed with the others are still good.
    keys: Vec<PublicKey>,
}

/// Lists the public keys that verify tickets offline.
///
/// Public. A QR code is `URR1.<payload>.<signature>`, both parts in base64url without padding. The
/// signature is Ed25519 over the text `URR1.<payload>`. The payload is 40 bytes: ticket id (16),
/// event id (16), seat number (4, `ffffffff` if standing) and issue (4), numbers in big-endian
/// order. The first key signs now. A valid signature proves that we issued the ticket, not that it
/// is still valid.
#[utoipa::path(
    get, path = "/api/tickets/keys", tag = "tickets",
    responses((status = 200, body = TicketKeysView)),
)]
async fn list_ticket_keys(State(ticket): State<TicketService>) -> Json<TicketKeysView> {
    Json(TicketKeysView { keys: ticket.signer.public_keys().to_vec() })
}
