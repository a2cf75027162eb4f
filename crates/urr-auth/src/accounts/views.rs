//! Views of sessions and accounts.

use axum::http::HeaderMap;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Json;
use utoipa::ToSchema;

use crate::sessions::cookies;
use crate::terms::http::{TermsView, terms_views};
use crate::{AuthService, Profile, Session, TermsVersions, UserAccount};

/// The user of a session. `id` and `userId` are the same; there are clients of either.
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
            role: user.role.as_str(),
        }
    }
}

/// A session. Browsers need only the cookies; other clients keep the tokens.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    message: &'static str,
    token: String,
    /// How many seconds the token is valid.
    #[schema(example = 1_800)]
    expires_in: u64,
    refresh_token: String,
    user: SessionUserView,
}

/// The answer with a session and its cookies.
pub fn session_answer(
    auth: &AuthService,
    request: &HeaderMap,
    message: &'static str,
    session: Session,
) -> (HeaderMap, Json<SessionView>) {
    let cookies = cookies::session_cookies(&auth.0.settings, request, &session);
    let user = SessionUserView::from(&session.user);
    let Session { access_token: token, expires_in, refresh_token, .. } = session;
    let expires_in = expires_in.as_secs();
    (cookies, Json(SessionView { message, token, expires_in, refresh_token, user }))
}

#[derive(Serialize, ToSchema)]
pub struct MessageView {
    pub message: &'static str,
}

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
    /// The language of mails: `ko` or `en`.
    #[schema(example = "ko")]
    language: &'static str,
    /// Whether the user has proved that the address is theirs; others get no mail but links.
    email_verified: bool,
    /// `false` if the user logs in by a social provider only.
    has_password: bool,
    /// Whether a provider has verified the identity.
    identity_verified: bool,
    /// The terms to agree to, because another version is in force.
    terms_outstanding: Vec<TermsView>,
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
            role: user.role.as_str(),
            language: user.language.as_str(),
            email_verified: user.email_verified,
            has_password: *has_password,
            identity_verified: *identity_verified,
            terms_outstanding: terms_views(terms_outstanding, in_force),
            created_at: user.created_at,
        };
        ProfileDetailView { user }
    }
}
