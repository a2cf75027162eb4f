//! Requests whose bodies never end cost their connections and nothing else.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use urr_gateway::{ConcurrencyLimits, GatewaySettings};
use urr_service::{BodyPace, UserRole};

use crate::harness::{TestGateway, passed, refused, soon};

/// How many requests of the attack there are on each path, and how many places.
const ATTACKERS: usize = 40;
const PLACES: usize = 8;

fn few_places(settings: &mut GatewaySettings) {
    settings.concurrency = ConcurrencyLimits {
        total_max: PLACES,
        line: PLACES,
        start: PLACES,
        min: PLACES,
        max: PLACES,
        inside_min: 0,
    };
    settings.body_pace = BodyPace { grace: Duration::from_millis(700), bytes_per_second_min: 1024 };
}

/// The beginning of a body, and never the rest.
fn endless() -> Body {
    let begun = stream::iter([Ok::<_, std::io::Error>("{\"orderId\":")]);
    Body::from_stream(begun.chain(stream::pending()))
}

/// The webhook needs no login, the login nobody's, and for the others one user is enough.
const ATTACKED: [&str; 4] = [
    "/api/payments/webhooks/toss",
    "/api/auth/login",
    "/api/transfers",
    "/api/reservations/1/cancel",
];

#[tokio::test]
async fn endless_bodies_close_no_service_to_anybody() {
    for gateway in [TestGateway::with_settings(few_places), TestGateway::remote(few_places).await] {
        let gateway = Arc::new(gateway);
        let token = gateway.token(UserRole::User);
        let mut attack = JoinSet::new();
        for path in ATTACKED.into_iter().cycle().take(ATTACKERS * ATTACKED.len()) {
            let (gateway, token) = (Arc::clone(&gateway), token.clone());
            attack.spawn(async move {
                gateway.post(path).bearer(&token).body(endless()).send().await.outcome()
            });
        }
        // All of them have begun before the others come.
        for _ in 0..ATTACKERS * ATTACKED.len() {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            others_are_served(&gateway, &token).await;
            assert_eq!(attack.len(), ATTACKERS * ATTACKED.len(), "the attack goes on");
        }
        while let Some(answer) = soon(attack.join_next()).await {
            assert_eq!(answer.unwrap(), refused(408, "REQUEST_TIMEOUT"));
        }
        others_are_served(&gateway, &token).await;
        let seen = gateway.services.received();
        assert_eq!(seen.len(), 4 * 4, "no request of the attack reached a service");
    }
}

async fn others_are_served(gateway: &TestGateway, token: &str) {
    for path in ["/api/payments/confirm", "/api/transfers", "/api/auth/logout"] {
        let request = gateway.post(path).bearer(token).json(&json!({ "amount": 1 }));
        assert_eq!(soon(request.send()).await.outcome(), passed(), "{path}");
    }
    let notice = gateway.post("/api/payments/webhooks/toss").json(&json!({ "orderId": 1 }));
    assert_eq!(soon(notice.send()).await.outcome(), passed());
}

/// Over a real connection, also to pages.
#[tokio::test]
async fn a_client_that_sends_too_slowly_is_told_so() {
    let gateway = TestGateway::with_settings(few_places);
    let address = gateway.listen().await;
    for path in ["/api/payments/webhooks/toss", "/api/auth/login"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        let _ended = soon(stream.read_to_end(&mut received)).await;
        let received = String::from_utf8_lossy(&received);
        assert!(received.starts_with("HTTP/1.1 408 "), "{path}: {received}");
    }
    assert!(gateway.services.received().is_empty());
}

#[tokio::test]
async fn webhooks_are_small() {
    let gateway = TestGateway::new();
    for (bytes, outcome) in [(65_536, passed()), (65_537, refused(413, "BODY_TOO_LARGE"))] {
        let request = gateway.post("/api/payments/webhooks/toss").body(vec![b' '; bytes]);
        assert_eq!(request.send().await.outcome(), outcome, "{bytes}");
    }
}
