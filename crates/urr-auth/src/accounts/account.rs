//! An account and the person it belongs to.

use urr_kernel::{Language, Timestamp, define_id};
use urr_service::UserRole;
use urr_storage::{storable_enum, storable_id};

use super::email::Email;
use super::profile::{PersonName, PhoneNumber};

define_id!(
    /// Which user.
    UserId
);
storable_id!(UserId);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatus {
    Active,
    /// Not used for a long time. The next login makes it active again.
    Dormant,
    /// Closed by an administrator until one reopens it: nobody can log in.
    Suspended,
    /// The personal data are erased; the id remains for the rows that refer to it.
    Deleted,
}

storable_enum!(AccountStatus {
    Active => "active",
    Dormant => "dormant",
    Suspended => "suspended",
    Deleted => "deleted",
});

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserAccount {
    pub id: UserId,
    pub person: PersonalDetails,
    /// Whether somebody proved that the address is theirs.
    pub email_verified: bool,
    pub role: UserRole,
    /// The language of their mails.
    pub language: Language,
    pub status: AccountStatus,
    pub created_at: Timestamp,
    pub last_login_at: Timestamp,
}

/// The personal data of an account, which are stored encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalDetails {
    pub email: Email,
    pub name: PersonName,
    pub phone: Option<PhoneNumber>,
}

/// Whether an administrator may lose the role or be deleted: another one must remain. The caller has
/// locked all administrators.
pub fn may_stop_being_admin(admin: UserId, administrators: &[UserId]) -> bool {
    administrators.iter().any(|other| *other != admin)
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;

    #[test]
    fn the_last_administrator_stays() {
        let [a, b] = [1, 2].map(|n| UserId(Uuid::from_u128(n)));
        assert!(may_stop_being_admin(a, &[a, b]));
        assert!(!may_stop_being_admin(a, &[a]));
    }
}
