//! Spellings of a path that try to evade a rule (D-6).

use axum::http::Method;
use urr_service::UserRole;

use crate::harness::{TestGateway, passed, refused};

/// Spellings of `POST /api/seats/reserve`, which needs an entry token, with the expected refusal.
const SPELLINGS: &[(&str, u16, &str)] = &[
    // The same path: the same rule.
    ("/api/seats/reserve", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/v1/seats/reserve", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/%73eats/reserve", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/seat%73/r%65serve", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/%73%65%61%74%73/%72%65%73%65%72%76%65", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/%76%31/seats/reserve", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/seats/reserve/", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/v1/seats/reserve/", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/seats/reserve?x=/api/artists", 403, "ENTRY_TOKEN_REQUIRED"),
    ("/api/seats/reserve?", 403, "ENTRY_TOKEN_REQUIRED"),
    ("http://elsewhere/api/seats/reserve", 403, "ENTRY_TOKEN_REQUIRED"),
    // What could be read in two ways.
    ("/api/seats%2freserve", 400, "INVALID_PATH"),
    ("/api/seats%2Freserve", 400, "INVALID_PATH"),
    ("/api/seats%5creserve", 400, "INVALID_PATH"),
    ("/api/seats;x/reserve", 400, "INVALID_PATH"),
    ("/api/seats;jsessionid=1/reserve", 400, "INVALID_PATH"),
    ("/api/seats/reserve;", 400, "INVALID_PATH"),
    ("/api/seats%3bx/reserve", 400, "INVALID_PATH"),
    ("/api/./seats/reserve", 400, "INVALID_PATH"),
    ("/api/artists/../seats/reserve", 400, "INVALID_PATH"),
    ("/api/artists/%2e%2e/seats/reserve", 400, "INVALID_PATH"),
    ("/api/artists/.%2e/seats/reserve", 400, "INVALID_PATH"),
    ("/api/artists/..%2fseats/reserve", 400, "INVALID_PATH"),
    ("/api/artists/..;/seats/reserve", 400, "INVALID_PATH"),
    ("/api/%2573eats/reserve", 400, "INVALID_PATH"),
    ("/api/artists/%252e%252e/seats/reserve", 400, "INVALID_PATH"),
    ("/api//seats/reserve", 400, "INVALID_PATH"),
    ("/api/seats//reserve", 400, "INVALID_PATH"),
    ("/api/seats/reserve//", 400, "INVALID_PATH"),
    ("/api/seats/reserve%00", 400, "INVALID_PATH"),
    ("/api/seats/reserve%0d%0a", 400, "INVALID_PATH"),
    ("/api/seats/reserve%09", 400, "INVALID_PATH"),
    ("/api/seats/%c0%afreserve", 400, "INVALID_PATH"),
    ("/api/seats/reserve%", 400, "INVALID_PATH"),
    ("/api/%u0073eats/reserve", 400, "INVALID_PATH"),
    // Other paths, where there is nothing.
    ("/api/Seats/reserve", 404, "NOT_FOUND"),
    ("/API/seats/reserve", 404, "NOT_FOUND"),
    ("/%61pi/seats/reserve", 404, "NOT_FOUND"),
    ("//api/seats/reserve", 404, "NOT_FOUND"),
    ("/api/v1/v1/seats/reserve", 404, "NOT_FOUND"),
    ("/api/v2/seats/reserve", 404, "NOT_FOUND"),
    ("/api/V1/seats/reserve", 404, "NOT_FOUND"),
    ("/api/%EF%BD%93eats/reserve", 404, "NOT_FOUND"),
    ("/api/seats/reserve%20", 405, "METHOD_NOT_ALLOWED"),
    ("/api/seats/RESERVE", 405, "METHOD_NOT_ALLOWED"),
    ("/api/seats/reserve.json", 405, "METHOD_NOT_ALLOWED"),
];

#[tokio::test]
async fn d_6_no_spelling_evades_a_rule() {
    let gateway = TestGateway::new();
    let token = gateway.token(UserRole::User);
    assert!(SPELLINGS.len() >= 25);
    for (path, status, code) in SPELLINGS {
        let answer = gateway.post(path).bearer(&token).send().await;
        assert_eq!(answer.outcome(), refused(*status, code), "{path}");
    }
    assert!(gateway.services.received().is_empty(), "nothing reached a service");
    // Nor does another method of the same meaning.
    let head = gateway.request(Method::HEAD, "/api/seats/layouts").bearer(&token).send().await;
    assert_eq!(head.status, 403);
}

#[tokio::test]
async fn d_6_rules_and_services_see_the_same_text() {
    let gateway = TestGateway::new();
    for (given, expected) in [
        ("/api/v1/artists?page=2", "/api/artists?page=2"),
        ("/api/%61rtists/%41", "/api/artists/A"),
        ("/api/artists/%ec%98%88?q=%2F..%2F", "/api/artists/%EC%98%88?q=%2F..%2F"),
        ("/api/artists/", "/api/artists/"),
        ("http://elsewhere/api/artists", "/api/artists"),
    ] {
        assert_eq!(gateway.get(given).send().await.outcome(), passed(), "{given}");
        assert_eq!(gateway.services.received().pop().unwrap().path, expected);
    }
}

#[tokio::test]
async fn an_address_has_a_longest_form() {
    let gateway = TestGateway::new();
    let long = format!("/api/artists?q={}", "x".repeat(9_000));
    assert_eq!(gateway.get(&long).send().await.outcome(), refused(414, "ADDRESS_TOO_LONG"));
    let fits = format!("/api/artists?q={}", "x".repeat(8_000));
    assert_eq!(gateway.get(&fits).send().await.outcome(), passed());
}
