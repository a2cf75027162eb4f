//! The routes for reserving seats and tickets.

use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use urr_kernel::{CallContext, IdempotencyKey, Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_service::idempotency::{header_key, key_reused};
use urr_service::{ApiError, Context, Errors, Json, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::reserve::slots::EntrySlot;
use crate::{
    Hold, HoldRejection, InvalidRequestedItems, Inventory, InventoryKind, ItemSubject, NoSeatsFit,
    NotOnSale, RequestedItems, RequestedTickets, ReservationItem, ReserveError, ReserveRequest,
    SeatPreference, TicketService,
};

const ENTRY_EVENT: HeaderName = HeaderName::from_static("x-urr-entry-event");

/// The other request for the seat is decided by then.
const SEAT_RETRY_AFTER: Duration = Duration::from_secs(1);
const PERSON_RETRY_AFTER: Duration = Duration::from_secs(2);

const BEST_COUNT_MAX: u32 = 10;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(reserve_seats))
        .routes(routes!(reserve_tickets))
        .routes(routes!(reserve_best_seats))
}

/// Extractor: who books, and what lets them.
struct Booker {
    user_id: Uuid,
    /// The event whose queue the user has passed, as the gateway says.
    admitted_to: Option<Uuid>,
    slot: EntrySlot,
    context: CallContext,
    key: Option<IdempotencyKey>,
}

impl FromRequestParts<TicketService> for Booker {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        ticket: &TicketService,
    ) -> Result<Booker, ApiError> {
        let User(user) = User::from_request_parts(parts, ticket).await?;
        let Context(context) = Context::from_request_parts(parts, ticket).await?;
        let slot = EntrySlot::from_request_parts(parts, ticket).await?;
        let event = parts.headers.get(ENTRY_EVENT).and_then(|value| value.to_str().ok());
        Ok(Booker {
            user_id: user.user_id,
            admitted_to: event.and_then(|text| text.parse().ok()),
            slot,
            context,
            key: header_key(&parts.headers)?,
        })
    }
}

type ReserveAnswer = Result<(StatusCode, Json<ReservationAnswer>), ApiError>;

impl Booker {
    async fn reserve(
        self,
        ticket: &TicketService,
        event_id: Uuid,
        requested: RequestedItems,
    ) -> ReserveAnswer {
        let Booker { user_id, admitted_to, slot, context, key } = self;
        // A user who was admitted to one event cannot book another (D-5).
        if admitted_to != Some(event_id) {
            let sentence =
                "You have been admitted to another event. Please join the queue of this one.";
            return Err(ApiError::forbidden("ENTRY_TOKEN_OTHER_EVENT", sentence)
                .with("redirectTo", "/queue"));
        }
        slot.check(ticket, event_id, user_id, context).await?;
        let request = ReserveRequest { user_id, event_id, requested, key };
        let hold = ticket.booking_stats.measure(ticket.reserve(request, context)).await?;
        let inventory = ticket.inventories.get(event_id).await?;
        let inventory = inventory.ok_or(ReserveError::EventNotFound)?;
        let reservation = HoldView::new(hold, &inventory);
        Ok((StatusCode::CREATED, Json(ReservationAnswer { reservation })))
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
/// them longer. Takes the header `Idempotency-Key`: for 24 hours the same key and body return the
/// same reservation. `bookingFee` is part of `totalAmount` and applies in a pre-sale.
///
/// Errors: 400 `NOTHING_CHOSEN`, `CHOSEN_TWICE`, `INVALID_IDEMPOTENCY_KEY`; 403
/// `ENTRY_TOKEN_INVALID`, `ENTRY_TOKEN_OTHER_EVENT`, `PRESALE_MEMBERS_ONLY` (with `opensAt`),
/// `IDENTITY_REQUIRED` (the event is for checked persons; `SEAT_LIMIT` then counts all accounts of
/// the person); 404
/// `EVENT_NOT_FOUND`, `SEAT_NOT_FOUND`; 409 `SALE_NOT_OPEN`, `SALE_ENDED`, `SALE_NOT_READY`,
/// `EVENT_CANCELLED`, `EVENT_IS_STANDING`, `SEAT_TAKEN` (with `seatIds`), `SEAT_BEING_DECIDED`
/// (retry), `SEATS_OFFERED` (returned seats that fans with an alert may take until `opensAt`),
/// `HOLD_IN_PROGRESS` (one hold per user and event; with `reservationId`), `SEAT_LIMIT`;
/// 422 `IDEMPOTENCY_KEY_REUSED`; 503 `BUSY`, `QUEUE_UNAVAILABLE`, `IDENTITY_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/seats/reserve", tag = "reservations", request_body = ReserveSeatsBody,
    params(("idempotency-key" = Option<String>, Header, max_length = 64)),
    responses((status = 201, body = ReservationAnswer), Errors<401, 403, 404, 409, 422>),
)]
async fn reserve_seats(
    State(ticket): State<TicketService>,
    booker: Booker,
    Json(body): Json<ReserveSeatsBody>,
) -> ReserveAnswer {
    let requested = RequestedItems::of_seats(body.seat_ids)?;
    booker.reserve(&ticket, body.event_id, requested).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReserveTicketsBody {
    event_id: Uuid,
    /// Each ticket type once.
    #[schema(min_items = 1, max_items = 10)]
    items: Vec<RequestedTickets>,
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
    responses((status = 201, body = ReservationAnswer), Errors<401, 403, 404, 409, 422>),
)]
async fn reserve_tickets(
    State(ticket): State<TicketService>,
    booker: Booker,
    Json(body): Json<ReserveTicketsBody>,
) -> ReserveAnswer {
    let requested = RequestedItems::of_tickets(body.items)?;
    booker.reserve(&ticket, body.event_id, requested).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReserveBestBody {
    event_id: Uuid,
    /// How many seats beside each other; the event says how many one person may have.
    #[schema(minimum = 1, maximum = 10, example = 2)]
    count: u32,
    /// The grade, the section, or both must be given.
    #[schema(max_length = 50, example = "VIP")]
    grade: Option<String>,
    /// The name of a section.
    #[schema(max_length = 50)]
    section: Option<String>,
    /// Whether one of the seats must be for a wheelchair. Only then such seats are given.
    #[serde(default)]
    accessible: bool,
}

/// Holds the best seats beside each other.
///
/// Needs an entry token. Chooses seats in one row, nearest to the stage and the middle, leaves no
/// single seat alone if possible, and uses seats with a restricted view last. `grade` and `section`
/// narrow the choice. `accessible` includes one wheelchair seat; otherwise none is chosen.
///
/// Errors: as for holding seats; 400 `INVALID_COUNT`; 404 `GRADE_NOT_FOUND`, `SECTION_NOT_FOUND`;
/// 409 `SOLD_OUT`, `NOT_ADJACENT` (with `available` and `adjacentMax`).
#[utoipa::path(
    post, path = "/api/seats/best", tag = "reservations", request_body = ReserveBestBody,
    params(("idempotency-key" = Option<String>, Header, max_length = 64)),
    responses((status = 201, body = ReservationAnswer), Errors<401, 403, 404, 409, 422>),
)]
async fn reserve_best_seats(
    State(ticket): State<TicketService>,
    booker: Booker,
    Json(body): Json<ReserveBestBody>,
) -> ReserveAnswer {
    let ReserveBestBody { event_id, count, grade, section, accessible } = body;
    if !(1..=BEST_COUNT_MAX).contains(&count) {
        let sentence = format!("Please ask for 1 to {BEST_COUNT_MAX} seats.");
        return Err(ApiError::bad_request("INVALID_COUNT", sentence));
    }
    if grade.is_none() && section.is_none() {
        let sentence = "Please say of which grade or section.";
        return Err(ApiError::bad_request("NOTHING_CHOSEN", sentence));
    }
    let requested = RequestedItems::Best(SeatPreference { count, grade, section, accessible });
    booker.reserve(&ticket, event_id, requested).await
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

/// A seat of a hall.
#[derive(Serialize, ToSchema)]
pub struct SeatView {
    id: SeatId,
    #[schema(example = "1층 A-12-7")]
    label: String,
    section: String,
    row: String,
    number: u16,
    grade: String,
}

#[derive(Serialize, ToSchema)]
pub struct HeldSeatView {
    #[serde(flatten)]
    seat: SeatView,
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

impl HoldView {
    fn new(hold: Hold, inventory: &Inventory) -> HoldView {
        let (seats, items) = item_views(&hold.items, Some(inventory));
        let reservation = hold.reservation;
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

/// The views of items: seats or ticket types. Without the inventory there is nothing to show.
pub(crate) fn item_views(
    items: &[ReservationItem],
    inventory: Option<&Inventory>,
) -> (Vec<HeldSeatView>, Vec<HeldTicketsView>) {
    let Some(inventory) = inventory else { return (Vec::new(), Vec::new()) };
    let (mut seats, mut tickets) = (Vec::new(), Vec::new());
    for item in items {
        match item.subject {
            ItemSubject::Seat(seat_id) => {
                let seat = SeatView::of(inventory, seat_id).expect("a held seat exists");
                seats.push(HeldSeatView { seat, price: item.unit_price });
            }
            ItemSubject::TicketType(ticket_type_id) => tickets.push(HeldTicketsView {
                ticket_type_id,
                name: item.name.clone().unwrap_or_default(),
                quantity: item.quantity,
                unit_price: item.unit_price,
                subtotal: item.amount(),
            }),
        }
    }
    (seats, tickets)
}

impl SeatView {
    /// None: there is no such seat.
    pub fn of(inventory: &Inventory, id: SeatId) -> Option<SeatView> {
        let place = inventory.layout.place(id)?;
        Some(SeatView {
            id,
            label: place.label(),
            section: place.section.name.clone(),
            row: place.row.label.clone(),
            number: place.number,
            grade: place.section.grade.clone(),
        })
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
        let sentence = error.to_string();
        match error {
            ReserveError::EventNotFound => ApiError::not_found("EVENT_NOT_FOUND", sentence),
            ReserveError::OtherKind(InventoryKind::Seated) => {
                ApiError::conflict("EVENT_HAS_SEATS", "This event has seats. Please choose some.")
            }
            ReserveError::OtherKind(InventoryKind::Standing) => ApiError::conflict(
                "EVENT_IS_STANDING",
                "This event has no seats. Please choose from its ticket types.",
            ),
            ReserveError::SeatsNotFound(seat_ids) => {
                ApiError::not_found("SEAT_NOT_FOUND", sentence).with("seatIds", seat_ids)
            }
            ReserveError::GradeNotFound => ApiError::not_found("GRADE_NOT_FOUND", sentence),
            ReserveError::SectionNotFound => ApiError::not_found("SECTION_NOT_FOUND", sentence),
            ReserveError::NotChangeable(refused) => refused.into(),
            ReserveError::Rejected(refusal) => refusal.into(),
            ReserveError::PersonUnavailable => {
                ApiError::unavailable("IDENTITY_UNAVAILABLE", sentence, PERSON_RETRY_AFTER)
            }
            ReserveError::Storage(error) => error.into(),
        }
    }
}

impl From<HoldRejection> for ApiError {
    fn from(refusal: HoldRejection) -> ApiError {
        let sentence = refusal.to_string();
        match refusal {
            HoldRejection::NotOnSale(reason) => reason.into(),
            HoldRejection::HoldInProgress { reservation_id } => {
                ApiError::conflict("HOLD_IN_PROGRESS", sentence)
                    .with("reservationId", reservation_id.to_string())
            }
            HoldRejection::SeatLimit { seats_per_user_max, live_quantity } => {
                ApiError::conflict("SEAT_LIMIT", sentence)
                    .with("seatsPerUserMax", seats_per_user_max)
                    .with("alreadyYours", live_quantity)
            }
            HoldRejection::IdentityRequired => ApiError::forbidden("IDENTITY_REQUIRED", sentence),
            HoldRejection::SeatsTaken { seat_ids } => {
                ApiError::conflict("SEAT_TAKEN", sentence).with("seatIds", seat_ids)
            }
            HoldRejection::SeatBeingDecided { seat_id } => {
                ApiError::conflict("SEAT_BEING_DECIDED", sentence)
                    .with("seatIds", vec![seat_id])
                    .retry_after(SEAT_RETRY_AFTER)
            }
            HoldRejection::NoneFits(NoSeatsFit::SoldOut) => {
                ApiError::conflict("SOLD_OUT", sentence)
            }
            HoldRejection::NoneFits(NoSeatsFit::NotAdjacent { available, adjacent_max }) => {
                ApiError::conflict("NOT_ADJACENT", sentence)
                    .with("available", available)
                    .with("adjacentMax", adjacent_max)
            }
            HoldRejection::TicketTypeNotFound { ticket_type_id } => {
                ApiError::not_found("TICKET_TYPE_NOT_FOUND", sentence)
                    .with("ticketTypeId", ticket_type_id.to_string())
            }
            HoldRejection::NotEnough { ticket_type_id, name, available } => {
                let refusal = match available {
                    0 => ApiError::conflict("SOLD_OUT", format!("{name} is sold out.")),
                    _ => ApiError::conflict("NOT_ENOUGH", sentence),
                };
                refusal
                    .with("ticketTypeId", ticket_type_id.to_string())
                    .with("available", available)
            }
            HoldRejection::SeatsOffered { opens_at } => {
                ApiError::conflict("SEATS_OFFERED", sentence)
                    .with("opensAt", opens_at.map(|time| time.to_string()))
            }
            HoldRejection::KeyReused => key_reused(),
        }
    }
}

impl From<NotOnSale> for ApiError {
    fn from(reason: NotOnSale) -> ApiError {
        let sentence = reason.to_string();
        match reason {
            NotOnSale::NotFound => ApiError::not_found("EVENT_NOT_FOUND", sentence),
            NotOnSale::Incomplete => ApiError::conflict("SALE_NOT_READY", sentence),
            NotOnSale::Cancelled => ApiError::conflict("EVENT_CANCELLED", sentence),
            NotOnSale::NotOpen { opens_at } => {
                ApiError::conflict("SALE_NOT_OPEN", sentence).with("opensAt", opens_at.to_string())
            }
            NotOnSale::Presale { opens_at } => {
                ApiError::forbidden("PRESALE_MEMBERS_ONLY", sentence)
                    .with("opensAt", opens_at.to_string())
            }
            NotOnSale::Ended => ApiError::conflict("SALE_ENDED", sentence),
        }
    }
}
