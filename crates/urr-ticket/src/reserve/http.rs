//! The routes for reserving seats and tickets.

use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_service::idempotency::{header_key, key_reused};
use urr_service::{ApiError, Context, ErrorBody, Errors, Json, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::reserve::slots::EntrySlot;
use crate::{
    Hold, HoldItem, HoldRejection, InvalidRequestedItems, Inventory, InventoryKind, ItemSubject,
    NotOnSale, RequestedItems, RequestedTickets, ReserveError, ReserveRequest, TicketService,
};

const ENTRY_EVENT: HeaderName = HeaderName::from_static("x-urr-entry-event");

/// The other request for the seat is decided by then.
const SEAT_RETRY_AFTER: Duration = Duration::from_secs(1);

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(reserve_seats)).routes(routes!(reserve_tickets))
}

/// Extractor: the event whose queue the user has passed, as the gateway says.
pub struct AdmittedEvent(Option<Uuid>);

impl AdmittedEvent {
    /// A user who was admitted to one event cannot book another (D-5).
    pub fn check(&self, event_id: Uuid) -> Result<(), ApiError> {
        match self.0 {
            Some(entered) if entered == event_id => Ok(()),
            _ => Err(ApiError::forbidden(
                "ENTRY_TOKEN_OTHER_EVENT",
                "You have been admitted to another event. Please join the queue of this one.",
            )
            .with("redirectTo", "/queue")),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for AdmittedEvent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<AdmittedEvent, ApiError> {
        let told = parts.headers.get(ENTRY_EVENT).and_then(|value| value.to_str().ok());
        Ok(AdmittedEvent(told.and_then(|text| text.parse().ok())))
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReserveSeatsBody {
    event_id: Uuid,
    /// The numbers of the seats, each once.
    #[schema(min_items = 1, max_items = 10, example = json!([12, 13]))]
    seat_ids: Vec<SeatId>,
}

/// Holds seats.
///
/// Needs an entry token. All seats are held or none, for five minutes; a payment in progress keeps
/// them longer. Takes the header `Idempotency-Key`: the same key and body return the same
/// reservation. `bookingFee` is part of `totalAmount` and applies in a pre-sale.
///
/// Errors: 400 `NOTHING_CHOSEN`, `CHOSEN_TWICE`, `INVALID_IDEMPOTENCY_KEY`; 403
/// `ENTRY_TOKEN_INVALID`, `ENTRY_TOKEN_OTHER_EVENT`, `PRESALE_MEMBERS_ONLY` (with `opensAt`); 404
/// `EVENT_NOT_FOUND`, `SEAT_NOT_FOUND`; 409 `SALE_NOT_OPEN`, `SALE_ENDED`, `SALE_NOT_READY`,
/// `EVENT_CANCELLED`, `EVENT_IS_STANDING`, `SEAT_TAKEN` (with `seatIds`), `SEAT_BEING_DECIDED`
/// (retry), `HOLD_IN_PROGRESS` (one hold per user and event; with `reservationId`), `SEAT_LIMIT`;
/// 422 `IDEMPOTENCY_KEY_REUSED`; 503 `BUSY`, `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/seats/reserve", tag = "reservations", request_body = ReserveSeatsBody,
    params(("idempotency-key" = Option<String>, Header, max_length = 64)),
    responses(
        (status = 201, body = ReservationAnswer),
        Errors<401, 403, 404, 409, 422>,
        (status = 503, body = ErrorBody, description = "`BUSY`: too many ask at the moment; \
            `QUEUE_UNAVAILABLE`: the waiting room cannot say whose turn it is."),
    ),
)]
async fn reserve_seats(
    State(ticket): State<TicketService>,
    User(user): User,
    entry: AdmittedEvent,
    slot: EntrySlot,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<ReserveSeatsBody>,
) -> Result<(StatusCode, Json<ReservationAnswer>), ApiError> {
    entry.check(body.event_id)?;
    let request = ReserveRequest {
        user_id: user.user_id,
        event_id: body.event_id,
        requested: RequestedItems::of_seats(body.seat_ids)?,
        key: header_key(&headers)?,
    };
    slot.check(&ticket, request.event_id, request.user_id, context).await?;
    let hold = ticket.booking_stats.measure(ticket.reserve(request, context)).await?;
    Ok((StatusCode::CREATED, Json(ticket.reservation_answer(hold).await?)))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReserveTicketsBody {
    event_id: Uuid,
    /// Each ticket type once.
    #[schema(min_items = 1, max_items = 10)]
    items: Vec<RequestedItemBody>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RequestedItemBody {
    ticket_type_id: Uuid,
    #[schema(minimum = 1, maximum = 10)]
    quantity: u32,
}

/// Holds tickets of a standing event.
///
/// Needs an entry token. `items` are 1 to 10 quantities, each ticket type once. Takes the header
/// `Idempotency-Key`.
///
/// Errors: as for holding seats; 404 `TICKET_TYPE_NOT_FOUND`; 409 `EVENT_HAS_SEATS`, `SOLD_OUT`,
/// `NOT_ENOUGH` (with `ticketTypeId` and `available`).
#[utoipa::path(
    post, path = "/api/reservations", tag = "reservations", request_body = ReserveTicketsBody,
    params(("idempotency-key" = Option<String>, Header, max_length = 64)),
    responses(
        (status = 201, body = ReservationAnswer),
        Errors<401, 403, 404, 409, 422>,
        (status = 503, body = ErrorBody, description = "`BUSY`: too many ask at the moment; \
            `QUEUE_UNAVAILABLE`: the waiting room cannot say whose turn it is."),
    ),
)]
async fn reserve_tickets(
    State(ticket): State<TicketService>,
    User(user): User,
    entry: AdmittedEvent,
    slot: EntrySlot,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<ReserveTicketsBody>,
) -> Result<(StatusCode, Json<ReservationAnswer>), ApiError> {
    entry.check(body.event_id)?;
    let line = |item: RequestedItemBody| RequestedTickets {
        ticket_type_id: item.ticket_type_id,
        quantity: item.quantity,
    };
    let request = ReserveRequest {
        user_id: user.user_id,
        event_id: body.event_id,
        requested: RequestedItems::of_tickets(body.items.into_iter().map(line).collect())?,
        key: header_key(&headers)?,
    };
    slot.check(&ticket, request.event_id, request.user_id, context).await?;
    let hold = ticket.booking_stats.measure(ticket.reserve(request, context)).await?;
    Ok((StatusCode::CREATED, Json(ticket.reservation_answer(hold).await?)))
}

#[derive(Serialize, ToSchema)]
pub struct ReservationAnswer {
    reservation: HoldView,
}

/// A reservation, with seats or with ticket types.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldView {
    id: Uuid,
    #[schema(example = "R-7ZQ0-M4KD-91XA")]
    reservation_number: String,
    event_id: Uuid,
    #[schema(example = "pending")]
    status: &'static str,
    #[schema(value_type = i64, example = 198_000)]
    total_amount: Won,
    /// Part of the total: what a purchase in a pre-sale costs beside the seats or tickets.
    #[schema(value_type = i64, example = 0)]
    booking_fee: Won,
    expires_at: Timestamp,
    /// Grows with every change of the event's seats; a payment has to name it.
    fencing_token: i64,
    seats: Vec<HeldSeatView>,
    items: Vec<HeldTicketsView>,
}

#[derive(Serialize, ToSchema)]
pub struct HeldSeatView {
    id: SeatId,
    #[schema(example = "1층 A-12-7")]
    label: String,
    section: String,
    row: String,
    number: u16,
    grade: String,
    #[schema(value_type = i64)]
    price: Won,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldTicketsView {
    ticket_type_id: Uuid,
    name: String,
    quantity: u32,
    #[schema(value_type = i64)]
    unit_price: Won,
    #[schema(value_type = i64)]
    subtotal: Won,
}

impl TicketService {
    /// The view of a hold.
    pub(crate) async fn reservation_answer(
        &self,
        hold: Hold,
    ) -> Result<ReservationAnswer, ReserveError> {
        let inventory = self.inventories.get(hold.reservation.event_id).await?;
        let inventory = inventory.ok_or(ReserveError::EventNotFound)?;
        Ok(ReservationAnswer { reservation: HoldView::new(hold, &inventory) })
    }
}

impl HoldView {
    fn new(hold: Hold, inventory: &Inventory) -> HoldView {
        let Hold { reservation, items: held } = hold;
        let (seats, items) = item_views(held, inventory);
        HoldView {
            id: reservation.id.0,
            reservation_number: reservation.number,
            event_id: reservation.event_id,
            status: reservation.status.as_str(),
            total_amount: reservation.total_amount,
            booking_fee: reservation.booking_fee,
            expires_at: reservation.expires_at,
            fencing_token: reservation.fence,
            seats,
            items,
        }
    }
}

/// The views of items: seats or ticket types.
pub(crate) fn item_views(
    held: Vec<HoldItem>,
    inventory: &Inventory,
) -> (Vec<HeldSeatView>, Vec<HeldTicketsView>) {
    let (mut seats, mut items) = (Vec::new(), Vec::new());
    for HoldItem { item, name } in held {
        match item.subject {
            ItemSubject::Seat(seat_id) => {
                seats.push(HeldSeatView::new(seat_id, item.unit_price, inventory));
            }
            ItemSubject::TicketType(ticket_type_id) => items.push(HeldTicketsView {
                ticket_type_id,
                name: name.unwrap_or_default(),
                quantity: item.quantity,
                unit_price: item.unit_price,
                subtotal: item
                    .unit_price
                    .times(i64::from(item.quantity))
                    .expect("it is part of a total that fits"),
            }),
        }
    }
    (seats, items)
}

impl HeldSeatView {
    fn new(seat_id: SeatId, price: Won, inventory: &Inventory) -> HeldSeatView {
        let place = inventory.layout.place(seat_id).expect("a held seat exists");
        HeldSeatView {
            id: seat_id,
            label: place.label(),
            section: place.section.name.clone(),
            row: place.row.label.clone(),
            number: place.number,
            grade: place.section.grade.clone(),
            price,
        }
    }
}

impl From<InvalidRequestedItems> for ApiError {
    fn from(invalid: InvalidRequestedItems) -> ApiError {
        let sentence = invalid.to_string();
        match invalid {
            InvalidRequestedItems::Empty => ApiError::bad_request("NOTHING_CHOSEN", sentence),
            InvalidRequestedItems::TooMany => ApiError::conflict("SEAT_LIMIT", sentence),
            InvalidRequestedItems::Duplicate => ApiError::bad_request("CHOSEN_TWICE", sentence),
        }
    }
}

impl From<ReserveError> for ApiError {
    fn from(error: ReserveError) -> ApiError {
        match error {
            ReserveError::EventNotFound => {
                ApiError::not_found("EVENT_NOT_FOUND", "There is no event with this id.")
            }
            ReserveError::OtherKind(InventoryKind::Seated) => {
                ApiError::conflict("EVENT_HAS_SEATS", "This event has seats. Please choose some.")
            }
            ReserveError::OtherKind(InventoryKind::Standing) => ApiError::conflict(
                "EVENT_IS_STANDING",
                "This event has no seats. Please choose from its ticket types.",
            ),
            ReserveError::SeatsNotFound(seat_ids) => {
                ApiError::not_found("SEAT_NOT_FOUND", "The event has no such seat.")
                    .with("seatIds", seat_ids)
            }
            ReserveError::Rejected(refusal) => refusal.into(),
            ReserveError::Storage(error) => error.into(),
        }
    }
}

impl From<HoldRejection> for ApiError {
    fn from(refusal: HoldRejection) -> ApiError {
        match refusal {
            HoldRejection::NotOnSale(reason) => reason.into(),
            HoldRejection::HoldInProgress { reservation_id } => ApiError::conflict(
                "HOLD_IN_PROGRESS",
                "You hold something of this event already. Pay for it or give it back first.",
            )
            .with("reservationId", reservation_id.to_string()),
            HoldRejection::SeatLimit { seats_per_user_max, live_quantity } => {
                let sentence =
                    format!("Nobody may have more than {seats_per_user_max} of this event.");
                ApiError::conflict("SEAT_LIMIT", sentence)
                    .with("seatsPerUserMax", seats_per_user_max)
                    .with("alreadyYours", live_quantity)
            }
            HoldRejection::SeatsTaken { seat_ids } => {
                ApiError::conflict("SEAT_TAKEN", "This seat is no longer free.")
                    .with("seatIds", seat_ids)
            }
            HoldRejection::SeatBeingDecided { seat_id } => ApiError::conflict(
                "SEAT_BEING_DECIDED",
                "Someone else is asking for this seat. Please try again in a moment.",
            )
            .with("seatIds", vec![seat_id])
            .retry_after(SEAT_RETRY_AFTER),
            HoldRejection::TicketTypeNotFound { ticket_type_id } => {
                ApiError::not_found("TICKET_TYPE_NOT_FOUND", "The event has no such ticket type.")
                    .with("ticketTypeId", ticket_type_id.to_string())
            }
            HoldRejection::NotEnough { ticket_type_id, name, available } => {
                let (code, sentence) = match available {
                    0 => ("SOLD_OUT", format!("{name} is sold out.")),
                    _ => ("NOT_ENOUGH", format!("Only {available} of {name} are left.")),
                };
                ApiError::new(StatusCode::CONFLICT, code, sentence)
                    .with("ticketTypeId", ticket_type_id.to_string())
                    .with("available", available)
            }
            HoldRejection::KeyReused => key_reused(),
        }
    }
}

impl From<NotOnSale> for ApiError {
    fn from(reason: NotOnSale) -> ApiError {
        match reason {
            NotOnSale::NotFound => ReserveError::EventNotFound.into(),
            NotOnSale::Incomplete => {
                ApiError::conflict("SALE_NOT_READY", "The seats of this event are not ready yet.")
            }
            NotOnSale::Cancelled => {
                ApiError::conflict("EVENT_CANCELLED", "This event was cancelled.")
            }
            NotOnSale::NotOpen { opens_at } => {
                ApiError::conflict("SALE_NOT_OPEN", "The sale has not begun.")
                    .with("opensAt", opens_at.to_string())
            }
            NotOnSale::Presale { opens_at } => {
                ApiError::forbidden("PRESALE_MEMBERS_ONLY", "Only members can buy at the moment.")
                    .with("opensAt", opens_at.to_string())
            }
            NotOnSale::Ended => ApiError::conflict("SALE_ENDED", "The sale is over."),
        }
    }
}
