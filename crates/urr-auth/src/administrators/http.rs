//! Administrators over HTTP: the first one's invitation, users and their roles.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{
    Admin, ApiError, Context, Errors, Json, Page, Paged, Pagination, Path, Query, Support, UserRole,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::accounts::AccountSearch;
use crate::accounts::views::{SessionView, session_answer};
use crate::sessions::client_info::ClientInfo;
use crate::{AuthService, Email, NewAdmin, Password, PersonName, RoleChange, UserAccount, UserId};

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .routes(routes!(redeem_admin_invite))
        .routes(routes!(list_users))
        .routes(routes!(change_role))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedeemAdminInviteBody {
    /// The token that was printed at the first start.
    token: String,
    #[schema(max_length = 254)]
    email: String,
    #[schema(min_length = 8, max_length = 128)]
    password: String,
    #[schema(max_length = 100)]
    name: String,
}

/// Creates the first administrator's account.
///
/// `token` is the one that `urr up` printed; it works once. Errors: 403 `ADMIN_INVITE_INVALID`
/// (used, older than a day, replaced by a later start, or there is an administrator); 400 and 409
/// as for registering.
#[utoipa::path(
    post, path = "/api/auth/admin-invite", tag = "auth", request_body = RedeemAdminInviteBody,
    responses((status = 201, body = SessionView), Errors<403, 409>),
)]
pub async fn redeem_admin_invite(
    State(auth): State<AuthService>,
    Context(context): Context,
    client: ClientInfo,
    headers: HeaderMap,
    Json(body): Json<RedeemAdminInviteBody>,
) -> Result<impl IntoResponse, ApiError> {
    let email = Email::parse(&body.email)?;
    let password = Password::parse(&body.password, &email)?;
    let admin = NewAdmin { email, name: PersonName::parse(&body.name)?, password };
    let session = auth.redeem_admin_invite(&body.token, admin, client, context).await?;
    let answer = session_answer(&auth, &headers, "Registration completed", session);
    Ok((StatusCode::CREATED, answer))
}

/// An account as administrators see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountView {
    id: Uuid,
    email: String,
    name: String,
    #[schema(example = "user")]
    role: &'static str,
    /// `active`, `dormant` (unused for a year) or `suspended`.
    #[schema(example = "active")]
    status: &'static str,
    created_at: Timestamp,
    last_login_at: Timestamp,
}

impl From<UserAccount> for AccountView {
    fn from(user: UserAccount) -> AccountView {
        AccountView {
            id: user.id.0,
            email: user.person.email.as_str().to_owned(),
            name: user.person.name.as_str().to_owned(),
            role: user.role.as_str(),
            status: user.status.as_str(),
            created_at: user.created_at,
            last_login_at: user.last_login_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct AccountListView {
    users: Vec<AccountView>,
    pagination: Pagination,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AccountFilter {
    /// A whole e-mail address, name or phone number, or an account's id. They are encrypted, so
    /// parts of them cannot be searched.
    #[param(example = "mina@example.com")]
    q: Option<String>,
}

/// Lists accounts, newest first.
///
/// For support and administrators. `q` is a whole e-mail address, a whole name, a phone number in any spelling, or an id; parts
/// cannot be searched because personal data are stored encrypted. `status` is `active`, `dormant`
/// (unused for a year) or `suspended`. Errors: 400 `INVALID_EMAIL`.
#[utoipa::path(
    get, path = "/api/auth/admin/users", tag = "auth", params(Page, AccountFilter),
    responses((status = 200, body = AccountListView), Errors<401, 403>),
)]
pub async fn list_users(
    State(auth): State<AuthService>,
    _support: Support,
    page: Page,
    Query(filter): Query<AccountFilter>,
) -> Result<Json<AccountListView>, ApiError> {
    let search = AccountSearch::parse(filter.q.as_deref().unwrap_or_default())?;
    let (users, total) = auth.search_accounts(search, page).await?;
    let users = users.into_iter().map(AccountView::from).collect();
    let Paged { items: users, pagination } = Paged::new(users, total, page);
    Ok(Json(AccountListView { users, pagination }))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeRoleBody {
    /// `user`, `staff`, `organiser`, `support` or `admin`.
    #[schema(example = "organiser")]
    role: String,
}

#[derive(Serialize, ToSchema)]
pub struct AccountDetailView {
    pub user: AccountView,
}

/// Changes a user's role.
///
/// For administrators. The user's access tokens stop working at once; their sessions go on with a
/// refresh, in the new role. `staff` check tickets in at events they are assigned to, an
/// `organiser` has events of their own, `support` reads and refunds up to a limit. Errors: 400
/// `INVALID_ROLE`; 404 `USER_NOT_FOUND`; 409 `LAST_ADMIN`.
#[utoipa::path(
    put, path = "/api/auth/admin/users/{id}/role", tag = "auth", params(("id" = Uuid, Path)),
    request_body = ChangeRoleBody,
    responses((status = 200, body = AccountDetailView), Errors<401, 403, 404, 409>),
)]
pub async fn change_role(
    State(auth): State<AuthService>,
    Admin(identity): Admin,
    Path(id): Path<Uuid>,
    Json(body): Json<ChangeRoleBody>,
) -> Result<Json<AccountDetailView>, ApiError> {
    let role: UserRole = body.role.parse().map_err(|_| {
        let sentence =
            format!("The role must be one of: {}.", UserRole::ALL.map(UserRole::as_str).join(", "));
        ApiError::bad_request("INVALID_ROLE", sentence)
    })?;
    let admin_id = Some(UserId(identity.user_id));
    let user = auth.change_role(RoleChange { user_id: UserId(id), role, admin_id }).await?;
    Ok(Json(AccountDetailView { user: user.into() }))
}
