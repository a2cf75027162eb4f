//! Whether the table of routes and what the services say about themselves fit together.

use axum::http::Method;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, PathItem};

use crate::routes::{Found, Policy, match_route};

/// Every operation that the gateway would not pass on as its service describes it, as a sentence.
///
/// An operation that can answer 401 needs a row that asks for a login, and one that cannot needs a
/// public row. Only the auth service says 401 to people who are just logging in.
pub fn check_coverage(openapi: &OpenApi) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, item) in &openapi.paths.paths {
        for (method, operation) in operations(item) {
            if let Some(problem) = check(&method, path, operation) {
                problems.push(format!("{method} {path}: {problem}"));
            }
        }
    }
    problems
}

fn check(method: &Method, path: &str, operation: &Operation) -> Option<&'static str> {
    let found = match_route(method, path);
    if path.starts_with("/internal/") {
        return (found != Found::Nothing).then_some("an internal path has a row");
    }
    let Found::Route(_, route) = found else { return Some("no row has it") };
    let asks_for_login = operation.responses.responses.contains_key("401");
    match (route.policy, asks_for_login) {
        (Policy::Public, true) if route.service != "auth" => {
            Some("the service asks for a login, the row does not")
        }
        (Policy::User | Policy::Admitted | Policy::Admin, false) => {
            Some("the row asks for a login, the service does not say so")
        }
        (_, _) => None,
    }
}

fn operations(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    let all = [
        (Method::GET, &item.get),
        (Method::HEAD, &item.head),
        (Method::POST, &item.post),
        (Method::PUT, &item.put),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
        (Method::OPTIONS, &item.options),
        (Method::TRACE, &item.trace),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use utoipa::openapi::path::{HttpMethod, OperationBuilder};
    use utoipa::openapi::{OpenApiBuilder, PathsBuilder, ResponseBuilder};

    use super::*;

    fn problem(method: HttpMethod, path: &str, statuses: &[&str]) -> Option<String> {
        let mut operation = OperationBuilder::new();
        for status in statuses {
            operation = operation.response(*status, ResponseBuilder::new());
        }
        let paths = PathsBuilder::new().path(path, PathItem::new(method, operation));
        let problems = check_coverage(&OpenApiBuilder::new().paths(paths).build());
        assert!(problems.len() <= 1);
        problems.into_iter().next()
    }

    #[test]
    fn what_fits_has_no_problems() {
        for (method, path, statuses) in [
            (HttpMethod::Get, "/api/artists/{id}", &["200", "404"][..]),
            (HttpMethod::Post, "/api/admin/artists", &["201", "401", "403"]),
            (HttpMethod::Post, "/api/auth/login", &["200", "401"]),
            (HttpMethod::Get, "/internal/auth/revoked-tokens", &["200", "401"]),
        ] {
            assert_eq!(problem(method, path, statuses), None);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (method, path, statuses, expected) in [
            (HttpMethod::Get, "/api/nothing", &["200"][..], "no row has it"),
            (HttpMethod::Delete, "/api/artists/{id}", &["200", "401"], "no row has it"),
            (HttpMethod::Get, "/api/artists", &["200", "401"], "asks for a login, the row does"),
            (HttpMethod::Get, "/api/stats/x", &["200"], "the row asks for a login"),
        ] {
            let problem = problem(method, path, statuses).unwrap();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
