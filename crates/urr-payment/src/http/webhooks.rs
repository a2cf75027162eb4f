//! Webhooks of providers.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use urr_service::{ApiError, ErrorBody, Json, Path, RawBody};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::PaymentService;
use crate::provider::WebhookRejection;

const BODY_BYTES_MAX: usize = 64 * 1024;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new().routes(routes!(receive_webhook))
}

#[derive(Serialize, ToSchema)]
struct ReceivedView {
    received: bool,
}

/// Receives a webhook of a payment provider.
///
/// Public. Its content is not believed: the provider is asked about the order it names. More than
/// 20 messages about one order in an hour cause one query a minute. Errors: 400 `INVALID_WEBHOOK`,
/// `INVALID_SIGNATURE` (PortOne signs, Toss does not); 404 `PROVIDER_NOT_FOUND`; 413
/// `BODY_TOO_LARGE` (64 KiB).
#[utoipa::path(
    post, path = "/api/payments/webhooks/{provider}", tag = "payments",
    params(("provider" = String, Path, example = "toss")),
    request_body(content = String, content_type = "application/json"),
    responses(
        (status = 200, body = ReceivedView),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 413, body = ErrorBody),
    ),
)]
async fn receive_webhook(
    State(payments): State<PaymentService>,
    Path(name): Path<String>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<Json<ReceivedView>, ApiError> {
    if body.len() > BODY_BYTES_MAX {
        let sentence = "The webhook is too large.";
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", sentence));
    }
    let Some(provider) = payments.0.providers.iter().find(|provider| provider.name() == name)
    else {
        return Err(ApiError::not_found("PROVIDER_NOT_FOUND", "There is no such provider."));
    };
    match provider.read_webhook(&headers, &body, payments.0.clock.now())? {
        Some(notice) => payments.handle_webhook(provider.name(), notice).await?,
        None => tracing::debug!(provider = name, "a webhook about something else"),
    }
    Ok(Json(ReceivedView { received: true }))
}

impl From<WebhookRejection> for ApiError {
    fn from(rejection: WebhookRejection) -> ApiError {
        match rejection {
            WebhookRejection::Unexpected => {
                ApiError::not_found("PROVIDER_NOT_FOUND", "This provider sends no webhooks.")
            }
            WebhookRejection::Unreadable => {
                ApiError::bad_request("INVALID_WEBHOOK", "The webhook cannot be read.")
            }
            WebhookRejection::HeadersMissing
            | WebhookRejection::Untimely
            | WebhookRejection::Forged => {
                ApiError::bad_request("INVALID_SIGNATURE", "The signature is not the provider's.")
            }
        }
    }
}
