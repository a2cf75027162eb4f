//! Signing in by the account that someone has with another service.
//!
//! A way to a provider and back is bound to one browser: a secret in its cookie, from which the
//! state, the nonce and the proof of the code (PKCE) follow. Our context remembers only the hash of
//! the state, and takes it away when it comes back. Calls to providers are made between
//! transactions.

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
use urr_storage::Tx;

use self::client::{CodeExchange, ProviderContext, SocialProviderError};
use crate::accounts::account::UserId;
use crate::internal_error::from_internal_errors;
use crate::sessions::hash_of;
use crate::social::rules::{LocalPath, SignInRejection, SocialProvider};
use crate::social::store::{self as social, SocialAttempt};
use crate::{AuthService, ClientInfo, InternalError, Session};

pub(crate) use client::SocialClient;
pub use google_button::ButtonStart;
pub use identities::{LinkedIdentity, StartLinkError, UnlinkError};
pub use settings::{ProviderEndpoints, SocialProviderSettings, SocialSettings};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocialError {
    #[error("the provider is not configured")]
    NotConfigured,
    #[error("the way was not begun in this browser, or is used up, or took too long")]
    InvalidState,
    #[error("the person did not agree at the provider")]
    Cancelled,
    #[error("what the provider vouches for does not count")]
    Rejected,
    #[error("the provider cannot be reached")]
    Unavailable,
    #[error("the provider tells no address")]
    EmailRequired,
    #[error("a new account needs the terms to be agreed to")]
    TermsRequired,
    #[error("the address has an account, and not both sides proved it")]
    EmailInUse,
    #[error("the identity belongs to another account")]
    IdentityInUse,
    #[error("the account has another identity of this provider")]
    AlreadyLinked,
    #[error("who began the way is not logged in")]
    LoginRequired,
    /// What was decided on has changed meanwhile.
    #[error("someone else was faster")]
    Overtaken,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(SocialError);

impl From<SignInRejection> for SocialError {
    fn from(rejection: SignInRejection) -> SocialError {
        match rejection {
            SignInRejection::EmailRequired => SocialError::EmailRequired,
            SignInRejection::EmailInUse => SocialError::EmailInUse,
            SignInRejection::TermsRequired => SocialError::TermsRequired,
        }
    }
}

/// What someone who sets out to a provider wants.
#[derive(Clone, Debug)]
pub struct SocialStart {
    /// Where to go on afterwards.
    pub redirect: LocalPath,
    /// The page showed the terms of service and privacy, and they were agreed to.
    pub terms_agreed: bool,
    /// Adds the identity to this account instead of logging in.
    pub link_user_id: Option<UserId>,
}

/// A way to a provider.
#[derive(Clone, Debug)]
pub struct SocialRedirect {
    /// Where the browser goes.
    pub url: String,
    /// What the browser keeps in a cookie until it comes back.
    pub secret: Secret,
}

/// What a browser brings back.
#[derive(Clone, Debug, Default)]
pub struct SocialCallback {
    pub code: Option<Secret>,
    pub state: String,
    /// Of its cookie.
    pub secret: Option<Secret>,
    /// Who is logged in.
    pub user_id: Option<UserId>,
}

#[derive(Clone, Debug)]
pub struct SocialLogin {
    pub redirect: LocalPath,
    /// None: an identity was added to the account of who is logged in.
    pub session: Option<Session>,
}

/// Why someone did not arrive, and where they are told: the path is known when they are logged in.
#[derive(Debug, PartialEq, Eq)]
pub struct SocialFailure {
    pub error: SocialError,
    pub redirect: Option<LocalPath>,
}

impl AuthService {
    /// Begins the way to a provider.
    pub async fn start_social(
        &self,
        provider: SocialProvider,
        start: SocialStart,
    ) -> Result<SocialRedirect, SocialError> {
        let context = self.redirect_provider_context(provider)?;
        let flow = OAuthFlow::of(Secret::generate());
        let SocialStart { redirect, terms_agreed, link_user_id } = start;
        let expires_at = context.now + self.settings.social.attempt_lifetime;
        let attempt = SocialAttempt { provider, redirect, terms_agreed, link_user_id, expires_at };
        let hash = hash_of(flow.state.expose());
        let insert = move |tx: &mut Tx<'_>| social::attempt_insert(tx, &hash, &attempt);
        self.db.write(insert).await?;
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

    /// Ends the way: someone is logged in, or has one more identity.
    pub async fn finish_social(
        &self,
        provider: SocialProvider,
        returned: SocialCallback,
        client: ClientInfo,
        context: CallContext,
    ) -> Result<SocialLogin, SocialFailure> {
        let early = |error| SocialFailure { error, redirect: None };
        let (flow, attempt) = self.take_attempt(provider, &returned).await.map_err(early)?;
        let redirect = attempt.redirect.clone();
        let is_link = attempt.link_user_id.is_some();
        let arrived = self.arrive(provider, &flow, attempt, returned, (client, context)).await;
        match arrived {
            Ok(session) => Ok(SocialLogin { redirect, session }),
            Err(error) => Err(SocialFailure { error, redirect: is_link.then_some(redirect) }),
        }
    }

    /// The way that a browser began, which is over with this.
    async fn take_attempt(
        &self,
        provider: SocialProvider,
        returned: &SocialCallback,
    ) -> Result<(OAuthFlow, SocialAttempt), SocialError> {
        let now = self.provider_context(provider)?.now;
        let secret = returned.secret.clone().ok_or(SocialError::InvalidState)?;
        let flow = OAuthFlow::of(secret);
        if !flow.state.matches(&returned.state) {
            return Err(SocialError::InvalidState);
        }
        let hash = hash_of(flow.state.expose());
        let taken = self.db.write(move |tx| social::attempt_take(tx, &hash)).await?;
        let in_force =
            |attempt: &SocialAttempt| attempt.provider == provider && attempt.expires_at > now;
        let attempt: Option<SocialAttempt> = taken;
        let attempt = attempt.filter(in_force).ok_or(SocialError::InvalidState)?;
        Ok((flow, attempt))
    }

    async fn arrive(
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
        let brought = CodeExchange {
            code: code.expose(),
            state: &returned.state,
            verifier: &flow.verifier,
            nonce: &flow.nonce,
            redirect_uri: &redirect_uri,
        };
        let profile = self.social.profile(self.provider_context(provider)?, &brought).await;
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
        let settings = self.settings.social.provider(provider);
        let settings = settings.ok_or(SocialError::NotConfigured)?;
        let (timeout, now) = (self.settings.social.call_timeout, self.clock.now());
        Ok(ProviderContext { provider, settings, timeout, now })
    }

    /// A provider to which browsers are sent. Its button alone needs no secret of ours.
    fn redirect_provider_context(
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
        let base = self.settings.social.public_url.trim_end_matches('/');
        format!("{base}/api/auth/social/{}/callback", provider.as_str())
    }
}

/// What belongs to one way, all following from the secret in the browser's cookie.
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
    tracing::warn!(provider = provider.as_str(), %error, source, "signing in by a provider failed");
    match error.is_outage() {
        true => SocialError::Unavailable,
        false => SocialError::Rejected,
    }
}
