//! The routes for assigning door staff to events.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Context, Errors, Json, Organiser, Path, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{AssignStaffError, FindStaffError, StaffAssignment};
use crate::TicketService;
use crate::http::event_not_found;
use crate::reservations::buyers::Buyers;

const RETRY_AFTER: Duration = Duration::from_secs(5);

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(list_staff, assign_staff_by_email))
        .routes(routes!(assign_staff, remove_staff))
}

#[derive(Serialize, ToSchema)]
struct StaffListView {
    staff: Vec<StaffView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StaffView {
    user_id: Uuid,
    /// Null while the auth service is away, and of a deleted account.
    #[schema(example = "김민아")]
    name: Option<String>,
    /// For organisers the first letter and the domain.
    #[schema(example = "m***@example.com")]
    email: Option<String>,
    assigned_by: Uuid,
    assigned_at: Timestamp,
    /// Whether they sell at the box office too.
    may_sell: bool,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct AssignQuery {
    /// Whether they sell at the box office too.
    #[serde(default)]
    may_sell: bool,
}

impl StaffView {
    fn new(assignment: StaffAssignment, accounts: &Buyers) -> StaffView {
        let StaffAssignment { user_id, assigned_by, assigned_at, may_sell } = assignment;
        let account = accounts.get(&user_id).cloned();
        let (name, email) = account.map(|account| (account.name, account.email)).unzip();
        StaffView { user_id, name, email, assigned_by, assigned_at, may_sell }
    }
}

/// Lists the door staff of an event.
///
/// For its organiser and administrators. Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/staff", tag = "tickets",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = StaffListView), Errors<401, 403, 404>),
)]
async fn list_staff(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
) -> Result<Json<StaffListView>, ApiError> {
    ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    let scope = organiser.event_scope();
    ticket.check_event(event_id, scope).await?;
    let staff = ticket.list_staff(event_id).await?;
    let user_ids = staff.iter().map(|one| one.user_id).collect();
    let accounts = ticket.find_accounts(user_ids, scope, &context).await.unwrap_or_default();
    let staff = staff.into_iter().map(|one| StaffView::new(one, &accounts)).collect();
    Ok(Json(StaffListView { staff }))
}

/// Assigns a user to the entrance of an event.
///
/// For its organiser and administrators. The user checks tickets in once an administrator has given
/// them the role `staff`, and sells at the box office if `maySell` is true. Repeating it changes
/// nothing. Errors: 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`; 409 `TOO_MANY_STAFF` (200).
#[utoipa::path(
    put, path = "/api/admin/events/{eventId}/staff/{userId}", tag = "tickets",
    params(("eventId" = Uuid, Path), ("userId" = Uuid, Path), AssignQuery),
    responses((status = 204, description = "The user is assigned."), Errors<401, 403, 404, 409>),
)]
async fn assign_staff(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Path((event_id, user_id)): Path<(Uuid, Uuid)>,
    Query(query): Query<AssignQuery>,
) -> Result<StatusCode, ApiError> {
    ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    ticket.check_event(event_id, organiser.event_scope()).await?;
    ticket.assign_staff(event_id, user_id, query.may_sell, organiser.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AssignStaffBody {
    /// The whole address.
    #[schema(max_length = 254, example = "door@example.com")]
    email: String,
    /// Whether they sell at the box office too.
    #[serde(default)]
    may_sell: bool,
}

/// Assigns the member of the door staff with this address to the entrance of an event.
///
/// For its organiser and administrators. An administrator has given the account the role `staff`;
/// other accounts are not found. Repeating it changes nothing. Errors: 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`, `STAFF_NOT_FOUND`; 409 `TOO_MANY_STAFF` (200); 503 `ACCOUNTS_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/events/{eventId}/staff", tag = "tickets",
    params(("eventId" = Uuid, Path)), request_body = AssignStaffBody,
    responses((status = 204, description = "The user is assigned."), Errors<401, 403, 404, 409>),
)]
async fn assign_staff_by_email(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    Json(body): Json<AssignStaffBody>,
) -> Result<StatusCode, ApiError> {
    ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    ticket.check_event(event_id, organiser.event_scope()).await?;
    let user_id = ticket.find_staff(&body.email, &context).await?;
    ticket.assign_staff(event_id, user_id, body.may_sell, organiser.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes the assignment of a user away.
///
/// For the event's organiser and administrators. It counts from the next check-in on. Repeating it
/// changes nothing. Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    delete, path = "/api/admin/events/{eventId}/staff/{userId}", tag = "tickets",
    params(("eventId" = Uuid, Path), ("userId" = Uuid, Path)),
    responses((status = 204, description = "The user is not assigned."), Errors<401, 403, 404>),
)]
async fn remove_staff(
    State(ticket): State<TicketService>,
    Organiser(organiser): Organiser,
    Path((event_id, user_id)): Path<(Uuid, Uuid)>,
) -> Result<StatusCode, ApiError> {
    ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    ticket.check_event(event_id, organiser.event_scope()).await?;
    ticket.remove_staff(event_id, user_id, organiser.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<FindStaffError> for ApiError {
    fn from(error: FindStaffError) -> ApiError {
        let sentence = error.to_string();
        match error {
            FindStaffError::NotFound => ApiError::not_found("STAFF_NOT_FOUND", sentence),
            FindStaffError::Unavailable => {
                ApiError::unavailable("ACCOUNTS_UNAVAILABLE", sentence, RETRY_AFTER)
            }
        }
    }
}

impl From<AssignStaffError> for ApiError {
    fn from(error: AssignStaffError) -> ApiError {
        match error {
            AssignStaffError::TooMany => ApiError::conflict("TOO_MANY_STAFF", error.to_string()),
            AssignStaffError::Storage(error) => error.into(),
        }
    }
}
