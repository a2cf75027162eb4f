//! What was done to the rooms.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use urr_kernel::{Timestamp, Uuid};
use urr_service::{Admin, ApiError, ErrorBody, Json, Page, Paged, Pagination, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Queue;
use crate::store::audit::AuditEntry;

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new().routes(routes!(list_room_audit))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AuditQuery {
    event_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
struct RoomAuditListView {
    entries: Vec<RoomAuditView>,
    pagination: Pagination,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RoomAuditView {
    id: Uuid,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// `admin`, or `operator` for whoever runs the installation.
    #[schema(example = "admin")]
    by: &'static str,
    admin_id: Option<Uuid>,
    #[schema(example = "ROOM_PAUSED")]
    action: String,
    event_id: Uuid,
    /// Of each thing that was changed, what it was before and after; of a cleared room, what came
    /// of it.
    #[schema(value_type = Object)]
    details: Value,
}

impl From<AuditEntry> for RoomAuditView {
    fn from(entry: AuditEntry) -> RoomAuditView {
        let AuditEntry { id, at, admin_id, action, event_id, details } = entry;
        let by = if admin_id.is_some() { "admin" } else { "operator" };
        RoomAuditView { id, at, by, admin_id, action, event_id, details }
    }
}

/// What was done to the rooms, the newest first.
#[utoipa::path(
    get, path = "/api/admin/queue/audit", tag = "admin", params(AuditQuery, Page),
    responses(
        (status = 200, body = RoomAuditListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
async fn list_room_audit(
    State(queue): State<QueueService>,
    _admin: Admin,
    Query(AuditQuery { event_id }): Query<AuditQuery>,
    page: Page,
) -> Result<Json<RoomAuditListView>, ApiError> {
    let (entries, total) = queue.list_audit(event_id, page).await?;
    let views = entries.into_iter().map(RoomAuditView::from).collect();
    let Paged { items: entries, pagination } = Paged::new(views, total, page);
    Ok(Json(RoomAuditListView { entries, pagination }))
}
