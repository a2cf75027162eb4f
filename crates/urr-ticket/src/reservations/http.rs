//! The routes of one's own reservations.

pub(crate) mod admin;
pub(crate) mod internal;
pub(crate) mod views;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_layout::SeatId;
use urr_service::{ApiError, Context, Errors, Json, Page, Paged, Pagination, Path, Query, User};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::reservations::http::views::{ReservationDetailView, ReservationView};
use crate::reserve::rules::REQUESTED_MAX;
use crate::reserve::slots::EntrySlot;
use crate::{
    CancelTickets, ChangeSeats, RefundPreview, RequestedItems, ReservationFilter, ReservationId,
    ReservationRejection, ReservationStatus, TicketCanceller, TicketService, TransitionError,
};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(list_my_reservations))
        .routes(routes!(list_my_reservations_alias))
        .routes(routes!(get_reservation, release_hold))
        .routes(routes!(get_seat_reservation))
        .routes(routes!(cancel_reservation))
        .routes(routes!(cancel_tickets))
        .routes(routes!(change_seats))
        .routes(routes!(extend_hold))
        .routes(routes!(preview_refund))
}

#[derive(Serialize, ToSchema)]
struct ReservationListView {
    reservations: Vec<ReservationView>,
    pagination: Pagination,
}

#[derive(Serialize, ToSchema)]
struct ReservationAnswerView {
    reservation: ReservationDetailView,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct MyReservationFilter {
    /// `pending`, `confirmed`, `cancelled` or `expired`.
    #[param(example = "confirmed")]
    status: Option<String>,
    event_id: Option<Uuid>,
}

/// A state by its name.
pub fn parse_status(name: Option<&str>) -> Result<Option<ReservationStatus>, ApiError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let unknown = || {
        ApiError::bad_request(
            "INVALID_STATUS",
            "The status must be pending, confirmed, cancelled or expired.",
        )
    };
    name.parse().map(Some).map_err(|_| unknown())
}

/// Lists the user's reservations, newest first.
///
/// `status` is `pending`, `confirmed`, `cancelled` or `expired`. Errors: 400 `INVALID_STATUS`.
#[utoipa::path(
    get, path = "/api/reservations", tag = "reservations", params(Page, MyReservationFilter),
    responses((status = 200, body = ReservationListView), Errors<401>),
)]
async fn list_my_reservations(
    State(ticket): State<TicketService>,
    User(user): User,
    page: Page,
    Query(filter): Query<MyReservationFilter>,
) -> Result<Json<ReservationListView>, ApiError> {
    let status = parse_status(filter.status.as_deref())?;
    let (user_id, event_id) = (Some(user.user_id), filter.event_id);
    let filter = ReservationFilter { user_id, event_id, status, ..ReservationFilter::default() };
    let (details, total) = ticket.list_reservations(filter, page).await?;
    let now = ticket.clock.now();
    let views = details.iter().map(|details| ReservationView::new(details, now)).collect();
    let Paged { items: reservations, pagination } = Paged::new(views, total, page);
    Ok(Json(ReservationListView { reservations, pagination }))
}

/// Lists the user's reservations, newest first.
///
/// An alias of `GET /api/reservations`. Errors: 400 `INVALID_STATUS`.
#[utoipa::path(
    get, path = "/api/reservations/my", tag = "reservations", params(Page, MyReservationFilter),
    responses((status = 200, body = ReservationListView), Errors<401>),
)]
async fn list_my_reservations_alias(
    state: State<TicketService>,
    user: User,
    page: Page,
    filter: Query<MyReservationFilter>,
) -> Result<Json<ReservationListView>, ApiError> {
    list_my_reservations(state, user, page, filter).await
}

/// Returns the user's reservation with its tickets.
///
/// A valid ticket has `qr`, the text of its QR code. Errors: 404 `RESERVATION_NOT_FOUND`, also for
/// reservations of others.
#[utoipa::path(
    get, path = "/api/reservations/{id}", tag = "reservations", params(("id" = Uuid, Path)),
    responses((status = 200, body = ReservationAnswerView), Errors<401, 404>),
)]
async fn get_reservation(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(id): Path<Uuid>,
) -> Result<Json<ReservationAnswerView>, ApiError> {
    answer(&ticket, ReservationId(id), user.user_id).await
}

/// Returns the user's reservation with its tickets.
///
/// An alias of `GET /api/reservations/{id}`. Errors: 404 `RESERVATION_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/seats/reservation/{id}", tag = "reservations", params(("id" = Uuid, Path)),
    responses((status = 200, body = ReservationAnswerView), Errors<401, 404>),
)]
async fn get_seat_reservation(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(id): Path<Uuid>,
) -> Result<Json<ReservationAnswerView>, ApiError> {
    answer(&ticket, ReservationId(id), user.user_id).await
}

/// Cancels the user's reservation.
///
/// A hold is released; a paid reservation is refunded by the policy of the booking (see the refund
/// preview). Possible until the event starts. Repeating it changes nothing.
///
/// Errors: 404 `RESERVATION_NOT_FOUND`; 409 `RESERVATION_EXPIRED`, `PAYMENT_IN_PROGRESS`,
/// `EVENT_STARTED`, `ALREADY_CHECKED_IN`, `RESERVATION_LISTED`, `TRANSFER_BEING_PAID`.
#[utoipa::path(
    post, path = "/api/reservations/{id}/cancel", tag = "reservations",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = ReservationAnswerView), Errors<401, 404, 409>),
)]
async fn cancel_reservation(
    State(ticket): State<TicketService>,
    User(user): User,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<Json<ReservationAnswerView>, ApiError> {
    ticket.cancel_reservation(ReservationId(id), user.user_id, context).await?;
    answer(&ticket, ReservationId(id), user.user_id).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CancelTicketsBody {
    /// The numbers of the tickets to cancel.
    #[schema(min_items = 1, max_items = 10, example = json!(["T-4GZ8-0QKX-M2VD"]))]
    ticket_numbers: Vec<String>,
}

/// Cancels single tickets of the user's paid reservation.
///
/// The others stay valid. Fee and refund are those of the refund preview, ticket by ticket; the
/// booking fee stays as long as a ticket does. The seats are free at once. Cancelling the last
/// tickets cancels the reservation. Tickets that were cancelled before stay so: repeating it changes
/// nothing.
///
/// Errors: 400 `INVALID_TICKETS` (1 to 10 numbers); 404 `RESERVATION_NOT_FOUND`,
/// `TICKET_NOT_FOUND`; 409 `RESERVATION_UNPAID`, `PAYMENT_IN_PROGRESS`, `RESERVATION_EXPIRED`,
/// `EVENT_STARTED`, `ALREADY_CHECKED_IN`, `RESERVATION_LISTED`.
#[utoipa::path(
    post, path = "/api/reservations/{id}/cancel-tickets", tag = "reservations",
    params(("id" = Uuid, Path)), request_body = CancelTicketsBody,
    responses((status = 200, body = ReservationAnswerView), Errors<401, 404, 409>),
)]
async fn cancel_tickets(
    State(ticket): State<TicketService>,
    User(user): User,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<CancelTicketsBody>,
) -> Result<Json<ReservationAnswerView>, ApiError> {
    let ticket_numbers = parse_ticket_numbers(body.ticket_numbers)?;
    let request = CancelTickets { ticket_numbers, by: TicketCanceller::Owner(user.user_id) };
    ticket.cancel_tickets(ReservationId(id), request, context).await?;
    answer(&ticket, ReservationId(id), user.user_id).await
}

/// At least one, and not more than a reservation can have.
pub fn parse_ticket_numbers(numbers: Vec<String>) -> Result<Vec<String>, ApiError> {
    match numbers.len() {
        1..=REQUESTED_MAX => Ok(numbers),
        _ => {
            let sentence = format!("Name 1 to {REQUESTED_MAX} tickets.");
            Err(ApiError::bad_request("INVALID_TICKETS", sentence))
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct ReleaseQuery {
    /// If it is given and is not the present one, nothing is released.
    fencing_token: Option<i64>,
}

/// Releases the user's hold.
///
/// Repeating it changes nothing. Errors: 404 `RESERVATION_NOT_FOUND`; 409 `RESERVATION_CONFIRMED`
/// (cancel it instead), `PAYMENT_IN_PROGRESS`, `STALE_FENCING_TOKEN`.
#[utoipa::path(
    delete, path = "/api/reservations/{id}", tag = "reservations",
    params(("id" = Uuid, Path), ReleaseQuery),
    responses((status = 200, body = ReservationAnswerView), Errors<401, 404, 409>),
)]
async fn release_hold(
    State(ticket): State<TicketService>,
    User(user): User,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Query(query): Query<ReleaseQuery>,
) -> Result<Json<ReservationAnswerView>, ApiError> {
    let token = query.fencing_token;
    ticket.release_hold(ReservationId(id), user.user_id, token, context).await?;
    answer(&ticket, ReservationId(id), user.user_id).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeSeatsBody {
    /// All seats that the hold shall have, each once.
    #[schema(min_items = 1, max_items = 10, example = json!([12, 13]))]
    seat_ids: Vec<SeatId>,
    /// The version of the hold that is changed. If it is not the present one, nothing is changed.
    fencing_token: Option<i64>,
    /// Changes whatever version there is, if `fencingToken` is not given.
    #[serde(default)]
    overwrite: bool,
}

/// Replaces the seats of a hold.
///
/// Needs an entry token. All new seats are held or nothing changes. `expiresAt` stays, and the
/// fencing token is new. The change applies only to the version that `fencingToken` names: of two
/// windows the second does not undo what the first has done. `overwrite` changes any version.
///
/// Errors: 403 and 404 as for holding seats; 409 `SEAT_TAKEN`, `SEAT_LIMIT`, `EVENT_IS_STANDING`,
/// `RESERVATION_EXPIRED`, `RESERVATION_CANCELLED`, `RESERVATION_CONFIRMED`, `PAYMENT_IN_PROGRESS`,
/// `STALE_FENCING_TOKEN`; 428 `FENCING_TOKEN_REQUIRED`.
#[utoipa::path(
    put, path = "/api/reservations/{id}/seats", tag = "reservations",
    params(("id" = Uuid, Path)), request_body = ChangeSeatsBody,
    responses((status = 200, body = ReservationAnswerView), Errors<401, 403, 404, 409, 428>),
)]
async fn change_seats(
    State(ticket): State<TicketService>,
    User(user): User,
    slot: EntrySlot,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<ChangeSeatsBody>,
) -> Result<Json<ReservationAnswerView>, ApiError> {
    if body.fencing_token.is_none() && !body.overwrite {
        return Err(ReservationRejection::TokenRequired.into());
    }
    let request = ChangeSeats {
        user_id: user.user_id,
        seat_ids: RequestedItems::of_seats(body.seat_ids)?.seat_ids().to_vec(),
        fencing_token: body.fencing_token,
    };
    // It takes seats like a booking: a user whose slot has ended keeps the hold but gets no other
    // seats.
    let held = ticket.my_reservation(ReservationId(id), user.user_id).await?;
    let event_id = held.record.reservation.event_id;
    slot.check(&ticket, event_id, user.user_id, context).await?;
    ticket.change_seats(ReservationId(id), request, context).await?;
    answer(&ticket, ReservationId(id), user.user_id).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExtendHoldBody {
    /// The version of the hold that is extended. If it is not the present one, nothing changes.
    fencing_token: i64,
}

/// Gives the user's hold more time, once.
///
/// `extensionSeconds` of the reservation says how much; the fencing token stays. It is for people
/// who need longer to pay. Repeating it changes nothing.
///
/// Errors: 404 `RESERVATION_NOT_FOUND`; 409 `HOLD_NOT_EXTENDABLE`, `RESERVATION_EXPIRED`,
/// `RESERVATION_CANCELLED`, `RESERVATION_CONFIRMED`, `PAYMENT_IN_PROGRESS`, `EVENT_CANCELLED`,
/// `STALE_FENCING_TOKEN`.
#[utoipa::path(
    post, path = "/api/reservations/{id}/extend", tag = "reservations",
    params(("id" = Uuid, Path)), request_body = ExtendHoldBody,
    responses((status = 200, body = ReservationAnswerView), Errors<401, 404, 409>),
)]
async fn extend_hold(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(id): Path<Uuid>,
    Json(body): Json<ExtendHoldBody>,
) -> Result<Json<ReservationAnswerView>, ApiError> {
    ticket.extend_hold(ReservationId(id), user.user_id, body.fencing_token).await?;
    answer(&ticket, ReservationId(id), user.user_id).await
}

/// Returns what a cancellation would refund now.
///
/// The amounts stay the same until `until` unless the event is moved or cancelled. An event that was
/// moved to another day after the booking is refunded in full until it begins. Otherwise the policy
/// of the booking applies, which an event may have of its own. The usual one, by calendar days in
/// Korea: free within 24 hours of the booking if the event
/// is at least 3 days away, and 10 days before the event within 7 days of the booking; otherwise
/// the fee is 10 % (at most 4,000 won per ticket 10 days before), 10 % up to 7 days, 20 % up to 3
/// days, 30 % up to 1 day before, and 90 % on the day. The booking fee goes back on the day of the
/// booking only. `tickets` has the fee and the refund of each ticket that can be cancelled.
///
/// Errors: 404 `RESERVATION_NOT_FOUND`; 409 `RESERVATION_CANCELLED`, `EVENT_STARTED`,
/// `ALREADY_CHECKED_IN`, `RESERVATION_LISTED`.
#[utoipa::path(
    get, path = "/api/reservations/{id}/refund-preview", tag = "reservations",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = RefundPreview), Errors<401, 404, 409>),
)]
async fn preview_refund(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(id): Path<Uuid>,
) -> Result<Json<RefundPreview>, ApiError> {
    Ok(Json(ticket.preview_refund(ReservationId(id), user.user_id).await?))
}

/// The reservation after the operation.
async fn answer(
    ticket: &TicketService,
    id: ReservationId,
    user_id: Uuid,
) -> Result<Json<ReservationAnswerView>, ApiError> {
    let details = ticket.my_reservation(id, user_id).await?;
    let terms = ticket.cancellation_terms(&details).await?;
    let view = ReservationDetailView::new(ticket, &details, terms);
    Ok(Json(ReservationAnswerView { reservation: view }))
}

impl From<ReservationRejection> for ApiError {
    fn from(refused: ReservationRejection) -> ApiError {
        use ReservationRejection as Refused;
        let sentence = refused.to_string();
        let code = match refused {
            Refused::NotFound => return ApiError::not_found("RESERVATION_NOT_FOUND", sentence),
            Refused::TicketNotFound => return ApiError::not_found("TICKET_NOT_FOUND", sentence),
            Refused::TokenRequired => {
                let status = StatusCode::PRECONDITION_REQUIRED;
                return ApiError::new(status, "FENCING_TOKEN_REQUIRED", sentence);
            }
            Refused::Unpaid => "RESERVATION_UNPAID",
            Refused::PaymentInProgress => "PAYMENT_IN_PROGRESS",
            Refused::NotPinned => "NOT_PINNED",
            Refused::AttemptOver => "PAYMENT_ATTEMPT_OVER",
            Refused::Confirmed => "RESERVATION_CONFIRMED",
            Refused::Cancelled => "RESERVATION_CANCELLED",
            Refused::Expired => "RESERVATION_EXPIRED",
            Refused::NotExtendable => "HOLD_NOT_EXTENDABLE",
            Refused::NotRefunding => "NOT_REFUNDING",
            Refused::StaleToken => "STALE_FENCING_TOKEN",
            Refused::WrongAmount => "WRONG_AMOUNT",
            Refused::EventStarted => "EVENT_STARTED",
            Refused::EventCancelled => "EVENT_CANCELLED",
            Refused::CheckedIn => "ALREADY_CHECKED_IN",
            Refused::Listed => "RESERVATION_LISTED",
            Refused::BeingBought => "TRANSFER_BEING_PAID",
            Refused::SoldOn => "TICKET_TRANSFERRED",
            Refused::Complimentary => "TICKETS_COMPLIMENTARY",
            Refused::NotComplimentary => "NOT_COMPLIMENTARY",
            Refused::NotSoldHere => "NOT_SOLD_HERE",
            Refused::SeatLost => "SEAT_LOST",
        };
        ApiError::conflict(code, sentence)
    }
}

impl From<TransitionError> for ApiError {
    fn from(error: TransitionError) -> ApiError {
        match error {
            TransitionError::Rejected(refused) => refused.into(),
            TransitionError::Storage(error) => error.into(),
        }
    }
}
