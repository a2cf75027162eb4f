//! Administrators: how the first one comes, and what they do with accounts.

pub mod http;
mod store;

use urr_kernel::{CallContext, Secret};
use urr_service::{Page, Role};
use urr_storage::{StorageError, Tx};

use crate::accounts::AccountParts;
use crate::accounts::account::{PersonalDetails, UserAccount, UserId, may_stop_being_admin};
use crate::accounts::email::Email;
use crate::accounts::profile::PersonName;
use crate::accounts::store::{self as users, StoredUser};
use crate::internal_error::from_internal_errors;
use crate::passwords::rules::Password;
use crate::sessions::login_history::{ClientInfo, LoginMethod};
use crate::sessions::store::{self as sessions, SessionSelection};
use crate::sessions::{Session, hash_of};
use crate::{AuthService, InternalError, RegisterError};

/// What an administrator's account is opened with.
#[derive(Clone, Debug)]
pub struct NewAdmin {
    pub email: Email,
    pub name: PersonName,
    pub password: Password,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    #[error("the invitation is unknown, used or too old, or there is an administrator already")]
    Invalid,
    #[error("the address has an account already")]
    EmailTaken,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRoleError {
    #[error("there is no such user")]
    NotFound,
    #[error("the last administrator cannot leave")]
    LastAdmin,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(InviteError, ChangeRoleError);

impl AuthService {
    /// Opens an administrator's account, for whoever runs the installation.
    pub async fn create_admin(&self, admin: NewAdmin) -> Result<UserAccount, RegisterError> {
        let context = CallContext::root(self.ids.next_id());
        let method = LoginMethod::Registration;
        let account = self.new_account(admin.parts(method, ClientInfo::default(), context)).await?;
        let opened = self.db.write(move |tx| account.write_without_session(tx));
        let user = opened.await?.ok_or(RegisterError::EmailTaken)?;
        Ok(self.unseal(&user)?.expect("a new account has a person"))
    }

    /// A secret with which the first administrator's account can be opened, once. `None` if there
    /// is an administrator. Only its hash is stored, and an earlier one stops working.
    pub async fn issue_admin_invite(&self) -> Result<Option<Secret>, StorageError> {
        let secret = Secret::generate();
        let (hash, now) = (hash_of(secret.expose()), self.clock.now());
        let expires_at = now + self.settings.admin_invite_lifetime;
        let issued = self.db.write(move |tx| {
            if users::admin_exists(tx)? {
                return Ok(false);
            }
            store::invite_replace(tx, &hash, now, expires_at)?;
            Ok::<_, StorageError>(true)
        });
        Ok(issued.await?.then_some(secret))
    }

    /// Opens the first administrator's account for who holds the invitation.
    pub async fn redeem_admin_invite(
        &self,
        invite: &str,
        admin: NewAdmin,
        client: ClientInfo,
        context: CallContext,
    ) -> Result<Session, InviteError> {
        let (hash, now) = (hash_of(invite), self.clock.now());
        // Before a password is hashed: a guess must not cost us more than a look.
        let is_open = move |tx: &mut Tx<'_>| store::invite_is_open(tx, &hash, now);
        if !self.db.read(is_open).await? {
            return Err(InviteError::Invalid);
        }
        let parts = admin.parts(LoginMethod::AdminInvite, client, context);
        let account = self.new_account(parts).await?;
        let opened = self.db.write(move |tx| {
            if users::admin_exists(tx)? || !store::invite_is_open(tx, &hash, now)? {
                return Err(InviteError::Invalid);
            }
            let user = account.write(tx)?.ok_or(InviteError::EmailTaken)?;
            if !store::invite_use(tx, &hash, account.id(), now)? {
                return Err(InviteError::Invalid);
            }
            Ok((account.new_session.token.clone(), user))
        });
        let (token, user) = opened.await?;
        Ok(self.grant(&token, &user)?)
    }

    /// Gives a user another role. Their sessions go on, but with new access tokens only.
    pub async fn change_role(
        &self,
        id: UserId,
        role: Role,
    ) -> Result<UserAccount, ChangeRoleError> {
        let now = self.clock.now();
        let changed = self.db.write(move |tx| {
            let (user, admins) = users::user_lock_with_admins(tx, id)?;
            let user = user.filter(|user| user.person.is_some());
            let mut user = user.ok_or(ChangeRoleError::NotFound)?;
            if user.role == role {
                return Ok(user);
            }
            if user.role == Role::Admin && !may_stop_being_admin(id, &admins) {
                return Err(ChangeRoleError::LastAdmin);
            }
            users::user_set_role(tx, id, role, now)?;
            sessions::sessions_revoke_access(tx, SessionSelection::AllOf(id), now)?;
            user.role = role;
            Ok(user)
        });
        let user = changed.await?;
        Ok(self.unseal(&user)?.expect("the transaction saw that the account has a person"))
    }

    /// One page of the accounts, the newest first, and how many there are.
    pub async fn list_users(&self, page: Page) -> Result<(Vec<UserAccount>, u64), InternalError> {
        let list = move |tx: &mut Tx<'_>| Ok((users::user_list(tx, page)?, users::user_count(tx)?));
        let listed: Result<(Vec<StoredUser>, u64), StorageError> = self.db.read(list).await;
        let (stored, total) = listed?;
        let users = stored.iter().map(|user| self.unseal(user));
        let users: Result<Vec<UserAccount>, InternalError> =
            users.filter_map(Result::transpose).collect();
        Ok((users?, total))
    }

    /// The account with this address.
    pub async fn find_user_by_email(
        &self,
        email: &Email,
    ) -> Result<Option<UserAccount>, InternalError> {
        let indexes = self.data_keys.email_indexes(email);
        let find = move |tx: &mut Tx<'_>| users::user_find_by_email(tx, &indexes);
        let found: Option<StoredUser> = self.db.read(find).await?;
        Ok(found.map(|user| self.unseal(&user)).transpose()?.flatten())
    }
}

impl NewAdmin {
    fn parts(self, method: LoginMethod, client: ClientInfo, context: CallContext) -> AccountParts {
        let NewAdmin { email, name, password } = self;
        let password = Some(password);
        let person = PersonalDetails { email, name, phone: None };
        let (terms, language, role) = (None, None, Role::Admin);
        AccountParts { person, password, terms, language, role, method, client, context }
    }
}
