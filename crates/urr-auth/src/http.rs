//! The routes of the auth service, and its error answers.

use axum::http::{HeaderMap, StatusCode};
use urr_kernel::Secret;
use urr_service::ApiError;
use urr_service::admin_log::{self, AdminLogRoute};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::sessions::cookies;
use crate::{
    AuthService, ChangeRoleError, InvalidEmail, InvalidLanguage, InvalidName, InvalidPassword,
    InvalidPhone, InviteError, LoginError, Reauthentication, ReauthenticationError, RefreshError,
    RegisterError, UserError, VerifyTokenError, accounts, administrators, bot_check,
    identity_check, sessions, social, terms,
};

const ADMIN_LOG: AdminLogRoute = AdminLogRoute {
    path: "/api/auth/admin/log",
    operation_id: "list_auth_admin_actions",
    tag: "admin",
};

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .merge(accounts::http::routes())
        .merge(sessions::http::routes())
        .merge(social::http::routes())
        .merge(administrators::http::routes())
        .merge(admin_log::routes(ADMIN_LOG))
        .routes(routes!(terms::http::list_terms, terms::http::answer_terms))
        .routes(routes!(bot_check::http::get_challenge))
        .routes(routes!(identity_check::http::start_verification))
        .routes(routes!(identity_check::http::complete_verification))
}

/// The proof that a request shows beside its session. The gateway always passes the access token
/// on as a cookie.
pub fn reauthentication(password: Option<String>, headers: &HeaderMap) -> Reauthentication {
    Reauthentication {
        password: password.map(Secret::new),
        access_token: cookies::access_token(headers).map(Secret::new),
    }
}

/// The same sentence for every reason: the answer must not tell who has an account.
pub fn registration_failed() -> ApiError {
    ApiError::conflict(
        "REGISTRATION_FAILED",
        "We could not register this address. Please log in if you have an account.",
    )
}

pub fn user_not_found() -> ApiError {
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
            RegisterError::Internal(error) => error.into(),
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
            LoginError::Internal(error) => error.into(),
        }
    }
}

impl From<RefreshError> for ApiError {
    fn from(error: RefreshError) -> ApiError {
        let (code, sentence) = match error {
            RefreshError::Invalid => ("REFRESH_TOKEN_INVALID", "Please log in again."),
            RefreshError::Expired => {
                ("REFRESH_TOKEN_EXPIRED", "Your session has expired. Please log in again.")
            }
            RefreshError::Revoked => {
                ("REFRESH_TOKEN_REVOKED", "You were logged out. Please log in again.")
            }
            RefreshError::Reused => (
                "REFRESH_TOKEN_REUSED",
                "For your safety this session was ended, because its token was used twice. Please log \
                 in again.",
            ),
            RefreshError::Internal(error) => return error.into(),
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
            VerifyTokenError::Internal(error) => error.into(),
        }
    }
}

impl From<UserError> for ApiError {
    fn from(error: UserError) -> ApiError {
        match error {
            UserError::NotFound => user_not_found(),
            UserError::Internal(error) => error.into(),
        }
    }
}

impl From<ReauthenticationError> for ApiError {
    /// A wrong password is 403 here: the client is logged in, and a 401 would make it refresh.
    fn from(error: ReauthenticationError) -> ApiError {
        match error {
            ReauthenticationError::NotFound => user_not_found(),
            ReauthenticationError::WrongPassword => {
                ApiError::forbidden("WRONG_PASSWORD", "The password is wrong.")
            }
            ReauthenticationError::PasswordRequired => {
                ApiError::bad_request("PASSWORD_REQUIRED", "Please give your present password.")
            }
            ReauthenticationError::RecentLoginRequired => ApiError::forbidden(
                "RECENT_LOGIN_REQUIRED",
                "Please log in once more, and do this within ten minutes.",
            ),
            ReauthenticationError::InvalidPassword(invalid) => invalid.into(),
            ReauthenticationError::LastAdmin => last_admin(),
            ReauthenticationError::Internal(error) => error.into(),
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
            InviteError::Internal(error) => error.into(),
        }
    }
}

impl From<ChangeRoleError> for ApiError {
    fn from(error: ChangeRoleError) -> ApiError {
        match error {
            ChangeRoleError::NotFound => user_not_found(),
            ChangeRoleError::LastAdmin => last_admin(),
            ChangeRoleError::Internal(error) => error.into(),
        }
    }
}
