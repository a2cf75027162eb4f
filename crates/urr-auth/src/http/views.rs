//! What several answers have in common.

use axum::http::HeaderMap;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Json;
use utoipa::ToSchema;

use super::cookies;
use crate::{Auth, Session, User};

/// Who a session belongs to. `id` and `userId` are the same; clients of both kinds exist.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUserView {
    id: Uuid,
    user_id: Uuid,
    email: String,
    name: String,
    #[schema(example = "user")]
    role: &'static str,
}

impl From<&User> for SessionUserView {
    fn from(user: &User) -> SessionUserView {
        SessionUserView {
            id: user.id.0,
            user_id: user.id.0,
            email: user.person.email.as_str().to_owned(),
            name: user.person.name.as_str().to_owned(),
            role: user.role.name(),
        }
    }
}

/// A session. Browsers need only the cookies; others keep the tokens.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    message: &'static str,
    token: String,
    refresh_token: String,
    user: SessionUserView,
}

/// A session as an answer, with its cookies.
pub fn session_answer(
    auth: &Auth,
    request: &HeaderMap,
    message: &'static str,
    session: Session,
) -> (HeaderMap, Json<SessionView>) {
    let cookies = cookies::give(&auth.settings, request, &session);
    let user = SessionUserView::from(&session.user);
    let Session { access_token: token, refresh_token, .. } = session;
    (cookies, Json(SessionView { message, token, refresh_token, user }))
}

#[derive(Serialize, ToSchema)]
pub struct MessageView {
    pub message: &'static str,
}

/// An account as its owner sees it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileView {
    id: Uuid,
    user_id: Uuid,
    email: String,
    name: String,
    phone: Option<String>,
    #[schema(example = "user")]
    role: &'static str,
    /// Whether a provider has told who this is.
    identity_verified: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl ProfileView {
    pub fn new(user: &User, identity_verified: bool) -> ProfileView {
        ProfileView {
            id: user.id.0,
            user_id: user.id.0,
            email: user.person.email.as_str().to_owned(),
            name: user.person.name.as_str().to_owned(),
            phone: user.person.phone.as_ref().map(|phone| phone.as_str().to_owned()),
            role: user.role.name(),
            identity_verified,
            created_at: user.created_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ProfileDetailView {
    pub user: ProfileView,
}
