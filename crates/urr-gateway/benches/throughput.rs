//! What the gateway costs: a trivial `GET` through the whole chain with a valid cookie, beside a bare
//! axum route on the same server, in the same run.
//!
//! Both listen on loopback and are measured in turns, so that a busy moment hits both.
//! Clients and servers share all cores, as they do when a machine is tried with `wrk` or `oha` on it.

#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use mimalloc::MiMalloc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use urr_gateway::{Gateway, GatewaySettings, RateLimiter, RateLimits};
use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::token::{ACCESS, AccessClaims, TokenFacts, TokenKey};
use urr_service::{Caller, Metrics, RequestLimits, Service, ServiceKit, Upstream, UserRole, serve};
use urr_test::figures::{BenchFigure, RatioTarget};
use utoipa_axum::router::OpenApiRouter;

/// As in the program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const CONNECTIONS: u32 = 64;
const ROUNDS: u32 = 4;
const ROUND: Duration = Duration::from_millis(1_500);
const RATIO_MIN: f64 = 0.65;
const P99_RATIO_MAX: f64 = 2.0;

fn main() {
    let machine = Runtime::new().expect("threads can be started");
    let (bare_address, gateway_address) = machine.block_on(async {
        let bare = Router::new().route("/api/time", get(async || "now"));
        (listen(bare).await, listen(gateway().await).await)
    });
    // The same bytes to both: what differs is the gateway.
    let request = request(&token());
    let bare = Target { address: bare_address, request: request.clone() };
    let gateway = Target { address: gateway_address, request };

    let (mut bares, mut gateways) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bares.push(machine.block_on(full_load(&bare)));
        gateways.push(machine.block_on(full_load(&gateway)));
    }
    let (bare_rate, gateway_rate) = (median(&mut bares), median(&mut gateways));
    let figure = BenchFigure {
        name: "gateway",
        value: gateway_rate,
        unit: "requests/s",
        baseline: "bare axum route",
        baseline_value: bare_rate,
        target: RatioTarget::AtLeast(RATIO_MIN),
    };
    figure.show();

    let half = gateway_rate / 2.0;
    let (mut bares, mut gateways) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bares.push(machine.block_on(p99_micros(&bare, half)));
        gateways.push(machine.block_on(p99_micros(&gateway, half)));
    }
    let (bare_p99, gateway_p99) = (median(&mut bares), median(&mut gateways));
    let figure = BenchFigure {
        name: "gateway, p99 at half load",
        value: gateway_p99,
        unit: "us",
        baseline: "bare axum route",
        baseline_value: bare_p99,
        target: RatioTarget::AtMost(P99_RATIO_MAX),
    };
    figure.show();
}

async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(serve(listener, router, CancellationToken::new(), Duration::ZERO));
    address
}

/// The gateway as it runs in one process, before a service whose work is nothing.
async fn gateway() -> Router {
    let clock = Clock::System;
    let kit = ServiceKit {
        ids: IdSource::from_system_randomness(clock.clone()),
        clock: clock.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    let routes = OpenApiRouter::new().route("/api/time", get(async || "now"));
    let service = Service::new("ticket", routes, &kit).local_router();
    let upstream = Upstream::local(Caller::Gateway, "ticket", service, &kit);
    let mut settings = GatewaySettings::new(key(), TokenKey::new(&[2; 32]));
    settings.rate_limits = RateLimits { general: 1_000_000_000, ..RateLimits::default() };
    settings.allowed_origins = vec!["http://localhost:3000".to_owned()];
    let limiter = RateLimiter::local(clock);
    Gateway::new(vec![upstream], limiter, settings, &kit).router(|_| Router::new(), &kit)
}

fn key() -> TokenKey {
    TokenKey::new(&[1; 32])
}

fn token() -> String {
    let issue = TokenFacts {
        subject: Uuid::from_u128(1).to_string(),
        id: Uuid::from_u128(2),
        issued_at: Clock::System.now(),
        lifetime: Duration::from_secs(1_800),
    };
    let email = "fan@example.com".to_owned();
    let claims = AccessClaims {
        email,
        role: UserRole::User,
        family_id: Uuid::from_u128(3),
        email_verified: true,
    };
    key().sign(ACCESS, &issue, &claims)
}

fn request(token: &str) -> Vec<u8> {
    let head = "GET /api/time HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n";
    format!("{head}cookie: access_token={token}\r\n\r\n").into_bytes()
}

struct Target {
    address: SocketAddr,
    request: Vec<u8>,
}

/// Sends a request and reads the whole response.
async fn send(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) {
    stream.write_all(request).await.expect("the server reads");
    let mut filled = 0;
    while !buffer[..filled].ends_with(b"\r\n\r\nnow") {
        let read = stream.read(&mut buffer[filled..]).await.expect("the server answers");
        assert!(read > 0, "the server closed: {}", String::from_utf8_lossy(&buffer[..filled]));
        filled += read;
    }
    assert!(buffer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(buffer));
}

/// Requests per second if every connection sends the next request after a response.
async fn full_load(target: &Target) -> f64 {
    let mut clients = JoinSet::new();
    let end = Instant::now() + ROUND;
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(target.address).await.expect("the server listens");
        let request = target.request.clone();
        clients.spawn(async move {
            let mut buffer = [0; 2_048];
            let mut count = 0_u64;
            while Instant::now() < end {
                send(&mut stream, &request, &mut buffer).await;
                count += 1;
            }
            count
        });
    }
    clients.join_all().await.into_iter().sum::<u64>() as f64 / ROUND.as_secs_f64()
}

/// The 99th percentile of the time to an answer, at a given rate.
async fn p99_micros(target: &Target, rate: f64) -> f64 {
    let mut clients = JoinSet::new();
    let end = Instant::now() + ROUND;
    let pause = Duration::from_secs_f64(f64::from(CONNECTIONS) / rate);
    for connection in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(target.address).await.expect("the server listens");
        let request = target.request.clone();
        clients.spawn(async move {
            let mut times = Vec::new();
            let mut buffer = [0; 2_048];
            let start = Instant::now() + pause * connection / CONNECTIONS;
            let mut ticks = tokio::time::interval_at(start, pause);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            while Instant::now() < end {
                ticks.tick().await;
                let begun = Instant::now();
                send(&mut stream, &request, &mut buffer).await;
                times.push(begun.elapsed());
            }
            times
        });
    }
    let mut times: Vec<Duration> = clients.join_all().await.into_iter().flatten().collect();
    times.sort_unstable();
    times[times.len() * 99 / 100].as_secs_f64() * 1e6
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
