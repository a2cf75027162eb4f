//! The figures for operators: they are there, they move, and they name nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use serde_json::json;
use tokio::task::JoinSet;
use urr_gateway::Concurrency;
use urr_kernel::{Secret, Uuid};
use urr_limit::Limiter;
use urr_redis::{Redis, RedisPlace};
use urr_service::{Caller, Role, Upstream};

use crate::house::{EVENT, FAN, House, OTHER, kit, passed, services, settings, soon};

/// The value of a series, by its whole name with its labels.
fn figure(house: &House, series: &str) -> Option<i64> {
    let text = house.kit.metrics.text();
    let line =
        text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series));
    line.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

fn requests(house: &House, method: &str, route: &str, status: u16) -> Option<i64> {
    let labels =
        format!(r#"service="gateway",method="{method}",route="{route}",status="{status}""#);
    figure(house, &format!("urr_http_requests_total{{{labels}}}"))
}

#[tokio::test]
async fn requests_are_counted_by_the_row_of_the_table() {
    let house = House::open();
    let token = house.token(Role::User);
    for n in 0..3 {
        let id = Uuid::from_u128(n);
        house.get(&format!("/api/artists/{id}?q={id}")).send().await;
        house.post(&format!("/api/v1/reservations/{id}/cancel")).bearer(&token).send().await;
        house.get(&format!("/api/seats/events/{id}")).bearer(&token).send().await;
        house.get(&format!("/api/nothing/{id}")).send().await;
        house.get(&format!("/api/reservations/{id}")).send().await;
    }
    assert_eq!(requests(&house, "GET", "/api/artists/**", 200), Some(3));
    assert_eq!(requests(&house, "POST", "/api/reservations/{id}/**", 200), Some(3));
    assert_eq!(requests(&house, "GET", "/api/seats/**", 403), Some(3), "refusals too");
    assert_eq!(requests(&house, "GET", "/api/reservations/**", 401), Some(3));
    assert_eq!(requests(&house, "GET", "/api/{*rest}", 404), Some(3), "no row, no name");
    let buckets = r#"urr_http_request_duration_seconds_count{service="gateway",route="#;
    assert_eq!(figure(&house, &format!(r#"{buckets}"/api/artists/**"}}"#)), Some(3));
}

#[tokio::test]
async fn refusals_are_counted_by_rate_class() {
    let house = House::with(|settings| {
        settings.rates.general = 2;
        settings.rates.login_account = 1;
        settings.rates.booking = 1;
    });
    let limited = |class: &str| {
        figure(&house, &format!(r#"urr_gateway_rate_limited_total{{class="{class}"}}"#))
    };
    for class in ["auth", "login", "refresh", "queue", "booking", "general"] {
        assert_eq!(limited(class), Some(0), "{class}: there before anything happened");
    }
    for _ in 0..5 {
        house.get("/api/artists").send().await;
    }
    for _ in 0..3 {
        let body = json!({ "email": "mina@example.com", "password": "x" });
        house.post("/api/auth/login").json(&body).send().await;
    }
    let token = house.token(Role::User);
    for _ in 0..2 {
        house.post("/api/reservations/1/cancel").bearer(&token).send().await;
    }
    assert_eq!(limited("general"), Some(3));
    assert_eq!(limited("login"), Some(2));
    assert_eq!(limited("booking"), Some(1));
    assert_eq!(limited("auth"), Some(0));
}

#[tokio::test]
async fn places_and_what_is_shed_can_be_watched() {
    let places = 10;
    let house = Arc::new(House::with(|settings| {
        settings.concurrency =
            Concurrency { total_max: 100, start: places, min: places, max: places };
    }));
    let taken = |of: &str| figure(&house, &format!(r#"urr_gateway_places_taken{{target="{of}"}}"#));
    let limit = |of: &str| figure(&house, &format!(r#"urr_gateway_places{{target="{of}"}}"#));
    let shed = |of: &str| figure(&house, &format!(r#"urr_gateway_shed_total{{priority="{of}"}}"#));
    assert_eq!((limit("catalog"), taken("catalog")), (Some(10), Some(0)));
    assert_eq!((limit("all"), taken("all")), (Some(100), Some(0)));
    let mut flood = JoinSet::new();
    for _ in 0..20 {
        let house = Arc::clone(&house);
        flood.spawn(async move { house.get("/api/artists/slow").send().await.status });
    }
    // Browsing may have seven of ten.
    for _ in 0..13 {
        assert_eq!(soon(flood.join_next()).await.unwrap().unwrap(), 503);
    }
    assert_eq!((taken("catalog"), taken("all"), taken("ticket")), (Some(7), Some(7), Some(0)));
    assert_eq!((shed("browse"), shed("hold"), shed("pay")), (Some(13), Some(0), Some(0)));
    house.services.open_gate();
    while let Some(status) = soon(flood.join_next()).await {
        assert_eq!(status.unwrap(), 200);
    }
    assert_eq!((taken("catalog"), taken("all")), (Some(0), Some(0)));
}

#[tokio::test]
async fn a_breaker_shows_that_it_is_open_and_that_it_closes() {
    let is_down = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_down);
    let handler = any(async move || match down.load(Ordering::SeqCst) {
        true => StatusCode::INTERNAL_SERVER_ERROR,
        false => StatusCode::OK,
    });
    let kit = kit();
    let router = Router::new().route("/{*rest}", handler);
    let upstream = Upstream::local(Caller::Gateway, "catalog", router, &kit);
    let house = House::put_together(vec![upstream], services(), kit, |_| {});
    let breaker = || figure(&house, r#"urr_gateway_breaker{target="catalog"}"#);
    assert_eq!(breaker(), Some(0));
    for _ in 0..10 {
        house.get("/api/artists").send().await;
    }
    assert_eq!(breaker(), Some(2));
    is_down.store(false, Ordering::SeqCst);
    house.clock.advance(Duration::from_secs(10));
    house.get("/api/artists").send().await;
    assert_eq!(breaker(), Some(1));
    for _ in 0..2 {
        house.get("/api/artists").send().await;
    }
    assert_eq!(breaker(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn revoked_tokens_show_how_many_and_how_old_the_list_is() {
    let house = House::open();
    let known = || figure(&house, "urr_gateway_revoked_tokens");
    let age = || figure(&house, "urr_gateway_revoked_tokens_age_seconds");
    assert_eq!((known(), age()), (Some(0), Some(0)));
    let expires = house.clock.now() + Duration::from_secs(60);
    let entries = (1..).zip([4, 5, 6]).map(|(n, id)| (n, Uuid::from_u128(id), expires));
    house.services.revoked.lock().unwrap().extend(entries);
    tokio::time::advance(Duration::from_secs(7)).await;
    assert_eq!((known(), age()), (Some(0), Some(7)), "nobody has looked");
    let feed = house.feed.clone().unwrap();
    feed.refresh().await.unwrap();
    assert_eq!((known(), age()), (Some(3), Some(0)));
    house.clock.advance(Duration::from_secs(60));
    feed.refresh().await.unwrap();
    assert_eq!(known(), Some(0), "they have expired");
}

#[tokio::test]
async fn a_limiter_that_is_alone_says_so() {
    let kit = kit();
    // Port 1 of loopback: nobody listens there.
    let place = RedisPlace::Single(Secret::new("redis://127.0.0.1:1"));
    let redis = Redis::connect(&place).await.unwrap();
    let limiter = Limiter::redis(redis, kit.clock.clone());
    let router = Router::new().route("/{*rest}", any(async || "well"));
    let upstream = Upstream::local(Caller::Gateway, "catalog", router, &kit);
    let house = House::limited_by(limiter, vec![upstream], services(), kit, settings());
    let fallback = || figure(&house, "urr_gateway_limiter_fallback_total");
    let alone = || figure(&house, "urr_gateway_limiter_alone");
    assert_eq!((fallback(), alone()), (Some(0), Some(0)));
    for _ in 0..10 {
        assert_eq!(house.get("/api/artists").send().await.outcome(), passed());
    }
    assert_eq!((fallback(), alone()), (Some(10), Some(1)));
    // Control: who has no Redis is not alone but by himself.
    let house = House::open();
    house.get("/api/artists").send().await;
    assert_eq!(figure(&house, "urr_gateway_limiter_fallback_total"), Some(0));
    assert_eq!(figure(&house, "urr_gateway_limiter_alone"), Some(0));
}

#[tokio::test]
async fn no_label_names_anybody() {
    let house = House::open();
    let token = house.token(Role::User);
    for path in [
        format!("/api/seats/events/{EVENT}"),
        format!("/api/reservations/{OTHER}"),
        format!("/api/artists/{OTHER}?email=fan@example.com"),
        format!("/api/unknown/{OTHER}"),
        format!("/api/auth/admin/users/{OTHER}/role"),
    ] {
        let entry = house.entry_token(FAN, EVENT);
        house.get(&path).bearer(&token).entry(&entry).from("203.0.113.77").send().await;
        house.get(&path).header("cookie", "refresh_token=secret-token").send().await;
    }
    let text = house.kit.metrics.text();
    assert!(text.contains("urr_http_requests_total"));
    let told = [FAN, OTHER, EVENT].map(|id| id.to_string());
    let told = told.iter().map(String::as_str);
    for name in told.chain(["fan@example.com", "203.0.113.77", "secret-token", &token]) {
        assert!(!text.contains(name), "{name}: {text}");
    }
}
