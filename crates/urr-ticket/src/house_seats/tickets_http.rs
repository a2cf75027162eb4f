//! The routes of complimentary tickets and of the box office.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use urr_kernel::{Uuid, Won, one_line};
use urr_service::{
    ApiError, Context, DoorStaff, Errors, Json, Organiser, Path, preferred_language,
};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::box_office::{BoxOfficeMethod, BoxOfficeRefund, BoxOfficeRequest};
use super::complimentary::{ComplimentaryRequest, RevokeRequest};
use super::guests::HouseGuest;
use super::http::{HousePlacesBody, HouseReservationView, keyed, parse_places};
use crate::http::event_not_found;
use crate::reservations::http::admin::parse_reason;
use crate::reservations::http::parse_ticket_numbers;
use crate::reservations::http::views::TicketView;
use crate::{FeeMode, HouseList, ReservationId, TicketService};

/// So many tickets are issued at once.
const ISSUED_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 100;
const EMAIL_CHARS_MAX: usize = 254;
const RECEIPT_CHARS_MAX: usize = 50;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(issue_complimentary_tickets))
        .routes(routes!(revoke_complimentary_tickets))
        .routes(routes!(list_box_office_sales, sell_at_box_office))
        .routes(routes!(refund_at_box_office))
        .routes(routes!(get_house_ticket_document))
}

/// Tickets that were issued.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HouseTicketsView {
    reservation_id: Uuid,
    reservation_number: String,
    #[schema(value_type = i64)]
    total_amount: Won,
    /// `confirmed` or `cancelled`.
    #[schema(example = "confirmed")]
    status: &'static str,
    tickets: Vec<TicketView>,
}

async fn tickets_view(
    ticket: &TicketService,
    id: ReservationId,
) -> Result<Json<HouseTicketsView>, ApiError> {
    let details = ticket.reservation_details(id).await?;
    let view = |one| TicketView::new(one, &details, &ticket.signer);
    let reservation = &details.record.reservation;
    Ok(Json(HouseTicketsView {
        reservation_id: reservation.id.0,
        reservation_number: reservation.number.clone(),
        total_amount: reservation.total_amount,
        status: reservation.status.as_str(),
        tickets: details.tickets.iter().map(view).collect(),
    }))
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ComplimentaryBody {
    places: HousePlacesBody,
    #[schema(min_length = 1, max_length = 200, example = "초대권")]
    reason: String,
    /// Whose account gets the tickets.
    user_id: Option<Uuid>,
    /// Without an account: who comes.
    #[schema(max_length = 100)]
    guest_name: Option<String>,
    /// If it is the verified address of an account, the account gets them.
    #[schema(max_length = 254, example = "mina@example.com")]
    guest_email: Option<String>,
}

/// Gives tickets away.
///
/// For the event's organiser and administrators, of free or blocked places, whether the sale is open
/// or not. The tickets cost nothing, and limits per buyer do not apply to them. They cannot be
/// passed on or refunded. With `Idempotency-Key` a retry gets the first answer. Errors: 400
/// `INVALID_HOUSE_SEATS`, `INVALID_REASON`, `INVALID_GUEST`; 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`, `TICKET_TYPE_NOT_FOUND`, `USER_NOT_FOUND`; 409 `SEAT_TAKEN` (with `seatIds`),
/// `NOT_ENOUGH`, `NOT_ENOUGH_BLOCKED`, `EVENT_CANCELLED`; 422 `IDEMPOTENCY_KEY_REUSED`; 503
/// `BUYERS_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/events/{eventId}/complimentary-tickets", tag = "tickets",
    params(("eventId" = Uuid, Path)), request_body = ComplimentaryBody,
    responses((status = 201, body = HouseTicketsView), Errors<401, 403, 404, 409, 422>),
)]
async fn issue_complimentary_tickets(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    headers: HeaderMap,
    Json(body): Json<ComplimentaryBody>,
) -> Result<(StatusCode, Json<HouseTicketsView>), ApiError> {
    let key = keyed(&headers, organiser.user_id, "issue_complimentary", &(event_id, &body))?;
    ticket.check_event(event_id, organiser.event_scope()).await?;
    let inventory = ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    let request = ComplimentaryRequest {
        event_id,
        places: parse_places(&inventory, &body.places, ISSUED_MAX)?,
        reason: parse_reason(&body.reason)?,
        user_id: body.user_id,
        guest: parse_guest(&body)?,
        organiser_id: organiser.user_id,
        key,
    };
    let id = ticket.issue_complimentary(request, context).await?;
    Ok((StatusCode::CREATED, tickets_view(&ticket, id).await?))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RevokeBody {
    #[schema(min_length = 1, max_length = 200)]
    reason: String,
    /// Whether their places are blocked again. If not, they are on sale.
    #[serde(default)]
    block_again: bool,
}

/// Revokes complimentary tickets.
///
/// For the event's organiser and administrators. Repeating it changes nothing. Errors: 400
/// `INVALID_REASON`; 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`, `RESERVATION_NOT_FOUND`; 409
/// `ALREADY_CHECKED_IN`, `NOT_COMPLIMENTARY`.
#[utoipa::path(
    post, path = "/api/admin/events/{eventId}/complimentary-tickets/{id}/revoke", tag = "tickets",
    params(("eventId" = Uuid, Path), ("id" = Uuid, Path)), request_body = RevokeBody,
    responses((status = 200, body = HouseTicketsView), Errors<401, 403, 404, 409>),
)]
async fn revoke_complimentary_tickets(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Context(context): Context,
    Path((event_id, id)): Path<(Uuid, Uuid)>,
    Json(body): Json<RevokeBody>,
) -> Result<Json<HouseTicketsView>, ApiError> {
    ticket.check_event(event_id, organiser.event_scope()).await?;
    let request = RevokeRequest {
        event_id,
        reservation_id: ReservationId(id),
        is_blocked_again: body.block_again,
        reason: parse_reason(&body.reason)?,
        organiser_id: organiser.user_id,
    };
    ticket.revoke_complimentary(request, context).await?;
    tickets_view(&ticket, ReservationId(id)).await
}

/// What was sold at the box office.
#[derive(Serialize, ToSchema)]
struct BoxOfficeSalesView {
    /// The newest first; 500 at most.
    sales: Vec<HouseReservationView>,
}

/// Lists sales at the box office.
///
/// For those who may sell there. Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/box-office", tag = "tickets",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = BoxOfficeSalesView), Errors<401, 403, 404>),
)]
async fn list_box_office_sales(
    State(ticket): State<TicketService>,
    DoorStaff(seller): DoorStaff,
    Path(event_id): Path<Uuid>,
) -> Result<Json<BoxOfficeSalesView>, ApiError> {
    ticket.check_seller(event_id, seller.event_scope()).await?;
    let sales = ticket.list_house_reservations(event_id, HouseList::Sales).await?.into_iter();
    let sales = sales.map(|sale| HouseReservationView::new(sale, None)).collect();
    Ok(Json(BoxOfficeSalesView { sales }))
}

#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum BoxOfficeMethodBody {
    Cash,
    /// At a card terminal.
    Card,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BoxOfficeBody {
    places: HousePlacesBody,
    method: BoxOfficeMethodBody,
    /// What the card terminal printed.
    #[schema(max_length = 50, example = "20261224-0071")]
    receipt_number: Option<String>,
}

/// Sells tickets at the box office.
///
/// For the event's organiser, administrators, and door staff who are assigned to the event and may
/// sell there. Free or blocked places are sold at their price, whether the sale is open, paused or
/// over. The buyer pays in cash or at a card terminal; no provider is asked. With `Idempotency-Key`
/// a retry gets the first answer. Errors: 400 `INVALID_HOUSE_SEATS`, `INVALID_RECEIPT_NUMBER`; 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`, `TICKET_TYPE_NOT_FOUND`; 409 `SEAT_TAKEN` (with
/// `seatIds`), `NOT_ENOUGH`, `NOT_ENOUGH_BLOCKED`, `EVENT_CANCELLED`; 422 `IDEMPOTENCY_KEY_REUSED`.
#[utoipa::path(
    post, path = "/api/admin/events/{eventId}/box-office", tag = "tickets",
    params(("eventId" = Uuid, Path)), request_body = BoxOfficeBody,
    responses((status = 201, body = HouseTicketsView), Errors<401, 403, 404, 409, 422>),
)]
async fn sell_at_box_office(
    State(ticket): State<TicketService>,
    DoorStaff(seller): DoorStaff,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    headers: HeaderMap,
    Json(body): Json<BoxOfficeBody>,
) -> Result<(StatusCode, Json<HouseTicketsView>), ApiError> {
    let key = keyed(&headers, seller.user_id, "sell_at_box_office", &(event_id, &body))?;
    ticket.check_seller(event_id, seller.event_scope()).await?;
    let inventory = ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    let request = BoxOfficeRequest {
        event_id,
        places: parse_places(&inventory, &body.places, ISSUED_MAX)?,
        method: match body.method {
            BoxOfficeMethodBody::Cash => BoxOfficeMethod::Cash,
            BoxOfficeMethodBody::Card => BoxOfficeMethod::Card,
        },
        receipt_number: parse_receipt(body.receipt_number.as_deref())?,
        seller_id: seller.user_id,
        key,
    };
    let id = ticket.sell_at_box_office(request, context).await?;
    Ok((StatusCode::CREATED, tickets_view(&ticket, id).await?))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BoxOfficeRefundBody {
    /// Whether the cancellation fee of the event is kept. By default everything is refunded.
    #[serde(default)]
    by_policy: bool,
    /// Only these tickets, by their numbers; the whole sale by default.
    #[serde(default)]
    #[schema(min_items = 1, max_items = 10)]
    ticket_numbers: Option<Vec<String>>,
    /// What the card terminal printed.
    #[schema(max_length = 50)]
    receipt_number: Option<String>,
}

/// Takes tickets back that were sold at the box office; the money was handed over there.
///
/// For those who may sell there. Their seats are on sale again. Repeating it changes nothing.
/// Errors: 400 `INVALID_TICKETS`, `INVALID_RECEIPT_NUMBER`; 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`, `RESERVATION_NOT_FOUND`, `TICKET_NOT_FOUND`; 409 `NOT_SOLD_HERE`,
/// `ALREADY_CHECKED_IN`.
#[utoipa::path(
    post, path = "/api/admin/events/{eventId}/box-office/{id}/refund", tag = "tickets",
    params(("eventId" = Uuid, Path), ("id" = Uuid, Path)), request_body = BoxOfficeRefundBody,
    responses((status = 200, body = HouseTicketsView), Errors<401, 403, 404, 409>),
)]
async fn refund_at_box_office(
    State(ticket): State<TicketService>,
    DoorStaff(seller): DoorStaff,
    Context(context): Context,
    Path((event_id, id)): Path<(Uuid, Uuid)>,
    Json(body): Json<BoxOfficeRefundBody>,
) -> Result<Json<HouseTicketsView>, ApiError> {
    ticket.check_seller(event_id, seller.event_scope()).await?;
    let refund = BoxOfficeRefund {
        seller_id: seller.user_id,
        fee: if body.by_policy { FeeMode::ByPolicy } else { FeeMode::Waived },
        receipt_number: parse_receipt(body.receipt_number.as_deref())?,
        ticket_numbers: body.ticket_numbers.map(parse_ticket_numbers).transpose()?,
    };
    ticket.refund_at_box_office(event_id, ReservationId(id), refund, context).await?;
    tickets_view(&ticket, ReservationId(id)).await
}

/// Returns tickets that were given away or sold at the box office as a PDF.
///
/// For those who may sell there. Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`,
/// `RESERVATION_NOT_FOUND`; 409 `NO_VALID_TICKET`, `NOT_SOLD_HERE`; 503 `DOCUMENTS_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/box-office/{id}/tickets.pdf", tag = "tickets",
    params(("eventId" = Uuid, Path), ("id" = Uuid, Path)),
    responses(
        (status = 200, content_type = "application/pdf", body = Vec<u8>),
        Errors<401, 403, 404, 409, 503>,
    ),
)]
async fn get_house_ticket_document(
    State(ticket): State<TicketService>,
    DoorStaff(seller): DoorStaff,
    Path((event_id, id)): Path<(Uuid, Uuid)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    ticket.check_seller(event_id, seller.event_scope()).await?;
    let language = preferred_language(&headers);
    let document = ticket.house_ticket_document(event_id, ReservationId(id), language).await?;
    let file = format!("attachment; filename=\"tickets-{}.pdf\"", document.reservation_number);
    let headers = [
        (header::CONTENT_TYPE, "application/pdf".to_owned()),
        (header::CONTENT_DISPOSITION, file),
        (header::CONTENT_LANGUAGE, language.as_str().to_owned()),
    ];
    Ok((headers, document.pdf).into_response())
}

/// A text that may be missing.
fn parse_line(text: Option<&str>, chars_max: usize) -> Result<Option<String>, ()> {
    match text.map(str::trim).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => one_line(text, chars_max).map(|text| Some(text.to_owned())).map_err(drop),
    }
}

fn parse_receipt(number: Option<&str>) -> Result<Option<String>, ApiError> {
    parse_line(number, RECEIPT_CHARS_MAX).map_err(|()| {
        let sentence = format!("A receipt number has up to {RECEIPT_CHARS_MAX} characters.");
        ApiError::bad_request("INVALID_RECEIPT_NUMBER", sentence)
    })
}

fn parse_guest(body: &ComplimentaryBody) -> Result<HouseGuest, ApiError> {
    let invalid = |()| {
        let sentence = "Name an account, or a guest by name, and by address if you have one.";
        ApiError::bad_request("INVALID_GUEST", sentence)
    };
    let name = parse_line(body.guest_name.as_deref(), NAME_CHARS_MAX).map_err(invalid)?;
    let email = parse_line(body.guest_email.as_deref(), EMAIL_CHARS_MAX).map_err(invalid)?;
    let is_address = |email: &String| {
        email.is_ascii()
            && !email.contains(' ')
            && email.split('@').count() == 2
            && !email.starts_with('@')
            && !email.ends_with('@')
    };
    let has_one = body.user_id.is_some() != name.is_some();
    if !has_one || email.as_ref().is_some_and(|email| !is_address(email)) {
        return Err(invalid(()));
    }
    Ok(HouseGuest { name, email })
}
