//! Mails over HTTP.

mod admin;
mod mine;

use urr_service::ApiError;
use utoipa_axum::router::OpenApiRouter;

use crate::Mails;
use crate::looking::RetryError;

pub fn routes() -> OpenApiRouter<Mails> {
    OpenApiRouter::new().merge(admin::routes()).merge(mine::routes())
}

fn not_found() -> ApiError {
    ApiError::not_found("MAIL_NOT_FOUND", "There is no such mail.")
}

impl From<RetryError> for ApiError {
    fn from(error: RetryError) -> ApiError {
        match error {
            RetryError::NotFound => not_found(),
            RetryError::NotFailed => {
                ApiError::conflict("MAIL_NOT_FAILED", "Only a mail that has failed is sent again.")
            }
            RetryError::Storage(error) => error.into(),
        }
    }
}
