//! Forwarding: the same to local and remote services, and the errors that clients get.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::any;
use serde_json::json;
use urr_gateway::Timeouts;
use urr_kernel::Secret;
use urr_service::{Caller, HttpClient, InternalCredentials, RemoteService, Upstream, UserRole};

use crate::harness::{FAN, TestGateway, kit, listen, passed, refused, services};

#[tokio::test]
async fn local_and_remote_services_get_the_same_request() {
    for gateway in [TestGateway::new(), TestGateway::remote(|_| {}).await] {
        let token = gateway.token(UserRole::User);
        let request = gateway.post("/api/v1/payments/confirm?x=1").bearer(&token);
        let request = request.header("x-user-role", "admin").header("connection", "x-private");
        let request = request.header("x-private", "1").json(&json!({ "amount": 1 }));
        let answer = request.send().await;
        assert_eq!(answer.outcome(), passed());
        assert_eq!(answer.json()["service"], "payment");
        let seen = gateway.services.received().pop().unwrap();
        assert_eq!((seen.method, seen.path.as_str()), (Method::POST, "/api/payments/confirm?x=1"));
        assert_eq!(seen.user, Some((FAN, UserRole::User)));
        assert_eq!(seen.body, r#"{"amount":1}"#);
        for gone in ["connection", "x-private", "authorization", "x-urr-credential"] {
            assert!(!seen.headers.contains_key(gone), "{gone}");
        }
        gateway.feed.clone().unwrap().refresh().await.unwrap();
    }
}

/// E-7: a service that is down, slow or failing gives a 5xx with a time to retry.
#[tokio::test]
async fn e_7_failures_of_services_are_503_or_504_and_never_a_bare_500() {
    let kit = kit();
    let nobody = RemoteService {
        // Port 1 of loopback: nobody listens there.
        urls: "http://127.0.0.1:1".parse().unwrap(),
        credential: InternalCredentials::from_root(&Secret::new("root"))
            .for_call(Caller::Gateway, "catalog"),
        client: HttpClient::new(),
    };
    let never = Router::new().route("/{*rest}", any(std::future::pending::<()>));
    let panics = Router::new().route("/{*rest}", any(async || -> () { panic!("a bug") }));
    let upstreams = vec![
        Upstream::remote(Caller::Gateway, "catalog", nobody, &kit),
        Upstream::local(Caller::Gateway, "queue", never, &kit),
        Upstream::local(Caller::Gateway, "ticket", panics, &kit),
    ];
    let gateway = TestGateway::from_upstreams(upstreams, services(), kit, |settings| {
        let queue = Duration::from_millis(50);
        settings.timeouts = Timeouts { queue, ..Timeouts::default() };
    });
    let down = gateway.get("/api/artists").send().await;
    assert_eq!(down.outcome(), refused(503, "SERVICE_UNAVAILABLE"));
    assert_eq!(down.header("retry-after"), "1");
    let token = gateway.token(UserRole::User);
    let slow = gateway.get("/api/queue/status/1").bearer(&token).send().await;
    assert_eq!(slow.outcome(), refused(504, "UPSTREAM_TIMEOUT"));
    let broken = gateway.get("/api/time").send().await;
    assert_eq!(broken.status, 500);
    for answer in [down, slow, broken] {
        assert!(answer.json()["error"].is_string());
        assert!(!String::from_utf8_lossy(&answer.bytes).contains("bug"));
    }
    // A service that keeps failing is left alone for a while, and the others are not.
    for _ in 0..20 {
        gateway.get("/api/artists").send().await;
    }
    let open = gateway.get("/api/artists").send().await;
    assert_eq!(open.outcome(), refused(503, "SERVICE_UNAVAILABLE"));
    assert_eq!(open.header("retry-after"), "5", "the breaker says when it tries again");
}

/// E-7: a proxy between two processes answers for a service; clients get our error body.
#[tokio::test]
async fn e_7_errors_of_a_proxy_are_replaced_by_ours() {
    let kit = kit();
    let proxy = Router::new().route(
        "/{*rest}",
        any(async |request: Request| {
            let word = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let (status, kind, body) = match word.as_str() {
                "busy" => (503, "application/json", r#"{"error":"Busy.","code":"BUSY"}"#),
                "teapot" => (418, "text/html", "<h1>nginx</h1>"),
                word => (word.parse().unwrap(), "text/html", "<h1>nginx</h1>"),
            };
            let status = StatusCode::from_u16(status).unwrap();
            (status, [(header::CONTENT_TYPE, kind), (header::SERVER, "nginx")], body)
        }),
    );
    let remote = RemoteService {
        urls: format!("http://{}", listen(proxy).await).parse().unwrap(),
        credential: InternalCredentials::from_root(&Secret::new("root"))
            .for_call(Caller::Gateway, "catalog"),
        client: HttpClient::new(),
    };
    let upstream = Upstream::remote(Caller::Gateway, "catalog", remote, &kit);
    let gateway = TestGateway::from_upstreams(vec![upstream], services(), kit, |_| {});
    for (path, status, code) in [
        ("/api/artists/502", 503, "SERVICE_UNAVAILABLE"),
        ("/api/artists/503", 503, "SERVICE_UNAVAILABLE"),
        ("/api/artists/504", 504, "UPSTREAM_TIMEOUT"),
    ] {
        let answer = gateway.get(path).send().await;
        assert_eq!(answer.outcome(), refused(status, code), "{path}");
        assert_eq!(answer.header("retry-after"), "1", "{path}");
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("server"), "", "{path}: nothing of the proxy is left");
        assert!(answer.json()["error"].is_string() && answer.json()["traceId"].is_string());
        gateway.clock.advance(Duration::from_secs(60));
    }
    // Controls: errors of our services, and other statuses, stay unchanged.
    assert_eq!(gateway.get("/api/artists/busy").send().await.outcome(), refused(503, "BUSY"));
    let teapot = gateway.get("/api/artists/teapot").send().await;
    assert_eq!((teapot.status.as_u16(), &teapot.bytes[..]), (418, &b"<h1>nginx</h1>"[..]));
}

#[tokio::test]
async fn a_response_is_streamed_and_not_collected() {
    let kit = kit();
    let endless = Router::new().route(
        "/{*rest}",
        any(async || {
            let first = futures_util::stream::iter([Ok::<_, std::io::Error>("first")]);
            let rest = futures_util::stream::pending();
            Body::from_stream(futures_util::StreamExt::chain(first, rest)).into_response()
        }),
    );
    let upstream = Upstream::local(Caller::Gateway, "catalog", endless, &kit);
    let gateway = TestGateway::from_upstreams(vec![upstream], services(), kit, |_| {});
    let request = axum::http::Request::get("/api/artists").body(Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(gateway.router.clone(), request).await.unwrap();
    let mut body = response.into_body();
    let frame = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "first");
}

/// A stream ends by silence, not by the timeout of a poll.
#[tokio::test(start_paused = true)]
async fn a_stream_of_the_waiting_room_lasts_as_long_as_it_sends() {
    let kit = kit();
    let words = Router::new().route(
        "/{*rest}",
        any(async || {
            let every = Duration::from_secs(5);
            let spoken = futures_util::stream::unfold(0, move |count| async move {
                let pause = if count < 20 { every } else { 3 * every };
                tokio::time::sleep(pause).await;
                Some((Ok::<_, std::io::Error>("word"), count + 1))
            });
            Body::from_stream(spoken)
        }),
    );
    let upstream = Upstream::local(Caller::Gateway, "queue", words, &kit);
    let gateway = TestGateway::from_upstreams(vec![upstream], services(), kit, |_| {});
    let token = gateway.token(UserRole::User);
    let request = axum::http::Request::get("/api/queue/stream/1")
        .header("authorization", format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    let response = tower::ServiceExt::oneshot(gateway.router.clone(), request).await.unwrap();
    let (mut body, mut heard) = (response.into_body(), 0);
    while let Some(Ok(_)) = http_body_util::BodyExt::frame(&mut body).await {
        heard += 1;
    }
    assert_eq!(heard, 20, "a hundred seconds, and then it was silent for more than ten");
}
