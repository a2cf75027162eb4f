//! Compares the route table with the OpenAPI documents of the services, in both directions.

use axum::http::Method;
use urr::role::ProcessRole;
use urr_gateway::{Policy, ROUTES, RouteMatch, match_route};
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder};
use utoipa::openapi::{OpenApi, OpenApiBuilder, PathItem, PathsBuilder, ResponseBuilder};

/// Describes every operation of a service that the gateway would not forward as documented.
///
/// An operation that documents 401 needs a route that requires a login, and one that does not needs
/// a public route. Only the auth service answers 401 on public routes, for failed logins.
fn find_uncovered_operations(openapi: &OpenApi) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, item) in &openapi.paths.paths {
        for (method, operation) in operations(item) {
            if let Some(problem) = find_problem(&method, path, operation) {
                problems.push(format!("{method} {path}: {problem}"));
            }
        }
    }
    problems
}

fn find_problem(method: &Method, path: &str, operation: &Operation) -> Option<&'static str> {
    let matched = match_route(method, path);
    if path.starts_with("/internal/") {
        return (matched != RouteMatch::None).then_some("an internal path has a route");
    }
    let RouteMatch::Route(_, route) = matched else { return Some("it has no route") };
    let needs_login = operation.responses.responses.contains_key("401");
    match (route.policy, needs_login) {
        (Policy::Public, true) if route.service != "auth" => {
            Some("the service requires a login, the route does not")
        }
        (Policy::User | Policy::Admitted | Policy::Role(_), false) => {
            Some("the route requires a login, the service does not document 401")
        }
        (_, _) => None,
    }
}

/// The patterns of routes that no operation of any service uses.
fn find_unused_routes<'a>(services: impl IntoIterator<Item = &'a OpenApi>) -> Vec<String> {
    let mut used = vec![false; ROUTES.len()];
    for (path, item) in services.into_iter().flat_map(|service| &service.paths.paths) {
        for (method, _) in operations(item) {
            if let RouteMatch::Route(index, _) = match_route(&method, path) {
                used[index] = true;
            }
        }
    }
    let unused = ROUTES.iter().zip(used).filter(|(_, used)| !used);
    unused.map(|(route, _)| format!("{} {}", route.methods.names(), route.pattern)).collect()
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

#[test]
fn every_operation_of_every_role_has_its_route_and_policy() {
    for role in ProcessRole::ALL {
        if let Some(openapi) = role.openapi() {
            assert_eq!(find_uncovered_operations(&openapi), Vec::<String>::new(), "{role}");
        }
    }
}

#[test]
fn every_route_has_an_operation() {
    let services: Vec<_> = ProcessRole::ALL.into_iter().filter_map(ProcessRole::openapi).collect();
    assert_eq!(find_unused_routes(&services), Vec::<String>::new());
}

fn problem(method: HttpMethod, path: &str, statuses: &[&str]) -> Option<String> {
    let mut operation = OperationBuilder::new();
    for status in statuses {
        operation = operation.response(*status, ResponseBuilder::new());
    }
    let paths = PathsBuilder::new().path(path, PathItem::new(method, operation));
    let problems = find_uncovered_operations(&OpenApiBuilder::new().paths(paths).build());
    assert!(problems.len() <= 1);
    problems.into_iter().next()
}

#[test]
fn operations_that_match_their_route_have_no_problems() {
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
fn operations_that_differ_from_their_route_are_named() {
    for (method, path, statuses, expected) in [
        (HttpMethod::Get, "/api/nothing", &["200"][..], "it has no route"),
        (HttpMethod::Delete, "/api/artists/{id}", &["200", "401"], "it has no route"),
        (HttpMethod::Get, "/api/artists", &["200", "401"], "requires a login, the route does"),
        (HttpMethod::Get, "/api/stats/x", &["200"], "the route requires a login"),
    ] {
        let problem = problem(method, path, statuses).unwrap();
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn a_route_that_no_operation_uses_is_named() {
    let operation = OperationBuilder::new();
    let item = PathItem::new(HttpMethod::Post, operation);
    let paths = PathsBuilder::new().path("/api/payments/confirm", item);
    let unused = find_unused_routes([&OpenApiBuilder::new().paths(paths).build()]);
    assert_eq!(unused.len(), ROUTES.len() - 1);
    let is_payments = |route: &&String| route.ends_with(" /api/payments/**");
    let payments: Vec<&String> = unused.iter().filter(is_payments).collect();
    assert_eq!(payments, ["GET, HEAD /api/payments/**"], "the other row is used");
    assert!(unused.contains(&"POST /api/payments/webhooks/**".to_owned()));
}
