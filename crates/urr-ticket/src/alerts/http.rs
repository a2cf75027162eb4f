//! The routes of alerts.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Errors, Json, Path, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::alerts::limits::ClosedSubject;
use crate::alerts::rules::{AlertSubject, InvalidAlertQuantity, parse_quantity};
use crate::inventory::rules::NotOnSale;
use crate::{
    AskSeatAlert, SaleAlert, SaleAlertError, SeatAlert, SeatAlertError, SeatAlertId, TicketService,
};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(list_alerts))
        .routes(routes!(ask_sale_alert, withdraw_sale_alert))
        .routes(routes!(ask_seat_alert))
        .routes(routes!(withdraw_seat_alert))
        .routes(routes!(list_gates))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlertListView {
    /// The newest first.
    sale_alerts: Vec<SaleAlertView>,
    /// The newest first.
    seat_alerts: Vec<SeatAlertView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SaleAlertView {
    event_id: Uuid,
    #[schema(example = "한강의 밤")]
    event_title: String,
    venue_name: String,
    event_starts_at: Timestamp,
    /// When the user may buy, by their present tier.
    opens_at: Timestamp,
    /// When the mail is sent.
    alert_at: Timestamp,
    /// When the mail was sent.
    told_at: Option<Timestamp>,
    asked_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SeatAlertView {
    id: Uuid,
    event_id: Uuid,
    #[schema(example = "한강의 밤")]
    event_title: String,
    venue_name: String,
    event_starts_at: Timestamp,
    /// The grade or the name of the ticket type; null for the whole event.
    #[schema(example = "VIP")]
    grade: Option<String>,
    quantity: u32,
    /// `waiting`, `told`, or `taken` if the user then held seats.
    #[schema(example = "waiting")]
    status: &'static str,
    /// How many wait for the same before this user.
    ahead: u32,
    asked_at: Timestamp,
    told_at: Option<Timestamp>,
    /// Until then nobody is told after this user.
    head_start_until: Option<Timestamp>,
}

impl From<SaleAlert> for SaleAlertView {
    fn from(alert: SaleAlert) -> SaleAlertView {
        let SaleAlert { event_id, title, venue_name, starts_at, .. } = alert;
        let SaleAlert { opens_at, alert_at, told_at, asked_at, .. } = alert;
        SaleAlertView {
            event_id,
            event_title: title,
            venue_name,
            event_starts_at: starts_at,
            opens_at,
            alert_at,
            told_at,
            asked_at,
        }
    }
}

impl From<SeatAlert> for SeatAlertView {
    fn from(alert: SeatAlert) -> SeatAlertView {
        SeatAlertView {
            id: alert.id.0,
            event_id: alert.event_id,
            event_title: alert.title,
            venue_name: alert.venue_name,
            event_starts_at: alert.starts_at,
            grade: alert.grade,
            quantity: alert.quantity,
            status: alert.status.as_str(),
            ahead: alert.ahead,
            asked_at: alert.asked_at,
            told_at: alert.told_at,
            head_start_until: alert.head_start_until,
        }
    }
}

/// Lists the user's alerts.
///
/// Both kinds, the newest first. Alerts whose event or sale is over are not listed.
#[utoipa::path(
    get, path = "/api/alerts", tag = "alerts",
    responses((status = 200, body = AlertListView), Errors<401>),
)]
async fn list_alerts(
    State(ticket): State<TicketService>,
    User(user): User,
) -> Result<Json<AlertListView>, ApiError> {
    let sale_alerts = ticket.my_sale_alerts(user.user_id).await?;
    let seat_alerts = ticket.my_seat_alerts(user.user_id).await?;
    Ok(Json(AlertListView {
        sale_alerts: sale_alerts.into_iter().map(SaleAlertView::from).collect(),
        seat_alerts: seat_alerts.into_iter().map(SeatAlertView::from).collect(),
    }))
}

/// Asks for a mail before the sale of an event opens.
///
/// The mail is sent ten minutes (a setting) before the user may buy, which in a pre-sale depends on
/// the tier at that time. If the opening moves, the user is told of the new one. A cancelled event
/// ends the alert without a mail. Repeating it changes nothing.
///
/// Errors: 403 `EMAIL_NOT_VERIFIED` (other addresses get no mail); 404 `EVENT_NOT_FOUND`; 409
/// `SALE_HAS_BEGUN` (the user can buy now), `SALE_ENDED`, `SALE_NOT_READY`, `EVENT_CANCELLED`,
/// `TOO_MANY_ALERTS`.
#[utoipa::path(
    put, path = "/api/alerts/events/{eventId}/sale", tag = "alerts",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SaleAlertView), Errors<401, 403, 404, 409>),
)]
async fn ask_sale_alert(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
) -> Result<Json<SaleAlertView>, ApiError> {
    Ok(Json(ticket.ask_sale_alert(event_id, user.user_id).await?.into()))
}

/// Withdraws the alert before a sale.
///
/// Repeating it changes nothing.
#[utoipa::path(
    delete, path = "/api/alerts/events/{eventId}/sale", tag = "alerts",
    params(("eventId" = Uuid, Path)),
    responses((status = 204, description = "There is no such alert now."), Errors<401>),
)]
async fn withdraw_sale_alert(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    ticket.withdraw_sale_alert(event_id, user.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SeatAlertBody {
    /// A grade of an event with seats. Null, and no ticket type: the whole event.
    #[serde(default)]
    #[schema(example = "VIP")]
    grade: Option<String>,
    /// A ticket type of a standing event.
    #[serde(default)]
    ticket_type_id: Option<Uuid>,
    /// How many the user wants.
    #[schema(minimum = 1, maximum = 10, example = 2)]
    quantity: u32,
}

impl SeatAlertBody {
    fn subject(&self) -> Result<AlertSubject, ApiError> {
        match (&self.grade, self.ticket_type_id) {
            (None, None) => Ok(AlertSubject::whole_event()),
            (Some(grade), None) if !grade.is_empty() => Ok(AlertSubject::grade(grade)),
            (None, Some(id)) => Ok(AlertSubject::ticket_type(id)),
            _ => {
                let sentence = "An alert is about a grade, a ticket type or the whole event.";
                Err(ApiError::bad_request("INVALID_ALERT", sentence))
            }
        }
    }
}

/// Asks for a mail when seats of a sold-out grade, ticket type or event return.
///
/// Users are told in the order of asking, as many as there are seats for, and after a head start
/// (three minutes, a setting) the next. For up to thirty minutes after the return only users who
/// were told may take such seats; others get `SEATS_OFFERED`. The waiting room applies as always.
/// An alert is told once; who wants another asks again. It ends when the user buys, and with the
/// sale. Repeating it keeps the place and sets the quantity.
///
/// Errors: 400 `INVALID_ALERT`; 403 `EMAIL_NOT_VERIFIED`, `PRESALE_MEMBERS_ONLY`; 404
/// `EVENT_NOT_FOUND`, `GRADE_NOT_FOUND`; 409 `SEATS_LEFT` (with `available`: the user can buy now),
/// `SEAT_LIMIT`, `SALE_NOT_OPEN`, `SALE_ENDED`, `SALE_NOT_READY`, `EVENT_CANCELLED`,
/// `TOO_MANY_ALERTS`.
#[utoipa::path(
    put, path = "/api/alerts/events/{eventId}/seats", tag = "alerts",
    params(("eventId" = Uuid, Path)), request_body = SeatAlertBody,
    responses((status = 200, body = SeatAlertView), Errors<400, 401, 403, 404, 409>),
)]
async fn ask_seat_alert(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
    Json(body): Json<SeatAlertBody>,
) -> Result<Json<SeatAlertView>, ApiError> {
    let (subject, quantity) = (body.subject()?, parse_quantity(body.quantity)?);
    let ask = AskSeatAlert { event_id, user_id: user.user_id, subject, quantity };
    Ok(Json(ticket.ask_seat_alert(ask).await?.into()))
}

/// Withdraws an alert about returned seats.
///
/// If the user was told already, the next user is told at once. Repeating it changes nothing.
#[utoipa::path(
    delete, path = "/api/alerts/seats/{id}", tag = "alerts",
    params(("id" = Uuid, Path)),
    responses((status = 204, description = "The user has no such alert now."), Errors<401>),
)]
async fn withdraw_seat_alert(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    ticket.withdraw_seat_alert(SeatAlertId(id), user.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GateListView {
    gates: Vec<GateView>,
}

/// A grade or ticket type that is for users who were told.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GateView {
    /// Of an event with seats.
    #[schema(example = "VIP")]
    grade: Option<String>,
    /// Of a standing event.
    ticket_type_id: Option<Uuid>,
    /// How many this user may take: 0, or as many as they were told of.
    quantity_max: u32,
    /// When everybody may take them, at the latest; null while nothing has returned.
    opens_at: Option<Timestamp>,
}

impl From<ClosedSubject> for GateView {
    fn from(closed: ClosedSubject) -> GateView {
        let ClosedSubject { grade, ticket_type_id, quantity_max, opens_at } = closed;
        GateView { grade, ticket_type_id, quantity_max, opens_at }
    }
}

/// Lists what of an event is kept from the user for fans who asked before.
///
/// Seats of these grades look free in the seat map, which is the same for everybody; a page shows
/// them as taken. An empty list: everything that is free can be had. Ask again while it is not
/// empty, and when something of a sold-out grade returns. Errors: 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/alerts/events/{eventId}/gates", tag = "alerts",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = GateListView), Errors<401, 404>),
)]
async fn list_gates(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
) -> Result<Json<GateListView>, ApiError> {
    let found = ticket.my_gates(event_id, user.user_id).await?.ok_or(NotOnSale::NotFound)?;
    Ok(Json(GateListView { gates: found.into_iter().map(GateView::from).collect() }))
}

impl From<InvalidAlertQuantity> for ApiError {
    fn from(invalid: InvalidAlertQuantity) -> ApiError {
        ApiError::bad_request("INVALID_ALERT", invalid.to_string())
    }
}

impl From<SaleAlertError> for ApiError {
    fn from(error: SaleAlertError) -> ApiError {
        let sentence = error.to_string();
        match error {
            SaleAlertError::NotOnSale(reason) => reason.into(),
            SaleAlertError::HasBegun => ApiError::conflict("SALE_HAS_BEGUN", sentence),
            SaleAlertError::TooMany { alerts_max } => {
                ApiError::conflict("TOO_MANY_ALERTS", sentence).with("alertsMax", alerts_max)
            }
            SaleAlertError::Storage(error) => error.into(),
        }
    }
}

impl From<SeatAlertError> for ApiError {
    fn from(error: SeatAlertError) -> ApiError {
        let sentence = error.to_string();
        match error {
            SeatAlertError::NotOnSale(reason) => reason.into(),
            SeatAlertError::SubjectNotFound => ApiError::not_found("GRADE_NOT_FOUND", sentence),
            SeatAlertError::SeatsLeft { available } => {
                ApiError::conflict("SEATS_LEFT", sentence).with("available", available)
            }
            SeatAlertError::SeatLimit { seats_per_user_max, live_quantity } => {
                ApiError::conflict("SEAT_LIMIT", sentence)
                    .with("seatsPerUserMax", seats_per_user_max)
                    .with("alreadyYours", live_quantity)
            }
            SeatAlertError::TooMany { alerts_max } => {
                ApiError::conflict("TOO_MANY_ALERTS", sentence).with("alertsMax", alerts_max)
            }
            SeatAlertError::Storage(error) => error.into(),
        }
    }
}
