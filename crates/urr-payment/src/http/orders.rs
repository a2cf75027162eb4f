//! One's own payments over HTTP: prepare, confirm, cancel, look.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_kernel::{Uuid, Won, one_line};
use urr_service::{ApiError, Context, ErrorBody, Json, Page, Paged, Path, User, idempotency_key};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::errors::not_found;
use super::idempotency::{self, ClientKey};
use super::payment_result::{PaidView, answer};
use super::views::{PaymentAnswerView, PaymentListView, PaymentView};
use crate::PaymentService;
use crate::domain::payment::{Approval, PayableKind, PayableRef};
use crate::saga::{ApproveOrder, OrderRequest, OwnerCancelRequest};
use crate::store::listing::PaymentFilter;

const KEY_CHARS_MAX: usize = 200;
const ORDER_CHARS_MAX: usize = 64;
const REASON_CHARS_MAX: usize = 200;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new()
        .routes(routes!(prepare_payment))
        .routes(routes!(confirm_payment))
        .routes(routes!(cancel_payment))
        .routes(routes!(get_order))
        .routes(routes!(list_my_payments))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PrepareBody {
    reservation_id: Option<Uuid>,
    /// What the buyer was shown.
    #[schema(minimum = 1, example = 102_000)]
    amount: i64,
    /// `reservation` if it is left out.
    payment_type: Option<String>,
    reference_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OrderView {
    order_id: String,
    #[schema(value_type = i64)]
    amount: Won,
    order_name: String,
    /// For the provider's script on the page.
    client_key: String,
    store_id: Option<String>,
    /// `sandbox`, `toss` or `portone`.
    provider: &'static str,
}

/// Makes an order for a hold: what the provider is to be shown.
///
/// The amount must be that of the ticket tickets. Asking again for the same hold gives the same
/// order.
#[utoipa::path(
    post, path = "/api/payments/prepare", tag = "payments", request_body = PrepareBody,
    responses(
        (status = 200, body = OrderView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
async fn prepare_payment(
    State(payments): State<PaymentService>,
    User(user): User,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<PrepareBody>,
) -> Result<Json<OrderView>, ApiError> {
    let kind = body.payment_type.as_deref();
    let request = OrderRequest {
        user_id: user.user_id,
        payable: parse_payable(kind, body.reservation_id, body.reference_id)?,
        amount: Some(Won::new(body.amount)),
        key: idempotency_key(&headers, None)?,
    };
    let order = payments.prepare(request, &context).await?;
    let provider = payments.provider();
    Ok(Json(OrderView {
        order_id: order.order_id,
        amount: order.amount,
        order_name: order.order_name,
        client_key: provider.client_key().to_owned(),
        store_id: provider.store_id().map(str::to_owned),
        provider: provider.name(),
    }))
}

/// What is to be paid for: a reservation by either id, anything else as a reference.
pub(super) fn parse_payable(
    kind: Option<&str>,
    reservation_id: Option<Uuid>,
    reference_id: Option<Uuid>,
) -> Result<PayableRef, ApiError> {
    let kind = PayableKind::parse(kind.unwrap_or("reservation")).ok_or_else(|| {
        let sentence = "A payment is for a reservation, a transfer or a membership.";
        ApiError::bad_request("INVALID_PAYMENT_TYPE", sentence)
    })?;
    let reservation_id = reservation_id.filter(|id| Some(*id) != reference_id);
    match (reservation_id, reference_id) {
        (Some(id), None) if kind == PayableKind::Reservation => Ok(PayableRef { kind, id }),
        (None, Some(id)) => Ok(PayableRef { kind, id }),
        (Some(_), Some(_)) => {
            let sentence = "The two ids differ.";
            Err(ApiError::bad_request("AMBIGUOUS_REFERENCE", sentence))
        }
        (None, None) if kind == PayableKind::Reservation => {
            let sentence = "The id of the reservation is missing.";
            Err(ApiError::bad_request("RESERVATION_ID_REQUIRED", sentence))
        }
        (Some(_) | None, None) => {
            let sentence = "The reference, which says what is to be paid, is missing.";
            Err(ApiError::bad_request("REFERENCE_ID_REQUIRED", sentence))
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfirmBody {
    /// What the provider gave the buyer's browser.
    #[schema(min_length = 1, max_length = 200)]
    payment_key: String,
    #[schema(min_length = 1, max_length = 64)]
    order_id: String,
    #[schema(minimum = 0, example = 102_000)]
    amount: i64,
}

/// Pays an order that the buyer has agreed to.
///
/// 200: the tickets are there. 202: nobody knows yet, ask for the order in a moment; nothing is
/// charged twice. Confirming again with the same key answers how far it is.
#[utoipa::path(
    post, path = "/api/payments/confirm", tag = "payments", request_body = ConfirmBody,
    responses(
        (status = 200, body = PaidView),
        (status = 202, body = PaidView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 402, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
        (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
async fn confirm_payment(
    State(payments): State<PaymentService>,
    User(user): User,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<ConfirmBody>,
) -> Result<Response, ApiError> {
    let key = |text: &str, chars_max| {
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        let is_fit = (1..=chars_max).contains(&text.len()) && is_plain;
        let sentence = "It has visible letters, digits and signs, and not too many.";
        is_fit
            .then(|| text.to_owned())
            .ok_or_else(|| ApiError::bad_request("INVALID_KEY", sentence))
    };
    let approval = Approval {
        user_id: user.user_id,
        payment_key: key(&body.payment_key, KEY_CHARS_MAX)?,
        amount: Won::new(body.amount),
    };
    let order = ApproveOrder {
        order_id: key(&body.order_id, ORDER_CHARS_MAX)?,
        approval,
        key: idempotency_key(&headers, None)?,
    };
    let client = ClientKey { user_id: user.user_id, action: "confirm", key: order.key.as_ref() };
    let request = format!("{} {} {}", order.order_id, body.payment_key, body.amount);
    let held = idempotency::take(&payments, client, &request).await?;
    let paid = payments.approve_detached(order, context).await.map_err(ApiError::from);
    answer(&held.release_if_refused(&payments, paid).await?)
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CancelBody {
    /// In the buyer's own words. It is kept, and the provider is told.
    #[schema(max_length = 200)]
    cancel_reason: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancelView {
    success: bool,
    message: &'static str,
    /// What goes back, by the policy of the purchase.
    #[schema(value_type = i64)]
    refund_amount: Won,
}

/// Cancels what was paid for; the money goes back by the policy of the purchase.
///
/// The same as cancelling the reservation: asking again changes nothing.
#[utoipa::path(
    post, path = "/api/payments/{paymentKey}/cancel", tag = "payments",
    params(("paymentKey" = String, Path)), request_body = CancelBody,
    responses(
        (status = 200, body = CancelView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
async fn cancel_payment(
    State(payments): State<PaymentService>,
    User(user): User,
    Context(context): Context,
    Path(payment_key): Path<String>,
    Json(body): Json<CancelBody>,
) -> Result<Json<CancelView>, ApiError> {
    let reason = body.cancel_reason.as_deref().filter(|reason| !reason.trim().is_empty());
    let reason = reason.map(|reason| one_line(reason, REASON_CHARS_MAX)).transpose();
    let reason = reason
        .map_err(|unfit| ApiError::bad_request("INVALID_REASON", format!("The reason {unfit}.")))?;
    let owner = OwnerCancelRequest { user_id: user.user_id, reason: reason.map(str::to_owned) };
    let (_, refund_amount) = payments.cancel_by_owner(&payment_key, owner, &context).await?;
    let message = "The reservation is cancelled and the refund has begun.";
    Ok(Json(CancelView { success: true, message, refund_amount }))
}

/// One's own order and how far it is.
#[utoipa::path(
    get, path = "/api/payments/order/{orderId}", tag = "payments",
    params(("orderId" = String, Path)),
    responses(
        (status = 200, body = PaymentAnswerView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn get_order(
    State(payments): State<PaymentService>,
    User(user): User,
    Path(order_id): Path<String>,
) -> Result<Json<PaymentAnswerView>, ApiError> {
    let payment = payments.find_order(&order_id).await?;
    let payment = payment.filter(|payment| payment.user_id == user.user_id);
    let payment = PaymentView::new(&payment.ok_or_else(not_found)?);
    Ok(Json(PaymentAnswerView { payment }))
}

/// One's own payments, the newest first.
#[utoipa::path(
    get, path = "/api/payments/user/me", tag = "payments", params(Page),
    responses(
        (status = 200, body = PaymentListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
    ),
)]
async fn list_my_payments(
    State(payments): State<PaymentService>,
    User(user): User,
    page: Page,
) -> Result<Json<PaymentListView>, ApiError> {
    let filter = PaymentFilter { user_id: Some(user.user_id), ..PaymentFilter::default() };
    let (list, total) = payments.list(filter, page).await?;
    let views = list.iter().map(PaymentView::new).collect();
    let Paged { items: payments, pagination } = Paged::new(views, total, page);
    Ok(Json(PaymentListView { payments, pagination }))
}
