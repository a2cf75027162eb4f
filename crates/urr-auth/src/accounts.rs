//! Accounts: opening, reading and changing them.

pub mod account;
pub mod email;
pub mod http;
pub mod internal_http;
pub mod profile;
pub mod store;
pub mod views;

use urr_kernel::{CallContext, Language, Secret};
use urr_service::UserRole;
use urr_storage::{DbResult, Tx, outbox};

use crate::accounts::account::{AccountStatus, PersonalDetails, UserAccount, UserId};
use crate::accounts::email::Email;
use crate::accounts::profile::{PersonName, PhoneNumber};
use crate::accounts::store::{self as users, StoredUser};
use crate::internal_error::from_internal_errors;
use crate::links::NewLink;
use crate::links::rules::LinkKind;
use crate::passwords::rules::Password;
use crate::sessions::login_history::LoginMethod;
use crate::sessions::{NewSession, Session};
use crate::terms::{TermsAnswers, TermsKind};
use crate::{AuthService, ClientInfo, InternalError, SOURCE};
use urr_contracts::events::user::UserRegistered;

#[derive(Clone, Debug)]
pub struct Registration {
    pub person: PersonalDetails,
    pub password: Password,
    pub terms: TermsAnswers,
    /// `None` takes the language of the browser.
    pub language: Option<Language>,
}

#[derive(Clone, Debug)]
pub struct Credentials {
    pub email: Email,
    pub password: Secret,
}

/// An account with what only its owner sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub user: UserAccount,
    /// `false` if the user logs in by a social provider only.
    pub has_password: bool,
    /// Whether a provider has verified the identity.
    pub identity_verified: bool,
    /// The terms to agree to, because another version is in force.
    pub terms_outstanding: Vec<TermsKind>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    #[error("We could not register this address. Please log in if you have an account.")]
    EmailTaken,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    #[error("There is no such user.")]
    NotFound,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(RegisterError, UserError);

/// An account to insert, with its first session.
pub(crate) struct NewAccount {
    user: StoredUser,
    email_indexes: Vec<Vec<u8>>,
    terms: Option<TermsAnswers>,
    pub new_session: NewSession,
    metadata: outbox::EventMetadata,
    /// Verifies the address, unless that is done.
    link: Option<NewLink>,
}

impl NewAccount {
    pub fn id(&self) -> UserId {
        self.user.id
    }

    /// Inserts and announces it with its first session. `None` if the address is taken.
    pub fn write(&self, tx: &mut Tx<'_>) -> DbResult<Option<StoredUser>> {
        let user = self.write_without_session(tx)?;
        if user.is_some() {
            self.new_session.write(tx)?;
        }
        Ok(user)
    }

    /// Inserts and announces it. `None` if the address is taken.
    pub fn write_without_session(&self, tx: &mut Tx<'_>) -> DbResult<Option<StoredUser>> {
        // The unique index covers the current data key only. During a key rotation the address may
        // still be indexed with another one.
        if users::user_find_by_email(tx, &self.email_indexes)?.is_some() {
            return Ok(None);
        }
        if !users::user_insert(tx, &self.user)? {
            return Ok(None);
        }
        let StoredUser { id, created_at: now, .. } = self.user;
        if let Some(terms) = &self.terms {
            crate::terms::store::terms_insert(tx, id, terms, now)?;
        }
        let role = Some(self.user.role.into());
        outbox::append(tx, &self.metadata, &UserRegistered { user_id: id.0, role })?;
        if let Some(link) = &self.link {
            link.write(tx, &self.user)?;
        }
        Ok(Some(self.user.clone()))
    }
}

/// The parts of a new account.
pub(crate) struct AccountParts {
    pub person: PersonalDetails,
    /// `None` if the user logs in by a social provider only.
    pub password: Option<Password>,
    pub terms: Option<TermsAnswers>,
    /// `None` takes the language of the browser.
    pub language: Option<Language>,
    pub role: UserRole,
    pub method: LoginMethod,
    /// Whether a provider has verified the address.
    pub email_verified: bool,
    pub client: ClientInfo,
    pub context: CallContext,
}

impl AuthService {
    /// Opens an account and starts its first session.
    pub async fn register(
        &self,
        registration: Registration,
        client: ClientInfo,
        context: CallContext,
    ) -> Result<Session, RegisterError> {
        let Registration { person, password, terms, language } = registration;
        let (password, terms) = (Some(password), Some(terms));
        let parts = AccountParts {
            person,
            password,
            terms,
            language,
            role: UserRole::User,
            method: LoginMethod::Registration,
            email_verified: false,
            client,
            context,
        };
        let account = self.new_account(parts).await?;
        let opened = self.0.db.write(move |tx| {
            let user = account.write(tx)?.ok_or(RegisterError::EmailTaken)?;
            Ok::<_, RegisterError>((account.new_session.token.clone(), user))
        });
        let (token, user) = opened.await?;
        Ok(self.grant(&token, &user)?)
    }

    /// A new account, made before the transaction that inserts it. The password is hashed even if
    /// the address is taken, so that the time does not tell who has an account.
    pub(crate) async fn new_account(
        &self,
        parts: AccountParts,
    ) -> Result<NewAccount, InternalError> {
        let AccountParts { person, password, terms, language, client, context, .. } = parts;
        let password_hash = match password {
            Some(password) => Some(self.0.passwords.hash(password).await?),
            None => None,
        };
        let (id, now) = (UserId(self.0.ids.next_id()), self.0.clock.now());
        let sealed = self.0.data_keys.seal(id, &person);
        let user = StoredUser {
            id,
            person: Some(sealed),
            email_verified_at: parts.email_verified.then_some(now),
            password_hash,
            password_version: 1,
            role: parts.role,
            language: language.or(client.language).unwrap_or_default(),
            status: AccountStatus::Active,
            created_at: now,
            last_login_at: now,
        };
        let link = (!parts.email_verified)
            .then(|| self.new_link(LinkKind::VerifyEmail, &person.email, context));
        Ok(NewAccount {
            user,
            email_indexes: self.0.data_keys.email_indexes(&person.email),
            terms,
            new_session: self.new_session(id, parts.method, client),
            metadata: self.event_metadata(context),
            link,
        })
    }

    pub async fn get_user(&self, id: UserId) -> Result<UserAccount, UserError> {
        let found = self.read(move |tx| users::user_find(tx, id)).await?;
        let user = found.map(|user| self.unseal(&user)).transpose()?.flatten();
        user.ok_or(UserError::NotFound)
    }

    pub async fn get_profile(&self, id: UserId) -> Result<Profile, UserError> {
        let auth = self.clone();
        let found = self.0.db.read(move |tx| {
            let stored = users::user_find(tx, id)?.ok_or(UserError::NotFound)?;
            Ok(Profile {
                user: auth.unseal(&stored)?.ok_or(UserError::NotFound)?,
                has_password: stored.password_hash.is_some(),
                identity_verified: auth.is_identity_verified(tx, id)?,
                terms_outstanding: auth.terms_outstanding(tx, id)?,
            })
        });
        found.await
    }

    /// Users by their ids; deleted and unknown ones are left out.
    pub async fn get_users(&self, ids: Vec<UserId>) -> Result<Vec<UserAccount>, InternalError> {
        let found = self.read(move |tx| users::user_find_many(tx, &ids)).await?;
        Ok(self.unseal_list(&found))
    }

    /// Replaces name and phone, and the language if one is given.
    pub async fn update_profile(
        &self,
        id: UserId,
        name: PersonName,
        phone: Option<PhoneNumber>,
        language: Option<Language>,
    ) -> Result<(), UserError> {
        let (auth, now) = (self.clone(), self.0.clock.now());
        let written = self.0.db.write(move |tx| {
            let stored = users::user_lock(tx, id)?.ok_or(UserError::NotFound)?;
            let mut user = auth.unseal(&stored)?.ok_or(UserError::NotFound)?;
            user.person.name = name.clone();
            user.person.phone = phone.clone();
            users::user_set_person(tx, id, &auth.0.data_keys.seal(id, &user.person), now)?;
            if let Some(language) = language {
                users::user_set_language(tx, id, language, now)?;
            }
            Ok(())
        });
        written.await
    }

    pub(crate) fn event_metadata(&self, context: CallContext) -> outbox::EventMetadata {
        let (event_id, time) = (self.0.ids.next_id(), self.0.clock.now());
        outbox::EventMetadata { event_id, source: SOURCE, time, context }
    }
}
