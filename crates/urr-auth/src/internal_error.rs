//! Failures on our side that every operation can have.

use std::time::Duration;

use urr_service::ApiError;
use urr_service::data_keys::UnsealError;
use urr_storage::StorageError;

use crate::passwords::HashingBusy;

/// A failure that the client did not cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InternalError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    PersonalData(#[from] UnsealError),
    #[error(transparent)]
    Busy(#[from] HashingBusy),
}

impl From<InternalError> for ApiError {
    fn from(error: InternalError) -> ApiError {
        match error {
            InternalError::Storage(error) => error.into(),
            InternalError::PersonalData(error) => ApiError::internal(error),
            InternalError::Busy(error) => ApiError::unavailable(
                "LOGIN_BUSY",
                "Too many people are logging in. Please try again in a moment.",
                Duration::from_secs(2),
            )
            .caused_by(error),
        }
    }
}

/// Lets `?` turn each internal error into the variant `Internal` of an operation's error.
macro_rules! from_internal_errors {
    ($($error:ty),* $(,)?) => {$(
        impl From<urr_storage::StorageError> for $error {
            fn from(error: urr_storage::StorageError) -> Self {
                Self::Internal(error.into())
            }
        }

        impl From<urr_service::data_keys::UnsealError> for $error {
            fn from(error: urr_service::data_keys::UnsealError) -> Self {
                Self::Internal(error.into())
            }
        }

        impl From<$crate::passwords::HashingBusy> for $error {
            fn from(error: $crate::passwords::HashingBusy) -> Self {
                Self::Internal(error.into())
            }
        }
    )*};
}

pub(crate) use from_internal_errors;
