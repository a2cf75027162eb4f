//! Sessions over HTTP: login, refresh, logout.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use urr_kernel::Secret;
use urr_service::{ApiError, Errors, Json, MaybeUser, RawBody};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::cookies;
use crate::accounts::views::{MessageView, SessionUserView, SessionView, session_answer};
use crate::bot_check::http::{bot_attempt, check_bot};
use crate::sessions::client_info::ClientInfo;
use crate::{AuthService, BotCheckPurpose, Credentials, Email, LoginError, LogoutRequest, UserId};

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(refresh))
        .routes(routes!(logout))
        .routes(routes!(verify_token))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoginBody {
    #[schema(example = "mina@example.com")]
    email: String,
    password: String,
}

/// Logs in with e-mail address and password.
///
/// The response also sets both cookies. A user has up to 20 sessions; the next login ends the
/// oldest. After three failures for an address within 15 minutes a proof of work is required in
/// `x-proof-of-work`.
///
/// Errors: 401 `INVALID_CREDENTIALS`, whatever was wrong; 403 `PROOF_REQUIRED` with a new
/// challenge, `ACCOUNT_SUSPENDED` if the password is right; 503 `LOGIN_BUSY`.
#[utoipa::path(
    post, path = "/api/auth/login", tag = "auth", request_body = LoginBody,
    responses((status = 200, body = SessionView), Errors<401, 403>),
)]
pub async fn login(
    State(auth): State<AuthService>,
    client: ClientInfo,
    headers: HeaderMap,
    Json(body): Json<LoginBody>,
) -> Result<impl IntoResponse, ApiError> {
    // A text that is no address cannot have an account, so no password needs to be compared.
    let email = Email::parse(&body.email).map_err(|_| LoginError::InvalidCredentials)?;
    check_bot(&auth, bot_attempt(BotCheckPurpose::Login, &email, &headers, &client)).await?;
    let credentials = Credentials { email: email.clone(), password: Secret::new(body.password) };
    let session = auth.login(credentials, client).await;
    if session == Err(LoginError::InvalidCredentials) {
        auth.note_failed_login(&email).await?;
    }
    Ok(session_answer(&auth, &headers, "Login successful", session?))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RefreshBody {
    /// Needed only without the cookie, which takes precedence.
    refresh_token: Option<String>,
}

/// Exchanges a refresh token for new tokens.
///
/// The token comes from the cookie, or without one from the body. It can be used once; repeating
/// the request within 30 s returns the same new tokens, so that several tabs can refresh at once.
/// Later use ends the session.
///
/// Errors: 401 `REFRESH_TOKEN_REQUIRED`, `REFRESH_TOKEN_INVALID`, `REFRESH_TOKEN_EXPIRED` (unused
/// for seven days), `REFRESH_TOKEN_REVOKED`, `REFRESH_TOKEN_REUSED`.
#[utoipa::path(
    post, path = "/api/auth/refresh", tag = "auth", request_body = Option<RefreshBody>,
    responses((status = 200, body = SessionView), Errors<400>, Errors<401>),
)]
pub async fn refresh(
    State(auth): State<AuthService>,
    client: ClientInfo,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<impl IntoResponse, ApiError> {
    let token = match cookies::refresh_token(&headers) {
        Some(token) => Some(token.to_owned()),
        None => read_refresh_body(&body)?.refresh_token.filter(|token| !token.is_empty()),
    };
    let token = token
        .ok_or_else(|| ApiError::unauthorized("REFRESH_TOKEN_REQUIRED", "Please log in first."))?;
    let session = auth.refresh(&token, client).await?;
    Ok(session_answer(&auth, &headers, "Token refreshed", session))
}

/// The body is optional: a browser with the cookie sends none.
fn read_refresh_body(body: &[u8]) -> Result<RefreshBody, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(RefreshBody::default());
    }
    Json::read(body).map(|Json(body)| body)
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LogoutBody {
    /// Needed only without the cookie, which takes precedence.
    refresh_token: Option<String>,
    /// Ends the sessions on all devices.
    all: bool,
}

/// Ends the session.
///
/// `all` ends the sessions on all devices; `refreshToken` is for clients without cookies. The
/// access token stops working at once on this gateway and within a second on others. It never fails
/// because of what was sent, and clears the cookies.
#[utoipa::path(
    post, path = "/api/auth/logout", tag = "auth", request_body = Option<LogoutBody>,
    responses((status = 200, body = MessageView), Errors<503>),
)]
pub async fn logout(
    State(auth): State<AuthService>,
    MaybeUser(identity): MaybeUser,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<impl IntoResponse, ApiError> {
    let body: LogoutBody = serde_json::from_slice(&body).unwrap_or_default();
    let in_cookie = cookies::refresh_token(&headers).map(str::to_owned);
    let logout = LogoutRequest {
        refresh_token: in_cookie.or(body.refresh_token),
        access_token: cookies::access_token(&headers).map(str::to_owned),
        user_id: identity.map(|identity| UserId(identity.user_id)),
        all_devices: body.all,
    };
    // A storage error is returned: the session is still alive, and the client must know.
    auth.logout(logout).await?;
    let cookies = cookies::clear_session_cookies(&auth.0.settings, &headers);
    Ok((cookies, Json(MessageView { message: "Logged out successfully" })))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifyTokenBody {
    token: String,
}

#[derive(Serialize, ToSchema)]
pub struct VerifiedTokenView {
    valid: bool,
    user: SessionUserView,
}

/// Tells whose access token this is.
///
/// Public: holding the token is enough. Errors: 401 `INVALID_TOKEN` if it is not valid, has expired
/// or was revoked.
#[utoipa::path(
    post, path = "/api/auth/verify-token", tag = "auth", request_body = VerifyTokenBody,
    responses((status = 200, body = VerifiedTokenView), Errors<400>, Errors<401>),
)]
pub async fn verify_token(
    State(auth): State<AuthService>,
    Json(body): Json<VerifyTokenBody>,
) -> Result<Json<VerifiedTokenView>, ApiError> {
    let user = auth.verify_token(&body.token).await?;
    Ok(Json(VerifiedTokenView { valid: true, user: (&user).into() }))
}
