//! Which responses are compressed (G7), for which clients, and which never are.

use std::io::Read;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use flate2::read::GzDecoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use urr_service::{Caller, Upstream, UserRole};

use crate::harness::{TestGateway, TestResponse, kit, services, soon};

fn text(bytes: usize) -> String {
    let seats = (0..).map(|n| format!("{{\"seat\":{n}}},"));
    let mut text: String = seats.take(bytes / 11 + 1).collect();
    text.truncate(bytes);
    text
}

const JSON: (header::HeaderName, &str) = (header::CONTENT_TYPE, "application/json");

/// Answers by the last segment of the path.
async fn answer(request: Request) -> Response {
    let word = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let long = text(5_000);
    match word.as_str() {
        "short" => ([JSON], text(1_023)).into_response(),
        "enough" => ([JSON], text(1_024)).into_response(),
        "huge" => ([JSON], text(3_000_000)).into_response(),
        "tagged" => ([JSON, (header::ETAG, "\"abc\"")], long).into_response(),
        "weak" => ([JSON, (header::ETAG, "W/\"abc\"")], long).into_response(),
        "varied" => ([JSON, (header::VARY, "accept-language")], long).into_response(),
        "picture" => ([(header::CONTENT_TYPE, "image/png")], long).into_response(),
        "untyped" => Body::from(long).into_response(),
        "encoded" => ([JSON, (header::CONTENT_ENCODING, "br")], long).into_response(),
        "fixed" => ([JSON, (header::CACHE_CONTROL, "private, no-transform")], long).into_response(),
        "events" => ([(header::CONTENT_TYPE, "text/event-stream")], long).into_response(),
        "stream" => {
            let parts = [Ok::<_, std::io::Error>(long)];
            ([JSON], Body::from_stream(futures_util::stream::iter(parts))).into_response()
        }
        "part" => {
            let range = (header::CONTENT_RANGE, "bytes 0-4999/9000");
            (StatusCode::PARTIAL_CONTENT, [JSON, range], long).into_response()
        }
        "nothing" => StatusCode::NO_CONTENT.into_response(),
        "unchanged" => {
            (StatusCode::NOT_MODIFIED, [JSON, (header::ETAG, "\"abc\"")]).into_response()
        }
        "refused" => (StatusCode::CONFLICT, [JSON], long).into_response(),
        _ => ([JSON], long).into_response(),
    }
}

fn gateway() -> TestGateway {
    let kit = kit();
    let upstreams = ["catalog", "queue", "payment", "ticket"].map(|name| {
        let router = Router::new().route("/{*rest}", any(answer));
        Upstream::local(Caller::Gateway, name, router, &kit)
    });
    TestGateway::from_upstreams(upstreams.into(), services(), kit, |_| {})
}

fn is_compressed(answer: &TestResponse) -> bool {
    match answer.header("content-encoding") {
        "gzip" => true,
        "" | "br" => false,
        other => panic!("nobody asked for {other}"),
    }
}

fn varies_by(answer: &TestResponse) -> Vec<&str> {
    answer.headers.get_all("vary").iter().map(|value| value.to_str().unwrap()).collect()
}

fn read(answer: &TestResponse) -> String {
    let mut read = String::new();
    GzDecoder::new(&answer.bytes[..]).read_to_string(&mut read).unwrap();
    read
}

#[tokio::test]
async fn g_7_long_texts_are_compressed_for_clients_that_accept_gzip() {
    let gateway = gateway();
    for (path, bytes) in [
        ("/api/artists/enough", 1_024),
        ("/api/v1/artists/long", 5_000),
        ("/api/artists/huge", 3_000_000),
        ("/api/artists/refused", 5_000),
    ] {
        let packed = gateway.get(path).header("accept-encoding", "br, gzip;q=0.9").send().await;
        assert!(is_compressed(&packed), "{path}");
        assert_eq!(read(&packed), text(bytes));
        assert!(packed.bytes.len() < bytes / 2, "{path}: {}", packed.bytes.len());
        assert_eq!(packed.header("content-length"), "");
        assert_eq!(varies_by(&packed), ["origin", "accept-encoding"]);
        // Control: other clients get the same text uncompressed, and caches know why.
        for other in ["", "br", "gzip;q=0", "identity", "*;q=0"] {
            let plain = gateway.get(path).header("accept-encoding", other).send().await;
            assert!(!is_compressed(&plain), "{path} {other}");
            assert_eq!(plain.bytes, text(bytes));
            assert_eq!(varies_by(&plain), ["origin", "accept-encoding"], "{path} {other}");
        }
    }
}

#[tokio::test]
async fn responses_that_gain_nothing_or_must_not_change_are_not_compressed() {
    let gateway = gateway();
    for word in [
        "short",
        "picture",
        "untyped",
        "encoded",
        "fixed",
        "events",
        "stream",
        "part",
        "nothing",
        "unchanged",
    ] {
        let path = format!("/api/artists/{word}");
        let answer = gateway.get(&path).header("accept-encoding", "gzip").send().await;
        assert!(!is_compressed(&answer), "{word}");
        assert_eq!(varies_by(&answer), ["origin"], "{word}");
        let plain = gateway.get(&path).send().await;
        assert_eq!((answer.status, answer.bytes), (plain.status, plain.bytes), "{word}");
    }
    let asked = gateway.get("/api/artists/long").header("accept-encoding", "gzip");
    let asked = asked.header("cache-control", "no-transform").send().await;
    assert!(!is_compressed(&asked), "the client may forbid it as well");
}

/// The compressed length tells how alike a secret is to what the client sent (BREACH).
#[tokio::test]
async fn answers_that_may_hold_secrets_are_never_compressed() {
    let gateway = gateway();
    let token = gateway.token(UserRole::User);
    let request = async |path: &str| {
        let request = gateway.get(path).bearer(&token).header("accept-encoding", "gzip");
        let answer = request.send().await;
        assert_eq!(answer.status, 200, "{path}");
        is_compressed(&answer)
    };
    for path in [
        "/api/queue/status/long",
        "/api/v1/queue/status/long",
        "/api/%71ueue/status/long",
        "/api/queue/long/",
        "/api/payments/long",
    ] {
        assert!(!request(path).await, "{path}");
    }
    // The control: elsewhere the same answer is.
    for path in ["/api/reservations/long", "/api/artists/long", "/api/artists/queue"] {
        assert!(request(path).await, "{path}");
    }
}

/// The same for auth, which needs its own upstream because it also serves the revoked tokens.
#[tokio::test]
async fn answers_of_the_accounts_are_never_compressed() {
    let kit = kit();
    let accounts = Router::new().route("/{*rest}", any(answer));
    let upstream = Upstream::local(Caller::Gateway, "auth", accounts, &kit);
    let gateway = TestGateway::from_upstreams(vec![upstream], services(), kit, |_| {});
    for path in ["/api/auth/challenge", "/api/v1/auth/challenge", "/api/%61uth/long"] {
        let answer = gateway.get(path).header("accept-encoding", "gzip").send().await;
        assert_eq!((answer.status.as_u16(), answer.bytes.len()), (200, 5_000), "{path}");
        assert!(!is_compressed(&answer), "{path}");
    }
}

#[tokio::test]
async fn a_strong_tag_becomes_weak_and_other_variations_stay() {
    let gateway = gateway();
    let request = |word: &str| {
        gateway.get(&format!("/api/artists/{word}")).header("accept-encoding", "gzip").send()
    };
    assert_eq!(request("tagged").await.header("etag"), "W/\"abc\"");
    assert_eq!(request("weak").await.header("etag"), "W/\"abc\"");
    let varied = request("varied").await;
    assert_eq!(varies_by(&varied), ["accept-language", "origin", "accept-encoding"]);
    let plain = gateway.get("/api/artists/tagged").send().await;
    assert_eq!(plain.header("etag"), "\"abc\"", "control: nothing was changed");
}

#[tokio::test]
async fn pages_of_the_gateway_are_compressed_too() {
    let gateway = gateway();
    let page = gateway.get("/page").header("accept-encoding", "gzip").send().await;
    let plain = gateway.get("/page").send().await;
    assert!(is_compressed(&page) && !is_compressed(&plain));
    assert_eq!(read(&page).as_bytes(), plain.bytes);
}

/// Sends two requests on one connection and reads until the server closes.
async fn talk(gateway: &TestGateway, first: &str) -> String {
    let mut stream = TcpStream::connect(gateway.listen().await).await.unwrap();
    let second = "GET /api/artists/short HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{first}{second}").as_bytes()).await.unwrap();
    let mut received = Vec::new();
    soon(stream.read_to_end(&mut received)).await.unwrap();
    String::from_utf8_lossy(&received).into_owned()
}

/// HEAD has the headers of GET and no body, and leaves the connection usable.
#[tokio::test]
async fn head_has_the_headers_of_get() {
    let gateway = gateway();
    let head = |path: &str, encoding: &str| {
        format!("HEAD {path} HTTP/1.1\r\nhost: x\r\naccept-encoding: {encoding}\r\n\r\n")
    };
    // A page is answered by the gateway itself, the other by a service behind it.
    for (path, bytes) in [("/api/artists/long", 5_000), ("/page", 6_500)] {
        let packed = talk(&gateway, &head(path, "gzip")).await;
        let (first, rest) = packed.split_once("\r\n\r\n").unwrap();
        assert!(first.starts_with("HTTP/1.1 200"), "{packed}");
        for line in ["content-encoding: gzip", "vary: accept-encoding"] {
            assert!(first.contains(line), "{path} {line}: {first}");
        }
        for line in ["content-length", "transfer-encoding"] {
            assert!(!first.contains(line), "{path} {line}: {first}");
        }
        assert!(rest.starts_with("HTTP/1.1 200") && rest.ends_with(&text(1_023)), "{rest}");
        let plain = talk(&gateway, &head(path, "br")).await;
        let (first, rest) = plain.split_once("\r\n\r\n").unwrap();
        assert!(first.contains(&format!("content-length: {bytes}")), "{path}: {first}");
        assert!(!first.contains("content-encoding") && rest.starts_with("HTTP/1.1 200"));
    }
    let short = gateway.request(Method::HEAD, "/api/artists/short");
    let short = short.header("accept-encoding", "gzip").send().await;
    assert!(!is_compressed(&short));
}
