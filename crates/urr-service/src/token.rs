//! Signed tokens: JSON Web Tokens of one kind only, HMAC-SHA256 with a key of ours.
//!
//! A token is read by what we expect of it, never by what it says of itself: algorithm, type,
//! issuer and audience are constants, and whatever else a header may carry (`jku`, `kid`, `crit`)
//! makes it foreign. Access, refresh and entry tokens differ in type and audience, so that none
//! passes for another.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use urr_kernel::{Timestamp, Uuid};

use crate::UserRole;

/// Longer texts are refused unread. Ours have a few hundred characters.
const CHARS_MAX: usize = 4_096;
const ISSUER: &str = "urr";
const ALGORITHM: &str = "HS256";
const KEY_BYTES_MIN: usize = 32;
/// How far the clocks of our own processes may differ.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(5);

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPurpose {
    pub audience: &'static str,
    pub typ: &'static str,
}

/// Says who someone is, to the gateway. The subject is the user.
pub const ACCESS: TokenPurpose = TokenPurpose { audience: "urr-api", typ: "at+jwt" };
/// Is exchanged for the next access token. The subject is the user.
pub const REFRESH: TokenPurpose = TokenPurpose { audience: "urr-auth", typ: "rt+jwt" };
/// Proves a slot: its holder may book. The subject is the event.
pub const ENTRY: TokenPurpose = TokenPurpose { audience: "urr-booking", typ: "et+jwt" };

/// What an access token says beside its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessClaims {
    pub email: String,
    pub role: UserRole,
    /// The session it belongs to.
    pub family_id: Uuid,
    /// Whether the user has proved that the address is theirs.
    #[serde(default)]
    pub email_verified: bool,
}

/// What a refresh token says beside its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefreshClaims {
    pub family_id: Uuid,
}

/// What an entry token says beside its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryClaims {
    #[serde(rename = "uid")]
    pub user_id: Uuid,
}

/// What every token says.
#[derive(Clone, Debug)]
pub struct TokenFacts {
    pub subject: String,
    /// Its own id, by which it can be revoked.
    pub id: Uuid,
    pub issued_at: Timestamp,
    pub lifetime: Duration,
}

/// A token that is ours, fits its purpose and is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken<C> {
    pub subject: String,
    pub id: Uuid,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    pub claims: C,
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token is not of the form we issue")]
    Malformed,
    #[error("the token was not signed by us")]
    Forged,
    #[error("the token is for something else")]
    WrongPurpose,
    #[error("the token has expired")]
    Expired,
    #[error("the token is from the future")]
    NotYetValid,
}

/// A key to sign and verify with.
#[derive(Clone)]
pub struct TokenKey(Hmac<Sha256>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenHeader {
    alg: String,
    typ: String,
}

#[derive(Serialize, Deserialize)]
struct TokenPayload<C> {
    iss: String,
    aud: String,
    sub: String,
    jti: Uuid,
    iat: i64,
    exp: i64,
    #[serde(flatten)]
    claims: C,
}

impl TokenKey {
    /// The configuration refuses shorter keys with a sentence; here it is a bug.
    pub fn new(key: &[u8]) -> TokenKey {
        assert!(key.len() >= KEY_BYTES_MIN, "a key of {} bytes", key.len());
        TokenKey(Hmac::new_from_slice(key).expect("HMAC takes a key of any length"))
    }

    pub fn sign<C: Serialize>(
        &self,
        purpose: TokenPurpose,
        issue: &TokenFacts,
        claims: &C,
    ) -> String {
        let header = TokenHeader { alg: ALGORITHM.to_owned(), typ: purpose.typ.to_owned() };
        let issued_at = issue.issued_at.as_second();
        let lifetime = i64::try_from(issue.lifetime.as_secs()).expect("a lifetime is short");
        let payload = TokenPayload {
            iss: ISSUER.to_owned(),
            aud: purpose.audience.to_owned(),
            sub: issue.subject.clone(),
            jti: issue.id,
            iat: issued_at,
            exp: issued_at + lifetime,
            claims,
        };
        let signed = format!("{}.{}", encode(&header), encode(&payload));
        let mac = self.0.clone().chain_update(signed.as_bytes()).finalize().into_bytes();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac))
    }

    pub fn verify<C: DeserializeOwned>(
        &self,
        purpose: TokenPurpose,
        token: &str,
        now: Timestamp,
    ) -> Result<VerifiedToken<C>, TokenError> {
        let parts = TokenParts::of(token)?;
        let mac = URL_SAFE_NO_PAD.decode(parts.mac).map_err(|_| TokenError::Malformed)?;
        // The signature is verified before anything is parsed.
        let expected = self.0.clone().chain_update(parts.signed.as_bytes());
        expected.verify_slice(&mac).map_err(|_| TokenError::Forged)?;
        parts.understand(purpose, now)
    }
}

/// Reads a token whose signature was verified before. All other checks are made.
pub fn read_vouched<C: DeserializeOwned>(
    purpose: TokenPurpose,
    token: &str,
    now: Timestamp,
) -> Result<VerifiedToken<C>, TokenError> {
    TokenParts::of(token)?.understand(purpose, now)
}

/// A token as it is written.
struct TokenParts<'a> {
    /// Header and payload, as they were signed.
    signed: &'a str,
    header: &'a str,
    payload: &'a str,
    mac: &'a str,
}

impl TokenParts<'_> {
    fn of(token: &str) -> Result<TokenParts<'_>, TokenError> {
        if token.len() > CHARS_MAX {
            return Err(TokenError::Malformed);
        }
        let (signed, mac) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        Ok(TokenParts { signed, header, payload, mac })
    }

    /// What it says, if it is for this purpose and in force.
    fn understand<C: DeserializeOwned>(
        &self,
        purpose: TokenPurpose,
        now: Timestamp,
    ) -> Result<VerifiedToken<C>, TokenError> {
        let header: TokenHeader = decode(self.header)?;
        let payload: TokenPayload<serde_json::Value> = decode(self.payload)?;
        let fits = header.alg == ALGORITHM
            && header.typ == purpose.typ
            && payload.aud == purpose.audience
            && payload.iss == ISSUER;
        if !fits {
            return Err(TokenError::WrongPurpose);
        }
        let issued_at = seconds(payload.iat)?;
        let expires_at = seconds(payload.exp)?;
        if now >= expires_at {
            return Err(TokenError::Expired);
        }
        if issued_at > now + CLOCK_SKEW_MAX {
            return Err(TokenError::NotYetValid);
        }
        let claims = serde_json::from_value(payload.claims).map_err(|_| TokenError::Malformed)?;
        let (subject, id) = (payload.sub, payload.jti);
        Ok(VerifiedToken { subject, id, issued_at, expires_at, claims })
    }
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[key]")
    }
}

fn encode(part: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(part).expect("claims are plain structs"))
}

fn decode<T: DeserializeOwned>(part: &str) -> Result<T, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed)
}

fn seconds(time: i64) -> Result<Timestamp, TokenError> {
    Timestamp::from_second(time).map_err(|_| TokenError::Malformed)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn key() -> TokenKey {
        TokenKey::new(&[7; 32])
    }

    fn now() -> Timestamp {
        "2026-11-15T00:00:00Z".parse().unwrap()
    }

    fn issue() -> TokenFacts {
        TokenFacts {
            subject: "somebody".to_owned(),
            id: Uuid::from_u128(9),
            issued_at: now(),
            lifetime: Duration::from_secs(1_800),
        }
    }

    fn claims() -> AccessClaims {
        let family_id = Uuid::from_u128(3);
        let (email, role) = ("a@example.com".to_owned(), UserRole::User);
        AccessClaims { email, role, family_id, email_verified: true }
    }

    fn verify(token: &str, at: Timestamp) -> Result<VerifiedToken<AccessClaims>, TokenError> {
        key().verify(ACCESS, token, at)
    }

    /// Signs whatever header and payload an attacker might wish for, with our own key.
    fn signed(header: &Value, payload: &Value) -> String {
        let signed = format!("{}.{}", encode(header), encode(payload));
        let mac = key().0.chain_update(signed.as_bytes()).finalize().into_bytes();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac))
    }

    fn good_header() -> Value {
        json!({ "alg": "HS256", "typ": "at+jwt" })
    }

    fn good_payload() -> Value {
        json!({
            "iss": "urr", "aud": "urr-api", "sub": "somebody", "jti": Uuid::from_u128(9),
            "iat": now().as_second(), "exp": now().as_second() + 1_800,
            "email": "a@example.com", "role": "user", "familyId": Uuid::from_u128(3),
            "emailVerified": true,
        })
    }

    #[test]
    fn a_token_of_ours_is_understood() {
        let token = key().sign(ACCESS, &issue(), &claims());
        let verified = verify(&token, now()).unwrap();
        assert_eq!(verified.subject, "somebody");
        assert_eq!(verified.id, Uuid::from_u128(9));
        assert_eq!(verified.claims, claims());
        assert_eq!(verified.expires_at, now() + Duration::from_secs(1_800));
        // The control of the attacks below: what they vary is good as it stands.
        assert_eq!(verify(&signed(&good_header(), &good_payload()), now()), Ok(verified));
    }

    #[test]
    fn it_is_in_force_until_its_last_second() {
        let token = key().sign(ACCESS, &issue(), &claims());
        assert!(verify(&token, now() + Duration::from_secs(1_799)).is_ok());
        let after = verify(&token, now() + Duration::from_secs(1_800));
        assert_eq!(after, Err(TokenError::Expired));
        assert!(verify(&token, now() - Duration::from_secs(5)).is_ok(), "clocks differ a little");
        let before = verify(&token, now() - Duration::from_secs(6));
        assert_eq!(before, Err(TokenError::NotYetValid));
    }

    #[test]
    fn d_3_no_token_passes_for_another_kind() {
        let refresh = key().sign(REFRESH, &issue(), &claims());
        assert_eq!(verify(&refresh, now()), Err(TokenError::WrongPurpose));
        let entry = key().sign(ENTRY, &issue(), &claims());
        assert_eq!(verify(&entry, now()), Err(TokenError::WrongPurpose));
    }

    #[test]
    fn headers_that_say_anything_else_are_refused() {
        for header in [
            json!({ "alg": "none", "typ": "at+jwt" }),
            json!({ "alg": "HS512", "typ": "at+jwt" }),
            json!({ "alg": "RS256", "typ": "at+jwt" }),
            json!({ "alg": "hs256", "typ": "at+jwt" }),
            json!({ "alg": "HS256", "typ": "JWT" }),
            json!({ "alg": "HS256" }),
            json!({ "alg": "HS256", "typ": "at+jwt", "kid": "../../dev/null" }),
            json!({ "alg": "HS256", "typ": "at+jwt", "jku": "http://127.0.0.1/keys" }),
            json!({ "alg": "HS256", "typ": "at+jwt", "crit": ["exp"] }),
        ] {
            let token = signed(&header, &good_payload());
            assert!(verify(&token, now()).is_err(), "{header}");
        }
    }

    #[test]
    fn payloads_that_lack_or_bend_something_are_refused() {
        let changed = |name: &str, value: Value| {
            let mut payload = good_payload();
            payload[name] = value;
            payload
        };
        for payload in [
            changed("iss", json!("someone-else")),
            changed("aud", json!("urr-booking")),
            changed("aud", json!(["urr-api", "other"])),
            changed("exp", json!("tomorrow")),
            changed("exp", json!(null)),
            changed("exp", json!(i64::MAX)),
            changed("exp", json!(1e300)),
            changed("jti", json!("not-a-uuid")),
            changed("role", json!("root")),
            changed("role", json!(null)),
            json!({}),
            json!([]),
        ] {
            let token = signed(&good_header(), &payload);
            assert!(verify(&token, now()).is_err(), "{payload}");
        }
    }

    #[test]
    fn tokens_that_were_touched_are_refused() {
        let token = key().sign(ACCESS, &issue(), &claims());
        let (signed, mac) = token.rsplit_once('.').unwrap();
        let (header, payload) = signed.split_once('.').unwrap();
        let other_key = TokenKey::new(&[8; 32]).sign(ACCESS, &issue(), &claims());
        for bad in [
            String::new(),
            ".".to_owned(),
            "..".to_owned(),
            signed.to_owned(),
            format!("{signed}."),
            format!("{token}="),
            format!(" {token}"),
            format!("{token}\n"),
            format!("{token}.{mac}"),
            format!("{header}.{payload}.{}", &mac[..mac.len() - 2]),
            format!("{header}.{payload}.{}", "A".repeat(mac.len())),
            format!("{payload}.{header}.{mac}"),
            token.to_uppercase(),
            other_key,
            "a".repeat(CHARS_MAX + 1),
            format!("{header}.{payload}.ü"),
        ] {
            assert!(verify(&bad, now()).is_err(), "{bad}");
        }
    }

    #[test]
    fn e_5_who_vouches_for_the_signature_vouches_for_nothing_else() {
        let read = |token: &str, at| read_vouched::<AccessClaims>(ACCESS, token, at);
        let foreign = TokenKey::new(&[8; 32]).sign(ACCESS, &issue(), &claims());
        assert!(read(&foreign, now()).is_ok());
        assert_eq!(verify(&foreign, now()), Err(TokenError::Forged), "control");
        assert_eq!(read(&foreign, now() + Duration::from_secs(1_800)), Err(TokenError::Expired));
        assert_eq!(read(&foreign, now() - Duration::from_secs(6)), Err(TokenError::NotYetValid));
        let refresh = TokenKey::new(&[8; 32]).sign(REFRESH, &issue(), &claims());
        assert_eq!(read(&refresh, now()), Err(TokenError::WrongPurpose));
        let none = signed(&json!({ "alg": "none", "typ": "at+jwt" }), &good_payload());
        assert_eq!(read(&none, now()), Err(TokenError::WrongPurpose));
        for bad in ["", ".", "a.b", "e30.e30.x", "e30.e30.x.x", &"a".repeat(CHARS_MAX + 1)] {
            assert!(read(bad, now()).is_err(), "{bad}");
        }
    }

    #[test]
    #[should_panic(expected = "a key of 31 bytes")]
    fn d_18_a_short_key_is_never_used() {
        TokenKey::new(&[0; 31]);
    }
}
