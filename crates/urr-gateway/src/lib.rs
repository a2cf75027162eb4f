//! The gateway: the only public door.
//!
//! It knows who may ask what of which service, how often and how urgently (`routes.rs`), and passes
//! requests on, inside the process or over HTTP. Only the gateway says who someone is.
//!
//! A request passes three things, from the outside in: the frame (`frame.rs`), the layers of every
//! service (request id, panics, deadline, size of the body), and the way (`way.rs`), where the
//! order of all checks is. Each of them has a file of its own.

mod client_address;
mod compress;
mod cors;
mod coverage;
mod credential;
mod csrf;
mod entry;
mod figures;
mod find;
mod foreign;
mod forward;
mod frame;
mod home;
mod overload;
mod path;
mod policy;
mod rate_limit;
mod refused;
mod reserved;
mod revoked;
mod routes;
mod security_headers;
mod settings;
mod sizes;
mod verified;
mod visitor;
mod way;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use urr_kernel::Clock;
use urr_limit::Limiter;
use urr_service::{Service, ServiceKit, Upstream};
use utoipa_axum::router::OpenApiRouter;

pub use client_address::AddressRange;
pub use coverage::check_coverage;
pub use overload::Concurrency;
pub use rate_limit::Rates;
pub use revoked::{RevocationFeed, RevokedTokens};
pub use routes::{
    Found, Methods, Policy, Priority, ROUTES, RateClass, Route, Timeout, find_route, match_route,
};
pub use settings::{Settings, Timeouts};

use crate::compress::Encoders;
use crate::figures::Figures;
use crate::frame::Frame;
use crate::overload::Overload;
use crate::verified::VerifiedTokens;
use crate::way::Way;

/// The door and what it needs: the services behind it, by name, and what is known about clients.
pub struct Gateway {
    upstreams: BTreeMap<&'static str, Upstream>,
    settings: Settings,
    /// Bodies of rows that have no bound of their own.
    body_bytes_max: usize,
    limiter: Limiter,
    overload: Overload,
    verified: VerifiedTokens,
    revoked: RevokedTokens,
    feed: Option<RevocationFeed>,
    figures: Figures,
    encoders: Encoders,
    clock: Clock,
}

impl Gateway {
    /// Rows of [`ROUTES`] whose service has no upstream are not there.
    pub fn new(
        upstreams: Vec<Upstream>,
        limiter: Limiter,
        settings: Settings,
        kit: &ServiceKit,
    ) -> Gateway {
        let upstreams: BTreeMap<_, _> =
            upstreams.into_iter().map(|upstream| (upstream.target(), upstream)).collect();
        let has_auth = upstreams.contains_key("auth");
        let revoked = if has_auth { RevokedTokens::default() } else { RevokedTokens::none() };
        let feed = upstreams.get("auth").map(|auth| {
            RevocationFeed::new(auth.clone(), revoked.clone(), kit.clock.clone(), kit.ids.clone())
        });
        let overload = Overload::new(upstreams.keys().copied(), settings.concurrency);
        let clock = kit.clock.clone();
        Gateway {
            upstreams,
            settings,
            body_bytes_max: kit.limits.body_bytes_max,
            limiter,
            overload,
            verified: VerifiedTokens::default(),
            revoked,
            feed,
            figures: Figures::default(),
            encoders: Encoders::default(),
            clock,
        }
    }

    /// What keeps the gateway informed of revoked tokens, if there is an auth service. Refresh it
    /// once before the door opens, then run it. Until it has read the list, nobody is a user.
    pub fn revocation_feed(&self) -> Option<RevocationFeed> {
        self.feed.clone()
    }

    /// The door itself. `pages` are answered by the gateway: health, documents.
    pub fn door(self, pages: Router, kit: &ServiceKit) -> Router {
        let mut kit = kit.clone();
        // What a row allows is kept on the way.
        kit.limits.body_bytes_max = self.body_bytes_max.max(self.settings.upload_bytes_max);
        let gateway = Arc::new(self);
        figures::show(&gateway, &kit.metrics);
        let services = Router::new().route_service("/api/{*rest}", Way(Arc::clone(&gateway)));
        let routes = OpenApiRouter::from(services)
            .route("/", get(home::home))
            .route("/home.css", get(home::style))
            .merge(OpenApiRouter::from(pages));
        Service::new("gateway", routes, &kit).router_with_outer_layer(Frame(gateway))
    }

    fn has(&self, route: &Route) -> bool {
        self.upstreams.contains_key(route.service)
    }

    fn upstream(&self, route: &Route) -> &Upstream {
        &self.upstreams[route.service]
    }

    fn allows_origin(&self, origin: &str) -> bool {
        self.settings.allowed_origins.iter().any(|allowed| allowed == origin)
    }
}
