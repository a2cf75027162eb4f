//! Tokens that count, and each way in which one does not.

use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

use super::*;

// Made once with `openssl genrsa` and `openssl dgst -sha256 -sign`; the key was thrown away.
const RSA_N: &str = "h_EDpWUIfDz6PeznmwrTcF8HzY9zTEAXaNz8E7-SE3563M37rufCCEfbtVgpydh5jy0uo97b35ZvLPGlHET4B6um\
     LfwOo4PVBeWHg_LEWN51IYTwgnO0g9AEDockKJtYGE3Wp9f33UZBIp4qXkbU571Rd0bin_t5YGbs8mCCv3lu1C5B\
     tBPbaBUBgdSIx4KI9_k7wCB1xNJEg8hTZJ90JUi_AO0wpD0kBEmya1Yt82J2n9AyUL0235IUT1hdOsMOQLJzL9yc\
     CiJWq7flkwHpU1NHN9SQRHVMmL6yXmz7DB10U5OYEKRBuGq2a0pgw3s_1dnskLnVwQUTZGPEdtCgEQ";
const RSA_SIGNED: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYS0xIiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL2lzc3Vlci5l\
     eGFtcGxlIiwic3ViIjoiMTA4IiwiYXVkIjoidXJyLWNsaWVudCIsImV4cCI6MTc5NDcwNjIwMCwiaWF0IjoxNzk0\
     NzAyNjAwLCJub25jZSI6Im4tMSIsImVtYWlsIjoibWluYUBleGFtcGxlLmNvbSIsImVtYWlsX3ZlcmlmaWVkIjp0\
     cnVlfQ";
const RSA_SIGNATURE: &str = "En8nxVFNuPzRrylaaybyGMag8Emnvqhh-140Ih326EP1MCOblsrmVZ0jr-WoD-8EsuKRYCcGFn2P-36BfRAHWWRs\
     lcxOwc79ASY7smKCXDyi4NsJbH1nO-9RayaFLpRG4J0-d5NbDG042kID_wn1XAMbcfXMHFPOJbjI6hrQsVE0Mz_3\
     6V0r7XHnaoCrUsbck48xD_BXJV-BFzPkZ_XwwumKSKJKtbrEKirqWLs55VydITJhXVclly7-ONrI_KPgMwirillk\
     f7PcoWfvHyLqEm_DQMYOkEnpWb9_KT7f6Ga6dgzvZRY2TS_e6HywtkZksZ3dRp7MqMwt9sds1iMlsw";

const ISSUED_AT: i64 = 1_794_702_600;
const EXPIRES_AT: i64 = 1_794_706_200;

struct Signer(EcdsaKeyPair, SystemRandom);

impl Signer {
    fn new() -> Signer {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Signer(pair, random)
    }

    fn key(&self, kid: &str) -> Value {
        let point = self.0.public_key().as_ref();
        let (x, y) = point[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": kid, "x": x, "y": y})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = signed(header, claims);
        let signature = self.0.sign(&self.1, signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn signed(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn key_set(keys: &[Value]) -> IdTokenKeys {
    IdTokenKeys::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn rsa_key() -> Value {
    json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "rsa-1", "n": RSA_N, "e": "AQAB"})
}

fn claims() -> Value {
    json!({
        "iss": "https://issuer.example", "sub": "108", "aud": "urr-client", "nonce": "n-1",
        "iat": ISSUED_AT, "exp": EXPIRES_AT,
    })
}

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims();
    claims[field] = value.into();
    claims
}

fn header() -> Value {
    json!({"alg": "ES256", "kid": "ec-1"})
}

fn verify_at(token: &str, keys: &IdTokenKeys, second: i64) -> Result<IdTokenClaims, IdTokenError> {
    let issuers = ["https://issuer.example".to_owned()];
    let now = Timestamp::from_second(second).unwrap();
    let nonce = "n-1";
    verify(token, keys, ExpectedClaims { issuers: &issuers, audience: "urr-client", nonce, now })
}

fn refusal(token: &str, keys: &IdTokenKeys) -> IdTokenError {
    verify_at(token, keys, ISSUED_AT).expect_err("it must not count")
}

#[test]
fn a_token_signed_with_rsa_counts_and_one_changed_bit_does_not() {
    let keys = key_set(&[rsa_key()]);
    let token = format!("{RSA_SIGNED}.{RSA_SIGNATURE}");
    let claims = verify_at(&token, &keys, ISSUED_AT).unwrap();
    assert_eq!(claims.sub, "108");
    assert_eq!(claims.email.as_deref(), Some("mina@example.com"));
    assert_eq!(claims.email_verified, Some(true));
    let (header, payload) = RSA_SIGNED.split_once('.').unwrap();
    let payload = String::from_utf8(decode(payload).unwrap()).unwrap();
    let other = URL_SAFE_NO_PAD.encode(payload.replace("108", "109"));
    let forged = format!("{header}.{other}.{RSA_SIGNATURE}");
    assert_eq!(refusal(&forged, &keys), IdTokenError::Forged);
}

#[test]
fn a_token_signed_with_an_elliptic_curve_counts_with_its_own_key_only() {
    let (signer, other) = (Signer::new(), Signer::new());
    let token = signer.sign(&header(), &claims());
    assert!(verify_at(&token, &key_set(&[rsa_key(), signer.key("ec-1")]), ISSUED_AT).is_ok());
    assert_eq!(refusal(&token, &key_set(&[other.key("ec-1")])), IdTokenError::Forged);
    assert_eq!(refusal(&token, &key_set(&[signer.key("ec-2")])), IdTokenError::UnknownKey);
    assert_eq!(refusal(&token, &key_set(&[])), IdTokenError::UnknownKey);
}

#[test]
fn a_token_cannot_choose_a_weaker_proof() {
    let signer = Signer::new();
    let keys = key_set(&[signer.key("ec-1"), rsa_key()]);
    for alg in ["none", "None", "", "HS256", "RS384", "ES384", "PS256", "rs256"] {
        let token = signer.sign(&json!({"alg": alg, "kid": "ec-1"}), &claims());
        assert_eq!(refusal(&token, &keys), IdTokenError::Algorithm, "{alg}");
    }
    let unsigned = format!("{}.", signed(&json!({"alg": "none"}), &claims()));
    assert_eq!(refusal(&unsigned, &keys), IdTokenError::Algorithm);
    let signed = signed(&json!({"alg": "HS256", "kid": "rsa-1"}), &claims());
    let public = hmac::Key::new(hmac::HMAC_SHA256, RSA_N.as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&public, signed.as_bytes()));
    assert_eq!(refusal(&format!("{signed}.{tag}"), &keys), IdTokenError::Algorithm);
    for (alg, kid) in [("RS256", "ec-1"), ("ES256", "rsa-1")] {
        let token = signer.sign(&json!({"alg": alg, "kid": kid}), &claims());
        assert_eq!(refusal(&token, &keys), IdTokenError::Algorithm, "{alg} with {kid}");
    }
}

#[test]
fn a_token_must_be_meant_for_us_now() {
    let signer = Signer::new();
    let keys = key_set(&[signer.key("ec-1")]);
    let check = |claims: Value| verify_at(&signer.sign(&header(), &claims), &keys, ISSUED_AT);
    for (field, value, expected) in [
        ("iss", json!("https://evil.example"), IdTokenError::Issuer),
        ("iss", json!("https://issuer.example/"), IdTokenError::Issuer),
        ("aud", json!("another-client"), IdTokenError::Audience),
        ("aud", json!([]), IdTokenError::Audience),
        ("aud", json!(["urr-client", "another-client"]), IdTokenError::Audience),
        ("azp", json!("another-client"), IdTokenError::Audience),
        ("nonce", json!("n-2"), IdTokenError::Nonce),
        ("nonce", json!(null), IdTokenError::Nonce),
        ("iat", json!(ISSUED_AT + 61), IdTokenError::Time),
        ("exp", json!(ISSUED_AT - 60), IdTokenError::Time),
        ("exp", json!(i64::MIN), IdTokenError::Time),
        ("exp", json!("tomorrow"), IdTokenError::Malformed),
        ("sub", json!(""), IdTokenError::Malformed),
        ("sub", json!("x".repeat(256)), IdTokenError::Malformed),
        ("sub", json!(null), IdTokenError::Malformed),
    ] {
        let refused = check(with(field, value.clone())).expect_err(field);
        assert_eq!(refused, expected, "{field}: {value}");
    }
    for (field, value) in [
        ("aud", json!(["urr-client"])),
        ("azp", json!("urr-client")),
        ("iat", json!(ISSUED_AT + 60)),
        ("exp", json!(ISSUED_AT - 59)),
        ("exp", json!(i64::MAX)),
    ] {
        assert!(check(with(field, value.clone())).is_ok(), "{field}: {value}");
    }
    let mut several = with("aud", json!(["urr-client", "another-client"]));
    several["azp"] = json!("urr-client");
    assert!(check(several).is_ok());
}

#[test]
fn an_address_is_verified_only_if_the_token_clearly_says_so() {
    let signer = Signer::new();
    let keys = key_set(&[signer.key("ec-1")]);
    for (value, expected) in [
        (json!(true), Some(true)),
        (json!("true"), Some(true)),
        (json!(false), Some(false)),
        (json!("false"), Some(false)),
        (json!("yes"), Some(false)),
        (json!(1), Some(false)),
        (json!({}), Some(false)),
        (json!(null), None),
    ] {
        let token = signer.sign(&header(), &with("email_verified", value.clone()));
        let claims = verify_at(&token, &keys, ISSUED_AT).unwrap();
        assert_eq!(claims.email_verified, expected, "{value}");
    }
    let silent = verify_at(&signer.sign(&header(), &claims()), &keys, ISSUED_AT).unwrap();
    assert_eq!(silent.email_verified, None);
}

#[test]
fn what_is_no_token_is_refused_without_panicking() {
    let signer = Signer::new();
    let keys = key_set(&[signer.key("ec-1"), rsa_key()]);
    let good = signer.sign(&header(), &claims());
    let long = "a".repeat(TOKEN_BYTES_MAX + 1);
    for token in ["", ".", "..", "a.b.c", "a.b", &good[1..], &format!("{good}="), &long] {
        let refused = verify_at(token, &keys, ISSUED_AT);
        assert!(refused.is_err(), "{token}");
    }
    let empty = format!("{RSA_SIGNED}.");
    assert_eq!(refusal(&empty, &keys), IdTokenError::Forged);
}

#[test]
fn keys_of_other_kinds_are_left_out() {
    let encryption = {
        let mut key = rsa_key();
        key["use"] = json!("enc");
        key
    };
    let odd = json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": "AA"});
    let broken = json!({"kty": "RSA", "kid": "half", "n": "AA"});
    assert!(key_set(&[encryption, odd, broken]).0.is_empty());
    assert_eq!(key_set(&vec![rsa_key(); 100]).0.len(), KEYS_MAX);
    assert!(IdTokenKeys::parse(b"<html>").is_err());
}
