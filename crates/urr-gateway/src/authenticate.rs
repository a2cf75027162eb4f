//! Who sent a request: reads its credential, verifies the access token, applies the route's policy.
//!
//! The credential is a bearer token, or the cookie `access_token` if there is no `Authorization`
//! header. Two headers, two cookies of that name or another scheme make it malformed.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use urr_kernel::{Clock, Timestamp, Uuid};
use urr_service::cache::{Cache, CacheOptions};
use urr_service::token::{ACCESS, AccessClaims, TokenError, TokenKey};
use urr_service::{ApiError, Identity, IdentityHeaders, UserRole};

use crate::Gateway;
use crate::headers::{cookies, single_value};
use crate::routes::Policy;

pub const ACCESS_COOKIE: &str = "access_token";

/// An access token as a client sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken(pub String);

impl Hash for AccessToken {
    /// Its end is most of its signature, by which tokens that we signed differ. Hashing all of it
    /// would cost more than everything else that the cache does.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let text = self.0.as_bytes();
        text[text.len().saturating_sub(32)..].hash(state);
    }
}

/// What a request brings to prove who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    None,
    /// From the header, which a foreign page cannot make a browser send.
    Header(AccessToken),
    /// From the cookie, which browsers send by themselves.
    Cookie(AccessToken),
    /// More than one, or one that cannot be read.
    Malformed {
        from_cookie: bool,
    },
}

impl Credential {
    /// Whether a browser may have sent it on behalf of a foreign page.
    pub fn is_from_cookie(&self) -> bool {
        matches!(self, Credential::Cookie(_) | Credential::Malformed { from_cookie: true })
    }

    pub fn read(headers: &HeaderMap) -> Credential {
        match single_value(headers, header::AUTHORIZATION) {
            Ok(None) => credential_from_cookies(headers),
            Ok(Some(value)) => bearer_token(value)
                .map_or(Credential::Malformed { from_cookie: false }, |token| {
                    Credential::Header(AccessToken(token.to_owned()))
                }),
            Err(_) => Credential::Malformed { from_cookie: false },
        }
    }
}

/// The token of `Bearer <token>`. The scheme is case-insensitive (RFC 9110, 11.1).
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let is_one_word = !token.contains(|c: char| c.is_whitespace() || c == ',');
    (scheme.eq_ignore_ascii_case("bearer") && is_one_word).then_some(token)
}

fn credential_from_cookies(headers: &HeaderMap) -> Credential {
    let mut values = cookies(headers).filter(|(name, _)| *name == ACCESS_COOKIE);
    match (values.next(), values.next()) {
        (None, _) => Credential::None,
        // A logout leaves an empty cookie for a moment.
        (Some((_, Some(""))), None) => Credential::None,
        (Some((_, Some(token))), None) => Credential::Cookie(AccessToken(token.to_owned())),
        (Some(_), _) => Credential::Malformed { from_cookie: true },
    }
}

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    Anonymous,
    User {
        id: Uuid,
        role: UserRole,
        /// Whether they have proved that their e-mail address is theirs.
        email_verified: bool,
        token: LiveToken,
    },
    /// The token is not valid. Public routes treat it as anonymous; other routes answer with the
    /// reason (G3).
    InvalidToken(TokenFault),
}

/// The token of a user, which a stream must not outlast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveToken {
    pub id: Uuid,
    pub expires_at: Timestamp,
}

/// Why an access token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    Expired,
    Malformed,
    Revoked,
    /// Not ours, not an access token, or issued in the future.
    Invalid,
    /// The list of revoked tokens has not been read yet.
    Unverifiable,
}

impl TokenFault {
    pub fn error(self) -> ApiError {
        let (code, sentence) = match self {
            TokenFault::Expired => ("TOKEN_EXPIRED", "Your session has expired."),
            TokenFault::Malformed => ("TOKEN_MALFORMED", "The access token cannot be read."),
            TokenFault::Revoked => {
                ("TOKEN_REVOKED", "Your session has ended. Please log in again.")
            }
            TokenFault::Invalid => ("TOKEN_INVALID", "The access token is not valid."),
            TokenFault::Unverifiable => {
                let sentence = "We cannot check who you are at the moment. Please try again.";
                let retry_after = Duration::from_secs(1);
                return ApiError::unavailable("SERVICE_UNAVAILABLE", sentence, retry_after);
            }
        };
        ApiError::unauthorized(code, sentence)
    }
}

impl From<TokenError> for TokenFault {
    fn from(error: TokenError) -> TokenFault {
        match error {
            TokenError::Expired => TokenFault::Expired,
            TokenError::Malformed => TokenFault::Malformed,
            TokenError::Forged | TokenError::WrongPurpose | TokenError::NotYetValid => {
                TokenFault::Invalid
            }
        }
    }
}

/// Verifies the token and writes the identity headers that services trust.
pub fn authenticate(
    gateway: &Gateway,
    credential: &Credential,
    headers: &mut HeaderMap,
) -> Requester {
    let token = match credential {
        Credential::None => return Requester::Anonymous,
        Credential::Malformed { .. } => return Requester::InvalidToken(TokenFault::Malformed),
        Credential::Header(token) | Credential::Cookie(token) => token,
    };
    match verify_token(gateway, token, gateway.clock.now()) {
        Err(fault) => Requester::InvalidToken(fault),
        Ok(verified) => {
            let VerifiedAccessToken { user_id: id, role, email_verified, .. } = verified;
            let token = LiveToken { id: verified.token_id, expires_at: verified.expires_at };
            verified.headers.write(headers);
            Requester::User { id, role, email_verified, token }
        }
    }
}

fn verify_token(
    gateway: &Gateway,
    token: &AccessToken,
    now: Timestamp,
) -> Result<VerifiedAccessToken, TokenFault> {
    let verified = gateway.token_cache.verify(&gateway.settings.access_key, token, now)?;
    let feed = gateway.feed.as_ref();
    match feed.map_or(Some(false), |feed| feed.is_revoked(verified.token_id)) {
        None => Err(TokenFault::Unverifiable),
        Some(true) => Err(TokenFault::Revoked),
        Some(false) => Ok(verified),
    }
}

/// Applies the policy of a route. Gives the user's id, which public routes need not have.
pub fn authorize(policy: Policy, requester: Requester) -> Result<Option<Uuid>, ApiError> {
    let (id, role) = match (policy, requester) {
        (_, Requester::User { id, role, .. }) => (id, role),
        (Policy::Public, _) => return Ok(None),
        (_, Requester::InvalidToken(fault)) => return Err(fault.error()),
        (_, Requester::Anonymous) => {
            let sentence = "Please log in first.";
            return Err(ApiError::unauthorized("AUTHENTICATION_REQUIRED", sentence));
        }
    };
    if let Policy::Role(group) = policy {
        group.check(role)?;
    }
    Ok(Some(id))
}

const TOKEN_CACHE: CacheOptions =
    CacheOptions { ttl: Duration::from_secs(60 * 60), entries_max: 32 * 1024 };

#[derive(Clone, Debug, PartialEq, Eq)]
struct VerifiedAccessToken {
    user_id: Uuid,
    role: UserRole,
    email_verified: bool,
    headers: IdentityHeaders,
    token_id: Uuid,
    expires_at: Timestamp,
}

/// A cache of verified access tokens.
///
/// Verifying a token costs more than all other checks together, and a client sends the same token
/// for half an hour. The cache is keyed by the whole text of the token; expiry and revocation are
/// checked on every request.
pub struct TokenCache(Cache<AccessToken, VerifiedAccessToken, TokenError>);

impl TokenCache {
    pub fn new(clock: Clock) -> TokenCache {
        TokenCache(Cache::new(clock, TOKEN_CACHE))
    }

    /// The claims of a token, from the cache or verified now.
    fn verify(
        &self,
        key: &TokenKey,
        token: &AccessToken,
        now: Timestamp,
    ) -> Result<VerifiedAccessToken, TokenError> {
        if let Some(cached) = self.0.get_at(token, now) {
            return if now < cached.expires_at { Ok(cached) } else { Err(TokenError::Expired) };
        }
        let verified = key.verify::<AccessClaims>(ACCESS, &token.0, now)?;
        let user_id = verified.subject.parse().map_err(|_| TokenError::Malformed)?;
        let AccessClaims { email, role, email_verified, .. } = verified.claims;
        let headers = Identity { user_id, email: Some(email), role }.headers();
        let (token_id, expires_at) = (verified.id, verified.expires_at);
        let verified =
            VerifiedAccessToken { user_id, role, email_verified, headers, token_id, expires_at };
        self.0.insert(token.clone(), verified.clone());
        Ok(verified)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;
    use urr_service::token::TokenFacts;

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, axum::http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn the_header_wins_over_the_cookie() {
        let cookie = (header::COOKIE, "theme=dark; access_token=c; refresh_token=r");
        let bearer = |value| (header::AUTHORIZATION, value);
        let sent = |text: &str| AccessToken(text.to_owned());
        let check = |pairs: &[(HeaderName, &str)], expected: Credential| {
            assert_eq!(Credential::read(&headers(pairs)), expected, "{pairs:?}");
        };
        let from_header = Credential::Malformed { from_cookie: false };
        check(&[], Credential::None);
        check(std::slice::from_ref(&cookie), Credential::Cookie(sent("c")));
        check(&[cookie.clone(), bearer("Bearer h")], Credential::Header(sent("h")));
        check(&[bearer("bearer h")], Credential::Header(sent("h")));
        check(&[cookie.clone(), bearer("Basic h")], from_header.clone());
        check(&[cookie, bearer("h")], from_header.clone());
        check(&[bearer("Bearer a"), bearer("Bearer a")], from_header);
    }

    #[test]
    fn two_access_cookies_are_malformed() {
        let cookie = |value| (header::COOKIE, value);
        for two in [
            vec![cookie("access_token=a; access_token=b")],
            vec![cookie("access_token=a"), cookie("access_token=a")],
            vec![cookie("access_token=; access_token=b")],
        ] {
            assert_eq!(
                Credential::read(&headers(&two)),
                Credential::Malformed { from_cookie: true }
            );
        }
        let similar = [cookie("xaccess_token=a; access_token2=b; Access_Token=c; access_token")];
        assert_eq!(Credential::read(&headers(&similar)), Credential::None);
        assert_eq!(Credential::read(&headers(&[cookie("access_token=")])), Credential::None);
    }

    #[test]
    fn each_policy_lets_its_own_in_and_nobody_else() {
        let token = LiveToken { id: Uuid::from_u128(9), expires_at: Timestamp::MAX };
        let id = Uuid::from_u128(1);
        let user = |role| Requester::User { id, role, email_verified: true, token };
        let requesters = [
            Requester::Anonymous,
            Requester::InvalidToken(TokenFault::Expired),
            user(UserRole::User),
            user(UserRole::Admin),
        ];
        let code = |policy, requester| match authorize(policy, requester) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.code().to_owned(),
        };
        let codes = |policy| requesters.map(|requester| code(policy, requester));
        assert_eq!(codes(Policy::Public), ["ok", "ok", "ok", "ok"]);
        let logged_in = ["AUTHENTICATION_REQUIRED", "TOKEN_EXPIRED", "ok", "ok"];
        assert_eq!(codes(Policy::User), logged_in);
        assert_eq!(codes(Policy::Admitted), logged_in);
        let admins = ["AUTHENTICATION_REQUIRED", "TOKEN_EXPIRED", "ADMIN_REQUIRED", "ok"];
        assert_eq!(codes(Policy::ADMIN), admins);
    }

    fn token(id: u128, now: Timestamp) -> AccessToken {
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
            email_verified: true,
        };
        AccessToken(key().sign(ACCESS, &issue, &claims))
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
        let AccessToken(good) = good;
        let end = good.len() - 1;
        let same_end = format!("f{}", &good[1..]);
        for bad in [format!("{good}A"), good[..end].to_owned(), good.to_uppercase(), same_end] {
            let bad = AccessToken(bad);
            for _ in 0..2 {
                assert!(tokens.verify(&key(), &bad, now).is_err(), "{bad:?}");
            }
        }
        assert_eq!(tokens.0.len(), 1);
    }

    #[test]
    fn the_cache_is_bounded() {
        let now = Timestamp::from_second(1_000).unwrap();
        let tokens = TokenCache::new(Clock::manual(now));
        let verified = tokens.verify(&key(), &token(5, now), now).unwrap();
        for n in 0..2 * TOKEN_CACHE.entries_max {
            tokens.0.insert(AccessToken(n.to_string()), verified.clone());
        }
        assert!(tokens.0.len() <= TOKEN_CACHE.entries_max);
    }
}
