//! What administrators did with payments.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::admin_audit::{ActionFilter, NotedAction};
use urr_service::{Admin, ApiError, ErrorBody, Json, Page, Paged, Pagination, Query};
use urr_storage::storable;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::PaymentService;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new().routes(routes!(list_payment_audit_log))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct PaymentLogQuery {
    admin_id: Option<Uuid>,
    /// For example `GOODWILL_REFUND`.
    #[param(max_length = 100)]
    action: Option<String>,
    resource_id: Option<Uuid>,
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PaymentActionView {
    id: Uuid,
    admin_id: Uuid,
    #[schema(example = "GOODWILL_REFUND")]
    action: String,
    #[schema(example = "payment")]
    resource_type: String,
    resource_id: Uuid,
    summary: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<NotedAction> for PaymentActionView {
    fn from(noted: NotedAction) -> PaymentActionView {
        PaymentActionView {
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
struct PaymentActionListView {
    entries: Vec<PaymentActionView>,
    pagination: Pagination,
}

/// What administrators did with payments, the newest first.
#[utoipa::path(
    get, path = "/api/admin/payments/audit-log", tag = "audit", params(PaymentLogQuery, Page),
    responses(
        (status = 200, body = PaymentActionListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
async fn list_payment_audit_log(
    State(payments): State<PaymentService>,
    _admin: Admin,
    Query(query): Query<PaymentLogQuery>,
    page: Page,
) -> Result<Json<PaymentActionListView>, ApiError> {
    let PaymentLogQuery { admin_id, action, resource_id, from, to } = query;
    let (from, to) = (from.map(storable), to.map(storable));
    let filter = ActionFilter { admin_id, action, resource_type: None, resource_id, from, to };
    let (noted, total) = payments.list_admin_actions(filter, page).await?;
    let entries = noted.into_iter().map(PaymentActionView::from).collect();
    let Paged { items: entries, pagination } = Paged::new(entries, total, page);
    Ok(Json(PaymentActionListView { entries, pagination }))
}
