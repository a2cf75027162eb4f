//! The checkout of the sandbox: the key by which a buyer agrees to an order, as the window of a real
//! provider gives it to the browser.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::Won;
use urr_service::{ApiError, Errors, Json, User, unknown_path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::errors::payment_not_found;
use super::test_card::parse_card;
use crate::PaymentService;
use crate::domain::payment::PaymentStatus;
use crate::provider::ProviderClient;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new().routes(routes!(create_sandbox_key))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SandboxKeyBody {
    #[schema(max_length = 64)]
    order_id: String,
    /// The name of a test card.
    #[schema(example = "approve")]
    card: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SandboxKeyView {
    payment_key: String,
    order_id: String,
    #[schema(value_type = i64)]
    amount: Won,
}

/// Agrees to an order with a test card of the sandbox.
///
/// What the window of a real provider does: the answer has `paymentKey`, `orderId` and `amount` for
/// `POST /api/payments/confirm`. The key is bound to the order and its amount, and must be used
/// within ten minutes. The test cards are those of `POST /api/payments/process`. Only where the
/// provider is the sandbox; otherwise 404 `NOT_FOUND`.
///
/// Errors: 400 `INVALID_PAYMENT_METHOD`; 404 `PAYMENT_NOT_FOUND`; 409 `ORDER_OVER`.
#[utoipa::path(
    post, path = "/api/payments/sandbox/keys", tag = "payments", request_body = SandboxKeyBody,
    responses((status = 200, body = SandboxKeyView), Errors<401, 404, 409>),
)]
async fn create_sandbox_key(
    State(payments): State<PaymentService>,
    User(user): User,
    Json(body): Json<SandboxKeyBody>,
) -> Result<Json<SandboxKeyView>, ApiError> {
    let ProviderClient::Sandbox(sandbox) = payments.provider() else {
        return Err(unknown_path().await);
    };
    let card = parse_card(&body.card)?;
    let order = payments.find_order(&body.order_id).await?;
    let order =
        order.filter(|order| order.user_id == user.user_id).ok_or_else(payment_not_found)?;
    if order.status != PaymentStatus::Pending {
        let sentence = "This order has ended. Please begin again.";
        return Err(ApiError::conflict("ORDER_OVER", sentence));
    }
    let payment_key = sandbox.issue_key(card, &order.order_id, order.amount).await?;
    Ok(Json(SandboxKeyView { payment_key, order_id: order.order_id, amount: order.amount }))
}
