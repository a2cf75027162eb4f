//! Whatever goes wrong, the client gets our error body, and the log gets the reason once.

use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::stream;
use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;
use urr_service::{Caller, Upstream};

use crate::fixture::{
    TRANSPORTS, TestService, Transport, context, get_request, once, raw, request, status_and_body,
};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

#[tokio::test]
async fn every_bad_request_is_a_4xx_with_our_body() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        for (bad, status, code) in [
            (get_request("/nowhere"), 404, "NOT_FOUND"),
            (request("DELETE", "/holds", &[], Body::empty()), 405, "METHOD_NOT_ALLOWED"),
            (get_request("/seats/7"), 400, "INVALID_PATH"),
            (get_request("/seats/%ff"), 400, "INVALID_PATH"),
            (request("POST", "/holds", JSON, Body::from("{")), 400, "INVALID_JSON"),
            (request("POST", "/holds", JSON, Body::empty()), 400, "INVALID_JSON"),
            (request("POST", "/holds", JSON, Body::from("{}")), 400, "INVALID_BODY"),
            (request("POST", "/holds", &[], Body::from("{}")), 415, "UNSUPPORTED_MEDIA_TYPE"),
            (request("POST", "/holds", JSON, huge()), 413, "BODY_TOO_LARGE"),
            (request("POST", "/holds", JSON, huge_stream()), 413, "BODY_TOO_LARGE"),
            (request("POST", "/holds", JSON, broken_stream()), 400, "INVALID_BODY"),
        ] {
            let path = bad.uri().clone();
            let (got_status, body) =
                status_and_body(upstream.call(bad, &context(), once()).await).await;
            assert_eq!((got_status, &body["code"]), (status, &json!(code)), "{transport:?} {path}");
            assert!(body["error"].as_str().unwrap().ends_with('.'));
        }
    }
}

#[tokio::test]
async fn an_error_is_explained_in_the_language_that_the_client_prefers() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        for (wanted, language, unknown, missing) in [
            (None, "en", "There is nothing at this address.", "The field `seat` is missing."),
            (
                Some("ko-KR,ko;q=0.9,en;q=0.8"),
                "ko",
                "페이지를 찾을 수 없습니다.",
                "`seat` 항목이 빠졌습니다.",
            ),
        ] {
            let language_header = wanted.map(|wanted| ("accept-language", wanted));
            let headers: Vec<_> = JSON.iter().copied().chain(language_header).collect();
            for (path, body, sentence) in [("/nowhere", "", unknown), ("/holds", "{}", missing)] {
                let asked = request("POST", path, &headers, Body::from(body));
                let response = upstream.call(asked, &context(), once()).await.unwrap();
                assert_eq!(response.headers()["content-language"], language, "{transport:?}");
                assert_eq!(response.headers()["vary"], "accept-language");
                let (_, body) = status_and_body(Ok(response)).await;
                assert_eq!(body["error"], sentence);
            }
        }
    }
}

fn huge() -> Body {
    Body::from(vec![b' '; 100_001])
}

/// A body that does not say how long it is.
fn huge_stream() -> Body {
    let chunks = (0..11).map(|_| Ok::<_, std::io::Error>(vec![b' '; 10_000]));
    Body::from_stream(stream::iter(chunks))
}

fn broken_stream() -> Body {
    let chunks = [Ok("{\"seat\":"), Err(std::io::Error::other("the client is gone"))];
    Body::from_stream(stream::iter(chunks))
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let fixture = TestService::open();
    for transport in TRANSPORTS {
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let wrong = request("DELETE", "/scripted", &[], Body::empty());
        let response = upstream.call(wrong, &context(), once()).await.unwrap();
        assert_eq!(response.status(), 405);
        assert_eq!(response.headers()["allow"], "GET,HEAD,POST");
    }
}

#[tokio::test]
async fn a_panic_is_a_500_that_keeps_its_text_to_itself() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let (status, body) =
            status_and_body(upstream.call(get_request("/panic"), &context(), once()).await).await;
        assert_eq!((status, &body["code"]), (500, &json!("INTERNAL_ERROR")));
        assert!(!body.to_string().contains("secret"));
        let (status, _) =
            status_and_body(upstream.call(get_request("/scripted"), &context(), once()).await)
                .await;
        assert_eq!(status, 200, "the service goes on");
    }
}

#[tokio::test]
async fn a_bare_router_that_panics_does_not_take_its_caller_along() {
    async fn panic() -> &'static str {
        panic!("no layers here");
    }
    let fixture = TestService::open();
    let router = Router::new().route("/", get(panic));
    let upstream = Upstream::local(Caller::Gateway, "bare", router, &fixture.kit);
    let (status, body) =
        status_and_body(upstream.call(get_request("/"), &context(), once()).await).await;
    assert_eq!((status, &body["code"]), (500, &json!("INTERNAL_ERROR")));
}

#[tokio::test]
async fn an_error_carries_the_trace_and_the_request_id_of_its_request() {
    let fixture = TestService::open();
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request_id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let headers = [("traceparent", traceparent), ("x-request-id", request_id)];
    let unknown = request("GET", "/nowhere", &headers, Body::empty());
    let response = fixture.service.local_router().oneshot(unknown).await.unwrap();
    assert_eq!(response.headers()["x-request-id"], request_id);
    assert_eq!(response.headers()["content-type"], "application/json");
    let (_, body) = status_and_body(Ok(response)).await;
    let expected = json!({
        "error": "There is nothing at this address.",
        "code": "NOT_FOUND",
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn the_request_id_is_on_every_answer_even_if_the_given_one_is_no_id() {
    let fixture = TestService::open();
    let address = fixture.listen().await;
    let text = "GET /scripted HTTP/1.1\r\nhost: x\r\nx-request-id: <script>\r\n\
                connection: close\r\n\r\n";
    let answer = raw(address, text).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\r\nx-request-id: 0000"), "{answer}");
    assert!(!answer.contains("script>"));
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_source_of_a_failure_is_logged_once_with_its_trace_and_never_sent() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    // For the whole binary, since `tracing` remembers for all threads that nobody listens. Only
    // this test asks for /broken.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let fixture = TestService::open();
    let upstream = fixture.upstream(Transport::Local, Caller::Gateway).await;
    let (status, body) =
        status_and_body(upstream.call(get_request("/broken"), &context(), once()).await).await;
    assert_eq!(status, 500);
    assert!(!body.to_string().contains("fire"));
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(log.matches("disk 7 is on fire").count(), 1, "{log}");
    assert!(log.contains(body["traceId"].as_str().unwrap()), "{log}");
}

#[tokio::test]
async fn the_numbers_know_routes_and_codes_but_no_raw_paths() {
    let fixture = TestService::open();
    let router = fixture.service.local_router();
    for path in ["/seats/private-1", "/nowhere/private-2", "/scripted"] {
        let response = router.clone().oneshot(get_request(path)).await.unwrap();
        response.into_body().collect().await.unwrap();
    }
    let metrics = fixture.kit.metrics.router();
    let response = metrics.oneshot(get_request("/metrics")).await.unwrap();
    assert!(response.headers()["content-type"].to_str().unwrap().contains("openmetrics"));
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    for line in [
        r#"_total{service="fixture",method="GET",route="/seats/{id}",status="400"} 1"#,
        r#"urr_http_requests_total{service="fixture",method="GET",route="unmatched",status="404"} 1"#,
        r#"urr_http_request_duration_seconds_count{service="fixture",route="/scripted"} 1"#,
        r#"urr_http_errors_total{service="fixture",code="INVALID_PATH"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("private"));
}
