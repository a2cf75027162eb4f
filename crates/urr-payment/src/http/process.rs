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

use super::answers::{PaidView, answer};
use super::keys::{self, ClientKey, HeldKey};
use super::orders::parse_target;
use crate::domain::payment::{Approval, Status, Target, TargetKind};
use crate::provider::{Card, Provider, Sandbox};
use crate::saga::{ApproveOrder, OrderRequest};
use crate::{Payment, Payments};

const METHOD_CHARS_MAX: usize = 50;

pub fn routes() -> OpenApiRouter<Payments> {
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
struct AtOnce {
    user_id: Uuid,
    target: Target,
    card: Card,
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
    State(payments): State<Payments>,
    User(user): User,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<ProcessBody>,
) -> Result<Response, ApiError> {
    let Provider::Sandbox(sandbox) = payments.provider() else {
        let sentence = "Payments are made at the provider's checkout.";
        return Err(ApiError::conflict("CHECKOUT_REQUIRED", sentence));
    };
    let method = one_line(&body.payment_method, METHOD_CHARS_MAX).map_err(|unfit| {
        ApiError::bad_request("INVALID_PAYMENT_METHOD", format!("The payment method {unfit}."))
    })?;
    let kind = body.payment_type.as_deref();
    let wanted = AtOnce {
        user_id: user.user_id,
        target: parse_target(kind, body.reservation_id, body.reference_id)?,
        card: Card::parse(method).unwrap_or(Card::Approve),
        key: idempotency_key(&headers, None)?,
    };
    let client = ClientKey { user_id: user.user_id, action: "process", key: wanted.key.as_ref() };
    let request = format!("{} {} {method}", kind.unwrap_or("reservation"), wanted.target.id);
    let held = keys::take(&payments, client, &request).await?;
    let paid = pay(&payments, sandbox, &wanted, &held, &context).await;
    answer(&held.keep_if_done(&payments, paid).await?)
}

/// The payment of the same key or of another click, or else a new one.
async fn pay(
    payments: &Payments,
    sandbox: &Sandbox,
    wanted: &AtOnce,
    held: &HeldKey,
    context: &CallContext,
) -> Result<Payment, ApiError> {
    if let Some(order_id) = &held.order_id
        && let Some(known) = payments.find_order(order_id).await?
        && known.status != Status::Pending
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
    payments: &Payments,
    sandbox: &Sandbox,
    wanted: &AtOnce,
    held: &HeldKey,
    context: &CallContext,
) -> Result<Payment, ApiError> {
    let request = OrderRequest {
        user_id: wanted.user_id,
        target: wanted.target,
        amount: None,
        key: wanted.key.clone(),
    };
    let order = payments.prepare(request, context).await?;
    held.note_order(payments, &order.order_id).await?;
    let payment_key = match order.amount {
        Won::ZERO => order.order_id.clone(),
        amount => sandbox.issue_key(wanted.card, &order.order_id, amount).await?,
    };
    let approval = Approval { user_id: wanted.user_id, payment_key, amount: order.amount };
    let order = ApproveOrder { order_id: order.order_id, approval, key: wanted.key.clone() };
    Ok(payments.approve_detached(order, *context).await?)
}

/// A membership that is paid can be paid for another term, if the ticket office says so (M-7c).
fn may_be_renewed(payment: &Payment) -> bool {
    payment.target.kind == TargetKind::Membership && payment.status == Status::Confirmed
}

/// A user's payment of something that is paid or being paid.
async fn paid_before(payments: &Payments, wanted: &AtOnce) -> Result<Option<Payment>, ApiError> {
    let all = payments.list_of_target(wanted.target.id).await?;
    let stands = |payment: &Payment| {
        matches!(payment.status, Status::Approving | Status::Unknown | Status::Confirmed)
    };
    Ok(all.into_iter().find(|payment| payment.user_id == wanted.user_id && stands(payment)))
}

/// What becomes of a payment that was begun: the same approval once more waits for the first.
async fn wait_for(
    payments: &Payments,
    known: Payment,
    context: &CallContext,
) -> Result<Payment, ApiError> {
    let Some(payment_key) = known.payment_key.clone() else { return Ok(known) };
    let approval = Approval { user_id: known.user_id, payment_key, amount: known.amount };
    let order = ApproveOrder { order_id: known.order_id, approval, key: None };
    Ok(payments.approve_detached(order, *context).await?)
}
