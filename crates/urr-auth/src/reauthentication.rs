//! Operations that need another proof beside the session: changing the password, deleting the
//! account, linking a social provider.
//!
//! A session may be stolen. So a user with a password must give it again. A user without one must
//! have logged in a moment ago, which needs the social provider; a refresh of an old session does
//! not count.

use std::time::Duration;

use urr_kernel::{CallContext, Secret, Timestamp};
use urr_service::UserRole;
use urr_service::token::{ACCESS, AccessClaims};
use urr_storage::{DbResult, Tx, outbox};

use crate::accounts::account::{UserAccount, UserId, may_stop_being_admin};
use crate::accounts::store as users;
use crate::bot_check::FAILURES_WINDOW;
use crate::internal_error::from_internal_errors;
use crate::links;
use crate::passwords::rules::{Password, is_too_long};
use crate::sessions::Session;
use crate::sessions::login_history::{self, LoginFailure, LoginMethod, LoginRecord};
use crate::sessions::store::{self as sessions, SessionSelection};
use crate::social::store as social;
use crate::{AuthService, ClientInfo, InternalError, InvalidPassword};
use urr_contracts::events::user::UserDeleted;

/// How recent a login must be.
const RECENT_LOGIN: Duration = Duration::from_secs(10 * 60);
/// After so many wrong passwords within [`FAILURES_WINDOW`] none is compared: a stolen session is no
/// place to guess the password.
const FAILURES_MAX: u32 = 10;

/// The proof that a user gives beside the session.
#[derive(Clone, Debug, Default)]
pub struct Reauthentication {
    /// Required if the account has one.
    pub password: Option<Secret>,
    /// Names the session, whose login must be recent if there is no password.
    pub access_token: Option<Secret>,
    /// For the history of logins, where a wrong password is a failed login.
    pub client: ClientInfo,
}

impl Reauthentication {
    pub fn by_password(password: &str) -> Reauthentication {
        let password = Some(Secret::new(password));
        Reauthentication { password, ..Reauthentication::default() }
    }

    pub fn by_session(access_token: &str) -> Reauthentication {
        let access_token = Some(Secret::new(access_token));
        Reauthentication { access_token, ..Reauthentication::default() }
    }
}

#[derive(Clone, Debug)]
pub struct PasswordChange {
    pub reauthentication: Reauthentication,
    pub new: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReauthenticationError {
    #[error("There is no such user.")]
    NotFound,
    #[error("Please give your present password.")]
    PasswordRequired,
    #[error("The password is wrong.")]
    WrongPassword,
    #[error("The password was wrong too often. Please wait a quarter of an hour.")]
    TooManyFailures,
    #[error("Please log in once more, and do this within ten minutes.")]
    RecentLoginRequired,
    #[error(transparent)]
    InvalidPassword(#[from] InvalidPassword),
    #[error("The last administrator cannot leave. Name another first.")]
    LastAdmin,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(ReauthenticationError);

impl AuthService {
    /// Sets another password, or the first one, and ends all sessions. The caller gets a new one.
    pub async fn change_password(
        &self,
        id: UserId,
        change: PasswordChange,
        client: ClientInfo,
    ) -> Result<Session, ReauthenticationError> {
        let (user, version) = self.reauthenticate(id, change.reauthentication).await?;
        let new = Password::parse(&change.new, &user.person.email)?;
        let new_hash = self.0.passwords.hash(new).await?;
        let new_session = self.new_session(id, LoginMethod::PasswordChange, client);
        let changed = self.0.db.write(move |tx| {
            let user = users::user_lock_existing(tx, id)?.ok_or(ReauthenticationError::NotFound)?;
            if user.password_version != version {
                return Err(ReauthenticationError::WrongPassword);
            }
            let now = new_session.token.issued_at;
            users::user_set_password(tx, id, &new_hash, now)?;
            sessions::sessions_end(tx, SessionSelection::AllOf(id), now)?;
            new_session.write(tx)?;
            Ok::<_, ReauthenticationError>((new_session.token.clone(), user))
        });
        let (token, user) = changed.await?;
        Ok(self.grant(&token, &user)?)
    }

    /// Deletes the account, whatever is lost with it; see [`AuthService::close_account`].
    pub async fn delete_user(
        &self,
        id: UserId,
        reauthentication: Reauthentication,
        context: CallContext,
    ) -> Result<(), ReauthenticationError> {
        let (_, version) = self.reauthenticate(id, reauthentication).await?;
        self.erase_account(id, version, context).await
    }

    /// Deletes the account of a user who gave the password of this version.
    pub(crate) async fn erase_account(
        &self,
        id: UserId,
        version: u32,
        context: CallContext,
    ) -> Result<(), ReauthenticationError> {
        let (auth, now, metadata) =
            (self.clone(), self.0.clock.now(), self.event_metadata(context));
        let written = self.0.db.write(move |tx| {
            let (user, admins) = users::user_lock_with_admins(tx, id)?;
            let user = user.filter(|user| user.person.is_some());
            let user = user.ok_or(ReauthenticationError::NotFound)?;
            if user.password_version != version {
                return Err(ReauthenticationError::WrongPassword);
            }
            if user.role == UserRole::Admin && !may_stop_being_admin(id, &admins) {
                return Err(ReauthenticationError::LastAdmin);
            }
            Ok(auth.account_erase(tx, id, now, &metadata)?)
        });
        written.await
    }

    /// Ends the sessions and erases the personal data; the address can be registered again. The
    /// caller holds the lock of the user.
    pub(crate) fn account_erase(
        &self,
        tx: &mut Tx<'_>,
        id: UserId,
        now: Timestamp,
        metadata: &outbox::EventMetadata,
    ) -> DbResult<()> {
        sessions::sessions_end(tx, SessionSelection::AllOf(id), now)?;
        users::user_erase(tx, id, now)?;
        login_history::login_history_erase(tx, id)?;
        social::identity_erase(tx, id)?;
        links::links_erase(tx, id)?;
        self.forget_identity(tx, id, now)?;
        outbox::append(tx, metadata, &UserDeleted { user_id: id.0 })
    }

    /// Checks the proof. Returns the user and the version of the password.
    pub(crate) async fn reauthenticate(
        &self,
        id: UserId,
        reauthentication: Reauthentication,
    ) -> Result<(UserAccount, u32), ReauthenticationError> {
        let stored = self.read(move |tx| users::user_find(tx, id)).await?;
        let stored = stored.ok_or(ReauthenticationError::NotFound)?;
        let user = self.unseal(&stored)?.ok_or(ReauthenticationError::NotFound)?;
        match stored.password_hash {
            Some(hash) => self.check_password(&user, hash, reauthentication).await?,
            None => self.check_recent_login(id, reauthentication.access_token).await?,
        }
        Ok((user, stored.password_version))
    }

    /// Checks the password if it is given, and the recent login otherwise.
    pub(crate) async fn reauthenticate_either_way(
        &self,
        id: UserId,
        reauthentication: Reauthentication,
    ) -> Result<(), ReauthenticationError> {
        match reauthentication {
            Reauthentication { password: Some(_), .. } => {
                self.reauthenticate(id, reauthentication).await.map(drop)
            }
            Reauthentication { password: None, access_token, .. } => {
                self.check_recent_login(id, access_token).await
            }
        }
    }

    /// Compares the password. A wrong one counts as a failed login of the account.
    async fn check_password(
        &self,
        user: &UserAccount,
        hash: String,
        reauthentication: Reauthentication,
    ) -> Result<(), ReauthenticationError> {
        let Reauthentication { password, client, .. } = reauthentication;
        let password = password.ok_or(ReauthenticationError::PasswordRequired)?;
        if is_too_long(password.expose()) {
            return Err(ReauthenticationError::WrongPassword);
        }
        let attempt = self.begin_attempt(user.id, client).await?;
        let compared = self.0.passwords.compare(password, Some(hash)).await;
        if let Ok(compared) = &compared
            && !compared.matches
        {
            self.note_failed_login(&user.person.email).await?;
            return Err(ReauthenticationError::WrongPassword);
        }
        // The attempt also does not count if the password could not be compared.
        self.write(move |tx| login_history::reauthentication_passed(tx, attempt)).await?;
        compared?;
        Ok(())
    }

    async fn begin_attempt(
        &self,
        id: UserId,
        client: ClientInfo,
    ) -> Result<i64, ReauthenticationError> {
        let now = self.0.clock.now();
        let record = LoginRecord {
            user_id: Some(id),
            family_id: None,
            method: LoginMethod::Reauthentication,
            failure: Some(LoginFailure::WrongPassword),
            client,
            happened_at: now,
        };
        let begun = self.0.db.write(move |tx| {
            users::user_lock_existing(tx, id)?.ok_or(ReauthenticationError::NotFound)?;
            let since = now - FAILURES_WINDOW;
            let begun = login_history::reauthentication_begin(tx, &record, since, FAILURES_MAX)?;
            begun.ok_or(ReauthenticationError::TooManyFailures)
        });
        begun.await
    }

    async fn check_recent_login(
        &self,
        id: UserId,
        access_token: Option<Secret>,
    ) -> Result<(), ReauthenticationError> {
        let not_recent = ReauthenticationError::RecentLoginRequired;
        let Some(token) = access_token else { return Err(not_recent) };
        let now = self.0.clock.now();
        let verified = self.0.token_key.verify::<AccessClaims>(ACCESS, token.expose(), now);
        let Ok(verified) = verified else { return Err(not_recent) };
        let family_id = verified.claims.family_id;
        let find = self.read(move |tx| sessions::session_login_at(tx, id, family_id));
        match find.await? {
            Some(login_at) if now < login_at + RECENT_LOGIN => Ok(()),
            _ => Err(not_recent),
        }
    }
}
