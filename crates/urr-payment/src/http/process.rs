//! Paying at once, with a test card.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use urr_kernel::{CallContext, IdempotencyKey, Uuid, Won, one_line};
use urr_service::{ApiError, Context, ErrorBody, Json, User, idempotency_key};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::idempotency::{self, ClaimedKey, ClientKey};
use super::orders::parse_payable;
use super::payment_result::{PaidView, answer};
use crate::domain::payment::{Approval, PayableKind, PayableRef, PaymentStatus};
use crate::provider::{ProviderClient, Sandbox, TestCard};
use crate::saga::{ApproveOrder, OrderRequest};
use crate::{Payment, PaymentService};

const METHOD_CHARS_MAX: usize = 50;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new().routes(routes!(process_payment))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProcessBody {
    /// The name of a test card, or anything else for one that works.
    #[schema(min_length = 1, max_length = 50, example = "approve")]
    payment_method: String,
    reservation_id: Option<Uuid>,
    payment_type: Option<String>,
    reference_id: Option<Uuid>,
}

/// What is to be paid at once, and by whom.
struct TestCardPayment {
    user_id: Uuid,
    payable: PayableRef,
    card: TestCard,
    key: Option<IdempotencyKey>,
}

/// Pays a hold at once, with a test card. Only where the provider is the sandbox.
///
/// A second click is answered with the payment of the first.
#[utoipa::path(
    post, path = "/api/payments/process", tag = "payments", request_body = ProcessBody,
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
async fn process_payment(
    State(payments): State<PaymentService>,
    User(user): User,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<ProcessBody>,
) -> Result<Response, ApiError> {
    let ProviderClient::Sandbox(sandbox) = payments.provider() else {
        let sentence = "Payments are made at the provider's checkout.";
        return Err(ApiError::conflict("CHECKOUT_REQUIRED", sentence));
    };
    let method = one_line(&body.payment_method, METHOD_CHARS_MAX).map_err(|unfit| {
        ApiError::bad_request("INVALID_PAYMENT_METHOD", format!("The payment method {unfit}."))
    })?;
    let kind = body.payment_type.as_deref();
    let wanted = TestCardPayment {
        user_id: user.user_id,
        payable: parse_payable(kind, body.reservation_id, body.reference_id)?,
        card: TestCard::parse(method).unwrap_or(TestCard::Approve),
        key: idempotency_key(&headers, None)?,
    };
    let client = ClientKey { user_id: user.user_id, action: "process", key: wanted.key.as_ref() };
    let request = format!("{} {} {method}", kind.unwrap_or("reservation"), wanted.payable.id);
    let held = idempotency::take(&payments, client, &request).await?;
    let paid = pay(&payments, sandbox, &wanted, &held, &context).await;
    answer(&held.release_if_refused(&payments, paid).await?)
}

/// The payment of the same key or of another click, or else a new one.
async fn pay(
    payments: &PaymentService,
    sandbox: &Sandbox,
    wanted: &TestCardPayment,
    held: &ClaimedKey,
    context: &CallContext,
) -> Result<Payment, ApiError> {
    if let Some(order_id) = &held.order_id
        && let Some(known) = payments.find_order(order_id).await?
        && known.status != PaymentStatus::Pending
    {
        return wait_for(payments, known, context).await;
    }
    if let Some(known) = paid_before(payments, wanted).await?
        && !may_be_renewed(&known)
    {
        return wait_for(payments, known, context).await;
    }
    match pay_anew(payments, sandbox, wanted, held, context).await {
        Ok(paid) => Ok(paid),
        // Two clicks at the same moment: one of them comes second, wherever it notices.
        Err(refused) => match paid_before(payments, wanted).await? {
            Some(known) => wait_for(payments, known, context).await,
            None => Err(refused),
        },
    }
}

async fn pay_anew(
    payments: &PaymentService,
    sandbox: &Sandbox,
    wanted: &TestCardPayment,
    held: &ClaimedKey,
    context: &CallContext,
) -> Result<Payment, ApiError> {
    let request = OrderRequest {
        user_id: wanted.user_id,
        payable: wanted.payable,
        amount: None,
        key: wanted.key.clone(),
    };
    let order = payments.prepare(request, context).await?;
    held.set_order(payments, &order.order_id).await?;
    let payment_key = match order.amount {
        Won::ZERO => order.order_id.clone(),
        amount => sandbox.issue_key(wanted.card, &order.order_id, amount).await?,
    };
    let approval = Approval { user_id: wanted.user_id, payment_key, amount: order.amount };
    let order = ApproveOrder { order_id: order.order_id, approval, key: wanted.key.clone() };
    Ok(payments.approve_detached(order, *context).await?)
}

/// A membership that is paid can be paid for another term, if the ticket service says so (M-7c).
fn may_be_renewed(payment: &Payment) -> bool {
    payment.payable.kind == PayableKind::Membership && payment.status == PaymentStatus::Confirmed
}

/// A user's payment of something that is paid or being paid.
async fn paid_before(
    payments: &PaymentService,
    wanted: &TestCardPayment,
) -> Result<Option<Payment>, ApiError> {
    let all = payments.list_by_payable(wanted.payable.id).await?;
    let stands = |payment: &Payment| {
        matches!(
            payment.status,
            PaymentStatus::Approving | PaymentStatus::Unknown | PaymentStatus::Confirmed
        )
    };
    Ok(all.into_iter().find(|payment| payment.user_id == wanted.user_id && stands(payment)))
}

/// What becomes of a payment that was begun: the same approval once more waits for the first.
async fn wait_for(
    payments: &PaymentService,
    known: Payment,
    context: &CallContext,
) -> Result<Payment, ApiError> {
    let Some(payment_key) = known.payment_key.clone() else { return Ok(known) };
    let approval = Approval { user_id: known.user_id, payment_key, amount: known.amount };
    let order = ApproveOrder { order_id: known.order_id, approval, key: None };
    Ok(payments.approve_detached(order, *context).await?)
}
