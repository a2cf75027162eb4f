//! The metrics: they exist, they change, and they contain no personal data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use serde_json::json;
use tokio::task::JoinSet;
use urr_gateway::ConcurrencyLimits;
use urr_gateway::RateLimiter;
use urr_kernel::{Secret, Uuid};
use urr_redis::{Redis, RedisTopology};
use urr_service::{Caller, Upstream, UserRole};

use crate::harness::{EVENT, FAN, OTHER, TestGateway, kit, passed, services, settings, soon};

/// The value of a series, by its whole name with its labels.
fn metric(gateway: &TestGateway, series: &str) -> Option<i64> {
    let text = gateway.kit.metrics.text();
    let line =
        text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series));
    line.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

fn requests(gateway: &TestGateway, method: &str, route: &str, status: u16) -> Option<i64> {
    let labels =
        format!(r#"service="gateway",method="{method}",route="{route}",status="{status}""#);
    metric(gateway, &format!("urr_http_requests_total{{{labels}}}"))
}

#[tokio::test]
async fn requests_are_counted_by_the_row_of_the_table() {
    let gateway = TestGateway::new();
    let token = gateway.token(UserRole::User);
    for n in 0..3 {
        let id = Uuid::from_u128(n);
        gateway.get(&format!("/api/artists/{id}?q={id}")).send().await;
        gateway.post(&format!("/api/v1/reservations/{id}/cancel")).bearer(&token).send().await;
        gateway.get(&format!("/api/seats/events/{id}")).bearer(&token).send().await;
        gateway.get(&format!("/api/nothing/{id}")).send().await;
        gateway.get(&format!("/api/reservations/{id}")).send().await;
    }
    assert_eq!(requests(&gateway, "GET", "/api/artists/**", 200), Some(3));
    assert_eq!(requests(&gateway, "POST", "/api/reservations/{id}/**", 200), Some(3));
    assert_eq!(requests(&gateway, "GET", "/api/seats/**", 403), Some(3), "refusals too");
    assert_eq!(requests(&gateway, "GET", "/api/reservations/**", 401), Some(3));
    assert_eq!(requests(&gateway, "GET", "/api/{*rest}", 404), Some(3), "no row, no name");
    let buckets = r#"urr_http_request_duration_seconds_count{service="gateway",route="#;
    assert_eq!(metric(&gateway, &format!(r#"{buckets}"/api/artists/**"}}"#)), Some(3));
}

#[tokio::test]
async fn refusals_are_counted_by_rate_class() {
    let gateway = TestGateway::with_settings(|settings| {
        settings.rate_limits.general = 2;
        settings.rate_limits.login_account = 1;
        settings.rate_limits.booking = 1;
    });
    let limited = |class: &str| {
        metric(&gateway, &format!(r#"urr_gateway_rate_limited_total{{class="{class}"}}"#))
    };
    for class in ["auth", "login", "refresh", "queue", "booking", "general"] {
        assert_eq!(limited(class), Some(0), "{class}: there before anything happened");
    }
    for _ in 0..5 {
        gateway.get("/api/artists").send().await;
    }
    for _ in 0..3 {
        let body = json!({ "email": "mina@example.com", "password": "x" });
        gateway.post("/api/auth/login").json(&body).send().await;
    }
    let token = gateway.token(UserRole::User);
    for _ in 0..2 {
        gateway.post("/api/reservations/1/cancel").bearer(&token).send().await;
    }
    assert_eq!(limited("general"), Some(3));
    assert_eq!(limited("login"), Some(2));
    assert_eq!(limited("booking"), Some(1));
    assert_eq!(limited("auth"), Some(0));
}

#[tokio::test]
async fn permits_and_shed_requests_are_visible() {
    let permits = 10;
    let gateway = Arc::new(TestGateway::with_settings(|settings| {
        settings.concurrency = ConcurrencyLimits {
            total_max: 100,
            line: 100,
            start: permits,
            min: permits,
            max: permits,
            inside_min: 0,
        };
    }));
    let taken =
        |of: &str| metric(&gateway, &format!(r#"urr_gateway_permits_used{{target="{of}"}}"#));
    let limit = |of: &str| metric(&gateway, &format!(r#"urr_gateway_permits{{target="{of}"}}"#));
    let shed =
        |of: &str| metric(&gateway, &format!(r#"urr_gateway_shed_total{{priority="{of}"}}"#));
    assert_eq!((limit("catalog"), taken("catalog")), (Some(10), Some(0)));
    assert_eq!((limit("all"), taken("all")), (Some(100), Some(0)));
    let mut flood = JoinSet::new();
    for _ in 0..20 {
        let gateway = Arc::clone(&gateway);
        flood.spawn(async move { gateway.get("/api/artists/slow").send().await.status });
    }
    // Browsing may have seven of ten.
    for _ in 0..13 {
        assert_eq!(soon(flood.join_next()).await.unwrap().unwrap(), 503);
    }
    assert_eq!((taken("catalog"), taken("all"), taken("ticket")), (Some(7), Some(7), Some(0)));
    assert_eq!((shed("browse"), shed("hold"), shed("pay")), (Some(13), Some(0), Some(0)));
    gateway.services.open_gate();
    while let Some(status) = soon(flood.join_next()).await {
        assert_eq!(status.unwrap(), 200);
    }
    assert_eq!((taken("catalog"), taken("all")), (Some(0), Some(0)));
}

#[tokio::test]
async fn a_breaker_shows_its_state() {
    let is_down = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_down);
    let handler = any(async move || match down.load(Ordering::SeqCst) {
        true => StatusCode::INTERNAL_SERVER_ERROR,
        false => StatusCode::OK,
    });
    let kit = kit();
    let router = Router::new().route("/{*rest}", handler);
    let upstream = Upstream::local(Caller::Gateway, "catalog", router, &kit);
    let gateway = TestGateway::from_upstreams(vec![upstream], services(), kit, |_| {});
    let breaker = || metric(&gateway, r#"urr_gateway_breaker{target="catalog"}"#);
    assert_eq!(breaker(), Some(0));
    for _ in 0..10 {
        gateway.get("/api/artists").send().await;
    }
    assert_eq!(breaker(), Some(2));
    is_down.store(false, Ordering::SeqCst);
    gateway.clock.advance(Duration::from_secs(10));
    gateway.get("/api/artists").send().await;
    assert_eq!(breaker(), Some(1));
    for _ in 0..2 {
        gateway.get("/api/artists").send().await;
    }
    assert_eq!(breaker(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn revoked_tokens_show_number_and_age_of_the_list() {
    let gateway = TestGateway::new();
    let known = || metric(&gateway, "urr_gateway_revoked_tokens");
    let age = || metric(&gateway, "urr_gateway_revoked_tokens_age_seconds");
    assert_eq!((known(), age()), (Some(0), Some(0)));
    let expires = gateway.clock.now() + Duration::from_secs(60);
    let entries = (1..).zip([4, 5, 6]).map(|(n, id)| (n, Uuid::from_u128(id), expires));
    gateway.services.revoked.lock().unwrap().extend(entries);
    tokio::time::advance(Duration::from_secs(7)).await;
    assert_eq!((known(), age()), (Some(0), Some(7)), "nobody has looked");
    let feed = gateway.feed.clone().unwrap();
    feed.refresh().await.unwrap();
    assert_eq!((known(), age()), (Some(3), Some(0)));
    gateway.clock.advance(Duration::from_secs(60));
    feed.refresh().await.unwrap();
    assert_eq!(known(), Some(0), "they have expired");
}

#[tokio::test]
async fn a_limiter_without_its_redis_is_visible() {
    let kit = kit();
    // Port 1 of loopback: nobody listens there.
    let place = RedisTopology::Single(Secret::new("redis://127.0.0.1:1"));
    let redis = Redis::connect(&place).await.unwrap();
    let limiter = RateLimiter::shared(redis, kit.clock.clone());
    let router = Router::new().route("/{*rest}", any(async || "well"));
    let upstream = Upstream::local(Caller::Gateway, "catalog", router, &kit);
    let gateway = TestGateway::with_limiter(limiter, vec![upstream], services(), kit, settings());
    let fallback = || metric(&gateway, "urr_gateway_limiter_fallback_total");
    let alone = || metric(&gateway, "urr_gateway_limiter_redis_down");
    assert_eq!((fallback(), alone()), (Some(0), Some(0)));
    for _ in 0..10 {
        assert_eq!(gateway.get("/api/artists").send().await.outcome(), passed());
    }
    assert_eq!((fallback(), alone()), (Some(10), Some(1)));
    // Control: a limiter that has no Redis does not miss it.
    let gateway = TestGateway::new();
    gateway.get("/api/artists").send().await;
    assert_eq!(metric(&gateway, "urr_gateway_limiter_fallback_total"), Some(0));
    assert_eq!(metric(&gateway, "urr_gateway_limiter_redis_down"), Some(0));
}

#[tokio::test]
async fn no_label_contains_personal_data() {
    let gateway = TestGateway::new();
    let token = gateway.token(UserRole::User);
    for path in [
        format!("/api/seats/events/{EVENT}"),
        format!("/api/reservations/{OTHER}"),
        format!("/api/artists/{OTHER}?email=fan@example.com"),
        format!("/api/unknown/{OTHER}"),
        format!("/api/auth/admin/users/{OTHER}/role"),
    ] {
        let entry = gateway.entry_token(FAN, EVENT);
        gateway.get(&path).bearer(&token).entry(&entry).from("203.0.113.77").send().await;
        gateway.get(&path).header("cookie", "refresh_token=secret-token").send().await;
    }
    let text = gateway.kit.metrics.text();
    assert!(text.contains("urr_http_requests_total"));
    let told = [FAN, OTHER, EVENT].map(|id| id.to_string());
    let told = told.iter().map(String::as_str);
    for name in told.chain(["fan@example.com", "203.0.113.77", "secret-token", &token]) {
        assert!(!text.contains(name), "{name}: {text}");
    }
}
