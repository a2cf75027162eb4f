//! A service as it is dressed for the world.

use std::convert::Infallible;
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
use crate::metrics::Metrics;
use crate::request_layer::{LayeredRoute, RequestLayer};

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

/// A service with its routes and their description, ready to be dressed.
#[derive(Clone)]
pub struct Service {
    name: &'static str,
    routes: Router,
    openapi: OpenApi,
    kit: ServiceKit,
}

impl Service {
    pub fn new(name: &'static str, routes: OpenApiRouter, kit: &ServiceKit) -> Service {
        let (routes, openapi) = routes.split_for_parts();
        let routes = routes.fallback(unknown_path).method_not_allowed_fallback(wrong_method);
        Service { name, routes, openapi, kit: kit.clone() }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn openapi(&self) -> &OpenApi {
        &self.openapi
    }

    /// For calls inside the process, where nobody has a credential. Credential headers mean nothing
    /// here: only [`crate::Upstream::local`] can say who calls.
    pub fn local_router(&self) -> Router {
        self.dress(None, NoLayer::new())
    }

    /// For the public door, where nobody has a credential either. `frame` is around all the rest:
    /// it sees every request first and every answer last.
    pub fn router_with_outer_layer<F>(&self, frame: F) -> Router
    where
        F: Layer<LayeredRoute> + Clone + Send + Sync + 'static,
        F::Service: tower::Service<Request, Response = Response, Error = Infallible>,
        F::Service: Clone + Send + Sync + 'static,
        <F::Service as tower::Service<Request>>::Future: Send,
    {
        self.dress(None, frame)
    }

    /// For a listener that other processes of ours call.
    pub fn network_router(&self, credentials: &InternalCredentials) -> Router {
        self.dress(Some(credentials), NoLayer::new())
    }

    fn dress<F>(&self, credentials: Option<&InternalCredentials>, frame: F) -> Router
    where
        F: Layer<LayeredRoute> + Clone + Send + Sync + 'static,
        F::Service: tower::Service<Request, Response = Response, Error = Infallible>,
        F::Service: Clone + Send + Sync + 'static,
        <F::Service as tower::Service<Request>>::Future: Send,
    {
        let Service { name, routes, kit, .. } = self;
        let context = ContextState { service: name, kit: kit.clone() };
        let dress = RequestLayer::new(context, credentials.cloned());
        // With its state given, a router makes its routes now and not for every request.
        routes.clone().layer(Stack::new(dress, frame)).with_state(())
    }
}
