//! The routes for blocking and releasing house seats.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_service::idempotency::{KeyedRequest, fingerprint, header_key, key_reused};
use urr_service::{ApiError, Context, Errors, Json, Organiser, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::guests::HouseGuest;
use super::{BlockRequest, BlockedSeats, HouseItem, HousePlaces, HouseSeatsError, PLACES_MAX};
use crate::http::event_not_found;
use crate::reservations::buyers::Buyer;
use crate::reservations::http::admin::{PEER_RETRY_AFTER, parse_reason};
use crate::reserve::http::SeatView;
use crate::{
    HouseList, HouseReservation, Inventory, InventoryKind, ReservationKind, TicketService,
};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(list_house_seats))
        .routes(routes!(block_house_seats))
        .routes(routes!(release_house_seats))
}

/// What is blocked, given away and sold at the box office.
#[derive(Serialize, ToSchema)]
struct HouseSeatsView {
    blocked: Vec<BlockedSeatsView>,
    /// The newest first; 500 at most.
    reservations: Vec<HouseReservationView>,
}

/// What is blocked for one reason.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BlockedSeatsView {
    reason: String,
    blocked_by: Uuid,
    blocked_at: Timestamp,
    /// Empty for a standing event.
    seats: Vec<SeatView>,
    /// Empty for an event with seats.
    items: Vec<BlockedItemView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BlockedItemView {
    ticket_type_id: Uuid,
    quantity: u32,
}

/// Complimentary tickets, or a sale at the box office.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HouseReservationView {
    id: Uuid,
    reservation_number: String,
    /// `complimentary` or `box_office`.
    #[schema(example = "complimentary")]
    kind: &'static str,
    /// `confirmed` or `cancelled`.
    #[schema(example = "confirmed")]
    status: &'static str,
    /// `paid`, `refunding` or `refunded`.
    #[schema(example = "paid")]
    payment_status: &'static str,
    #[schema(example = "box_office_cash")]
    payment_method: Option<String>,
    quantity: u32,
    #[schema(value_type = i64)]
    total_amount: Won,
    created_at: Timestamp,
    issued_by: Uuid,
    reason: Option<String>,
    receipt_number: Option<String>,
    /// Whom the tickets were given to.
    guest_name: Option<String>,
    /// Of an account, organisers see the first letter and the domain.
    guest_email: Option<String>,
}

impl BlockedSeatsView {
    fn new(blocked: BlockedSeats, inventory: &Inventory) -> BlockedSeatsView {
        let BlockedSeats { reason, blocked_by, blocked_at, seat_ids, items } = blocked;
        let item = |(ticket_type_id, quantity)| BlockedItemView { ticket_type_id, quantity };
        let seats = seat_ids.into_iter().filter_map(|id| SeatView::of(inventory, id)).collect();
        let items = items.into_iter().map(item).collect();
        BlockedSeatsView { reason, blocked_by, blocked_at, seats, items }
    }
}

impl HouseReservationView {
    /// `account` is the owner's, if there is one.
    pub fn new(one: HouseReservation, account: Option<&Buyer>) -> HouseReservationView {
        HouseReservationView {
            id: one.id,
            reservation_number: one.number,
            kind: one.kind.as_str(),
            status: one.status.as_str(),
            payment_status: one.payment_status.as_str(),
            payment_method: one.payment_method,
            quantity: one.quantity,
            total_amount: one.total_amount,
            created_at: one.created_at,
            issued_by: one.issued_by,
            reason: one.reason,
            receipt_number: one.receipt_number,
            guest_name: one.guest.name.or_else(|| Some(account?.name.clone())),
            guest_email: one.guest.email.or_else(|| Some(account?.email.clone())),
        }
    }
}

/// Lists blocked seats, complimentary tickets and sales at the box office.
///
/// For the event's organiser and administrators. Errors: 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/house-seats", tag = "tickets",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = HouseSeatsView), Errors<401, 403, 404>),
)]
async fn list_house_seats(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
) -> Result<Json<HouseSeatsView>, ApiError> {
    let inventory = ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    let scope = organiser.event_scope();
    ticket.check_event(event_id, scope).await?;
    let blocked = ticket.list_blocked_seats(event_id).await?.into_iter();
    let reservations = ticket.list_house_reservations(event_id, HouseList::All).await?;
    let may_have_account = |one: &&HouseReservation| {
        one.kind == ReservationKind::Complimentary && one.guest == HouseGuest::default()
    };
    let user_ids = reservations.iter().filter(may_have_account).map(|one| one.user_id).collect();
    // Without an answer the list has no names of accounts.
    let accounts = ticket.find_accounts(user_ids, scope, &context).await.unwrap_or_default();
    let view = |one: HouseReservation| {
        let account = accounts.get(&one.user_id);
        HouseReservationView::new(one, account)
    };
    Ok(Json(HouseSeatsView {
        blocked: blocked.map(|one| BlockedSeatsView::new(one, &inventory)).collect(),
        reservations: reservations.into_iter().map(view).collect(),
    }))
}

/// Seats by number, or all of a section, row or grade; or standing tickets by type.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HousePlacesBody {
    #[serde(default)]
    #[schema(max_items = 2000)]
    seat_ids: Vec<SeatId>,
    /// All seats that fit. Together with `row` or `grade`, those that fit all of them.
    #[schema(max_length = 50, example = "1층 A")]
    section: Option<String>,
    #[schema(max_length = 50, example = "12")]
    row: Option<String>,
    #[schema(max_length = 50, example = "VIP")]
    grade: Option<String>,
    #[serde(default)]
    #[schema(max_items = 20)]
    items: Vec<HouseItemBody>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HouseItemBody {
    ticket_type_id: Uuid,
    #[schema(minimum = 1, maximum = 2000)]
    quantity: u32,
    /// Whether blocked tickets are issued, and not those that are on sale.
    #[serde(default)]
    from_blocked: bool,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BlockSeatsBody {
    places: HousePlacesBody,
    /// For the organisers and the admin log.
    #[schema(min_length = 1, max_length = 200, example = "기술 좌석")]
    reason: String,
}

/// Keeps free seats or standing tickets out of the sale.
///
/// For the event's organiser and administrators. Name seats by `seatIds`, or by `section`, `row` and
/// `grade`; standing tickets by `items`. All of them are blocked, or none. Seats that are blocked
/// stay so; standing tickets are added up, so send an `Idempotency-Key`. Errors: 400
/// `INVALID_HOUSE_SEATS`, `INVALID_REASON`; 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`,
/// `TICKET_TYPE_NOT_FOUND`; 409 `SEAT_TAKEN` (with `seatIds`), `NOT_ENOUGH` (with `ticketTypeId`),
/// `EVENT_CANCELLED`; 422 `IDEMPOTENCY_KEY_REUSED`.
#[utoipa::path(
    post, path = "/api/admin/events/{eventId}/house-seats/block", tag = "tickets",
    params(("eventId" = Uuid, Path)), request_body = BlockSeatsBody,
    responses((status = 204, description = "They are blocked."), Errors<401, 403, 404, 409, 422>),
)]
async fn block_house_seats(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    headers: HeaderMap,
    Json(body): Json<BlockSeatsBody>,
) -> Result<StatusCode, ApiError> {
    let key = keyed(&headers, organiser.user_id, "block_house_seats", &(event_id, &body))?;
    ticket.check_event(event_id, organiser.event_scope()).await?;
    let request = parse_block(&ticket, event_id, organiser.user_id, body, key).await?;
    ticket.block_seats(request, context).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives blocked seats or standing tickets back to the sale.
///
/// For the event's organiser and administrators. All of them are released, or none. Fans who wait
/// for seats are told first. Errors: 400 `INVALID_HOUSE_SEATS`, `INVALID_REASON`; 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`, `TICKET_TYPE_NOT_FOUND`; 409 `SEAT_NOT_BLOCKED` (with
/// `seatIds`), `NOT_ENOUGH_BLOCKED` (with `ticketTypeId`); 422 `IDEMPOTENCY_KEY_REUSED`.
#[utoipa::path(
    post, path = "/api/admin/events/{eventId}/house-seats/release", tag = "tickets",
    params(("eventId" = Uuid, Path)), request_body = BlockSeatsBody,
    responses((status = 204, description = "They are on sale."), Errors<401, 403, 404, 409, 422>),
)]
async fn release_house_seats(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    headers: HeaderMap,
    Json(body): Json<BlockSeatsBody>,
) -> Result<StatusCode, ApiError> {
    let key = keyed(&headers, organiser.user_id, "release_house_seats", &(event_id, &body))?;
    ticket.check_event(event_id, organiser.event_scope()).await?;
    let request = parse_block(&ticket, event_id, organiser.user_id, body, key).await?;
    ticket.release_seats_of_house(request, context).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn parse_block(
    ticket: &TicketService,
    event_id: Uuid,
    organiser_id: Uuid,
    body: BlockSeatsBody,
    key: Option<KeyedRequest>,
) -> Result<BlockRequest, ApiError> {
    let inventory = ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    let places = parse_places(&inventory, &body.places, PLACES_MAX)?;
    let reason = parse_reason(&body.reason)?;
    Ok(BlockRequest { event_id, places, reason, organiser_id, key })
}

/// The request, if its client named it.
pub fn keyed(
    headers: &HeaderMap,
    user_id: Uuid,
    operation: &'static str,
    body: &impl Serialize,
) -> Result<Option<KeyedRequest>, ApiError> {
    let key = header_key(headers)?;
    let fingerprint = || fingerprint(body);
    Ok(key.map(|key| KeyedRequest { user_id, operation, key, fingerprint: fingerprint() }))
}

/// Seats of an event with seats, or tickets of a standing one: some, each once, not too many.
pub fn parse_places(
    inventory: &Inventory,
    body: &HousePlacesBody,
    places_max: usize,
) -> Result<HousePlaces, ApiError> {
    let mut seats: BTreeSet<SeatId> = body.seat_ids.iter().copied().collect();
    let are_known = seats.iter().all(|id| inventory.layout.place(*id).is_some());
    seats.extend(seats_of_range(inventory, body));
    let item = |item: &HouseItemBody| {
        let HouseItemBody { ticket_type_id, quantity, from_blocked } = *item;
        (ticket_type_id, HouseItem { quantity, from_blocked })
    };
    let items: BTreeMap<Uuid, HouseItem> = body.items.iter().map(item).collect();
    let are_once = items.len() == body.items.len();
    let tickets: usize = items.values().map(|item| item.quantity as usize).sum();
    let are_some = items.values().all(|item| item.quantity > 0);
    let is_of_kind = match inventory.kind {
        InventoryKind::Seated => items.is_empty(),
        InventoryKind::Standing => seats.is_empty(),
    };
    let is_bounded = (1..=places_max).contains(&(seats.len() + tickets));
    if !(are_known && are_once && are_some && is_of_kind && is_bounded) {
        let sentence =
            format!("Name 1 to {places_max} seats of the hall, or tickets by type, each once.");
        return Err(ApiError::bad_request("INVALID_HOUSE_SEATS", sentence));
    }
    Ok(HousePlaces { seat_ids: seats.into_iter().collect(), items })
}

/// The seats of a section, a row or a grade; none if nothing is named.
fn seats_of_range(inventory: &Inventory, body: &HousePlacesBody) -> Vec<SeatId> {
    if body.section.is_none() && body.row.is_none() && body.grade.is_none() {
        return Vec::new();
    }
    let fits = |asked: &Option<String>, name: &str| asked.as_ref().is_none_or(|it| it == name);
    let rows = inventory.layout.rows().filter(|(_, section, row)| {
        fits(&body.section, &section.name)
            && fits(&body.row, &row.label)
            && fits(&body.grade, &section.grade)
    });
    rows.flat_map(|(first, _, row)| first..first + u32::from(row.seats)).collect()
}

impl From<HouseSeatsError> for ApiError {
    fn from(error: HouseSeatsError) -> ApiError {
        let sentence = error.to_string();
        let of_type = |refusal: ApiError, id: Uuid| refusal.with("ticketTypeId", id.to_string());
        match error {
            HouseSeatsError::EventNotFound => event_not_found(),
            HouseSeatsError::EventCancelled => ApiError::conflict("EVENT_CANCELLED", sentence),
            HouseSeatsError::SeatsTaken(seat_ids) => {
                ApiError::conflict("SEAT_TAKEN", sentence).with("seatIds", seat_ids)
            }
            HouseSeatsError::SeatsNotBlocked(seat_ids) => {
                ApiError::conflict("SEAT_NOT_BLOCKED", sentence).with("seatIds", seat_ids)
            }
            HouseSeatsError::TicketTypeNotFound(id) => {
                of_type(ApiError::not_found("TICKET_TYPE_NOT_FOUND", sentence), id)
            }
            HouseSeatsError::NotEnough(id) => {
                of_type(ApiError::conflict("NOT_ENOUGH", sentence), id)
            }
            HouseSeatsError::NotEnoughBlocked(id) => {
                of_type(ApiError::conflict("NOT_ENOUGH_BLOCKED", sentence), id)
            }
            HouseSeatsError::UserNotFound => ApiError::not_found("USER_NOT_FOUND", sentence),
            HouseSeatsError::UsersUnavailable => {
                ApiError::unavailable("BUYERS_UNAVAILABLE", sentence, PEER_RETRY_AFTER)
            }
            HouseSeatsError::KeyReused => key_reused(),
            HouseSeatsError::Reservation(rejection) => rejection.into(),
            HouseSeatsError::Storage(error) => error.into(),
        }
    }
}
