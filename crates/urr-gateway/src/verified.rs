//! Access tokens that have been verified, so that a client's next request need not be.
//!
//! Verifying a token costs more than all other checks together, and a client sends the same one for
//! half an hour. What is remembered is the answer to exactly this text; whether it has expired or
//! was revoked is asked anew each time.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use urr_kernel::{Timestamp, Uuid};
use urr_service::token::{ACCESS, AccessClaims, TokenError, TokenKey};
use urr_service::{Identity, IdentityHeaders, Role};

/// More are not remembered. Two generations of them: the older one is forgotten when the younger
/// one is full, so that a flood of tokens costs nothing but time.
const TOKENS_MAX: usize = 32 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub user_id: Uuid,
    pub role: Role,
    pub headers: IdentityHeaders,
    pub token_id: Uuid,
    expires_at: Timestamp,
}

#[derive(Debug, Default)]
pub struct VerifiedTokens(RwLock<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<String, Verified>,
    old: HashMap<String, Verified>,
}

impl VerifiedTokens {
    /// Whom a token names, remembered or verified now.
    pub fn verify(
        &self,
        key: &TokenKey,
        token: &str,
        now: Timestamp,
    ) -> Result<Verified, TokenError> {
        if let Some(found) = self.find(token) {
            return if now < found.expires_at { Ok(found) } else { Err(TokenError::Expired) };
        }
        let verified = key.verify::<AccessClaims>(ACCESS, token, now)?;
        let user_id = verified.subject.parse().map_err(|_| TokenError::Malformed)?;
        let AccessClaims { email, role, .. } = verified.claims;
        let headers = Identity { user_id, email: Some(email), role }.headers();
        let (token_id, expires_at) = (verified.id, verified.expires_at);
        let verified = Verified { user_id, role, headers, token_id, expires_at };
        self.remember(token, verified.clone());
        Ok(verified)
    }

    fn find(&self, token: &str) -> Option<Verified> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.young.get(token).or_else(|| all.old.get(token)).cloned()
    }

    fn remember(&self, token: &str, verified: Verified) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.young.len() >= TOKENS_MAX / 2 {
            all.old = std::mem::take(&mut all.young);
        }
        all.young.insert(token.to_owned(), verified);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use urr_service::token::Issue;

    use super::*;

    fn token(id: u128, now: Timestamp) -> String {
        let issue = Issue {
            subject: Uuid::from_u128(id).to_string(),
            id: Uuid::from_u128(id),
            issued_at: now,
            lifetime: Duration::from_secs(60),
        };
        let claims = AccessClaims {
            email: "fan@example.com".to_owned(),
            role: Role::User,
            family_id: Uuid::from_u128(1),
        };
        key().sign(ACCESS, &issue, &claims)
    }

    fn key() -> TokenKey {
        TokenKey::new(&[7; 32])
    }

    #[test]
    fn a_remembered_token_says_the_same_and_expires_as_ever() {
        let now = Timestamp::from_second(1_000).unwrap();
        let tokens = VerifiedTokens::default();
        let token = token(5, now);
        let first = tokens.verify(&key(), &token, now).unwrap();
        let other_key = TokenKey::new(&[8; 32]);
        // The control of the memory: only what is remembered passes another key.
        assert_eq!(tokens.verify(&other_key, &token, now), Ok(first));
        let last = now + Duration::from_secs(59);
        assert!(tokens.verify(&key(), &token, last).is_ok());
        let over = now + Duration::from_secs(60);
        assert_eq!(tokens.verify(&key(), &token, over), Err(TokenError::Expired));
    }

    #[test]
    fn only_the_very_same_text_is_remembered_and_never_a_refusal() {
        let now = Timestamp::from_second(1_000).unwrap();
        let tokens = VerifiedTokens::default();
        let good = token(5, now);
        tokens.verify(&key(), &good, now).unwrap();
        for bad in [format!("{good}A"), good[..good.len() - 1].to_owned(), good.to_uppercase()] {
            for _ in 0..2 {
                assert!(tokens.verify(&key(), &bad, now).is_err(), "{bad}");
            }
        }
        assert_eq!(tokens.0.read().unwrap().young.len(), 1);
    }

    #[test]
    fn a_flood_of_tokens_is_forgotten_again() {
        let now = Timestamp::from_second(1_000).unwrap();
        let tokens = VerifiedTokens::default();
        let verified = tokens.verify(&key(), &token(5, now), now).unwrap();
        for n in 0..2 * TOKENS_MAX {
            tokens.remember(&n.to_string(), verified.clone());
        }
        let all = tokens.0.read().unwrap();
        assert!(all.young.len() + all.old.len() <= TOKENS_MAX);
    }
}
