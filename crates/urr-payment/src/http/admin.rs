//! All payments, for administrators.

use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use urr_kernel::{Uuid, Won};
use urr_service::idempotency::header_key;
use urr_service::{
    Admin, ApiError, Context, Errors, EventReader, Json, Page, Paged, Path, Query, UserRole,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::errors::payment_not_found;
use super::idempotency::claim_key;
use super::orders::parse_reason;
use super::views::{AdminPaymentAnswerView, AdminPaymentListView, AdminPaymentView};
use crate::PaymentService;
use crate::domain::payment::PaymentId;
use crate::domain::refund::RefundId;
use crate::saga::{AdminRefundRequest, CloseRefundRequest, RefundClosure};
use crate::store::payments::PaymentFilter;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new()
        .routes(routes!(list_payments))
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
    event_id: Option<Uuid>,
}

/// Lists payments, newest first.
///
/// For organisers (for their own events), support and administrators (all). The total is counted up
/// to ten thousand. Errors: 400 `INVALID_STATUS`.
#[utoipa::path(
    get, path = "/api/admin/payments", tag = "admin", params(Page, AdminPaymentFilter),
    responses((status = 200, body = AdminPaymentListView), Errors<401, 403>),
)]
async fn list_payments(
    State(payments): State<PaymentService>,
    EventReader(reader): EventReader,
    page: Page,
    Query(filter): Query<AdminPaymentFilter>,
) -> Result<Json<AdminPaymentListView>, ApiError> {
    let status = match filter.status.as_deref().filter(|name| !name.is_empty()) {
        None => None,
        Some(name) => Some(name.parse().map_err(|_| {
            ApiError::bad_request("INVALID_STATUS", "There is no such payment status.")
        })?),
    };
    let AdminPaymentFilter { user_id, reservation_id: payable_id, event_id, .. } = filter;
    let organiser_id = reader.event_scope().organiser_id();
    let filter = PaymentFilter { user_id, payable_id, event_id, status, organiser_id };
    let (list, total) = payments.list(filter, page).await?;
    let views = list.iter().map(AdminPaymentView::new).collect();
    let Paged { items: payments, pagination } = Paged::new(views, total, page);
    Ok(Json(AdminPaymentListView { payments, pagination }))
}

/// Returns a payment with its refunds.
///
/// For the organiser of the event, support and administrators. `step` is what the payment saga does
/// next; `waitCode` what the last attempt answered. Errors: 404 `PAYMENT_NOT_FOUND`, also for a
/// payment for somebody else's event.
#[utoipa::path(
    get, path = "/api/admin/payments/{id}", tag = "admin", params(("id" = Uuid, Path)),
    responses((status = 200, body = AdminPaymentAnswerView), Errors<401, 403, 404>),
)]
async fn get_payment(
    State(payments): State<PaymentService>,
    EventReader(reader): EventReader,
    Path(id): Path<Uuid>,
) -> Result<Json<AdminPaymentAnswerView>, ApiError> {
    let found = payments.find_in_scope(PaymentId(id), reader.event_scope()).await?;
    found.ok_or_else(payment_not_found)?;
    answer(&payments, PaymentId(id)).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RefundBody {
    /// A partial refund; the reservation stays. Without an amount, the reservation is cancelled.
    #[schema(minimum = 1, example = 5_000)]
    amount: Option<i64>,
    /// It is logged and sent to the provider.
    #[schema(min_length = 1, max_length = 200)]
    reason: String,
}

/// Refunds a payment.
///
/// For the organiser of the event, support (up to a limit per payment) and administrators. Without
/// `amount` the reservation is cancelled and everything is refunded. With `amount` a part is refunded and the tickets stay valid; it counts towards a later
/// cancellation. Takes the header `Idempotency-Key`.
///
/// Errors: 400 `INVALID_REFUND_AMOUNT`, `INVALID_REASON`; 403 `REFUND_ABOVE_LIMIT` (with `limit`); 404 `PAYMENT_NOT_FOUND`; 409
/// `PAYMENT_NOT_CONFIRMED`, `CANCEL_INSTEAD` (the amount is all that is left: omit it),
/// `TICKET_TRANSFERRED`; 422 `IDEMPOTENCY_KEY_REUSED`.
#[utoipa::path(
    post, path = "/api/admin/payments/{id}/refund", tag = "admin",
    params(("id" = Uuid, Path)), request_body = RefundBody,
    responses((status = 200, body = AdminPaymentAnswerView), Errors<401, 403, 404, 409, 422>),
)]
async fn refund_payment(
    State(payments): State<PaymentService>,
    EventReader(admin): EventReader,
    Context(context): Context,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
    Json(body): Json<RefundBody>,
) -> Result<Json<AdminPaymentAnswerView>, ApiError> {
    let reason = parse_reason(&body.reason)?;
    let key = header_key(&headers)?;
    let found = payments.find_in_scope(PaymentId(id), admin.event_scope()).await?;
    found.ok_or_else(payment_not_found)?;
    let is_support = admin.role == UserRole::Support;
    let refund = AdminRefundRequest {
        admin_id: admin.user_id,
        amount: body.amount.map(Won::new),
        reason: reason.to_owned(),
        key: match &key {
            Some(key) => format!("{}:{}", admin.user_id, key.as_str()),
            None => payments.0.ids.next_id().to_string(),
        },
        refund_max: is_support.then_some(payments.0.settings.support_refund_max),
    };
    let request = (id, body.amount, reason);
    let (admin_id, key) = (admin.user_id, key.as_ref());
    let claimed = claim_key(&payments, admin_id, "refund_payment", key, &request).await?;
    let started = payments.refund_as_admin(PaymentId(id), refund, &context).await;
    claimed.release_if_refused(&payments, started.map_err(ApiError::from)).await?;
    answer(&payments, PaymentId(id)).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CloseBody {
    /// It is logged.
    #[schema(min_length = 1, max_length = 200)]
    reason: String,
    /// `paid_otherwise`, the default: the buyer got the money by other means. `withdrawn`: it is not
    /// refunded after all, which is possible only for a goodwill refund.
    #[schema(example = "paid_otherwise")]
    outcome: Option<String>,
}

/// Closes a refund that the provider declined.
///
/// For administrators. `outcome` is `paid_otherwise` (the default: the buyer got the money by other
/// means) or `withdrawn` (only for goodwill). Errors: 400 `INVALID_REASON`, `INVALID_OUTCOME`; 404
/// `REFUND_NOT_FOUND`; 409 `REFUND_NOT_DECLINED`, `REFUND_UNCLEAR`, `REFUND_OVER`, `REFUND_OWED`.
#[utoipa::path(
    post, path = "/api/admin/payments/{id}/refunds/{refundId}/close", tag = "admin",
    params(("id" = Uuid, Path), ("refundId" = Uuid, Path)), request_body = CloseBody,
    responses((status = 200, body = AdminPaymentAnswerView), Errors<401, 403, 404, 409>),
)]
async fn close_refund(
    State(payments): State<PaymentService>,
    Admin(admin): Admin,
    Path((id, refund_id)): Path<(Uuid, Uuid)>,
    Json(body): Json<CloseBody>,
) -> Result<Json<AdminPaymentAnswerView>, ApiError> {
    let reason = parse_reason(&body.reason)?;
    let closure = match body.outcome.as_deref() {
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
        closure,
        reason: reason.to_owned(),
    };
    payments.close_refund(PaymentId(id), close).await?;
    answer(&payments, PaymentId(id)).await
}

async fn answer(
    payments: &PaymentService,
    id: PaymentId,
) -> Result<Json<AdminPaymentAnswerView>, ApiError> {
    let payment = payments.find(id).await?.ok_or_else(payment_not_found)?;
    let refunds = payments.list_refunds(id).await?;
    Ok(Json(AdminPaymentAnswerView::new(&payment, &refunds)))
}
