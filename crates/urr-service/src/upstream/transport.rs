//! One attempt of a call: into a router of this process, or over HTTP to another one.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use futures_util::future::{self, BoxFuture};
use futures_util::{FutureExt, TryFutureExt};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tower::Service as _;
use urr_kernel::Secret;

use super::balancer::Balancer;
use super::error::UpstreamError;
use crate::caller::{CALLER, CREDENTIAL, Caller};
use crate::context::{CallMetadata, write_context};
use crate::request_layer::LocalCalls;
use crate::{ApiError, Service, panics};

/// A service in this process. It can be given to callers before the service exists, because
/// services call each other in circles. Until it is set, calls fail as to a service that cannot be
/// reached. Clones share it.
#[derive(Clone, Default)]
pub struct LocalService(Arc<OnceLock<StartedService>>);

struct StartedService {
    router: Router,
    /// None for a bare router, as tests have it.
    calls: Option<LocalCalls>,
}

impl LocalService {
    /// Setting it twice is a bug.
    pub fn set(&self, service: &Service) {
        let started =
            StartedService { router: service.local_router(), calls: Some(service.local_calls()) };
        assert!(self.0.set(started).is_ok(), "a local service is set once");
    }

    pub(super) fn calls(&self) -> Option<&LocalCalls> {
        self.0.get()?.calls.as_ref()
    }
}

impl fmt::Debug for LocalService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalService").finish_non_exhaustive()
    }
}

impl From<Router> for LocalService {
    fn from(router: Router) -> LocalService {
        LocalService(Arc::new(OnceLock::from(StartedService { router, calls: None })))
    }
}

impl From<&Service> for LocalService {
    fn from(service: &Service) -> LocalService {
        let local = LocalService::default();
        local.set(service);
        local
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the service has not started yet")]
struct NotStarted;

/// How a service is reached.
#[derive(Debug)]
pub(crate) enum Transport {
    Local(LocalService),
    Remote { balancer: Arc<Balancer>, credential: Secret },
}

impl Transport {
    /// `repeatable` is the body of a request that may be made twice.
    ///
    /// Not an `async fn`, because the future of one holds its arguments twice and a request is large.
    /// And boxed: its callers move it several times until it is awaited.
    pub fn send(
        &self,
        caller: Caller,
        target: &'static str,
        call: CallMetadata,
        (mut request, repeatable): (Request, Option<Bytes>),
    ) -> impl Future<Output = Result<Response, UpstreamError>> {
        let sent: BoxFuture<'_, Result<Response, UpstreamError>> = match self {
            Transport::Local(LocalService(started)) => match started.get() {
                Some(StartedService { router, .. }) => {
                    request.extensions_mut().insert(caller);
                    request.extensions_mut().insert(call);
                    Box::pin(send_local(router.clone(), request).map(Ok))
                }
                None => Box::pin(future::ready(Err(UpstreamError::Unreachable {
                    target,
                    source: NotStarted.into(),
                }))),
            },
            Transport::Remote { balancer, credential } => {
                write_context(&call.context, request.headers_mut());
                call.deadline.write(request.headers_mut());
                prove(request.headers_mut(), caller, credential);
                Box::pin(balancer.send(request, repeatable))
            }
        };
        sent.map_ok(|mut response| {
            remove_hop_by_hop(response.headers_mut());
            response
        })
    }
}

/// Calls a router of this process. The call is awaited in place and not spawned: a caller that is
/// dropped drops it, exactly as a closed connection would.
fn send_local(mut router: Router, request: Request) -> impl Future<Output = Response> {
    // A router is always ready, and its handlers do nothing before its future is polled.
    let work = router.call(request).map(|answer: Result<Response, Infallible>| match answer {
        Ok(response) => response,
    });
    panics::caught(work).map(|mut response| {
        // The request layer of a service has logged and removed its error. A bare router, as tests
        // use it, has no such layer.
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            error.log();
        }
        response.extensions_mut().clear();
        response
    })
}

fn prove(headers: &mut HeaderMap, caller: Caller, credential: &Secret) {
    headers.insert(CALLER, HeaderValue::from_static(caller.as_str()));
    let mut secret =
        HeaderValue::from_str(credential.expose()).expect("credentials are derived as hexadecimal");
    secret.set_sensitive(true);
    headers.insert(CREDENTIAL, secret);
}

static HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Removes the headers that concern one connection, not the message (RFC 9110, 7.6.1).
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // Most messages have none of them; looking is cheaper than removing what is not there.
    if !headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        return;
    }
    let listed: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // A client must not make us drop the headers that we add ourselves by listing them here.
    let is_ours =
        |name: &HeaderName| ["x-user-", "x-urr-"].iter().any(|p| name.as_str().starts_with(p));
    for name in listed.into_iter().filter(|name| !is_ours(name)) {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// A request body that records whether it was read to its end.
struct ObservedBody {
    body: Body,
    progress: Arc<BodyProgress>,
}

/// How far the body of a request is.
#[derive(Debug, Default)]
pub(crate) struct BodyProgress {
    is_whole: AtomicBool,
    is_awaited: AtomicBool,
}

impl BodyProgress {
    /// Whether the service has got it to its end.
    pub fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Relaxed)
    }

    /// Whether the client has to send more of it before anything can go on.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }
}

/// Wraps the body of a request to learn how far it is. `None` if there is no body.
pub(crate) fn observe_body(request: Request) -> (Request, Option<Arc<BodyProgress>>) {
    if request.body().is_end_stream() {
        return (request, None);
    }
    let progress = Arc::new(BodyProgress::default());
    let observed = Arc::clone(&progress);
    (request.map(|body| Body::new(ObservedBody { body, progress })), Some(observed))
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.progress.is_awaited.store(frame.is_pending(), Ordering::Relaxed);
        let frame = ready!(frame);
        if frame.is_none() || self.body.is_end_stream() {
            self.progress.is_whole.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body that fails when the service stops sending in the middle of it.
///
/// Only the wait for the service counts: a client that reads slowly leaves the body unpolled.
pub(crate) struct TimedBody {
    body: Body,
    silence_max: Duration,
    /// Created at the first wait: most answers are complete at once.
    alarm: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the service stopped sending in the middle of its answer")]
pub(crate) struct BodyStalled;

impl TimedBody {
    pub fn new(body: Body, silence_max: Duration) -> TimedBody {
        TimedBody { body, silence_max, alarm: None, waiting: false }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.waiting = false;
            return Poll::Ready(frame);
        }
        let silent_until = Instant::now() + self.silence_max;
        let is_new = !std::mem::replace(&mut self.waiting, true);
        let alarm =
            self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(silent_until)));
        if is_new {
            alarm.as_mut().reset(silent_until);
        }
        ready!(alarm.as_mut().poll(cx));
        Poll::Ready(Some(Err(axum::Error::new(BodyStalled))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_stops_in_the_middle_fails_after_the_silence() {
        let first = stream::iter([Ok::<_, axum::Error>("half")]);
        let body = Body::from_stream(first.chain(stream::pending()));
        let mut body = TimedBody::new(body, Duration::from_secs(3));
        assert!(body.frame().await.unwrap().is_ok());
        // A client that is slow to ask for the rest does not use up the time of the service.
        tokio::time::advance(Duration::from_secs(60)).await;
        let asked = Instant::now();
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(error.into_inner().is::<BodyStalled>());
        assert_eq!(asked.elapsed().as_secs(), 3);
    }

    #[test]
    fn headers_of_the_connection_do_not_travel_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private, x-user-id, X-Urr-Caller"),
            ("x-private", "1"),
            ("x-user-id", "ours"),
            ("x-urr-caller", "ours"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        assert_eq!(headers.len(), 3);
        assert!(headers.contains_key("x-user-id") && headers.contains_key("x-urr-caller"));
        assert!(headers.contains_key("accept"));
    }
}
