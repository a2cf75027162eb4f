//! Signing in by the account that someone has with another service.
//!
//! A way to a provider and back is bound to one browser: a secret in its cookie, from which the
//! state, the nonce and the proof of the code (PKCE) follow. Our side remembers only the hash of
//! the state, and takes it away when it comes back. Calls to providers are made between
//! transactions.

mod client;
mod id_token;
mod settings;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use urr_kernel::{CallContext, Secret};
use urr_outbound::encode_form;
use urr_service::Role;
use urr_storage::{StorageError, Tx};

use self::client::{ProviderError, Returned, Side};
use crate::accounts::AccountParts;
use crate::domain::account::{Person, UserId};
use crate::domain::email::Email;
use crate::domain::refresh::RefreshToken;
use crate::domain::social::{
    EmailOwner, LocalPath, Provider, SignIn, SignInRejection, SocialProfile, decide_sign_in,
};
use crate::domain::terms::{Agreement, Terms, TermsKind};
use crate::fault::from_faults;
use crate::jobs::Rotation;
use crate::sessions::hash_of;
use crate::store::records::LoginMethod;
use crate::store::social::{self, Attempt, StoredIdentity};
use crate::store::users::{self, StoredUser};
use crate::{Auth, Fault, Origin, Session};

pub(crate) use client::SocialClient;
pub use settings::{Endpoints, ProviderSettings, SocialSettings};

/// Two first logins of one person at once disturb each other once; more often is not chance.
const SIGN_IN_TRIES: u32 = 3;

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

/// Who is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    identity_owner: Option<UserId>,
    email_owner: Option<EmailOwner>,
}

/// Under what someone may be stored.
#[derive(Clone)]
struct Lookup {
    provider: Provider,
    subject_indexes: Vec<Vec<u8>>,
    email_indexes: Vec<Vec<u8>>,
}

impl Lookup {
    fn find(&self, tx: &mut Tx<'_>) -> Result<Known, StorageError> {
        let identity_owner = social::identity_owner(tx, self.provider, &self.subject_indexes)?;
        let found = match self.email_indexes.is_empty() {
            true => None,
            false => users::user_find_by_email(tx, &self.email_indexes)?,
        };
        let email_owner = match found {
            Some(StoredUser { id, .. }) => Some(EmailOwner {
                id,
                email_verified: social::user_has_verified_email(tx, id)?,
                has_other_identity: social::identity_exists(tx, self.provider, id)?,
            }),
            None => None,
        };
        Ok(Known { identity_owner, email_owner })
    }
}

impl Auth {
    /// Begins the way to a provider.
    pub async fn start_social(
        &self,
        provider: Provider,
        start: SocialStart,
    ) -> Result<SocialWay, SocialError> {
        let side = self.side(provider)?;
        if side.settings.client_secret.is_none() {
            return Err(SocialError::NotConfigured);
        }
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

    /// Logs in by an ID token that the provider's own button brought.
    pub async fn login_by_credential(
        &self,
        provider: Provider,
        id_token: &str,
        terms_agreed: bool,
        origin: Origin,
        context: CallContext,
    ) -> Result<Session, SocialError> {
        let side = self.side(provider)?;
        let profile = self.social.profile_of_credential(side, id_token).await;
        let profile = profile.map_err(|error| not_told(provider, &error))?;
        self.sign_in(provider, profile, terms_agreed, origin, context).await
    }

    /// Logs someone in whom a provider vouches for; see [`decide_sign_in`].
    async fn sign_in(
        &self,
        provider: Provider,
        profile: SocialProfile,
        terms_agreed: bool,
        origin: Origin,
        context: CallContext,
    ) -> Result<Session, SocialError> {
        let lookup = self.lookup(provider, &profile);
        for _ in 0..SIGN_IN_TRIES {
            let find = lookup.clone();
            let known = self.db.read(move |tx| find.find(tx)).await?;
            let Known { identity_owner, email_owner } = known;
            let origin = origin.clone();
            let opened = match decide_sign_in(identity_owner, email_owner, &profile, terms_agreed)?
            {
                SignIn::Known(id) | SignIn::Join(id) => {
                    let expected = (lookup.clone(), known);
                    self.open_for(id, &profile, expected, origin).await
                }
                SignIn::New => self.open_new(provider, &profile, origin, context).await,
            };
            match opened {
                Err(SocialError::Overtaken) => {}
                Err(error) => return Err(error),
                Ok((token, user)) => return Ok(self.grant(&token, &user)?),
            }
        }
        Err(SocialError::Overtaken)
    }

    /// Begins a session in an account that is there, and adds the identity if it is new to it.
    async fn open_for(
        &self,
        id: UserId,
        profile: &SocialProfile,
        (lookup, known): (Lookup, Known),
        origin: Origin,
    ) -> Result<(RefreshToken, StoredUser), SocialError> {
        let opening = self.opening(id, LoginMethod::Social(lookup.provider), origin);
        let identity = self.identity(lookup.provider, id, &profile.subject);
        self.db
            .write(move |tx| {
                let user = users::user_lock(tx, id)?.filter(|user| user.person.is_some());
                let user = user.ok_or(SocialError::Overtaken)?;
                if lookup.find(tx)? != known {
                    return Err(SocialError::Overtaken);
                }
                let now = opening.token.issued_at;
                if known.identity_owner.is_none() && !social::identity_insert(tx, &identity, now)? {
                    return Err(SocialError::Overtaken);
                }
                users::user_mark_login(tx, id, now)?;
                opening.write(tx)?;
                Ok((opening.token.clone(), user))
            })
            .await
    }

    /// Opens an account without a password.
    async fn open_new(
        &self,
        provider: Provider,
        profile: &SocialProfile,
        origin: Origin,
        context: CallContext,
    ) -> Result<(RefreshToken, StoredUser), SocialError> {
        let email = profile.email.clone().expect("a new account was decided on by its address");
        let name = profile.display_name(&email);
        let parts = AccountParts {
            person: Person { email, name, phone: None },
            password: None,
            terms: Some(self.terms_shown()),
            role: Role::User,
            method: LoginMethod::Social(provider),
            origin,
            context,
        };
        let account = self.new_account(parts).await?;
        let identity = self.identity(provider, account.id(), &profile.subject);
        let (verified, now) = (profile.email_verified, account.opening.token.issued_at);
        self.db
            .write(move |tx| {
                let user = account.write(tx)?.ok_or(SocialError::Overtaken)?;
                if !social::identity_insert(tx, &identity, now)? {
                    return Err(SocialError::Overtaken);
                }
                if verified {
                    social::user_set_email_verified(tx, user.id, now)?;
                }
                Ok((account.opening.token.clone(), user))
            })
            .await
    }

    /// Adds an identity to the account of who is logged in. The same one twice is no mistake.
    async fn link_identity(
        &self,
        provider: Provider,
        user_id: UserId,
        profile: SocialProfile,
    ) -> Result<(), SocialError> {
        let (now, lookup) = (self.clock.now(), self.lookup(provider, &profile));
        let identity = self.identity(provider, user_id, &profile.subject);
        self.db
            .write(move |tx| {
                let user = users::user_lock(tx, user_id)?.filter(|user| user.person.is_some());
                user.ok_or(SocialError::LoginRequired)?;
                let Known { identity_owner, email_owner } = lookup.find(tx)?;
                match identity_owner {
                    Some(owner) if owner == user_id => {}
                    Some(_) => return Err(SocialError::IdentityInUse),
                    None if social::identity_exists(tx, provider, user_id)? => {
                        return Err(SocialError::AlreadyLinked);
                    }
                    None if !social::identity_insert(tx, &identity, now)? => {
                        return Err(SocialError::IdentityInUse);
                    }
                    None => {}
                }
                let is_same_address = email_owner.is_some_and(|owner| owner.id == user_id);
                if profile.email_verified && is_same_address {
                    social::user_set_email_verified(tx, user_id, now)?;
                }
                Ok(())
            })
            .await
    }

    /// Seals so many identities at most with the current key.
    pub(crate) async fn rotate_social(&self, batch: u32) -> Result<Rotation, Fault> {
        let current = self.data_keys.current_version();
        let list =
            move |tx: &mut Tx<'_>| social::identity_list_sealed_otherwise(tx, current, batch);
        let stored: Vec<StoredIdentity> = self.db.read(list).await?;
        let mut resealed = Vec::with_capacity(stored.len());
        for old in stored {
            let StoredIdentity { provider, user_id, key_version, cipher, .. } = &old;
            let kind = provider.subject_kind();
            let subject = self.data_keys.open_text(*key_version, kind, *user_id, cipher)?;
            let new = self.identity(*provider, *user_id, &subject);
            resealed.push((old, new));
        }
        let rotation = self.db.write(move |tx| {
            let mut rotated = 0;
            for (old, new) in &resealed {
                rotated += u64::from(social::identity_reseal(tx, old, new)?);
            }
            let remaining = social::identity_count_sealed_otherwise(tx, current)?;
            Ok::<_, StorageError>(Rotation { rotated, remaining })
        });
        Ok(rotation.await?)
    }

    fn side(&self, provider: Provider) -> Result<Side<'_>, SocialError> {
        let settings = self.settings.social.provider(provider);
        let settings = settings.ok_or(SocialError::NotConfigured)?;
        let (timeout, now) = (self.settings.social.call_timeout, self.clock.now());
        Ok(Side { provider, settings, timeout, now })
    }

    fn redirect_uri(&self, provider: Provider) -> String {
        let base = self.settings.social.public_url.trim_end_matches('/');
        format!("{base}/api/auth/social/{}/callback", provider.name())
    }

    fn lookup(&self, provider: Provider, profile: &SocialProfile) -> Lookup {
        let indexes = |email: &Email| self.data_keys.email_indexes(email);
        let kind = provider.subject_kind();
        Lookup {
            provider,
            subject_indexes: self.data_keys.person_indexes(kind, &profile.subject),
            email_indexes: profile.email.as_ref().map(indexes).unwrap_or_default(),
        }
    }

    fn identity(&self, provider: Provider, user_id: UserId, subject: &str) -> StoredIdentity {
        let (keys, kind) = (&self.data_keys, provider.subject_kind());
        let index = keys.person_indexes(kind, subject).swap_remove(0);
        let cipher = keys.seal_text(kind, user_id, subject);
        StoredIdentity { provider, user_id, key_version: keys.current_version(), index, cipher }
    }

    fn terms_shown(&self) -> Terms {
        let version = &self.settings.social.terms_version;
        let agreed = |kind| Agreement { kind, version: version.clone(), agreed: true };
        let answers = vec![agreed(TermsKind::Service), agreed(TermsKind::Privacy)];
        Terms::parse(answers).expect("the configuration has a version of the terms")
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
