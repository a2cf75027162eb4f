//! Events for the public and for other services over HTTP, from the response cache.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_contracts::internal::catalog::{EventInfo, GetEvent, GetEventAnswer};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::{
    ApiError, Errors, InternalCalls, Page, Paged, Pagination, Path, Query, parse_search,
};
use urr_storage::storable_time;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::views::{EventSummaryView, EventView};
use crate::response_cache::CachedResponse;
use crate::response_cache::http::{CACHED_BRIEFLY, REVALIDATED};
use crate::{
    ArtistId, CatalogService, EventDetail, EventId, EventListFilter, EventListOrder, EventStatus,
    SearchQuery,
};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(list_events)).routes(routes!(get_event))
}

pub fn calls(catalog: CatalogService) -> InternalCalls<CatalogService> {
    InternalCalls::new(catalog).serve(get_event_info)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct EventQuery {
    #[param(inline)]
    status: Option<EventStatus>,
    artist_id: Option<Uuid>,
    /// Events that start at this time or later.
    from: Option<Timestamp>,
    /// Events that start before this time.
    to: Option<Timestamp>,
    /// The default is `saleStart`.
    #[param(inline)]
    sort: Option<EventListOrder>,
    /// Words in the title, artist, venue or address; initial consonants (ㅎㄱ) work too.
    #[param(max_length = 100)]
    q: Option<String>,
}

impl EventQuery {
    fn parse(&self) -> Result<EventListFilter, ApiError> {
        Ok(EventListFilter {
            status: self.status,
            artist_id: self.artist_id.map(ArtistId),
            from: self.from.map(storable_time),
            to: self.to.map(storable_time),
            search: parse_search(self.q.as_deref())?,
            sort: self.sort.unwrap_or_default(),
            organiser_id: None,
            with_deleted: false,
        })
    }
}

#[derive(Serialize, ToSchema)]
pub struct EventListView {
    events: Vec<EventSummaryView>,
    pagination: Pagination,
}

/// Lists events, with filters and search.
///
/// Public. `q` finds words in title, artist, venue or address; all of up to six words must occur,
/// parts of words count, and initial consonants (`ㅎㄱ`) find 한강. `from` and `to` filter by the start
/// of the event. An event can be booked while its `status` is `on_sale` and `inventoryReady` is
/// true. Caches may keep the response for 5 s. Errors: 400 `INVALID_QUERY`.
#[utoipa::path(
    get, path = "/api/events", tag = "events", params(EventQuery, Page),
    responses(
        (status = 200, body = EventListView),
        (status = 304, description = "The client has the current version."),
    ),
)]
pub async fn list_events(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    Query(query): Query<EventQuery>,
    page: Page,
) -> Result<Response, ApiError> {
    let filter = query.parse()?;
    let key = list_key(&filter, page);
    let load = |catalog| load_list(catalog, filter.clone(), page);
    catalog.cached(&headers, CACHED_BRIEFLY, &key, load).await
}

/// The same key for all requests that have the same answer.
fn list_key(filter: &EventListFilter, page: Page) -> String {
    let EventListFilter { status, artist_id, from, to, search, sort, .. } = filter;
    let search = search.as_ref().map(SearchQuery::canonical).unwrap_or_default();
    let (number, limit) = (page.number(), page.limit());
    format!("events {number} {limit} {status:?} {artist_id:?} {from:?} {to:?} {sort:?} {search}")
}

async fn load_list(
    catalog: CatalogService,
    filter: EventListFilter,
    page: Page,
) -> Result<CachedResponse, ApiError> {
    let found = catalog.list_events(filter, page).await?;
    let now = found.now;
    let views = found.events.into_iter().map(|event| EventSummaryView::new(event, now)).collect();
    let Paged { items: events, pagination } = Paged::new(views, found.total, page);
    let view = EventListView { events, pagination };
    catalog.0.cache.response(&view, found.revision, found.expiry_hint, now)
}

#[derive(Serialize, ToSchema)]
pub struct EventDetailView {
    event: EventView,
}

/// Returns one event.
///
/// Public. `prices` are won by grade; `preSaleSchedule` tells from when each tier may buy. Send the
/// `ETag` as `If-None-Match`: an unchanged event is 304. Use `GET /api/time` for countdowns.
/// Errors: 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/events/{id}", tag = "events", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = EventDetailView),
        (status = 304, description = "The client has the current version."),
        Errors<404>,
    ),
)]
pub async fn get_event(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    Path(id): Path<EventId>,
) -> Result<Response, ApiError> {
    let key = format!("event {id}");
    catalog.cached(&headers, REVALIDATED, &key, |catalog| load_event(catalog, id)).await
}

async fn load_event(catalog: CatalogService, id: EventId) -> Result<CachedResponse, ApiError> {
    let EventDetail { event, ticket_types, revision, now } = catalog.get_public_event(id).await?;
    let hint = event.schedule.expiry_hint(now, catalog.0.settings.cache.opening_distance);
    let view = EventDetailView { event: EventView::new(event, ticket_types, now) };
    catalog.0.cache.response(&view, revision, hint, now)
}

/// The internal call by which other services look up an event.
async fn get_event_info(
    catalog: CatalogService,
    call: GetEvent,
    _: CallContext,
) -> Result<GetEventAnswer, ApiError> {
    let EventDetail { event, now, .. } = catalog.get_public_event(EventId(call.id)).await?;
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
    Ok(GetEventAnswer { event })
}
