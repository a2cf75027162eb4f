//! Accounts.

use urr_kernel::{Timestamp, define_id};
use urr_service::Role;

use super::email::Email;
use super::language::Language;
use super::profile::{PersonName, PhoneNumber};

define_id!(
    /// Which user.
    UserId
);

/// Where in its life an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatus {
    Active,
    /// Unused for so long that it was put aside. The next login wakes it.
    Dormant,
    /// Its person is gone; only the id remains, for what refers to it.
    Deleted,
}

impl AccountStatus {
    pub const fn name(self) -> &'static str {
        match self {
            AccountStatus::Active => "active",
            AccountStatus::Dormant => "dormant",
            AccountStatus::Deleted => "deleted",
        }
    }

    pub fn parse(name: &str) -> Option<AccountStatus> {
        [AccountStatus::Active, AccountStatus::Dormant, AccountStatus::Deleted]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

/// Someone who can log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserAccount {
    pub id: UserId,
    pub person: PersonalDetails,
    pub role: Role,
    /// In which they are written to.
    pub language: Language,
    pub status: AccountStatus,
    pub created_at: Timestamp,
    pub last_login_at: Timestamp,
}

/// What is known about the person behind an account. It is stored encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalDetails {
    pub email: Email,
    pub name: PersonName,
    pub phone: Option<PhoneNumber>,
}

/// Whether this account may stop being an administrator, by losing the role or by being deleted.
/// The caller has locked all administrators.
pub fn may_stop_being_admin(leaver: UserId, administrators: &[UserId]) -> bool {
    administrators.iter().any(|other| *other != leaver)
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;

    #[test]
    fn every_status_is_found_by_its_name() {
        for status in [AccountStatus::Active, AccountStatus::Dormant, AccountStatus::Deleted] {
            assert_eq!(AccountStatus::parse(status.name()), Some(status));
        }
        assert_eq!(AccountStatus::parse("Active"), None);
    }

    #[test]
    fn the_last_administrator_stays() {
        let [a, b] = [1, 2].map(|n| UserId(Uuid::from_u128(n)));
        assert!(may_stop_being_admin(a, &[a, b]));
        assert!(!may_stop_being_admin(a, &[a]));
    }
}
