//! Login by a social provider (OAuth 2 and OpenID Connect).
//!
//! An attempt is bound to one browser by a secret in its cookie, from which the state, the nonce and
//! the PKCE verifier are derived. We store only the hash of the state, and delete it when the browser
//! comes back. Calls to providers are made between transactions.

mod client;
mod google_button;
pub mod http;
mod id_token;
mod identities;
pub mod rules;
mod settings;
mod sign_in;
pub mod store;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use urr_kernel::{CallContext, Secret};
use urr_outbound::encode_form;
use urr_storage::DbResult;

use self::client::{CodeExchange, ProviderContext, SocialProviderError};
use crate::accounts::account::UserId;
use crate::internal_error::from_internal_errors;
use crate::sessions::hash_of;
use crate::social::rules::{LocalPath, SocialProvider};
use crate::social::store::{self as social, SocialAttempt};
use crate::{AuthService, ClientInfo, InternalError, Session};

pub(crate) use client::SocialClient;
pub use google_button::ButtonStart;
pub use identities::{LinkedIdentity, StartLinkError, UnlinkError};
pub use settings::{ProviderEndpoints, SocialProviderSettings, SocialSettings};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocialError {
    #[error("Login by this service is not available here.")]
    NotConfigured,
    #[error("Logging in took too long or was begun elsewhere. Please begin again.")]
    InvalidState,
    #[error("You did not log in at the service.")]
    Cancelled,
    #[error("The answer of the service could not be verified. Please begin again.")]
    Rejected,
    #[error("The service cannot be reached now. Please try again, or log in another way.")]
    Unavailable,
    #[error("We need your e-mail address. Please allow the service to share it.")]
    EmailRequired,
    #[error("Please agree to the terms first.")]
    TermsRequired,
    /// Not both sides have verified the address.
    #[error(
        "This address has an account. Please log in as usual, and connect the service in your profile."
    )]
    EmailInUse,
    #[error("This login is connected to another account already.")]
    IdentityInUse,
    #[error("Your account is connected to another login of this service.")]
    AlreadyLinked,
    #[error("Please log in, then connect again.")]
    LoginRequired,
    #[error("Your account is suspended. Please write to us.")]
    Suspended,
    /// The rows that the decision was based on have changed.
    #[error("You are logging in elsewhere at this moment. Please try again.")]
    Overtaken,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(SocialError);

#[derive(Clone, Debug)]
pub struct SocialStart {
    /// Where the browser continues afterwards.
    pub redirect: LocalPath,
    /// The user agreed to the terms of service and privacy, which the page showed.
    pub terms_agreed: bool,
    /// Links the identity to this account instead of logging in.
    pub link_user_id: Option<UserId>,
}

/// A started login by redirect.
#[derive(Clone, Debug)]
pub struct SocialRedirect {
    /// The address of the provider.
    pub url: String,
    /// For the cookie of the browser.
    pub secret: Secret,
}

/// What a browser sends when it comes back from the provider.
#[derive(Clone, Debug, Default)]
pub struct SocialCallback {
    pub code: Option<Secret>,
    pub state: String,
    /// From the cookie.
    pub secret: Option<Secret>,
    /// The user who is logged in.
    pub user_id: Option<UserId>,
}

#[derive(Clone, Debug)]
pub struct SocialLogin {
    pub redirect: LocalPath,
    /// `None` if an identity was linked to the account of the user.
    pub session: Option<Session>,
}

/// Why a login failed, and where the browser continues; the path is known for links only.
#[derive(Debug, PartialEq, Eq)]
pub struct SocialFailure {
    pub error: SocialError,
    pub redirect: Option<LocalPath>,
}

impl AuthService {
    /// Starts a login by redirect.
    pub async fn start_social(
        &self,
        provider: SocialProvider,
        start: SocialStart,
    ) -> Result<SocialRedirect, SocialError> {
        let context = self.context_for_redirect(provider)?;
        let flow = OAuthFlow::of(Secret::generate());
        let SocialStart { redirect, terms_agreed, link_user_id } = start;
        let expires_at = context.now + self.0.settings.social.attempt_lifetime;
        let attempt = SocialAttempt { provider, redirect, terms_agreed, link_user_id, expires_at };
        self.insert_attempt(&flow.state, attempt).await?;
        let endpoints = &context.settings.endpoints;
        let (redirect_uri, challenge) = (self.redirect_uri(provider), flow.challenge());
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", context.settings.client_id.as_str()),
            ("redirect_uri", &redirect_uri),
            ("state", flow.state.expose()),
            ("nonce", flow.nonce.expose()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        fields.extend(endpoints.scope.as_deref().map(|scope| ("scope", scope)));
        let url = format!("{}?{}", endpoints.authorize, encode_form(&fields));
        Ok(SocialRedirect { url, secret: flow.secret })
    }

    /// Completes a login or the link of an identity.
    pub async fn finish_social(
        &self,
        provider: SocialProvider,
        returned: SocialCallback,
        client: ClientInfo,
        context: CallContext,
    ) -> Result<SocialLogin, SocialFailure> {
        let early = |error| SocialFailure { error, redirect: None };
        self.provider_context(provider).map_err(early)?;
        let secret = returned.secret.clone().ok_or(early(SocialError::InvalidState))?;
        let flow = OAuthFlow::of(secret);
        if !flow.state.matches(&returned.state) {
            return Err(early(SocialError::InvalidState));
        }
        let attempt = self.take_attempt(provider, &flow.state).await.map_err(early)?;
        let redirect = attempt.redirect.clone();
        let is_link = attempt.link_user_id.is_some();
        let completed =
            self.complete_attempt(provider, &flow, attempt, returned, (client, context)).await;
        match completed {
            Ok(session) => Ok(SocialLogin { redirect, session }),
            Err(error) => Err(SocialFailure { error, redirect: is_link.then_some(redirect) }),
        }
    }

    /// Stores an attempt under the hash of its state or nonce.
    async fn insert_attempt(&self, name: &Secret, attempt: SocialAttempt) -> DbResult<()> {
        let hash = hash_of(name.expose());
        self.write(move |tx| social::attempt_insert(tx, &hash, &attempt)).await
    }

    /// Takes an attempt, which can be used once.
    async fn take_attempt(
        &self,
        provider: SocialProvider,
        name: &Secret,
    ) -> Result<SocialAttempt, SocialError> {
        let now = self.provider_context(provider)?.now;
        let hash = hash_of(name.expose());
        let taken = self.write(move |tx| social::attempt_take(tx, &hash)).await?;
        let in_force =
            |attempt: &SocialAttempt| attempt.provider == provider && attempt.expires_at > now;
        taken.filter(in_force).ok_or(SocialError::InvalidState)
    }

    async fn complete_attempt(
        &self,
        provider: SocialProvider,
        flow: &OAuthFlow,
        attempt: SocialAttempt,
        returned: SocialCallback,
        (client, context): (ClientInfo, CallContext),
    ) -> Result<Option<Session>, SocialError> {
        if attempt.link_user_id.is_some() && attempt.link_user_id != returned.user_id {
            return Err(SocialError::LoginRequired);
        }
        let code = returned.code.ok_or(SocialError::Cancelled)?;
        let redirect_uri = self.redirect_uri(provider);
        let exchange = CodeExchange {
            code: code.expose(),
            state: &returned.state,
            verifier: &flow.verifier,
            nonce: &flow.nonce,
            redirect_uri: &redirect_uri,
        };
        let profile = self.0.social.profile(self.provider_context(provider)?, &exchange).await;
        let profile = profile.map_err(|error| log_provider_error(provider, &error))?;
        match attempt.link_user_id {
            Some(user_id) => {
                self.link_identity(provider, user_id, profile).await?;
                Ok(None)
            }
            None => {
                let terms_agreed = attempt.terms_agreed;
                let session = self.sign_in(provider, profile, terms_agreed, client, context);
                Ok(Some(session.await?))
            }
        }
    }

    fn provider_context(
        &self,
        provider: SocialProvider,
    ) -> Result<ProviderContext<'_>, SocialError> {
        let settings = self.0.settings.social.provider(provider);
        let settings = settings.ok_or(SocialError::NotConfigured)?;
        let (timeout, now) = (self.0.settings.social.call_timeout, self.0.clock.now());
        Ok(ProviderContext { provider, settings, timeout, now })
    }

    /// A provider for logins by redirect, which need a client secret; its button needs none.
    fn context_for_redirect(
        &self,
        provider: SocialProvider,
    ) -> Result<ProviderContext<'_>, SocialError> {
        let context = self.provider_context(provider)?;
        match context.settings.client_secret {
            Some(_) => Ok(context),
            None => Err(SocialError::NotConfigured),
        }
    }

    fn redirect_uri(&self, provider: SocialProvider) -> String {
        let base = self.0.settings.social.public_url.trim_end_matches('/');
        format!("{base}/api/auth/social/{}/callback", provider.as_str())
    }
}

/// The secrets of one login, all derived from the secret in the browser's cookie.
struct OAuthFlow {
    secret: Secret,
    state: Secret,
    nonce: Secret,
    verifier: Secret,
}

impl OAuthFlow {
    fn of(secret: Secret) -> OAuthFlow {
        OAuthFlow {
            state: secret.derive("urr-auth:social:state"),
            nonce: secret.derive("urr-auth:social:nonce"),
            verifier: secret.derive("urr-auth:social:verifier"),
            secret,
        }
    }

    fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(hash_of(self.verifier.expose()))
    }
}

fn log_provider_error(provider: SocialProvider, error: &SocialProviderError) -> SocialError {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(provider = provider.as_str(), %error, source, "a login by a social provider failed");
    match error.is_outage() {
        true => SocialError::Unavailable,
        false => SocialError::Rejected,
    }
}
