//! The routes of the catalogue.

use axum::extract::DefaultBodyLimit;
use urr_kernel::CallContext;
use urr_service::{Identity, Limits};
use utoipa_axum::router::OpenApiRouter;

use crate::{Actor, CatalogService, admin_log, artists, events, images, venues};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new()
        .merge(artists::http::routes())
        .merge(venues::http::routes())
        .merge(events::http::routes())
        .merge(events::admin_http::routes())
        .merge(events::internal_http::routes())
        .merge(admin_log::http::routes())
        .merge(images::http::routes())
        .layer(DefaultBodyLimit::max(Limits::default().body_bytes_max))
        // Only images may be larger than the usual limit.
        .merge(images::http::upload_routes())
}

/// The administrator who makes a request.
pub fn actor(identity: &Identity, context: CallContext) -> Actor {
    Actor { admin_id: identity.user_id, context }
}
