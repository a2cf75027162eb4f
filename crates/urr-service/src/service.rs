//! A service: its routes, their description, and the request layer around them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use tower::Layer;
use tower::layer::util::{Identity as NoLayer, Stack};
use urr_kernel::{Clock, IdSource};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::caller::InternalCredentials;
use crate::context::ContextState;
use crate::error::{unknown_path, wrong_method};
use crate::internal_call::{CallHandlers, InternalCalls};
use crate::metrics::Metrics;
use crate::request_layer::{LayeredRoute, LocalCalls, RequestLayer};

/// What every service of a process is given.
#[derive(Clone, Debug)]
pub struct ServiceKit {
    pub clock: Clock,
    pub ids: IdSource,
    pub metrics: Metrics,
    pub limits: RequestLimits,
}

/// What a request may cost at most.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    pub body_bytes_max: usize,
    /// How long a handler may take when its caller does not ask for less.
    pub deadline_max: Duration,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits { body_bytes_max: 1024 * 1024, deadline_max: Duration::from_secs(30) }
    }
}

/// A service with its routes and their description.
#[derive(Clone)]
pub struct Service {
    name: &'static str,
    routes: Router,
    openapi: OpenApi,
    handlers: CallHandlers,
    kit: ServiceKit,
}

impl Service {
    pub fn new(name: &'static str, routes: OpenApiRouter, kit: &ServiceKit) -> Service {
        let (routes, openapi) = routes.split_for_parts();
        let routes = routes.fallback(unknown_path).method_not_allowed_fallback(wrong_method);
        Service { name, routes, openapi, handlers: CallHandlers::default(), kit: kit.clone() }
    }

    /// The same service, which also answers internal calls. They are not described.
    pub fn with_calls<S: Clone + Send + Sync + 'static>(self, calls: InternalCalls<S>) -> Service {
        let (routes, handlers) = calls.into_parts();
        Service { routes: self.routes.merge(routes), handlers, ..self }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn openapi(&self) -> &OpenApi {
        &self.openapi
    }

    /// What answers internal calls inside the process.
    pub(crate) fn local_calls(&self) -> LocalCalls {
        let context = ContextState::new(self.name, self.kit.clone());
        LocalCalls { handlers: self.handlers.clone(), context: Arc::new(context) }
    }

    /// For requests inside the process, where nobody has a credential. Credential headers mean nothing
    /// here: only [`crate::Upstream::local`] can say who calls.
    pub fn local_router(&self) -> Router {
        self.layered(None, NoLayer::new())
    }

    /// For the public listener, where nobody has a credential either. `outer` is around the request
    /// layer: it sees every request first and every answer last.
    pub fn router_with_outer_layer<F>(&self, outer: F) -> Router
    where
        F: Layer<LayeredRoute> + Clone + Send + Sync + 'static,
        F::Service: tower::Service<Request, Response = Response, Error = Infallible>,
        F::Service: Clone + Send + Sync + 'static,
        <F::Service as tower::Service<Request>>::Future: Send,
    {
        self.layered(None, outer)
    }

    /// For a listener that other processes of ours call.
    pub fn network_router(&self, credentials: &InternalCredentials) -> Router {
        self.layered(Some(credentials), NoLayer::new())
    }

    fn layered<F>(&self, credentials: Option<&InternalCredentials>, outer: F) -> Router
    where
        F: Layer<LayeredRoute> + Clone + Send + Sync + 'static,
        F::Service: tower::Service<Request, Response = Response, Error = Infallible>,
        F::Service: Clone + Send + Sync + 'static,
        <F::Service as tower::Service<Request>>::Future: Send,
    {
        let Service { name, routes, kit, .. } = self;
        let context = ContextState::new(name, kit.clone());
        let accepted = credentials.map(|credentials| credentials.accepted_by(name));
        let layer = RequestLayer::new(context, accepted);
        // `with_state` makes the router build its routes now and not for every request.
        routes.clone().layer(Stack::new(layer, outer)).with_state(())
    }
}
