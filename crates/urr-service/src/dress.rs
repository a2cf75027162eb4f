//! What every request of a service passes, in one visible order.
//!
//! It is one layer and not five, and all that need not wait is done before the future is made: what
//! a future holds is copied each time it is moved, and a request is large.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::Route;
use futures_util::FutureExt;
use futures_util::future::Either;
use tower::{Layer, Service};
use tracing::Instrument;

use crate::Limits;
use crate::body_limit::{Refused, limit_body};
use crate::caller::{InternalCredentials, verify_caller};
use crate::context::{Arrival, ContextState};
use crate::deadline::{self, Deadline, keep_deadline, time_allowed};
use crate::panics::caught;

/// The layer.
#[derive(Clone)]
pub(crate) struct Dress(Arc<Steps>);

struct Steps {
    context: ContextState,
    /// Given where other processes of ours call.
    credentials: Option<InternalCredentials>,
}

/// A route behind all steps.
#[derive(Clone)]
pub struct Dressed {
    steps: Arc<Steps>,
    inner: Route,
}

impl Dress {
    pub fn new(context: ContextState, credentials: Option<InternalCredentials>) -> Dress {
        Dress(Arc::new(Steps { context, credentials }))
    }
}

impl Layer<Route> for Dress {
    type Service = Dressed;

    fn layer(&self, inner: Route) -> Dressed {
        Dressed { steps: Arc::clone(&self.0), inner }
    }
}

impl Service<Request> for Dressed {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.inner, cx)
    }

    /// The context comes first, so that whatever a later step answers has its trace id and is
    /// counted; a panic is caught within the span it is logged in. A route does nothing before its
    /// future is polled, so that all its work is within the net, the deadline and the span.
    fn call(&mut self, mut request: Request) -> Self::Future {
        let steps = Arc::clone(&self.steps);
        let arrival = Arrival::note(&steps.context, &mut request);
        let time = time_allowed(steps.context.kit.limits.deadline_max, &mut request);
        let deadline = Deadline(arrival.begun + time);
        request.extensions_mut().insert(deadline);
        let answer = match arrival.span.in_scope(|| steps.check(time, request)) {
            Ok(request) => Either::Left(self.inner.call(request)),
            Err(refused) => Either::Right(Box::pin(refused.answer())),
        };
        let work = caught(keep_deadline(deadline, answer)).instrument(arrival.span.clone());
        Box::pin(work.map(move |response| Ok(arrival.answered(&steps.context, response))))
    }
}

impl Steps {
    fn check(&self, time: Duration, mut request: Request) -> Result<Request, Refused> {
        if time.is_zero() {
            return Err(deadline::exceeded().into());
        }
        if let Some(credentials) = &self.credentials {
            verify_caller(credentials, &mut request)?;
        }
        let Limits { body_bytes_max, .. } = self.context.kit.limits;
        limit_body(body_bytes_max, request)
    }
}
