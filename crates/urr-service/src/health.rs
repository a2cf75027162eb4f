//! Health checks: whether a service is alive, and whether it can do its work.
//!
//! Probes are frequent and public, so they must be cheap: the checks run at most once a second,
//! however many probes there are (P-13).

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use urr_kernel::panic_text;

use crate::Json;

const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
const FRESH_FOR: Duration = Duration::from_secs(1);

type Check = Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Whether a process can do its work, as the latest probe found. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    leaving: CancellationToken,
    is_degraded: Arc<AtomicBool>,
}

impl Readiness {
    /// The process is about to stop, and is never ready again.
    pub fn leave(&self) {
        self.leaving.cancel();
    }

    pub fn is_ready(&self) -> bool {
        !self.leaving.is_cancelled() && !self.is_degraded.load(Ordering::Relaxed)
    }
}

/// The health of one service: its dependencies, and whether it is about to stop.
pub struct Health {
    service: &'static str,
    readiness: Readiness,
    checks: Vec<(&'static str, Check)>,
}

/// View: the answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct HealthView {
    service: &'static str,
    /// `ok`, `degraded` or `draining`.
    status: &'static str,
    /// For each dependency `ok`, or `error: ` and what is wrong.
    dependencies: BTreeMap<&'static str, String>,
}

struct HealthProbe {
    health: Health,
    latest: Mutex<Option<(Instant, HealthView)>>,
}

impl Health {
    /// What probes find is told to `readiness`. Leave a few seconds before the server stops, so that
    /// load balancers look elsewhere first.
    pub fn new(service: &'static str, readiness: Readiness) -> Health {
        Health { service, readiness, checks: Vec::new() }
    }

    /// Adds a dependency. The text of a failed check is public: no addresses and no logins.
    pub fn check<F, R>(mut self, name: &'static str, check: F) -> Health
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.checks.push((name, Box::new(move || check().boxed())));
        self
    }

    /// `/health/live`, `/health/ready`, and `/health`, which says the same as ready.
    pub fn router(self) -> Router {
        let service = self.service;
        let live = HealthView { service, status: "ok", dependencies: BTreeMap::new() };
        let probed = Arc::new(HealthProbe { health: self, latest: Mutex::new(None) });
        Router::new()
            .route("/health/live", get(async move || Json(live.clone())))
            .route("/health/ready", get(get_readiness))
            .route("/health", get(get_readiness))
            .with_state(probed)
    }

    async fn ask_all(&self) -> HealthView {
        let asked = self.checks.iter().map(async |(name, check)| {
            let answer = match ask(check).await {
                Ok(()) => "ok".to_owned(),
                Err(problem) => format!("error: {problem}"),
            };
            (*name, answer)
        });
        let dependencies: BTreeMap<_, _> = join_all(asked).await.into_iter().collect();
        let all_ok = dependencies.values().all(|answer| answer == "ok");
        self.readiness.is_degraded.store(!all_ok, Ordering::Relaxed);
        let status = if all_ok { "ok" } else { "degraded" };
        HealthView { service: self.service, status, dependencies }
    }
}

/// Runs one check. A check that hangs or panics has failed.
async fn ask(check: &Check) -> Result<(), String> {
    let asked = AssertUnwindSafe(async { check().await }).catch_unwind();
    match tokio::time::timeout(CHECK_TIMEOUT, asked).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => {
            tracing::error!(cause = panic_text(panic.as_ref()), "a health check panicked");
            Err("the check failed".to_owned())
        }
        Err(_) => Err(format!("no answer within {} s", CHECK_TIMEOUT.as_secs())),
    }
}

async fn get_readiness(State(probed): State<Arc<HealthProbe>>) -> Response {
    let HealthProbe { health, latest } = &*probed;
    if health.readiness.leaving.is_cancelled() {
        let (service, dependencies) = (health.service, BTreeMap::new());
        let view = HealthView { service, status: "draining", dependencies };
        return (StatusCode::SERVICE_UNAVAILABLE, Json(view)).into_response();
    }
    // The lock is held while the checks run: those who ask meanwhile wait and share the answer.
    let mut latest = latest.lock().await;
    let view = match &*latest {
        Some((asked_at, view)) if asked_at.elapsed() < FRESH_FOR => view.clone(),
        _ => {
            let view = health.ask_all().await;
            *latest = Some((Instant::now(), view.clone()));
            view
        }
    };
    drop(latest);
    let status = match view.status {
        "ok" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(view)).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn probe(router: &Router, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn one_bad_dependency_degrades_the_service_and_a_hanging_one_does_not_hang_it() {
        let health = Health::new("ticket", Readiness::default())
            .check("storage", async || Ok(()))
            .check("bus", async || Err("no broker".to_owned()))
            .check("locks", std::future::pending)
            .check("cache", async || panic!("the text of a panic"));
        let router = health.router();
        let expected = serde_json::json!({
            "service": "ticket",
            "status": "degraded",
            "dependencies": {
                "bus": "error: no broker",
                "cache": "error: the check failed",
                "locks": "error: no answer within 2 s",
                "storage": "ok",
            },
        });
        for path in ["/health", "/health/ready"] {
            let (status, body) = probe(&router, path).await;
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!((status, &body), (503, &expected));
        }
        assert_eq!(probe(&router, "/health/live").await.0, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn many_probes_in_a_second_are_one_check() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let health = Health::new("stats", Readiness::default()).check("storage", move || {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        });
        let router = health.router();
        let probes = join_all((0..50).map(|_| probe(&router, "/health"))).await;
        assert!(probes.iter().all(|(status, _)| *status == 200));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        tokio::time::advance(FRESH_FOR).await;
        probe(&router, "/health").await;
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_knows_what_probes_found() {
        let (readiness, works) = (Readiness::default(), Arc::new(AtomicBool::new(false)));
        let storage = Arc::clone(&works);
        let health = Health::new("queue", readiness.clone()).check("storage", move || {
            let works = storage.load(Ordering::SeqCst);
            async move { works.then_some(()).ok_or_else(|| "gone".to_owned()) }
        });
        let router = health.router();
        assert!(readiness.is_ready(), "nobody has asked yet");
        probe(&router, "/health/ready").await;
        assert!(!readiness.is_ready());
        works.store(true, Ordering::SeqCst);
        tokio::time::advance(FRESH_FOR).await;
        probe(&router, "/health/ready").await;
        assert!(readiness.is_ready());
    }

    #[tokio::test]
    async fn a_draining_service_lives_but_is_not_ready() {
        let readiness = Readiness::default();
        let router = Health::new("queue", readiness.clone()).router();
        assert_eq!(probe(&router, "/health/ready").await.0, 200);
        readiness.leave();
        let (status, body) = probe(&router, "/health/ready").await;
        assert_eq!(status, 503);
        assert!(body.contains(r#""status":"draining""#));
        assert_eq!(probe(&router, "/health/live").await.0, 200);
    }
}
