//! Refresh tokens: the rules of their rotation.
//!
//! A login starts a family. Each refresh replaces the family's newest token, its tip, by a
//! successor, so at most one token of it is not yet replaced. A replaced token that is presented
//! again was either sent twice by its owner (two tabs, a lost answer) or was stolen. Time tells them
//! apart: within the grace period the answer of the tip is repeated, and no second chain starts;
//! afterwards the family ends.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};

use crate::accounts::account::UserId;

/// A stored refresh token, with the access token that was issued with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRefreshToken {
    pub id: Uuid,
    pub user_id: UserId,
    pub family_id: Uuid,
    /// The login that started the family. `None` for rows of older versions.
    pub login_at: Option<Timestamp>,
    pub access_id: Uuid,
    pub access_expires_at: Timestamp,
    /// The access token was revoked although the session continues, as after a change of role.
    pub access_revoked: bool,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    pub rotated_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshDecision<'a> {
    /// Replace this token, the tip, by a new one.
    Rotate(&'a StoredRefreshToken),
    /// Return the tokens of the tip once more.
    Repeat(&'a StoredRefreshToken),
    /// End the family, because more than one client uses the token.
    Reuse,
    Revoked,
    Expired,
    Unknown,
}

/// Decides what to do with a presented token. The caller has loaded it and the tip of its family
/// under the lock of the user; `None` means that there is no such row.
pub fn decide_refresh<'a>(
    presented: Option<&'a StoredRefreshToken>,
    tip: Option<&'a StoredRefreshToken>,
    now: Timestamp,
    grace: Duration,
) -> RefreshDecision<'a> {
    let Some(presented) = presented else {
        return RefreshDecision::Unknown;
    };
    if presented.revoked_at.is_some() {
        return RefreshDecision::Revoked;
    }
    if presented.expires_at <= now {
        return RefreshDecision::Expired;
    }
    let Some(rotated_at) = presented.rotated_at else {
        return RefreshDecision::Rotate(presented);
    };
    if now >= rotated_at + grace {
        return RefreshDecision::Reuse;
    }
    let tip = tip.expect("a family that is not revoked has a tip, and it expires last");
    assert_eq!(tip.family_id, presented.family_id, "the caller loads the tip of this family");
    // A revoked or expired access token must not be returned. The owner of the tip is not harmed:
    // within the grace period it leads to the same successor.
    if tip.access_revoked || tip.access_expires_at <= now {
        return RefreshDecision::Rotate(tip);
    }
    RefreshDecision::Repeat(tip)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn token(number: u128, issued: i64, rotated: Option<i64>) -> StoredRefreshToken {
        StoredRefreshToken {
            id: Uuid::from_u128(number),
            user_id: UserId(Uuid::from_u128(100)),
            family_id: Uuid::from_u128(200),
            login_at: Some(at(0)),
            access_id: Uuid::from_u128(number + 1_000),
            access_expires_at: at(issued + 1_800),
            access_revoked: false,
            issued_at: at(issued),
            expires_at: at(issued + 604_800),
            rotated_at: rotated.map(at),
            revoked_at: None,
        }
    }

    /// What presenting the token `number` at `now` leads to, in words.
    fn decide(family: &[StoredRefreshToken], number: u128, now: i64) -> String {
        let presented = family.iter().find(|token| token.id == Uuid::from_u128(number));
        let tip = family.iter().find(|token| token.rotated_at.is_none());
        match decide_refresh(presented, tip, at(now), GRACE) {
            RefreshDecision::Rotate(tip) => format!("rotate {}", tip.id.as_u128()),
            RefreshDecision::Repeat(tip) => format!("repeat {}", tip.id.as_u128()),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    #[test]
    fn the_tip_is_replaced() {
        assert_eq!(decide(&[token(1, 0, None)], 1, 0), "rotate 1");
        assert_eq!(decide(&[token(1, 0, Some(10)), token(2, 10, None)], 2, 10), "rotate 2");
    }

    #[test]
    fn r_10_a_repeat_within_the_grace_gets_the_tip_and_later_ends_the_family() {
        let family = [token(1, 0, Some(100)), token(2, 100, None)];
        assert_eq!(decide(&family, 1, 100), "repeat 2");
        assert_eq!(decide(&family, 1, 129), "repeat 2");
        assert_eq!(decide(&family, 1, 130), "reuse");
    }

    #[test]
    fn a_repeat_follows_the_chain_to_its_end() {
        let family = [token(1, 0, Some(100)), token(2, 100, Some(110)), token(3, 110, None)];
        assert_eq!(decide(&family, 1, 120), "repeat 3");
        assert_eq!(decide(&family, 2, 135), "repeat 3");
        assert_eq!(decide(&family, 1, 135), "reuse");
    }

    #[test]
    fn d_2_a_token_that_is_not_remembered_is_never_accepted() {
        assert_eq!(decide(&[], 1, 0), "unknown");
        assert_eq!(decide(&[token(1, 0, None)], 2, 0), "unknown");
    }

    #[test]
    fn revoked_and_expired_tokens_stay_so() {
        let mut revoked = token(1, 0, None);
        revoked.revoked_at = Some(at(5));
        assert_eq!(decide(&[revoked], 1, 6), "revoked");
        assert_eq!(decide(&[token(1, 0, None)], 1, 604_799), "rotate 1");
        assert_eq!(decide(&[token(1, 0, None)], 1, 604_800), "expired");
        let old = [token(1, 0, Some(604_790)), token(2, 604_790, None)];
        assert_eq!(decide(&old, 1, 604_800), "expired");
    }

    #[test]
    fn a_repeat_does_not_give_out_a_revoked_access_token() {
        let mut family = [token(1, 0, Some(100)), token(2, 100, None)];
        family[1].access_revoked = true;
        assert_eq!(decide(&family, 1, 110), "rotate 2");
    }
}
