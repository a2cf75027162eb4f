//! Entry tokens of the waiting room on the routes that book. Attacks have a file of their own.

mod attacks;

use std::time::Duration;

use axum::http::Method;
use urr_kernel::{Secret, Uuid};
use urr_service::UserRole;
use urr_service::token::{ENTRY, EntryClaims, TokenKey};

use crate::harness::{
    ACCESS_SECRET, EDGE_SECRET, ENTRY_SECRET, EVENT, FAN, OTHER, TestGateway, passed, refused,
};

const BOOKING: [(Method, &str); 5] = [
    (Method::GET, "/api/seats/layouts"),
    (Method::GET, "/api/seats"),
    (Method::POST, "/api/seats/reserve"),
    (Method::POST, "/api/reservations"),
    (Method::PUT, "/api/reservations/1/seats"),
];

#[tokio::test]
async fn booking_needs_a_valid_entry_token_of_the_user() {
    let gateway = TestGateway::new();
    let user = gateway.token(UserRole::User);
    let sign = |secret: &str, purpose| {
        let claims = EntryClaims { user_id: FAN };
        TokenKey::new(secret.as_bytes()).sign(purpose, &gateway.issue(EVENT), &claims)
    };
    let mut over = gateway.issue(EVENT);
    over.issued_at -= Duration::from_secs(1_800);
    let over =
        TokenKey::new(ENTRY_SECRET.as_bytes()).sign(ENTRY, &over, &EntryClaims { user_id: FAN });
    let good = gateway.entry_token(FAN, EVENT);
    for (method, path) in BOOKING {
        let request = || gateway.request(method.clone(), path).bearer(&user);
        let missing = request().send().await;
        assert_eq!(missing.outcome(), refused(403, "ENTRY_TOKEN_REQUIRED"), "{path}");
        assert_eq!(missing.json()["redirectTo"], "/queue");
        assert!(missing.json()["error"].is_string());
        assert_eq!(
            request().entry("").send().await.outcome(),
            refused(403, "ENTRY_TOKEN_REQUIRED")
        );
        for bad in [
            gateway.entry_token(OTHER, EVENT),
            over.clone(),
            user.clone(),
            sign(ACCESS_SECRET, ENTRY),
            sign(ENTRY_SECRET, urr_service::token::ACCESS),
            format!("{good}x"),
            format!("{}x", "a".repeat(5_000)),
            "a.b.c".to_owned(),
        ] {
            let answer = request().entry(&bad).send().await;
            assert_eq!(answer.outcome(), refused(403, "ENTRY_TOKEN_INVALID"), "{path} {bad}");
            assert_eq!(answer.json()["redirectTo"], "/queue");
        }
        let two = request().entry(&good).entry(&good).send().await;
        assert_eq!(two.outcome(), refused(403, "ENTRY_TOKEN_INVALID"));
        assert!(gateway.services.received().is_empty());
        assert_eq!(request().entry(&good).send().await.outcome(), passed(), "control: {path}");
        gateway.services.received();
        let anonymous = gateway.request(method.clone(), path).entry(&good).send().await;
        assert_eq!(anonymous.outcome(), refused(401, "AUTHENTICATION_REQUIRED"));
    }
}

/// D-5: the event of the token reaches the service that knows what is booked, and is compared at
/// once where the path names the event.
#[tokio::test]
async fn d_5_a_token_opens_its_own_event_only() {
    let gateway = TestGateway::new();
    let request = |path: &str, event| {
        gateway
            .get(path)
            .bearer(&gateway.token(UserRole::User))
            .entry(&gateway.entry_token(FAN, event))
    };
    let seats = format!("/api/seats/events/{EVENT}");
    let other = request(&seats, OTHER).header("x-urr-entry-event", &EVENT.to_string()).send().await;
    assert_eq!(other.outcome(), refused(403, "ENTRY_TOKEN_OTHER_EVENT"));
    assert_eq!(other.json()["redirectTo"], "/queue");
    let stream = request(&format!("{seats}/stream"), OTHER).send().await;
    assert_eq!(stream.outcome(), refused(403, "ENTRY_TOKEN_OTHER_EVENT"));
    assert!(gateway.services.received().is_empty());
    assert_eq!(request(&seats, EVENT).send().await.outcome(), passed());
    let entry = gateway.entry_token(FAN, EVENT);
    let reserve =
        gateway.post("/api/seats/reserve").bearer(&gateway.token(UserRole::User)).entry(&entry);
    // The service believes the header, so a client cannot send it.
    let forged = reserve.header("x-urr-entry-event", &OTHER.to_string()).send().await;
    assert_eq!(forged.outcome(), passed());
    for seen in gateway.services.received() {
        let sent: Vec<_> = seen.headers.get_all("x-urr-entry-event").iter().collect();
        assert_eq!(sent, [EVENT.to_string().as_str()]);
        assert!(!seen.headers.contains_key("x-queue-entry-token"));
    }
}

/// E-3: buyers can read and cancel their reservations later.
#[tokio::test]
async fn e_3_own_reservations_need_no_entry_token() {
    let gateway = TestGateway::new();
    let user = gateway.token(UserRole::User);
    let id = Uuid::from_u128(1);
    for (method, path) in [
        (Method::GET, "/api/reservations/my".to_owned()),
        (Method::GET, format!("/api/reservations/{id}")),
        (Method::POST, format!("/api/reservations/{id}/cancel")),
        (Method::DELETE, format!("/api/reservations/{id}")),
        (Method::GET, format!("/api/seats/reservation/{id}")),
        (Method::POST, "/api/payments/confirm".to_owned()),
    ] {
        let answer = gateway.request(method, &path).bearer(&user).send().await;
        assert_eq!(answer.outcome(), passed(), "{path}");
        let seen = gateway.services.received().pop().unwrap();
        assert!(!seen.headers.contains_key("x-urr-entry-event"));
    }
}

/// E-5: our edge may vouch for the signature, but not for user and event.
#[tokio::test]
async fn e_5_the_edge_skips_the_signature_and_nothing_else() {
    let gateway =
        TestGateway::with_settings(|s| s.trusted_edge_secret = Some(Secret::new(EDGE_SECRET)));
    let user = gateway.token(UserRole::User);
    let unsigned = |user_id, event| {
        let token = gateway.entry_token(user_id, event);
        format!("{}.AAAA", token.rsplit_once('.').unwrap().0)
    };
    let path = format!("/api/seats/events/{EVENT}");
    let request = |token: &str, edge: &str| {
        gateway.get(&path).bearer(&user).entry(token).header("x-cloudfront-verified", edge)
    };
    let invalid = refused(403, "ENTRY_TOKEN_INVALID");
    let mine = unsigned(FAN, EVENT);
    assert_eq!(request(&mine, EDGE_SECRET).send().await.outcome(), passed());
    assert_eq!(request(&unsigned(OTHER, EVENT), EDGE_SECRET).send().await.outcome(), invalid);
    let other_event = request(&unsigned(FAN, OTHER), EDGE_SECRET).send().await;
    assert_eq!(other_event.outcome(), refused(403, "ENTRY_TOKEN_OTHER_EVENT"));
    for wrong in ["", "x", &EDGE_SECRET[1..], &format!("{EDGE_SECRET} ")] {
        assert_eq!(request(&mine, wrong).send().await.outcome(), invalid, "{wrong:?}");
    }
    let missing = gateway.get(&path).bearer(&user).header("x-cloudfront-verified", EDGE_SECRET);
    assert_eq!(missing.send().await.outcome(), refused(403, "ENTRY_TOKEN_REQUIRED"));
    let anonymous = gateway.get(&path).entry(&mine).header("x-cloudfront-verified", EDGE_SECRET);
    assert_eq!(anonymous.send().await.outcome(), refused(401, "AUTHENTICATION_REQUIRED"));
    gateway.clock.advance(Duration::from_secs(1_799));
    assert_eq!(request(&mine, EDGE_SECRET).send().await.outcome(), passed());
    gateway.clock.advance(Duration::from_secs(1));
    let later = gateway.token(UserRole::User);
    let late = gateway.get(&path).bearer(&later).entry(&mine);
    let late = late.header("x-cloudfront-verified", EDGE_SECRET).send().await;
    assert_eq!(late.outcome(), invalid, "it has expired");
    // Control: without an edge the signature is checked, and the secret is not forwarded.
    let without = TestGateway::new();
    let token = without.token(UserRole::User);
    let answer = without.get(&path).bearer(&token).entry(&mine);
    let answer = answer.header("x-cloudfront-verified", "").send().await;
    assert_eq!(answer.outcome(), invalid);
    for seen in gateway.services.received() {
        assert!(!seen.headers.contains_key("x-cloudfront-verified"));
    }
}
