//! The internal call by which the queue service looks up an event.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use urr_contracts::internal::catalog::{EventInfo, GET_EVENT, GetEventAnswer};
use urr_kernel::Uuid;
use urr_service::{ApiError, Path, internal_routes};
use utoipa_axum::router::OpenApiRouter;

use crate::errors::event_not_found;
use crate::response_cache::http::{REVALIDATED, render, respond};
use crate::response_cache::{CacheLifetime, CachedResponse, ExpiryHint};
use crate::{CatalogService, EventId};

pub fn routes() -> OpenApiRouter<CatalogService> {
    let routes = OpenApiRouter::new().route(GET_EVENT.path, get(get_event));
    internal_routes(GET_EVENT.callers, routes)
}

/// Answers from the cache, because every arrival at a waiting room asks.
async fn get_event(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let cache = catalog.cache.clone();
    let load = || {
        let catalog = catalog.clone();
        async move { load_event(&catalog, EventId(id)).await }
    };
    let cached = cache.get(&format!("internal event {id}"), load).await?;
    Ok(respond(&headers, &cached, REVALIDATED))
}

async fn load_event(catalog: &CatalogService, id: EventId) -> Result<CachedResponse, ApiError> {
    let found = catalog.get_event(id).await?;
    let found = found.filter(|found| found.event.deleted_at.is_none());
    let found = found.ok_or_else(event_not_found)?;
    let (event, now) = (found.event, found.now);
    let settings = catalog.cache.settings();
    let expiry_hint = ExpiryHint {
        next_change: event.schedule.next_change_after(now),
        is_near_opening: event.schedule.is_near_opening(now, settings.opening_distance),
    };
    let status = event.status_at(now).into();
    let (artist_id, artist_name) = event.artist.map(|artist| (artist.id.0, artist.name)).unzip();
    let event = EventInfo {
        id: event.id.0,
        revision: event.revision,
        title: event.title,
        kind: event.kind,
        status,
        artist_id,
        artist_name,
        starts_at: event.schedule.starts_at(),
        sale_starts_at: event.schedule.sale_starts_at(),
        sale_ends_at: event.schedule.sale_ends_at(),
        has_presale: event.has_presale,
        inventory_ready: event.inventory_ready,
    };
    let body = render(&GetEventAnswer { event })?;
    Ok(CachedResponse::new(body, found.revision, CacheLifetime::new(expiry_hint, now, settings)))
}
