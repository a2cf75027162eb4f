//! Social logins over HTTP.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use urr_kernel::Secret;
use urr_service::{ApiError, Context, Errors, Json, MaybeUser, Path, Query, User};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::accounts::views::{MessageView, SessionView, session_answer};
use crate::http::reauthentication;
use crate::sessions::client_info::ClientInfo;
use crate::sessions::cookies::{self, FlowCookie};
use crate::{
    AuthService, LinkedIdentity, LocalPath, SocialCallback, SocialError, SocialLogin,
    SocialProvider, SocialStart, StartLinkError, UnlinkError, UserId,
};

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .routes(routes!(list_social_providers))
        .routes(routes!(start_social))
        .routes(routes!(link_social))
        .routes(routes!(finish_social))
        .routes(routes!(start_google_button))
        .routes(routes!(login_by_google))
        .routes(routes!(list_identities))
        .routes(routes!(unlink_identity))
}

/// The page that shows why a login failed.
const LOGIN_PAGE: &str = "/login";

fn parse_provider(name: &str) -> Result<SocialProvider, ApiError> {
    Ok(name.parse().map_err(|_| SocialError::NotConfigured)?)
}

fn parse_redirect(redirect: Option<&str>) -> Result<LocalPath, ApiError> {
    let Some(redirect) = redirect.filter(|redirect| !redirect.is_empty()) else {
        return Ok(LocalPath::root());
    };
    LocalPath::parse(redirect).ok_or_else(|| {
        ApiError::bad_request("INVALID_REDIRECT", "The redirect must be a path of this site.")
    })
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SocialProvidersView {
    /// The providers that `GET /api/auth/social/{provider}/start` redirects to.
    #[schema(value_type = Vec<String>, example = json!(["google", "kakao"]))]
    providers: Vec<SocialProvider>,
    /// Whether Google's own button can be shown, by `POST /api/auth/google/nonce`.
    google_button: bool,
}

/// Lists the social providers that users can log in by.
///
/// Public. The list is empty if none is configured.
#[utoipa::path(
    get, path = "/api/auth/social", tag = "auth",
    responses((status = 200, body = SocialProvidersView)),
)]
pub async fn list_social_providers(State(auth): State<AuthService>) -> Json<SocialProvidersView> {
    let social = &auth.0.settings.social;
    let has_redirect = |provider: &SocialProvider| {
        let settings = social.provider(*provider);
        settings.is_some_and(|settings| settings.client_secret.is_some())
    };
    let providers = SocialProvider::ALL.into_iter().filter(has_redirect).collect();
    Json(SocialProvidersView { providers, google_button: social.google.is_some() })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StartSocialQuery {
    /// The path of this site to continue at. The default is `/`.
    #[param(max_length = 512, example = "/events")]
    redirect: Option<String>,
    /// `1` if the user agreed to the terms of service and privacy. New accounts need it.
    terms: Option<String>,
}

/// Redirects the browser to a provider to log in.
///
/// `provider` is `google`, `kakao` or `naver`. `redirect` is a path of this site to return to;
/// `terms=1` agrees to the required documents. Uses an authorization code with PKCE, `state` and
/// `nonce`, bound to the browser by a cookie for ten minutes. Errors: 404
/// `PROVIDER_NOT_CONFIGURED`.
#[utoipa::path(
    get, path = "/api/auth/social/{provider}/start", tag = "auth",
    params(("provider" = String, Path, example = "google"), StartSocialQuery),
    responses((status = 302), Errors<400>, Errors<404>),
)]
pub async fn start_social(
    State(auth): State<AuthService>,
    Path(provider): Path<String>,
    Query(query): Query<StartSocialQuery>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let provider = parse_provider(&provider)?;
    let redirect = parse_redirect(query.redirect.as_deref())?;
    let terms_agreed = query.terms.as_deref() == Some("1");
    let request = SocialStart { redirect, terms_agreed, link_user_id: None };
    let start = auth.start_social(provider, request).await?;
    let cookies = FlowCookie::Redirect.give(&auth.0.settings, &headers, &start.secret);
    Ok((StatusCode::FOUND, cookies, redirect_to(&start.url)))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LinkSocialBody {
    /// The path of this site to continue at. The default is `/`.
    #[schema(max_length = 512, example = "/my/profile")]
    redirect: Option<String>,
    /// Required if the login was not recent.
    password: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct SocialRedirectView {
    /// The address of the provider.
    url: String,
}

/// Starts linking a provider to the user's account.
///
/// Returns the `url` to visit. Needs a login at most ten minutes ago, or `password`. It is a
/// `POST`, so that a link on another site cannot start it. Errors: 403 `RECENT_LOGIN_REQUIRED`,
/// `WRONG_PASSWORD`; 404 `PROVIDER_NOT_CONFIGURED`.
#[utoipa::path(
    post, path = "/api/auth/social/{provider}/link", tag = "auth",
    request_body = LinkSocialBody,
    params(("provider" = String, Path, example = "google")),
    responses((status = 200, body = SocialRedirectView), Errors<401, 403, 404>),
)]
pub async fn link_social(
    State(auth): State<AuthService>,
    User(identity): User,
    Path(provider): Path<String>,
    headers: HeaderMap,
    Json(body): Json<LinkSocialBody>,
) -> Result<impl IntoResponse, ApiError> {
    let provider = parse_provider(&provider)?;
    let redirect = parse_redirect(body.redirect.as_deref())?;
    let reauthentication = reauthentication(body.password, &headers);
    let id = UserId(identity.user_id);
    let start = auth.start_link(provider, id, redirect, reauthentication).await?;
    let cookies = FlowCookie::Redirect.give(&auth.0.settings, &headers, &start.secret);
    Ok((cookies, Json(SocialRedirectView { url: start.url })))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FinishSocialQuery {
    #[serde(default)]
    state: String,
    /// Missing if the user did not agree.
    code: Option<String>,
}

/// Completes a social login and redirects to a page.
///
/// The provider sends the browser here. A failure redirects to `/login?error=CODE` with
/// `SOCIAL_STATE_INVALID`, `SOCIAL_CANCELLED`, `SOCIAL_LOGIN_REJECTED`, `EMAIL_REQUIRED`,
/// `TERMS_REQUIRED`, `EMAIL_IN_USE`, `ACCOUNT_SUSPENDED` or `PROVIDER_UNAVAILABLE`. An account is found by the
/// provider's id of the person; an e-mail address joins two accounts only if both sides have
/// verified it. An account whose address nobody verified and that never bought anything gives way
/// to who has verified the address at the provider.
#[utoipa::path(
    get, path = "/api/auth/social/{provider}/callback", tag = "auth",
    params(("provider" = String, Path, example = "google"), FinishSocialQuery),
    responses((status = 302), Errors<404>),
)]
pub async fn finish_social(
    State(auth): State<AuthService>,
    MaybeUser(identity): MaybeUser,
    Context(context): Context,
    client: ClientInfo,
    Path(provider): Path<String>,
    Query(query): Query<FinishSocialQuery>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let provider = parse_provider(&provider)?;
    let returned = SocialCallback {
        code: query.code.filter(|code| !code.is_empty()).map(Secret::new),
        state: query.state,
        secret: FlowCookie::Redirect.secret(&headers),
        user_id: identity.map(|identity| UserId(identity.user_id)),
    };
    let mut answer = FlowCookie::Redirect.clear(&auth.0.settings, &headers);
    let target = match auth.finish_social(provider, returned, client, context).await {
        Ok(SocialLogin { redirect, session }) => {
            if let Some(session) = &session {
                for (name, value) in &cookies::session_cookies(&auth.0.settings, &headers, session)
                {
                    answer.append(name, value.clone());
                }
            }
            redirect.as_str().to_owned()
        }
        Err(failure) => {
            if let SocialError::Internal(error) = &failure.error {
                tracing::error!(error = %error, "a social login failed on our side");
            }
            let page = failure.redirect.or_else(|| LocalPath::parse(LOGIN_PAGE));
            let page = page.expect("the page to log in at is a path of this site");
            page.with_error(ApiError::from(failure.error).code())
        }
    };
    Ok((StatusCode::FOUND, answer, redirect_to(&target)))
}

/// Addresses of providers are encoded and paths are checked, so both are visible ASCII.
fn redirect_to(target: &str) -> HeaderMap {
    let target = HeaderValue::from_str(target).expect("addresses are visible ASCII");
    let no_store = HeaderValue::from_static("no-store");
    HeaderMap::from_iter([(LOCATION, target), (CACHE_CONTROL, no_store)])
}

/// The arguments of `google.accounts.id.initialize` for Google's button.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoogleNonceView {
    client_id: String,
    nonce: String,
}

/// Starts a login by Google's button.
///
/// Returns client id and nonce for the button, and sets a cookie that binds the nonce to this
/// browser for ten minutes. Errors: 404 `PROVIDER_NOT_CONFIGURED`.
#[utoipa::path(
    post, path = "/api/auth/google/nonce", tag = "auth",
    responses((status = 200, body = GoogleNonceView), Errors<404>),
)]
pub async fn start_google_button(
    State(auth): State<AuthService>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let start = auth.start_button(SocialProvider::Google).await?;
    let mut answer = FlowCookie::Button.give(&auth.0.settings, &headers, &start.secret);
    answer.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let (client_id, nonce) = (start.client_id, start.nonce.expose().to_owned());
    Ok((answer, Json(GoogleNonceView { client_id, nonce })))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GoogleLoginBody {
    /// The ID token of Google's button.
    credential: String,
    /// The user agreed to the terms of service and privacy. New accounts need it.
    #[serde(default)]
    terms_agreed: bool,
}

/// Logs in with the token of Google's button.
///
/// The token counts once, in the browser that got the nonce. After `TERMS_REQUIRED` the same token
/// may be sent again with `termsAgreed`.
///
/// Errors: 400 `SOCIAL_STATE_INVALID`, `TERMS_REQUIRED`; 401 `SOCIAL_LOGIN_REJECTED`; 404
/// `PROVIDER_NOT_CONFIGURED`; 409 `EMAIL_IN_USE` (log in by password and link the provider).
#[utoipa::path(
    post, path = "/api/auth/google", tag = "auth", request_body = GoogleLoginBody,
    responses((status = 200, body = SessionView), Errors<401, 403, 404, 409>),
)]
pub async fn login_by_google(
    State(auth): State<AuthService>,
    Context(context): Context,
    client: ClientInfo,
    headers: HeaderMap,
    Json(body): Json<GoogleLoginBody>,
) -> Result<impl IntoResponse, ApiError> {
    let GoogleLoginBody { credential, terms_agreed } = body;
    let (secret, from) = (FlowCookie::Button.secret(&headers), (client, context));
    let login = auth
        .login_by_button(SocialProvider::Google, &credential, secret, terms_agreed, from)
        .await?;
    let (mut answer, view) = session_answer(&auth, &headers, "Google login successful", login);
    for (name, value) in &FlowCookie::Button.clear(&auth.0.settings, &headers) {
        answer.append(name, value.clone());
    }
    Ok((answer, view))
}

#[derive(Serialize, ToSchema)]
pub struct IdentityListView {
    identities: Vec<LinkedIdentity>,
}

/// Lists the providers that are linked to the account.
///
/// An account can be entered by each of them, and by its password if it has one.
#[utoipa::path(
    get, path = "/api/auth/me/identities", tag = "auth",
    responses((status = 200, body = IdentityListView), Errors<401>),
)]
pub async fn list_identities(
    State(auth): State<AuthService>,
    User(identity): User,
) -> Result<Json<IdentityListView>, ApiError> {
    let identities = auth.list_identities(UserId(identity.user_id)).await?;
    Ok(Json(IdentityListView { identities }))
}

/// Unlinks a provider from the account.
///
/// Sessions go on. Errors: 404 `IDENTITY_NOT_LINKED`; 409 `LAST_WAY_IN` if it is the only way to
/// log in.
#[utoipa::path(
    delete, path = "/api/auth/me/identities/{provider}", tag = "auth",
    params(("provider" = String, Path, example = "google")),
    responses((status = 200, body = MessageView), Errors<401, 404, 409>),
)]
pub async fn unlink_identity(
    State(auth): State<AuthService>,
    User(identity): User,
    Path(provider): Path<String>,
) -> Result<Json<MessageView>, ApiError> {
    let provider = provider.parse().map_err(|_| UnlinkError::NotLinked)?;
    auth.unlink_identity(provider, UserId(identity.user_id)).await?;
    Ok(Json(MessageView { message: "Disconnected" }))
}

impl From<StartLinkError> for ApiError {
    fn from(error: StartLinkError) -> ApiError {
        match error {
            StartLinkError::Social(error) => error.into(),
            StartLinkError::NotConfirmed(error) => error.into(),
        }
    }
}

impl From<UnlinkError> for ApiError {
    fn from(error: UnlinkError) -> ApiError {
        let sentence = error.to_string();
        match error {
            UnlinkError::NotLinked => ApiError::not_found("IDENTITY_NOT_LINKED", sentence),
            UnlinkError::LastWayIn => ApiError::conflict("LAST_WAY_IN", sentence),
            UnlinkError::Internal(error) => error.into(),
        }
    }
}

impl From<SocialError> for ApiError {
    fn from(error: SocialError) -> ApiError {
        let sentence = error.to_string();
        match error {
            SocialError::NotConfigured => ApiError::not_found("PROVIDER_NOT_CONFIGURED", sentence),
            SocialError::InvalidState => ApiError::bad_request("SOCIAL_STATE_INVALID", sentence),
            SocialError::Cancelled => ApiError::bad_request("SOCIAL_CANCELLED", sentence),
            SocialError::Rejected => ApiError::unauthorized("SOCIAL_LOGIN_REJECTED", sentence),
            SocialError::EmailRequired => ApiError::bad_request("EMAIL_REQUIRED", sentence),
            SocialError::TermsRequired => ApiError::bad_request("TERMS_REQUIRED", sentence),
            SocialError::EmailInUse => ApiError::conflict("EMAIL_IN_USE", sentence),
            SocialError::IdentityInUse => ApiError::conflict("IDENTITY_IN_USE", sentence),
            SocialError::AlreadyLinked => ApiError::conflict("SOCIAL_ALREADY_LINKED", sentence),
            SocialError::Suspended => ApiError::forbidden("ACCOUNT_SUSPENDED", sentence),
            SocialError::LoginRequired => ApiError::unauthorized("LOGIN_REQUIRED", sentence),
            SocialError::Unavailable => {
                ApiError::unavailable("PROVIDER_UNAVAILABLE", sentence, Duration::from_secs(5))
            }
            SocialError::Overtaken => {
                ApiError::unavailable("LOGIN_BUSY", sentence, Duration::from_secs(1))
            }
            SocialError::Internal(error) => error.into(),
        }
    }
}
