//! The accounts of others over HTTP, for administrators.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, Errors, Identity, Json, Page, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::accounts::{AccountMeasure, AccountMeasureError, ActionReason};
use super::http::{AccountDetailView, AccountView};
use crate::sessions::own_http::{LiveSessionView, LoginEntryView};
use crate::{AuthService, UserId};

/// How many logins an account shows, the newest.
const LOGINS_SHOWN: i64 = 20;

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .routes(routes!(get_account))
        .routes(routes!(suspend_account))
        .routes(routes!(reopen_account))
        .routes(routes!(end_account_sessions))
        .routes(routes!(release_address))
}

/// An account with its sessions and its last logins.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InspectedAccountView {
    user: AccountView,
    /// Whether the user has proved that the address is theirs.
    email_verified: bool,
    sessions: Vec<LiveSessionView>,
    /// The last twenty, newest first.
    logins: Vec<LoginEntryView>,
}

/// Returns an account with its sessions and last logins.
///
/// For administrators. Errors: 404 `USER_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/auth/admin/users/{id}", tag = "auth", params(("id" = Uuid, Path)),
    responses((status = 200, body = InspectedAccountView), Errors<401, 403, 404>),
)]
pub async fn get_account(
    State(auth): State<AuthService>,
    _admin: Admin,
    Path(id): Path<Uuid>,
) -> Result<Json<InspectedAccountView>, ApiError> {
    let user = auth.get_user(UserId(id)).await?;
    let sessions = auth.list_sessions(user.id).await?.into_iter();
    let (logins, _) = auth.list_logins(user.id, Page::new(1, LOGINS_SHOWN)).await?;
    Ok(Json(InspectedAccountView {
        email_verified: user.email_verified,
        user: user.into(),
        sessions: sessions.map(|session| LiveSessionView::new(session, None)).collect(),
        logins: logins.into_iter().map(LoginEntryView::from).collect(),
    }))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountMeasureBody {
    /// Why, for the admin log.
    #[schema(min_length = 1, max_length = 200, example = "resells tickets")]
    reason: String,
}

async fn apply(
    auth: &AuthService,
    admin: &Identity,
    id: Uuid,
    measure: AccountMeasure,
    body: AccountMeasureBody,
) -> Result<Json<AccountDetailView>, ApiError> {
    let reason = ActionReason::parse(&body.reason)
        .map_err(|unfit| ApiError::bad_request("INVALID_REASON", format!("The reason {unfit}.")))?;
    let admin_id = Some(UserId(admin.user_id));
    let user = auth.apply_measure(UserId(id), measure, admin_id, &reason).await?;
    Ok(Json(AccountDetailView { user: user.into() }))
}

/// Suspends an account.
///
/// For administrators. All sessions end, and nobody can log in or reset the password until the
/// account is reopened; reservations stay. Errors: 400 `INVALID_REASON`; 404 `USER_NOT_FOUND`; 409
/// `ALREADY_SUSPENDED`, `LAST_ADMIN`.
#[utoipa::path(
    post, path = "/api/auth/admin/users/{id}/suspend", tag = "auth", params(("id" = Uuid, Path)),
    request_body = AccountMeasureBody,
    responses((status = 200, body = AccountDetailView), Errors<401, 403, 404, 409>),
)]
pub async fn suspend_account(
    State(auth): State<AuthService>,
    Admin(admin): Admin,
    Path(id): Path<Uuid>,
    Json(body): Json<AccountMeasureBody>,
) -> Result<Json<AccountDetailView>, ApiError> {
    apply(&auth, &admin, id, AccountMeasure::Suspend, body).await
}

/// Reopens a suspended account.
///
/// For administrators. Errors: 400 `INVALID_REASON`; 404 `USER_NOT_FOUND`; 409 `NOT_SUSPENDED`.
#[utoipa::path(
    post, path = "/api/auth/admin/users/{id}/reopen", tag = "auth", params(("id" = Uuid, Path)),
    request_body = AccountMeasureBody,
    responses((status = 200, body = AccountDetailView), Errors<401, 403, 404, 409>),
)]
pub async fn reopen_account(
    State(auth): State<AuthService>,
    Admin(admin): Admin,
    Path(id): Path<Uuid>,
    Json(body): Json<AccountMeasureBody>,
) -> Result<Json<AccountDetailView>, ApiError> {
    apply(&auth, &admin, id, AccountMeasure::Reopen, body).await
}

/// Ends all sessions of an account.
///
/// For administrators. The user can log in again. Errors: 400 `INVALID_REASON`; 404
/// `USER_NOT_FOUND`.
#[utoipa::path(
    post, path = "/api/auth/admin/users/{id}/end-sessions", tag = "auth",
    params(("id" = Uuid, Path)), request_body = AccountMeasureBody,
    responses((status = 200, body = AccountDetailView), Errors<401, 403, 404>),
)]
pub async fn end_account_sessions(
    State(auth): State<AuthService>,
    Admin(admin): Admin,
    Path(id): Path<Uuid>,
    Json(body): Json<AccountMeasureBody>,
) -> Result<Json<AccountDetailView>, ApiError> {
    apply(&auth, &admin, id, AccountMeasure::EndSessions, body).await
}

/// Releases the e-mail address of an account, so that its owner can register it.
///
/// For administrators, when somebody registered an address that is not theirs and bought with it.
/// The account keeps what it has under an address that nobody can use; its sessions end. Errors: 400
/// `INVALID_REASON`; 404 `USER_NOT_FOUND`; 409 `ADDRESS_OF_ADMIN`.
#[utoipa::path(
    post, path = "/api/auth/admin/users/{id}/release-address", tag = "auth",
    params(("id" = Uuid, Path)), request_body = AccountMeasureBody,
    responses((status = 200, body = AccountDetailView), Errors<401, 403, 404, 409>),
)]
pub async fn release_address(
    State(auth): State<AuthService>,
    Admin(admin): Admin,
    Path(id): Path<Uuid>,
    Json(body): Json<AccountMeasureBody>,
) -> Result<Json<AccountDetailView>, ApiError> {
    apply(&auth, &admin, id, AccountMeasure::ReleaseAddress, body).await
}

impl From<AccountMeasureError> for ApiError {
    fn from(error: AccountMeasureError) -> ApiError {
        let sentence = error.to_string();
        match error {
            AccountMeasureError::NotFound => ApiError::not_found("USER_NOT_FOUND", sentence),
            AccountMeasureError::LastAdmin => ApiError::conflict("LAST_ADMIN", sentence),
            AccountMeasureError::AlreadySuspended => {
                ApiError::conflict("ALREADY_SUSPENDED", sentence)
            }
            AccountMeasureError::NotSuspended => ApiError::conflict("NOT_SUSPENDED", sentence),
            AccountMeasureError::AddressOfAdmin => ApiError::conflict("ADDRESS_OF_ADMIN", sentence),
            AccountMeasureError::Internal(error) => error.into(),
        }
    }
}
