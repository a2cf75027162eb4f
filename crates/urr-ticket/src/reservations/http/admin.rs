//! The routes of reservations for administrators. A status is never set, only transitions are made
//! (M-10).

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Uuid, Won, paragraphs};
use urr_service::{
    Admin, ApiError, Context, Errors, EventReader, Json, Page, Paged, Pagination, Path, Query,
    UserRole,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::reservations::http::views::AdminReservationView;
use crate::reservations::http::{parse_status, parse_ticket_numbers};
use crate::{
    AdminCancel, AuditReport, CancelTickets, FeeMode, ReservationFilter, ReservationId,
    TicketCanceller, TicketService,
};

const REASON_CHARS_MAX: usize = 200;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(list_reservations))
        .routes(routes!(audit_reservations))
        .routes(routes!(get_any_reservation))
        .routes(routes!(cancel_any_reservation))
}

#[derive(Serialize, ToSchema)]
struct AdminReservationListView {
    reservations: Vec<AdminReservationView>,
    pagination: Pagination,
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
}

/// Lists reservations, newest first.
///
/// For organisers (of their own events), support and administrators (all). Errors: 400 `INVALID_STATUS`.
#[utoipa::path(
    get, path = "/api/admin/reservations", tag = "admin", params(Page, AdminFilter),
    responses((status = 200, body = AdminReservationListView), Errors<401, 403>),
)]
async fn list_reservations(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    page: Page,
    Query(filter): Query<AdminFilter>,
) -> Result<Json<AdminReservationListView>, ApiError> {
    let status = parse_status(filter.status.as_deref())?;
    let (user_id, event_id) = (filter.user_id, filter.event_id);
    let organiser_id = reader.event_scope().organiser_id();
    let filter = ReservationFilter { user_id, event_id, status, organiser_id };
    let (details, total) = ticket.list_reservations(filter, page).await?;
    let now = ticket.clock.now();
    let views = details.iter().map(|details| AdminReservationView::new(details, now)).collect();
    let Paged { items: reservations, pagination } = Paged::new(views, total, page);
    Ok(Json(AdminReservationListView { reservations, pagination }))
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
    Path(id): Path<Uuid>,
) -> Result<Json<AdminReservationAnswer>, ApiError> {
    ticket.find_in_scope(ReservationId(id), reader.event_scope()).await?;
    answer(&ticket, ReservationId(id)).await
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
    answer(&ticket, ReservationId(id)).await
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
) -> Result<Json<AdminReservationAnswer>, ApiError> {
    let details = ticket.reservation_details(id).await?;
    let reservation = AdminReservationView::new(&details, ticket.clock.now());
    Ok(Json(AdminReservationAnswer { reservation }))
}

/// Audits seats, reservations, stock and tickets.
///
/// For administrators. Lists what does not agree.
#[utoipa::path(
    get, path = "/api/admin/reservations/audit", tag = "admin",
    responses((status = 200, body = AuditReport), Errors<401, 403>),
)]
async fn audit_reservations(
    State(ticket): State<TicketService>,
    _admin: Admin,
) -> Result<Json<AuditReport>, ApiError> {
    Ok(Json(ticket.audit().await?))
}
