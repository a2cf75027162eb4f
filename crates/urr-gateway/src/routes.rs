//! The route table: which service answers a path, for whom, and under which limits.
//!
//! A route cannot be written without its policy, and a path without a route answers 404; `/internal`
//! has none. The first route that matches decides, so exact patterns stand above general ones.

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::IntoResponse;
use urr_service::{ApiError, RoleGroup};

use crate::Gateway;
use crate::pipeline::EarlyResponse;

/// One row of the table: requests that are treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub methods: Methods,
    /// `{name}` matches any one segment, a final `**` any number of segments, also none.
    pub pattern: &'static str,
    pub service: &'static str,
    pub policy: Policy,
    pub rate_class: RateClass,
    pub priority: Priority,
    pub timeout: Timeout,
    pub body: BodySize,
    /// The length of the pattern's fixed prefix, which rules out most routes quickly.
    fixed: usize,
}

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Everybody. The service gets the user if there is one.
    Public,
    /// Users who are logged in.
    User,
    /// Users who are logged in and have an entry token of the waiting room.
    Admitted,
    /// Users whose role is in the group. Which events they may touch, the service decides.
    Role(RoleGroup),
}

impl Policy {
    /// Administrators.
    pub const ADMIN: Policy = Policy::Role(RoleGroup::Admin);
}

/// Which rate limit a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    Auth,
    /// Like `Auth`, and also per account and per address, against password guessing.
    Login,
    /// Per session instead of per user, because the access token has expired by then.
    Refresh,
    Queue,
    Booking,
    /// Like `Booking`, and also per user and what is paid, against trying cards.
    Pay,
    General,
    /// Notices of payment providers. They also share a few places among the requests in progress.
    Webhook,
}

/// Which requests are served longest under overload. Later variants are shed first, except `Line`,
/// which has permits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    Pay,
    Hold,
    /// Joining a line and asking for one's position.
    Line,
    Browse,
}

urr_kernel::named_enum!(RateClass {
    Auth => "auth",
    Login => "login",
    Refresh => "refresh",
    Queue => "queue",
    Booking => "booking",
    Pay => "pay",
    General => "general",
    Webhook => "webhook",
});
urr_kernel::named_enum!(Priority {
    Pay => "pay",
    Hold => "hold",
    Line => "line",
    Browse => "browse",
});

/// Which of the configured timeouts applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    General,
    Payment,
    Queue,
}

/// How large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    Normal,
    /// A notice of a payment provider. Nobody is logged in who sends it.
    Webhook,
    /// An image. It is passed on while it arrives.
    Upload,
}

/// A set of methods. GET includes HEAD, so that HEAD cannot evade a rule for GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods(u8);

impl Methods {
    pub const GET: Methods = Methods(1);
    pub const POST: Methods = Methods(2);
    pub const PUT: Methods = Methods(4);
    pub const PATCH: Methods = Methods(8);
    pub const DELETE: Methods = Methods(16);
    /// Every method that changes something.
    pub const UNSAFE: Methods = Methods(2 | 4 | 8 | 16);
    pub const ALL: Methods = Methods(1 | 2 | 4 | 8 | 16);

    const NAMED: [(Methods, &'static str); 5] = [
        (Methods::GET, "GET, HEAD"),
        (Methods::POST, "POST"),
        (Methods::PUT, "PUT"),
        (Methods::PATCH, "PATCH"),
        (Methods::DELETE, "DELETE"),
    ];

    /// The set of one method; empty for methods that no route has.
    fn of(method: &Method) -> Methods {
        match method.as_str() {
            "GET" | "HEAD" => Methods::GET,
            "POST" => Methods::POST,
            "PUT" => Methods::PUT,
            "PATCH" => Methods::PATCH,
            "DELETE" => Methods::DELETE,
            _ => Methods(0),
        }
    }

    pub fn contains(self, method: &Method) -> bool {
        self.0 & Methods::of(method).0 != 0
    }

    fn union(self, other: Methods) -> Methods {
        Methods(self.0 | other.0)
    }

    /// The value of the `Allow` header.
    pub fn names(self) -> String {
        let named = Methods::NAMED.into_iter().filter(|(methods, _)| self.0 & methods.0 != 0);
        named.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
    }
}

const fn route(
    methods: Methods,
    pattern: &'static str,
    service: &'static str,
    policy: Policy,
    rate_class: RateClass,
    priority: Priority,
    timeout: Timeout,
) -> Route {
    let fixed = fixed_bytes(pattern.as_bytes());
    let body = BodySize::Normal;
    Route { methods, pattern, service, policy, rate_class, priority, timeout, body, fixed }
}

const fn upload(row: Route) -> Route {
    Route { body: BodySize::Upload, ..row }
}

const fn webhook(row: Route) -> Route {
    Route { body: BodySize::Webhook, rate_class: RateClass::Webhook, ..row }
}

/// The bytes before the slash of the first segment that is not fixed.
const fn fixed_bytes(pattern: &[u8]) -> usize {
    let mut end = 0;
    while end + 1 < pattern.len() {
        if pattern[end] == b'/' && matches!(pattern[end + 1], b'{' | b'*') {
            return end;
        }
        end += 1;
    }
    pattern.len()
}

pub const ROUTES: &[Route] = {
    use Policy::{Admitted, Public, User};
    const ADMIN: Policy = Policy::ADMIN;
    const SUPPORT: Policy = Policy::Role(RoleGroup::Support);
    const ORGANISER: Policy = Policy::Role(RoleGroup::Organiser);
    const EVENT_READER: Policy = Policy::Role(RoleGroup::EventReader);
    const DOOR_STAFF: Policy = Policy::Role(RoleGroup::DoorStaff);
    use Priority::{Browse, Hold, Line, Pay};
    use RateClass::{Auth, Booking, General, Login, Pay as PayRate, Queue as QueueRate, Refresh};
    use Timeout::{General as Default, Payment, Queue};
    const GET: Methods = Methods::GET;
    const POST: Methods = Methods::POST;
    const PUT: Methods = Methods::PUT;
    const DELETE: Methods = Methods::DELETE;
    const UNSAFE: Methods = Methods::UNSAFE;
    const ALL: Methods = Methods::ALL;
    const CLOSE_REFUND: &str = "/api/admin/payments/{id}/refunds/{refundId}/close";
    const CANCEL_PREVIEW: &str = "/api/admin/events/{id}/cancel-preview";
    const RESERVATIONS_CSV: &str = "/api/admin/events/{id}/reservations.csv";
    const PAYMENTS_CSV: &str = "/api/admin/events/{id}/payments.csv";
    const SETTLEMENT: &str = "/api/admin/events/{id}/settlement";
    const SETTLEMENT_CSV: &str = "/api/admin/events/{id}/settlement.csv";
    &[
        // Buyers must be able to log in and stay logged in, so these are not shed first.
        route(POST, "/api/auth/login", "auth", Public, Login, Hold, Default),
        route(POST, "/api/auth/register", "auth", Public, Login, Hold, Default),
        route(POST, "/api/auth/refresh", "auth", Public, Refresh, Hold, Default),
        // Every page loads the user; that must not use up the login attempts.
        route(GET, "/api/auth/me", "auth", User, General, Hold, Default),
        route(UNSAFE, "/api/auth/me", "auth", User, Auth, Hold, Default),
        route(GET, "/api/auth/me/**", "auth", User, General, Hold, Default),
        route(UNSAFE, "/api/auth/me/**", "auth", User, Auth, Hold, Default),
        route(GET, "/api/auth/terms", "auth", Public, General, Hold, Default),
        route(UNSAFE, "/api/auth/terms", "auth", User, Auth, Hold, Default),
        route(GET, "/api/auth/terms/{kind}", "auth", Public, General, Hold, Default),
        route(UNSAFE, "/api/auth/password", "auth", User, Auth, Hold, Default),
        route(GET, "/api/auth/admin/users", "auth", SUPPORT, General, Hold, Default),
        route(ALL, "/api/auth/admin/**", "auth", ADMIN, General, Hold, Default),
        route(POST, "/api/auth/social/{provider}/link", "auth", User, Auth, Hold, Default),
        route(ALL, "/api/auth/identity/**", "auth", User, Auth, Hold, Default),
        // A bot check before the login attempt, which is counted itself.
        route(GET, "/api/auth/challenge", "auth", Public, General, Hold, Default),
        // The login page loads it.
        route(GET, "/api/auth/social", "auth", Public, General, Hold, Default),
        // Mails to an address are counted like logins, by the address too.
        route(POST, "/api/auth/password/forgot", "auth", Public, Login, Hold, Default),
        route(POST, "/api/auth/email/verification", "auth", User, Auth, Hold, Default),
        // Logout and social login need no login.
        route(ALL, "/api/auth/**", "auth", Public, Auth, Hold, Default),
        // Payment providers have no login; the service verifies their webhooks.
        webhook(route(POST, "/api/payments/webhooks/**", "payment", Public, General, Pay, Payment)),
        route(GET, "/api/payments/**", "payment", User, General, Pay, Payment),
        route(UNSAFE, "/api/payments/**", "payment", User, PayRate, Pay, Payment),
        route(GET, "/api/notifications", "mail", User, General, Browse, Default),
        // Who may change or delete a post, the service decides.
        route(GET, "/api/community/**", "community", Public, General, Browse, Default),
        route(UNSAFE, "/api/community/**", "community", User, General, Browse, Default),
        route(GET, "/api/news/**", "community", Public, General, Browse, Default),
        route(UNSAFE, "/api/news/**", "community", ORGANISER, General, Browse, Default),
        route(GET, "/api/stats/events/**", "stats", ORGANISER, General, Browse, Default),
        route(GET, "/api/stats/events.csv", "stats", ORGANISER, General, Browse, Default),
        route(GET, "/api/stats/**", "stats", ADMIN, General, Browse, Default),
        route(GET, "/api/events/**", "catalog", Public, General, Browse, Default),
        route(GET, "/api/artists/**", "catalog", Public, General, Browse, Default),
        route(GET, "/api/venues/**", "catalog", Public, General, Browse, Default),
        // E-6: this belongs to the waiting room although its prefix is the catalog's.
        route(GET, "/api/admin/queue/log", "queue", ADMIN, General, Hold, Queue),
        route(GET, "/api/admin/queue/**", "queue", EVENT_READER, General, Hold, Queue),
        route(UNSAFE, "/api/admin/queue/**", "queue", ORGANISER, General, Hold, Queue),
        route(GET, "/api/admin/events/{id}/live", "queue", EVENT_READER, General, Hold, Queue),
        // Tickets and check-in belong to the ticket service.
        route(GET, "/api/admin/reservations/log", "ticket", ADMIN, General, Hold, Default),
        route(ALL, "/api/admin/reservations/audit", "ticket", ADMIN, General, Hold, Default),
        route(ALL, "/api/admin/reservations/**", "ticket", EVENT_READER, General, Hold, Default),
        route(
            GET,
            "/api/admin/events/{id}/seat-map",
            "ticket",
            EVENT_READER,
            General,
            Browse,
            Default,
        ),
        route(ALL, "/api/admin/events/{id}/tickets", "ticket", ORGANISER, General, Browse, Default),
        // What organisers look at: tickets and buyers here, money in the payment service.
        route(GET, CANCEL_PREVIEW, "ticket", EVENT_READER, General, Browse, Default),
        route(GET, RESERVATIONS_CSV, "ticket", EVENT_READER, General, Browse, Default),
        route(GET, PAYMENTS_CSV, "payment", EVENT_READER, General, Browse, Payment),
        route(GET, SETTLEMENT, "payment", EVENT_READER, General, Browse, Payment),
        route(GET, SETTLEMENT_CSV, "payment", EVENT_READER, General, Browse, Payment),
        route(
            ALL,
            "/api/admin/events/{id}/staff/**",
            "ticket",
            ORGANISER,
            General,
            Browse,
            Default,
        ),
        route(GET, "/api/admin/memberships", "ticket", EVENT_READER, General, Browse, Default),
        route(GET, "/api/admin/transfers", "ticket", EVENT_READER, General, Browse, Default),
        route(
            GET,
            "/api/admin/events/{id}/check-in-list",
            "ticket",
            DOOR_STAFF,
            General,
            Browse,
            Default,
        ),
        route(
            GET,
            "/api/admin/events/{id}/check-in-conflicts",
            "ticket",
            DOOR_STAFF,
            General,
            Browse,
            Default,
        ),
        route(
            ALL,
            "/api/admin/events/{id}/house-seats/**",
            "ticket",
            ORGANISER,
            General,
            Hold,
            Default,
        ),
        route(
            ALL,
            "/api/admin/events/{id}/complimentary-tickets/**",
            "ticket",
            ORGANISER,
            General,
            Hold,
            Default,
        ),
        route(
            ALL,
            "/api/admin/events/{id}/box-office/**",
            "ticket",
            DOOR_STAFF,
            General,
            Hold,
            Default,
        ),
        route(ALL, "/api/admin/tickets/**", "ticket", ORGANISER, General, Browse, Default),
        route(ALL, "/api/admin/check-ins/**", "ticket", DOOR_STAFF, General, Hold, Default),
        route(GET, "/api/admin/payments/log", "payment", ADMIN, General, Pay, Payment),
        route(ALL, "/api/admin/payments/audit", "payment", ADMIN, General, Pay, Payment),
        route(GET, "/api/admin/payments/ledger.csv", "payment", ADMIN, General, Browse, Payment),
        // Only an administrator says that a refund was paid by other means.
        route(ALL, CLOSE_REFUND, "payment", ADMIN, General, Pay, Payment),
        route(ALL, "/api/admin/payments/**", "payment", EVENT_READER, General, Pay, Payment),
        route(GET, "/api/admin/community/log", "community", ADMIN, General, Browse, Default),
        route(ALL, "/api/admin/community/**", "community", EVENT_READER, General, Browse, Default),
        route(GET, "/api/admin/mails/log", "mail", ADMIN, General, Browse, Default),
        route(ALL, "/api/admin/mails/**", "mail", SUPPORT, General, Browse, Default),
        route(GET, "/api/admin/events/**", "catalog", EVENT_READER, General, Browse, Default),
        route(UNSAFE, "/api/admin/events/**", "catalog", ORGANISER, General, Browse, Default),
        // Organisers add venues and halls, and choose the halls of their events.
        route(POST, "/api/admin/venues", "catalog", ORGANISER, General, Browse, Default),
        route(POST, "/api/admin/venues/{id}/halls", "catalog", ORGANISER, General, Browse, Default),
        route(ALL, "/api/admin/halls/{id}", "catalog", ORGANISER, General, Browse, Default),
        route(GET, "/api/admin/seat-layouts", "catalog", ORGANISER, General, Browse, Default),
        route(GET, "/api/admin/dashboard", "catalog", ORGANISER, General, Browse, Default),
        route(GET, "/api/admin/problems", "catalog", EVENT_READER, General, Browse, Default),
        route(ALL, "/api/admin/**", "catalog", ADMIN, General, Browse, Default),
        route(GET, "/api/image/**", "catalog", Public, General, Browse, Default),
        upload(route(POST, "/api/image/**", "catalog", User, General, Browse, Default)),
        route(GET, "/api/time", "ticket", Public, General, Browse, Default),
        route(GET, "/api/tickets/**", "ticket", Public, General, Browse, Default),
        // E-3: users read and cancel their own reservations without waiting again.
        route(GET, "/api/seats/reservation/{id}", "ticket", User, General, Browse, Default),
        route(GET, "/api/seats/**", "ticket", Admitted, General, Browse, Default),
        route(POST, "/api/seats/reserve", "ticket", Admitted, Booking, Hold, Default),
        route(POST, "/api/seats/best", "ticket", Admitted, Booking, Hold, Default),
        route(POST, "/api/reservations", "ticket", Admitted, Booking, Hold, Default),
        route(GET, "/api/reservations/**", "ticket", User, General, Browse, Default),
        // Changing seats takes seats, so it needs an entry token.
        route(PUT, "/api/reservations/{id}/seats", "ticket", Admitted, Booking, Hold, Default),
        route(UNSAFE, "/api/reservations/{id}/**", "ticket", User, Booking, Hold, Default),
        route(GET, "/api/memberships/tiers", "ticket", Public, General, Browse, Default),
        route(GET, "/api/memberships/**", "ticket", User, General, Browse, Default),
        route(UNSAFE, "/api/memberships/**", "ticket", User, General, Hold, Default),
        route(GET, "/api/transfers/**", "ticket", User, General, Browse, Default),
        route(UNSAFE, "/api/transfers/**", "ticket", User, General, Hold, Default),
        route(GET, "/api/alerts", "ticket", User, General, Browse, Default),
        route(GET, "/api/alerts/**", "ticket", User, General, Browse, Default),
        route(UNSAFE, "/api/alerts/**", "ticket", User, General, Hold, Default),
        route(ALL, "/api/queue/admin/**", "queue", ADMIN, QueueRate, Hold, Queue),
        // The crowd document is the same for everybody, so caches can serve it.
        route(GET, "/api/queue/crowd/**", "queue", Public, General, Line, Queue),
        route(GET, "/api/queue/draw/**", "queue", Public, General, Browse, Queue),
        route(GET, "/api/queue/**", "queue", User, QueueRate, Line, Queue),
        route(POST, "/api/queue/**", "queue", User, QueueRate, Line, Queue),
        route(DELETE, "/api/queue/{id}/reminder", "queue", User, QueueRate, Hold, Queue),
    ]
};

/// What every pattern begins with.
const API: &str = "/api/";

/// The group of each route, side by side: most routes are ruled out without a look at them.
static GROUPS: [u64; ROUTES.len()] = {
    let mut groups = [0; ROUTES.len()];
    let mut index = 0;
    while index < groups.len() {
        groups[index] = group(ROUTES[index].pattern.as_bytes());
        index += 1;
    }
    groups
};

/// The first bytes of the segment after `/api/`, which a route and its paths have in common.
const fn group(path: &[u8]) -> u64 {
    let (mut group, mut at) = (0, API.len());
    while at < path.len() && path[at] != b'/' && at < API.len() + size_of::<u64>() {
        group = group << u8::BITS | path[at] as u64;
        at += 1;
    }
    group
}

/// The routes of a path in the order of the table, with their indexes.
fn routes_of(path: &str) -> impl Iterator<Item = (usize, &'static Route)> {
    let group = group(path.as_bytes());
    let same_group = GROUPS.iter().enumerate().filter(move |(_, other)| **other == group);
    let routes = same_group.map(|(index, _)| (index, &ROUTES[index]));
    routes.filter(move |(_, route)| route.matches(path))
}

/// The result of matching a request with the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteMatch {
    /// The route and its index in [`ROUTES`].
    Route(usize, &'static Route),
    /// The path exists, but not with this method.
    OtherMethods(Methods),
    None,
}

/// Finds the route of a request. `path` is normalised and has no version.
pub fn match_route(method: &Method, path: &str) -> RouteMatch {
    let mut others = Methods(0);
    for (index, route) in routes_of(path) {
        if route.methods.contains(method) {
            return RouteMatch::Route(index, route);
        }
        others = others.union(route.methods);
    }
    if others == Methods(0) { RouteMatch::None } else { RouteMatch::OtherMethods(others) }
}

/// The first route of a path with any method: all routes of one path have the same service.
pub fn find_route(path: &str) -> Option<&'static Route> {
    routes_of(path).next().map(|(_, route)| route)
}

/// The route of a request and its index, or 404 or 405. A service that this installation does not
/// run has no routes.
pub fn find_request_route(
    gateway: &Gateway,
    method: &Method,
    path: &str,
) -> Result<(usize, &'static Route), EarlyResponse> {
    match match_route(method, path) {
        RouteMatch::Route(index, route) if gateway.has_service(route) => Ok((index, route)),
        RouteMatch::OtherMethods(methods) => Err(method_not_allowed(methods)),
        RouteMatch::Route(..) | RouteMatch::None => {
            Err(ApiError::not_found("NOT_FOUND", "There is nothing at this address.").into())
        }
    }
}

fn method_not_allowed(methods: Methods) -> EarlyResponse {
    let sentence = "This address does not answer to this method.";
    let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", sentence);
    let mut response = error.into_response();
    let names = HeaderValue::from_str(&methods.names()).expect("names of methods are ASCII");
    response.headers_mut().insert(header::ALLOW, names);
    response.into()
}

impl Route {
    /// Whether the pattern matches a path. A trailing slash is ignored, so that it cannot evade a
    /// rule; the service then answers 404.
    pub fn matches(&self, path: &str) -> bool {
        let path = path.strip_suffix('/').unwrap_or(path);
        let (fixed, open) = self.pattern.split_at(self.fixed);
        let Some(rest) = path.strip_prefix(fixed) else { return false };
        if !rest.is_empty() && !rest.starts_with('/') {
            return false;
        }
        let mut segments = rest.split('/').skip(1);
        for expected in open.split('/').skip(1) {
            match (expected, segments.next()) {
                ("**", _) => return true,
                (_, None) => return false,
                (_, Some(segment)) => {
                    let any = expected.starts_with('{') && !segment.is_empty();
                    if !any && segment != expected {
                        return false;
                    }
                }
            }
        }
        segments.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(method: &str, path: &str) -> Option<(&'static str, Policy)> {
        match match_route(&method.parse().unwrap(), path) {
            RouteMatch::Route(_, route) => Some((route.pattern, route.policy)),
            RouteMatch::OtherMethods(_) | RouteMatch::None => None,
        }
    }

    #[test]
    fn a_pattern_matches_whole_segments_only() {
        assert_eq!(find_route("/api/artists").unwrap().service, "catalog");
        assert_eq!(find_route("/api/artists/1").unwrap().service, "catalog");
        assert_eq!(find_route("/api/stats/activity").unwrap().service, "stats");
        for unknown in [
            "/api/artistsx",
            "/api",
            "/api/",
            "/internal/x",
            "/api/internal",
            "",
            "/",
            "artists",
            "/api/Artists",
            "/API/artists",
        ] {
            assert_eq!(find_route(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn e_3_only_booking_needs_to_have_waited() {
        let check = |method, path, expected| {
            let policy = find(method, path).map(|(_, policy)| policy);
            assert_eq!(policy, Some(expected), "{method} {path}");
        };
        check("GET", "/api/seats/events/1", Policy::Admitted);
        check("HEAD", "/api/seats/events/1", Policy::Admitted);
        check("GET", "/api/seats", Policy::Admitted);
        check("POST", "/api/seats/reserve", Policy::Admitted);
        check("POST", "/api/seats/reserve/", Policy::Admitted);
        check("POST", "/api/reservations", Policy::Admitted);
        check("POST", "/api/reservations/", Policy::Admitted);
        check("GET", "/api/seats/reservation/1", Policy::User);
        check("GET", "/api/reservations/my", Policy::User);
        check("GET", "/api/payments", Policy::User);
        check("GET", "/api/admin/payments/log", Policy::ADMIN);
        check("GET", "/api/reservations/1", Policy::User);
        check("POST", "/api/reservations/1/cancel", Policy::User);
        check("DELETE", "/api/reservations/1", Policy::User);
        check("PUT", "/api/auth/admin/users/1/role", Policy::ADMIN);
    }

    #[test]
    fn e_6_the_waiting_room_has_its_own_admin_paths() {
        let organiser = Policy::Role(RoleGroup::Organiser);
        for (path, expected) in
            [("/api/admin/queue/1", organiser), ("/api/queue/admin/1", Policy::ADMIN)]
        {
            let route = find_route(path).unwrap();
            assert_eq!(route.service, "queue", "{path}");
            assert_eq!(find("POST", path).map(|(_, policy)| policy), Some(expected), "{path}");
        }
    }

    #[test]
    fn the_crowd_document_is_public_and_ones_own_position_is_not() {
        let check = |method, path, expected| {
            let policy = find(method, path).map(|(_, policy)| policy);
            assert_eq!(policy, Some(expected), "{method} {path}");
        };
        check("GET", "/api/queue/crowd/1", Policy::Public);
        check("GET", "/api/queue/draw/1", Policy::Public);
        check("GET", "/api/queue/draw/1/file", Policy::Public);
        check("GET", "/api/queue/status/1", Policy::User);
        check("GET", "/api/queue/stream/1", Policy::User);
        check("POST", "/api/queue/check/1", Policy::User);
        check("POST", "/api/queue/crowd/1", Policy::User);
        check("POST", "/api/queue/1/reminder", Policy::User);
        check("DELETE", "/api/queue/1/reminder", Policy::User);
    }

    #[test]
    fn a_known_path_with_another_method_names_its_methods() {
        let other = match_route(&Method::DELETE, "/api/seats/reserve");
        let RouteMatch::OtherMethods(methods) = other else { panic!("{other:?}") };
        assert_eq!(methods.names(), "GET, HEAD, POST");
        assert_eq!(match_route(&Method::TRACE, "/api/none"), RouteMatch::None);
        assert!(matches!(match_route(&Method::TRACE, "/api/time"), RouteMatch::OtherMethods(_)));
    }

    /// A route that others hide would have a policy without effect.
    #[test]
    fn no_route_hides_another() {
        for (index, route) in ROUTES.iter().enumerate() {
            let path = route
                .pattern
                .replace("/**", "/x/y")
                .replace("{id}", "x")
                .replace("{provider}", "x")
                .replace("{refundId}", "x");
            for (methods, name) in Methods::NAMED {
                let name = name.split(',').next().unwrap();
                if route.methods.0 & methods.0 == 0 {
                    continue;
                }
                let found = match_route(&name.parse().unwrap(), &path);
                assert_eq!(found, RouteMatch::Route(index, route), "{name} {path}");
            }
        }
    }

    #[test]
    fn every_route_is_below_api() {
        for route in ROUTES {
            assert!(route.pattern.starts_with(API), "{}", route.pattern);
            assert!(route.fixed > API.len(), "{}: its group is fixed", route.pattern);
            assert!(!route.pattern.contains("internal"), "{}", route.pattern);
            let stars = route.pattern.matches('*').count();
            assert!(stars == 0 || route.pattern.ends_with("/**") && stars == 2);
        }
    }
}
