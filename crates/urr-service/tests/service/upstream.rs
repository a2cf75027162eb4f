//! Calls between services: deadlines, retries, budget and breaker, the same in both forms.

use std::future::{Future, pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, response::IntoResponse};
use futures_util::stream;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tower::ServiceExt;
use urr_kernel::{CallContext, Uuid};
use urr_service::{
    ApiError, BreakerState, CallPolicy, Caller, InternalCalls, Service, Upstream, UpstreamError,
};
use utoipa_axum::router::OpenApiRouter;

use crate::fixture::{
    FollowScript, HoldBody, MisreadScript, PATIENT, TRANSPORTS, TestService, Transport, context,
    get_request, idempotent, once, request, soon, status_and_body,
};

async fn call(upstream: &Upstream, policy: CallPolicy) -> (u16, Value) {
    status_and_body(upstream.call(get_request("/scripted"), &context(), policy).await).await
}

#[tokio::test]
async fn typed_calls_give_the_answer_or_the_refusal() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Payment).await;
        let held = upstream.ask(&HoldBody { seat: 12 }, &context()).await.unwrap();
        assert_eq!(held, json!({"held": 12}));
        fixture.state.script([409]);
        let refused = upstream.ask(&FollowScript {}, &context()).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.refusal().unwrap().code, "SCRIPTED");
        assert!(refused.was_surely_not_done());
        assert_eq!(ApiError::from(refused).to_string(), "409 SCRIPTED: As scripted.");
        let wrong = upstream.ask(&MisreadScript {}, &context()).await;
        assert!(matches!(wrong, Err(UpstreamError::Unreadable { .. })));
    }
}

#[tokio::test]
async fn bodies_are_streamed_both_ways() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let chunks = ["{\"seat\"", ":", "3}"].map(Ok::<_, std::io::Error>);
        let body = Body::from_stream(stream::iter(chunks));
        let headers = [("content-type", "application/json")];
        let posted = request("POST", "/holds", &headers, body);
        let answer = upstream.call(posted, &context(), once()).await;
        assert_eq!(status_and_body(answer).await, (201, json!({"held": 3})));
    }
}

/// A body that a client never ends says nothing about the service, also where the service gives up
/// first. The control is a call that is not said to be streamed.
#[tokio::test(start_paused = true)]
async fn bodies_that_never_end_do_not_open_the_breaker() {
    let policy = CallPolicy::once(Duration::from_secs(5));
    for (policy, state) in [(policy.streamed(), BreakerState::Closed), (policy, BreakerState::Open)]
    {
        let fixture = TestService::open();
        let upstream = fixture.upstream(Transport::Local, Caller::Gateway).await;
        for _ in 0..20 {
            let body = Body::from_stream(stream::pending::<Result<String, std::io::Error>>());
            let endless = request("POST", "/scripted", &[], body);
            let answer = upstream.call(endless, &context(), policy).await;
            assert!(status_and_body(answer).await.0 >= 408);
        }
        assert_eq!(upstream.breaker_state(), state);
        assert_eq!(fixture.state.hits(), 0);
    }
}

#[tokio::test]
async fn work_whose_time_is_over_is_not_begun() {
    let fixture = TestService::open();
    let late = request("GET", "/scripted", &[("x-urr-deadline-ms", "0")], Body::empty());
    let response = fixture.service.local_router().oneshot(late).await.unwrap();
    let (status, body) = status_and_body(Ok(response)).await;
    assert_eq!((status, &body["code"]), (504, &json!("DEADLINE_EXCEEDED")));
    for transport in TRANSPORTS {
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let (status, _) = call(&upstream, CallPolicy::once(Duration::ZERO)).await;
        assert_eq!(status, 504);
    }
    assert_eq!(fixture.state.hits(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_ends_work_that_takes_longer_than_its_caller_waits() {
    let fixture = TestService::open();
    for (told_ms, seconds) in [("2000", 2), ("3600000", 30), ("soon", 30)] {
        let begun = Instant::now();
        let slow = request("GET", "/wait", &[("x-urr-deadline-ms", told_ms)], Body::empty());
        let response = fixture.service.local_router().oneshot(slow).await.unwrap();
        assert_eq!(response.status(), 504);
        assert_eq!(begun.elapsed().as_secs(), seconds, "{told_ms}");
        soon(fixture.state.dropped.notified()).await;
    }
}

#[tokio::test]
async fn a_slow_service_is_a_504_within_the_deadline() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let begun = Instant::now();
        let policy = CallPolicy::idempotent(Duration::from_millis(80));
        let answer = upstream.call(get_request("/wait"), &context(), policy).await;
        assert_eq!(status_and_body(answer).await.0, 504, "{transport:?}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(fixture.state.hits(), 1, "not repeated");
        soon(fixture.state.dropped.notified()).await;
    }
}

#[tokio::test]
async fn a_service_that_never_answers_the_connection_is_a_timeout() {
    let fixture = TestService::open();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let secret = fixture.credentials.for_call(Caller::Gateway, "fixture");
    let upstream = fixture.upstream_at(address, Caller::Gateway, secret);
    let (status, body) = call(&upstream, CallPolicy::once(Duration::from_millis(50))).await;
    assert_eq!((status, &body["code"]), (504, &json!("UPSTREAM_TIMEOUT")));
}

#[tokio::test]
async fn a_refused_connection_is_a_503_that_says_when_to_come_back() {
    let fixture = TestService::open();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let secret = fixture.credentials.for_call(Caller::Gateway, "fixture");
    let upstream = fixture.upstream_at(address, Caller::Gateway, secret);
    let refused = upstream.call(get_request("/"), &context(), once()).await.unwrap_err();
    assert!(matches!(refused, UpstreamError::Unreachable { .. }));
    let response = ApiError::from(refused).into_response();
    assert_eq!(response.headers()["retry-after"], "1");
    let (status, body) = status_and_body(Ok(response)).await;
    assert_eq!((status, &body["code"]), (503, &json!("SERVICE_UNAVAILABLE")));
    assert_eq!(body["retryAfter"], 1);
}

#[tokio::test]
async fn only_what_is_harmless_and_transient_is_repeated() {
    for transport in TRANSPORTS {
        for (policy, status, hits) in [
            (idempotent(), 503, 3),
            (idempotent(), 502, 3),
            (idempotent(), 500, 1),
            (idempotent(), 504, 1),
            (idempotent(), 429, 1),
            (once(), 503, 1),
        ] {
            let fixture = TestService::open();
            let upstream = fixture.upstream(transport, Caller::Gateway).await;
            fixture.state.script([status; 5]);
            assert_eq!(call(&upstream, policy).await.0, status);
            assert_eq!(fixture.state.hits(), hits, "{transport:?} {status} {policy:?}");
        }
    }
}

#[tokio::test]
async fn a_repeated_call_can_succeed_but_a_streamed_body_is_not_sent_twice() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        fixture.state.script([503]);
        assert_eq!(call(&upstream, idempotent()).await.0, 200);
        assert_eq!(fixture.state.hits(), 2);
        let retried = r#"urr_upstream_retries_total{caller="gateway",target="fixture"} 1"#;
        assert!(fixture.kit.metrics.text().contains(retried));

        fixture.state.script([503]);
        let body = Body::from_stream(stream::iter([Ok::<_, std::io::Error>("x")]));
        let streamed = request("POST", "/scripted", &[], body);
        let answer = upstream.call(streamed, &context(), idempotent()).await;
        assert_eq!(status_and_body(answer).await.0, 503);
        assert_eq!(fixture.state.hits(), 3);

        fixture.state.script([503]);
        let held = upstream.ask(&FollowScript {}, &context()).await;
        assert!(held.is_ok(), "a body held in memory is");
    }
}

#[tokio::test]
async fn retries_are_bounded_by_a_share_of_the_traffic() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let mut retries = 0;
        for _ in 0..10 {
            // Enough successes to keep the breaker closed: the budget alone is at work.
            for _ in 0..6 {
                assert_eq!(call(&upstream, idempotent()).await.0, 200);
            }
            fixture.state.script([503; 3]);
            let before = fixture.state.hits();
            assert_eq!(call(&upstream, idempotent()).await.0, 503);
            retries += fixture.state.hits() - before - 1;
            fixture.state.script.lock().unwrap().clear();
        }
        // 70 calls and an initial balance of three; without a budget there would be 20.
        assert!(retries <= 7 + 3, "{transport:?}: {retries} retries");
        assert!(retries > 3, "the budget fills up again");
    }
}

#[tokio::test]
async fn the_breaker_opens_after_failures_and_closes_after_probes() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        fixture.state.script([500; 11]);
        for _ in 0..10 {
            assert_eq!(call(&upstream, once()).await.0, 500);
        }
        let (status, body) = call(&upstream, once()).await;
        assert_eq!((status, &body["code"]), (503, &json!("SERVICE_UNAVAILABLE")));
        assert_eq!(body["retryAfter"], 5);
        assert_eq!(fixture.state.hits(), 10, "an open breaker does not call");

        fixture.kit.clock.advance(Duration::from_secs(10));
        assert_eq!(call(&upstream, once()).await.0, 500, "the first probe fails");
        assert_eq!(call(&upstream, once()).await.0, 503, "open again");
        fixture.kit.clock.advance(Duration::from_secs(10));
        for _ in 0..4 {
            assert_eq!(call(&upstream, once()).await.0, 200, "probes succeed");
        }
    }
}

#[tokio::test]
async fn refusals_do_not_open_the_breaker() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        fixture.state.script([400, 404, 409, 422, 429].into_iter().cycle().take(40));
        for _ in 0..40 {
            assert!(call(&upstream, once()).await.0 < 500);
        }
        assert_eq!(call(&upstream, once()).await.0, 200);
    }
}

/// M-12: a storm on one door of a service does not close its others.
#[tokio::test]
async fn a_service_that_sends_some_away_stays_open_to_the_others() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let call = async |path| {
            status_and_body(upstream.call(get_request(path), &context(), once()).await).await.0
        };
        for _ in 0..30 {
            assert_eq!(call("/busy").await, 503, "{transport:?}");
        }
        assert_eq!(call("/scripted").await, 200, "{transport:?}");
        // The control: a 503 that does not say when to come back is a failure.
        fixture.state.script([503; 10]);
        for _ in 0..10 {
            assert_eq!(call("/scripted").await, 503, "{transport:?}");
        }
        let hits = fixture.state.hits();
        assert_eq!(call("/scripted").await, 503, "{transport:?}");
        assert_eq!(fixture.state.hits(), hits, "{transport:?}: an open breaker does not call");
    }
}

#[tokio::test]
async fn bodies_that_clients_break_do_not_open_the_breaker() {
    let fixture = TestService::open();
    let upstream = fixture.upstream(Transport::RemoteService, Caller::Gateway).await;
    for _ in 0..20 {
        let chunks = [Ok("half"), Err(std::io::Error::other("the client is gone"))];
        let body = Body::from_stream(stream::iter(chunks));
        let broken = request("POST", "/scripted", &[], body);
        let error = upstream.call(broken, &context(), once()).await.unwrap_err();
        assert!(matches!(error, UpstreamError::RequestBody { .. }));
    }
    assert_eq!(call(&upstream, once()).await.0, 200);
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_the_work() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let context = context();
        let call = upstream.call(get_request("/wait"), &context, CallPolicy::once(PATIENT * 2));
        tokio::select! {
            _ = call => panic!("nobody answers"),
            () = fixture.state.waiting.notified() => {}
        }
        soon(fixture.state.dropped.notified()).await;
    }
}

#[tokio::test]
async fn the_path_parameters_of_a_proxy_do_not_reach_the_service() {
    async fn pass_on(
        State(upstream): State<Upstream>,
        Path((_service, _version)): Path<(String, String)>,
        mut request: Request,
    ) -> Result<Response, ApiError> {
        let seat = format!("/seats/{}", Uuid::from_u128(4));
        *request.uri_mut() = seat.parse::<Uri>().unwrap();
        Ok(upstream.call(request, &context(), once()).await?)
    }
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let upstream = fixture.upstream(transport, Caller::Gateway).await;
        let proxy = Router::new().route("/{service}/{version}", get(pass_on)).with_state(upstream);
        let response = proxy.oneshot(get_request("/seat/v1")).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let seat: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(seat, json!({"seat": Uuid::from_u128(4)}));
    }
}

/// A call to a handler that never answers, in this process.
fn waiting_service(fixture: &TestService) -> (Service, Arc<AtomicU32>) {
    let begun = Arc::new(AtomicU32::new(0));
    let calls = InternalCalls::new(Arc::clone(&begun));
    let calls = calls.serve(async |begun: Arc<AtomicU32>, _: FollowScript, _: CallContext| {
        let guard = Ended(begun);
        guard.0.fetch_add(1, Ordering::SeqCst);
        pending::<()>().await;
        Ok(Value::Null)
    });
    (Service::new("waiting", OpenApiRouter::new(), &fixture.kit).with_calls(calls), begun)
}

/// Adds a hundred when it is dropped.
struct Ended(Arc<AtomicU32>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.fetch_add(100, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_local_call_ends_with_its_deadline_or_its_caller() {
    let fixture = TestService::open();
    let (service, begun) = waiting_service(&fixture);
    let upstream = Upstream::local(Caller::Queue, "waiting", &service, &fixture.kit);
    let started = Instant::now();
    let late = upstream.ask(&FollowScript {}, &context()).await.unwrap_err();
    assert!(matches!(late, UpstreamError::Timeout { .. }) || late.refusal().is_some(), "{late}");
    assert_eq!(started.elapsed().as_secs(), 5);
    assert_eq!(begun.load(Ordering::SeqCst), 101, "the work has ended");
    let context = context();
    let mut call = Box::pin(upstream.ask(&FollowScript {}, &context));
    let polled = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
    assert!(polled);
    assert_eq!(begun.load(Ordering::SeqCst), 102);
    drop(call);
    assert_eq!(begun.load(Ordering::SeqCst), 202, "a dropped caller drops the work");
}
