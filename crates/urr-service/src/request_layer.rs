//! The layer that every request of a service passes: context, deadline, credentials, body limit,
//! panics, metrics.
//!
//! It is one layer and not five, and everything that need not wait is done before the future is
//! made, because a future is copied each time it is moved and a request is large.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::Route;
use futures_util::FutureExt;
use futures_util::future::{self, Either};
use tower::{Layer, Service};
use tracing::Instrument;

use crate::body_limit::{RefusedRequest, limit_body};
use crate::caller::{AcceptedCredentials, check_allowed, verify_caller};
use crate::context::{CallMetadata, ContextState, RequestRecord};
use crate::deadline::{self, Deadline, keep_deadline, time_allowed};
use crate::internal_call::{CallHandlers, InternalCall};
use crate::panics::{caught, caught_or};
use crate::{ApiError, Caller, RequestLimits};

#[derive(Clone)]
pub(crate) struct RequestLayer(Arc<LayerState>);

struct LayerState {
    context: ContextState,
    /// Set on listeners that our other processes call.
    credentials: Option<AcceptedCredentials>,
}

/// A route behind the request layer.
#[derive(Clone)]
pub struct LayeredRoute {
    state: Arc<LayerState>,
    inner: Route,
}

impl RequestLayer {
    pub fn new(context: ContextState, credentials: Option<AcceptedCredentials>) -> RequestLayer {
        RequestLayer(Arc::new(LayerState { context, credentials }))
    }
}

impl Layer<Route> for RequestLayer {
    type Service = LayeredRoute;

    fn layer(&self, inner: Route) -> LayeredRoute {
        LayeredRoute { state: Arc::clone(&self.0), inner }
    }
}

impl Service<Request> for LayeredRoute {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.inner, cx)
    }

    /// The context comes first, so that whatever a later step answers has its trace id and is
    /// counted. A route does nothing before its future is polled, so all of its work is within the
    /// deadline, the span and the catching of panics.
    fn call(&mut self, mut request: Request) -> Self::Future {
        let state = Arc::clone(&self.state);
        let record = RequestRecord::note(&state.context, &request);
        let longest = state.context.kit.limits.deadline_max;
        let time = time_allowed(longest, record.begun, &mut request);
        let deadline = Deadline(record.begun + time);
        CallMetadata { context: record.context, deadline }.put_into(request.extensions_mut());
        let answer = match record.span.in_scope(|| state.check(time, &mut request)) {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(refused) => Either::Right(Box::pin(refused.answer())),
        };
        let work = caught(keep_deadline(deadline, answer)).instrument(record.span.clone());
        Box::pin(work.map(move |response| Ok(record.answered(&state.context, response))))
    }
}

/// The handlers of a service for calls inside the process, with what the request layer does for
/// calls from outside.
#[derive(Clone)]
pub(crate) struct LocalCalls {
    pub handlers: CallHandlers,
    pub context: Arc<ContextState>,
}

impl LocalCalls {
    pub fn has<C: InternalCall>(&self) -> bool {
        self.handlers.find::<C>().is_some()
    }

    /// Answers a call. As nothing is spawned, a caller that is dropped drops the work, exactly as a
    /// closed connection would.
    pub fn answer<C: InternalCall>(
        &self,
        caller: Caller,
        request: &C,
        call: CallMetadata,
    ) -> impl Future<Output = Result<C::Answer, ApiError>> + use<C> {
        let handler = self.handlers.find::<C>().expect("the caller has looked for a handler");
        let (state, spec) = (Arc::clone(&self.context), C::SPEC);
        let record = RequestRecord::of_call(&state, &spec, &call);
        let time = call.deadline.remaining_at(record.begun).min(state.kit.limits.deadline_max);
        let deadline = Deadline(record.begun + time);
        let in_time = if time.is_zero() { Err(deadline::exceeded()) } else { Ok(()) };
        let work = in_time
            .and_then(|()| check_allowed(spec.callers, caller))
            .map(|()| handler(request.clone(), record.context))
            .map_or_else(|refused| Either::Left(future::ready(Err(refused))), Either::Right);
        let work = caught_or(tokio::time::timeout_at(deadline.0, work));
        let work = work.instrument(record.span.clone());
        work.map(move |answer| {
            let answer = answer.and_then(|answer| answer.unwrap_or(Err(deadline::exceeded())));
            let error = answer.as_ref().err();
            let status = error.map_or(StatusCode::OK, ApiError::status);
            record.count(&state, status, None, error);
            answer
        })
    }
}

impl LayerState {
    fn check(&self, time: Duration, request: &mut Request) -> Result<(), RefusedRequest> {
        if time.is_zero() {
            return Err(deadline::exceeded().into());
        }
        if let Some(credentials) = &self.credentials {
            verify_caller(credentials, request)?;
        }
        let RequestLimits { body_bytes_max, .. } = self.context.kit.limits;
        limit_body(body_bytes_max, request)
    }
}
