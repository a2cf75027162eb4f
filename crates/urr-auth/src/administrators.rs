//! Administrators: how the first one is created, and what they do with accounts.

pub mod accounts;
pub mod accounts_http;
pub mod http;
mod store;

use urr_contracts::events::user::UserRoleChanged;
use urr_kernel::{CallContext, Secret};
use urr_service::admin_log::{self, AdminAction};
use urr_service::{Page, UserRole};
use urr_storage::{DbResult, StorageError, outbox};

use crate::accounts::AccountParts;
use crate::accounts::account::{PersonalDetails, UserAccount, UserId, may_stop_being_admin};
use crate::accounts::email::Email;
use crate::accounts::profile::PersonName;
use crate::accounts::store as users;
use crate::internal_error::from_internal_errors;
use crate::passwords::rules::Password;
use crate::sessions::login_history::LoginMethod;
use crate::sessions::store::{self as sessions, SessionSelection};
use crate::sessions::{Session, hash_of};
use crate::{AuthService, ClientInfo, InternalError, RegisterError};

#[derive(Clone, Debug)]
pub struct NewAdmin {
    pub email: Email,
    pub name: PersonName,
    pub password: Password,
}

/// A change of a user's role.
#[derive(Clone, Copy, Debug)]
pub struct RoleChange {
    pub user_id: UserId,
    pub role: UserRole,
    /// The administrator who makes the change; `None` for an operator.
    pub admin_id: Option<UserId>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// It is unknown, used or too old, or there is an administrator already.
    #[error("This invitation was used already or is too old.")]
    Invalid,
    #[error("We could not register this address. Please log in if you have an account.")]
    EmailTaken,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRoleError {
    #[error("There is no such user.")]
    NotFound,
    #[error("The last administrator cannot leave. Name another first.")]
    LastAdmin,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(InviteError, ChangeRoleError);

impl AuthService {
    /// Creates an administrator's account for the operator of the installation.
    pub async fn create_admin(&self, admin: NewAdmin) -> Result<UserAccount, RegisterError> {
        let context = CallContext::root(self.0.ids.next_id());
        let method = LoginMethod::Registration;
        let account = self.new_account(admin.parts(method, ClientInfo::default(), context)).await?;
        let logged = self.admin_action(None, "ADMIN_CREATED", "user", account.id(), "");
        let opened = self.0.db.write(move |tx| {
            let user = account.write_without_session(tx)?.ok_or(RegisterError::EmailTaken)?;
            admin_log::insert(tx, &logged)?;
            Ok::<_, RegisterError>(user)
        });
        let user = opened.await?;
        Ok(self.unseal(&user)?.expect("a new account has a person"))
    }

    /// A secret that creates the first administrator's account, once. `None` if there is an
    /// administrator. Only its hash is stored, and an earlier secret stops working.
    pub async fn issue_admin_invite(&self) -> DbResult<Option<Secret>> {
        let secret = Secret::generate();
        let (hash, now) = (hash_of(secret.expose()), self.0.clock.now());
        let expires_at = now + self.0.settings.admin_invite_lifetime;
        let logged = self.admin_action(None, "ADMIN_INVITED", "admin_invite", "", "");
        let issued = self.0.db.write(move |tx| {
            if users::admin_exists(tx)? {
                return Ok(false);
            }
            store::invite_replace(tx, &hash, now, expires_at)?;
            admin_log::insert(tx, &logged)?;
            Ok::<_, StorageError>(true)
        });
        Ok(issued.await?.then_some(secret))
    }

    /// Creates the first administrator's account for the holder of the invitation.
    pub async fn redeem_admin_invite(
        &self,
        invite: &str,
        admin: NewAdmin,
        client: ClientInfo,
        context: CallContext,
    ) -> Result<Session, InviteError> {
        let (hash, now) = (hash_of(invite), self.0.clock.now());
        // Checked before the password is hashed, so that a guess costs us one read and no hash.
        if !self.read(move |tx| store::invite_is_open(tx, &hash, now)).await? {
            return Err(InviteError::Invalid);
        }
        let parts = admin.parts(LoginMethod::AdminInvite, client, context);
        let account = self.new_account(parts).await?;
        let id = account.id();
        let logged = self.admin_action(Some(id), "ADMIN_CREATED", "user", id, "by invitation");
        let opened = self.0.db.write(move |tx| {
            if users::admin_exists(tx)? || !store::invite_is_open(tx, &hash, now)? {
                return Err(InviteError::Invalid);
            }
            let user = account.write(tx)?.ok_or(InviteError::EmailTaken)?;
            if !store::invite_use(tx, &hash, account.id(), now)? {
                return Err(InviteError::Invalid);
            }
            admin_log::insert(tx, &logged)?;
            Ok((account.new_session.token.clone(), user))
        });
        let (token, user) = opened.await?;
        Ok(self.grant(&token, &user)?)
    }

    /// Gives a user another role. Their sessions continue, but need new access tokens.
    pub async fn change_role(&self, change: RoleChange) -> Result<UserAccount, ChangeRoleError> {
        let RoleChange { user_id: id, role, admin_id } = change;
        let now = self.0.clock.now();
        let logged = self.admin_action(admin_id, "ROLE_CHANGED", "user", id, role.as_str());
        let metadata = self.event_metadata(CallContext::root(self.0.ids.next_id()));
        let changed = self.0.db.write(move |tx| {
            let (user, admins) = users::user_lock_with_admins(tx, id)?;
            let user = user.filter(|user| user.person.is_some());
            let mut user = user.ok_or(ChangeRoleError::NotFound)?;
            if user.role == role {
                return Ok(user);
            }
            if user.role == UserRole::Admin && !may_stop_being_admin(id, &admins) {
                return Err(ChangeRoleError::LastAdmin);
            }
            users::user_set_role(tx, id, role, now)?;
            sessions::sessions_revoke_access(tx, SessionSelection::AllOf(id), now)?;
            admin_log::insert(tx, &logged)?;
            let event = UserRoleChanged { user_id: id.0, role: role.into() };
            outbox::append(tx, &metadata, &event)?;
            user.role = role;
            Ok(user)
        });
        let user = changed.await?;
        Ok(self.unseal(&user)?.expect("the transaction checked that the account is not deleted"))
    }

    /// One page of the accounts, the newest first, and their total.
    pub async fn list_users(&self, page: Page) -> Result<(Vec<UserAccount>, u64), InternalError> {
        let listed = self.read(move |tx| Ok((users::user_list(tx, page)?, users::user_count(tx)?)));
        let (stored, total) = listed.await?;
        Ok((self.unseal_list(&stored), total))
    }

    /// The account with this address.
    pub async fn find_user_by_email(
        &self,
        email: &Email,
    ) -> Result<Option<UserAccount>, InternalError> {
        let indexes = self.0.data_keys.email_indexes(email);
        let found = self.read(move |tx| users::user_find_by_email(tx, &indexes)).await?;
        Ok(found.map(|user| self.unseal(&user)).transpose()?.flatten())
    }
}

impl AuthService {
    /// A row of the admin log, made before the transaction that inserts it. Without an
    /// administrator it is an action of an operator.
    pub(crate) fn admin_action(
        &self,
        admin_id: Option<UserId>,
        action: &'static str,
        resource_type: &'static str,
        resource_id: impl ToString,
        summary: &str,
    ) -> AdminAction {
        AdminAction {
            id: self.0.ids.next_id(),
            admin_id: admin_id.map(|id| id.0),
            action: action.into(),
            resource_type: resource_type.into(),
            resource_id: resource_id.to_string(),
            summary: summary.to_owned(),
            details: None,
            created_at: self.0.clock.now(),
        }
    }
}

impl NewAdmin {
    fn parts(self, method: LoginMethod, client: ClientInfo, context: CallContext) -> AccountParts {
        let NewAdmin { email, name, password } = self;
        let password = Some(password);
        let person = PersonalDetails { email, name, phone: None };
        let (terms, language, role) = (None, None, UserRole::Admin);
        let email_verified = false;
        AccountParts {
            person,
            password,
            terms,
            language,
            role,
            method,
            email_verified,
            client,
            context,
        }
    }
}
