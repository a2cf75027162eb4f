//! A user's own payments: prepare, confirm, cancel, get, list.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{Uuid, Won, one_line};
use urr_service::idempotency::{KeyedRequest, fingerprint, header_key};
use urr_service::{ApiError, Context, Errors, Json, Page, Paged, Path, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::errors::payment_not_found;
use super::payment_outcome::{PaidView, payment_outcome};
use super::views::{PaymentAnswerView, PaymentListView, PaymentView};
use crate::PaymentService;
use crate::domain::payment::Approval;
use crate::saga::{ApproveOrder, OrderRequest, OwnerCancelRequest};
use crate::store::payments::PaymentFilter;

const KEY_CHARS_MAX: usize = 200;
const ORDER_CHARS_MAX: usize = 64;
const REASON_CHARS_MAX: usize = 200;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new()
        .routes(routes!(prepare_payment))
        .routes(routes!(confirm_payment))
        .routes(routes!(cancel_payment))
        .routes(routes!(get_order))
        .routes(routes!(list_own_payments))
        .routes(routes!(list_my_payments))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PrepareBody {
    reservation_id: Option<Uuid>,
    /// The amount that the buyer was shown.
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

/// Creates the order for a reservation, a membership or a transfer.
///
/// `amount` must be the payable's total. Give `reservationId`, or `paymentType` (`reservation`,
/// `membership`, `transfer`) with `referenceId`. The response has what the provider's page needs.
/// Repeating it returns the same order until it is paid or has failed.
///
/// Errors: 400 `AMOUNT_MISMATCH` (with `amount`), `RESERVATION_ID_REQUIRED`,
/// `REFERENCE_ID_REQUIRED`, `AMBIGUOUS_REFERENCE`, `INVALID_PAYMENT_TYPE`; 404
/// `RESERVATION_NOT_FOUND`, `MEMBERSHIP_NOT_FOUND`, `TRANSFER_NOT_FOUND`; 409 the ticket service's
/// rejection, such as `RESERVATION_EXPIRED` or `PAYMENT_IN_PROGRESS`, `ALREADY_PAID`,
/// `TOO_MANY_DECLINES`; 503 `SERVICE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/payments/prepare", tag = "payments", request_body = PrepareBody,
    responses((status = 200, body = OrderView), Errors<401, 404, 409>),
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
        key: header_key(&headers)?,
    };
    let order = payments.prepare_order(request, &context).await?;
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

/// What is to be paid: a reservation by either id, anything else by its reference.
pub(super) fn parse_payable(
    kind: Option<&str>,
    reservation_id: Option<Uuid>,
    reference_id: Option<Uuid>,
) -> Result<PayableRef, ApiError> {
    let kind = kind.unwrap_or("reservation").parse().map_err(|_| {
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
            let sentence = "The reference id is missing.";
            Err(ApiError::bad_request("REFERENCE_ID_REQUIRED", sentence))
        }
    }
}

pub(super) fn parse_reason(text: &str) -> Result<&str, ApiError> {
    one_line(text, REASON_CHARS_MAX)
        .map_err(|unfit| ApiError::bad_request("INVALID_REASON", format!("The reason {unfit}.")))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfirmPaymentBody {
    /// The key that the provider gave the buyer's browser.
    #[schema(min_length = 1, max_length = 200)]
    payment_key: String,
    #[schema(min_length = 1, max_length = 64)]
    order_id: String,
    #[schema(minimum = 0, example = 102_000)]
    amount: i64,
}

/// Charges an order that the buyer approved at the provider.
///
/// 200: it is paid and the tickets exist. 202: the result is not known yet; poll `GET
/// /api/payments/order/{orderId}` until `isSettled` and do not offer to pay again. The hold does
/// not expire meanwhile, and nothing is charged twice. Repeating it with the same `paymentKey` or
/// `Idempotency-Key` returns the same payment. 503 `PROVIDER_UNAVAILABLE`: nothing was sent, and the
/// order stays open; repeat the same request after `Retry-After`. A declined order is over; prepare
/// another one. After the fifth decline within an hour the hold is released: 409
/// `TOO_MANY_DECLINES`.
///
/// Errors: 400 `AMOUNT_MISMATCH`, `INVALID_KEY`, `INVALID_IDEMPOTENCY_KEY`; 402 `PAYMENT_DECLINED`
/// (with `providerCode` and `attemptsLeft`), `METHOD_NOT_SUPPORTED`; 404 `PAYMENT_NOT_FOUND`; 409
/// `RESERVATION_EXPIRED` and other rejections (nothing was charged), `PAYMENT_RETURNED` (it was
/// charged and is refunded), `PAYMENT_IN_PROGRESS`, `ALREADY_PAID`, `ORDER_OVER`,
/// `TOO_MANY_DECLINES`; 422 `IDEMPOTENCY_KEY_REUSED`; 503 `PROVIDER_UNAVAILABLE`,
/// `SERVICE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/payments/confirm", tag = "payments", request_body = ConfirmPaymentBody,
    responses(
        (status = 200, body = PaidView),
        (status = 202, body = PaidView),
        Errors<401, 402, 404, 409, 422>,
    ),
)]
async fn confirm_payment(
    State(payments): State<PaymentService>,
    User(user): User,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<ConfirmPaymentBody>,
) -> Result<Response, ApiError> {
    let key = |text: &str, chars_max| {
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        let is_fit = (1..=chars_max).contains(&text.len()) && is_plain;
        let sentence = "A key or order id has only visible ASCII characters, and not too many.";
        is_fit
            .then(|| text.to_owned())
            .ok_or_else(|| ApiError::bad_request("INVALID_KEY", sentence))
    };
    let approval = Approval {
        user_id: user.user_id,
        payment_key: key(&body.payment_key, KEY_CHARS_MAX)?,
        amount: Won::new(body.amount),
    };
    let order_id = key(&body.order_id, ORDER_CHARS_MAX)?;
    let key = header_key(&headers)?;
    let claim = key.clone().map(|key| KeyedRequest {
        user_id: user.user_id,
        operation: "confirm_payment",
        key,
        fingerprint: fingerprint(&(&order_id, &body.payment_key, body.amount)),
    });
    let order = ApproveOrder { order_id, approval, key, claim };
    let payment = payments.approve_detached(order, context).await?;
    payment_outcome(&payments, &payment).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CancelPaymentBody {
    /// In the buyer's own words. It is stored and sent to the provider.
    #[schema(max_length = 200)]
    cancel_reason: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancelView {
    success: bool,
    message: &'static str,
    /// The refund by the policy of the purchase.
    #[schema(value_type = i64)]
    refund_amount: Won,
}

/// Cancels what was paid for and refunds it.
///
/// The same as cancelling the reservation. Repeating it changes nothing. Errors: 400
/// `INVALID_REASON` (up to 200 characters); 404 `PAYMENT_NOT_FOUND`; 409 `PAYMENT_NOT_CONFIRMED`,
/// `NOT_CANCELLABLE` (a membership), `TICKET_TRANSFERRED`, and the rejections of cancelling a
/// reservation.
#[utoipa::path(
    post, path = "/api/payments/{paymentKey}/cancel", tag = "payments",
    params(("paymentKey" = String, Path)), request_body = CancelPaymentBody,
    responses((status = 200, body = CancelView), Errors<401, 404, 409>),
)]
async fn cancel_payment(
    State(payments): State<PaymentService>,
    User(user): User,
    Context(context): Context,
    Path(payment_key): Path<String>,
    Json(body): Json<CancelPaymentBody>,
) -> Result<Json<CancelView>, ApiError> {
    let reason = body.cancel_reason.as_deref().filter(|reason| !reason.trim().is_empty());
    let reason = reason.map(parse_reason).transpose()?;
    let owner = OwnerCancelRequest { user_id: user.user_id, reason: reason.map(str::to_owned) };
    let refund_amount = payments.cancel_by_owner(&payment_key, owner, &context).await?;
    let message = "The reservation is cancelled and the refund has begun.";
    Ok(Json(CancelView { success: true, message, refund_amount }))
}

/// Returns the user's payment of an order.
///
/// `status` is `pending`, `approving`, `unknown`, `confirmed`, `failed`, `refunding` or `refunded`.
/// `isSettled` means that nothing more happens by itself. Errors: 404 `PAYMENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/payments/order/{orderId}", tag = "payments",
    params(("orderId" = String, Path)),
    responses((status = 200, body = PaymentAnswerView), Errors<401, 404>),
)]
async fn get_order(
    State(payments): State<PaymentService>,
    User(user): User,
    Path(order_id): Path<String>,
) -> Result<Json<PaymentAnswerView>, ApiError> {
    let payment = payments.find_order(&order_id).await?;
    let payment = payment.filter(|payment| payment.user_id == user.user_id);
    let payment = PaymentView::new(&payment.ok_or_else(payment_not_found)?);
    Ok(Json(PaymentAnswerView { payment }))
}

/// Lists the user's payments, newest first.
///
/// In pages; `status` as for an order.
#[utoipa::path(
    get, path = "/api/payments", tag = "payments", params(Page),
    responses((status = 200, body = PaymentListView), Errors<401>),
)]
async fn list_own_payments(
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

/// Lists the user's payments, newest first.
///
/// An alias of `GET /api/payments`.
#[utoipa::path(
    get, path = "/api/payments/user/me", tag = "payments", params(Page),
    responses((status = 200, body = PaymentListView), Errors<401>),
)]
async fn list_my_payments(
    payments: State<PaymentService>,
    user: User,
    page: Page,
) -> Result<Json<PaymentListView>, ApiError> {
    list_own_payments(payments, user, page).await
}
