//! What clients are told when something is refused.

use std::time::Duration;

use axum::http::StatusCode;
use urr_service::{ApiError, UpstreamError};

use crate::domain::payment::ApprovalRejection;
use crate::saga::{ApproveError, CloseError, CreateError, PrepareError, RefundError};
use crate::ticket_client::TicketClientError;

pub fn not_found() -> ApiError {
    ApiError::not_found("PAYMENT_NOT_FOUND", "There is no such payment.")
}

/// Asking too often is the user's doing, although the next time it may be answered.
fn is_of_the_user(error: &UpstreamError) -> bool {
    let refusal = error.refusal();
    refusal.is_some_and(|refusal| refusal.status == StatusCode::TOO_MANY_REQUESTS)
}

/// A refusal of the ticket service itself, also one that a service alone could take for a refusal of
/// our credential.
fn passed_on(error: UpstreamError) -> ApiError {
    match error.refusal() {
        Some(refusal) if refusal.status == StatusCode::FORBIDDEN => {
            ApiError::new(refusal.status, refusal.code.clone(), refusal.sentence.clone())
        }
        _ => error.into(),
    }
}

/// What the ticket service says to a user, it says through us (M-12).
impl From<TicketClientError> for ApiError {
    fn from(error: TicketClientError) -> ApiError {
        match error {
            TicketClientError::Refused { source, .. } => passed_on(source),
            TicketClientError::NoAnswer(Some(source)) if is_of_the_user(&source) => source.into(),
            TicketClientError::NoAnswer(source) => {
                let error = ApiError::unavailable(
                    "SERVICE_UNAVAILABLE",
                    "The ticket service does not answer. Please try again.",
                    Duration::from_secs(1),
                );
                match source {
                    Some(source) => error.caused_by(source),
                    None => error,
                }
            }
        }
    }
}

impl From<PrepareError> for ApiError {
    fn from(error: PrepareError) -> ApiError {
        match error {
            PrepareError::AmountMismatch(amount) => {
                let sentence = format!("The amount to pay is {amount}.");
                ApiError::bad_request("AMOUNT_MISMATCH", sentence).with("amount", amount.amount())
            }
            PrepareError::Tickets(error) => error.into(),
            PrepareError::Storage(error) => error.into(),
        }
    }
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> ApiError {
        match error {
            CreateError::CausationMissing | CreateError::Lost => ApiError::internal(error),
            CreateError::Storage(error) => error.into(),
        }
    }
}

impl From<ApprovalRejection> for ApiError {
    fn from(refused: ApprovalRejection) -> ApiError {
        match refused {
            ApprovalRejection::NotFound => not_found(),
            ApprovalRejection::AmountMismatch => {
                ApiError::bad_request("AMOUNT_MISMATCH", "This is not the amount of the order.")
            }
            ApprovalRejection::InProgress => {
                ApiError::conflict("PAYMENT_IN_PROGRESS", "A payment of this is under way.")
            }
            ApprovalRejection::AlreadyPaid => ApiError::conflict("ALREADY_PAID", "This is paid."),
            ApprovalRejection::Over => {
                ApiError::conflict("ORDER_OVER", "This order has ended. Please begin again.")
            }
        }
    }
}

impl From<ApproveError> for ApiError {
    fn from(error: ApproveError) -> ApiError {
        match error {
            ApproveError::Refused(refused) => refused.into(),
            ApproveError::Storage(error) => error.into(),
        }
    }
}

impl From<RefundError> for ApiError {
    fn from(error: RefundError) -> ApiError {
        match error {
            RefundError::NotFound => not_found(),
            RefundError::NotConfirmed => {
                ApiError::conflict("PAYMENT_NOT_CONFIRMED", "Nothing was paid that could go back.")
            }
            RefundError::TooMuch => ApiError::bad_request(
                "INVALID_REFUND_AMOUNT",
                "At least one won and no more than what is left of the payment can go back.",
            ),
            RefundError::CancelInstead => ApiError::conflict(
                "CANCEL_INSTEAD",
                "To give everything back, leave the amount out: the reservation is cancelled.",
            ),
            RefundError::Transferred => ApiError::conflict(
                "TICKET_TRANSFERRED",
                "The ticket was handed over. Its payment has gone back.",
            ),
            RefundError::NotCancellable => {
                ApiError::conflict("NOT_CANCELLABLE", "A membership is not given back on request.")
            }
            RefundError::Tickets(error) => error.into(),
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
                "Nobody knows yet whether the provider has given it back.",
            ),
            CloseError::NotDeclined => {
                ApiError::conflict("REFUND_NOT_DECLINED", "The provider has not refused it.")
            }
            CloseError::Over => {
                ApiError::conflict("REFUND_OVER", "The refund has come to another end.")
            }
            CloseError::Owed => ApiError::conflict(
                "REFUND_OWED",
                "Somebody is entitled to it: only what was given of good will is withdrawn.",
            ),
            CloseError::Storage(error) => error.into(),
        }
    }
}
