//! How the gateway behaves at ten times the load that it can serve, and afterwards.
//!
//! The services share one engine: 32 requests at once, 16 ms each and a little computing, so about
//! 2,000 a second, as a database with 32 connections does. It is bounded by waiting and not by
//! computing, because clients and servers share the cores of one machine.
//!
//! Of the requests 5 % pay, 15 % hold seats and 80 % browse. Requests come when they are due, not
//! when the one before was answered. First the most that is served in a second is found, then
//! half of that is asked for, then ten times as much, then half again.
//!
//! At last everything takes 600 ms, as on a processor that is too busy: fewer at once would not be
//! faster. So many pay as may be inside. Those who are inside keep a floor of permits; the baseline
//! is the same without it.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

mod clients;

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use urr_gateway::{ConcurrencyLimits, Gateway, GatewaySettings, RateLimiter, RateLimits};
use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::token::{ACCESS, AccessClaims, TokenFacts, TokenKey};
use urr_service::{Caller, Metrics, RequestLimits, Service, ServiceKit, Upstream, UserRole, serve};
use urr_test::figures::{BenchFigure, RatioTarget};
use utoipa_axum::router::OpenApiRouter;

use crate::clients::{BenchResponse, BenchTarget, Class, at_once, at_rate};

const ENGINE_PERMITS: usize = 32;
const WORK: Duration = Duration::from_millis(16);
const PEAK_FOR: Duration = Duration::from_secs(5);
const BEFORE_FOR: Duration = Duration::from_secs(5);
const AFTER_FOR: Duration = Duration::from_secs(12);
const OVERLOAD_FOR: Duration = Duration::from_secs(12);
const OVERLOAD: f64 = 10.0;
const GOODPUT_MIN: f64 = 0.9;
const P99_RATIO_MAX: f64 = 2.0;
const RECOVERY_MAX: u64 = 10;
/// The engine is fast at first, so that it is known how fast it can be.
const FAST_FOR: Duration = Duration::from_secs(1);
const FAST_WORK: Duration = Duration::from_millis(5);
const SLOW_WORK: Duration = Duration::from_millis(600);
const SLOW_FOR: Duration = Duration::from_secs(10);
/// Only what comes after so many seconds counts: by then the permits have shrunk.
const SHRUNK_AFTER: u64 = 5;
const PAYING_PER_SECOND: f64 = 300.0;
const THRESHOLD: u32 = 1_000;
const FLOOR_RATIO_MIN: f64 = 2.0;

fn main() {
    let server = Runtime::new().expect("threads can be started");
    let machine = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let machine = machine.expect("threads can be started");
    let bounded = Engine::Bounded(Arc::new(Semaphore::new(ENGINE_PERMITS)));
    let limits = ConcurrencyLimits::for_threshold(THRESHOLD);
    let address = server.block_on(listen(gateway(bounded, limits)));
    let target = BenchTarget { address, bearer: token(), class_of: Class::mixed };

    let peak = machine.block_on(at_once(&target, 2 * ENGINE_PERMITS, PEAK_FOR));
    let peak = served(&peak).count() as f64 / PEAK_FOR.as_secs_f64();
    println!("peak              {peak:>8.0} served/s");

    let half = peak / 2.0;
    let before = machine.block_on(at_rate(&target, half, BEFORE_FOR));
    // The first second opens the connections.
    let before_p99 = p99(served(&before).filter(|answer| answer.second > 0));
    println!("normal load       {half:>8.0} requests/s, p99 {before_p99:.0} ms");

    let during = machine.block_on(at_rate(&target, peak * OVERLOAD, OVERLOAD_FOR));
    show_overload(&during, peak);

    let after = machine.block_on(at_rate(&target, half, AFTER_FOR));
    let is_late = |second: u64| {
        let p99 = p99(served(&after).filter(|answer| answer.second == second));
        let is_complete = after.iter().all(|a| a.second != second || a.status == 200);
        p99 > before_p99 * P99_RATIO_MAX || !is_complete
    };
    let late = (0..AFTER_FOR.as_secs()).rev().find(|second| is_late(*second));
    let recovered = late.map_or(0, |second| second + 1);
    let figure = BenchFigure {
        name: "normal again after overload",
        value: recovered as f64,
        unit: "s",
        baseline: "allowed",
        baseline_value: RECOVERY_MAX as f64,
        target: RatioTarget::AtMost(1.0),
    };
    figure.show();
    println!("                  p99 {:.0} ms in all", p99(served(&after)));
    show_floor(&server, &machine);
}

/// How many of those who are inside can pay while everything is slow.
fn show_floor(server: &Runtime, machine: &Runtime) {
    let floored = ConcurrencyLimits { start: 64, ..ConcurrencyLimits::for_threshold(THRESHOLD) };
    let without = ConcurrencyLimits { inside_min: 0, ..floored };
    let pay = |limits| {
        let engine = Engine::SlowAfter(Instant::now() + FAST_FOR);
        let address = server.block_on(listen(gateway(engine, limits)));
        BenchTarget { address, bearer: token(), class_of: |_| Class::Pay }
    };
    let targets = [floored, without].map(pay);
    let ask = |target: &BenchTarget| {
        let target = target.clone();
        machine.spawn(async move { at_rate(&target, PAYING_PER_SECOND, SLOW_FOR).await })
    };
    let [with, without] = targets.each_ref().map(ask).map(|answers| {
        let answers = machine.block_on(answers).expect("clients do not panic");
        let late = |answer: &&BenchResponse| answer.second >= SHRUNK_AFTER;
        let asked = answers.iter().filter(late).count() as f64;
        100.0 * served(&answers).filter(late).count() as f64 / asked
    });
    let figure = BenchFigure {
        name: "payments served while all is slow",
        value: with,
        unit: "%",
        baseline: "without a floor of permits",
        baseline_value: without,
        target: RatioTarget::AtLeast(FLOOR_RATIO_MIN),
    };
    figure.show();
}

fn show_overload(during: &[BenchResponse], peak: f64) {
    let seconds = OVERLOAD_FOR.as_secs_f64();
    let offered = during.len() as f64 / seconds;
    let goodput = served(during).count() as f64 / seconds;
    println!("overload          {offered:>8.0} requests/s, {:.1} times the peak", offered / peak);
    let figure = BenchFigure {
        name: "served at ten times the load",
        value: goodput,
        unit: "requests/s",
        baseline: "peak",
        baseline_value: peak,
        target: RatioTarget::AtLeast(GOODPUT_MIN),
    };
    figure.show();
    for class in Class::ALL {
        let asked = during.iter().filter(|answer| answer.class == class).count() as f64;
        let got = served(during).filter(|answer| answer.class == class);
        let p99 = p99(got.clone());
        let share = 100.0 * got.count() as f64 / asked;
        println!("{:<18}{share:>8.1} % served, p99 {p99:.0} ms", class.name());
    }
    let refused = during.iter().filter(|answer| answer.status == 503);
    let (share, p99) = (100.0 * refused.clone().count() as f64 / during.len() as f64, p99(refused));
    println!("refused           {share:>8.1} %, p99 {p99:.0} ms");
    let odd = during.iter().filter(|answer| ![200, 503].contains(&answer.status)).count();
    println!("other answers     {odd:>8}");
}

fn served(answers: &[BenchResponse]) -> impl Iterator<Item = &BenchResponse> + Clone {
    answers.iter().filter(|answer| answer.status == 200)
}

/// In milliseconds.
fn p99<'a>(answers: impl Iterator<Item = &'a BenchResponse>) -> f64 {
    let mut times: Vec<Duration> = answers.map(|answer| answer.took).collect();
    times.sort_unstable();
    times.get(times.len() * 99 / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(serve(listener, router, CancellationToken::new(), Duration::ZERO));
    address
}

/// What the services work with.
#[derive(Clone)]
enum Engine {
    /// So many at once, as a database does.
    Bounded(Arc<Semaphore>),
    /// Any number at once; slow from a moment on.
    SlowAfter(Instant),
}

/// The gateway as it runs in one process, before two services that share an engine.
fn gateway(engine: Engine, concurrency: ConcurrencyLimits) -> Router {
    let clock = Clock::System;
    let kit = ServiceKit {
        ids: IdSource::from_system_randomness(clock.clone()),
        clock: clock.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    let upstream = |name, path, methods| {
        let service = Service::new(name, OpenApiRouter::new().route(path, methods), &kit);
        Upstream::local(Caller::Gateway, name, service.local_router(), &kit)
    };
    let work = move || {
        let engine = engine.clone();
        async move { engine.work().await }
    };
    let ticket = upstream("ticket", "/api/memberships/{id}", get(work.clone()).post(work.clone()));
    let payment = upstream("payment", "/api/payments/{id}", post(work));
    let mut settings = GatewaySettings::new(key(), TokenKey::new(&[2; 32]));
    let many = 1_000_000_000;
    settings.rate_limits =
        RateLimits { general: many, pay: many, pay_target: many, ..RateLimits::default() };
    settings.concurrency = concurrency;
    let limiter = RateLimiter::local(clock);
    Gateway::new(vec![ticket, payment], limiter, settings, &kit).router(|_| Router::new(), &kit)
}

impl Engine {
    async fn work(&self) -> &'static str {
        match self {
            Engine::Bounded(permits) => bounded_work(permits).await,
            Engine::SlowAfter(moment) => {
                let is_fast = Instant::now() < *moment;
                tokio::time::sleep(if is_fast { FAST_WORK } else { SLOW_WORK }).await;
                "done"
            }
        }
    }
}

/// A permit of the engine, the wait, and the computing around it.
async fn bounded_work(permits: &Semaphore) -> &'static str {
    let permit = permits.acquire().await.expect("the semaphore is never closed");
    tokio::time::sleep(WORK).await;
    drop(permit);
    let computed = (0..5_000_u64).fold(1, |sum: u64, n| black_box(sum.wrapping_mul(31) ^ n));
    if computed == 0 { "nothing" } else { "done" }
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
