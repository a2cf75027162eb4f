//! Verifying an address and resetting a password, over HTTP.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use urr_kernel::Secret;
use urr_service::{ApiError, Context, Errors, Json, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{LinkError, REQUESTS_WINDOW};
use crate::accounts::views::MessageView;
use crate::sessions::client_info::ClientInfo;
use crate::{AuthService, Email, UserId};

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .routes(routes!(request_verification))
        .routes(routes!(verify_email))
        .routes(routes!(request_password_reset))
        .routes(routes!(reset_password))
}

/// Sends the link that verifies the user's e-mail address once more.
///
/// Registering sends the first one. The link works once, for 30 minutes. Errors: 409
/// `EMAIL_ALREADY_VERIFIED`; 429 `LINK_LIMIT` after three mails within an hour.
#[utoipa::path(
    post, path = "/api/auth/email/verification", tag = "auth",
    responses((status = 202, body = MessageView), Errors<400>, Errors<401, 409, 429>),
)]
pub async fn request_verification(
    State(auth): State<AuthService>,
    User(identity): User,
    Context(context): Context,
) -> Result<impl IntoResponse, ApiError> {
    auth.request_verification(UserId(identity.user_id), context).await?;
    Ok((StatusCode::ACCEPTED, Json(MessageView { message: "We have sent you a mail." })))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifyEmailBody {
    /// The part of the link after `#`.
    #[schema(max_length = 128)]
    token: String,
}

/// Verifies an e-mail address with the token of a link.
///
/// The page `/verify` sends it. The access tokens of the account stop working, so that new ones say
/// that the address is verified; sessions go on with a refresh. Errors: 400 `LINK_INVALID` if the
/// link was used, is older than 30 minutes, or is for another state of the account.
#[utoipa::path(
    post, path = "/api/auth/email/verify", tag = "auth", request_body = VerifyEmailBody,
    responses((status = 200, body = MessageView), Errors<400>),
)]
pub async fn verify_email(
    State(auth): State<AuthService>,
    Json(body): Json<VerifyEmailBody>,
) -> Result<Json<MessageView>, ApiError> {
    auth.verify_email(&Secret::new(body.token)).await?;
    Ok(Json(MessageView { message: "E-mail address verified" }))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForgotPasswordBody {
    #[schema(max_length = 254, example = "mina@example.com")]
    email: String,
}

/// Sends a link to choose another password.
///
/// The answer is the same whether or not the address has an account. The link works once, for 30
/// minutes, and only until the password changes; an address gets three within an hour. Errors: 400
/// `INVALID_EMAIL`.
#[utoipa::path(
    post, path = "/api/auth/password/forgot", tag = "auth", request_body = ForgotPasswordBody,
    responses((status = 202, body = MessageView), Errors<400>),
)]
pub async fn request_password_reset(
    State(auth): State<AuthService>,
    Context(context): Context,
    Json(body): Json<ForgotPasswordBody>,
) -> Result<impl IntoResponse, ApiError> {
    let email = Email::parse(&body.email)?;
    auth.request_password_reset(&email, context).await?;
    let message = "If this address has an account, we have sent a mail to it.";
    Ok((StatusCode::ACCEPTED, Json(MessageView { message })))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResetPasswordBody {
    /// The part of the link after `#`.
    #[schema(max_length = 128)]
    token: String,
    #[schema(min_length = 8, max_length = 128)]
    new_password: String,
}

/// Sets another password with the token of a link.
///
/// All sessions end. The address counts as verified from then on. If it was not verified before,
/// linked social logins are removed, because a stranger may have linked them. Errors: 400
/// `LINK_INVALID`, `INVALID_PASSWORD` (the link can be used again); 503 `LOGIN_BUSY`.
#[utoipa::path(
    post, path = "/api/auth/password/reset", tag = "auth", request_body = ResetPasswordBody,
    responses((status = 200, body = MessageView), Errors<400>),
)]
pub async fn reset_password(
    State(auth): State<AuthService>,
    Context(context): Context,
    client: ClientInfo,
    Json(body): Json<ResetPasswordBody>,
) -> Result<Json<MessageView>, ApiError> {
    let token = Secret::new(body.token);
    auth.reset_password(&token, &body.new_password, client, context).await?;
    Ok(Json(MessageView { message: "Password changed" }))
}

impl From<LinkError> for ApiError {
    fn from(error: LinkError) -> ApiError {
        let sentence = error.to_string();
        match error {
            LinkError::Invalid => ApiError::bad_request("LINK_INVALID", sentence),
            LinkError::AlreadyVerified => ApiError::conflict("EMAIL_ALREADY_VERIFIED", sentence),
            LinkError::TooMany => ApiError::too_many("LINK_LIMIT", sentence, REQUESTS_WINDOW),
            LinkError::InvalidPassword(invalid) => invalid.into(),
            LinkError::Internal(error) => error.into(),
        }
    }
}
