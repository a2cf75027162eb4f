//! The interface as data: which service answers which path, to whom, and at what price.
//!
//! A row cannot be written without its policy, and a path without a row does not exist. `/internal`
//! has no row: it does not exist outside. The first row that fits decides, so the exact ones stand
//! above the general ones.

use axum::http::Method;

/// One row: a set of requests that are treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub methods: Methods,
    /// Segments. `{name}` is any one segment, a final `**` any number of them, also none.
    pub pattern: &'static str,
    pub service: &'static str,
    pub policy: Policy,
    pub rate_class: RateClass,
    pub priority: Priority,
    pub timeout: Timeout,
    pub body: BodySize,
    /// How much of the pattern is fixed text: most rows are ruled out by that alone.
    fixed: usize,
}

/// Who may come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Everybody. A user is named to the service if there is one.
    Public,
    /// Who is logged in.
    User,
    /// Who is logged in and holds an entry token of the waiting room.
    Admitted,
    /// Who is logged in as an administrator.
    Admin,
}

/// Which allowance a request is counted against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    Auth,
    /// Like `Auth`, and besides per account and per address: guessing passwords must not pay.
    Login,
    /// Counted by session and not by user: the access token has expired when it comes.
    Refresh,
    Queue,
    Booking,
    General,
}

/// What is kept longest when there is too much to do. Later ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    Pay,
    Hold,
    Browse,
}

/// Which of the configured times the service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    General,
    Payment,
    Queue,
}

/// How large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    Usual,
    /// A picture.
    Upload,
}

/// A set of methods. HEAD is in every set that GET is in: it must not be a way around its rule.
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

    /// The set of this one method; empty for methods that no route has.
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

    /// As the `Allow` header has it.
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
    let body = BodySize::Usual;
    Route { methods, pattern, service, policy, rate_class, priority, timeout, body, fixed }
}

const fn upload(row: Route) -> Route {
    Route { body: BodySize::Upload, ..row }
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
    use Policy::{Admin, Admitted, Public, User};
    use Priority::{Browse, Hold, Pay};
    use RateClass::{Auth, Booking, General, Login, Queue as PerQueue, Refresh};
    use Timeout::{General as Usual, Payment, Queue};
    const GET: Methods = Methods::GET;
    const POST: Methods = Methods::POST;
    const PUT: Methods = Methods::PUT;
    const DELETE: Methods = Methods::DELETE;
    const UNSAFE: Methods = Methods::UNSAFE;
    const ALL: Methods = Methods::ALL;
    &[
        // Whoever wants to pay must be able to log in and to stay so: not the first to be shed.
        route(POST, "/api/auth/login", "auth", Public, Login, Hold, Usual),
        route(POST, "/api/auth/register", "auth", Public, Login, Hold, Usual),
        route(POST, "/api/auth/refresh", "auth", Public, Refresh, Hold, Usual),
        // Every page asks who is here; that must not use up the attempts to log in.
        route(GET, "/api/auth/me", "auth", User, General, Hold, Usual),
        route(UNSAFE, "/api/auth/me", "auth", User, Auth, Hold, Usual),
        route(GET, "/api/auth/me/**", "auth", User, General, Hold, Usual),
        route(UNSAFE, "/api/auth/me/**", "auth", User, Auth, Hold, Usual),
        route(GET, "/api/auth/terms", "auth", Public, General, Hold, Usual),
        route(UNSAFE, "/api/auth/terms", "auth", User, Auth, Hold, Usual),
        route(UNSAFE, "/api/auth/password", "auth", User, Auth, Hold, Usual),
        route(ALL, "/api/auth/admin/**", "auth", Admin, General, Hold, Usual),
        route(POST, "/api/auth/social/{provider}/link", "auth", User, Auth, Hold, Usual),
        route(ALL, "/api/auth/identity/**", "auth", User, Auth, Hold, Usual),
        // A task to do before the attempt, which is counted itself.
        route(GET, "/api/auth/challenge", "auth", Public, General, Hold, Usual),
        // Logging out, signing in by other means: for those who are not logged in.
        route(ALL, "/api/auth/**", "auth", Public, Auth, Hold, Usual),
        // Payment providers have no login; the service verifies what they say.
        route(POST, "/api/payments/webhooks/**", "payment", Public, General, Pay, Payment),
        route(ALL, "/api/payments/**", "payment", User, General, Pay, Payment),
        route(GET, "/api/notifications", "mail", User, General, Browse, Usual),
        route(GET, "/api/stats/**", "stats", Admin, General, Browse, Usual),
        route(GET, "/api/events/**", "catalog", Public, General, Browse, Usual),
        route(GET, "/api/artists/**", "catalog", Public, General, Browse, Usual),
        route(GET, "/api/venues/**", "catalog", Public, General, Browse, Usual),
        route(POST, "/api/artists/enrich", "catalog", Admin, General, Browse, Usual),
        // E-6: these belong to the waiting room although their prefix is the catalogue's.
        route(ALL, "/api/admin/vwr/**", "queue", Admin, General, Hold, Queue),
        route(ALL, "/api/admin/queue/**", "queue", Admin, General, Hold, Queue),
        // What is sold belongs to the ticket office, its check at the door included.
        route(ALL, "/api/admin/reservations/**", "ticket", Admin, General, Hold, Usual),
        route(ALL, "/api/admin/events/{id}/tickets", "ticket", Admin, General, Browse, Usual),
        route(ALL, "/api/admin/tickets/**", "ticket", Admin, General, Browse, Usual),
        route(ALL, "/api/admin/check-ins/**", "ticket", Admin, General, Hold, Usual),
        route(GET, "/api/admin/ticket-audit-log", "ticket", Admin, General, Browse, Usual),
        route(ALL, "/api/admin/payments/**", "payment", Admin, General, Pay, Payment),
        route(ALL, "/api/admin/mails/**", "mail", Admin, General, Browse, Usual),
        route(ALL, "/api/admin/**", "catalog", Admin, General, Browse, Usual),
        route(GET, "/api/image/**", "catalog", Public, General, Browse, Usual),
        upload(route(POST, "/api/image/**", "catalog", Admin, General, Browse, Usual)),
        route(GET, "/api/time", "ticket", Public, General, Browse, Usual),
        route(GET, "/api/tickets/**", "ticket", Public, General, Browse, Usual),
        // E-3: what is one's own is read and cancelled without waiting again.
        route(GET, "/api/seats/reservation/{id}", "ticket", User, General, Browse, Usual),
        route(GET, "/api/seats/**", "ticket", Admitted, General, Browse, Usual),
        route(POST, "/api/seats/reserve", "ticket", Admitted, Booking, Hold, Usual),
        route(POST, "/api/seats/best", "ticket", Admitted, Booking, Hold, Usual),
        route(POST, "/api/reservations", "ticket", Admitted, Booking, Hold, Usual),
        route(GET, "/api/reservations/**", "ticket", User, General, Browse, Usual),
        // Other seats are taken as seats are: by whose turn it is.
        route(PUT, "/api/reservations/{id}/seats", "ticket", Admitted, Booking, Hold, Usual),
        route(UNSAFE, "/api/reservations/{id}/**", "ticket", User, Booking, Hold, Usual),
        route(GET, "/api/memberships/**", "ticket", User, General, Browse, Usual),
        route(UNSAFE, "/api/memberships/**", "ticket", User, General, Hold, Usual),
        route(GET, "/api/transfers/**", "ticket", User, General, Browse, Usual),
        route(UNSAFE, "/api/transfers/**", "ticket", User, General, Hold, Usual),
        route(ALL, "/api/queue/admin/**", "queue", Admin, PerQueue, Hold, Queue),
        // The same for everybody: a million who wait may ask for it, and a cache may answer.
        route(GET, "/api/queue/crowd/**", "queue", Public, General, Browse, Queue),
        route(GET, "/api/queue/draw/**", "queue", Public, General, Browse, Queue),
        route(GET, "/api/queue/**", "queue", User, PerQueue, Browse, Queue),
        route(POST, "/api/queue/**", "queue", User, PerQueue, Hold, Queue),
        route(DELETE, "/api/queue/{id}/reminder", "queue", User, PerQueue, Hold, Queue),
        route(GET, "/api/community/**", "community", Public, General, Browse, Usual),
        route(UNSAFE, "/api/community/**", "community", User, General, Browse, Usual),
        route(GET, "/api/news/**", "community", Public, General, Browse, Usual),
        route(UNSAFE, "/api/news/**", "community", Admin, General, Browse, Usual),
    ]
};

/// What the table says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The row, and its position in [`ROUTES`].
    Route(usize, &'static Route),
    /// The path exists, but not with this method.
    OtherMethods(Methods),
    Nothing,
}

/// The row of a request. `path` is normalised and has no version.
pub fn match_route(method: &Method, path: &str) -> Found {
    let mut others = Methods(0);
    for (position, route) in ROUTES.iter().enumerate() {
        if !route.has(path) {
            continue;
        }
        if route.methods.contains(method) {
            return Found::Route(position, route);
        }
        others = others.union(route.methods);
    }
    if others == Methods(0) { Found::Nothing } else { Found::OtherMethods(others) }
}

/// Some row of a path, whatever the method: its service is the one that answers the path.
pub fn find_route(path: &str) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.has(path))
}

impl Route {
    /// Whether the pattern has this path. A slash at the end is not a way around a rule: the path
    /// has the row it would have without, and its service finds nothing there.
    pub fn has(&self, path: &str) -> bool {
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

    fn found(method: &str, path: &str) -> Option<(&'static str, Policy)> {
        match match_route(&method.parse().unwrap(), path) {
            Found::Route(_, route) => Some((route.pattern, route.policy)),
            Found::OtherMethods(_) | Found::Nothing => None,
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
            let policy = found(method, path).map(|(_, policy)| policy);
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
        check("GET", "/api/reservations/1", Policy::User);
        check("POST", "/api/reservations/1/cancel", Policy::User);
        check("DELETE", "/api/reservations/1", Policy::User);
        check("PUT", "/api/auth/admin/users/1/role", Policy::Admin);
    }

    #[test]
    fn e_6_the_waiting_room_has_its_own_admin_paths() {
        for path in ["/api/admin/vwr/1", "/api/admin/queue/1", "/api/queue/admin/1"] {
            let route = find_route(path).unwrap();
            assert_eq!((route.service, route.policy), ("queue", Policy::Admin), "{path}");
        }
    }

    #[test]
    fn what_is_the_same_for_all_who_wait_is_for_everybody_and_ones_own_place_is_not() {
        let check = |method, path, expected| {
            let policy = found(method, path).map(|(_, policy)| policy);
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
    fn a_known_path_with_another_method_says_which_it_has() {
        let other = match_route(&Method::DELETE, "/api/artists/enrich");
        let Found::OtherMethods(methods) = other else { panic!("{other:?}") };
        assert_eq!(methods.names(), "GET, HEAD, POST");
        assert_eq!(match_route(&Method::TRACE, "/api/none"), Found::Nothing);
        assert!(matches!(match_route(&Method::TRACE, "/api/time"), Found::OtherMethods(_)));
    }

    /// A row that others hide would have a policy that nobody keeps.
    #[test]
    fn every_row_decides_something() {
        for (position, route) in ROUTES.iter().enumerate() {
            let path = route
                .pattern
                .replace("/**", "/x/y")
                .replace("{id}", "x")
                .replace("{provider}", "x");
            for (methods, name) in Methods::NAMED {
                let name = name.split(',').next().unwrap();
                if route.methods.0 & methods.0 == 0 {
                    continue;
                }
                let found = match_route(&name.parse().unwrap(), &path);
                assert_eq!(found, Found::Route(position, route), "{name} {path}");
            }
        }
    }

    #[test]
    fn every_row_is_of_the_public_interface() {
        for route in ROUTES {
            assert!(route.pattern.starts_with("/api/"), "{}", route.pattern);
            assert!(!route.pattern.contains("internal"), "{}", route.pattern);
            let stars = route.pattern.matches('*').count();
            assert!(stars == 0 || route.pattern.ends_with("/**") && stars == 2);
        }
    }
}
