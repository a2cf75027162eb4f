//! What every request of a service passes, in one visible order.
//!
//! It is one layer and not five: a layer of axum copies all that is inside it for every request,
//! and five of them cost more than what they do.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tower::{Layer, Service};

use crate::body_limit::limit_body;
use crate::caller::{InternalCredentials, verify_caller};
use crate::context::{ContextState, give_context};
use crate::deadline::keep_deadline;
use crate::panics::caught;
use crate::{ApiError, Limits};

/// The layer.
#[derive(Clone)]
pub(crate) struct Dress(Arc<Steps>);

struct Steps {
    context: ContextState,
    /// Given where other processes of ours call.
    credentials: Option<InternalCredentials>,
}

#[derive(Clone)]
pub(crate) struct Dressed<S> {
    steps: Arc<Steps>,
    inner: S,
}

impl Dress {
    pub fn new(context: ContextState, credentials: Option<InternalCredentials>) -> Dress {
        Dress(Arc::new(Steps { context, credentials }))
    }
}

impl<S> Layer<S> for Dress {
    type Service = Dressed<S>;

    fn layer(&self, inner: S) -> Dressed<S> {
        Dressed { steps: Arc::clone(&self.0), inner }
    }
}

impl<S> Service<Request> for Dressed<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let steps = Arc::clone(&self.steps);
        // The one that is ready goes; the copy is asked next time whether it is.
        let copy = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, copy);
        Box::pin(async move { Ok(steps.pass(request, inner).await) })
    }
}

impl Steps {
    /// The context comes first, so that whatever a later step answers has its trace id and is
    /// counted; a panic is caught within the span it is logged in.
    async fn pass<S>(&self, request: Request, inner: S) -> Response
    where
        S: Service<Request, Response = Response, Error = Infallible>,
    {
        let Limits { body_bytes_max, deadline_max } = self.context.kit.limits;
        let work = async |request: Request| {
            let checked = self.check(request, body_bytes_max).await;
            answer(checked, inner).await
        };
        let in_time =
            async |request: Request| caught(keep_deadline(deadline_max, request, work)).await;
        give_context(&self.context, request, in_time).await
    }

    async fn check(
        &self,
        mut request: Request,
        body_bytes_max: usize,
    ) -> Result<Request, ApiError> {
        if let Some(credentials) = &self.credentials {
            verify_caller(credentials, &mut request)?;
        }
        limit_body(body_bytes_max, request).await
    }
}

async fn answer<S>(checked: Result<Request, ApiError>, mut inner: S) -> Response
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    match checked {
        Ok(request) => inner.call(request).await.unwrap_or_else(|never| match never {}),
        Err(refused) => refused.into_response(),
    }
}
