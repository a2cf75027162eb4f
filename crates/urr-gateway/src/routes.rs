//! Which service answers which path.

/// A part of the interface and the service behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Matches itself and everything below it.
    pub prefix: &'static str,
    pub service: &'static str,
}

pub const ROUTES: &[Route] = &[
    Route { prefix: "/api/admin", service: "catalog" },
    Route { prefix: "/api/artists", service: "catalog" },
    Route { prefix: "/api/stats", service: "stats" },
];

/// The route of a path, which begins with `/api/`. `/internal` has none: it does not exist outside.
pub fn find_route(path: &str) -> Option<Route> {
    let below = |prefix: &str| {
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    ROUTES.iter().find(|route| below(route.prefix)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_matches_whole_segments_only() {
        assert_eq!(find_route("/api/artists").unwrap().service, "catalog");
        assert_eq!(find_route("/api/artists/1").unwrap().service, "catalog");
        assert_eq!(find_route("/api/stats/activity").unwrap().service, "stats");
        for unknown in ["/api/artistsx", "/api", "/api/", "/internal/x", "/api/internal", ""] {
            assert_eq!(find_route(unknown), None, "{unknown}");
        }
    }
}
