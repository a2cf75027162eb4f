//! Attacks on the entry token (D-5, D-6, D-7, E-5): each is refused with its code on every path that
//! books, and none of them reaches a service.
//!
//! A token is signed and names user, event and expiry; only the waiting room knows whether its slot
//! still exists. What is refused with its help (slots that were left, cleared, bought with, or have
//! ended) is tested where the whole system runs: `crates/urr-e2e`,
//! `tests/api/slot_attacks.rs`. Here the gateway must hand the slot on, and no other.

use axum::http::{HeaderMap, Method};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use urr_kernel::{Secret, Uuid};
use urr_service::UserRole;
use urr_service::token::{ACCESS, ENTRY, EntryClaims, REFRESH, TokenKey};

use crate::forged_tokens::{Forge, encode, hmac, last_letter_changed, signed_with};
use crate::harness::{
    ACCESS_SECRET, EDGE_SECRET, ENTRY_SECRET, EVENT, FAN, ORIGIN, OTHER, TestGateway, TestRequest,
    TestResponse, passed, refused,
};

const TOKEN: &str = "x-queue-entry-token";
const EDGE: &str = "x-cloudfront-verified";
const INVALID: &str = "ENTRY_TOKEN_INVALID";
const REQUIRED: &str = "ENTRY_TOKEN_REQUIRED";
const A_DAY: i64 = 86_400;

/// Everything that books, and the seats of the event that the good token is for.
fn booking() -> [(Method, String); 7] {
    [
        (Method::GET, "/api/seats/layouts".to_owned()),
        (Method::GET, "/api/seats".to_owned()),
        (Method::GET, format!("/api/seats/events/{EVENT}")),
        (Method::POST, "/api/seats/reserve".to_owned()),
        (Method::POST, "/api/seats/best".to_owned()),
        (Method::POST, "/api/reservations".to_owned()),
        (Method::PUT, "/api/reservations/1/seats".to_owned()),
    ]
}

fn gateway() -> TestGateway {
    TestGateway::with_settings(|settings| {
        settings.trusted_edge_secret = Some(Secret::new(EDGE_SECRET))
    })
}

fn forge(gateway: &TestGateway) -> Forge {
    let now = gateway.clock.now().as_second();
    Forge {
        secret: ENTRY_SECRET,
        header: json!({ "alg": "HS256", "typ": "et+jwt" }),
        payload: json!({
            "iss": "urr", "aud": "urr-booking", "sub": EVENT, "jti": Uuid::from_u128(9),
            "iat": now, "exp": now + 600, "uid": FAN,
        }),
    }
}

/// Tokens with a wrong signature only, which our own edge may vouch for.
fn badly_signed(gateway: &TestGateway) -> Vec<(&'static str, String)> {
    let forge = forge(gateway);
    let good = forge.good();
    let (signed, mac) = good.rsplit_once('.').unwrap();
    let other = forge.with("jti", json!(Uuid::from_u128(10)));
    let (_, other_mac) = other.rsplit_once('.').unwrap();
    let later = forge.with("exp", json!(gateway.clock.now().as_second() + 6_000));
    let (later, _) = later.rsplit_once('.').unwrap();
    let plain = STANDARD.encode(hmac(ENTRY_SECRET, signed));
    vec![
        ("a key of somebody else", forge.signed_by("a key of somebody else, long enough")),
        ("the key of before", forge.signed_by("the entry secret of last year, long enough")),
        ("the key of access tokens", forge.signed_by(ACCESS_SECRET)),
        ("the secret of the edge as key", forge.signed_by(EDGE_SECRET)),
        ("an empty key", forge.signed_by("")),
        ("no signature", format!("{signed}.")),
        ("a signature cut short", format!("{signed}.{}", &mac[..mac.len() - 3])),
        ("a signature that goes on", format!("{good}AAAA")),
        ("a signature of zeros", format!("{signed}.{}", "A".repeat(mac.len()))),
        ("a signature with padding", format!("{good}=")),
        ("a signature in the other alphabet", format!("{signed}.{plain}")),
        ("a signature with another last letter", last_letter_changed(&good)),
        ("a signature in capitals", format!("{signed}.{}", mac.to_uppercase())),
        ("the signature of another token", format!("{signed}.{other_mac}")),
        ("a later end under the old signature", format!("{later}.{mac}")),
    ]
}

/// Tokens whose header is not the one we write, whoever has signed them.
fn with_other_headers(gateway: &TestGateway) -> Vec<(&'static str, String)> {
    let forge = forge(gateway);
    let good = forge.good();
    let (signed, mac) = good.rsplit_once('.').unwrap();
    let (header, payload) = signed.split_once('.').unwrap();
    let none =
        |name: &str| format!("{}.{payload}.", encode(&json!({ "alg": name, "typ": "et+jwt" })));
    let algorithm = |name: &str| forge.with_header("alg", json!(name));
    vec![
        ("alg none without a signature", none("none")),
        ("alg None", none("None")),
        ("alg nOnE", none("nOnE")),
        ("alg none with a good signature", format!("{}{mac}", none("none"))),
        ("alg none, signed", algorithm("none")),
        ("alg empty", algorithm("")),
        ("alg HS384", algorithm("HS384")),
        ("alg HS512", algorithm("HS512")),
        ("alg RS256 signed as HS256", algorithm("RS256")),
        ("alg ES256 signed as HS256", algorithm("ES256")),
        ("alg hs256", algorithm("hs256")),
        ("alg as a list", forge.with_header("alg", json!(["HS256"]))),
        ("no alg", forge.without_header("alg")),
        ("typ JWT", forge.with_header("typ", json!("JWT"))),
        ("typ of an access token", forge.with_header("typ", json!("at+jwt"))),
        ("typ of a refresh token", forge.with_header("typ", json!("rt+jwt"))),
        ("typ in capitals", forge.with_header("typ", json!("ET+JWT"))),
        ("no typ", forge.without_header("typ")),
        ("kid with a path", forge.with_header("kid", json!("../../dev/null"))),
        ("jku", forge.with_header("jku", json!("http://127.0.0.1/keys"))),
        ("jwk", forge.with_header("jwk", json!({ "kty": "oct", "k": "AA" }))),
        ("x5u", forge.with_header("x5u", json!("http://127.0.0.1/cert"))),
        ("crit", forge.with_header("crit", json!(["exp"]))),
        ("a header in capitals", format!("{}.{payload}.{mac}", header.to_uppercase())),
        ("a header that is a list", signed_with(ENTRY_SECRET, &json!([]), &forge.payload)),
    ]
}

/// Tokens that we have signed and that say something else than ours do.
fn with_other_claims(gateway: &TestGateway) -> Vec<(&'static str, String)> {
    let forge = forge(gateway);
    let now = gateway.clock.now().as_second();
    let first_tier = json!({ "sub": EVENT, "uid": FAN, "tier": 1, "iat": now, "exp": now + 600 });
    let whole = |payload: &Value| signed_with(ENTRY_SECRET, &forge.header, payload);
    vec![
        ("other issuer", forge.with("iss", json!("someone-else"))),
        ("no issuer", forge.without("iss")),
        ("audience of the interface", forge.with("aud", json!("urr-api"))),
        ("audience of refresh tokens", forge.with("aud", json!("urr-auth"))),
        ("audiences", forge.with("aud", json!(["urr-booking", "urr-api"]))),
        ("no audience", forge.without("aud")),
        ("no event", forge.without("sub")),
        ("event null", forge.with("sub", json!(null))),
        ("every event", forge.with("sub", json!("*"))),
        ("an event that is no id", forge.with("sub", json!("all"))),
        ("an event that is a number", forge.with("sub", json!(1))),
        ("two events", forge.with("sub", json!([EVENT, OTHER]))),
        ("an event with a blank", forge.with("sub", json!(format!(" {EVENT}")))),
        ("no user", forge.without("uid")),
        ("user null", forge.with("uid", json!(null))),
        ("another user", forge.with("uid", json!(OTHER))),
        ("nobody", forge.with("uid", json!(Uuid::nil()))),
        ("d_7 the anonymous user of the first tier", forge.with("uid", json!("anonymous"))),
        ("two users", forge.with("uid", json!([FAN, OTHER]))),
        ("a user that is a pattern", forge.with("uid", json!("%"))),
        ("d_7 a token of the first tier", whole(&first_tier)),
        ("no id", forge.without("jti")),
        ("an id that is none", forge.with("jti", json!("1"))),
        ("no beginning", forge.without("iat")),
        ("a beginning that is text", forge.with("iat", json!("now"))),
        ("issued in the future", forge.with("iat", json!(now + 60))),
        ("no end", forge.without("exp")),
        ("end null", forge.with("exp", json!(null))),
        ("an end that is text", forge.with("exp", json!((now + 600).to_string()))),
        ("an end that is a fraction", forge.with("exp", json!(1e300))),
        ("an end beyond all time", forge.with("exp", json!(i64::MAX))),
        ("an end before all time", forge.with("exp", json!(i64::MIN))),
        ("ends now", forge.with("exp", json!(now))),
        ("ended long ago", forge.with("exp", json!(0))),
        ("lives for a year", forge.with("exp", json!(now + 365 * A_DAY))),
        ("lives a second longer than a day", forge.with("exp", json!(now + A_DAY + 1))),
        ("began long ago and has not ended", forge.with("iat", json!(now - 2 * A_DAY))),
        ("says nothing", whole(&json!({}))),
        ("says null", whole(&Value::Null)),
        ("is a list", whole(&json!([forge.payload]))),
    ]
}

/// Texts that are no tokens, and tokens that are for something else.
fn misshapen(gateway: &TestGateway) -> Vec<(&'static str, String)> {
    let good = forge(gateway).good();
    let (signed, mac) = good.rsplit_once('.').unwrap();
    let (header, payload) = signed.split_once('.').unwrap();
    let issue = gateway.issue(FAN);
    let entry_key = TokenKey::new(ENTRY_SECRET.as_bytes());
    let claims = EntryClaims { user_id: FAN };
    vec![
        ("a word", "null".to_owned()),
        ("a number", "1".to_owned()),
        ("a blank", " ".to_owned()),
        ("a dot", ".".to_owned()),
        ("two dots", "..".to_owned()),
        ("a hundred dots", ".".repeat(100)),
        ("one part", payload.to_owned()),
        ("two parts", signed.to_owned()),
        ("four parts", format!("{good}.{mac}")),
        ("five parts, as if encrypted", format!("{header}.{payload}.{mac}.{payload}.{mac}")),
        ("an empty header", format!(".{payload}.{mac}")),
        ("an empty payload", format!("{header}..{mac}")),
        ("parts in another order", format!("{payload}.{header}.{mac}")),
        ("padding inside", format!("{header}.{payload}=.{mac}")),
        ("a blank inside", good.replacen('.', ". ", 1)),
        ("a tab inside", good.replacen('.', ".\t", 1)),
        ("a comma and another one", format!("{good}, {good}")),
        ("quotes around", format!("\"{good}\"")),
        ("a scheme before", format!("Bearer {good}")),
        ("a name before", format!("{TOKEN}={good}")),
        ("dots percent-encoded", good.replace('.', "%2E")),
        ("dots of another script", good.replace('.', "．")),
        ("unicode behind", format!("{good}ü")),
        ("another letter before", format!("x{good}")),
        ("very long", format!("{good}{}", "A".repeat(5_000))),
        ("very long payload", format!("{header}.{}.{mac}", payload.repeat(30))),
        ("an access token", gateway.token(UserRole::User)),
        ("a refresh token", gateway.signed(REFRESH, &issue, UserRole::User)),
        ("an entry token of the accounts", gateway.signed(ENTRY, &issue, UserRole::User)),
        ("an access token by the queue's key", entry_key.sign(ACCESS, &issue, &claims)),
        ("a refresh token by the queue's key", entry_key.sign(REFRESH, &issue, &claims)),
    ]
}

fn request<'a>(gateway: &'a TestGateway, (method, path): &(Method, String)) -> TestRequest<'a> {
    gateway.request(method.clone(), path).bearer(&gateway.token(UserRole::User))
}

/// Without the edge secret, with a wrong one, an empty one, and the right one.
async fn answers(gateway: &TestGateway, to: &(Method, String), token: &str) -> [TestResponse; 4] {
    let request = || request(gateway, to).entry(token);
    [
        request().send().await,
        request().header(EDGE, "true").send().await,
        request().header(EDGE, "").send().await,
        request().header(EDGE, EDGE_SECRET).send().await,
    ]
}

#[tokio::test]
async fn d_5_no_bent_token_opens_a_path_that_books() {
    let gateway = gateway();
    let attacks = [with_other_headers(&gateway), with_other_claims(&gateway), misshapen(&gateway)];
    let attacks = attacks.concat();
    assert!(attacks.len() >= 60, "{}", attacks.len());
    for to in booking() {
        for (name, token) in &attacks {
            for (edge, answer) in answers(&gateway, &to, token).await.into_iter().enumerate() {
                let told = answer.outcome();
                assert_eq!(told, refused(403, INVALID), "{name}, edge {edge}, {to:?}: {token}");
                assert_eq!(answer.json()["redirectTo"], "/queue", "{name}");
            }
        }
    }
    assert!(gateway.services.received().is_empty(), "nothing reached a service");
}

/// E-5: the edge may vouch for the signature. Whoever is not the edge may not.
#[tokio::test]
async fn e_5_a_bad_signature_passes_with_the_secret_of_the_edge_only() {
    let gateway = gateway();
    for to in booking() {
        for (name, token) in badly_signed(&gateway) {
            let [none, forged, empty, edge] = answers(&gateway, &to, &token).await;
            for answer in [none, forged, empty] {
                assert_eq!(answer.outcome(), refused(403, INVALID), "{name} {to:?}: {token}");
            }
            assert_eq!(edge.outcome(), passed(), "{name} {to:?}");
            let seen = gateway.services.received();
            let [seen] = &seen[..] else { panic!("{name}: only what the edge vouched for") };
            assert_eq!(seen.headers["x-urr-entry-event"], EVENT.to_string());
        }
    }
    // Without an edge in the settings its header means nothing, whatever is in it.
    let without = TestGateway::new();
    for (name, token) in badly_signed(&without) {
        for answer in answers(&without, &booking()[3], &token).await {
            assert_eq!(answer.outcome(), refused(403, INVALID), "{name}");
        }
    }
    assert!(without.services.received().is_empty());
}

/// A request with its name and its expected refusal.
type Attack<'a> = (&'static str, TestRequest<'a>, u16, &'static str);

const RESERVE: &str = "/api/seats/reserve";
const OTHER_EVENT: &str = "ENTRY_TOKEN_OTHER_EVENT";
const NOBODY: &str = "AUTHENTICATION_REQUIRED";
const WRONG_METHOD: &str = "METHOD_NOT_ALLOWED";

fn mine<'a>(gateway: &'a TestGateway, path: &str) -> TestRequest<'a> {
    gateway.post(path).bearer(&gateway.token(UserRole::User))
}

fn badly_signed_one(gateway: &TestGateway) -> String {
    forge(gateway).signed_by("a key of somebody else, long enough")
}

/// A valid token of the user, sent in a way that does not count.
fn brought_otherwise(gateway: &TestGateway) -> Vec<Attack<'_>> {
    let (good, bad) = (forge(gateway).good(), badly_signed_one(gateway));
    let reserve = || mine(gateway, RESERVE);
    let cookie = |name: &str| reserve().header("cookie", &format!("{name}={good}"));
    let query = |name: &str| mine(gateway, &format!("{RESERVE}?{name}={good}"));
    vec![
        ("not at all", reserve(), 403, REQUIRED),
        ("empty", reserve().entry(""), 403, REQUIRED),
        ("in the query", query(TOKEN), 403, REQUIRED),
        ("in the query by another name", query("entryToken"), 403, REQUIRED),
        ("in the body", reserve().json(&json!({ "entryToken": good })), 403, REQUIRED),
        ("in a cookie", cookie(TOKEN), 403, REQUIRED),
        ("in the cookie of the pages", cookie("urr-entry-token"), 403, REQUIRED),
        ("good in the cookie, bad in the header", cookie(TOKEN).entry(&bad), 403, INVALID),
        ("with underscores", reserve().header("x_queue_entry_token", &good), 403, REQUIRED),
        ("by another name", reserve().header("x-vwr-entry-token", &good), 403, REQUIRED),
        ("twice", reserve().entry(&good).entry(&good), 403, INVALID),
        ("good and bad", reserve().entry(&good).entry(&bad), 403, INVALID),
        ("bad and good", reserve().entry(&bad).entry(&good), 403, INVALID),
        ("empty and good", reserve().entry("").entry(&good), 403, INVALID),
        ("bad, in capitals", reserve().header("X-QUEUE-ENTRY-TOKEN", &bad), 403, INVALID),
        ("as the session", gateway.post(RESERVE).bearer(&good).entry(&good), 401, "TOKEN_INVALID"),
        ("the secret of the edge", reserve().entry(EDGE_SECRET), 403, INVALID),
    ]
}

/// A valid token of another user.
fn by_others(gateway: &TestGateway) -> Vec<Attack<'_>> {
    let good = forge(gateway).good();
    let fan = FAN.to_string();
    let nobody = || gateway.post(RESERVE).entry(&good);
    let other = || nobody().bearer(&gateway.token_of(OTHER, UserRole::User));
    let admin = gateway.token_of(OTHER, UserRole::Admin);
    let mut over = gateway.issue(FAN);
    over.issued_at -= std::time::Duration::from_secs(1_801);
    let expired = gateway.signed(ACCESS, &over, UserRole::User);
    let foreign = nobody().cookie(&gateway.token(UserRole::User));
    let foreign = foreign.header("origin", "https://evil.example");
    vec![
        ("nobody", nobody(), 401, NOBODY),
        ("nobody, at v1", gateway.post("/api/v1/reservations").entry(&good), 401, NOBODY),
        ("nobody, from the edge", nobody().header(EDGE, EDGE_SECRET), 401, NOBODY),
        ("nobody who says who he is", nobody().header("x-user-id", &fan), 401, NOBODY),
        ("a session that has expired", nobody().bearer(&expired), 401, "TOKEN_EXPIRED"),
        (
            "a broken session from the edge",
            nobody().bearer("x").header(EDGE, EDGE_SECRET),
            401,
            "TOKEN_MALFORMED",
        ),
        ("another user", other(), 403, INVALID),
        ("another user from the edge", other().header(EDGE, EDGE_SECRET), 403, INVALID),
        ("another user who says he is the owner", other().header("x-user-id", &fan), 403, INVALID),
        ("another user, with underscores", other().header("x_user_id", &fan), 403, INVALID),
        ("an administrator", nobody().bearer(&admin), 403, INVALID),
        ("an administrator without one", gateway.post(RESERVE).bearer(&admin), 403, REQUIRED),
        ("a page of a stranger", foreign, 403, "CROSS_SITE_REQUEST"),
    ]
}

/// A good token, for the seats of another event.
fn for_another_event(gateway: &TestGateway) -> Vec<Attack<'_>> {
    let good = forge(gateway).good();
    let other = OTHER.to_string();
    let seats = |path: &str| gateway.get(path).bearer(&gateway.token(UserRole::User)).entry(&good);
    let event = format!("/api/seats/events/{OTHER}");
    let edge = seats(&event).header(EDGE, EDGE_SECRET);
    let told = seats(&event).header("x-urr-entry-event", &other);
    let encoded = seats(&event.replace("events", "event%73"));
    let two = seats(&format!("/api/seats/events/{EVENT},{OTHER}"));
    vec![
        ("another event", seats(&event), 403, OTHER_EVENT),
        ("from the edge", edge, 403, OTHER_EVENT),
        ("told besides that it is this one", told, 403, OTHER_EVENT),
        ("at v1", seats(&event.replace("/api", "/api/v1")), 403, OTHER_EVENT),
        ("percent-encoded", encoded, 403, OTHER_EVENT),
        ("below it", seats(&format!("{event}/stream")), 403, OTHER_EVENT),
        ("its own in the query", seats(&format!("{event}?eventId={EVENT}")), 403, OTHER_EVENT),
        ("no event", seats("/api/seats/events/all"), 403, OTHER_EVENT),
        ("two events", two, 403, OTHER_EVENT),
    ]
}

/// Another spelling or method of the same request, and no token or a good one.
fn by_other_ways(gateway: &TestGateway) -> Vec<Attack<'_>> {
    let good = forge(gateway).good();
    let mine = |path: &str| mine(gateway, path);
    let method = |method: &str| {
        gateway.request(method.parse().unwrap(), RESERVE).bearer(&gateway.token(UserRole::User))
    };
    let overridden = method("PATCH").header("x-http-method-override", "POST");
    vec![
        ("v1", mine("/api/v1/seats/reserve"), 403, REQUIRED),
        ("percent-encoded", mine("/api/%73eats/reserve"), 403, REQUIRED),
        ("a slash behind", mine("/api/seats/reserve/"), 403, REQUIRED),
        ("an absolute address", mine("http://x/api/seats/reserve"), 403, REQUIRED),
        ("an encoded slash", mine("/api/seats%2freserve"), 400, "INVALID_PATH"),
        ("parameters", mine("/api/seats;x=1/reserve"), 400, "INVALID_PATH"),
        ("dots", mine("/api/artists/../seats/reserve"), 400, "INVALID_PATH"),
        ("encoded twice", mine("/api/%2573eats/reserve"), 400, "INVALID_PATH"),
        ("capitals", mine("/api/Seats/reserve"), 404, "NOT_FOUND"),
        ("TRACE", method("TRACE").entry(&good), 405, WRONG_METHOD),
        ("PUT", method("PUT").entry(&good), 405, WRONG_METHOD),
        ("an invented method", method("RESERVE").entry(&good), 405, WRONG_METHOD),
        ("PATCH that says it is POST", overridden.entry(&good), 405, WRONG_METHOD),
    ]
}

/// A token that is not signed by us, with something like the edge secret.
fn with_the_edge(gateway: &TestGateway) -> Vec<Attack<'_>> {
    let (good, bad) = (forge(gateway).good(), badly_signed_one(gateway));
    let reserve = || mine(gateway, RESERVE);
    let said = |word: &str| reserve().entry(&bad).header(EDGE, word);
    let underscores = reserve().entry(&bad).header("x_cloudfront_verified", EDGE_SECRET);
    let query = mine(gateway, &format!("{RESERVE}?{EDGE}=1")).entry(&bad);
    vec![
        ("no token", with_edge_secret(reserve()), 403, REQUIRED),
        ("an empty token", with_edge_secret(reserve().entry("")), 403, REQUIRED),
        ("two tokens", with_edge_secret(reserve().entry(&good).entry(&good)), 403, INVALID),
        ("a secret with another end", said(&format!("{EDGE_SECRET}x")), 403, INVALID),
        ("a secret without its beginning", said(&EDGE_SECRET[1..]), 403, INVALID),
        ("a secret in capitals", said(&EDGE_SECRET.to_uppercase()), 403, INVALID),
        ("a secret with a blank", said(&format!(" {EDGE_SECRET}")), 403, INVALID),
        ("no secret", said(""), 403, INVALID),
        ("a yes", said("true"), 403, INVALID),
        ("with underscores", underscores, 403, INVALID),
        ("in the query", query, 403, INVALID),
        ("twice, the second is right", said("x").header(EDGE, EDGE_SECRET), 403, INVALID),
    ]
}

fn with_edge_secret(request: TestRequest<'_>) -> TestRequest<'_> {
    request.header(EDGE, EDGE_SECRET)
}

#[tokio::test]
async fn d_6_no_other_way_of_bringing_a_token_opens_a_path_that_books() {
    let gateway = gateway();
    let ways = [brought_otherwise, by_others, for_another_event, by_other_ways, with_the_edge];
    let attacks: Vec<Attack<'_>> = ways.into_iter().flat_map(|way| way(&gateway)).collect();
    assert!(attacks.len() >= 60, "{}", attacks.len());
    for (name, request, status, code) in attacks {
        assert_eq!(request.send().await.outcome(), refused(status, code), "{name}");
        assert!(gateway.services.received().is_empty(), "{name} reached a service");
    }
}

/// HEAD is treated as GET, and the gateway answers OPTIONS itself.
#[tokio::test]
async fn d_6_methods_without_a_body_are_no_way_around() {
    let gateway = gateway();
    let path = format!("/api/seats/events/{EVENT}");
    let head = |token: &str| {
        let request = gateway.request(Method::HEAD, &path).bearer(&gateway.token(UserRole::User));
        request.entry(token)
    };
    assert_eq!(head("").send().await.status, 403);
    assert_eq!(head("a.b.c").send().await.status, 403);
    assert_eq!(head(&gateway.entry_token(OTHER, EVENT)).send().await.status, 403);
    assert_eq!(head(&gateway.entry_token(FAN, OTHER)).send().await.status, 403);
    let options = gateway.request(Method::OPTIONS, &path).header("origin", ORIGIN);
    let options = options.header("access-control-request-method", "POST").send().await;
    assert_eq!(options.status, 204);
    let bare = gateway.request(Method::OPTIONS, &path).send().await;
    assert_eq!(bare.status, 405);
    assert!(gateway.services.received().is_empty());
    let good = head(&gateway.entry_token(FAN, EVENT)).send().await;
    assert_eq!(good.status, 200, "control");
}

/// D-20: after a logout an entry token is useless.
#[tokio::test]
async fn d_20_a_good_token_does_not_outlive_the_session() {
    let gateway = gateway();
    let issue = gateway.issue(FAN);
    let session = gateway.signed(ACCESS, &issue, UserRole::User);
    let request = || {
        let request = gateway.post("/api/seats/reserve").bearer(&session);
        request.entry(&gateway.entry_token(FAN, EVENT)).header(EDGE, EDGE_SECRET)
    };
    assert_eq!(request().send().await.outcome(), passed(), "control");
    let expires = gateway.clock.now() + std::time::Duration::from_secs(1_800);
    gateway.services.revoked.lock().unwrap().push((1, issue.id, expires));
    assert_eq!(gateway.post("/api/auth/logout").bearer(&session).send().await.outcome(), passed());
    gateway.services.received();
    assert_eq!(request().send().await.outcome(), refused(401, "TOKEN_REVOKED"));
    assert!(gateway.services.received().is_empty());
}

/// D-5, R-2: where only the service knows which event is booked and which slots live, the gateway
/// tells it which ones the token is for, once, whatever the client tells. The service compares.
#[tokio::test]
async fn d_5_the_service_learns_the_event_and_the_slot_of_the_token_and_no_other() {
    for gateway in [gateway(), TestGateway::remote(|_| {}).await] {
        let (mine, other) = (EVENT.to_string(), OTHER.to_string());
        let request = |path: &str| {
            let request = gateway.post(path).bearer(&gateway.token(UserRole::User));
            request.entry(&forge(&gateway).good())
        };
        let reserve = || request("/api/seats/reserve");
        let elsewhere = json!({ "eventId": OTHER });
        let slot = Uuid::from_u128(9).to_string();
        for (name, request) in [
            ("alone", reserve()),
            ("best", request("/api/seats/best")),
            ("another event in the body", reserve().json(&elsewhere)),
            ("in the body of the other path", request("/api/reservations").json(&elsewhere)),
            ("in the query", request(&format!("/api/reservations?eventId={OTHER}"))),
            ("told", reserve().header("x-urr-entry-event", &other)),
            ("told in capitals", reserve().header("X-URR-ENTRY-EVENT", &other)),
            ("told with underscores", reserve().header("x_urr_entry_event", &other)),
            ("told with both", reserve().header("x-urr_entry-event", &other)),
            (
                "told twice",
                reserve().header("x-urr-entry-event", &other).header("x-urr-entry-event", &mine),
            ),
            (
                "named as one of the connection's",
                reserve().header("connection", "x-urr-entry-event, x-urr-entry-slot, x-user-id"),
            ),
            ("a slot told", reserve().header("x-urr-entry-slot", &other)),
            ("a slot told in capitals", reserve().header("X-URR-ENTRY-SLOT", &other)),
            ("a slot told with underscores", reserve().header("x_urr_entry_slot", &other)),
            ("a slot told with both", reserve().header("x-urr_entry-slot", &other)),
            (
                "a slot told twice",
                reserve().header("x-urr-entry-slot", &other).header("x-urr-entry-slot", &slot),
            ),
        ] {
            assert_eq!(request.send().await.outcome(), passed(), "{name}");
            let seen = gateway.services.received().pop().unwrap();
            for (told, expected) in [("x-urr-entry-event", &mine), ("x-urr-entry-slot", &slot)] {
                assert_eq!(values(&seen.headers, told), [expected.as_str()], "{name}: {told}");
            }
            assert_eq!(seen.user, Some((FAN, UserRole::User)), "{name}");
            for gone in [TOKEN, EDGE, "authorization"] {
                assert!(!seen.headers.contains_key(gone), "{name}: {gone}");
            }
        }
    }
}

/// The values of a header, however some servers would spell it.
fn values<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let is_it = |header: &str| header.replace('_', "-").eq_ignore_ascii_case(name);
    let values = headers.iter().filter(|(header, _)| is_it(header.as_str()));
    values.map(|(_, value)| value.to_str().unwrap()).collect()
}

/// What pretends to be another request stays the one it is: it needs no token, and books nothing.
#[tokio::test]
async fn a_request_is_the_one_of_its_first_line() {
    let gateway = gateway();
    let user = gateway.token(UserRole::User);
    for (header, value) in [
        ("x-http-method-override", "POST"),
        ("x-http-method", "POST"),
        ("x-method-override", "POST"),
        ("x-original-url", "/api/seats/reserve"),
        ("x-rewrite-url", "/api/seats/reserve"),
    ] {
        let request = gateway.get("/api/reservations/my").bearer(&user).header(header, value);
        assert_eq!(request.send().await.outcome(), passed(), "{header}");
        let seen = gateway.services.received().pop().unwrap();
        assert_eq!((seen.method, seen.path.as_str()), (Method::GET, "/api/reservations/my"));
        assert!(!seen.headers.contains_key("x-urr-entry-event"));
        assert!(!seen.headers.contains_key("x-urr-entry-slot"));
    }
}

/// Control of all the above: the unchanged token is valid on every path.
#[tokio::test]
async fn a_good_token_opens_every_path_that_books() {
    let gateway = gateway();
    for to in booking() {
        let good = forge(&gateway).good();
        for answer in answers(&gateway, &to, &good).await {
            assert_eq!(answer.outcome(), passed(), "{to:?}");
        }
        let capitals = request(&gateway, &to).header("X-Queue-Entry-Token", &good).send().await;
        assert_eq!(capitals.outcome(), passed(), "{to:?}");
        let v1 = (to.0.clone(), to.1.replacen("/api", "/api/v1", 1));
        assert_eq!(request(&gateway, &v1).entry(&good).send().await.outcome(), passed(), "{v1:?}");
        let a_day = gateway.clock.now().as_second() + A_DAY;
        let longest = forge(&gateway).with("exp", json!(a_day));
        assert_eq!(request(&gateway, &to).entry(&longest).send().await.outcome(), passed());
        for seen in gateway.services.received() {
            assert_eq!(seen.headers["x-urr-entry-event"], EVENT.to_string());
            assert_eq!(seen.headers["x-urr-entry-slot"], Uuid::from_u128(9).to_string());
        }
    }
}
