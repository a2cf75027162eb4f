//! The gateway: the only public HTTP server.
//!
//! The route table (`routes.rs`) says which service answers a path, who may call it, how often and
//! with which priority. The gateway checks all of that and forwards requests, inside the process or
//! over HTTP. Services learn only from the gateway who a user is.
//!
//! A request passes, from the outside in: the outer layer (`outer_layer.rs`), the request layer of
//! every service (request id, panics, deadline, body size), and the pipeline (`pipeline.rs`), which
//! holds the order of all checks. Each check has a file of its own.

mod authenticate;
mod browsers;
mod client_address;
mod compression;
mod entry_token;
mod forward;
mod headers;
mod metrics;
mod outer_layer;
mod overload;
mod path;
mod pipeline;
mod rate_limit;
mod request_limits;
mod revocation_feed;
mod routes;
mod settings;
mod stream_end;
mod verified_email;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use tokio::sync::Semaphore;
use tower::service_fn;
use urr_contracts::clients::AuthClient;
use urr_kernel::Clock;
use urr_service::{Service, ServiceKit, Upstream};
use utoipa_axum::router::OpenApiRouter;

pub use client_address::AddressRange;
pub use overload::ConcurrencyLimits;
pub use rate_limit::{Quota, RateDecision, RateLimiter, RateLimiterStats, RateLimits};
pub use revocation_feed::RevocationFeed;
pub use routes::{
    Methods, Policy, Priority, ROUTES, RateClass, Route, RouteMatch, Timeout, find_route,
    match_route,
};
pub use settings::{GatewaySettings, Timeouts};

use crate::authenticate::TokenCache;
use crate::metrics::GatewayMetrics;
use crate::outer_layer::OuterLayer;
use crate::overload::OverloadControl;

/// The gateway with the services it forwards to, by name, and its shared state.
pub struct Gateway {
    upstreams: BTreeMap<&'static str, Upstream>,
    settings: GatewaySettings,
    /// Applies to routes that have no limit of their own.
    body_bytes_max: usize,
    limiter: RateLimiter,
    overload: OverloadControl,
    token_cache: TokenCache,
    /// Without an auth service nothing can be revoked.
    feed: Option<RevocationFeed>,
    metrics: GatewayMetrics,
    /// See [`compression::ENCODERS_MAX`].
    encoders: Arc<Semaphore>,
    /// See [`request_limits::LARGE_BODIES_MAX`].
    large_bodies: Semaphore,
    clock: Clock,
}

impl Gateway {
    /// Routes of [`ROUTES`] whose service has no upstream answer 404.
    pub fn new(
        upstreams: Vec<Upstream>,
        limiter: RateLimiter,
        settings: GatewaySettings,
        kit: &ServiceKit,
    ) -> Gateway {
        let upstreams: BTreeMap<_, _> =
            upstreams.into_iter().map(|upstream| (upstream.target(), upstream)).collect();
        let feed = upstreams
            .get("auth")
            .map(|auth: &Upstream| RevocationFeed::new(AuthClient::new(auth.clone()), kit));
        let overload = OverloadControl::new(upstreams.keys().copied(), settings.concurrency);
        Gateway {
            upstreams,
            settings,
            body_bytes_max: kit.limits.body_bytes_max,
            limiter,
            overload,
            token_cache: TokenCache::new(kit.clock.clone()),
            feed,
            metrics: GatewayMetrics::default(),
            encoders: Arc::new(Semaphore::new(compression::ENCODERS_MAX)),
            large_bodies: Semaphore::new(request_limits::LARGE_BODIES_MAX),
            clock: kit.clock.clone(),
        }
    }

    /// The feed of revoked tokens, if there is an auth service. Refresh it once before the server
    /// starts, then run it: until it has read the whole list, no user is authenticated.
    pub fn revocation_feed(&self) -> Option<RevocationFeed> {
        self.feed.clone()
    }

    /// The public router. `pages` makes the routes beside the API: health, documentation, the pages of
    /// the site. It is given the API, which pages ask on behalf of their clients.
    pub fn router(self, pages: impl FnOnce(Router) -> Router, kit: &ServiceKit) -> Router {
        let mut kit = kit.clone();
        // The pipeline applies the narrower limit of each route.
        kit.limits.body_bytes_max = self.body_bytes_max.max(self.settings.upload_bytes_max);
        let gateway = Arc::new(self);
        metrics::register(&gateway, &kit.metrics);
        let pipeline = service_fn({
            let gateway = Arc::clone(&gateway);
            move |request| pipeline::run(Arc::clone(&gateway), request)
        });
        let services = Router::new().route_service("/api/{*rest}", pipeline);
        let routes = OpenApiRouter::from(services.clone().merge(pages(services)));
        Service::new("gateway", routes, &kit).router_with_outer_layer(OuterLayer(gateway))
    }

    fn has_service(&self, route: &Route) -> bool {
        self.upstreams.contains_key(route.service)
    }

    fn upstream(&self, route: &Route) -> &Upstream {
        &self.upstreams[route.service]
    }

    fn allows_origin(&self, origin: &str) -> bool {
        self.settings.allowed_origins.iter().any(|allowed| allowed == origin)
    }
}
