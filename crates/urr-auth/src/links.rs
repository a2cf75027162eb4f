//! Links that are sent by mail and work once: to verify an address, and to choose another password.
//!
//! Only the hash of a link's secret is stored. The secret follows from the link's id and a data key,
//! so the mail service can ask for it again when it repeats a mail, and a copy of the tables opens
//! no account. A link is for one state of the account: another address or password makes it void.
//!
//! Using a link proves that the address is the user's. If it was not verified before, a
//! stranger may have opened the account: what gives lasting access beside the password (linked
//! logins) ends, and so does what names that stranger if the account never bought anything.

pub mod http;
pub mod rules;
mod store;

use std::time::Duration;

use urr_contracts::events::user::AccountLinkIssued;
use urr_contracts::internal::auth::{AccountLinkAnswer, AccountLinkKind};
use urr_kernel::{CallContext, Secret, Timestamp, Uuid};
use urr_service::UserRole;
use urr_storage::{DbResult, Tx, outbox};

use crate::accounts::account::{AccountStatus, UserId};
use crate::accounts::email::Email;
use crate::accounts::store::{self as users, StoredUser};
use crate::internal_error::from_internal_errors;
use crate::links::rules::{LinkKind, check_link};
use crate::links::store::StoredLink;
use crate::passwords::rules::{InvalidPassword, Password};
use crate::sessions::hash_of;
use crate::sessions::login_history::{self, LoginMethod, LoginRecord};
use crate::sessions::store::{self as sessions, SessionSelection};
use crate::social::store as social;
use crate::{AuthService, ClientInfo, InternalError};

/// How long a request for a link counts.
pub(crate) const REQUESTS_WINDOW: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Deliberately the same for every reason.
    #[error("This link was used already or is too old. Please ask for a new one.")]
    Invalid,
    #[error("Your e-mail address is verified already.")]
    AlreadyVerified,
    #[error("We have sent several mails already. Please look for them, or try again in an hour.")]
    TooMany,
    #[error(transparent)]
    InvalidPassword(#[from] InvalidPassword),
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(LinkError);

/// A link to insert, made before the transaction.
pub(crate) struct NewLink {
    id: Uuid,
    kind: LinkKind,
    token_hash: [u8; 32],
    key_version: u16,
    email_index: Vec<u8>,
    created_at: Timestamp,
    expires_at: Timestamp,
    requests_max: u32,
    metadata: outbox::EventMetadata,
}

impl NewLink {
    /// Inserts the link for the present state of an account and asks for its mail. `false` if the
    /// address got too many lately.
    pub fn write(&self, tx: &mut Tx<'_>, user: &StoredUser) -> DbResult<bool> {
        if !self.count_request(tx)? {
            return Ok(false);
        }
        self.insert(tx, user)?;
        Ok(true)
    }

    /// Counts a request. `false` if there were too many lately.
    fn count_request(&self, tx: &mut Tx<'_>) -> DbResult<bool> {
        let since = self.created_at - REQUESTS_WINDOW;
        let max = self.requests_max;
        if store::request_count(tx, self.kind, &self.email_index, since, max)? >= max {
            return Ok(false);
        }
        store::request_insert(tx, self.kind, &self.email_index, self.created_at)?;
        Ok(true)
    }

    fn insert(&self, tx: &mut Tx<'_>, user: &StoredUser) -> DbResult<()> {
        // The index of the row: while data keys are rotated it may be that of another key.
        let person = user.person.as_ref().expect("the caller found the account by its address");
        let link = StoredLink {
            id: self.id,
            kind: self.kind,
            user_id: user.id,
            key_version: self.key_version,
            email_index: person.email_index.clone(),
            password_version: user.password_version,
            expires_at: self.expires_at,
            used_at: None,
        };
        store::link_insert(tx, &link, &self.token_hash, self.created_at)?;
        let kind = match self.kind {
            LinkKind::VerifyEmail => AccountLinkKind::VerifyEmail,
            LinkKind::ResetPassword => AccountLinkKind::ResetPassword,
        };
        let event = AccountLinkIssued { link_id: self.id, user_id: user.id.0, kind };
        outbox::append(tx, &self.metadata, &event)
    }
}

impl AuthService {
    pub(crate) fn new_link(&self, kind: LinkKind, email: &Email, context: CallContext) -> NewLink {
        let (id, now) = (self.0.ids.next_id(), self.0.clock.now());
        let key_version = self.0.data_keys.current_version();
        let token = self.0.data_keys.link_token(key_version, id);
        let token = token.expect("the current key is configured");
        NewLink {
            id,
            kind,
            token_hash: hash_of(token.expose()),
            key_version,
            email_index: self.0.data_keys.email_indexes(email).swap_remove(0),
            created_at: now,
            expires_at: now + self.0.settings.link_lifetime,
            requests_max: self.0.settings.link_requests_max,
            metadata: self.event_metadata(context),
        }
    }

    /// Sends the link that verifies the user's address once more.
    pub async fn request_verification(
        &self,
        id: UserId,
        context: CallContext,
    ) -> Result<(), LinkError> {
        let user = self.get_user(id).await.map_err(|_| LinkError::Invalid)?;
        let link = self.new_link(LinkKind::VerifyEmail, &user.person.email, context);
        let requested = self.0.db.write(move |tx| {
            let user = users::user_lock_existing(tx, id)?.ok_or(LinkError::Invalid)?;
            if user.email_verified_at.is_some() {
                return Err(LinkError::AlreadyVerified);
            }
            link.write(tx, &user)?.then_some(()).ok_or(LinkError::TooMany)
        });
        requested.await
    }

    /// Sends a link to choose another password, if the address has an account and did not get too
    /// many. The caller learns nothing of it, and an address without an account costs a write, too.
    pub async fn request_password_reset(
        &self,
        email: &Email,
        context: CallContext,
    ) -> DbResult<()> {
        let indexes = self.0.data_keys.email_indexes(email);
        let link = self.new_link(LinkKind::ResetPassword, email, context);
        let requested = self.write(move |tx| {
            if !link.count_request(tx)? {
                return Ok(());
            }
            match users::user_find_by_email(tx, &indexes)? {
                Some(user) if user.status != AccountStatus::Suspended => link.insert(tx, &user),
                Some(_) | None => Ok(()),
            }
        });
        requested.await
    }

    /// The secret of a link, for its mail. `None` if the link is void.
    pub async fn get_link(&self, id: Uuid) -> DbResult<Option<AccountLinkAnswer>> {
        let now = self.0.clock.now();
        let found = self.read(move |tx| {
            let Some(link) = store::link_find(tx, id)? else { return Ok(None) };
            let user = users::user_find(tx, link.user_id)?;
            Ok(user.filter(|user| check_link(&link, user, now).is_ok()).map(|_| link))
        });
        let Some(link) = found.await? else { return Ok(None) };
        let token = self.0.data_keys.link_token(link.key_version, id);
        Ok(token.map(|token| AccountLinkAnswer {
            token: token.expose().to_owned(),
            expires_at: link.expires_at,
        }))
    }

    /// The address of the account is verified. The sessions continue with new access tokens, which
    /// say so.
    pub async fn verify_email(&self, token: &Secret) -> Result<(), LinkError> {
        let (hash, now) = (hash_of(token.expose()), self.0.clock.now());
        let verified = self.0.db.write(move |tx| {
            let (link, user) = lock_link(tx, LinkKind::VerifyEmail, &hash, now)?;
            store::link_use(tx, link.id, now)?.then_some(()).ok_or(LinkError::Invalid)?;
            users::user_set_email_verified(tx, user.id, now)?;
            sessions::sessions_revoke_access(tx, SessionSelection::AllOf(user.id), now)?;
            Ok(())
        });
        verified.await
    }

    /// Sets another password for the holder of a link, and ends all sessions.
    pub async fn reset_password(
        &self,
        token: &Secret,
        new: &str,
        client: ClientInfo,
        context: CallContext,
    ) -> Result<(), LinkError> {
        let (hash, now) = (hash_of(token.expose()), self.0.clock.now());
        // Checked before the password is hashed, so that a guess costs us one read and no hash.
        let found = self.0.db.read(move |tx| find_link(tx, LinkKind::ResetPassword, &hash, now));
        let (_, stored) = found.await?;
        let user = self.unseal(&stored)?.ok_or(LinkError::Invalid)?;
        let password = Password::parse(new, &user.person.email)?;
        let gives_way = self.may_give_way(&stored, &context).await;
        let new_hash = self.0.passwords.hash(password).await?;
        let auth = self.clone();
        let reset = self.0.db.write(move |tx| {
            let (link, user) = lock_link(tx, LinkKind::ResetPassword, &hash, now)?;
            store::link_use(tx, link.id, now)?.then_some(()).ok_or(LinkError::Invalid)?;
            auth.take_over(tx, &user, gives_way, now)?;
            users::user_set_password(tx, user.id, &new_hash, now)?;
            sessions::sessions_end(tx, SessionSelection::AllOf(user.id), now)?;
            let record = LoginRecord {
                user_id: Some(user.id),
                family_id: None,
                method: LoginMethod::PasswordReset,
                failure: None,
                client: client.clone(),
                happened_at: now,
            };
            login_history::login_history_insert(tx, &record)?;
            Ok(())
        });
        reset.await
    }

    /// Whether an account that nobody verified gives way to the owner of its address: it never
    /// bought anything, as far as the ticket service says. No answer means no.
    pub(crate) async fn may_give_way(&self, user: &StoredUser, context: &CallContext) -> bool {
        if user.email_verified_at.is_some() || user.role != UserRole::User {
            return false;
        }
        self.holdings(user.id, context).await.is_ok_and(|answer| !answer.has_bought)
    }

    /// The owner of the address takes over an account. The caller holds the lock of the user.
    fn take_over(
        &self,
        tx: &mut Tx<'_>,
        user: &StoredUser,
        gives_way: bool,
        now: Timestamp,
    ) -> Result<(), LinkError> {
        if user.email_verified_at.is_some() {
            return Ok(());
        }
        social::identity_erase(tx, user.id)?;
        if gives_way {
            self.forget_identity(tx, user.id, now)?;
            let account = self.unseal(user)?.ok_or(LinkError::Invalid)?;
            let person = crate::PersonalDetails { phone: None, ..account.person };
            users::user_set_person(tx, user.id, &self.0.data_keys.seal(user.id, &person), now)?;
        }
        Ok(users::user_set_email_verified(tx, user.id, now)?)
    }
}

/// A link that is in force, with its user.
fn find_link(
    tx: &mut Tx<'_>,
    kind: LinkKind,
    hash: &[u8],
    now: Timestamp,
) -> Result<(StoredLink, StoredUser), LinkError> {
    let link = store::link_find_by_hash(tx, hash)?.ok_or(LinkError::Invalid)?;
    let user = users::user_find(tx, link.user_id)?.ok_or(LinkError::Invalid)?;
    if link.kind != kind || check_link(&link, &user, now).is_err() {
        return Err(LinkError::Invalid);
    }
    Ok((link, user))
}

/// The same under the lock of the user.
fn lock_link(
    tx: &mut Tx<'_>,
    kind: LinkKind,
    hash: &[u8],
    now: Timestamp,
) -> Result<(StoredLink, StoredUser), LinkError> {
    let link = store::link_find_by_hash(tx, hash)?.ok_or(LinkError::Invalid)?;
    users::user_lock_existing(tx, link.user_id)?.ok_or(LinkError::Invalid)?;
    find_link(tx, kind, hash, now)
}

/// Deletes the links of a user, whose account is being erased.
pub(crate) fn links_erase(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<()> {
    store::link_erase(tx, user_id)
}
