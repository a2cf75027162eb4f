//! Errors of the operations as answers to clients.

use std::time::Duration;

use axum::http::StatusCode;
use urr_contracts::clients::ClientError;
use urr_service::ApiError;
use urr_service::idempotency::key_reused;

use crate::CompareError;
use crate::domain::payment::ApprovalRejection;
use crate::saga::{ApproveError, CloseError, PrepareError, RefundError};

pub fn payment_not_found() -> ApiError {
    ApiError::not_found("PAYMENT_NOT_FOUND", "There is no such payment.")
}

/// The provider has declined so often that the hold was given up.
pub fn too_many_declines() -> ApiError {
    let sentence = "Payments of this were declined too often. The seats are free again. Nothing \
                    was charged.";
    ApiError::conflict("TOO_MANY_DECLINES", sentence)
}

/// The ticket service's refusals reach the user through us (M-12).
fn ticket_error(error: ClientError) -> ApiError {
    let status = error.source().refusal().map(|refusal| refusal.status);
    match error {
        // An upstream error of 403 would be taken for a refusal of our own credential.
        ClientError::Refused { source, .. } if status == Some(StatusCode::FORBIDDEN) => {
            let refusal = source.refusal().expect("a status comes from a refusal");
            ApiError::new(StatusCode::FORBIDDEN, refusal.code.clone(), refusal.sentence.clone())
        }
        ClientError::Refused { source, .. } => source.into(),
        ClientError::NoAnswer { source, .. } if status == Some(StatusCode::TOO_MANY_REQUESTS) => {
            source.into()
        }
        ClientError::NoAnswer { source, .. } => ApiError::unavailable(
            "SERVICE_UNAVAILABLE",
            "The ticket service does not answer. Please try again.",
            Duration::from_secs(1),
        )
        .caused_by(source),
    }
}

impl From<PrepareError> for ApiError {
    fn from(error: PrepareError) -> ApiError {
        match error {
            PrepareError::AmountMismatch(amount) => {
                let sentence = format!("The amount to pay is {amount}.");
                ApiError::bad_request("AMOUNT_MISMATCH", sentence).with("amount", amount.amount())
            }
            PrepareError::Refused(rejection) => rejection.into(),
            PrepareError::Tickets(error) => ticket_error(error),
            PrepareError::Storage(error) => error.into(),
        }
    }
}

impl From<ApproveError> for ApiError {
    fn from(error: ApproveError) -> ApiError {
        match error {
            ApproveError::Refused(rejection) => rejection.into(),
            ApproveError::KeyReused => key_reused(),
            ApproveError::Storage(error) => error.into(),
        }
    }
}

impl From<ApprovalRejection> for ApiError {
    fn from(rejection: ApprovalRejection) -> ApiError {
        match rejection {
            ApprovalRejection::NotFound => payment_not_found(),
            ApprovalRejection::AmountMismatch => {
                ApiError::bad_request("AMOUNT_MISMATCH", "This is not the amount of the order.")
            }
            ApprovalRejection::InProgress => {
                ApiError::conflict("PAYMENT_IN_PROGRESS", "A payment of this is under way.")
            }
            ApprovalRejection::AlreadyPaid => ApiError::conflict("ALREADY_PAID", "This is paid."),
            ApprovalRejection::TooManyDeclines => too_many_declines(),
            ApprovalRejection::Over => {
                ApiError::conflict("ORDER_OVER", "This order has ended. Please begin again.")
            }
        }
    }
}

impl From<RefundError> for ApiError {
    fn from(error: RefundError) -> ApiError {
        match error {
            RefundError::NotFound => payment_not_found(),
            RefundError::NotConfirmed => ApiError::conflict(
                "PAYMENT_NOT_CONFIRMED",
                "Nothing was paid that can be refunded.",
            ),
            RefundError::TooMuch => ApiError::bad_request(
                "INVALID_REFUND_AMOUNT",
                "A refund is at least one won and at most what is left of the payment.",
            ),
            RefundError::CancelInstead => ApiError::conflict(
                "CANCEL_INSTEAD",
                "To refund everything, leave the amount out: the reservation is cancelled.",
            ),
            RefundError::Transferred => ApiError::conflict(
                "TICKET_TRANSFERRED",
                "The ticket was transferred, and its seller has been refunded.",
            ),
            RefundError::NotCancellable => {
                ApiError::conflict("NOT_CANCELLABLE", "A membership is not refunded on request.")
            }
            RefundError::AboveLimit(limit) => {
                ApiError::forbidden("REFUND_ABOVE_LIMIT", error.to_string())
                    .with("limit", limit.amount())
            }
            RefundError::Tickets(error) => ticket_error(error),
            RefundError::Storage(error) => error.into(),
        }
    }
}

impl From<CloseError> for ApiError {
    fn from(error: CloseError) -> ApiError {
        match error {
            CloseError::NotFound => {
                ApiError::not_found("REFUND_NOT_FOUND", "There is no such refund.")
            }
            CloseError::Unclear => ApiError::conflict(
                "REFUND_UNCLEAR",
                "It is not known yet whether the provider has refunded.",
            ),
            CloseError::NotDeclined => {
                ApiError::conflict("REFUND_NOT_DECLINED", "The provider has not declined it.")
            }
            CloseError::Over => {
                ApiError::conflict("REFUND_OVER", "The refund has ended in another way.")
            }
            CloseError::Owed => ApiError::conflict(
                "REFUND_OWED",
                "The buyer is entitled to it: only a goodwill refund can be withdrawn.",
            ),
            CloseError::Storage(error) => error.into(),
        }
    }
}

impl From<CompareError> for ApiError {
    fn from(error: CompareError) -> ApiError {
        match error {
            CompareError::Storage(error) => error.into(),
            CompareError::Tickets(error) => ticket_error(error),
        }
    }
}
