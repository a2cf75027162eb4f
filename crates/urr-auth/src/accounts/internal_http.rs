//! The internal calls for users and revoked tokens.

use axum::extract::State;
use axum::routing::{get, post};
use urr_contracts::internal::auth::{
    AccountLanguage, AccountRole, AccountSummary, GET_USER, GetUserAnswer, LIST_REVOKED_TOKENS,
    LIST_USERS, ListUsersAnswer, ListUsersBody, RevokedTokenPage, RevokedTokenQuery,
    USERS_PER_CALL_MAX,
};
use urr_kernel::Uuid;
use urr_service::{ApiError, Json, Path, Query, UserRole, internal_routes};
use utoipa_axum::router::OpenApiRouter;

use crate::{AuthService, Language, UserAccount, UserId};

pub fn routes() -> OpenApiRouter<AuthService> {
    let users = OpenApiRouter::new()
        .route(GET_USER.path, get(get_user))
        .route(LIST_USERS.path, post(list_users));
    let tokens = OpenApiRouter::new().route(LIST_REVOKED_TOKENS.path, get(list_revoked_tokens));
    internal_routes(GET_USER.callers, users)
        .merge(internal_routes(LIST_REVOKED_TOKENS.callers, tokens))
}

impl From<UserAccount> for AccountSummary {
    fn from(user: UserAccount) -> AccountSummary {
        AccountSummary {
            id: user.id.0,
            email: user.person.email.as_str().to_owned(),
            name: user.person.name.as_str().to_owned(),
            role: match user.role {
                UserRole::User => AccountRole::User,
                UserRole::Admin => AccountRole::Admin,
            },
            language: match user.language {
                Language::Korean => AccountLanguage::Korean,
                Language::English => AccountLanguage::English,
            },
        }
    }
}

async fn get_user(
    State(auth): State<AuthService>,
    Path(id): Path<Uuid>,
) -> Result<Json<GetUserAnswer>, ApiError> {
    Ok(Json(GetUserAnswer { user: auth.get_user(UserId(id)).await?.into() }))
}

/// Leaves out ids without an account.
async fn list_users(
    State(auth): State<AuthService>,
    Json(body): Json<ListUsersBody>,
) -> Result<Json<ListUsersAnswer>, ApiError> {
    if !(1..=USERS_PER_CALL_MAX).contains(&body.user_ids.len()) {
        let sentence = format!("A request has 1 to {USERS_PER_CALL_MAX} ids.");
        return Err(ApiError::bad_request("INVALID_USER_IDS", sentence));
    }
    let users = auth.get_users(body.user_ids.into_iter().map(UserId).collect()).await?;
    Ok(Json(ListUsersAnswer { users: users.into_iter().map(AccountSummary::from).collect() }))
}

async fn list_revoked_tokens(
    State(auth): State<AuthService>,
    Query(query): Query<RevokedTokenQuery>,
) -> Result<Json<RevokedTokenPage>, ApiError> {
    let tokens = auth.list_revoked_tokens(query.after).await?;
    let next = tokens.last().map_or(query.after, |token| token.seq);
    Ok(Json(RevokedTokenPage { tokens, next }))
}
