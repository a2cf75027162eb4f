//! SessionSelection: a login begins one, refreshing carries it on, logging out ends it.

pub mod client_info;
pub mod cookies;
pub mod http;
pub mod login_history;
pub mod refresh;
pub mod store;

use sha2::{Digest, Sha256};
use urr_kernel::{Secret, Timestamp, Uuid};
use urr_service::token::{ACCESS, AccessClaims, Issue, REFRESH, RefreshClaims, TokenError};
use urr_storage::{StorageError, Tx};

use crate::accounts::Credentials;
use crate::accounts::account::{AccountStatus, UserAccount, UserId};
use crate::accounts::store::{self as users, StoredUser};
use crate::internal_error::from_internal_errors;
use crate::passwords::rules::is_too_long;
use crate::sessions::login_history::{ClientInfo, LoginFailure, LoginMethod, LoginRecord};
use crate::sessions::refresh::{RefreshDecision, RefreshToken, decide_refresh};
use crate::sessions::store::{self as sessions, RevokedAccessToken, SessionSelection};
use crate::{AuthService, InternalError, Password};

/// What one call tells of revoked tokens at most.
const REVOKED_LISTED_MAX: u32 = 1_000;

/// A user with the tokens that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub user: UserAccount,
    pub access_token: String,
    pub refresh_token: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Deliberately not more precise.
    #[error("the address or the password is wrong")]
    InvalidCredentials,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefreshError {
    #[error("the refresh token is not one of ours")]
    Invalid,
    #[error("the refresh token has expired")]
    Expired,
    #[error("the session was ended")]
    Revoked,
    #[error("the refresh token was used before; its session was ended")]
    Reused,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyTokenError {
    #[error("the token is not in force")]
    Invalid,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(LoginError, RefreshError, VerifyTokenError);

/// What is known about who logs out.
#[derive(Clone, Debug, Default)]
pub struct LogoutRequest {
    pub refresh_token: Option<String>,
    /// The access token, if the client sent it along; it names its session, too.
    pub access_token: Option<String>,
    /// As the gateway says.
    pub user_id: Option<UserId>,
    pub all_devices: bool,
}

/// What a refresh led to, once committed.
enum RefreshOutcome {
    Granted { token: Box<RefreshToken>, user: Box<StoredUser> },
    Refused(RefreshError),
}

impl AuthService {
    /// Compares address and password, and begins a session.
    pub async fn login(
        &self,
        credentials: Credentials,
        client: ClientInfo,
    ) -> Result<Session, LoginError> {
        let Credentials { email, password } = credentials;
        if is_too_long(password.expose()) {
            return Err(LoginError::InvalidCredentials);
        }
        let indexes = self.data_keys.email_indexes(&email);
        let find = move |tx: &mut Tx<'_>| users::user_find_by_email(tx, &indexes);
        let found = self.db.read(find).await?;
        let stored_hash = found.as_ref().and_then(|user| user.password_hash.clone());
        let compared = self.passwords.compare(password.clone(), stored_hash).await?;
        let (Some(user), true) = (&found, compared.matches) else {
            let user_id = found.as_ref().map(|user| user.id);
            self.record_failed_login(user_id, client).await?;
            return Err(LoginError::InvalidCredentials);
        };
        let better_hash = match compared.is_outdated {
            true => self.hash_anew(&password).await,
            false => None,
        };
        let logged_in = self.open_after_login(user, better_hash, client).await?;
        Ok(self.grant(&logged_in.0, &logged_in.1)?)
    }

    /// A stronger hash of a password that is known to be right. None if there is no time for it.
    async fn hash_anew(&self, password: &Secret) -> Option<String> {
        self.passwords.hash(Password::already_in_use(password.clone())).await.ok()
    }

    async fn record_failed_login(
        &self,
        user_id: Option<UserId>,
        client: ClientInfo,
    ) -> Result<(), StorageError> {
        let failure = match user_id {
            Some(_) => LoginFailure::WrongPassword,
            None => LoginFailure::UnknownEmail,
        };
        let (method, happened_at) = (LoginMethod::Password, self.clock.now());
        let record = LoginRecord { user_id, method, failure: Some(failure), client, happened_at };
        self.db.write(move |tx| login_history::login_history_insert(tx, &record)).await
    }

    /// Begins a session for a user whose password was compared with what was stored then.
    async fn open_after_login(
        &self,
        compared: &StoredUser,
        better_hash: Option<String>,
        client: ClientInfo,
    ) -> Result<(RefreshToken, StoredUser), LoginError> {
        let (id, version) = (compared.id, compared.password_version);
        let new_session = self.new_session(id, LoginMethod::Password, client);
        self.db
            .write(move |tx| {
                let user = users::user_lock(tx, id)?.filter(|user| user.person.is_some());
                // Between the comparison and now the password may have changed.
                let Some(user) = user.filter(|user| user.password_version == version) else {
                    return Err(LoginError::InvalidCredentials);
                };
                users::user_mark_login(tx, id, new_session.token.issued_at)?;
                if let Some(hash) = &better_hash {
                    users::user_set_password_hash(tx, id, hash)?;
                }
                new_session.write(tx)?;
                Ok((new_session.token.clone(), user))
            })
            .await
    }

    /// Replaces a refresh token by the next one, or repeats the answer that replaced it; see
    /// [`decide_refresh`].
    ///
    /// A refusal is a value and not an error of the transaction: what it writes must be committed.
    pub async fn refresh(&self, token: &str, client: ClientInfo) -> Result<Session, RefreshError> {
        let now = self.clock.now();
        let verified = self.token_key.verify::<RefreshClaims>(REFRESH, token, now);
        let verified = verified.map_err(|error| match error {
            TokenError::Expired => RefreshError::Expired,
            _ => RefreshError::Invalid,
        })?;
        let user_id = verified.subject.parse().map_err(|_| RefreshError::Invalid)?;
        let (user_id, family_id) = (UserId(user_id), verified.claims.family_id);
        let (presented_hash, next) = (hash_of(token), self.new_token(user_id, family_id));
        let next_hash = hash_of(&self.sign_refresh(&next));
        let grace = self.settings.refresh_grace;
        let (method, failure) = (LoginMethod::Refresh, Some(LoginFailure::TokenReuse));
        let user = Some(user_id);
        let reuse = LoginRecord { user_id: user, method, failure, client, happened_at: now };
        let refreshed = self.db.write(move |tx| {
            let user = users::user_lock(tx, user_id)?.filter(|user| user.person.is_some());
            let Some(user) = user else {
                return Ok(RefreshOutcome::Refused(RefreshError::Revoked));
            };
            let presented = sessions::refresh_find(tx, &presented_hash)?;
            let tip = sessions::refresh_find_tip(tx, family_id)?;
            let token = match decide_refresh(presented.as_ref(), tip.as_ref(), now, grace) {
                RefreshDecision::Rotate(tip) => {
                    let rotated = sessions::refresh_rotate(tx, tip.id, next.id, now)?;
                    assert!(rotated, "the user is locked, so nobody else replaces the tip");
                    let next = RefreshToken { login_at: tip.login_at, ..next.clone() };
                    sessions::refresh_insert(tx, &next, &next_hash)?;
                    next
                }
                RefreshDecision::Repeat(tip) => tip.clone(),
                RefreshDecision::Reuse => {
                    sessions::sessions_end(tx, SessionSelection::One(family_id), now)?;
                    login_history::login_history_insert(tx, &reuse)?;
                    return Ok(RefreshOutcome::Refused(RefreshError::Reused));
                }
                RefreshDecision::Revoked => {
                    return Ok(RefreshOutcome::Refused(RefreshError::Revoked));
                }
                RefreshDecision::Expired => {
                    return Ok(RefreshOutcome::Refused(RefreshError::Expired));
                }
                RefreshDecision::Unknown => {
                    return Ok(RefreshOutcome::Refused(RefreshError::Invalid));
                }
            };
            Ok::<_, RefreshError>(RefreshOutcome::Granted {
                token: token.into(),
                user: user.into(),
            })
        });
        match refreshed.await? {
            RefreshOutcome::Granted { token, user } => Ok(self.grant(&token, &user)?),
            RefreshOutcome::Refused(refusal) => {
                if refusal == RefreshError::Reused {
                    tracing::warn!(%user_id, %family_id, "a refresh token was used again");
                }
                Err(refusal)
            }
        }
    }

    /// Ends the session of these tokens, or all of the user's.
    ///
    /// Who is logged in but does not say which session is theirs ends them all: leaving one open
    /// that was meant to be closed is worse.
    pub async fn logout(&self, logout: LogoutRequest) -> Result<(), StorageError> {
        let now = self.clock.now();
        let named = self.session_named(&logout, now);
        let ended = match (named, logout.user_id) {
            (Some((user_id, _)), _) if logout.all_devices => {
                (user_id, SessionSelection::AllOf(user_id))
            }
            (Some((user_id, family_id)), _) => (user_id, SessionSelection::One(family_id)),
            (None, Some(user_id)) => (user_id, SessionSelection::AllOf(user_id)),
            (None, None) => return Ok(()),
        };
        self.db
            .write(move |tx| match users::user_lock(tx, ended.0)? {
                Some(_) => sessions::sessions_end(tx, ended.1, now),
                None => Ok(()),
            })
            .await
    }

    /// Whose and which session the tokens of a logout prove. A session that is named by a token
    /// of someone else than the gateway knows does not count.
    fn session_named(&self, logout: &LogoutRequest, now: Timestamp) -> Option<(UserId, Uuid)> {
        let by_refresh = logout.refresh_token.as_deref().and_then(|token| {
            let verified = self.token_key.verify::<RefreshClaims>(REFRESH, token, now).ok()?;
            Some((verified.subject, verified.claims.family_id))
        });
        let by_access = || {
            let token = logout.access_token.as_deref()?;
            let verified = self.token_key.verify::<AccessClaims>(ACCESS, token, now).ok()?;
            Some((verified.subject, verified.claims.family_id))
        };
        let (subject, family_id) = by_refresh.or_else(by_access)?;
        let user_id = UserId(subject.parse().ok()?);
        let is_same = logout.user_id.is_none_or(|known| known == user_id);
        is_same.then_some((user_id, family_id))
    }

    /// Who an access token belongs to, if it is in force.
    pub async fn verify_token(&self, token: &str) -> Result<UserAccount, VerifyTokenError> {
        let now = self.clock.now();
        let verified = self.token_key.verify::<AccessClaims>(ACCESS, token, now);
        let verified = verified.map_err(|_| VerifyTokenError::Invalid)?;
        let user_id = verified.subject.parse().map_err(|_| VerifyTokenError::Invalid)?;
        let found = self.db.read(move |tx| match sessions::is_revoked(tx, verified.id)? {
            true => Ok(None),
            false => users::user_find(tx, UserId(user_id)),
        });
        let found: Result<Option<StoredUser>, StorageError> = found.await;
        let user = found?.map(|user| self.unseal(&user)).transpose()?.flatten();
        user.ok_or(VerifyTokenError::Invalid)
    }

    /// The access tokens that were revoked after the number `after`, in order. A caller that has
    /// all so far gets none.
    pub async fn list_revoked_tokens(
        &self,
        after: i64,
    ) -> Result<Vec<RevokedAccessToken>, StorageError> {
        let now = self.clock.now();
        self.db.read(move |tx| sessions::revoked_list(tx, after, now, REVOKED_LISTED_MAX)).await
    }

    /// Everything that beginning a session needs, made before the transaction.
    pub(crate) fn new_session(
        &self,
        user_id: UserId,
        method: LoginMethod,
        client: ClientInfo,
    ) -> NewSession {
        let family_id = self.ids.next_id();
        let token = self.new_token(user_id, family_id);
        let token = RefreshToken { login_at: Some(token.issued_at), ..token };
        let (failure, happened_at) = (None, token.issued_at);
        NewSession {
            hash: hash_of(&self.sign_refresh(&token)),
            record: LoginRecord { user_id: Some(user_id), method, failure, client, happened_at },
            sessions_kept: self.settings.sessions_per_user_max.saturating_sub(1),
            token,
        }
    }

    fn new_token(&self, user_id: UserId, family_id: Uuid) -> RefreshToken {
        let now = self.clock.now();
        RefreshToken {
            id: self.ids.next_id(),
            user_id,
            family_id,
            login_at: None,
            access_id: self.ids.next_id(),
            access_expires_at: now + self.settings.access_lifetime,
            access_revoked: false,
            issued_at: now,
            expires_at: now + self.settings.refresh_lifetime,
            rotated_at: None,
            revoked_at: None,
        }
    }

    /// Writes the tokens of a session out. The same row always gives the same refresh token, which
    /// is why a repeated answer needs no copy of it.
    pub(crate) fn grant(
        &self,
        token: &RefreshToken,
        user: &StoredUser,
    ) -> Result<Session, InternalError> {
        let user = self.unseal(user)?.expect("the caller saw that the account has a person");
        let claims = AccessClaims {
            email: user.person.email.as_str().to_owned(),
            role: user.role,
            family_id: token.family_id,
        };
        let issue = issue(token.user_id, token.access_id, token.issued_at, token.access_expires_at);
        let access_token = self.token_key.sign(ACCESS, &issue, &claims);
        Ok(Session { user, access_token, refresh_token: self.sign_refresh(token) })
    }

    fn sign_refresh(&self, token: &RefreshToken) -> String {
        let issue = issue(token.user_id, token.id, token.issued_at, token.expires_at);
        self.token_key.sign(REFRESH, &issue, &RefreshClaims { family_id: token.family_id })
    }

    /// The user in clear, or nobody if the account was deleted.
    pub(crate) fn unseal(&self, stored: &StoredUser) -> Result<Option<UserAccount>, InternalError> {
        let Some(sealed) = &stored.person else {
            assert_eq!(stored.status, AccountStatus::Deleted, "only they have no person");
            return Ok(None);
        };
        Ok(Some(UserAccount {
            id: stored.id,
            person: self.data_keys.open(stored.id, sealed)?,
            role: stored.role,
            language: stored.language,
            status: stored.status,
            created_at: stored.created_at,
            last_login_at: stored.last_login_at,
        }))
    }
}

/// A session about to begin.
pub(crate) struct NewSession {
    pub token: RefreshToken,
    hash: [u8; 32],
    record: LoginRecord,
    sessions_kept: u32,
}

impl NewSession {
    /// Begins it, at the cost of the oldest sessions if there are too many. The caller holds the
    /// lock of the user.
    pub fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError> {
        let RefreshToken { user_id, issued_at: now, .. } = self.token;
        for family_id in sessions::family_list_beyond(tx, user_id, self.sessions_kept, now)? {
            sessions::sessions_end(tx, SessionSelection::One(family_id), now)?;
        }
        sessions::refresh_insert(tx, &self.token, &self.hash)?;
        login_history::login_history_insert(tx, &self.record)
    }
}

fn issue(user_id: UserId, id: Uuid, issued_at: Timestamp, expires_at: Timestamp) -> Issue {
    let lifetime = expires_at.duration_since(issued_at).unsigned_abs();
    Issue { subject: user_id.to_string(), id, issued_at, lifetime }
}

/// What is stored of a secret that was given out.
pub(crate) fn hash_of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
