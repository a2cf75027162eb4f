//! Overload: which requests are shed, which go on, and how the gateway recovers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::Method;
use tokio::task::JoinSet;
use urr_gateway::ConcurrencyLimits;
use urr_service::UserRole;

use crate::harness::{TestGateway, passed, refused, soon};

/// How many permits there are in these tests.
const PERMITS: usize = 40;

fn small() -> Arc<TestGateway> {
    Arc::new(TestGateway::with_settings(|settings| {
        let permits = PERMITS;
        settings.concurrency = ConcurrencyLimits {
            total_max: permits,
            line: 8,
            start: permits,
            min: 8,
            max: permits,
            inside_min: 0,
        };
    }))
}

/// Starts ten times more slow browsing requests than there are permits.
async fn flood(gateway: &Arc<TestGateway>) -> JoinSet<u16> {
    let mut flood = JoinSet::new();
    for _ in 0..10 * PERMITS {
        let gateway = Arc::clone(gateway);
        flood.spawn(async move { gateway.get("/api/artists/slow").send().await.status.as_u16() });
    }
    flood
}

/// G9: browsing goes first, payments go last, and refusals are quick.
#[tokio::test]
async fn payments_go_on_while_browsing_is_shed() {
    let gateway = small();
    let token = gateway.token(UserRole::User);
    let mut flood = flood(&gateway).await;
    let begun = Instant::now();
    // Seven tenths of the permits are used by waiting requests; all others are refused at once.
    for _ in 0..10 * PERMITS - PERMITS * 7 / 10 {
        let status = soon(flood.join_next()).await.unwrap().unwrap();
        assert_eq!(status, 503);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for _ in 0..50 {
        let shed = gateway.get("/api/artists").send().await;
        assert_eq!(shed.outcome(), refused(503, "OVERLOADED"));
        let retry_after: u64 = shed.header("retry-after").parse().unwrap();
        assert!((2..=30).contains(&retry_after), "{retry_after}");
        let hold = gateway.post("/api/reservations/1/cancel").bearer(&token).send().await;
        assert_eq!(hold.outcome(), passed(), "holding goes on");
        let paid = gateway.post("/api/payments/confirm").bearer(&token).send().await;
        assert_eq!(paid.outcome(), passed(), "paying goes on");
    }
    // Once it is over, everything is as before.
    gateway.services.open_gate();
    while let Some(status) = soon(flood.join_next()).await {
        assert_eq!(status.unwrap(), 200);
    }
    assert_eq!(gateway.get("/api/artists").send().await.outcome(), passed());
}

#[tokio::test]
async fn holding_leaves_places_for_paying() {
    let gateway = small();
    let token = gateway.token(UserRole::User);
    let mut holds = JoinSet::new();
    for _ in 0..10 * PERMITS {
        let (gateway, token) = (Arc::clone(&gateway), token.clone());
        holds.spawn(async move {
            let request = gateway.request(Method::PUT, "/api/reservations/1/slow").bearer(&token);
            request.send().await.status.as_u16()
        });
    }
    for _ in 0..10 * PERMITS - PERMITS * 9 / 10 {
        assert_eq!(soon(holds.join_next()).await.unwrap().unwrap(), 503);
    }
    let paid = gateway.post("/api/payments/confirm").bearer(&token).send().await;
    assert_eq!(paid.outcome(), passed());
    gateway.services.open_gate();
    while let Some(status) = soon(holds.join_next()).await {
        assert_eq!(status.unwrap(), 200);
    }
}

/// A client that disconnects releases its permit.
#[tokio::test]
async fn an_abandoned_request_leaves_its_place() {
    let gateway = small();
    let mut flood = flood(&gateway).await;
    for _ in 0..10 * PERMITS - PERMITS * 7 / 10 {
        soon(flood.join_next()).await.unwrap().unwrap();
    }
    assert_eq!(gateway.get("/api/artists").send().await.status, 503);
    flood.shutdown().await;
    assert_eq!(gateway.get("/api/artists").send().await.outcome(), passed());
}
