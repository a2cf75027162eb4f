//! How far a payment came, as an answer.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urr_service::{ApiError, Json};
use utoipa::ToSchema;

use super::views::PaymentView;
use crate::domain::payment::{Payment, Status, Step};

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
        Status::Confirmed if payment.step != Some(Step::Deliver) => Ok(view(true).into_response()),
        Status::Pending | Status::Approving | Status::Unknown | Status::Confirmed => {
            Ok((StatusCode::ACCEPTED, view(false)).into_response())
        }
        Status::Failed => Err(failed(payment)),
        Status::Refunding | Status::Refunded => {
            let sentence = "This payment was given back, or is about to be.";
            let error = ApiError::conflict("PAYMENT_RETURNED", sentence);
            Err(with_details(error, payment))
        }
    }
}

fn failed(payment: &Payment) -> ApiError {
    let code = payment.failure_code.clone().unwrap_or_default();
    if payment.charge_sent_at.is_some() {
        let sentence = "The payment was declined. Nothing was charged.";
        let error = ApiError::new(StatusCode::PAYMENT_REQUIRED, "PAYMENT_DECLINED", sentence);
        return with_details(error.with("providerCode", code), payment);
    }
    let sentence = "What was to be paid cannot be had any more. Nothing was charged.";
    // The ticket office's own word, that clients know from it.
    let error = ApiError::new(StatusCode::CONFLICT, code, sentence);
    with_details(error, payment)
}

fn with_details(error: ApiError, payment: &Payment) -> ApiError {
    let error = error.with("status", payment.status.name());
    error.with("orderId", payment.order_id.clone())
}
