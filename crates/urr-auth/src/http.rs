//! The routes of the auth service, and its error answers.

use axum::http::HeaderMap;
use urr_kernel::Secret;
use urr_service::ApiError;
use urr_service::admin_log::{self, AdminLogRoute};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::sessions::cookies;
use crate::{
    AuthService, ChangeRoleError, ClientInfo, InvalidEmail, InvalidName, InvalidPassword,
    InvalidPhone, InviteError, LoginError, Reauthentication, ReauthenticationError, RefreshError,
    RegisterError, UserError, VerifyTokenError, accounts, administrators, bot_check,
    identity_check, links, own_data, sessions, social, terms,
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
        .merge(sessions::own_http::routes())
        .merge(links::http::routes())
        .merge(social::http::routes())
        .merge(administrators::http::routes())
        .merge(administrators::accounts_http::routes())
        .merge(admin_log::routes(ADMIN_LOG))
        .routes(routes!(own_data::http::export_me))
        .routes(routes!(terms::http::list_terms, terms::http::answer_terms))
        .routes(routes!(terms::http::get_terms))
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
        client: ClientInfo::read(headers),
    }
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
    InvalidPassword => "INVALID_PASSWORD";
}

impl From<RegisterError> for ApiError {
    /// The same sentence for every reason: the answer must not tell who has an account.
    fn from(error: RegisterError) -> ApiError {
        let sentence = error.to_string();
        match error {
            RegisterError::EmailTaken => ApiError::conflict("REGISTRATION_FAILED", sentence),
            RegisterError::Internal(error) => error.into(),
        }
    }
}

impl From<LoginError> for ApiError {
    fn from(error: LoginError) -> ApiError {
        let sentence = error.to_string();
        match error {
            LoginError::InvalidCredentials => {
                ApiError::unauthorized("INVALID_CREDENTIALS", sentence)
            }
            LoginError::Suspended => ApiError::forbidden("ACCOUNT_SUSPENDED", sentence),
            LoginError::Internal(error) => error.into(),
        }
    }
}

impl From<RefreshError> for ApiError {
    fn from(error: RefreshError) -> ApiError {
        let sentence = error.to_string();
        let code = match error {
            RefreshError::Invalid => "REFRESH_TOKEN_INVALID",
            RefreshError::Expired => "REFRESH_TOKEN_EXPIRED",
            RefreshError::Revoked => "REFRESH_TOKEN_REVOKED",
            RefreshError::Reused => "REFRESH_TOKEN_REUSED",
            RefreshError::Internal(error) => return error.into(),
        };
        ApiError::unauthorized(code, sentence)
    }
}

impl From<VerifyTokenError> for ApiError {
    fn from(error: VerifyTokenError) -> ApiError {
        let sentence = error.to_string();
        match error {
            VerifyTokenError::Invalid => ApiError::unauthorized("INVALID_TOKEN", sentence),
            VerifyTokenError::Internal(error) => error.into(),
        }
    }
}

impl From<UserError> for ApiError {
    fn from(error: UserError) -> ApiError {
        let sentence = error.to_string();
        match error {
            UserError::NotFound => ApiError::not_found("USER_NOT_FOUND", sentence),
            UserError::Internal(error) => error.into(),
        }
    }
}

impl From<ReauthenticationError> for ApiError {
    /// A wrong password is 403 here: the client is logged in, and a 401 would make it refresh.
    fn from(error: ReauthenticationError) -> ApiError {
        let sentence = error.to_string();
        match error {
            ReauthenticationError::NotFound => ApiError::not_found("USER_NOT_FOUND", sentence),
            ReauthenticationError::WrongPassword => ApiError::forbidden("WRONG_PASSWORD", sentence),
            ReauthenticationError::TooManyFailures => {
                let code = "TOO_MANY_PASSWORD_FAILURES";
                ApiError::too_many(code, sentence, bot_check::FAILURES_WINDOW)
            }
            ReauthenticationError::PasswordRequired => {
                ApiError::bad_request("PASSWORD_REQUIRED", sentence)
            }
            ReauthenticationError::RecentLoginRequired => {
                ApiError::forbidden("RECENT_LOGIN_REQUIRED", sentence)
            }
            ReauthenticationError::InvalidPassword(invalid) => invalid.into(),
            ReauthenticationError::LastAdmin => ApiError::conflict("LAST_ADMIN", sentence),
            ReauthenticationError::Internal(error) => error.into(),
        }
    }
}

impl From<InviteError> for ApiError {
    fn from(error: InviteError) -> ApiError {
        let sentence = error.to_string();
        match error {
            InviteError::Invalid => ApiError::forbidden("ADMIN_INVITE_INVALID", sentence),
            InviteError::EmailTaken => ApiError::conflict("REGISTRATION_FAILED", sentence),
            InviteError::Internal(error) => error.into(),
        }
    }
}

impl From<ChangeRoleError> for ApiError {
    fn from(error: ChangeRoleError) -> ApiError {
        let sentence = error.to_string();
        match error {
            ChangeRoleError::NotFound => ApiError::not_found("USER_NOT_FOUND", sentence),
            ChangeRoleError::LastAdmin => ApiError::conflict("LAST_ADMIN", sentence),
            ChangeRoleError::Internal(error) => error.into(),
        }
    }
}
