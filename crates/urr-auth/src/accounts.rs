//! Accounts: opening one, changing it, closing it.

use urr_kernel::{CallContext, Secret};
use urr_service::Role;
use urr_storage::{StorageError, Tx, outbox};

use crate::domain::account::{AccountStatus, Person, User, UserId, may_leave_office};
use crate::domain::email::Email;
use crate::domain::password::{Password, is_too_long};
use crate::domain::profile::{Name, Phone};
use crate::domain::terms::Terms;
use crate::events::{UserDeleted, UserRegistered};
use crate::fault::from_faults;
use crate::sessions::{Opening, Session};
use crate::store::records::{self, LoginMethod, Origin};
use crate::store::sessions::{self, Sessions};
use crate::store::social;
use crate::store::users::{self, StoredUser};
use crate::{Auth, Fault, SOURCE, identity_check};

/// What someone who registers says.
#[derive(Clone, Debug)]
pub struct Registration {
    pub person: Person,
    pub password: Password,
    pub terms: Terms,
}

/// What someone who logs in says.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub email: Email,
    pub password: Secret,
}

/// A new password, and the old one as proof.
#[derive(Clone, Debug)]
pub struct PasswordChange {
    pub old: Secret,
    pub new: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    #[error("the address has an account already")]
    EmailTaken,
    #[error(transparent)]
    Fault(#[from] Fault),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    #[error("there is no such user")]
    NotFound,
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Why something that needs the password once more was not done.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmedError {
    #[error("there is no such user")]
    NotFound,
    #[error("the password is wrong")]
    WrongPassword,
    #[error("the new password cannot be taken: {0}")]
    InvalidPassword(crate::InvalidPassword),
    #[error("the last administrator cannot leave")]
    LastAdmin,
    #[error(transparent)]
    Fault(#[from] Fault),
}

from_faults!(RegisterError, UserError, ConfirmedError);

/// An account about to be opened, with its first session.
pub(crate) struct NewAccount {
    user: StoredUser,
    email_indexes: Vec<Vec<u8>>,
    terms: Option<Terms>,
    pub opening: Opening,
    stamp: outbox::Stamp,
}

impl NewAccount {
    pub fn id(&self) -> UserId {
        self.user.id
    }

    /// Opens it with its first session. `None`: the address is taken, and nothing was written.
    pub fn write(&self, tx: &mut Tx<'_>) -> Result<Option<StoredUser>, StorageError> {
        let user = self.write_without_session(tx)?;
        if user.is_some() {
            self.opening.write(tx)?;
        }
        Ok(user)
    }

    /// Opens it and announces it.
    pub fn write_without_session(
        &self,
        tx: &mut Tx<'_>,
    ) -> Result<Option<StoredUser>, StorageError> {
        // The unique index guards the current key only. While keys are being changed, the address
        // may still be stored under another.
        if users::user_find_by_email(tx, &self.email_indexes)?.is_some() {
            return Ok(None);
        }
        if !users::user_insert(tx, &self.user)? {
            return Ok(None);
        }
        let StoredUser { id, created_at: now, .. } = self.user;
        if let Some(terms) = &self.terms {
            records::terms_insert(tx, id, terms, now)?;
        }
        outbox::append(tx, &self.stamp, &UserRegistered { user_id: id.0 })?;
        Ok(Some(self.user.clone()))
    }
}

/// What `Auth::new_account` puts together.
pub(crate) struct AccountParts {
    pub person: Person,
    /// None: one gets in by another service only.
    pub password: Option<Password>,
    pub terms: Option<Terms>,
    pub role: Role,
    pub method: LoginMethod,
    pub origin: Origin,
    pub context: CallContext,
}

impl Auth {
    /// Opens an account and begins its first session.
    pub async fn register(
        &self,
        registration: Registration,
        origin: Origin,
        context: CallContext,
    ) -> Result<Session, RegisterError> {
        let Registration { person, password, terms } = registration;
        let (password, terms) = (Some(password), Some(terms));
        let (role, method) = (Role::User, LoginMethod::Registration);
        let parts = AccountParts { person, password, terms, role, method, origin, context };
        let account = self.new_account(parts).await?;
        let opened = self.db.write(move |tx| {
            let user = account.write(tx)?.ok_or(RegisterError::EmailTaken)?;
            Ok::<_, RegisterError>((account.opening.token.clone(), user))
        });
        let (token, user) = opened.await?;
        Ok(self.grant(&token, &user)?)
    }

    /// Everything a new account needs, made before the transaction. The password is hashed even
    /// if the address is taken: the time must not tell.
    pub(crate) async fn new_account(&self, parts: AccountParts) -> Result<NewAccount, Fault> {
        let AccountParts { person, password, terms, role, method, origin, context } = parts;
        let password_hash = match password {
            Some(password) => Some(self.passwords.hash(password).await?),
            None => None,
        };
        let (id, now) = (UserId(self.ids.next_id()), self.clock.now());
        let sealed = self.data_keys.seal(id, &person);
        let user = StoredUser {
            id,
            person: Some(sealed),
            password_hash,
            password_version: 1,
            role,
            status: AccountStatus::Active,
            created_at: now,
            last_login_at: now,
        };
        Ok(NewAccount {
            user,
            email_indexes: self.data_keys.email_indexes(&person.email),
            terms,
            opening: self.opening(id, method, origin),
            stamp: self.stamp(context),
        })
    }

    pub async fn get_user(&self, id: UserId) -> Result<User, UserError> {
        let find = move |tx: &mut Tx<'_>| users::user_find(tx, id);
        let found: Option<StoredUser> = self.db.read(find).await?;
        let user = found.map(|user| self.unseal(&user)).transpose()?.flatten();
        user.ok_or(UserError::NotFound)
    }

    /// The users among these ids who exist.
    pub async fn get_users(&self, ids: Vec<UserId>) -> Result<Vec<User>, Fault> {
        let find = move |tx: &mut Tx<'_>| users::user_find_many(tx, &ids);
        let found: Vec<StoredUser> = self.db.read(find).await?;
        let users = found.iter().map(|user| self.unseal(user));
        users.filter_map(Result::transpose).collect()
    }

    /// Replaces name and phone.
    pub async fn update_profile(
        &self,
        id: UserId,
        name: Name,
        phone: Option<Phone>,
    ) -> Result<User, UserError> {
        let (auth, now) = (self.clone(), self.clock.now());
        self.db
            .write(move |tx| {
                let stored = users::user_lock(tx, id)?.ok_or(UserError::NotFound)?;
                let mut user = auth.unseal(&stored)?.ok_or(UserError::NotFound)?;
                user.person.name = name.clone();
                user.person.phone = phone.clone();
                users::user_set_person(tx, id, &auth.data_keys.seal(id, &user.person), now)?;
                Ok(user)
            })
            .await
    }

    /// Changes the password and ends every session, whoever holds it. The caller goes on in a
    /// new one.
    pub async fn change_password(
        &self,
        id: UserId,
        change: PasswordChange,
        origin: Origin,
    ) -> Result<Session, ConfirmedError> {
        let (user, version) = self.confirm_password(id, change.old).await?;
        let new = Password::parse(&change.new, &user.person.email);
        let new_hash = self.passwords.hash(new.map_err(ConfirmedError::InvalidPassword)?).await?;
        let opening = self.opening(id, LoginMethod::PasswordChange, origin);
        let changed = self.db.write(move |tx| {
            let user = users::user_lock(tx, id)?.filter(|user| user.person.is_some());
            let user = user.ok_or(ConfirmedError::NotFound)?;
            if user.password_version != version {
                return Err(ConfirmedError::WrongPassword);
            }
            let now = opening.token.issued_at;
            users::user_set_password(tx, id, &new_hash, now)?;
            sessions::sessions_end(tx, Sessions::AllOf(id), now)?;
            opening.write(tx)?;
            Ok::<_, ConfirmedError>((opening.token.clone(), user))
        });
        let (token, user) = changed.await?;
        Ok(self.grant(&token, &user)?)
    }

    /// Closes the account and forgets the person; their address is free again.
    pub async fn delete_user(
        &self,
        id: UserId,
        password: Secret,
        context: CallContext,
    ) -> Result<(), ConfirmedError> {
        let (_, version) = self.confirm_password(id, password).await?;
        let (now, stamp) = (self.clock.now(), self.stamp(context));
        self.db
            .write(move |tx| {
                let (user, admins) = users::user_lock_with_admins(tx, id)?;
                let user = user.filter(|user| user.person.is_some());
                let user = user.ok_or(ConfirmedError::NotFound)?;
                if user.password_version != version {
                    return Err(ConfirmedError::WrongPassword);
                }
                if user.role == Role::Admin && !may_leave_office(id, &admins) {
                    return Err(ConfirmedError::LastAdmin);
                }
                sessions::sessions_end(tx, Sessions::AllOf(id), now)?;
                users::user_erase(tx, id, now)?;
                records::login_history_erase(tx, id)?;
                social::identity_erase(tx, id)?;
                identity_check::identity_erase(tx, id)?;
                outbox::append(tx, &stamp, &UserDeleted { user_id: id.0 })?;
                Ok(())
            })
            .await
    }

    /// The user and the version of the password, if it is theirs.
    async fn confirm_password(
        &self,
        id: UserId,
        password: Secret,
    ) -> Result<(User, u32), ConfirmedError> {
        let find = move |tx: &mut Tx<'_>| users::user_find(tx, id);
        let stored: Option<StoredUser> = self.db.read(find).await?;
        let stored = stored.ok_or(ConfirmedError::NotFound)?;
        let user = self.unseal(&stored)?.ok_or(ConfirmedError::NotFound)?;
        if is_too_long(password.expose()) {
            return Err(ConfirmedError::WrongPassword);
        }
        let compared = self.passwords.compare(password, stored.password_hash).await?;
        match compared.matches {
            true => Ok((user, stored.password_version)),
            false => Err(ConfirmedError::WrongPassword),
        }
    }

    fn stamp(&self, context: CallContext) -> outbox::Stamp {
        let (event_id, time) = (self.ids.next_id(), self.clock.now());
        outbox::Stamp { event_id, source: SOURCE, time, context }
    }
}
