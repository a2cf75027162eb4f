//! What other services and the gateways ask.

use axum::extract::State;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Internal, Json, Path, Query};

use utoipa_axum::router::OpenApiRouter;

use crate::accounts::store::USERS_AT_ONCE_MAX;
use crate::{AuthService, RevokedAccessToken, UserAccount, UserId};

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .route("/internal/auth/users/{id}", get(get_user))
        .route("/internal/auth/users/batch", post(get_users))
        .route("/internal/auth/revoked-tokens", get(list_revoked_tokens))
}

#[derive(Serialize)]
struct UserView {
    id: Uuid,
    email: String,
    name: String,
    role: &'static str,
    language: &'static str,
}

impl From<UserAccount> for UserView {
    fn from(user: UserAccount) -> UserView {
        UserView {
            id: user.id.0,
            email: user.person.email.as_str().to_owned(),
            name: user.person.name.as_str().to_owned(),
            role: user.role.name(),
            language: user.language.code(),
        }
    }
}

#[derive(Serialize)]
pub struct UserDetailView {
    user: UserView,
}

pub async fn get_user(
    State(auth): State<AuthService>,
    _caller: Internal,
    Path(id): Path<Uuid>,
) -> Result<Json<UserDetailView>, ApiError> {
    let user = auth.get_user(UserId(id)).await?;
    Ok(Json(UserDetailView { user: user.into() }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetUsersBody {
    user_ids: Vec<Uuid>,
}

#[derive(Serialize)]
pub struct UserListView {
    users: Vec<UserView>,
}

/// Ids that nobody has are left out.
pub async fn get_users(
    State(auth): State<AuthService>,
    _caller: Internal,
    Json(body): Json<GetUsersBody>,
) -> Result<Json<UserListView>, ApiError> {
    if !(1..=USERS_AT_ONCE_MAX).contains(&body.user_ids.len()) {
        let sentence = format!("1 to {USERS_AT_ONCE_MAX} ids are taken at once.");
        return Err(ApiError::bad_request("INVALID_USER_IDS", sentence));
    }
    let users = auth.get_users(body.user_ids.into_iter().map(UserId).collect()).await?;
    Ok(Json(UserListView { users: users.into_iter().map(UserView::from).collect() }))
}

#[derive(Deserialize)]
pub struct RevokedTokensQuery {
    #[serde(default)]
    after: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RevokedTokenView {
    seq: i64,
    jti: Uuid,
    expires_at: Timestamp,
}

#[derive(Serialize)]
pub struct RevokedTokensView {
    tokens: Vec<RevokedTokenView>,
    /// What to ask after next. When no tokens come, the caller has them all.
    next: i64,
}

pub async fn list_revoked_tokens(
    State(auth): State<AuthService>,
    _caller: Internal,
    Query(query): Query<RevokedTokensQuery>,
) -> Result<Json<RevokedTokensView>, ApiError> {
    let revoked = auth.list_revoked_tokens(query.after).await?;
    let next = revoked.last().map_or(query.after, |token| token.seq);
    let tokens = revoked.into_iter().map(|token| {
        let RevokedAccessToken { seq, jti, expires_at } = token;
        RevokedTokenView { seq, jti, expires_at }
    });
    Ok(Json(RevokedTokensView { tokens: tokens.collect(), next }))
}
