//! Verification of the ID tokens of social providers.
//!
//! Only RS256 and ES256 are accepted, each with a key of its own type: a token can neither choose a
//! weaker algorithm nor use a public key as a shared secret. The crate `jsonwebtoken` 10 would
//! replace this file; beside `ring` it needs the C library aws-lc or 33 more crates of RustCrypto.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Deserializer};
use urr_kernel::Timestamp;

/// How much the clocks may differ.
const LEEWAY_SECONDS: i64 = 60;
const TOKEN_BYTES_MAX: usize = 16 * 1024;
const KEYS_MAX: usize = 32;
const SUBJECT_BYTES_MAX: usize = 255;

/// The public keys of a provider.
#[derive(Clone, Debug, Default)]
pub struct IdTokenKeys(Vec<(String, IdTokenKey)>);

#[derive(Clone, Debug)]
enum IdTokenKey {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The point in uncompressed form.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct KeySetBody {
    keys: Vec<KeyBody>,
}

#[derive(Deserialize)]
struct KeyBody {
    #[serde(default)]
    kid: String,
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl IdTokenKeys {
    /// Leaves out keys of other types.
    pub fn parse(body: &[u8]) -> Result<IdTokenKeys, serde_json::Error> {
        let body: KeySetBody = serde_json::from_slice(body)?;
        let signing = body
            .keys
            .into_iter()
            .filter(|key| key.usage.as_deref().is_none_or(|usage| usage == "sig"));
        let keys = signing.filter_map(|key| Some((key.kid.clone(), key.parse()?)));
        Ok(IdTokenKeys(keys.take(KEYS_MAX).collect()))
    }

    fn find(&self, kid: &str) -> Option<&IdTokenKey> {
        self.0.iter().find(|(found, _)| found == kid).map(|(_, key)| key)
    }
}

impl KeyBody {
    fn parse(self) -> Option<IdTokenKey> {
        match self.kty.as_str() {
            "RSA" => Some(IdTokenKey::Rsa { n: decode(&self.n?)?, e: decode(&self.e?)? }),
            "EC" if self.crv.as_deref() == Some("P-256") => {
                let (x, y) = (decode(&self.x?)?, decode(&self.y?)?);
                Some(IdTokenKey::P256([&[4][..], &x, &y].concat()))
            }
            _ => None,
        }
    }
}

/// What the claims of a token must be.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedClaims<'a> {
    pub issuers: &'a [String],
    pub audience: &'a str,
    /// The nonce of our request.
    pub nonce: &'a str,
    pub now: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdTokenError {
    #[error("the ID token cannot be read")]
    Malformed,
    #[error("the ID token is signed in a way that does not count")]
    Algorithm,
    #[error("the ID token is signed with a key that the provider does not show")]
    UnknownKey,
    #[error("the signature of the ID token is wrong")]
    Forged,
    #[error("the ID token is of another issuer")]
    Issuer,
    #[error("the ID token is meant for another application")]
    Audience,
    #[error("the ID token has expired or is not valid yet")]
    Time,
    #[error("the ID token answers another request")]
    Nonce,
}

#[derive(Deserialize)]
struct IdTokenHeader {
    alg: String,
    #[serde(default)]
    kid: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct IdTokenClaims {
    iss: String,
    pub sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: i64,
    iat: Option<i64>,
    nonce: Option<String>,
    pub email: Option<String>,
    /// `None` if the token does not say.
    #[serde(default, deserialize_with = "bool_or_text")]
    pub email_verified: Option<bool>,
    pub name: Option<String>,
    pub nickname: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Some providers write it as text. Whatever is not clearly true is false.
pub fn bool_or_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(from)?;
    Ok(value.map(|value| value == true || value == "true"))
}

/// Verifies a token, the signature first, and returns its claims.
pub fn verify(
    token: &str,
    keys: &IdTokenKeys,
    expected: ExpectedClaims<'_>,
) -> Result<IdTokenClaims, IdTokenError> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(IdTokenError::Malformed);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(IdTokenError::Malformed)?;
    let (header, payload) = signed.split_once('.').ok_or(IdTokenError::Malformed)?;
    let header: IdTokenHeader = read(header)?;
    let signature = decode(signature).ok_or(IdTokenError::Malformed)?;
    if !matches!(header.alg.as_str(), "RS256" | "ES256") {
        return Err(IdTokenError::Algorithm);
    }
    let key = keys.find(&header.kid).ok_or(IdTokenError::UnknownKey)?;
    let checked = match (key, header.alg.as_str()) {
        (IdTokenKey::Rsa { n, e }, "RS256") => RsaPublicKeyComponents { n, e }.verify(
            &RSA_PKCS1_2048_8192_SHA256,
            signed.as_bytes(),
            &signature,
        ),
        (IdTokenKey::P256(point), "ES256") => {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(signed.as_bytes(), &signature)
        }
        _ => return Err(IdTokenError::Algorithm),
    };
    checked.map_err(|_| IdTokenError::Forged)?;
    let claims: IdTokenClaims = read(payload)?;
    check(&claims, expected)?;
    Ok(claims)
}

fn check(claims: &IdTokenClaims, expected: ExpectedClaims<'_>) -> Result<(), IdTokenError> {
    if !expected.issuers.contains(&claims.iss) {
        return Err(IdTokenError::Issuer);
    }
    let ours = |audience: &String| audience == expected.audience;
    let is_ours = match &claims.aud {
        Audience::One(audience) => ours(audience),
        // With several audiences, the authorized party must be us.
        Audience::Many(all) => all.iter().any(ours) && (all.len() == 1 || claims.azp.is_some()),
    };
    if !is_ours || !claims.azp.as_ref().is_none_or(ours) {
        return Err(IdTokenError::Audience);
    }
    let now = expected.now.as_second();
    let is_early = claims.iat.is_some_and(|issued| issued > now.saturating_add(LEEWAY_SECONDS));
    if is_early || claims.exp.saturating_add(LEEWAY_SECONDS) <= now {
        return Err(IdTokenError::Time);
    }
    if claims.nonce.as_deref() != Some(expected.nonce) {
        return Err(IdTokenError::Nonce);
    }
    match claims.sub.is_empty() || claims.sub.len() > SUBJECT_BYTES_MAX {
        true => Err(IdTokenError::Malformed),
        false => Ok(()),
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn read<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, IdTokenError> {
    let bytes = decode(part).ok_or(IdTokenError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| IdTokenError::Malformed)
}

#[cfg(test)]
mod tests;
