//! Invalid access tokens: each is refused with the code of its cause.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::json;
use urr_kernel::Uuid;
use urr_service::UserRole;
use urr_service::token::{ACCESS, ENTRY, REFRESH, TokenFacts, TokenKey};

use crate::forged_tokens::{Forge, encode, hmac, last_letter_changed, signed_with};
use crate::harness::{ACCESS_SECRET, ENTRY_SECRET, FAN, TestGateway, passed, refused};

const PATH: &str = "/api/reservations/my";
const INVALID: &str = "TOKEN_INVALID";
const MALFORMED: &str = "TOKEN_MALFORMED";

fn forge(gateway: &TestGateway) -> Forge {
    let now = gateway.clock.now().as_second();
    let header = json!({ "alg": "HS256", "typ": "at+jwt" });
    let payload = json!({
        "iss": "urr", "aud": "urr-api", "sub": FAN, "jti": Uuid::from_u128(9),
        "iat": now, "exp": now + 1_800, "email": "fan@example.com", "role": "admin",
        "familyId": Uuid::from_u128(3),
    });
    Forge { secret: ACCESS_SECRET, header, payload }
}

/// Every attack with its name and the code it must be refused with.
#[expect(clippy::too_many_lines, reason = "a table, not a program")]
fn attacks(gateway: &TestGateway) -> Vec<(&'static str, String, &'static str)> {
    let forge = forge(gateway);
    let good = forge.good();
    let (signed, mac) = good.rsplit_once('.').unwrap();
    let (header, payload) = signed.split_once('.').unwrap();
    let none =
        |name: &str| format!("{}.{payload}.", encode(&json!({ "alg": name, "typ": "at+jwt" })));
    let now = gateway.clock.now().as_second();
    let issue = |at: i64| TokenFacts {
        issued_at: gateway.clock.now() - jiff_seconds(at),
        ..gateway.issue(FAN)
    };
    let foreign = TokenKey::new(b"a key of somebody else, long enough").sign(
        ACCESS,
        &gateway.issue(FAN),
        &json!({ "email": "a", "role": "admin", "familyId": Uuid::from_u128(3) }),
    );
    vec![
        ("alg none without a signature", none("none"), INVALID),
        ("alg None", none("None"), INVALID),
        ("alg nOnE", none("nOnE"), INVALID),
        ("alg none with the signature of a good one", format!("{}{mac}", none("none")), INVALID),
        ("alg none, signed", forge.with_header("alg", json!("none")), INVALID),
        ("RS256 signed as HS256", forge.with_header("alg", json!("RS256")), INVALID),
        ("ES256 signed as HS256", forge.with_header("alg", json!("ES256")), INVALID),
        ("HS512", forge.with_header("alg", json!("HS512")), INVALID),
        ("HS384", forge.with_header("alg", json!("HS384")), INVALID),
        ("hs256", forge.with_header("alg", json!("hs256")), INVALID),
        ("alg as a list", forge.with_header("alg", json!(["HS256"])), MALFORMED),
        ("typ JWT", forge.with_header("typ", json!("JWT")), INVALID),
        ("typ of a refresh token", forge.with_header("typ", json!("rt+jwt")), INVALID),
        ("typ in capitals", forge.with_header("typ", json!("AT+JWT")), INVALID),
        ("jku", forge.with_header("jku", json!("http://127.0.0.1/keys")), MALFORMED),
        ("jwk", forge.with_header("jwk", json!({ "kty": "oct", "k": "AA" })), MALFORMED),
        ("kid with a path", forge.with_header("kid", json!("../../dev/null")), MALFORMED),
        ("x5u", forge.with_header("x5u", json!("http://127.0.0.1/cert")), MALFORMED),
        ("crit", forge.with_header("crit", json!(["exp"])), MALFORMED),
        ("other issuer", forge.with("iss", json!("someone-else")), INVALID),
        ("no issuer", forge.with("iss", json!(null)), MALFORMED),
        ("other audience", forge.with("aud", json!("urr-booking")), INVALID),
        ("audience of a refresh token", forge.with("aud", json!("urr-auth")), INVALID),
        ("audiences", forge.with("aud", json!(["urr-api", "x"])), MALFORMED),
        ("expired now", forge.with("exp", json!(now)), "TOKEN_EXPIRED"),
        ("expired long ago", forge.with("exp", json!(0)), "TOKEN_EXPIRED"),
        ("expired before time began", forge.with("exp", json!(-1)), "TOKEN_EXPIRED"),
        ("no end", forge.with("exp", json!(null)), MALFORMED),
        ("an end that is text", forge.with("exp", json!("2030-01-01")), MALFORMED),
        ("an end beyond all time", forge.with("exp", json!(i64::MAX)), MALFORMED),
        ("an end that is a fraction", forge.with("exp", json!(1e300)), MALFORMED),
        ("issued in the future", forge.with("iat", json!(now + 60)), INVALID),
        ("no subject", forge.with("sub", json!(null)), MALFORMED),
        ("a subject that is no user", forge.with("sub", json!("admin")), MALFORMED),
        ("a role that is none", forge.with("role", json!("root")), MALFORMED),
        ("no role", forge.with("role", json!(null)), MALFORMED),
        ("no id", forge.with("jti", json!("1")), MALFORMED),
        ("payload changed", format!("{header}.{}.{mac}", encode(&json!({}))), INVALID),
        ("truncated signature", format!("{signed}.{}", &mac[..mac.len() - 3]), INVALID),
        ("no signature", format!("{signed}."), INVALID),
        ("two parts", signed.to_owned(), MALFORMED),
        ("four parts", format!("{good}.{mac}"), INVALID),
        ("parts in another order", format!("{payload}.{header}.{mac}"), INVALID),
        ("signature with padding", format!("{good}="), MALFORMED),
        (
            "signature in the other alphabet",
            format!("{signed}.{}", other_alphabet(signed)),
            MALFORMED,
        ),
        ("another last letter", last_letter_changed(&good), MALFORMED),
        ("a blank before", format!(" {good}"), MALFORMED),
        ("a tab inside", good.replacen('.', ".\t", 1), MALFORMED),
        ("quotes around", format!("\"{good}\""), MALFORMED),
        ("capitals", format!("{}.{payload}.{mac}", header.to_uppercase()), INVALID),
        ("unicode", format!("{signed}.ü"), MALFORMED),
        ("a dot", ".".to_owned(), MALFORMED),
        ("two dots", "..".to_owned(), INVALID),
        ("a word", "null".to_owned(), MALFORMED),
        ("very long", format!("{good}{}", "A".repeat(5_000)), MALFORMED),
        ("a key of somebody else", foreign, INVALID),
        (
            "the key of entry tokens",
            signed_with(ENTRY_SECRET, &forge.header, &forge.payload),
            INVALID,
        ),
        ("an empty key", signed_with("", &forge.header, &forge.payload), INVALID),
        ("a refresh token", gateway.signed(REFRESH, &issue(0), UserRole::Admin), INVALID),
        ("an entry token", gateway.signed(ENTRY, &issue(0), UserRole::Admin), INVALID),
        ("an entry token of the queue", gateway.entry_token(FAN, FAN), INVALID),
        (
            "a session that is over",
            gateway.signed(ACCESS, &issue(1_800), UserRole::Admin),
            "TOKEN_EXPIRED",
        ),
    ]
}

fn jiff_seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}

/// The signature in the alphabet of plain base64, made to differ from ours by padding at least.
fn other_alphabet(signed: &str) -> String {
    STANDARD.encode(hmac(ACCESS_SECRET, signed))
}

#[tokio::test]
async fn d_3_and_other_token_attacks_are_refused_with_their_cause() {
    let gateway = TestGateway::new();
    let forge = forge(&gateway);
    let attacks = attacks(&gateway);
    assert!(attacks.len() >= 30);
    for (name, token, code) in &attacks {
        let by_header = gateway.get(PATH).bearer(token).send().await;
        assert_eq!(by_header.outcome(), refused(401, code), "{name}: {token}");
        if !token.contains([' ', '"', '\t']) {
            let by_cookie = gateway.get(PATH).cookie(token).send().await;
            assert_eq!(by_cookie.outcome(), refused(401, code), "cookie, {name}: {token}");
        }
        // A public route treats the request as anonymous (G3).
        let public = gateway.get("/api/artists").bearer(token).send().await;
        assert_eq!(public.outcome(), passed(), "{name}");
        let seen = gateway.services.received().pop().unwrap();
        assert_eq!(seen.user, None, "{name}");
    }
    // Control: the unchanged token is valid.
    assert_eq!(gateway.get(PATH).bearer(&forge.good()).send().await.outcome(), passed());
    assert_eq!(gateway.get(PATH).cookie(&forge.good()).send().await.outcome(), passed());
    assert!(URL_SAFE.encode([0]).ends_with('='), "the padding attack pads as encoders do");
}

#[tokio::test]
async fn two_credentials_are_malformed() {
    let gateway = TestGateway::new();
    let (good, other) = (gateway.token(UserRole::User), gateway.token_of(FAN, UserRole::Admin));
    let bearer = format!("Bearer {good}");
    let malformed = refused(401, MALFORMED);
    let cases = [
        gateway.get(PATH).bearer(&good).bearer(&good),
        gateway.get(PATH).bearer(&good).bearer(&other),
        gateway.get(PATH).cookie(&good).cookie(&good),
        gateway.get(PATH).header("cookie", &format!("access_token={good}; access_token={other}")),
        gateway.get(PATH).header("authorization", &format!("Basic {good}")),
        gateway.get(PATH).header("authorization", &good),
        gateway.get(PATH).header("authorization", &format!("Bearer  {good}")),
        gateway.get(PATH).header("authorization", &format!("Bearer {good}, {bearer}")),
        gateway.get(PATH).header("authorization", "Bearer"),
        gateway.get(PATH).header("authorization", "").cookie(&good),
        gateway.get(PATH).header("authorization", "Bearer x").cookie(&good),
    ];
    for (case, request) in cases.into_iter().enumerate() {
        assert_eq!(request.send().await.outcome(), malformed, "case {case}");
    }
    // Controls: one of them is enough, and the header wins over the cookie.
    assert_eq!(gateway.get(PATH).bearer(&good).send().await.outcome(), passed());
    let both = gateway.get("/api/stats/x").bearer(&other).cookie(&good).send().await;
    assert_eq!(both.outcome(), passed());
    let both = gateway.get("/api/stats/x").bearer(&good).cookie(&other).send().await;
    assert_eq!(both.outcome(), refused(403, "ADMIN_REQUIRED"));
}

#[tokio::test]
async fn d_20_a_revoked_token_is_refused_and_others_are_not() {
    let gateway = TestGateway::new();
    let issue = gateway.issue(FAN);
    let (mine, other) =
        (gateway.signed(ACCESS, &issue, UserRole::User), gateway.token(UserRole::User));
    let feed = gateway.feed.clone().unwrap();
    feed.refresh().await.unwrap();
    assert_eq!(gateway.get(PATH).bearer(&mine).send().await.outcome(), passed());
    let expires = gateway.clock.now() + Duration::from_secs(1_800);
    let entries = [3, 4, 8].map(Uuid::from_u128).into_iter().chain([issue.id]);
    gateway
        .services
        .revoked
        .lock()
        .unwrap()
        .extend((1..).zip(entries).map(|(n, id)| (n, id, expires)));
    feed.refresh().await.unwrap();
    assert_eq!(gateway.services.list_reads.load(Ordering::SeqCst), 4, "three pages of two");
    assert_eq!(
        gateway.get(PATH).bearer(&mine).send().await.outcome(),
        refused(401, "TOKEN_REVOKED")
    );
    assert_eq!(gateway.get(PATH).bearer(&other).send().await.outcome(), passed());
    assert_eq!(gateway.get("/api/artists").bearer(&mine).send().await.outcome(), passed());
}

#[tokio::test]
async fn d_20_a_logout_takes_effect_at_once() {
    let gateway = TestGateway::new();
    let issue = gateway.issue(FAN);
    let token = gateway.signed(ACCESS, &issue, UserRole::User);
    let expires = gateway.clock.now() + Duration::from_secs(1_800);
    assert_eq!(gateway.get(PATH).bearer(&token).send().await.outcome(), passed());
    // The auth service revokes it while it answers; only the gateway itself refreshes the list.
    gateway.services.revoked.lock().unwrap().push((1, issue.id, expires));
    assert_eq!(gateway.get(PATH).bearer(&token).send().await.outcome(), passed(), "not known yet");
    assert_eq!(gateway.post("/api/auth/logout").bearer(&token).send().await.outcome(), passed());
    let after = gateway.get(PATH).bearer(&token).send().await;
    assert_eq!(after.outcome(), refused(401, "TOKEN_REVOKED"));
    // Control: a login does not refresh the list.
    let reads = gateway.services.list_reads.load(Ordering::SeqCst);
    gateway.post("/api/auth/login").json(&json!({ "email": "a" })).send().await;
    assert_eq!(gateway.services.list_reads.load(Ordering::SeqCst), reads);
}

#[tokio::test(start_paused = true)]
async fn revocations_arrive_by_polling_within_two_seconds() {
    let gateway = TestGateway::new();
    let issue = gateway.issue(FAN);
    let token = gateway.signed(ACCESS, &issue, UserRole::User);
    let stop = tokio_util::sync::CancellationToken::new();
    let feed = tokio::spawn(gateway.feed.clone().unwrap().run(stop.clone()));
    let expires = gateway.clock.now() + Duration::from_secs(1_800);
    gateway.services.revoked.lock().unwrap().push((1, issue.id, expires));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let answer = gateway.get(PATH).bearer(&token).send().await;
    assert_eq!(answer.outcome(), refused(401, "TOKEN_REVOKED"));
    stop.cancel();
    feed.await.unwrap();
}

#[tokio::test]
async fn tokens_are_not_forwarded_to_services() {
    let gateway = TestGateway::new();
    let token = gateway.token(UserRole::User);
    let cookies = format!("theme=dark; access_token={token}; refresh_token=r");
    let send = async |path: &str| {
        let request =
            gateway.get(path).header("cookie", &cookies).header("x-cloudfront-verified", "x");
        assert_eq!(request.send().await.outcome(), passed());
        gateway.services.received().pop().unwrap().headers
    };
    let elsewhere = send("/api/reservations/my").await;
    for gone in ["cookie", "authorization", "x-cloudfront-verified"] {
        assert!(!elsewhere.contains_key(gone), "{gone}");
    }
    assert_eq!(elsewhere["x-user-id"], FAN.to_string());
    assert_eq!(elsewhere["x-user-email"], "fan@example.com");
    let auth = send("/api/auth/me").await;
    assert_eq!(auth["cookie"], format!("theme=dark; refresh_token=r; access_token={token}"));
}
