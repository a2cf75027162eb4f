//! Logs a user of a social provider into their account, or opens one.

use urr_kernel::CallContext;
use urr_service::UserRole;
use urr_storage::{DbResult, Tx};

use super::SocialError;
use crate::accounts::AccountParts;
use crate::accounts::account::{AccountStatus, PersonalDetails, UserId};
use crate::accounts::email::Email;
use crate::accounts::store::{self as users, StoredUser};
use crate::sessions::login_history::LoginMethod;
use crate::sessions::refresh::StoredRefreshToken;
use crate::social::rules::{
    EmailOwner, SignInDecision, SocialProfile, SocialProvider, decide_sign_in,
};
use crate::social::store::{self as social, StoredSocialIdentity};
use crate::terms::{TermsAnswer, TermsAnswers, TermsKind};
use crate::{AuthService, ClientInfo, Session};

/// A concurrent first login of the same user causes one repetition, and so does an account that
/// gives way.
const SIGN_IN_ATTEMPTS_MAX: u32 = 4;

/// The accounts that have the identity or the address of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdentityOwners {
    pub identity_owner: Option<UserId>,
    pub email_owner: Option<EmailOwner>,
}

/// The indexes of a profile with all data keys.
#[derive(Clone)]
pub(super) struct IdentityLookup {
    provider: SocialProvider,
    subject_indexes: Vec<Vec<u8>>,
    email_indexes: Vec<Vec<u8>>,
}

impl IdentityLookup {
    pub fn find(&self, tx: &mut Tx<'_>) -> DbResult<IdentityOwners> {
        let identity_owner = social::identity_owner(tx, self.provider, &self.subject_indexes)?;
        let found = match self.email_indexes.is_empty() {
            true => None,
            false => users::user_find_by_email(tx, &self.email_indexes)?,
        };
        let email_owner = match found {
            Some(user) => Some(EmailOwner {
                id: user.id,
                email_verified: user.email_verified_at.is_some(),
                has_other_identity: social::identity_exists(tx, self.provider, user.id)?,
            }),
            None => None,
        };
        Ok(IdentityOwners { identity_owner, email_owner })
    }
}

impl AuthService {
    /// Logs in a user of a provider; see [`decide_sign_in`].
    pub(super) async fn sign_in(
        &self,
        provider: SocialProvider,
        profile: SocialProfile,
        terms_agreed: bool,
        client: ClientInfo,
        context: CallContext,
    ) -> Result<Session, SocialError> {
        let lookup = self.lookup(provider, &profile);
        for _ in 0..SIGN_IN_ATTEMPTS_MAX {
            let find = lookup.clone();
            let known = self.read(move |tx| find.find(tx)).await?;
            let IdentityOwners { identity_owner, email_owner } = known;
            let client = client.clone();
            let opened = match decide_sign_in(identity_owner, email_owner, &profile, terms_agreed)?
            {
                SignInDecision::Existing(id) | SignInDecision::Link(id) => {
                    let expected = (lookup.clone(), known);
                    self.start_existing_session(id, &profile, expected, client).await
                }
                SignInDecision::Register => {
                    self.open_account(provider, &profile, client, context).await
                }
                SignInDecision::Replace(id) => {
                    self.remove_unverified(id, (&lookup, known), context).await?;
                    continue;
                }
            };
            match opened {
                Err(SocialError::Overtaken) => {}
                Err(error) => return Err(error),
                Ok((token, user)) => return Ok(self.grant(&token, &user)?),
            }
        }
        Err(SocialError::Overtaken)
    }

    /// Deletes an account that never bought anything and whose address nobody verified, because the
    /// owner of the address is here.
    ///
    /// Its sessions end before the ticket service is asked for the last time, so that it cannot buy
    /// in between.
    async fn remove_unverified(
        &self,
        id: UserId,
        (lookup, known): (&IdentityLookup, IdentityOwners),
        context: CallContext,
    ) -> Result<(), SocialError> {
        let stored = self.read(move |tx| users::user_find(tx, id)).await?;
        let stored = stored.ok_or(SocialError::Overtaken)?;
        if !self.may_give_way(&stored, &context).await {
            return Err(SocialError::EmailInUse);
        }
        self.end_all_sessions(id).await?;
        if !self.may_give_way(&stored, &context).await {
            return Err(SocialError::EmailInUse);
        }
        let (auth, lookup, now) = (self.clone(), lookup.clone(), self.0.clock.now());
        let metadata = self.event_metadata(context);
        let erased = self.0.db.write(move |tx| {
            users::user_lock_existing(tx, id)?.ok_or(SocialError::Overtaken)?;
            if lookup.find(tx)? != known {
                return Err(SocialError::Overtaken);
            }
            Ok(auth.account_erase(tx, id, now, &metadata)?)
        });
        match erased.await {
            // Something has changed: the next attempt looks again.
            Err(SocialError::Overtaken) => Ok(()),
            erased => erased,
        }
    }

    /// Starts a session in an existing account, and links the identity if it is new.
    async fn start_existing_session(
        &self,
        id: UserId,
        profile: &SocialProfile,
        (lookup, known): (IdentityLookup, IdentityOwners),
        client: ClientInfo,
    ) -> Result<(StoredRefreshToken, StoredUser), SocialError> {
        let new_session = self.new_session(id, LoginMethod::Social(lookup.provider), client);
        let identity = self.identity(lookup.provider, id, &profile.subject);
        let written = self.0.db.write(move |tx| {
            let user = users::user_lock_existing(tx, id)?.ok_or(SocialError::Overtaken)?;
            if user.status == AccountStatus::Suspended {
                return Err(SocialError::Suspended);
            }
            if lookup.find(tx)? != known {
                return Err(SocialError::Overtaken);
            }
            let now = new_session.token.issued_at;
            if known.identity_owner.is_none() && !social::identity_insert(tx, &identity, now)? {
                return Err(SocialError::Overtaken);
            }
            users::user_mark_login(tx, id, now)?;
            new_session.write(tx)?;
            Ok((new_session.token.clone(), user))
        });
        written.await
    }

    /// Opens an account without a password.
    async fn open_account(
        &self,
        provider: SocialProvider,
        profile: &SocialProfile,
        client: ClientInfo,
        context: CallContext,
    ) -> Result<(StoredRefreshToken, StoredUser), SocialError> {
        let email = profile.email.clone().expect("the decision for a new account needs an address");
        let name = profile.display_name(&email);
        let parts = AccountParts {
            person: PersonalDetails { email, name, phone: None },
            password: None,
            terms: Some(self.terms_shown()),
            language: None,
            role: UserRole::User,
            method: LoginMethod::Social(provider),
            email_verified: profile.email_verified,
            client,
            context,
        };
        let account = self.new_account(parts).await?;
        let identity = self.identity(provider, account.id(), &profile.subject);
        let now = account.new_session.token.issued_at;
        let written = self.0.db.write(move |tx| {
            let user = account.write(tx)?.ok_or(SocialError::Overtaken)?;
            if !social::identity_insert(tx, &identity, now)? {
                return Err(SocialError::Overtaken);
            }
            Ok((account.new_session.token.clone(), user))
        });
        written.await
    }

    pub(super) fn lookup(
        &self,
        provider: SocialProvider,
        profile: &SocialProfile,
    ) -> IdentityLookup {
        let indexes = |email: &Email| self.0.data_keys.email_indexes(email);
        let kind = provider.subject_kind();
        IdentityLookup {
            provider,
            subject_indexes: self.0.data_keys.person_indexes(kind, &profile.subject),
            email_indexes: profile.email.as_ref().map(indexes).unwrap_or_default(),
        }
    }

    pub(crate) fn identity(
        &self,
        provider: SocialProvider,
        user_id: UserId,
        subject: &str,
    ) -> StoredSocialIdentity {
        let (keys, kind) = (&self.0.data_keys, provider.subject_kind());
        let index = keys.person_indexes(kind, subject).swap_remove(0);
        let cipher = keys.seal_text(kind, user_id, subject);
        StoredSocialIdentity {
            provider,
            user_id,
            key_version: keys.current_version(),
            index,
            cipher,
        }
    }

    /// The answers to the terms that the page showed.
    fn terms_shown(&self) -> TermsAnswers {
        let in_force = &self.0.settings.terms;
        let agreed = |kind| {
            let version = in_force.of(kind).as_str().to_owned();
            TermsAnswer { kind, version, agreed: true }
        };
        let answers = vec![agreed(TermsKind::Service), agreed(TermsKind::Privacy)];
        TermsAnswers::for_new_account(answers, in_force)
            .expect("these are the required terms in force")
    }
}
