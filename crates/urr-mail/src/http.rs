//! Mails over HTTP.

mod admin;
mod notifications;
mod problems;
mod reservations;
pub mod user_records;

use urr_service::ApiError;
use urr_service::admin_log::{self, AdminLogRoute};
use utoipa_axum::router::OpenApiRouter;

use crate::{MailService, RetryMailError};

const ADMIN_LOG: AdminLogRoute = AdminLogRoute {
    path: "/api/admin/mails/log",
    operation_id: "list_mail_admin_actions",
    tag: "admin",
};

pub fn routes() -> OpenApiRouter<MailService> {
    OpenApiRouter::new()
        .merge(admin::routes())
        .merge(admin_log::routes(ADMIN_LOG))
        .merge(notifications::routes())
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
