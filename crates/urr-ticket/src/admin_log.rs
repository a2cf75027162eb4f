//! What administrators did at the ticket office.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::admin_audit::{ActionFilter, NotedAction};
use urr_service::{Admin, ApiError, ErrorBody, Json, Page, Paged, Pagination, Query};
use urr_storage::storable;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::TicketService;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(list_ticket_audit_log))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct AdminLogQuery {
    admin_id: Option<Uuid>,
    /// For example `RESERVATION_CANCELLED`.
    #[param(max_length = 100)]
    action: Option<String>,
    /// `reservation`, `ticket` or `ticket_type`.
    #[param(max_length = 100)]
    resource_type: Option<String>,
    resource_id: Option<Uuid>,
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AdminActionView {
    id: Uuid,
    admin_id: Uuid,
    #[schema(example = "RESERVATION_CANCELLED")]
    action: String,
    #[schema(example = "reservation")]
    resource_type: String,
    resource_id: Uuid,
    summary: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<NotedAction> for AdminActionView {
    fn from(noted: NotedAction) -> AdminActionView {
        AdminActionView {
            id: noted.id,
            admin_id: noted.admin_id,
            action: noted.action,
            resource_type: noted.resource_type,
            resource_id: noted.resource_id,
            summary: noted.summary,
            created_at: noted.created_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct AdminActionListView {
    entries: Vec<AdminActionView>,
    pagination: Pagination,
}

/// What administrators did at the ticket office, the newest first.
#[utoipa::path(
    get, path = "/api/admin/ticket-audit-log", tag = "audit", params(AdminLogQuery, Page),
    responses(
        (status = 200, body = AdminActionListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
async fn list_ticket_audit_log(
    State(ticket): State<TicketService>,
    _admin: Admin,
    Query(query): Query<AdminLogQuery>,
    page: Page,
) -> Result<Json<AdminActionListView>, ApiError> {
    let AdminLogQuery { admin_id, action, resource_type, resource_id, from, to } = query;
    let (from, to) = (from.map(storable), to.map(storable));
    let filter = ActionFilter { admin_id, action, resource_type, resource_id, from, to };
    let (noted, total) = ticket.list_admin_actions(filter, page).await?;
    let entries = noted.into_iter().map(AdminActionView::from).collect();
    let Paged { items: entries, pagination } = Paged::new(entries, total, page);
    Ok(Json(AdminActionListView { entries, pagination }))
}
