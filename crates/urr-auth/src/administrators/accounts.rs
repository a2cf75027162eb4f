//! What administrators do with the accounts of others: find, suspend, reopen, end sessions, release
//! an address. Each is in the admin log, in the transaction of its effect.

use urr_kernel::{Timestamp, UnfitText, one_line};
use urr_service::admin_log::{self, AdminAction};
use urr_service::{Page, UserRole};
use urr_storage::Tx;

use crate::accounts::account::{
    AccountStatus, PersonalDetails, UserAccount, UserId, may_stop_being_admin,
};
use crate::accounts::email::Email;
use crate::accounts::profile::{PersonName, PhoneNumber};
use crate::accounts::store::{self as users, PersonIndex, StoredUser};
use crate::internal_error::from_internal_errors;
use crate::sessions::store::{self as sessions, SessionSelection};
use crate::social::store as social;
use crate::{AuthService, InternalError, InvalidEmail, links};

const REASON_CHARS_MAX: usize = 200;

/// What an administrator looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountSearch {
    All,
    /// A text that no account can have.
    Nobody,
    Id(UserId),
    Email(Email),
    Phone(PhoneNumber),
    Name(PersonName),
}

impl AccountSearch {
    /// A text with an `@` is an address, a number is a phone number, anything else is an id or a
    /// name. Personal data are encrypted, so each is found as a whole only.
    pub fn parse(text: &str) -> Result<AccountSearch, InvalidEmail> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(AccountSearch::All);
        }
        if text.contains('@') {
            return Ok(AccountSearch::Email(Email::parse(text)?));
        }
        if let Ok(id) = text.parse() {
            return Ok(AccountSearch::Id(UserId(id)));
        }
        if let Ok(phone) = PhoneNumber::parse(text) {
            return Ok(AccountSearch::Phone(phone));
        }
        Ok(PersonName::parse(text).map_or(AccountSearch::Nobody, AccountSearch::Name))
    }
}

/// Why an administrator does something, in their own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionReason(String);

impl ActionReason {
    pub fn parse(text: &str) -> Result<ActionReason, UnfitText> {
        Ok(ActionReason(one_line(text, REASON_CHARS_MAX)?.to_owned()))
    }
}

/// What an administrator does with an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountMeasure {
    /// Nobody can log in until the account is reopened.
    Suspend,
    Reopen,
    EndSessions,
    /// The address can be registered by its owner. What the account has stays with it.
    ReleaseAddress,
}

impl AccountMeasure {
    const fn action(self) -> &'static str {
        match self {
            AccountMeasure::Suspend => "ACCOUNT_SUSPENDED",
            AccountMeasure::Reopen => "ACCOUNT_REOPENED",
            AccountMeasure::EndSessions => "SESSIONS_ENDED",
            AccountMeasure::ReleaseAddress => "ADDRESS_RELEASED",
        }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountMeasureError {
    #[error("There is no such user.")]
    NotFound,
    #[error("The last administrator cannot leave. Name another first.")]
    LastAdmin,
    #[error("The account is suspended already.")]
    AlreadySuspended,
    #[error("The account is not suspended.")]
    NotSuspended,
    /// An administrator without an address could not reset the password.
    #[error("The address of an administrator is not released. Change the role first.")]
    AddressOfAdmin,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(AccountMeasureError);

impl AuthService {
    /// One page of the accounts that fit, the newest first, and their total.
    pub async fn search_accounts(
        &self,
        search: AccountSearch,
        page: Page,
    ) -> Result<(Vec<UserAccount>, u64), InternalError> {
        let (index, indexes) = match &search {
            AccountSearch::All => return self.list_users(page).await,
            AccountSearch::Nobody => return Ok(one(None)),
            AccountSearch::Id(id) => {
                let id = *id;
                let found = self.read(move |tx| users::user_find(tx, id)).await?;
                return Ok(one(found.map(|user| self.unseal(&user)).transpose()?.flatten()));
            }
            AccountSearch::Email(email) => return Ok(one(self.find_user_by_email(email).await?)),
            AccountSearch::Phone(phone) => {
                let indexes = self.0.data_keys.person_indexes("phone", &phone.lookup_key());
                (PersonIndex::Phone, indexes)
            }
            AccountSearch::Name(name) => {
                let indexes = self.0.data_keys.person_indexes("name", &name.lookup_key());
                (PersonIndex::Name, indexes)
            }
        };
        let found =
            self.read(move |tx| users::user_list_by_person(tx, index, &indexes, page)).await?;
        Ok((self.unseal_list(&found.0), found.1))
    }

    /// Does something with an account, and logs who did it and why.
    pub async fn apply_measure(
        &self,
        user_id: UserId,
        measure: AccountMeasure,
        admin_id: Option<UserId>,
        reason: &ActionReason,
    ) -> Result<UserAccount, AccountMeasureError> {
        let now = self.0.clock.now();
        let logged = self.admin_action(admin_id, measure.action(), "user", user_id, &reason.0);
        let auth = self.clone();
        let written = self.0.db.write(move |tx| {
            let (user, admins) = users::user_lock_with_admins(tx, user_id)?;
            let user = user.filter(|user| user.person.is_some());
            let user = user.ok_or(AccountMeasureError::NotFound)?;
            match measure {
                AccountMeasure::Suspend => suspend(tx, &user, &admins, now)?,
                AccountMeasure::Reopen => reopen(tx, &user, now)?,
                AccountMeasure::EndSessions => end_sessions(tx, user_id, now)?,
                AccountMeasure::ReleaseAddress => auth.release_address(tx, &user, now)?,
            }
            log(tx, &logged)?;
            users::user_find(tx, user_id)?.ok_or(AccountMeasureError::NotFound)
        });
        let user = written.await?;
        Ok(self.unseal(&user)?.expect("the transaction checked that the account is not deleted"))
    }

    /// The account gets an address that nobody has. Its password works no more, because nobody can
    /// name the account; linked logins stay.
    fn release_address(
        &self,
        tx: &mut Tx<'_>,
        user: &StoredUser,
        now: Timestamp,
    ) -> Result<(), AccountMeasureError> {
        if user.role == UserRole::Admin {
            return Err(AccountMeasureError::AddressOfAdmin);
        }
        let account = self.unseal(user)?.ok_or(AccountMeasureError::NotFound)?;
        let released = format!("{}@released.invalid", user.id);
        let email = Email::parse(&released).expect("an id makes an address");
        let person = PersonalDetails { email, ..account.person };
        users::user_set_person(tx, user.id, &self.0.data_keys.seal(user.id, &person), now)?;
        users::user_clear_email_verified(tx, user.id)?;
        links::links_erase(tx, user.id)?;
        end_sessions(tx, user.id, now)
    }
}

fn one(found: Option<UserAccount>) -> (Vec<UserAccount>, u64) {
    let total = u64::from(found.is_some());
    (found.into_iter().collect(), total)
}

fn log(tx: &mut Tx<'_>, action: &AdminAction) -> Result<(), AccountMeasureError> {
    Ok(admin_log::insert(tx, action)?)
}

fn suspend(
    tx: &mut Tx<'_>,
    user: &StoredUser,
    admins: &[UserId],
    now: Timestamp,
) -> Result<(), AccountMeasureError> {
    if user.status == AccountStatus::Suspended {
        return Err(AccountMeasureError::AlreadySuspended);
    }
    if user.role == UserRole::Admin && !may_stop_being_admin(user.id, admins) {
        return Err(AccountMeasureError::LastAdmin);
    }
    users::user_set_status(tx, user.id, AccountStatus::Suspended, now)?;
    // A started link of a social login would end in an account that nobody may enter.
    social::attempts_erase(tx, user.id)?;
    end_sessions(tx, user.id, now)
}

fn reopen(tx: &mut Tx<'_>, user: &StoredUser, now: Timestamp) -> Result<(), AccountMeasureError> {
    if user.status != AccountStatus::Suspended {
        return Err(AccountMeasureError::NotSuspended);
    }
    Ok(users::user_set_status(tx, user.id, AccountStatus::Active, now)?)
}

fn end_sessions(
    tx: &mut Tx<'_>,
    user_id: UserId,
    now: Timestamp,
) -> Result<(), AccountMeasureError> {
    Ok(sessions::sessions_end(tx, SessionSelection::AllOf(user_id), now)?)
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;

    #[test]
    fn a_search_is_an_address_an_id_a_number_or_a_name() {
        let search = |text: &str| AccountSearch::parse(text).unwrap();
        assert_eq!(search("  "), AccountSearch::All);
        let email = Email::parse("mina@example.com").unwrap();
        assert_eq!(search(" mina@example.com "), AccountSearch::Email(email));
        let id = Uuid::from_u128(7);
        assert_eq!(search(&id.to_string()), AccountSearch::Id(UserId(id)));
        let phone = PhoneNumber::parse("010-1234-5678").unwrap();
        assert_eq!(search("010-1234-5678"), AccountSearch::Phone(phone));
        assert_eq!(search("김민아"), AccountSearch::Name(PersonName::parse("김민아").unwrap()));
        assert!(AccountSearch::parse("mina@").is_err());
        assert_eq!(search(&"x".repeat(300)), AccountSearch::Nobody);
    }

    #[test]
    fn a_reason_is_one_short_line() {
        assert!(ActionReason::parse("sells accounts").is_ok());
        let long = "x".repeat(REASON_CHARS_MAX + 1);
        for bad in ["", "  ", "a\u{7}b", &long] {
            assert!(ActionReason::parse(bad).is_err(), "{bad:?}");
        }
    }
}
