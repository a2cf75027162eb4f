//! Browsers: CORS, preflight requests, cross-site requests, security headers.

use axum::http::Method;
use serde_json::json;
use urr_service::UserRole;

use crate::harness::{ORIGIN, TestGateway, TestRequest, passed, refused};

const ALLOW_ORIGIN: &str = "access-control-allow-origin";

/// E-1: the calling page can read every response, also errors.
#[tokio::test]
async fn e_1_every_response_has_the_cors_headers_of_its_origin() {
    let gateway = TestGateway::with_settings(|settings| settings.rate_limits.booking = 1);
    let token = gateway.token(UserRole::User);
    let slow = |path| gateway.post(path).bearer(&token);
    let cases: Vec<(u16, TestRequest<'_>)> = vec![
        (200, gateway.get("/api/artists")),
        (400, gateway.get("/api/artists/%2e%2e/x")),
        (401, gateway.get("/api/reservations/my")),
        (403, gateway.get("/api/stats/x").bearer(&token)),
        (404, gateway.get("/api/nothing")),
        (404, gateway.get("/nothing")),
        (405, gateway.request(Method::DELETE, "/api/artists")),
        (413, gateway.post("/api/auth/login").body(vec![b' '; 20_000])),
        (413, gateway.post("/api/payments/confirm").body(vec![b' '; 2_000_000])),
        (431, gateway.get("/api/artists").header("x-long", &"x".repeat(20_000))),
        (403, slow("/api/seats/reserve")),
        (429, slow("/api/seats/reserve")),
    ];
    for (status, request) in cases {
        let answer = request.header("origin", ORIGIN).send().await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header(ALLOW_ORIGIN), ORIGIN, "{status}");
        assert_eq!(answer.header("access-control-allow-credentials"), "true", "{status}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{status}");
        assert!(!answer.header("x-request-id").is_empty(), "{status}");
    }
    // Control: other origins get none.
    for other in ["https://evil.example", "null", "https://web.example.evil", ""] {
        let answer = gateway.get("/api/artists").header("origin", other).send().await;
        assert_eq!(answer.header(ALLOW_ORIGIN), "", "{other}");
        assert_eq!(answer.header("vary"), "origin");
    }
}

#[tokio::test]
async fn e_1_a_preflight_costs_nothing() {
    let gateway = TestGateway::with_settings(|settings| settings.rate_limits.general = 1);
    let request = |origin| {
        gateway
            .request(Method::OPTIONS, "/api/payments/confirm")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "x-queue-entry-token")
    };
    for _ in 0..10 {
        let answer = request(ORIGIN).send().await;
        assert_eq!(answer.status, 204);
        assert!(answer.header("access-control-allow-methods").contains("PATCH"));
        assert!(answer.header("access-control-allow-headers").contains("x-queue-entry-token"));
        assert_eq!(answer.header("access-control-max-age"), "3600");
        assert!(!answer.header("x-request-id").is_empty());
    }
    let stranger = request("https://evil.example").send().await;
    assert_eq!(stranger.header("access-control-allow-methods"), "");
    assert!(gateway.services.received().is_empty());
    // Control: the allowance is still whole, and it is one.
    assert_eq!(gateway.get("/api/artists").send().await.outcome(), passed());
    assert_eq!(gateway.get("/api/artists").send().await.outcome(), refused(429, "RATE_LIMITED"));
}

/// D-14: a foreign page can make a browser send our cookie, but not hide where it comes from.
#[tokio::test]
async fn d_14_a_change_by_cookie_needs_a_page_of_ours() {
    let gateway = TestGateway::new();
    let token = gateway.token(UserRole::User);
    let request = |method: &Method, headers: &[(&str, &str)]| {
        let request = gateway.request(method.clone(), "/api/reservations/1/cancel").cookie(&token);
        headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    };
    let foreign: [&[(&str, &str)]; 6] = [
        &[],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("host", "urr.example")],
        &[("origin", "https://evil.example"), ("host", "urr.example")],
        &[("origin", "null")],
        &[("referer", "https://evil.example/urr.example"), ("host", "urr.example")],
    ];
    for headers in foreign {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = request(&method, headers).send().await;
            assert_eq!(answer.outcome(), refused(403, "CROSS_SITE_REQUEST"), "{headers:?}");
        }
    }
    assert!(gateway.services.received().is_empty());
    let own: [&[(&str, &str)]; 5] = [
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "cross-site"), ("origin", ORIGIN)],
        &[("origin", "https://urr.example"), ("host", "urr.example")],
        &[("referer", "https://urr.example/seats"), ("host", "urr.example")],
    ];
    for headers in own {
        assert_eq!(request(&Method::POST, headers).send().await.outcome(), passed(), "{headers:?}");
    }
    // Reads, and credentials that a page cannot make a browser send, need no origin.
    let read = gateway.get("/api/reservations/my").cookie(&token);
    assert_eq!(read.header("sec-fetch-site", "cross-site").send().await.outcome(), passed());
    let bearer = gateway.post("/api/reservations/1/cancel").bearer(&token);
    assert_eq!(bearer.header("sec-fetch-site", "cross-site").send().await.outcome(), passed());
}

#[tokio::test]
async fn d_14_a_refresh_by_cookie_needs_a_page_of_ours() {
    let gateway = TestGateway::new();
    let request = |site| {
        let request = gateway.post("/api/auth/refresh").header("cookie", "refresh_token=r");
        request.header("sec-fetch-site", site).json(&json!({}))
    };
    assert_eq!(request("cross-site").send().await.outcome(), refused(403, "CROSS_SITE_REQUEST"));
    assert_eq!(request("same-origin").send().await.outcome(), passed());
}

#[tokio::test]
async fn pages_and_data_have_their_policies() {
    let gateway = TestGateway::with_settings(|settings| settings.is_loopback = false);
    let page = gateway.get("/own-policy").send().await;
    assert!(page.header("content-security-policy").contains("style-src 'self'"), "its own");
    assert_eq!(page.header("strict-transport-security"), "max-age=31536000");
    assert_eq!(page.header("cross-origin-opener-policy"), "same-origin");
    let health = gateway.get("/health").send().await;
    assert!(health.header("content-security-policy").contains("frame-ancestors 'none'"));
    let data = gateway.get("/api/artists").send().await;
    assert!(data.header("content-security-policy").starts_with("default-src 'none'"));
    assert_eq!(data.header("cache-control"), "no-store");
    assert_eq!(page.header("referrer-policy"), "strict-origin-when-cross-origin");
    // Control: a browser must not insist on TLS where there is none.
    let loopback = TestGateway::new().get("/page").send().await;
    assert_eq!(loopback.header("strict-transport-security"), "");
}

#[tokio::test]
async fn a_page_asks_the_api_as_its_client_and_under_the_same_checks() {
    let gateway = TestGateway::new();
    let anonymous = gateway.get("/asks-the-api").send().await;
    assert_eq!(anonymous.outcome(), refused(401, "AUTHENTICATION_REQUIRED"));
    let token = gateway.token(UserRole::User);
    let known = gateway.get("/asks-the-api").cookie(&token).send().await;
    assert_eq!(known.outcome(), passed());
    let forged = gateway.post("/asks-the-api").cookie(&token);
    let forged = forged.header("sec-fetch-site", "cross-site").send().await;
    assert_eq!(forged.outcome(), refused(403, "CROSS_SITE_REQUEST"));
}
