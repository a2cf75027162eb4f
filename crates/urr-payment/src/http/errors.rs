//! What clients are told when something is refused.

use std::time::Duration;

use urr_service::ApiError;

use crate::domain::payment::NotApproved;
use crate::office::OfficeError;
use crate::saga::{ApproveError, CreateError, PrepareError, RefundError};

pub fn not_found() -> ApiError {
    ApiError::not_found("PAYMENT_NOT_FOUND", "There is no such payment.")
}

/// What the ticket office says to a user, it says through us (M-12).
impl From<OfficeError> for ApiError {
    fn from(error: OfficeError) -> ApiError {
        match error {
            OfficeError::Refused { source, .. } => source.into(),
            OfficeError::Silent(source) => {
                let error = ApiError::unavailable(
                    "SERVICE_UNAVAILABLE",
                    "The ticket office does not answer. Please try again.",
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
            PrepareError::Office(error) => error.into(),
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

impl From<NotApproved> for ApiError {
    fn from(refused: NotApproved) -> ApiError {
        match refused {
            NotApproved::NotFound => not_found(),
            NotApproved::AmountMismatch => {
                ApiError::bad_request("AMOUNT_MISMATCH", "This is not the amount of the order.")
            }
            NotApproved::InProgress => {
                ApiError::conflict("PAYMENT_IN_PROGRESS", "A payment of this is under way.")
            }
            NotApproved::AlreadyPaid => ApiError::conflict("ALREADY_PAID", "This is paid."),
            NotApproved::Over => {
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
            RefundError::Office(error) => error.into(),
            RefundError::Storage(error) => error.into(),
        }
    }
}
