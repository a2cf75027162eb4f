//! When a link is in force.

use urr_kernel::Timestamp;
use urr_storage::storable_enum;

use crate::accounts::account::AccountStatus;
use crate::accounts::store::StoredUser;
use crate::links::store::StoredLink;

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    VerifyEmail,
    ResetPassword,
}

storable_enum!(LinkKind {
    VerifyEmail => "verify_email",
    ResetPassword => "reset_password",
});

/// Why a link is void. Its holder is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidLink {
    Used,
    Expired,
    /// The account is suspended or deleted.
    Closed,
    /// The account has another address or another password than the link is for, or the address was
    /// verified meanwhile.
    OtherState,
}

/// Checks a link against the account as it is now.
pub fn check_link(link: &StoredLink, user: &StoredUser, now: Timestamp) -> Result<(), VoidLink> {
    if link.used_at.is_some() {
        return Err(VoidLink::Used);
    }
    if link.expires_at <= now {
        return Err(VoidLink::Expired);
    }
    let Some(person) = &user.person else { return Err(VoidLink::Closed) };
    if user.status == AccountStatus::Suspended {
        return Err(VoidLink::Closed);
    }
    // When the row is encrypted with another key, the index of the same address changes. Then the
    // link is void, too, which costs the user another mail and nothing else.
    let is_same_address = person.email_index == link.email_index;
    let is_same_state = match link.kind {
        LinkKind::VerifyEmail => user.email_verified_at.is_none(),
        LinkKind::ResetPassword => user.password_version == link.password_version,
    };
    (is_same_address && is_same_state).then_some(()).ok_or(VoidLink::OtherState)
}

#[cfg(test)]
mod tests {
    use urr_kernel::{Language, Uuid};
    use urr_service::UserRole;

    use super::*;
    use crate::accounts::account::UserId;
    use crate::personal_data::SealedDetails;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn user() -> StoredUser {
        StoredUser {
            id: UserId(Uuid::from_u128(1)),
            person: Some(SealedDetails {
                key_version: 1,
                email_cipher: Vec::new(),
                email_index: vec![7],
                name_cipher: Vec::new(),
                phone_cipher: None,
                name_index: None,
                phone_index: None,
            }),
            email_verified_at: None,
            password_hash: None,
            password_version: 3,
            role: UserRole::User,
            language: Language::Korean,
            status: AccountStatus::Active,
            created_at: at(0),
            last_login_at: at(0),
        }
    }

    fn link(kind: LinkKind) -> StoredLink {
        StoredLink {
            id: Uuid::from_u128(2),
            kind,
            user_id: user().id,
            key_version: 1,
            email_index: vec![7],
            password_version: 3,
            expires_at: at(1_800),
            used_at: None,
        }
    }

    #[test]
    fn a_link_is_in_force_for_its_time_and_its_state() {
        for kind in LinkKind::ALL {
            assert_eq!(check_link(&link(kind), &user(), at(1_799)), Ok(()));
            let late = check_link(&link(kind), &user(), at(1_800));
            assert_eq!(late, Err(VoidLink::Expired));
            let used = StoredLink { used_at: Some(at(5)), ..link(kind) };
            assert_eq!(check_link(&used, &user(), at(6)), Err(VoidLink::Used));
            let moved = StoredLink { email_index: vec![8], ..link(kind) };
            assert_eq!(check_link(&moved, &user(), at(6)), Err(VoidLink::OtherState));
            let suspended = StoredUser { status: AccountStatus::Suspended, ..user() };
            assert_eq!(check_link(&link(kind), &suspended, at(6)), Err(VoidLink::Closed));
            let gone = StoredUser { person: None, status: AccountStatus::Deleted, ..user() };
            assert_eq!(check_link(&link(kind), &gone, at(6)), Err(VoidLink::Closed));
        }
    }

    #[test]
    fn another_password_ends_resets_and_a_verified_address_ends_verifications() {
        let other_password = StoredUser { password_version: 4, ..user() };
        let verified = StoredUser { email_verified_at: Some(at(1)), ..user() };
        let void = Err(VoidLink::OtherState);
        let check = |kind, user| check_link(&link(kind), user, at(2));
        assert_eq!(check(LinkKind::ResetPassword, &other_password), void);
        assert_eq!(check(LinkKind::ResetPassword, &verified), Ok(()));
        assert_eq!(check(LinkKind::VerifyEmail, &other_password), Ok(()));
        assert_eq!(check(LinkKind::VerifyEmail, &verified), void);
    }
}
