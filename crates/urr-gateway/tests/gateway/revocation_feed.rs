//! The feed of revoked tokens: many refreshes at once, an outage of auth, and the time before the
//! first read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use urr_kernel::Uuid;
use urr_service::token::ACCESS;
use urr_service::{Caller, Upstream, UserRole};

use crate::harness::{FAN, TestGateway, kit, passed, refused, services, soon};

const PATH: &str = "/api/reservations/my";

#[derive(serde::Deserialize)]
struct After {
    after: usize,
}

/// An auth service that a test can stop, and whose list it can delay.
struct FakeAuth {
    is_down: AtomicBool,
    revoked: std::sync::Mutex<Vec<Uuid>>,
    reads: AtomicUsize,
    /// Signals that a read has started; it then waits for a permit.
    begun: mpsc::UnboundedSender<()>,
    permits: Semaphore,
}

impl FakeAuth {
    async fn list(&self, after: usize) -> Response {
        if self.is_down.load(Ordering::SeqCst) {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        // A read answers what was revoked when it started.
        let revoked = self.revoked.lock().unwrap().clone();
        self.reads.fetch_add(1, Ordering::SeqCst);
        // Not every test listens.
        let _sent = self.begun.send(());
        self.permits.acquire().await.unwrap().forget();
        let entry = |(seq, jti): (usize, &Uuid)| json!({ "seq": seq + 1, "jti": jti, "expiresAt": "2026-11-15T00:30:00Z" });
        let tokens: Vec<Value> = revoked.iter().enumerate().skip(after).map(entry).collect();
        // One page is the whole list: `next` says that nothing follows.
        axum::Json(json!({ "tokens": tokens, "next": after })).into_response()
    }
}

struct Scene {
    gateway: Arc<TestGateway>,
    accounts: Arc<FakeAuth>,
    begun: mpsc::UnboundedReceiver<()>,
}

fn scene() -> Scene {
    let (sender, begun) = mpsc::unbounded_channel();
    let accounts = Arc::new(FakeAuth {
        is_down: AtomicBool::new(false),
        revoked: std::sync::Mutex::default(),
        reads: AtomicUsize::new(0),
        begun: sender,
        permits: Semaphore::new(0),
    });
    let listed = Arc::clone(&accounts);
    let list = get(async move |Query(After { after }): Query<After>| listed.list(after).await);
    let auth = Router::new()
        .route("/internal/auth/revoked-tokens", list)
        .route("/{*rest}", any(async || "well"));
    let ticket = Router::new().route("/{*rest}", any(async || "well"));
    let kit = kit();
    let upstreams = vec![
        Upstream::local(Caller::Gateway, "auth", auth, &kit),
        Upstream::local(Caller::Gateway, "ticket", ticket, &kit),
    ];
    let gateway = TestGateway::from_upstreams(upstreams, services(), kit, |_| {});
    Scene { gateway: Arc::new(gateway), accounts, begun }
}

/// D-20: many logouts at once share one refresh, and not one that started before them.
#[tokio::test]
async fn d_20_callers_during_a_refresh_share_the_next_one() {
    let Scene { gateway, accounts, mut begun } = scene();
    let feed = gateway.feed.clone().unwrap();
    let first = tokio::spawn({
        let feed = feed.clone();
        async move { feed.refresh().await.is_ok() }
    });
    soon(begun.recv()).await.unwrap();
    // Revoked after the first refresh has read the list, which is too early for these callers.
    let revoked = Uuid::from_u128(7);
    accounts.revoked.lock().unwrap().push(revoked);
    let mut crowd: Vec<_> = (0..100).map(|_| Box::pin(feed.refresh())).collect();
    for asked in &mut crowd {
        assert!(asked.now_or_never().is_none(), "they wait for the next refresh");
    }
    accounts.permits.add_permits(1);
    assert!(soon(first).await.unwrap());
    accounts.permits.add_permits(1);
    for asked in crowd {
        soon(asked).await.unwrap();
    }
    assert_eq!(accounts.reads.load(Ordering::SeqCst), 2, "one refresh for all of them");
    // Control: a later call refreshes again.
    accounts.permits.add_permits(1);
    soon(feed.refresh()).await.unwrap();
    assert_eq!(accounts.reads.load(Ordering::SeqCst), 3);
}

/// A failure is shared as well: the callers do not retry one after the other.
#[tokio::test]
async fn waiting_callers_share_a_failure() {
    let Scene { gateway, accounts, mut begun } = scene();
    let feed = gateway.feed.clone().unwrap();
    let first = tokio::spawn({
        let feed = feed.clone();
        async move { feed.refresh().await.is_ok() }
    });
    soon(begun.recv()).await.unwrap();
    let mut crowd: Vec<_> = (0..100).map(|_| Box::pin(feed.refresh())).collect();
    for asked in &mut crowd {
        assert!(asked.now_or_never().is_none());
    }
    accounts.is_down.store(true, Ordering::SeqCst);
    accounts.permits.add_permits(1);
    assert!(soon(first).await.unwrap());
    let calls = || {
        let text = gateway.kit.metrics.text();
        let failed =
            r#"urr_upstream_calls_total{caller="gateway",target="auth",outcome="failed"} "#;
        let line = text.lines().find_map(|line| line.strip_prefix(failed));
        line.map_or(0, |count| count.parse::<u32>().unwrap())
    };
    for asked in crowd {
        assert!(soon(asked).await.is_err());
    }
    assert!((1..=3).contains(&calls()), "one refresh with its retries, not {}", calls());
}

/// If the caller of a refresh is dropped, the next waiting caller starts a new one.
#[tokio::test]
async fn an_abandoned_refresh_blocks_no_other() {
    let Scene { gateway, accounts, mut begun } = scene();
    let feed = gateway.feed.clone().unwrap();
    let mut first = Box::pin(feed.refresh());
    assert!((&mut first).now_or_never().is_none());
    soon(begun.recv()).await.unwrap();
    let mut second = Box::pin(feed.refresh());
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    accounts.permits.add_permits(1);
    soon(second).await.unwrap();
    assert!(feed.is_complete());
}

/// D-20: revoked tokens stay revoked while auth is down, and others stay valid.
#[tokio::test]
async fn d_20_revoked_tokens_outlast_an_outage_of_auth() {
    let Scene { gateway, accounts, .. } = scene();
    accounts.permits.add_permits(100);
    let issue = gateway.issue(FAN);
    let revoked = gateway.signed(ACCESS, &issue, UserRole::User);
    let good = gateway.token(UserRole::User);
    accounts.revoked.lock().unwrap().push(issue.id);
    let feed = gateway.feed.clone().unwrap();
    feed.refresh().await.unwrap();
    accounts.is_down.store(true, Ordering::SeqCst);
    for _ in 0..20 {
        assert!(feed.refresh().await.is_err());
        let answer = gateway.get(PATH).bearer(&revoked).send().await;
        assert_eq!(answer.outcome(), refused(401, "TOKEN_REVOKED"));
        assert_eq!(gateway.get(PATH).bearer(&good).send().await.outcome(), passed());
        gateway.clock.advance(Duration::from_secs(60));
    }
    assert!(feed.is_complete(), "it was known once");
}

/// A gateway that was started while auth is down cannot know which tokens are revoked.
#[tokio::test(start_paused = true)]
async fn d_20_before_the_first_read_no_user_is_authenticated() {
    let Scene { gateway, accounts, .. } = scene();
    accounts.permits.add_permits(100);
    accounts.is_down.store(true, Ordering::SeqCst);
    let issue = gateway.issue(FAN);
    let revoked = gateway.signed(ACCESS, &issue, UserRole::User);
    let good = gateway.token(UserRole::User);
    accounts.revoked.lock().unwrap().push(issue.id);
    let feed = gateway.feed.clone().unwrap();
    assert!(feed.refresh().await.is_err());
    assert!(!feed.is_complete());
    for token in [&revoked, &good] {
        let answer = gateway.get(PATH).bearer(token).send().await;
        assert_eq!(answer.outcome(), refused(503, "SERVICE_UNAVAILABLE"));
        assert_eq!(answer.header("retry-after"), "1");
        // A public route treats the request as anonymous.
        let public = gateway.get("/api/time").bearer(token).send().await;
        assert_eq!(public.outcome(), passed());
    }
    let forged = gateway.get(PATH).bearer("x").send().await;
    assert_eq!(forged.outcome(), refused(401, "TOKEN_MALFORMED"), "what is wrong is still told");
    // It finds the list by itself once auth is there; the breaker tries again after ten seconds.
    let stop = CancellationToken::new();
    let running = tokio::spawn(feed.clone().run(stop.clone()));
    accounts.is_down.store(false, Ordering::SeqCst);
    gateway.clock.advance(Duration::from_secs(10));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(feed.is_complete());
    assert_eq!(gateway.get(PATH).bearer(&good).send().await.outcome(), passed());
    let answer = gateway.get(PATH).bearer(&revoked).send().await;
    assert_eq!(answer.outcome(), refused(401, "TOKEN_REVOKED"));
    stop.cancel();
    running.await.unwrap();
}
