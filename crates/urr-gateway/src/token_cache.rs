//! A cache of verified access tokens.
//!
//! Verifying a token costs more than all other checks together, and a client sends the same token
//! for half an hour. The cache is keyed by the whole text of the token; expiry and revocation are
//! checked on every request.

use std::time::Duration;

use urr_kernel::{Clock, Timestamp, Uuid};
use urr_service::cache::{Cache, CacheOptions};
use urr_service::token::{ACCESS, AccessClaims, TokenError, TokenKey};
use urr_service::{Identity, IdentityHeaders, UserRole};

const OPTIONS: CacheOptions =
    CacheOptions { ttl: Duration::from_secs(60 * 60), entries_max: 32 * 1024 };

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedAccessToken {
    pub user_id: Uuid,
    pub role: UserRole,
    pub headers: IdentityHeaders,
    pub token_id: Uuid,
    expires_at: Timestamp,
}

pub struct TokenCache(Cache<String, VerifiedAccessToken, TokenError>);

impl TokenCache {
    pub fn new(clock: Clock) -> TokenCache {
        TokenCache(Cache::new(clock, OPTIONS))
    }

    /// The claims of a token, from the cache or verified now.
    pub fn verify(
        &self,
        key: &TokenKey,
        token: &String,
        now: Timestamp,
    ) -> Result<VerifiedAccessToken, TokenError> {
        if let Some(cached) = self.0.get(token) {
            return if now < cached.expires_at { Ok(cached) } else { Err(TokenError::Expired) };
        }
        let verified = key.verify::<AccessClaims>(ACCESS, token, now)?;
        let user_id = verified.subject.parse().map_err(|_| TokenError::Malformed)?;
        let AccessClaims { email, role, .. } = verified.claims;
        let headers = Identity { user_id, email: Some(email), role }.headers();
        let (token_id, expires_at) = (verified.id, verified.expires_at);
        let verified = VerifiedAccessToken { user_id, role, headers, token_id, expires_at };
        self.0.insert(token.clone(), verified.clone());
        Ok(verified)
    }
}

#[cfg(test)]
mod tests {
    use urr_service::token::TokenFacts;

    use super::*;

    fn token(id: u128, now: Timestamp) -> String {
        let issue = TokenFacts {
            subject: Uuid::from_u128(id).to_string(),
            id: Uuid::from_u128(id),
            issued_at: now,
            lifetime: Duration::from_secs(60),
        };
        let claims = AccessClaims {
            email: "fan@example.com".to_owned(),
            role: UserRole::User,
            family_id: Uuid::from_u128(1),
        };
        key().sign(ACCESS, &issue, &claims)
    }

    fn key() -> TokenKey {
        TokenKey::new(&[7; 32])
    }

    #[test]
    fn a_cached_token_has_the_same_claims_and_expires() {
        let now = Timestamp::from_second(1_000).unwrap();
        let tokens = TokenCache::new(Clock::manual(now));
        let token = token(5, now);
        let first = tokens.verify(&key(), &token, now).unwrap();
        let other_key = TokenKey::new(&[8; 32]);
        // Control: a token that another key signed passes only from the cache.
        assert_eq!(tokens.verify(&other_key, &token, now), Ok(first));
        let last = now + Duration::from_secs(59);
        assert!(tokens.verify(&key(), &token, last).is_ok());
        let over = now + Duration::from_secs(60);
        assert_eq!(tokens.verify(&key(), &token, over), Err(TokenError::Expired));
    }

    #[test]
    fn only_the_exact_token_is_cached_and_never_a_failure() {
        let now = Timestamp::from_second(1_000).unwrap();
        let tokens = TokenCache::new(Clock::manual(now));
        let good = token(5, now);
        tokens.verify(&key(), &good, now).unwrap();
        for bad in [format!("{good}A"), good[..good.len() - 1].to_owned(), good.to_uppercase()] {
            for _ in 0..2 {
                assert!(tokens.verify(&key(), &bad, now).is_err(), "{bad}");
            }
        }
        assert_eq!(tokens.0.len(), 1);
    }

    #[test]
    fn the_cache_is_bounded() {
        let now = Timestamp::from_second(1_000).unwrap();
        let tokens = TokenCache::new(Clock::manual(now));
        let verified = tokens.verify(&key(), &token(5, now), now).unwrap();
        for n in 0..2 * OPTIONS.entries_max {
            tokens.0.insert(n.to_string(), verified.clone());
        }
        assert!(tokens.0.len() <= OPTIONS.entries_max);
    }
}
