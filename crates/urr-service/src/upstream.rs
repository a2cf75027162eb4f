//! How one service calls another, in the same way whether it lives in this process or elsewhere.
//!
//! Both forms have the same deadline, retries, budget, breaker and errors; the same headers
//! arrive. So nothing learnt in one process is wrong in a cluster.

mod breaker;
mod budget;
mod error;
mod transport;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use urr_kernel::{CallContext, Secret};

use self::breaker::{Breaker, Verdict};
use self::budget::RetryBudget;
pub use self::error::{Refusal, UpstreamError};
pub use self::transport::{HttpClient, InvalidServiceUrl, ServiceUrl};
use self::transport::{Observed, Transport, Watched, remove_hop_by_hop};
use crate::ServiceKit;
use crate::caller::{CALLER, CREDENTIAL, Caller};
use crate::context::write_context;
use crate::deadline::Deadline;
use crate::metrics::Metrics;

const ATTEMPTS_MAX: u32 = 3;
/// The typed helpers hold an answer in memory; none of ours is near this.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a call may take in all, and whether making it twice is harmless.
#[derive(Clone, Copy, Debug)]
pub struct CallPolicy {
    deadline: Duration,
    idempotent: bool,
    /// The caller had less time left than the service may take.
    is_hurried: bool,
}

impl CallPolicy {
    /// A call that must not be made twice.
    pub fn once(deadline: Duration) -> CallPolicy {
        CallPolicy { deadline, idempotent: false, is_hurried: false }
    }

    /// A call that may be repeated if it fails on the way.
    pub fn idempotent(deadline: Duration) -> CallPolicy {
        CallPolicy { deadline, idempotent: true, is_hurried: false }
    }

    /// The same, but no longer than the request it serves will live.
    pub fn within(self, deadline: Deadline) -> CallPolicy {
        let remaining = deadline.remaining();
        let is_hurried = self.is_hurried || remaining < self.deadline;
        CallPolicy { deadline: self.deadline.min(remaining), is_hurried, ..self }
    }
}

/// Another service, as seen by one of its callers. Clones share the breaker and the budget.
#[derive(Clone, Debug)]
pub struct Upstream(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    caller: Caller,
    target: &'static str,
    transport: Transport,
    breaker: Breaker,
    budget: RetryBudget,
    metrics: Metrics,
}

impl Upstream {
    /// A service of this process. `router` is [`crate::Service::local_router`] of it.
    pub fn local(
        caller: Caller,
        target: &'static str,
        router: Router,
        kit: &ServiceKit,
    ) -> Upstream {
        Upstream::new(caller, target, Transport::Local(router), kit)
    }

    /// A service that listens at `url`.
    pub fn remote(
        caller: Caller,
        target: &'static str,
        remote: Remote,
        kit: &ServiceKit,
    ) -> Upstream {
        let Remote { url, credential, client } = remote;
        Upstream::new(caller, target, Transport::Remote { url, credential, client }, kit)
    }

    fn new(
        caller: Caller,
        target: &'static str,
        transport: Transport,
        kit: &ServiceKit,
    ) -> Upstream {
        let seed = kit.ids.next_id().as_u64_pair().1;
        Upstream(Arc::new(Inner {
            caller,
            target,
            transport,
            breaker: Breaker::new(kit.clock.clone()),
            budget: RetryBudget::new(seed),
            metrics: kit.metrics.clone(),
        }))
    }

    /// The name of the service that is called.
    pub fn target(&self) -> &'static str {
        self.0.target
    }

    /// Passes a request on, bodies streamed both ways. A request with a body is never repeated.
    pub async fn call(
        &self,
        request: Request,
        context: &CallContext,
        policy: CallPolicy,
    ) -> Result<Response, UpstreamError> {
        let (parts, body) = request.into_parts();
        let payload = match body.is_end_stream() {
            true => Payload::Held(Bytes::new()),
            false => Payload::Streamed(Some(body)),
        };
        let deadline = Deadline::after(policy.deadline);
        let response = self.call_until(parts, payload, context, deadline, policy).await?;
        Ok(response.map(|body| Body::new(Watched::new(body, policy.deadline))))
    }

    pub async fn get_json<T: DeserializeOwned>(
        &self,
        path: &str,
        context: &CallContext,
        policy: CallPolicy,
    ) -> Result<T, UpstreamError> {
        self.json(Method::GET, path, Bytes::new(), context, policy).await
    }

    pub async fn post_json<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
        context: &CallContext,
        policy: CallPolicy,
    ) -> Result<T, UpstreamError> {
        let body = serde_json::to_vec(body).map_err(|source| self.malformed(source))?;
        self.json(Method::POST, path, body.into(), context, policy).await
    }

    /// A whole call: the answer is read and understood, or the refusal is.
    async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        context: &CallContext,
        policy: CallPolicy,
    ) -> Result<T, UpstreamError> {
        let target = self.0.target;
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method = method;
        parts.uri = path.parse::<Uri>().map_err(|source| self.malformed(source))?;
        if !body.is_empty() {
            let json = HeaderValue::from_static("application/json");
            parts.headers.insert(header::CONTENT_TYPE, json);
        }
        let deadline = Deadline::after(policy.deadline);
        let payload = Payload::Held(body);
        let response = self.call_until(parts, payload, context, deadline, policy).await?;
        let status = response.status();
        let answer = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        let answer = match tokio::time::timeout_at(deadline.0, answer).await {
            Err(_) => return Err(UpstreamError::Timeout { target }),
            Ok(Err(source)) => return Err(UpstreamError::Interrupted { target, source }),
            Ok(Ok(answer)) => answer.to_bytes(),
        };
        if !status.is_success() {
            let refusal = Box::new(Refusal::read(status, &answer));
            return Err(UpstreamError::Refused { target, refusal });
        }
        // An empty answer (204) is read as nothing.
        let answer: &[u8] = if answer.is_empty() { b"null" } else { &answer };
        serde_json::from_slice(answer)
            .map_err(|source| UpstreamError::Unreadable { target, source: source.into() })
    }

    /// Makes the call, again if that is allowed and promises something.
    async fn call_until(
        &self,
        mut parts: Parts,
        mut payload: Payload,
        context: &CallContext,
        deadline: Deadline,
        policy: CallPolicy,
    ) -> Result<Response, UpstreamError> {
        let Inner { caller, target, budget, metrics, .. } = &*self.0;
        clean(&mut parts);
        write_context(context, &mut parts.headers);
        budget.deposit();
        let repeatable = policy.idempotent && matches!(payload, Payload::Held(_));
        let mut answer = self.attempt(&parts, payload.take(), deadline, policy).await;
        for retry in 1..ATTEMPTS_MAX {
            if !repeatable || !is_transient(&answer) {
                break;
            }
            let pause = budget.pause(retry);
            if pause >= deadline.remaining() || !budget.withdraw() {
                break;
            }
            tokio::time::sleep(pause).await;
            metrics.count_retry(caller.name(), target);
            let next = self.attempt(&parts, payload.take(), deadline, policy).await;
            if matches!(next, Err(UpstreamError::Open { .. })) {
                // What the service said before the breaker opened says more than the breaker.
                break;
            }
            answer = next;
        }
        answer
    }

    /// One attempt, with its verdict for the breaker.
    async fn attempt(
        &self,
        parts: &Parts,
        body: Body,
        deadline: Deadline,
        policy: CallPolicy,
    ) -> Result<Response, UpstreamError> {
        let Inner { caller, target, transport, breaker, metrics, .. } = &*self.0;
        let permit = match breaker.admit() {
            Ok(permit) => permit,
            Err(breaker::Open { retry_after }) => {
                metrics.count_call(caller.name(), target, "open");
                return Err(UpstreamError::Open { target, retry_after });
            }
        };
        let (body, sent_whole) = Observed::new(body);
        let mut request = Request::from_parts(parts.clone(), Body::new(body));
        deadline.write(request.headers_mut());
        let sent = transport.send(*caller, target, request);
        let answer = match tokio::time::timeout_at(deadline.0, sent).await {
            Ok(answer) => answer,
            // Who waits for the client's body is not slow himself.
            Err(_) if !sent_whole.load(Ordering::Relaxed) => {
                Err(UpstreamError::RequestStalled { target })
            }
            Err(_) => Err(UpstreamError::Timeout { target }),
        };
        let (mut verdict, outcome) = judge(&answer);
        if policy.is_hurried && matches!(answer, Err(UpstreamError::Timeout { .. })) {
            verdict = Verdict::Nothing;
        }
        permit.settle(verdict);
        metrics.count_call(caller.name(), target, outcome);
        answer
    }

    fn malformed(&self, source: impl std::error::Error + Send + Sync + 'static) -> UpstreamError {
        UpstreamError::Malformed { target: self.0.target, source: source.into() }
    }
}

/// Where a remote service is, and what proves the caller to it.
#[derive(Clone, Debug)]
pub struct Remote {
    pub url: ServiceUrl,
    /// [`crate::InternalCredentials::for_caller`] of the caller.
    pub credential: Secret,
    pub client: HttpClient,
}

/// The body of a call: held in memory, so that it can be sent again, or passing by once.
enum Payload {
    Held(Bytes),
    Streamed(Option<Body>),
}

impl Payload {
    fn take(&mut self) -> Body {
        match self {
            Payload::Held(bytes) => Body::from(bytes.clone()),
            Payload::Streamed(body) => body.take().expect("a streamed body is sent once"),
        }
    }
}

/// Removes what belongs to the connection the request came on, or claims what only we may say.
fn clean(parts: &mut Parts) {
    // Path parameters and the like of the router that passes the request on would mix with those
    // of the service.
    parts.extensions.clear();
    remove_hop_by_hop(&mut parts.headers);
    for name in [CALLER, CREDENTIAL, header::HOST, header::EXPECT] {
        parts.headers.remove(name);
    }
}

/// What an answer says about the service, and what it is called in the numbers.
fn judge(answer: &Result<Response, UpstreamError>) -> (Verdict, &'static str) {
    match answer {
        Ok(response) if response.status().is_server_error() => (Verdict::Failure, "failed"),
        Ok(response) if response.status().is_client_error() => (Verdict::Success, "refused"),
        Ok(_) => (Verdict::Success, "ok"),
        Err(UpstreamError::Unreachable { .. }) => (Verdict::Failure, "unreachable"),
        Err(UpstreamError::Interrupted { .. }) => (Verdict::Failure, "interrupted"),
        Err(UpstreamError::Timeout { .. }) => (Verdict::Failure, "timeout"),
        Err(_) => (Verdict::Nothing, "malformed"),
    }
}

/// Whether the same call may well succeed in a moment.
fn is_transient(answer: &Result<Response, UpstreamError>) -> bool {
    match answer {
        Ok(response) => {
            matches!(response.status(), StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE)
        }
        Err(error) => {
            matches!(error, UpstreamError::Unreachable { .. } | UpstreamError::Interrupted { .. })
        }
    }
}
