//! What administrators did.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{Admin, ApiError, ErrorBody, Json, Page, Paged, Pagination, Query};
use urr_storage::storable;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{AuditEntry, AuditFilter, CatalogService};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(list_audit_log))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct AuditQuery {
    admin_id: Option<Uuid>,
    /// For example `EVENT_CANCELLED`.
    #[param(max_length = 100)]
    action: Option<String>,
    /// `event`, `artist`, `venue`, `hall` or `image`.
    #[param(max_length = 100)]
    resource_type: Option<String>,
    #[param(max_length = 100)]
    resource_id: Option<String>,
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntryView {
    id: Uuid,
    admin_id: Uuid,
    #[schema(example = "EVENT_CANCELLED")]
    action: String,
    #[schema(example = "event")]
    resource_type: String,
    resource_id: String,
    summary: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<AuditEntry> for AuditEntryView {
    fn from(entry: AuditEntry) -> AuditEntryView {
        AuditEntryView {
            id: entry.id,
            admin_id: entry.admin_id,
            action: entry.action,
            resource_type: entry.resource_type,
            resource_id: entry.resource_id,
            summary: entry.summary,
            created_at: entry.created_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct AuditListView {
    entries: Vec<AuditEntryView>,
    pagination: Pagination,
}

/// What administrators did in the catalogue, the newest first.
#[utoipa::path(
    get, path = "/api/admin/audit-log", tag = "audit", params(AuditQuery, Page),
    responses(
        (status = 200, body = AuditListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub async fn list_audit_log(
    State(catalog): State<CatalogService>,
    _admin: Admin,
    Query(query): Query<AuditQuery>,
    page: Page,
) -> Result<Json<AuditListView>, ApiError> {
    let AuditQuery { admin_id, action, resource_type, resource_id, from, to } = query;
    let (from, to) = (from.map(storable), to.map(storable));
    let filter = AuditFilter { admin_id, action, resource_type, resource_id, from, to };
    let (entries, total) = catalog.list_audit(filter, page).await?;
    let entries = entries.into_iter().map(AuditEntryView::from).collect();
    let Paged { items: entries, pagination } = Paged::new(entries, total, page);
    Ok(Json(AuditListView { entries, pagination }))
}
