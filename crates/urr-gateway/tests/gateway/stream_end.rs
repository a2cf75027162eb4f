//! A stream of server-sent events ends with the token that opened it.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::StreamExt;
use tower::ServiceExt;
use urr_service::token::ACCESS;
use urr_service::{Caller, Upstream, UserRole};

use crate::harness::{FAN, TestGateway, kit, service, services};

const PATH: &str = "/api/queue/stream/1";

/// A message a second, for ever.
async fn endless(request: Request) -> Response {
    let messages = futures_util::stream::unfold((), async |()| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, Infallible>("data: 1\n\n"), ()))
    });
    let kind = match request.uri().query() {
        Some("plain") => "application/json",
        _ => "text/event-stream",
    };
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(messages)).into_response()
}

async fn gateway() -> TestGateway {
    let (kit, services) = (kit(), services());
    let queue = Router::new().route("/{*rest}", any(endless));
    let auth = service("auth", &services, &kit).local_router();
    let upstreams = vec![
        Upstream::local(Caller::Gateway, "queue", queue, &kit),
        Upstream::local(Caller::Gateway, "auth", auth, &kit),
    ];
    let gateway = TestGateway::from_upstreams(upstreams, services, kit, |_| {});
    gateway.feed.as_ref().unwrap().refresh().await.unwrap();
    gateway
}

async fn follow(gateway: &TestGateway, token: &str, query: &str) -> BodyDataStream {
    let request = Request::get(format!("{PATH}{query}"));
    let request = request.header("authorization", format!("Bearer {token}"));
    let response = gateway.router.clone().oneshot(request.body(Body::empty()).unwrap()).await;
    let Ok(response) = response;
    assert_eq!(response.status(), 200);
    response.into_body().into_data_stream()
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_expires() {
    let gateway = gateway().await;
    let token = gateway.token(UserRole::Organiser);
    let messages = follow(&gateway, &token, "").await.count().await;
    assert!((1_795..=1_800).contains(&messages), "half an hour: {messages}");
    // Control: another body is passed on for as long as it comes.
    let plain = follow(&gateway, &token, "?plain").await.take(2_000).count().await;
    assert_eq!(plain, 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_is_revoked() {
    let gateway = gateway().await;
    let issue = gateway.issue(FAN);
    let token = gateway.signed(ACCESS, &issue, UserRole::Organiser);
    let mut ended = follow(&gateway, &token, "").await;
    let other = gateway.token(UserRole::Organiser);
    let mut goes_on = follow(&gateway, &other, "").await;
    assert!(ended.next().await.is_some() && goes_on.next().await.is_some());
    let expires_at = gateway.clock.now() + issue.lifetime;
    gateway.services.revoked.lock().unwrap().push((1, issue.id, expires_at));
    gateway.feed.as_ref().unwrap().refresh().await.unwrap();
    assert!(ended.next().await.is_none());
    assert!(goes_on.next().await.is_some(), "others are not concerned");
}
