//! Mails over HTTP.

mod admin;
mod notifications;

use urr_service::ApiError;
use utoipa_axum::router::OpenApiRouter;

use crate::{MailService, RetryMailError};

pub fn routes() -> OpenApiRouter<MailService> {
    OpenApiRouter::new().merge(admin::routes()).merge(notifications::routes())
}

fn mail_not_found() -> ApiError {
    ApiError::not_found("MAIL_NOT_FOUND", "There is no such mail.")
}

impl From<RetryMailError> for ApiError {
    fn from(error: RetryMailError) -> ApiError {
        match error {
            RetryMailError::NotFound => mail_not_found(),
            RetryMailError::NotFailed => {
                ApiError::conflict("MAIL_NOT_FAILED", "Only a mail that has failed is sent again.")
            }
            RetryMailError::Storage(error) => error.into(),
        }
    }
}
