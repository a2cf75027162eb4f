//! A user's own sessions and logins over HTTP.

use axum::extract::State;
use axum::http::HeaderMap;
use serde::Serialize;
use urr_kernel::{Secret, Timestamp, Uuid};
use urr_service::{ApiError, Errors, Json, Page, Paged, Pagination, Path, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::cookies;
use super::device::device_name;
use super::login_history::LoginEntry;
use super::own::{EndSessionError, LiveSession};
use crate::accounts::views::MessageView;
use crate::{AuthService, UserId};

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .routes(routes!(list_my_sessions))
        .routes(routes!(end_my_session))
        .routes(routes!(list_my_logins))
}

/// A session that is not over.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveSessionView {
    id: Uuid,
    /// Whether this request belongs to it.
    is_current: bool,
    /// Browser and system of the login.
    #[schema(example = "Chrome · Windows")]
    device: Option<String>,
    /// The network address of the login.
    #[schema(example = "203.0.113.7")]
    address: Option<String>,
    /// How the user logged in: `password`, `registration`, `google` and so on.
    #[schema(example = "password")]
    method: Option<String>,
    login_at: Option<Timestamp>,
    /// When it was last refreshed.
    last_used_at: Timestamp,
    expires_at: Timestamp,
}

impl LiveSessionView {
    pub fn new(session: LiveSession, current: Option<Uuid>) -> LiveSessionView {
        LiveSessionView {
            id: session.id,
            is_current: current == Some(session.id),
            device: session.user_agent.as_deref().and_then(device_name),
            address: session.address.filter(|address| !address.is_empty()),
            method: session.method,
            login_at: session.login_at,
            last_used_at: session.last_used_at,
            expires_at: session.expires_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct LiveSessionListView {
    sessions: Vec<LiveSessionView>,
}

/// A login, or an attempt that failed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginEntryView {
    /// How the user logged in: `password`, `registration`, `google` and so on.
    #[schema(example = "password")]
    method: String,
    success: bool,
    /// `wrong_password`, `suspended` or `token_reuse`.
    #[schema(example = "wrong_password")]
    failure: Option<String>,
    /// Browser and system.
    #[schema(example = "Chrome · Windows")]
    device: Option<String>,
    #[schema(example = "203.0.113.7")]
    address: Option<String>,
    happened_at: Timestamp,
}

impl From<LoginEntry> for LoginEntryView {
    fn from(entry: LoginEntry) -> LoginEntryView {
        LoginEntryView {
            method: entry.method,
            success: entry.failure.is_none(),
            failure: entry.failure,
            device: device_name(&entry.user_agent),
            address: Some(entry.address).filter(|address| !address.is_empty()),
            happened_at: entry.happened_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct LoginEntryListView {
    logins: Vec<LoginEntryView>,
    pagination: Pagination,
}

/// Lists the user's sessions, most recently used first.
///
/// Device and address are those of the login that began the session.
#[utoipa::path(
    get, path = "/api/auth/me/sessions", tag = "auth",
    responses((status = 200, body = LiveSessionListView), Errors<401>),
)]
pub async fn list_my_sessions(
    State(auth): State<AuthService>,
    User(identity): User,
    headers: HeaderMap,
) -> Result<Json<LiveSessionListView>, ApiError> {
    let token = cookies::access_token(&headers).map(Secret::new);
    let current = auth.session_of(token.as_ref());
    let sessions = auth.list_sessions(UserId(identity.user_id)).await?;
    let views = sessions.into_iter().map(|session| LiveSessionView::new(session, current));
    Ok(Json(LiveSessionListView { sessions: views.collect() }))
}

/// Ends one of the user's sessions.
///
/// Its access token stops working within a second. Errors: 404 `SESSION_NOT_FOUND`.
#[utoipa::path(
    delete, path = "/api/auth/me/sessions/{id}", tag = "auth", params(("id" = Uuid, Path)),
    responses((status = 200, body = MessageView), Errors<401, 404>),
)]
pub async fn end_my_session(
    State(auth): State<AuthService>,
    User(identity): User,
    Path(id): Path<Uuid>,
) -> Result<Json<MessageView>, ApiError> {
    auth.end_session(UserId(identity.user_id), id).await?;
    Ok(Json(MessageView { message: "Session ended" }))
}

/// Lists the user's logins and failed attempts, newest first.
///
/// They are kept for a year.
#[utoipa::path(
    get, path = "/api/auth/me/logins", tag = "auth", params(Page),
    responses((status = 200, body = LoginEntryListView), Errors<401>),
)]
pub async fn list_my_logins(
    State(auth): State<AuthService>,
    User(identity): User,
    page: Page,
) -> Result<Json<LoginEntryListView>, ApiError> {
    let (entries, total) = auth.list_logins(UserId(identity.user_id), page).await?;
    let views = entries.into_iter().map(LoginEntryView::from).collect();
    let Paged { items: logins, pagination } = Paged::new(views, total, page);
    Ok(Json(LoginEntryListView { logins, pagination }))
}

impl From<EndSessionError> for ApiError {
    fn from(error: EndSessionError) -> ApiError {
        let sentence = error.to_string();
        match error {
            EndSessionError::NotFound => ApiError::not_found("SESSION_NOT_FOUND", sentence),
            EndSessionError::Internal(error) => error.into(),
        }
    }
}
