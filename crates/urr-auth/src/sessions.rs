//! Sessions: a login starts one, a refresh continues it, and a logout ends it.

pub mod client_info;
pub mod cookies;
mod device;
pub mod http;
pub mod login_history;
pub mod own;
pub mod own_http;
pub mod refresh;
pub mod store;

use std::time::Duration;

use sha2::{Digest, Sha256};
use urr_contracts::internal::auth::RevokedTokenEntry;
use urr_kernel::{Secret, Timestamp, Uuid};
use urr_service::token::{ACCESS, AccessClaims, REFRESH, RefreshClaims, TokenError, TokenFacts};
use urr_storage::{DbResult, Tx};

use crate::accounts::Credentials;
use crate::accounts::account::{AccountStatus, UserAccount, UserId};
use crate::accounts::store::{self as users, StoredUser};
use crate::internal_error::from_internal_errors;
use crate::passwords::rules::is_too_long;
use crate::sessions::login_history::{LoginFailure, LoginMethod, LoginRecord};
use crate::sessions::refresh::{RefreshDecision, StoredRefreshToken, decide_refresh};
use crate::sessions::store::{self as sessions, SessionSelection};
use crate::{AuthService, ClientInfo, InternalError, Password};

/// How many revoked tokens one call lists at most.
const REVOKED_LISTED_MAX: u32 = 1_000;

/// A user with the tokens that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub user: UserAccount,
    pub access_token: String,
    /// How long the access token is still valid.
    pub expires_in: Duration,
    pub refresh_token: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Deliberately the same for an unknown address and a wrong password.
    #[error("The e-mail address or the password is wrong.")]
    InvalidCredentials,
    /// Told only to who knows the password.
    #[error("Your account is suspended. Please write to us.")]
    Suspended,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefreshError {
    #[error("Please log in again.")]
    Invalid,
    #[error("Your session has expired. Please log in again.")]
    Expired,
    #[error("You were logged out. Please log in again.")]
    Revoked,
    #[error(
        "For your safety this session was ended, because its token was used twice. Please log in \
         again."
    )]
    Reused,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyTokenError {
    #[error("The token is not valid.")]
    Invalid,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(LoginError, RefreshError, VerifyTokenError);

#[derive(Clone, Debug, Default)]
pub struct LogoutRequest {
    pub refresh_token: Option<String>,
    /// It names a session, too.
    pub access_token: Option<String>,
    /// The user that the gateway has authenticated.
    pub user_id: Option<UserId>,
    pub all_devices: bool,
}

impl AuthService {
    /// Checks address and password, and starts a session.
    pub async fn login(
        &self,
        credentials: Credentials,
        client: ClientInfo,
    ) -> Result<Session, LoginError> {
        let Credentials { email, password } = credentials;
        if is_too_long(password.expose()) {
            return Err(LoginError::InvalidCredentials);
        }
        let indexes = self.0.data_keys.email_indexes(&email);
        let found = self.read(move |tx| users::user_find_by_email(tx, &indexes)).await?;
        let stored_hash = found.as_ref().and_then(|user| user.password_hash.clone());
        let compared = self.0.passwords.compare(password.clone(), stored_hash).await?;
        let (Some(user), true) = (&found, compared.matches) else {
            let user_id = found.as_ref().map(|user| user.id);
            let failure = match user_id {
                Some(_) => LoginFailure::WrongPassword,
                None => LoginFailure::UnknownEmail,
            };
            self.record_failed_login(user_id, failure, client).await?;
            return Err(LoginError::InvalidCredentials);
        };
        if user.status == AccountStatus::Suspended {
            self.record_failed_login(Some(user.id), LoginFailure::Suspended, client).await?;
            return Err(LoginError::Suspended);
        }
        let better_hash = match compared.is_outdated {
            true => self.rehash(&password).await,
            false => None,
        };
        let logged_in = self.start_session(user, better_hash, client).await?;
        Ok(self.grant(&logged_in.0, &logged_in.1)?)
    }

    /// Hashes a correct password with today's cost. `None` if the pool is busy.
    async fn rehash(&self, password: &Secret) -> Option<String> {
        self.0.passwords.hash(Password::already_in_use(password.clone())).await.ok()
    }

    async fn record_failed_login(
        &self,
        user_id: Option<UserId>,
        failure: LoginFailure,
        client: ClientInfo,
    ) -> DbResult<()> {
        let (method, happened_at) = (LoginMethod::Password, self.0.clock.now());
        let (family_id, failure) = (None, Some(failure));
        let record = LoginRecord { user_id, family_id, method, failure, client, happened_at };
        self.0.db.write(move |tx| login_history::login_history_insert(tx, &record)).await
    }

    /// Starts a session for a user whose password was compared.
    async fn start_session(
        &self,
        compared: &StoredUser,
        better_hash: Option<String>,
        client: ClientInfo,
    ) -> Result<(StoredRefreshToken, StoredUser), LoginError> {
        let (id, version) = (compared.id, compared.password_version);
        let new_session = self.new_session(id, LoginMethod::Password, client);
        let written = self.0.db.write(move |tx| {
            let user = users::user_lock_existing(tx, id)?;
            // Between the comparison and now the password may have changed.
            let Some(user) = user.filter(|user| user.password_version == version) else {
                return Err(LoginError::InvalidCredentials);
            };
            if user.status == AccountStatus::Suspended {
                return Err(LoginError::Suspended);
            }
            users::user_mark_login(tx, id, new_session.token.issued_at)?;
            if let Some(hash) = &better_hash {
                users::user_set_password_hash(tx, id, hash)?;
            }
            new_session.write(tx)?;
            Ok((new_session.token.clone(), user))
        });
        written.await
    }

    /// Replaces a refresh token by the next one, or repeats the answer that replaced it; see
    /// [`decide_refresh`].
    ///
    /// A rejection is a value and not an error of the transaction, because what it writes must be
    /// committed.
    pub async fn refresh(&self, token: &str, client: ClientInfo) -> Result<Session, RefreshError> {
        let now = self.0.clock.now();
        let verified = self.0.token_key.verify::<RefreshClaims>(REFRESH, token, now);
        let verified = verified.map_err(|error| match error {
            TokenError::Expired => RefreshError::Expired,
            _ => RefreshError::Invalid,
        })?;
        let user_id = verified.subject.parse().map_err(|_| RefreshError::Invalid)?;
        let (user_id, family_id) = (UserId(user_id), verified.claims.family_id);
        let (presented_hash, next) = (hash_of(token), self.new_token(user_id, family_id));
        let next_hash = hash_of(&self.sign_refresh(&next));
        let grace = self.0.settings.refresh_grace;
        let (method, failure) = (LoginMethod::Refresh, Some(LoginFailure::TokenReuse));
        let reuse = LoginRecord {
            user_id: Some(user_id),
            family_id: None,
            method,
            failure,
            client,
            happened_at: now,
        };
        let refreshed = self.0.db.write(move |tx| {
            let Some(user) = users::user_lock_existing(tx, user_id)? else {
                return Ok(Err(RefreshError::Revoked));
            };
            let presented = sessions::refresh_find(tx, &presented_hash)?;
            let tip = sessions::refresh_find_tip(tx, family_id)?;
            let token = match decide_refresh(presented.as_ref(), tip.as_ref(), now, grace) {
                RefreshDecision::Rotate(tip) => {
                    let rotated = sessions::refresh_rotate(tx, tip.id, next.id, now)?;
                    assert!(rotated, "the user is locked, so no other request replaces the tip");
                    let next = StoredRefreshToken { login_at: tip.login_at, ..next.clone() };
                    sessions::refresh_insert(tx, &next, &next_hash)?;
                    next
                }
                RefreshDecision::Repeat(tip) => tip.clone(),
                RefreshDecision::Reuse => {
                    sessions::sessions_end(tx, SessionSelection::One(family_id), now)?;
                    login_history::login_history_insert(tx, &reuse)?;
                    return Ok(Err(RefreshError::Reused));
                }
                RefreshDecision::Revoked => return Ok(Err(RefreshError::Revoked)),
                RefreshDecision::Expired => return Ok(Err(RefreshError::Expired)),
                RefreshDecision::Unknown => return Ok(Err(RefreshError::Invalid)),
            };
            Ok::<_, RefreshError>(Ok((token, user)))
        });
        let granted = refreshed.await?;
        if matches!(granted, Err(RefreshError::Reused)) {
            tracing::warn!(%user_id, %family_id, "a refresh token was used again");
        }
        let (token, user) = granted?;
        Ok(self.grant(&token, &user)?)
    }

    /// Ends the session of these tokens, or all of the user's.
    ///
    /// Without a token that names the session, all sessions of the user end: leaving the wrong one
    /// open would be worse.
    pub async fn logout(&self, logout: LogoutRequest) -> DbResult<()> {
        let now = self.0.clock.now();
        let named = self.named_session(&logout, now);
        let ended = match (named, logout.user_id) {
            (Some((user_id, _)), _) if logout.all_devices => {
                (user_id, SessionSelection::AllOf(user_id))
            }
            (Some((user_id, family_id)), _) => (user_id, SessionSelection::One(family_id)),
            (None, Some(user_id)) => (user_id, SessionSelection::AllOf(user_id)),
            (None, None) => return Ok(()),
        };
        self.0
            .db
            .write(move |tx| match users::user_lock(tx, ended.0)? {
                Some(_) => sessions::sessions_end(tx, ended.1, now),
                None => Ok(()),
            })
            .await
    }

    /// The user and the session that the tokens of a logout name. A token of another user than the
    /// authenticated one does not count.
    fn named_session(&self, logout: &LogoutRequest, now: Timestamp) -> Option<(UserId, Uuid)> {
        let by_refresh = logout.refresh_token.as_deref().and_then(|token| {
            let verified = self.0.token_key.verify::<RefreshClaims>(REFRESH, token, now).ok()?;
            Some((verified.subject, verified.claims.family_id))
        });
        let by_access = || {
            let token = logout.access_token.as_deref()?;
            let verified = self.0.token_key.verify::<AccessClaims>(ACCESS, token, now).ok()?;
            Some((verified.subject, verified.claims.family_id))
        };
        let (subject, family_id) = by_refresh.or_else(by_access)?;
        let user_id = UserId(subject.parse().ok()?);
        let is_same = logout.user_id.is_none_or(|known| known == user_id);
        is_same.then_some((user_id, family_id))
    }

    /// The user of an access token, if it is valid.
    pub async fn verify_token(&self, token: &str) -> Result<UserAccount, VerifyTokenError> {
        let now = self.0.clock.now();
        let verified = self.0.token_key.verify::<AccessClaims>(ACCESS, token, now);
        let verified = verified.map_err(|_| VerifyTokenError::Invalid)?;
        let user_id = verified.subject.parse().map_err(|_| VerifyTokenError::Invalid)?;
        let found = self.read(move |tx| match sessions::is_revoked(tx, verified.id)? {
            true => Ok(None),
            false => users::user_find(tx, UserId(user_id)),
        });
        let user = found.await?.map(|user| self.unseal(&user)).transpose()?.flatten();
        user.ok_or(VerifyTokenError::Invalid)
    }

    /// The access tokens that were revoked after the sequence number `after`, in order.
    pub async fn list_revoked_tokens(&self, after: i64) -> DbResult<Vec<RevokedTokenEntry>> {
        let now = self.0.clock.now();
        self.0.db.read(move |tx| sessions::revoked_list(tx, after, now, REVOKED_LISTED_MAX)).await
    }

    /// A new session, made before the transaction that inserts it.
    pub(crate) fn new_session(
        &self,
        user_id: UserId,
        method: LoginMethod,
        client: ClientInfo,
    ) -> NewSession {
        let family_id = self.0.ids.next_id();
        let token = self.new_token(user_id, family_id);
        let token = StoredRefreshToken { login_at: Some(token.issued_at), ..token };
        let (failure, happened_at) = (None, token.issued_at);
        NewSession {
            hash: hash_of(&self.sign_refresh(&token)),
            record: LoginRecord {
                user_id: Some(user_id),
                family_id: Some(family_id),
                method,
                failure,
                client,
                happened_at,
            },
            sessions_kept: self.0.settings.sessions_per_user_max.saturating_sub(1),
            token,
        }
    }

    fn new_token(&self, user_id: UserId, family_id: Uuid) -> StoredRefreshToken {
        let now = self.0.clock.now();
        StoredRefreshToken {
            id: self.0.ids.next_id(),
            user_id,
            family_id,
            login_at: None,
            access_id: self.0.ids.next_id(),
            access_expires_at: now + self.0.settings.access_lifetime,
            access_revoked: false,
            issued_at: now,
            expires_at: now + self.0.settings.refresh_lifetime,
            rotated_at: None,
            revoked_at: None,
        }
    }

    /// Signs the tokens of a session. The same row always gives the same refresh token, so a
    /// repeated answer needs no stored copy of it.
    pub(crate) fn grant(
        &self,
        token: &StoredRefreshToken,
        user: &StoredUser,
    ) -> Result<Session, InternalError> {
        let user = self.unseal(user)?.expect("the caller checked that the account is not deleted");
        let claims = AccessClaims {
            email: user.person.email.as_str().to_owned(),
            role: user.role,
            family_id: token.family_id,
            email_verified: user.email_verified,
        };
        let issue = issue(token.user_id, token.access_id, token.issued_at, token.access_expires_at);
        let access_token = self.0.token_key.sign(ACCESS, &issue, &claims);
        let expires_in = token.access_expires_at.duration_since(self.0.clock.now());
        let expires_in = Duration::try_from(expires_in).unwrap_or_default();
        Ok(Session { user, access_token, expires_in, refresh_token: self.sign_refresh(token) })
    }

    fn sign_refresh(&self, token: &StoredRefreshToken) -> String {
        let issue = issue(token.user_id, token.id, token.issued_at, token.expires_at);
        self.0.token_key.sign(REFRESH, &issue, &RefreshClaims { family_id: token.family_id })
    }

    /// The decrypted accounts of a list. A row that cannot be read is left out and logged: it must not
    /// hide the others.
    pub(crate) fn unseal_list(&self, stored: &[StoredUser]) -> Vec<UserAccount> {
        let unsealed = stored.iter().filter_map(|user| match self.unseal(user) {
            Ok(account) => account,
            Err(error) => {
                tracing::error!(user_id = %user.id, %error, "an account cannot be read");
                None
            }
        });
        unsealed.collect()
    }

    /// The decrypted account, or `None` if it was deleted.
    pub(crate) fn unseal(&self, stored: &StoredUser) -> Result<Option<UserAccount>, InternalError> {
        let Some(sealed) = &stored.person else {
            assert_eq!(stored.status, AccountStatus::Deleted, "only they have no person");
            return Ok(None);
        };
        Ok(Some(UserAccount {
            id: stored.id,
            person: self.0.data_keys.open(stored.id, sealed)?,
            email_verified: stored.email_verified_at.is_some(),
            role: stored.role,
            language: stored.language,
            status: stored.status,
            created_at: stored.created_at,
            last_login_at: stored.last_login_at,
        }))
    }
}

/// A session to insert.
pub(crate) struct NewSession {
    pub token: StoredRefreshToken,
    hash: [u8; 32],
    record: LoginRecord,
    sessions_kept: u32,
}

impl NewSession {
    /// Inserts it, and ends the oldest sessions if there are too many. The caller holds the lock of
    /// the user.
    pub fn write(&self, tx: &mut Tx<'_>) -> DbResult<()> {
        let StoredRefreshToken { user_id, issued_at: now, .. } = self.token;
        for family_id in sessions::family_list_beyond(tx, user_id, self.sessions_kept, now)? {
            sessions::sessions_end(tx, SessionSelection::One(family_id), now)?;
        }
        sessions::refresh_insert(tx, &self.token, &self.hash)?;
        login_history::login_history_insert(tx, &self.record)
    }
}

fn issue(user_id: UserId, id: Uuid, issued_at: Timestamp, expires_at: Timestamp) -> TokenFacts {
    let lifetime = expires_at.duration_since(issued_at).unsigned_abs();
    TokenFacts { subject: user_id.to_string(), id, issued_at, lifetime }
}

/// The hash that is stored of a secret.
pub(crate) fn hash_of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
