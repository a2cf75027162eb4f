//! Accounts: opening one, seeing it, changing it.

use urr_kernel::{CallContext, Secret};
use urr_service::Role;
use urr_storage::{StorageError, Tx, outbox};

use crate::domain::account::{AccountStatus, Person, User, UserId};
use crate::domain::email::Email;
use crate::domain::language::Language;
use crate::domain::password::Password;
use crate::domain::profile::{Name, Phone};
use crate::domain::terms::{Terms, TermsKind};
use crate::events::UserRegistered;
use crate::fault::from_faults;
use crate::sessions::{Opening, Session};
use crate::store::records::{self, LoginMethod, Origin};
use crate::store::users::{self, StoredUser};
use crate::{Auth, Fault, SOURCE};

/// What someone who registers says.
#[derive(Clone, Debug)]
pub struct Registration {
    pub person: Person,
    pub password: Password,
    pub terms: Terms,
    /// None: what their browser asks for.
    pub language: Option<Language>,
}

/// What someone who logs in says.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub email: Email,
    pub password: Secret,
}

/// An account as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub user: User,
    /// None: one gets in by another service only.
    pub has_password: bool,
    /// Whether a provider has told who this is.
    pub identity_verified: bool,
    /// What must be agreed to anew, because another version is in force.
    pub terms_outstanding: Vec<TermsKind>,
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

from_faults!(RegisterError, UserError);

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
    /// None: what the browser asks for.
    pub language: Option<Language>,
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
        let Registration { person, password, terms, language } = registration;
        let (password, terms) = (Some(password), Some(terms));
        let (role, method) = (Role::User, LoginMethod::Registration);
        let parts =
            AccountParts { person, password, terms, language, role, method, origin, context };
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
        let AccountParts { person, password, terms, language, role, method, origin, context } =
            parts;
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
            language: language.or(origin.language).unwrap_or_default(),
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

    /// My account, with what only I am told.
    pub async fn get_profile(&self, id: UserId) -> Result<Profile, UserError> {
        let auth = self.clone();
        self.db
            .read(move |tx| {
                let stored = users::user_find(tx, id)?.ok_or(UserError::NotFound)?;
                Ok(Profile {
                    user: auth.unseal(&stored)?.ok_or(UserError::NotFound)?,
                    has_password: stored.password_hash.is_some(),
                    identity_verified: auth.is_identity_verified(tx, id)?,
                    terms_outstanding: auth.terms_outstanding(tx, id)?,
                })
            })
            .await
    }

    /// The users among these ids who exist.
    pub async fn get_users(&self, ids: Vec<UserId>) -> Result<Vec<User>, Fault> {
        let find = move |tx: &mut Tx<'_>| users::user_find_many(tx, &ids);
        let found: Vec<StoredUser> = self.db.read(find).await?;
        let users = found.iter().map(|user| self.unseal(user));
        users.filter_map(Result::transpose).collect()
    }

    /// Replaces name and phone, and the language if one is named.
    pub async fn update_profile(
        &self,
        id: UserId,
        name: Name,
        phone: Option<Phone>,
        language: Option<Language>,
    ) -> Result<(), UserError> {
        let (auth, now) = (self.clone(), self.clock.now());
        self.db
            .write(move |tx| {
                let stored = users::user_lock(tx, id)?.ok_or(UserError::NotFound)?;
                let mut user = auth.unseal(&stored)?.ok_or(UserError::NotFound)?;
                user.person.name = name.clone();
                user.person.phone = phone.clone();
                users::user_set_person(tx, id, &auth.data_keys.seal(id, &user.person), now)?;
                if let Some(language) = language {
                    users::user_set_language(tx, id, language, now)?;
                }
                Ok(())
            })
            .await
    }

    pub(crate) fn stamp(&self, context: CallContext) -> outbox::Stamp {
        let (event_id, time) = (self.ids.next_id(), self.clock.now());
        outbox::Stamp { event_id, source: SOURCE, time, context }
    }
}
