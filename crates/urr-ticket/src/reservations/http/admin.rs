//! The routes of reservations for administrators. A status is never set, only transitions are made
//! (M-10).

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use urr_kernel::{CallContext, Timestamp, Uuid, Won, paragraphs, start_of_korean_date};
use urr_service::admin_log::{self, AdminLogView};
use urr_service::whole_audit::WholeAuditState;
use urr_service::{
    Admin, ApiError, Context, CursorPage, Errors, EventReader, EventScope, Json, Page, Path, Query,
    UserRole, search_text,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::reservations::buyers::Buyers;
use crate::reservations::history::{HistoryDetails, HistoryEntry, HistoryKind};
use crate::reservations::http::views::AdminReservationView;
use crate::reservations::http::{parse_status, parse_ticket_numbers};
use crate::reservations::resend::ResendError;
use crate::reservations::search::{ReservationSearch, ReservationSearchError};
use crate::{
    AdminCancel, AuditReport, CancelTickets, FeeMode, ReservationDetails, ReservationFilter,
    ReservationId, TicketCanceller, TicketService,
};

const REASON_CHARS_MAX: usize = 200;

/// A breaker tries the service again by then.
pub const PEER_RETRY_AFTER: Duration = Duration::from_secs(5);

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(list_reservations))
        .routes(routes!(get_reservation_audit, audit_reservations))
        .routes(routes!(get_any_reservation))
        .routes(routes!(get_reservation_history))
        .routes(routes!(list_reservation_actions))
        .routes(routes!(resend_tickets))
        .routes(routes!(cancel_any_reservation))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AdminReservationListView {
    reservations: Vec<AdminReservationView>,
    /// The `cursor` of the next page; null at the end.
    next_cursor: Option<Uuid>,
    /// Whether the auth service has answered. If not, every `buyer` is null.
    buyers_available: bool,
}

#[derive(Serialize, ToSchema)]
struct AdminReservationAnswer {
    reservation: AdminReservationView,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct AdminFilter {
    /// `pending`, `confirmed`, `cancelled` or `expired`.
    #[param(example = "confirmed")]
    status: Option<String>,
    event_id: Option<Uuid>,
    user_id: Option<Uuid>,
    /// The calendar day in Korea on which it was made.
    #[param(value_type = Option<String>, format = Date, example = "2026-12-01")]
    day: Option<Date>,
    /// The number of a reservation or ticket, its id, or the buyer's whole e-mail address, name or
    /// phone number.
    #[param(max_length = 100, example = "R-7ZQ0-M4KD-91XA")]
    q: Option<String>,
}

impl AdminFilter {
    fn parse(
        &self,
        scope: EventScope,
    ) -> Result<(Option<ReservationSearch>, ReservationFilter), ApiError> {
        let text = search_text(self.q.as_deref())?;
        let filter = ReservationFilter {
            user_id: self.user_id,
            event_id: self.event_id,
            status: parse_status(self.status.as_deref())?,
            organiser_id: scope.organiser_id(),
            created_from: self.day.map(start_of_korean_date),
            created_before: self.day.and_then(|day| day.tomorrow().ok()).map(start_of_korean_date),
            ..ReservationFilter::default()
        };
        Ok((ReservationSearch::parse(text), filter))
    }
}

/// Lists and finds reservations, newest first.
///
/// For organisers (of their own events), support and administrators (all). The filters combine.
/// Names and addresses are encrypted, so `q` finds whole ones only, in any case. Organisers see an
/// address by its first letter and its domain. While the auth service is away `buyersAvailable` is
/// false, and only numbers are found.
///
/// Errors: 400 `INVALID_STATUS`, `INVALID_QUERY`; 409 `TOO_MANY_BUYERS` (more than 50 people have
/// the name); 503 `BUYERS_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/admin/reservations", tag = "admin", params(CursorPage, AdminFilter),
    responses((status = 200, body = AdminReservationListView), Errors<401, 403, 409>),
)]
async fn list_reservations(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    page: CursorPage,
    Query(filter): Query<AdminFilter>,
) -> Result<Json<AdminReservationListView>, ApiError> {
    let scope = reader.event_scope();
    let (search, filter) = filter.parse(scope)?;
    let found = ticket.search_reservations(search, filter, page, &context).await?;
    let (found, next_cursor) = page.split(found, |one| one.record.reservation.id.0);
    let user_ids = found.iter().map(|one| one.record.reservation.user_id).collect();
    let buyers = ticket.find_buyers(user_ids, scope, &context).await;
    let now = ticket.clock.now();
    let view = |one: &ReservationDetails| AdminReservationView::new(one, buyers.as_ref(), now);
    Ok(Json(AdminReservationListView {
        reservations: found.iter().map(view).collect(),
        next_cursor,
        buyers_available: buyers.is_some(),
    }))
}

impl From<ReservationSearchError> for ApiError {
    fn from(error: ReservationSearchError) -> ApiError {
        let sentence = error.to_string();
        match error {
            ReservationSearchError::TooManyBuyers => {
                ApiError::conflict("TOO_MANY_BUYERS", sentence)
            }
            ReservationSearchError::BuyersUnavailable => {
                ApiError::unavailable("BUYERS_UNAVAILABLE", sentence, PEER_RETRY_AFTER)
            }
            ReservationSearchError::Storage(error) => error.into(),
        }
    }
}

/// Returns any user's reservation.
///
/// For the organiser of the event, support and administrators. Errors: 404
/// `RESERVATION_NOT_FOUND`, also for a reservation of somebody else's event.
#[utoipa::path(
    get, path = "/api/admin/reservations/{id}", tag = "admin", params(("id" = Uuid, Path)),
    responses((status = 200, body = AdminReservationAnswer), Errors<401, 403, 404>),
)]
async fn get_any_reservation(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<Json<AdminReservationAnswer>, ApiError> {
    let scope = reader.event_scope();
    ticket.find_in_scope(ReservationId(id), scope).await?;
    answer(&ticket, ReservationId(id), scope, &context).await
}

#[derive(Serialize, ToSchema)]
struct ReservationHistoryView {
    /// In the order of time.
    entries: Vec<HistoryEntryView>,
    /// What could not be asked for: `payments`, `mails` or `names`.
    #[schema(example = json!([]))]
    missing: Vec<&'static str>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HistoryEntryView {
    at: Timestamp,
    kind: HistoryKind,
    /// `owner`, `admin` (anybody who looks after reservations, or at the door) or `system`.
    #[schema(example = "owner")]
    by: &'static str,
    /// Null for the system.
    user_id: Option<Uuid>,
    /// Null also if the account was deleted.
    user_name: Option<String>,
    /// What was paid or goes back.
    #[schema(value_type = Option<i64>)]
    amount: Option<Won>,
    /// Why, as a code or in somebody's words.
    reason: Option<String>,
    details: HistoryDetails,
}

impl HistoryEntryView {
    fn new(entry: HistoryEntry, users: Option<&Buyers>) -> HistoryEntryView {
        let HistoryEntry { at, kind, by, amount, reason, details } = entry;
        let user_id = by.user_id();
        let user = users.zip(user_id).and_then(|(users, id)| users.get(&id));
        let user_name = user.map(|user| user.name.clone());
        HistoryEntryView { at, kind, by: by.name(), user_id, user_name, amount, reason, details }
    }
}

/// Returns what happened to a reservation, and who did it.
///
/// For the organiser of the event, support and administrators: held, extended, seats changed, paid,
/// declined, offered, handed over, cancelled in part or as a whole, refunded, checked in, out and in
/// again, a check-in undone, told of a moved event, written to. Payments and mails are asked for; `missing` names who did not answer.
///
/// Errors: 404 `RESERVATION_NOT_FOUND`, also for a reservation of somebody else's event.
#[utoipa::path(
    get, path = "/api/admin/reservations/{id}/history", tag = "admin",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = ReservationHistoryView), Errors<401, 403, 404>),
)]
async fn get_reservation_history(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<Json<ReservationHistoryView>, ApiError> {
    let scope = reader.event_scope();
    let record = ticket.find_in_scope(ReservationId(id), scope).await?;
    let history = ticket.reservation_history(&record, &context).await?;
    let users = ticket.find_buyers(history.user_ids(), scope, &context).await;
    let mut missing = history.missing;
    missing.extend(users.is_none().then_some("names"));
    let view = |entry| HistoryEntryView::new(entry, users.as_ref());
    let entries = history.entries.into_iter().map(view).collect();
    Ok(Json(ReservationHistoryView { entries, missing }))
}

/// Lists what administrators and organisers did to a reservation, newest first.
///
/// For the organiser of the event, support and administrators. Errors: 404 `RESERVATION_NOT_FOUND`,
/// also for a reservation of somebody else's event.
#[utoipa::path(
    get, path = "/api/admin/reservations/{id}/log", tag = "admin",
    params(("id" = Uuid, Path), Page),
    responses((status = 200, body = AdminLogView), Errors<401, 403, 404>),
)]
async fn list_reservation_actions(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Path(id): Path<Uuid>,
    page: Page,
) -> Result<Json<AdminLogView>, ApiError> {
    ticket.find_in_scope(ReservationId(id), reader.event_scope()).await?;
    admin_log::list_of_resource(&ticket.db, id.to_string(), page).await
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ResentMailView {
    mail_id: Uuid,
}

/// Sends the mail with the tickets to their owner once more.
///
/// For the organiser of the event, support and administrators; at most once in five minutes. Errors:
/// 404 `RESERVATION_NOT_FOUND`; 409 `RESERVATION_UNPAID`, `RESERVATION_CANCELLED`,
/// `RESERVATION_EXPIRED`, `MAIL_SENT_RECENTLY` (with `retryAfter`); 503 `SERVICE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/reservations/{id}/resend-mail", tag = "admin",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = ResentMailView), Errors<401, 403, 404, 409>),
)]
async fn resend_tickets(
    State(ticket): State<TicketService>,
    EventReader(admin): EventReader,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<Json<ResentMailView>, ApiError> {
    let record = ticket.find_in_scope(ReservationId(id), admin.event_scope()).await?;
    let mail_id = ticket.resend_tickets(&record, admin.user_id, &context).await?;
    Ok(Json(ResentMailView { mail_id }))
}

impl From<ResendError> for ApiError {
    fn from(error: ResendError) -> ApiError {
        match error {
            ResendError::Rejected(rejection) => rejection.into(),
            ResendError::MailUnavailable => {
                let sentence = error.to_string();
                ApiError::unavailable("SERVICE_UNAVAILABLE", sentence, PEER_RETRY_AFTER)
            }
            ResendError::Mail(error) => error.into(),
            ResendError::Storage(error) => error.into(),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AdminCancelBody {
    /// Written to the admin log and shown to the owner.
    #[schema(min_length = 1, max_length = 200)]
    reason: String,
    /// How much of the paid amount is refunded; everything by default.
    #[serde(default)]
    refund: AdminRefundMode,
    /// Only these tickets, by their numbers; the whole reservation by default.
    #[serde(default)]
    #[schema(min_items = 1, max_items = 10)]
    ticket_numbers: Option<Vec<String>>,
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum AdminRefundMode {
    /// Everything, the booking fee too.
    #[default]
    Full,
    /// As much as if the owner had cancelled.
    Policy,
}

/// Cancels any user's reservation.
///
/// For the organiser of the event, support (up to a limit) and administrators, also after the event
/// started. `reason` is shown to the owner. `refund` is `full` (the default, with the booking fee)
/// or `policy` (as if the owner had cancelled). `ticketNumbers` cancels single tickets of a paid
/// reservation. Errors: 400 `INVALID_REASON` (1 to 200 characters), `INVALID_TICKETS`; 403
/// `REFUND_ABOVE_LIMIT` (with `limit`); 404 `RESERVATION_NOT_FOUND`, `TICKET_NOT_FOUND`; 409
/// `PAYMENT_IN_PROGRESS`, `RESERVATION_EXPIRED`, `RESERVATION_UNPAID`, `ALREADY_CHECKED_IN`,
/// `RESERVATION_LISTED`.
#[utoipa::path(
    post, path = "/api/admin/reservations/{id}/cancel", tag = "admin",
    params(("id" = Uuid, Path)), request_body = AdminCancelBody,
    responses((status = 200, body = AdminReservationAnswer), Errors<401, 403, 404, 409>),
)]
async fn cancel_any_reservation(
    State(ticket): State<TicketService>,
    EventReader(admin): EventReader,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<AdminCancelBody>,
) -> Result<Json<AdminReservationAnswer>, ApiError> {
    let reason = parse_reason(&body.reason)?;
    let record = ticket.find_in_scope(ReservationId(id), admin.event_scope()).await?;
    let amount = record.reservation.total_amount;
    if admin.role == UserRole::Support && amount > ticket.settings.support_refund_max {
        return Err(refund_above_limit(ticket.settings.support_refund_max));
    }
    let fee = match body.refund {
        AdminRefundMode::Full => FeeMode::Waived,
        AdminRefundMode::Policy => FeeMode::ByPolicy,
    };
    let by = AdminCancel { admin_id: admin.user_id, reason, fee, payment_id: None };
    match body.ticket_numbers.map(parse_ticket_numbers).transpose()? {
        None => ticket.cancel_as_admin(ReservationId(id), by, context).await?,
        Some(ticket_numbers) => {
            let request = CancelTickets { ticket_numbers, by: TicketCanceller::Admin(by) };
            ticket.cancel_tickets(ReservationId(id), request, context).await?
        }
    };
    answer(&ticket, ReservationId(id), admin.event_scope(), &context).await
}

fn refund_above_limit(limit: Won) -> ApiError {
    let sentence = "This is more than support may refund. Please ask an administrator.";
    ApiError::forbidden("REFUND_ABOVE_LIMIT", sentence).with("limit", limit.amount())
}

/// Why an administrator cancels.
pub fn parse_reason(reason: &str) -> Result<String, ApiError> {
    match paragraphs(reason, REASON_CHARS_MAX) {
        Ok(reason) if !reason.is_empty() => Ok(reason.to_owned()),
        _ => {
            let sentence =
                format!("A reason has 1 to {REASON_CHARS_MAX} characters that can be shown.");
            Err(ApiError::bad_request("INVALID_REASON", sentence))
        }
    }
}

async fn answer(
    ticket: &TicketService,
    id: ReservationId,
    scope: EventScope,
    context: &CallContext,
) -> Result<Json<AdminReservationAnswer>, ApiError> {
    let details = ticket.reservation_details(id).await?;
    let user_ids = vec![details.record.reservation.user_id];
    let buyers = ticket.find_buyers(user_ids, scope, context).await;
    let reservation = AdminReservationView::new(&details, buyers.as_ref(), ticket.clock.now());
    Ok(Json(AdminReservationAnswer { reservation }))
}

/// The last audit of every event, and whether one runs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReservationAuditStateView {
    /// Null if none has ended yet.
    last: Option<AuditReport>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    /// When the one under way began; null if none is.
    running_since: Option<Timestamp>,
}

impl From<WholeAuditState<AuditReport>> for ReservationAuditStateView {
    fn from(state: WholeAuditState<AuditReport>) -> ReservationAuditStateView {
        let WholeAuditState { last, started_at, ended_at, running_since } = state;
        ReservationAuditStateView { last, started_at, ended_at, running_since }
    }
}

/// The last audit of seats, reservations, stock and tickets.
///
/// For administrators. What did not agree when every event was last audited. That happens once a day,
/// and when it is ordered; events that change are audited every five minutes.
#[utoipa::path(
    get, path = "/api/admin/reservations/audit", tag = "admin",
    responses((status = 200, body = ReservationAuditStateView), Errors<401, 403>),
)]
async fn get_reservation_audit(
    State(ticket): State<TicketService>,
    _admin: Admin,
) -> Result<Json<ReservationAuditStateView>, ApiError> {
    Ok(Json(ticket.whole_audit().state::<AuditReport>().await?.into()))
}

/// Audits seats, reservations, stock and tickets now.
///
/// For administrators. It reads every event in the background, unless an audit runs already. 200: it
/// has ended. 202: it still runs; get the last audit later.
#[utoipa::path(
    post, path = "/api/admin/reservations/audit", tag = "admin",
    responses(
        (status = 200, body = ReservationAuditStateView, description = "It has ended."),
        (status = 202, body = ReservationAuditStateView, description = "It still runs."),
        Errors<401, 403>,
    ),
)]
async fn audit_reservations(
    State(ticket): State<TicketService>,
    _admin: Admin,
) -> Result<(StatusCode, Json<ReservationAuditStateView>), ApiError> {
    let (audit, run) = (ticket.whole_audit(), ticket.clone());
    audit.order(async move { run.audit().await }).await?;
    let state = audit.state::<AuditReport>().await?;
    Ok((state.ordered(), Json(state.into())))
}
