//! Accounts over HTTP.

mod accounts;
mod admin;
mod bot_check;
mod cookies;
mod identity_check;
mod internal;
mod origin;
mod sessions;
mod social;
mod terms;
mod views;

use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use urr_kernel::Secret;
use urr_service::ApiError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{
    Auth, ChangeRoleError, Confirmation, ConfirmedError, InvalidEmail, InvalidLanguage,
    InvalidName, InvalidPassword, InvalidPhone, InviteError, LoginError, RefreshError,
    RegisterError, UserError, VerifyTokenError,
};

/// The internal addresses are not part of the public description.
pub fn routes() -> OpenApiRouter<Auth> {
    OpenApiRouter::new()
        .routes(routes!(accounts::register))
        .routes(routes!(sessions::login))
        .routes(routes!(sessions::refresh))
        .routes(routes!(sessions::logout))
        .routes(routes!(sessions::verify_token))
        .routes(routes!(accounts::get_me, accounts::update_me, accounts::delete_me))
        .routes(routes!(accounts::change_password))
        .routes(routes!(terms::list_terms, terms::answer_terms))
        .routes(routes!(bot_check::get_challenge))
        .routes(routes!(identity_check::start_verification))
        .routes(routes!(identity_check::complete_verification))
        .routes(routes!(social::start_social))
        .routes(routes!(social::link_social))
        .routes(routes!(social::finish_social))
        .routes(routes!(social::start_google_button))
        .routes(routes!(social::login_by_google))
        .routes(routes!(social::list_identities))
        .routes(routes!(social::unlink_identity))
        .routes(routes!(admin::redeem_admin_invite))
        .routes(routes!(admin::list_users))
        .routes(routes!(admin::change_role))
        .route("/internal/auth/users/{id}", get(internal::get_user))
        .route("/internal/auth/users/batch", post(internal::get_users))
        .route("/internal/auth/revoked-tokens", get(internal::list_revoked_tokens))
}

/// What a request shows beside its login. The gateway passes the access token on as a cookie,
/// however it came.
fn confirmation(password: Option<String>, headers: &HeaderMap) -> Confirmation {
    Confirmation {
        password: password.map(Secret::new),
        access_token: cookies::access_token(headers).map(Secret::new),
    }
}

/// The same sentence whatever the reason: who has an account is nobody else's business.
fn registration_failed() -> ApiError {
    ApiError::conflict(
        "REGISTRATION_FAILED",
        "We could not register this address. Please log in if you have an account.",
    )
}

fn user_not_found() -> ApiError {
    ApiError::not_found("USER_NOT_FOUND", "There is no such user.")
}

fn last_admin() -> ApiError {
    ApiError::conflict("LAST_ADMIN", "The last administrator cannot leave. Name another first.")
}

macro_rules! bad_input {
    ($($invalid:ty => $code:literal;)*) => {$(
        impl From<$invalid> for ApiError {
            fn from(invalid: $invalid) -> ApiError {
                ApiError::bad_request($code, invalid.to_string())
            }
        }
    )*};
}

bad_input! {
    InvalidEmail => "INVALID_EMAIL";
    InvalidName => "INVALID_NAME";
    InvalidPhone => "INVALID_PHONE";
    InvalidLanguage => "INVALID_LANGUAGE";
    InvalidPassword => "INVALID_PASSWORD";
}

impl From<RegisterError> for ApiError {
    fn from(error: RegisterError) -> ApiError {
        match error {
            RegisterError::EmailTaken => registration_failed(),
            RegisterError::Fault(fault) => fault.into(),
        }
    }
}

impl From<LoginError> for ApiError {
    fn from(error: LoginError) -> ApiError {
        match error {
            LoginError::InvalidCredentials => ApiError::unauthorized(
                "INVALID_CREDENTIALS",
                "The e-mail address or the password is wrong.",
            ),
            LoginError::Fault(fault) => fault.into(),
        }
    }
}

impl From<RefreshError> for ApiError {
    fn from(error: RefreshError) -> ApiError {
        let (code, sentence) = match error {
            RefreshError::Invalid => ("REFRESH_TOKEN_INVALID", "Please log in again."),
            RefreshError::Expired => {
                ("REFRESH_TOKEN_EXPIRED", "You were away for long. Please log in again.")
            }
            RefreshError::Revoked => {
                ("REFRESH_TOKEN_REVOKED", "You were logged out. Please log in again.")
            }
            RefreshError::Reused => (
                "REFRESH_TOKEN_REUSED",
                "For your safety this session was ended: its key was used twice. Please log in \
                 again.",
            ),
            RefreshError::Fault(fault) => return fault.into(),
        };
        ApiError::new(StatusCode::UNAUTHORIZED, code, sentence)
    }
}

impl From<VerifyTokenError> for ApiError {
    fn from(error: VerifyTokenError) -> ApiError {
        match error {
            VerifyTokenError::Invalid => {
                ApiError::unauthorized("INVALID_TOKEN", "The token is not valid.")
            }
            VerifyTokenError::Fault(fault) => fault.into(),
        }
    }
}

impl From<UserError> for ApiError {
    fn from(error: UserError) -> ApiError {
        match error {
            UserError::NotFound => user_not_found(),
            UserError::Fault(fault) => fault.into(),
        }
    }
}

impl From<ConfirmedError> for ApiError {
    /// A wrong password is 403 here: the client is logged in, and a 401 would make it refresh.
    fn from(error: ConfirmedError) -> ApiError {
        match error {
            ConfirmedError::NotFound => user_not_found(),
            ConfirmedError::WrongPassword => {
                ApiError::forbidden("WRONG_PASSWORD", "The password is wrong.")
            }
            ConfirmedError::PasswordRequired => {
                ApiError::bad_request("PASSWORD_REQUIRED", "Please give your present password.")
            }
            ConfirmedError::RecentLoginRequired => ApiError::forbidden(
                "RECENT_LOGIN_REQUIRED",
                "Please log in once more, and do this within ten minutes.",
            ),
            ConfirmedError::InvalidPassword(invalid) => invalid.into(),
            ConfirmedError::LastAdmin => last_admin(),
            ConfirmedError::Fault(fault) => fault.into(),
        }
    }
}

impl From<InviteError> for ApiError {
    fn from(error: InviteError) -> ApiError {
        match error {
            InviteError::Invalid => ApiError::forbidden(
                "ADMIN_INVITE_INVALID",
                "This invitation was used already or is too old.",
            ),
            InviteError::EmailTaken => registration_failed(),
            InviteError::Fault(fault) => fault.into(),
        }
    }
}

impl From<ChangeRoleError> for ApiError {
    fn from(error: ChangeRoleError) -> ApiError {
        match error {
            ChangeRoleError::NotFound => user_not_found(),
            ChangeRoleError::LastAdmin => last_admin(),
            ChangeRoleError::Fault(fault) => fault.into(),
        }
    }
}
