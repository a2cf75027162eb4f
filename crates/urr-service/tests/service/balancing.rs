//! Several addresses of one service: calls go where they are answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::{any, get};
use futures_util::stream;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use urr_kernel::Secret;
use urr_service::{
    BreakerState, CallPolicy, Caller, HttpClient, RemoteService, Upstream, UpstreamError, serve,
};

use crate::fixture::{PATIENT, TestService, context, get_request, idempotent, once, request, soon};

/// A process of a service.
struct Process {
    address: SocketAddr,
    hits: Arc<AtomicU32>,
    is_ready: Arc<AtomicBool>,
    running: JoinHandle<()>,
}

impl Process {
    async fn start() -> Process {
        Process::start_at("127.0.0.1:0".parse().unwrap()).await
    }

    async fn start_at(address: SocketAddr) -> Process {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let hits = Arc::new(AtomicU32::new(0));
        let is_ready = Arc::new(AtomicBool::new(true));
        let (counted, told) = (Arc::clone(&hits), Arc::clone(&is_ready));
        let answer = move |body: String| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { body }
        };
        let ready = move || {
            let is_ready = told.load(Ordering::SeqCst);
            async move { if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE } }
        };
        let router = Router::new().route("/health/ready", get(ready)).route("/work", any(answer));
        let never = CancellationToken::new();
        let running = tokio::spawn(async move {
            serve(listener, router, never, PATIENT).await.unwrap();
        });
        Process { address, hits, is_ready, running }
    }

    fn hits(&self) -> u32 {
        self.hits.load(Ordering::SeqCst)
    }

    /// Like a killed process: connections break in the middle of calls.
    async fn kill(self) -> SocketAddr {
        self.running.abort();
        assert!(self.running.await.unwrap_err().is_cancelled());
        self.address
    }
}

fn upstream(addresses: &[SocketAddr]) -> Upstream {
    let urls: Vec<String> = addresses.iter().map(|address| format!("http://{address}")).collect();
    let remote = RemoteService {
        urls: urls.join(",").parse().unwrap(),
        credential: Secret::new("root"),
        client: HttpClient::new(),
    };
    Upstream::remote(Caller::Gateway, "fixture", remote, &TestService::open().kit)
}

async fn work(upstream: &Upstream, policy: CallPolicy) -> Result<(), UpstreamError> {
    let response = upstream.call(get_request("/work"), &context(), policy).await?;
    assert_eq!(response.status(), StatusCode::OK);
    Ok(())
}

/// Nobody listens there.
async fn dead_address() -> SocketAddr {
    Process::start().await.kill().await
}

/// Nothing was sent to the dead one, so calls that must not be made twice go on too, with bodies that
/// are read once. The control is the dead one alone.
#[tokio::test]
async fn no_call_fails_while_one_of_two_addresses_is_dead() {
    let (dead, live) = (dead_address().await, Process::start().await);
    let both = upstream(&[dead, live.address]);
    for number in 0..200 {
        work(&both, idempotent()).await.unwrap();
        let text = format!("body {number}");
        let chunks = stream::iter([Ok::<_, std::io::Error>(text.clone())]);
        let posted = request("POST", "/work", &[], Body::from_stream(chunks));
        let response = both.call(posted, &context(), once()).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), 100).await.unwrap();
        assert_eq!(body, text);
    }
    assert_eq!(live.hits(), 400);
    assert_eq!(both.breaker_state(), BreakerState::Closed);
    let alone = work(&upstream(&[dead]), once()).await;
    assert!(matches!(alone, Err(UpstreamError::Unreachable { .. })), "{alone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_spread_over_the_addresses() {
    let processes = [Process::start().await, Process::start().await, Process::start().await];
    let all = upstream(&processes.each_ref().map(|process| process.address));
    for _ in 0..90 {
        work(&all, once()).await.unwrap();
    }
    for process in &processes {
        assert!((20..=40).contains(&process.hits()), "{} of 90", process.hits());
    }
}

/// Also the breaker of the service stays closed: the other address works.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_under_load_and_comes_back_costs_no_idempotent_call() {
    let (dying, other) = (Process::start().await, Process::start().await);
    let both = upstream(&[dying.address, other.address]);
    let stop = CancellationToken::new();
    let mut workers = JoinSet::new();
    for _ in 0..32 {
        let (both, stop) = (both.clone(), stop.clone());
        workers.spawn(async move {
            let (mut calls, mut interrupted) = (0_u32, 0_u32);
            while !stop.is_cancelled() {
                work(&both, idempotent()).await.unwrap();
                // A call that must not be made twice may break, and opens no breaker.
                match work(&both, once()).await {
                    Ok(()) => {}
                    Err(UpstreamError::Interrupted { .. }) => interrupted += 1,
                    Err(error) => panic!("{error:?}"),
                }
                calls += 1;
            }
            (calls, interrupted)
        });
    }
    soon(until(|| dying.hits() > 500 && other.hits() > 500)).await;
    let address = dying.kill().await;
    let hits = other.hits();
    soon(until(|| other.hits() > hits + 500)).await;
    let back = Process::start_at(address).await;
    soon(until(|| back.hits() > 500)).await;
    stop.cancel();
    let counted = workers.join_all().await;
    let calls: u32 = counted.iter().map(|(calls, _)| calls).sum();
    let interrupted: u32 = counted.iter().map(|(_, interrupted)| interrupted).sum();
    assert!(interrupted <= 32, "{interrupted} of {calls}: more than were under way");
    assert_eq!(both.breaker_state(), BreakerState::Closed);
}

/// A process that is about to end says so first, and gets no calls when it ends.
#[tokio::test]
async fn a_process_that_is_not_ready_gets_no_calls_until_it_is() {
    let (leaving, other) = (Process::start().await, Process::start().await);
    let both = upstream(&[leaving.address, other.address]);
    let share = async |count: u32| {
        let before = leaving.hits();
        for _ in 0..count {
            work(&both, once()).await.unwrap();
        }
        leaving.hits() - before
    };
    assert_eq!(share(20).await, 10);
    leaving.is_ready.store(false, Ordering::SeqCst);
    soon(async { while share(100).await > 0 {} }).await;
    // If nobody is ready, the answer of the service says why.
    other.is_ready.store(false, Ordering::SeqCst);
    soon(async { while share(100).await == 0 {} }).await;
    other.is_ready.store(true, Ordering::SeqCst);
    soon(async { while share(100).await > 0 {} }).await;
    leaving.is_ready.store(true, Ordering::SeqCst);
    soon(async { while share(100).await == 0 {} }).await;
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
