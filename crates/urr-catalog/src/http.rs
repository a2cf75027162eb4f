//! The routes of the catalogue.

use axum::extract::{DefaultBodyLimit, FromRequestParts};
use axum::http::request::Parts;
use urr_service::admin_log::{self, AdminLogRoute};
use urr_service::{Admin, ApiError, Context, Identity, Organiser, RequestLimits};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    AdminActor, CatalogService, EventActor, artists, dashboard, events, images, operations, venues,
};

const ADMIN_LOG: AdminLogRoute = AdminLogRoute {
    path: "/api/admin/catalog/log",
    operation_id: "list_catalog_admin_actions",
    tag: "admin",
};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new()
        .merge(artists::http::routes())
        .merge(venues::http::routes())
        .merge(events::http::routes())
        .merge(events::admin_http::routes())
        .merge(events::planning_http::routes())
        .merge(dashboard::routes())
        .merge(operations::routes())
        .merge(admin_log::routes(ADMIN_LOG))
        .merge(images::http::routes())
        .layer(DefaultBodyLimit::max(RequestLimits::default().body_bytes_max))
        // Only images may be larger than the usual limit.
        .merge(images::http::upload_routes())
}

impl<S: Send + Sync> FromRequestParts<S> for AdminActor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<AdminActor, ApiError> {
        let Admin(admin) = Admin::from_request_parts(parts, state).await?;
        AdminActor::of(&admin, parts, state).await
    }
}

impl<S: Send + Sync> FromRequestParts<S> for EventActor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<EventActor, ApiError> {
        let Organiser(organiser) = Organiser::from_request_parts(parts, state).await?;
        AdminActor::of(&organiser, parts, state).await.map(EventActor)
    }
}

impl AdminActor {
    async fn of<S: Send + Sync>(
        identity: &Identity,
        parts: &mut Parts,
        state: &S,
    ) -> Result<AdminActor, ApiError> {
        let Context(context) = Context::from_request_parts(parts, state).await?;
        Ok(AdminActor { admin_id: identity.user_id, scope: identity.event_scope(), context })
    }
}
