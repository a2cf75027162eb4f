//! The gateway: the only public door.
//!
//! It knows which service answers which path, and passes requests on, inside the process or over
//! HTTP. Identity headers of a client are removed: only the gateway says who someone is.

mod forward;
mod home;
mod routes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::map_request;
use axum::routing::{any, get};
use urr_service::{Service, ServiceKit, Upstream};
use utoipa_axum::router::OpenApiRouter;

pub use routes::{ROUTES, Route, find_route};

/// The services behind the door, by name.
pub struct Gateway {
    upstreams: BTreeMap<&'static str, Upstream>,
    timeout: Duration,
}

impl Gateway {
    /// Every service that [`ROUTES`] names must have an upstream.
    pub fn new(upstreams: Vec<Upstream>, timeout: Duration) -> Gateway {
        let upstreams: BTreeMap<_, _> =
            upstreams.into_iter().map(|upstream| (upstream.target(), upstream)).collect();
        for route in ROUTES {
            assert!(upstreams.contains_key(route.service), "{} has no upstream", route.service);
        }
        Gateway { upstreams, timeout }
    }

    /// The door itself. `pages` are answered by the gateway: health, documents.
    pub fn door(self, pages: Router, kit: &ServiceKit) -> Router {
        let routes = OpenApiRouter::new()
            .route("/api/{*rest}", any(forward::forward))
            .with_state(Arc::new(self))
            .route("/", get(home::home))
            .route("/home.css", get(home::style))
            .merge(OpenApiRouter::from(pages));
        let router = Service::new("gateway", routes, kit).local_router();
        // Before anything else looks at them.
        router.layer(map_request(forward::without_reserved))
    }
}
