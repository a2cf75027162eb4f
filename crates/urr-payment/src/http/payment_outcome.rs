//! The answer to a request to pay, by how far the payment came.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urr_kernel::Won;
use urr_service::{ApiError, Json};
use utoipa::ToSchema;

use super::errors::too_many_declines;
use super::views::PaymentView;
use crate::PaymentService;
use crate::domain::charge_outcome::PROVIDER_UNAVAILABLE;
use crate::domain::payment::{Payment, PaymentStatus, SagaStep};
use crate::saga::TICKETS_UNAVAILABLE;

const RETRY_AFTER: Duration = Duration::from_secs(5);

#[derive(Serialize, ToSchema)]
pub struct PaidView {
    /// Whether it is paid and the ticket is there.
    pub success: bool,
    /// The same as in the payment.
    pub status: &'static str,
    pub payment: PaymentView,
}

/// 200 if the ticket is there, 202 if the outcome is open, an error otherwise.
pub async fn payment_outcome(
    payments: &PaymentService,
    payment: &Payment,
) -> Result<Response, ApiError> {
    let declines_left = payments.declines_left(payment).await?;
    let view = |success| {
        let (status, payment) = (payment.status.as_str(), PaymentView::new(payment));
        Json(PaidView { success, status, payment })
    };
    match (payment.status, payment.step) {
        (PaymentStatus::Confirmed, step) if step != Some(SagaStep::Deliver) => {
            Ok(view(true).into_response())
        }
        (PaymentStatus::Pending, _) if code(payment) == PROVIDER_UNAVAILABLE => {
            Err(with_details(provider_unavailable(), payment))
        }
        // A failed payment may be queried once more: perhaps the provider has charged.
        (PaymentStatus::Pending | PaymentStatus::Approving | PaymentStatus::Unknown, _)
        | (PaymentStatus::Confirmed, _)
        | (PaymentStatus::Failed, Some(SagaStep::Query)) => {
            Ok((StatusCode::ACCEPTED, view(false)).into_response())
        }
        (PaymentStatus::Failed, _) => Err(with_details(failed(payment, declines_left), payment)),
        (PaymentStatus::Refunding | PaymentStatus::Refunded, _) => {
            let sentence = "This payment was refunded, or is about to be.";
            let error = ApiError::conflict("PAYMENT_RETURNED", sentence);
            Err(with_details(error.with("reason", code(payment)), payment))
        }
    }
}

fn code(payment: &Payment) -> String {
    payment.failure_code.clone().unwrap_or_default()
}

/// The order is open again: the same request can be repeated.
fn provider_unavailable() -> ApiError {
    let sentence = "The payment provider does not answer. Nothing was charged. Please try again.";
    ApiError::unavailable(PROVIDER_UNAVAILABLE, sentence, RETRY_AFTER)
}

fn failed(payment: &Payment, declines_left: Option<u32>) -> ApiError {
    let charged = match payment.charged {
        Won::ZERO => "Nothing was charged.",
        _ => "What was charged is refunded.",
    };
    let code = code(payment);
    match code.as_str() {
        TICKETS_UNAVAILABLE => {
            let sentence = format!("The ticket service does not answer. {charged}");
            ApiError::unavailable("SERVICE_UNAVAILABLE", sentence, RETRY_AFTER)
        }
        "METHOD_NOT_SUPPORTED" => {
            let sentence = format!("This payment method is not supported here. {charged}");
            ApiError::new(StatusCode::PAYMENT_REQUIRED, "METHOD_NOT_SUPPORTED", sentence)
        }
        _ if declines_left == Some(0) => too_many_declines().with("providerCode", code),
        _ if payment.charge_sent_at.is_some() => {
            let sentence = format!("The payment was declined. {charged}");
            let error = ApiError::new(StatusCode::PAYMENT_REQUIRED, "PAYMENT_DECLINED", sentence);
            error.with("providerCode", code).with("attemptsLeft", declines_left)
        }
        _ => {
            let sentence = format!("What you wanted to pay is no longer available. {charged}");
            // The ticket service's own code, which clients know.
            ApiError::new(StatusCode::CONFLICT, code, sentence)
        }
    }
}

fn with_details(error: ApiError, payment: &Payment) -> ApiError {
    let error = error.with("status", payment.status.as_str());
    error.with("orderId", payment.order_id.clone())
}
