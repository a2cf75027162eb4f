//! Paying at once with a test card, where the provider is the sandbox.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use urr_contracts::clients::PayableRef;
use urr_kernel::{CallContext, IdempotencyKey, Uuid, Won};
use urr_service::idempotency::header_key;
use urr_service::{ApiError, Context, Errors, Json, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::idempotency::{ClaimedKey, claim_key};
use super::orders::parse_payable;
use super::payment_outcome::{PaidView, payment_outcome};
use crate::domain::payment::{Approval, PaymentStatus};
use crate::provider::{ProviderClient, Sandbox, TestCard};
use crate::saga::{ApproveOrder, OrderRequest};
use crate::{Payment, PaymentService};

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new().routes(routes!(process_payment))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProcessBody {
    /// The name of a test card.
    #[schema(min_length = 1, max_length = 50, example = "approve")]
    payment_method: String,
    reservation_id: Option<Uuid>,
    payment_type: Option<String>,
    reference_id: Option<Uuid>,
}

struct TestCardPayment {
    user_id: Uuid,
    payable: PayableRef,
    card: TestCard,
    key: Option<IdempotencyKey>,
}

/// Pays with a test card of the sandbox.
///
/// Prepares and confirms in one step. `paymentMethod` is a test card: `approve`, `decline`,
/// `insufficient`, `slow`, `timeout`, `stumble`, `charge-timeout`, `charge-500`, `duplicate`,
/// `wrong-amount`, `test-channel`, `unknown-code`, `refund-timeout`, `refund-decline`,
/// `refund-whole`. Responses and errors are those of preparing and confirming; 409
/// `CHECKOUT_REQUIRED` if the provider is not the sandbox; 400 `INVALID_PAYMENT_METHOD` for any
/// other word.
#[utoipa::path(
    post, path = "/api/payments/process", tag = "payments", request_body = ProcessBody,
    responses(
        (status = 200, body = PaidView),
        (status = 202, body = PaidView),
        Errors<401, 402, 404, 409, 422>,
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
    let card = parse_card(&body.payment_method)?;
    let kind = body.payment_type.as_deref();
    let wanted = TestCardPayment {
        user_id: user.user_id,
        payable: parse_payable(kind, body.reservation_id, body.reference_id)?,
        card,
        key: header_key(&headers)?,
    };
    let request = (wanted.payable.kind, wanted.payable.id, card.as_str());
    let (user_id, key) = (user.user_id, wanted.key.as_ref());
    let claimed = claim_key(&payments, user_id, "process_payment", key, &request).await?;
    let paid = pay(&payments, sandbox, &wanted, &claimed, &context).await;
    let payment = claimed.release_if_refused(&payments, paid).await?;
    payment_outcome(&payments, &payment).await
}

pub(super) fn parse_card(name: &str) -> Result<TestCard, ApiError> {
    name.parse().map_err(|_| {
        ApiError::bad_request("INVALID_PAYMENT_METHOD", "There is no test card of this name.")
    })
}

/// The payment of the same key or of an earlier click, or else a new one.
async fn pay(
    payments: &PaymentService,
    sandbox: &Sandbox,
    wanted: &TestCardPayment,
    claimed: &ClaimedKey,
    context: &CallContext,
) -> Result<Payment, ApiError> {
    if let Some(order_id) = &claimed.order_id
        && let Some(known) = payments.find_order(order_id).await?
        && known.status != PaymentStatus::Pending
    {
        return Ok(payments.wait_for_order(known.user_id, &known.order_id).await?);
    }
    match pay_new_order(payments, sandbox, wanted, claimed, context).await {
        Ok(paid) => Ok(paid),
        // A second click is refused somewhere on the way.
        Err(refused) => match find_standing(payments, wanted).await? {
            Some(known) => Ok(payments.wait_for_order(known.user_id, &known.order_id).await?),
            None => Err(refused),
        },
    }
}

async fn pay_new_order(
    payments: &PaymentService,
    sandbox: &Sandbox,
    wanted: &TestCardPayment,
    claimed: &ClaimedKey,
    context: &CallContext,
) -> Result<Payment, ApiError> {
    let &TestCardPayment { user_id, payable, card, ref key } = wanted;
    let request = OrderRequest { user_id, payable, amount: None, key: key.clone() };
    let order = payments.new_order(request, context).await?;
    claimed.set_order(payments, &order.fresh.order_id).await?;
    let payment_key = issue_key(sandbox, card, &order.fresh).await?;
    let paid = payments.pay_new_order(order, payment_key, *context).await?;
    if paid.status != PaymentStatus::Pending {
        return Ok(paid);
    }
    // The buyer has prepared an order before.
    claimed.set_order(payments, &paid.order_id).await?;
    let payment_key = issue_key(sandbox, card, &paid).await?;
    let approval = Approval { user_id, payment_key, amount: paid.amount };
    let order = ApproveOrder { order_id: paid.order_id, approval, key: key.clone(), claim: None };
    Ok(payments.approve_detached(order, *context).await?)
}

/// The key of the sandbox's checkout; a free order has none, so that its own id is the key.
async fn issue_key(sandbox: &Sandbox, card: TestCard, order: &Payment) -> Result<String, ApiError> {
    match order.amount {
        Won::ZERO => Ok(order.order_id.clone()),
        amount => Ok(sandbox.issue_key(card, &order.order_id, amount).await?),
    }
}

/// The user's payment of the payable that is paid or under way.
async fn find_standing(
    payments: &PaymentService,
    wanted: &TestCardPayment,
) -> Result<Option<Payment>, ApiError> {
    use PaymentStatus::{Approving, Confirmed, Unknown};
    let all = payments.list_by_payable(wanted.payable.id).await?;
    Ok(all.into_iter().find(|payment| {
        payment.user_id == wanted.user_id
            && matches!(payment.status, Approving | Unknown | Confirmed)
    }))
}
