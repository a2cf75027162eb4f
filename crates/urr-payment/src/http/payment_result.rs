//! How far a payment came, as an answer.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urr_kernel::Won;
use urr_service::{ApiError, Json};
use utoipa::ToSchema;

use super::views::PaymentView;
use crate::domain::payment::{Payment, PaymentStatus, SagaStep};

const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

#[derive(Serialize, ToSchema)]
pub struct PaidView {
    /// Whether it is paid and the ticket is there.
    pub success: bool,
    /// As in the payment.
    pub status: &'static str,
    pub payment: PaymentView,
}

/// 200 if the ticket is there, 202 if nobody knows yet, a refusal otherwise.
pub fn answer(payment: &Payment) -> Result<Response, ApiError> {
    let view = |success| {
        let (status, payment) = (payment.status.name(), PaymentView::new(payment));
        Json(PaidView { success, status, payment })
    };
    match payment.status {
        PaymentStatus::Confirmed if payment.step != Some(SagaStep::Deliver) => {
            Ok(view(true).into_response())
        }
        PaymentStatus::Pending
        | PaymentStatus::Approving
        | PaymentStatus::Unknown
        | PaymentStatus::Confirmed => Ok((StatusCode::ACCEPTED, view(false)).into_response()),
        // It was given up, and the provider is asked once more whether it has charged after all.
        PaymentStatus::Failed if payment.step == Some(SagaStep::Query) => {
            Ok((StatusCode::ACCEPTED, view(false)).into_response())
        }
        PaymentStatus::Failed => Err(with_details(failed(payment), payment)),
        PaymentStatus::Refunding | PaymentStatus::Refunded => {
            let sentence = "This payment was given back, or is about to be.";
            let error = ApiError::conflict("PAYMENT_RETURNED", sentence);
            Err(with_details(error.with("reason", code(payment)), payment))
        }
    }
}

fn code(payment: &Payment) -> String {
    payment.failure_code.clone().unwrap_or_default()
}

fn failed(payment: &Payment) -> ApiError {
    // Only what was never charged can be said to cost nothing.
    let charged = match payment.charged {
        Won::ZERO => "Nothing was charged.",
        _ => "What was charged goes back.",
    };
    let code = code(payment);
    match code.as_str() {
        "TICKET_SERVICE_UNAVAILABLE" => {
            let sentence = format!("The ticket service does not answer. {charged}");
            ApiError::unavailable("SERVICE_UNAVAILABLE", sentence, TRY_AGAIN_AFTER)
        }
        "PROVIDER_UNAVAILABLE" => {
            let sentence = format!("The payment provider does not answer. {charged}");
            ApiError::unavailable("PROVIDER_UNAVAILABLE", sentence, TRY_AGAIN_AFTER)
        }
        "METHOD_NOT_SUPPORTED" => {
            let sentence = format!("This way of paying is not possible here. {charged}");
            ApiError::new(StatusCode::PAYMENT_REQUIRED, "METHOD_NOT_SUPPORTED", sentence)
        }
        _ if payment.charge_sent_at.is_some() => {
            let sentence = format!("The payment was declined. {charged}");
            let error = ApiError::new(StatusCode::PAYMENT_REQUIRED, "PAYMENT_DECLINED", sentence);
            error.with("providerCode", code)
        }
        _ => {
            let sentence = format!("What was to be paid cannot be had any more. {charged}");
            // The ticket service's own word, that clients know from it.
            ApiError::new(StatusCode::CONFLICT, code, sentence)
        }
    }
}

fn with_details(error: ApiError, payment: &Payment) -> ApiError {
    let error = error.with("status", payment.status.name());
    error.with("orderId", payment.order_id.clone())
}
