//! What several answers have in common.

use axum::http::HeaderMap;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Json;
use utoipa::ToSchema;

use crate::sessions::cookies;
use crate::terms::http::{TermsView, terms_views};
use crate::{AuthService, Profile, Session, TermsVersions, UserAccount};

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

impl From<&UserAccount> for SessionUserView {
    fn from(user: &UserAccount) -> SessionUserView {
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
    auth: &AuthService,
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
struct ProfileView {
    id: Uuid,
    user_id: Uuid,
    email: String,
    name: String,
    phone: Option<String>,
    #[schema(example = "user")]
    role: &'static str,
    /// In which mails are written: `ko` or `en`.
    #[schema(example = "ko")]
    language: &'static str,
    /// `false`: one gets in by another service only.
    has_password: bool,
    /// Whether a provider has told who this is.
    identity_verified: bool,
    /// What must be agreed to anew, because another version is in force.
    terms_outstanding: Vec<TermsView>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
pub struct ProfileDetailView {
    user: ProfileView,
}

impl ProfileDetailView {
    pub fn new(profile: &Profile, in_force: &TermsVersions) -> ProfileDetailView {
        let Profile { user, has_password, identity_verified, terms_outstanding } = profile;
        let user = ProfileView {
            id: user.id.0,
            user_id: user.id.0,
            email: user.person.email.as_str().to_owned(),
            name: user.person.name.as_str().to_owned(),
            phone: user.person.phone.as_ref().map(|phone| phone.as_str().to_owned()),
            role: user.role.name(),
            language: user.language.code(),
            has_password: *has_password,
            identity_verified: *identity_verified,
            terms_outstanding: terms_views(terms_outstanding, in_force),
            created_at: user.created_at,
        };
        ProfileDetailView { user }
    }
}
