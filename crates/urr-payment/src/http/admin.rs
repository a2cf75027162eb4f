//! Everybody's payments, for administrators.

use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use urr_kernel::{Uuid, Won, one_line};
use urr_service::{
    Admin, ApiError, Context, ErrorBody, Json, Page, Paged, Path, Query, idempotency_key,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::errors::not_found;
use super::idempotency::{self, ClientKey};
use super::views::{AdminPaymentAnswerView, AdminPaymentListView, AdminPaymentView};
use crate::PaymentService;
use crate::domain::payment::{PaymentId, PaymentStatus};
use crate::domain::refund::RefundId;
use crate::ledger_audit::LedgerAudit;
use crate::saga::{AdminRefundRequest, CloseRefundRequest, RefundClosure};
use crate::store::listing::PaymentFilter;

const REASON_CHARS_MAX: usize = 200;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new()
        .routes(routes!(list_payments))
        .routes(routes!(audit_payments))
        .routes(routes!(get_payment))
        .routes(routes!(refund_payment))
        .routes(routes!(close_refund))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct AdminPaymentFilter {
    /// `pending`, `approving`, `confirmed`, `failed`, `unknown`, `refunding` or `refunded`.
    #[param(example = "unknown")]
    status: Option<String>,
    user_id: Option<Uuid>,
    reservation_id: Option<Uuid>,
}

/// Everybody's payments, the newest first. More than ten thousand are not counted.
#[utoipa::path(
    get, path = "/api/admin/payments", tag = "admin", params(Page, AdminPaymentFilter),
    responses(
        (status = 200, body = AdminPaymentListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
async fn list_payments(
    State(payments): State<PaymentService>,
    _admin: Admin,
    page: Page,
    Query(filter): Query<AdminPaymentFilter>,
) -> Result<Json<AdminPaymentListView>, ApiError> {
    let status = match filter.status.as_deref().filter(|name| !name.is_empty()) {
        None => None,
        Some(name) => Some(PaymentStatus::parse(name).ok_or_else(|| {
            ApiError::bad_request("INVALID_STATUS", "There is no such state of a payment.")
        })?),
    };
    let (user_id, payable_id) = (filter.user_id, filter.reservation_id);
    let (list, total) = payments.list(PaymentFilter { user_id, payable_id, status }, page).await?;
    let views = list.iter().map(AdminPaymentView::new).collect();
    let Paged { items: payments, pagination } = Paged::new(views, total, page);
    Ok(Json(AdminPaymentListView { payments, pagination }))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BalanceView {
    account: &'static str,
    #[schema(value_type = i64)]
    balance: Won,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProofView {
    /// Whether every won is explained.
    holds: bool,
    #[schema(value_type = i64)]
    charged: Won,
    #[schema(value_type = i64)]
    refunded: Won,
    balances: Vec<BalanceView>,
    unexplained: Vec<String>,
}

impl ProofView {
    fn new(proof: &LedgerAudit) -> ProofView {
        let balance = |(account, balance): &(crate::LedgerAccount, Won)| BalanceView {
            account: account.name(),
            balance: *balance,
        };
        ProofView {
            holds: proof.is_balanced(),
            charged: proof.charged,
            refunded: proof.refunded,
            balances: proof.balances.iter().map(balance).collect(),
            unexplained: proof.unexplained.iter().map(|found| format!("{found:?}")).collect(),
        }
    }
}

/// The proof of the books: what was taken, where it is, and what nobody can explain.
#[utoipa::path(
    get, path = "/api/admin/payments/audit", tag = "admin",
    responses(
        (status = 200, body = ProofView),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
async fn audit_payments(
    State(payments): State<PaymentService>,
    _admin: Admin,
) -> Result<Json<ProofView>, ApiError> {
    Ok(Json(ProofView::new(&payments.audit_ledger().await?)))
}

/// Anybody's payment, with what went back of it.
#[utoipa::path(
    get, path = "/api/admin/payments/{id}", tag = "admin", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = AdminPaymentAnswerView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn get_payment(
    State(payments): State<PaymentService>,
    _admin: Admin,
    Path(id): Path<Uuid>,
) -> Result<Json<AdminPaymentAnswerView>, ApiError> {
    answer(&payments, PaymentId(id)).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RefundBody {
    /// A part of it, and the reservation stays. Left out, the reservation is cancelled.
    #[schema(minimum = 1, example = 5_000)]
    amount: Option<i64>,
    /// It is written down, and the provider is told.
    #[schema(min_length = 1, max_length = 200)]
    reason: String,
}

/// Gives money back: a part of it as it is, everything by cancelling the reservation.
///
/// With the same `Idempotency-Key` it is the same refund.
#[utoipa::path(
    post, path = "/api/admin/payments/{id}/refund", tag = "admin",
    params(("id" = Uuid, Path)), request_body = RefundBody,
    responses(
        (status = 200, body = AdminPaymentAnswerView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
        (status = 422, body = ErrorBody),
    ),
)]
async fn refund_payment(
    State(payments): State<PaymentService>,
    Admin(admin): Admin,
    Context(context): Context,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
    Json(body): Json<RefundBody>,
) -> Result<Json<AdminPaymentAnswerView>, ApiError> {
    let reason = one_line(&body.reason, REASON_CHARS_MAX)
        .map_err(|unfit| ApiError::bad_request("INVALID_REASON", format!("The reason {unfit}.")))?;
    let key = idempotency_key(&headers, None)?;
    let refund = AdminRefundRequest {
        admin_id: admin.user_id,
        amount: body.amount.map(Won::new),
        reason: reason.to_owned(),
        key: match &key {
            Some(key) => format!("{}:{}", admin.user_id, key.as_str()),
            None => payments.0.ids.next_id().to_string(),
        },
    };
    let client = ClientKey { user_id: admin.user_id, action: "refund", key: key.as_ref() };
    let request = format!("{id} {:?} {reason}", body.amount);
    let held = idempotency::take(&payments, client, &request).await?;
    let begun = payments.refund_as_admin(PaymentId(id), refund, &context).await;
    held.release_if_refused(&payments, begun.map_err(ApiError::from)).await?;
    answer(&payments, PaymentId(id)).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CloseBody {
    /// It is written down.
    #[schema(min_length = 1, max_length = 200)]
    reason: String,
    /// `paid_otherwise` if it is left out: the buyer has the money by other means. `withdrawn`: it
    /// is not given after all, which only a goodwill can be.
    #[schema(example = "paid_otherwise")]
    outcome: Option<String>,
}

/// Closes a refund that the provider has declined.
#[utoipa::path(
    post, path = "/api/admin/payments/{id}/refunds/{refundId}/close", tag = "admin",
    params(("id" = Uuid, Path), ("refundId" = Uuid, Path)), request_body = CloseBody,
    responses(
        (status = 200, body = AdminPaymentAnswerView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
async fn close_refund(
    State(payments): State<PaymentService>,
    Admin(admin): Admin,
    Path((id, refund_id)): Path<(Uuid, Uuid)>,
    Json(body): Json<CloseBody>,
) -> Result<Json<AdminPaymentAnswerView>, ApiError> {
    let reason = one_line(&body.reason, REASON_CHARS_MAX)
        .map_err(|unfit| ApiError::bad_request("INVALID_REASON", format!("The reason {unfit}.")))?;
    let closing = match body.outcome.as_deref() {
        None | Some("paid_otherwise") => RefundClosure::PaidOtherwise,
        Some("withdrawn") => RefundClosure::Withdrawn,
        Some(_) => {
            let sentence = "A refund is paid_otherwise or withdrawn.";
            return Err(ApiError::bad_request("INVALID_OUTCOME", sentence));
        }
    };
    let close = CloseRefundRequest {
        admin_id: admin.user_id,
        refund_id: RefundId(refund_id),
        closing,
        reason: reason.to_owned(),
    };
    payments.close_refund(PaymentId(id), close).await?;
    answer(&payments, PaymentId(id)).await
}

async fn answer(
    payments: &PaymentService,
    id: PaymentId,
) -> Result<Json<AdminPaymentAnswerView>, ApiError> {
    let payment = payments.find(id).await?.ok_or_else(not_found)?;
    let refunds = payments.list_refunds(id).await?;
    Ok(Json(AdminPaymentAnswerView::new(&payment, &refunds)))
}
