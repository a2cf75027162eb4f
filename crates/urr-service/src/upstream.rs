//! How one service calls another, in this process or in another one.
//!
//! Both forms have the same deadline, retries, retry budget, breaker and errors, and the service
//! gets the same identity, context and deadline: so tests in one process hold for a cluster too.

mod balancer;
mod budget;
mod error;
mod service_url;
mod transport;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use futures_util::TryFutureExt;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body as _;
use serde::de::DeserializeOwned;
use urr_kernel::{CallContext, Secret};

use self::balancer::Balancer;
pub use self::balancer::{HttpClient, get_from_every_address};
use self::budget::RetryBudget;
pub use self::error::{UpstreamError, UpstreamRefusal};
pub use self::service_url::{InvalidServiceUrl, ServiceUrl, ServiceUrls};
pub use self::transport::LocalService;
use self::transport::{BodyProgress, TimedBody, Transport, observe_body, remove_hop_by_hop};
use crate::breaker::{Breaker, BreakerOpen, BreakerState, CallOutcome};
use crate::caller::{CALLER, CREDENTIAL, Caller};
use crate::context::{CAUSATION_ID, CORRELATION_ID, CallMetadata, REQUEST_ID, TRACEPARENT};
use crate::deadline::Deadline;
use crate::internal_call::{InternalCall, WireCall};
use crate::metrics::CallCounters;
use crate::{ApiError, ServiceKit};

const ATTEMPTS_MAX: u32 = 3;
/// The typed helpers hold an answer in memory. No answer of ours is near this size.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a call may take in all, and whether making it twice is harmless.
#[derive(Clone, Copy, Debug)]
pub struct CallPolicy {
    deadline: Duration,
    idempotent: bool,
    /// The caller had less time left than the call may take: a timeout is not the service's fault.
    is_hurried: bool,
    /// The body is still on its way from a client while the service works.
    is_streamed: bool,
}

impl CallPolicy {
    /// A call that must not be made twice.
    pub fn once(deadline: Duration) -> CallPolicy {
        CallPolicy { deadline, idempotent: false, is_hurried: false, is_streamed: false }
    }

    /// A call that may be repeated if it fails on the way.
    pub fn idempotent(deadline: Duration) -> CallPolicy {
        CallPolicy { idempotent: true, ..CallPolicy::once(deadline) }
    }

    /// The same, with a body that a client is still sending. As long as it has not arrived, the call
    /// says nothing about the service: it is no probe of the breaker and no failure.
    pub fn streamed(self) -> CallPolicy {
        CallPolicy { is_streamed: true, ..self }
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
    counters: CallCounters,
}

impl Upstream {
    /// A service of this process: itself, its [`crate::Service::local_router`], or a [`LocalService`]
    /// that is set when the service exists.
    pub fn local(
        caller: Caller,
        target: &'static str,
        service: impl Into<LocalService>,
        kit: &ServiceKit,
    ) -> Upstream {
        Upstream::new(caller, target, Transport::Local(service.into()), kit)
    }

    /// A service in other processes.
    pub fn remote(
        caller: Caller,
        target: &'static str,
        remote: RemoteService,
        kit: &ServiceKit,
    ) -> Upstream {
        let RemoteService { urls, credential, client } = remote;
        let balancer = Balancer::new(target, urls, client);
        Upstream::new(caller, target, Transport::Remote { balancer, credential }, kit)
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
            counters: CallCounters::new(kit.metrics.clone(), caller.as_str(), target),
        }))
    }

    /// The name of the service that is called.
    pub fn target(&self) -> &'static str {
        self.0.target
    }

    /// Whether calls are let through at the moment.
    pub fn breaker_state(&self) -> BreakerState {
        self.0.breaker.state()
    }

    /// Passes a request on, bodies streamed both ways. A request with a body is never repeated.
    ///
    /// Not an `async fn`, because the future of one holds its arguments twice and a request is
    /// large. And boxed, because whoever passes requests on moves the future several times.
    pub fn call(
        &self,
        mut request: Request,
        context: &CallContext,
        policy: CallPolicy,
    ) -> Pin<Box<impl Future<Output = Result<Response, UpstreamError>>>> {
        let deadline = Deadline::after(policy.deadline);
        let call = CallMetadata { context: *context, deadline };
        clean(&mut request);
        let repeatable = policy.idempotent && request.body().is_end_stream();
        let repeatable =
            repeatable.then(|| Box::new(RepeatableRequest::of(&request, Bytes::new())));
        let response = self.request_until(request, repeatable, call, policy);
        Box::pin(response.map_ok(move |response| {
            response.map(|body| Body::new(TimedBody::new(body, policy.deadline)))
        }))
    }

    /// Makes an internal call: with values if the service runs in this process and has a handler
    /// for it, else over HTTP.
    pub async fn ask<C: InternalCall>(
        &self,
        request: &C,
        context: &CallContext,
    ) -> Result<C::Answer, UpstreamError> {
        let Inner { caller, target, transport, .. } = &*self.0;
        let policy = C::SPEC.policy();
        let call = CallMetadata { context: *context, deadline: Deadline::after(policy.deadline) };
        if let Transport::Local(service) = transport
            && let Some(calls) = service.calls()
            && calls.has::<C>()
        {
            let refused = |error: ApiError| {
                let refusal = Box::new(UpstreamRefusal::from(&error));
                UpstreamError::Refused { target, refusal }
            };
            let send = || calls.answer(*caller, request, call).map_err(refused);
            let again = policy.idempotent.then_some(send);
            let value = |_: &C::Answer| (StatusCode::OK, false);
            return self.call_until((send(), None), again, value, call, policy).await;
        }
        let wire = WireCall::write(request).map_err(|source| self.malformed(source))?;
        self.json(C::SPEC.method(), &wire.path, wire.body.into(), call, policy).await
    }

    /// Makes a call over HTTP and reads its JSON answer, or its error body.
    async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        call: CallMetadata,
        policy: CallPolicy,
    ) -> Result<T, UpstreamError> {
        let target = self.0.target;
        let mut request = Request::new(in_memory(&body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse::<Uri>().map_err(|source| self.malformed(source))?;
        if !body.is_empty() {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        let repeatable = policy.idempotent.then(|| Box::new(RepeatableRequest::of(&request, body)));
        let response = self.request_until(request, repeatable, call, policy).await?;
        let status = response.status();
        let answer = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        let answer = match tokio::time::timeout_at(call.deadline.0, answer).await {
            Err(_) => return Err(UpstreamError::Timeout { target }),
            Ok(Err(source)) => return Err(UpstreamError::Interrupted { target, source }),
            Ok(Ok(answer)) => answer.to_bytes(),
        };
        if !status.is_success() {
            let refusal = Box::new(UpstreamRefusal::read(status, &answer));
            return Err(UpstreamError::Refused { target, refusal });
        }
        // An empty answer (204) is read as nothing.
        let answer: &[u8] = if answer.is_empty() { b"null" } else { &answer };
        serde_json::from_slice(answer)
            .map_err(|source| UpstreamError::Unreadable { target, source: source.into() })
    }

    /// Sends a request, and repeats it if that is allowed and may help.
    fn request_until(
        &self,
        request: Request,
        repeatable: Option<Box<RepeatableRequest>>,
        call: CallMetadata,
        policy: CallPolicy,
    ) -> impl Future<Output = Result<Response, UpstreamError>> {
        let Inner { caller, target, transport, .. } = &*self.0;
        let send =
            move |request, repeatable| transport.send(*caller, target, call, (request, repeatable));
        let (request, body) = observe_body(request);
        let in_memory = repeatable.as_ref().map(|repeatable| repeatable.body.clone());
        let again = repeatable
            .map(|repeatable| move || send(repeatable.request(), Some(repeatable.body.clone())));
        let status = |response: &Response| {
            (response.status(), response.headers().contains_key(header::RETRY_AFTER))
        };
        self.call_until((send(request, in_memory), body), again, status, call, policy)
    }

    /// Awaits an attempt, and makes it again if that is allowed and may help. The deadline in `call`
    /// is for all attempts together. `status_of` tells the status of an answer, and whether it says
    /// when to come back.
    async fn call_until<T, A: Future<Output = Result<T, UpstreamError>>>(
        &self,
        (first, body): (A, Option<Arc<BodyProgress>>),
        again: Option<impl Fn() -> A>,
        status_of: impl Fn(&T) -> (StatusCode, bool) + Copy,
        call: CallMetadata,
        policy: CallPolicy,
    ) -> Result<T, UpstreamError> {
        self.0.budget.deposit();
        let answer = self.attempt(first, body, status_of, call, policy).await;
        match again {
            Some(again) if is_transient(standing(&answer, status_of)) => {
                // Boxed, because it is rare and would enlarge the future of every call.
                Box::pin(self.repeat(answer, again, status_of, call, policy)).await
            }
            _ => answer,
        }
    }

    /// Calls again while the answer is a transient failure and the budget allows it.
    async fn repeat<T, A: Future<Output = Result<T, UpstreamError>>>(
        &self,
        mut answer: Result<T, UpstreamError>,
        again: impl Fn() -> A,
        status_of: impl Fn(&T) -> (StatusCode, bool) + Copy,
        call: CallMetadata,
        policy: CallPolicy,
    ) -> Result<T, UpstreamError> {
        let Inner { budget, counters, .. } = &*self.0;
        for retry in 1..ATTEMPTS_MAX {
            let pause = budget.pause(retry);
            let in_time = pause < call.deadline.remaining();
            if !is_transient(standing(&answer, status_of)) || !in_time || !budget.withdraw() {
                break;
            }
            tokio::time::sleep(pause).await;
            counters.count_retry();
            let next = self.attempt(again(), None, status_of, call, policy).await;
            if matches!(next, Err(UpstreamError::Open { .. })) {
                // The service's own answer says more than that the breaker opened.
                break;
            }
            answer = next;
        }
        answer
    }

    /// One attempt, with its outcome for the breaker. Nothing is sent before it is awaited.
    async fn attempt<T>(
        &self,
        sent: impl Future<Output = Result<T, UpstreamError>>,
        body: Option<Arc<BodyProgress>>,
        status_of: impl Fn(&T) -> (StatusCode, bool),
        call: CallMetadata,
        policy: CallPolicy,
    ) -> Result<T, UpstreamError> {
        let Inner { target, transport, breaker, counters, .. } = &*self.0;
        let admitted = if policy.is_streamed { breaker.admit_streamed() } else { breaker.admit() };
        let permit = match admitted {
            Ok(permit) => permit,
            Err(BreakerOpen { retry_after }) => {
                counters.count("open");
                return Err(UpstreamError::Open { target, retry_after });
            }
        };
        let answer = tokio::time::timeout_at(call.deadline.0, sent).await;
        let is_unread = body.as_ref().is_some_and(|body| !body.is_whole());
        let is_awaited = body.is_some_and(|body| body.is_awaited());
        let answer = match answer {
            Ok(answer) => answer,
            // The service waited for the client's body: the client was slow.
            Err(_) if is_awaited => Err(UpstreamError::RequestStalled { target }),
            Err(_) => Err(UpstreamError::Timeout { target }),
        };
        let (mut outcome, label) = classify_answer(standing(&answer, status_of));
        let is_late = policy.is_hurried && matches!(answer, Err(UpstreamError::Timeout { .. }));
        // One process of several has ended: the service has not.
        let is_of_one = matches!(answer, Err(UpstreamError::Interrupted { .. }))
            && matches!(transport, Transport::Remote { balancer, .. } if balancer.has_ready_address());
        if is_late || is_of_one || (policy.is_streamed && is_unread) {
            outcome = CallOutcome::Nothing;
        }
        permit.settle(outcome);
        counters.count(label);
        answer
    }

    fn malformed(&self, source: impl std::error::Error + Send + Sync + 'static) -> UpstreamError {
        UpstreamError::Malformed { target: self.0.target, source: source.into() }
    }
}

/// Where a remote service is, and what proves the caller to it.
#[derive(Clone, Debug)]
pub struct RemoteService {
    pub urls: ServiceUrls,
    /// [`crate::InternalCredentials::for_call`] of the caller to this service.
    pub credential: Secret,
    pub client: HttpClient,
}

/// A copy of a request, to make it again. Its body is in memory.
struct RepeatableRequest {
    parts: Parts,
    body: Bytes,
}

impl RepeatableRequest {
    fn of(request: &Request, body: Bytes) -> RepeatableRequest {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method = request.method().clone();
        parts.uri = request.uri().clone();
        parts.version = request.version();
        parts.headers = request.headers().clone();
        RepeatableRequest { parts, body }
    }

    fn request(&self) -> Request {
        Request::from_parts(self.parts.clone(), in_memory(&self.body))
    }
}

fn in_memory(bytes: &Bytes) -> Body {
    if bytes.is_empty() { Body::empty() } else { Body::from(bytes.clone()) }
}

/// Headers that say what only we may say, and one that our server has answered.
static NOT_PASSED_ON: [HeaderName; 7] =
    [CALLER, CREDENTIAL, TRACEPARENT, CORRELATION_ID, CAUSATION_ID, REQUEST_ID, header::EXPECT];

/// Removes headers of the connection that the request came on, and headers that only we may set.
fn clean(request: &mut Request) {
    // Path parameters and the like of the router that passes the request on would mix with those
    // of the service.
    request.extensions_mut().clear();
    let headers = request.headers_mut();
    remove_hop_by_hop(headers);
    headers.remove(header::HOST);
    // Most requests have none of them; looking is cheaper than removing what is not there.
    if headers.keys().any(|name| NOT_PASSED_ON.contains(name)) {
        for name in &NOT_PASSED_ON {
            headers.remove(name);
        }
    }
}

/// The status of an answer, refusals included, and whether it says when to come back.
type Standing<'a> = Result<(StatusCode, bool), &'a UpstreamError>;

fn standing<T>(
    answer: &Result<T, UpstreamError>,
    status_of: impl Fn(&T) -> (StatusCode, bool),
) -> Standing<'_> {
    match answer {
        Ok(answer) => Ok(status_of(answer)),
        Err(UpstreamError::Refused { refusal, .. }) => {
            Ok((refusal.status, refusal.extra.contains_key("retryAfter")))
        }
        Err(error) => Err(error),
    }
}

/// The outcome of a call for the breaker, and its label in the metrics.
fn classify_answer(answer: Standing<'_>) -> (CallOutcome, &'static str) {
    match answer {
        // A service that is busy and says when to come back works. If that counted as a failure, a
        // wave of logins would open the breaker for users who are logged in (M-12).
        Ok((StatusCode::SERVICE_UNAVAILABLE, true)) => (CallOutcome::Nothing, "busy"),
        Ok((status, _)) if status.is_server_error() => (CallOutcome::Failure, "failed"),
        Ok((status, _)) if status.is_client_error() => (CallOutcome::Success, "refused"),
        Ok(_) => (CallOutcome::Success, "ok"),
        Err(UpstreamError::Unreachable { .. }) => (CallOutcome::Failure, "unreachable"),
        Err(UpstreamError::Interrupted { .. }) => (CallOutcome::Failure, "interrupted"),
        Err(UpstreamError::Timeout { .. }) => (CallOutcome::Failure, "timeout"),
        Err(_) => (CallOutcome::Nothing, "malformed"),
    }
}

/// Whether the same call may well succeed in a moment.
fn is_transient(answer: Standing<'_>) -> bool {
    match answer {
        Ok((status, _)) => {
            matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE)
        }
        Err(error) => {
            matches!(error, UpstreamError::Unreachable { .. } | UpstreamError::Interrupted { .. })
        }
    }
}
