//! Signing in by the account that someone has with another service.
//!
//! A way to a provider and back is bound to one browser: a secret in its cookie, from which the
//! state, the nonce and the proof of the code (PKCE) follow. Our side remembers only the hash of
//! the state, and takes it away when it comes back. Calls to providers are made between
//! transactions.

mod button;
mod client;
mod id_token;
mod identities;
mod settings;
mod sign_in;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use urr_kernel::{CallContext, Secret};
use urr_outbound::encode_form;
use urr_storage::Tx;

use self::client::{ProviderError, Returned, Side};
use crate::domain::account::UserId;
use crate::domain::social::{LocalPath, Provider, SignInRejection};
use crate::fault::from_faults;
use crate::sessions::hash_of;
use crate::store::social::{self, Attempt};
use crate::{Auth, Fault, Origin, Session};

pub use button::ButtonWay;
pub(crate) use client::SocialClient;
pub use identities::{LinkedIdentity, StartLinkError, UnlinkError};
pub use settings::{Endpoints, ProviderSettings, SocialSettings};

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
    Fault(#[from] Fault),
}

from_faults!(SocialError);

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
pub struct SocialWay {
    /// Where the browser goes.
    pub url: String,
    /// What the browser keeps in a cookie until it comes back.
    pub secret: Secret,
}

/// What a browser brings back.
#[derive(Clone, Debug, Default)]
pub struct SocialReturn {
    pub code: Option<Secret>,
    pub state: String,
    /// Of its cookie.
    pub secret: Option<Secret>,
    /// Who is logged in.
    pub user_id: Option<UserId>,
}

#[derive(Clone, Debug)]
pub struct SocialArrival {
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

impl Auth {
    /// Begins the way to a provider.
    pub async fn start_social(
        &self,
        provider: Provider,
        start: SocialStart,
    ) -> Result<SocialWay, SocialError> {
        let side = self.side_of_ways(provider)?;
        let way = Way::of(Secret::generate());
        let SocialStart { redirect, terms_agreed, link_user_id } = start;
        let expires_at = side.now + self.settings.social.attempt_lifetime;
        let attempt = Attempt { provider, redirect, terms_agreed, link_user_id, expires_at };
        let hash = hash_of(way.state.expose());
        let insert = move |tx: &mut Tx<'_>| social::attempt_insert(tx, &hash, &attempt);
        self.db.write(insert).await?;
        let endpoints = &side.settings.endpoints;
        let (redirect_uri, challenge) = (self.redirect_uri(provider), way.challenge());
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", side.settings.client_id.as_str()),
            ("redirect_uri", &redirect_uri),
            ("state", way.state.expose()),
            ("nonce", way.nonce.expose()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        fields.extend(endpoints.scope.as_deref().map(|scope| ("scope", scope)));
        let url = format!("{}?{}", endpoints.authorize, encode_form(&fields));
        Ok(SocialWay { url, secret: way.secret })
    }

    /// Ends the way: someone is logged in, or has one more identity.
    pub async fn finish_social(
        &self,
        provider: Provider,
        returned: SocialReturn,
        origin: Origin,
        context: CallContext,
    ) -> Result<SocialArrival, SocialFailure> {
        let early = |error| SocialFailure { error, redirect: None };
        let (way, attempt) = self.take_attempt(provider, &returned).await.map_err(early)?;
        let redirect = attempt.redirect.clone();
        let is_link = attempt.link_user_id.is_some();
        let arrived = self.arrive(provider, &way, attempt, returned, (origin, context)).await;
        match arrived {
            Ok(session) => Ok(SocialArrival { redirect, session }),
            Err(error) => Err(SocialFailure { error, redirect: is_link.then_some(redirect) }),
        }
    }

    /// The way that a browser began, which is over with this.
    async fn take_attempt(
        &self,
        provider: Provider,
        returned: &SocialReturn,
    ) -> Result<(Way, Attempt), SocialError> {
        let now = self.side(provider)?.now;
        let secret = returned.secret.clone().ok_or(SocialError::InvalidState)?;
        let way = Way::of(secret);
        if !way.state.matches(&returned.state) {
            return Err(SocialError::InvalidState);
        }
        let hash = hash_of(way.state.expose());
        let taken = self.db.write(move |tx| social::attempt_take(tx, &hash)).await?;
        let in_force = |attempt: &Attempt| attempt.provider == provider && attempt.expires_at > now;
        let attempt: Option<Attempt> = taken;
        let attempt = attempt.filter(in_force).ok_or(SocialError::InvalidState)?;
        Ok((way, attempt))
    }

    async fn arrive(
        &self,
        provider: Provider,
        way: &Way,
        attempt: Attempt,
        returned: SocialReturn,
        (origin, context): (Origin, CallContext),
    ) -> Result<Option<Session>, SocialError> {
        if attempt.link_user_id.is_some() && attempt.link_user_id != returned.user_id {
            return Err(SocialError::LoginRequired);
        }
        let code = returned.code.ok_or(SocialError::Cancelled)?;
        let redirect_uri = self.redirect_uri(provider);
        let brought = Returned {
            code: code.expose(),
            state: &returned.state,
            verifier: &way.verifier,
            nonce: &way.nonce,
            redirect_uri: &redirect_uri,
        };
        let profile = self.social.profile(self.side(provider)?, &brought).await;
        let profile = profile.map_err(|error| not_told(provider, &error))?;
        match attempt.link_user_id {
            Some(user_id) => {
                self.link_identity(provider, user_id, profile).await?;
                Ok(None)
            }
            None => {
                let terms_agreed = attempt.terms_agreed;
                let session = self.sign_in(provider, profile, terms_agreed, origin, context);
                Ok(Some(session.await?))
            }
        }
    }

    fn side(&self, provider: Provider) -> Result<Side<'_>, SocialError> {
        let settings = self.settings.social.provider(provider);
        let settings = settings.ok_or(SocialError::NotConfigured)?;
        let (timeout, now) = (self.settings.social.call_timeout, self.clock.now());
        Ok(Side { provider, settings, timeout, now })
    }

    /// A provider to which browsers are sent. Its button alone needs no secret of ours.
    fn side_of_ways(&self, provider: Provider) -> Result<Side<'_>, SocialError> {
        let side = self.side(provider)?;
        match side.settings.client_secret {
            Some(_) => Ok(side),
            None => Err(SocialError::NotConfigured),
        }
    }

    fn redirect_uri(&self, provider: Provider) -> String {
        let base = self.settings.social.public_url.trim_end_matches('/');
        format!("{base}/api/auth/social/{}/callback", provider.name())
    }
}

/// What belongs to one way, all following from the secret in the browser's cookie.
struct Way {
    secret: Secret,
    state: Secret,
    nonce: Secret,
    verifier: Secret,
}

impl Way {
    fn of(secret: Secret) -> Way {
        Way {
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

fn not_told(provider: Provider, error: &ProviderError) -> SocialError {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(provider = provider.name(), %error, source, "signing in by a provider failed");
    match error.is_outage() {
        true => SocialError::Unavailable,
        false => SocialError::Rejected,
    }
}
