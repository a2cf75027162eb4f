//! The router of the internal listener: for our other processes and for operators.

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use tower::ServiceExt;
use urr_gateway::find_route;
use urr_service::{Health, InternalCredentials, Service, ServiceKit};
use utoipa_axum::router::OpenApiRouter;

use crate::call_graph::callers_of;
use crate::role::ProcessRole;

/// Services behind credentials, health and metrics. It must not be reachable from the internet.
pub fn internal_router(
    services: &[Service],
    credentials: &InternalCredentials,
    health: Health,
    kit: &ServiceKit,
) -> Router {
    let services: Vec<(&'static str, Router)> = services
        .iter()
        .map(|service| {
            let role = ProcessRole::parse(service.name()).expect("a service is a role");
            let credentials = credentials.only_from(callers_of(role));
            (service.name(), service.network_router(&credentials))
        })
        .collect();
    let pages = health.router().merge(kit.metrics.router());
    let pages = Service::new("urr", OpenApiRouter::from(pages), kit).local_router();
    Router::new().fallback(async move |request: Request| -> Response {
        let name = service_of(request.uri().path());
        let found = services.iter().find(|(service, _)| Some(*service) == name);
        let router = found.map_or_else(|| pages.clone(), |(_, router)| router.clone());
        let Ok(response) = router.oneshot(request).await;
        response
    })
}

/// `/internal/catalog/…` belongs to the catalog; public paths go where the gateway sends them.
fn service_of(path: &str) -> Option<&str> {
    match path.strip_prefix("/internal/") {
        Some(rest) => rest.split('/').next(),
        None => find_route(path).map(|route| route.service),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_paths_name_their_service() {
        assert_eq!(service_of("/internal/catalog/events/1"), Some("catalog"));
        assert_eq!(service_of("/api/artists"), Some("catalog"));
        assert_eq!(service_of("/internalcatalog"), None);
        assert_eq!(service_of("/"), None);
    }
}
