//! Events for the public over HTTP, from the response cache.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, ErrorStatus, Page, Paged, Pagination, Path, Query};
use urr_storage::storable_time;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::views::{EventSummaryView, EventView};
use crate::errors::event_not_found;
use crate::events::search::QUERY_CHARS_MAX;
use crate::response_cache::http::{CACHED_BRIEFLY, REVALIDATED, render, respond};
use crate::response_cache::{CacheLifetime, CachedResponse, ExpiryHint};
use crate::{
    ArtistId, CatalogService, EventDetail, EventId, EventListFilter, EventListOrder, EventStatus,
    SearchQuery, Visibility,
};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(list_events)).routes(routes!(get_event))
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum EventOrderParam {
    SaleStart,
    Date,
    Title,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct EventQuery {
    #[param(inline)]
    status: Option<EventStatus>,
    artist_id: Option<Uuid>,
    /// Events that start at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Events that start before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
    /// The default is `saleStart`.
    #[param(inline)]
    sort: Option<EventOrderParam>,
    /// Words in the title, artist, venue or address; initial consonants (ㅎㄱ) work too.
    #[param(max_length = 100)]
    q: Option<String>,
}

pub fn parse_search(text: Option<&str>) -> Result<Option<SearchQuery>, ApiError> {
    let text = text.unwrap_or_default();
    if text.chars().count() > QUERY_CHARS_MAX {
        let sentence = format!("A search has at most {QUERY_CHARS_MAX} characters.");
        return Err(ApiError::bad_request("INVALID_QUERY", sentence));
    }
    Ok(SearchQuery::parse(text))
}

impl EventQuery {
    fn parse(&self) -> Result<EventListFilter, ApiError> {
        Ok(EventListFilter {
            status: self.status,
            artist_id: self.artist_id.map(ArtistId),
            from: self.from.map(storable_time),
            to: self.to.map(storable_time),
            search: parse_search(self.q.as_deref())?,
            sort: match self.sort {
                None | Some(EventOrderParam::SaleStart) => EventListOrder::SaleStart,
                Some(EventOrderParam::Date) => EventListOrder::Date,
                Some(EventOrderParam::Title) => EventListOrder::Title,
            },
            visibility: Visibility::Public,
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
        ErrorStatus<400>,
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
    let cache = catalog.cache.clone();
    let load = || {
        let (catalog, filter) = (catalog.clone(), filter.clone());
        async move { load_list(&catalog, filter, page).await }
    };
    let cached = cache.get(&key, load).await?;
    Ok(respond(&headers, &cached, CACHED_BRIEFLY))
}

/// The same key for all requests that have the same answer.
fn list_key(filter: &EventListFilter, page: Page) -> String {
    let EventListFilter { status, artist_id, from, to, search, sort, visibility: _ } = filter;
    let search = search.as_ref().map(SearchQuery::canonical).unwrap_or_default();
    let (number, limit) = (page.number(), page.limit());
    format!("events {number} {limit} {status:?} {artist_id:?} {from:?} {to:?} {sort:?} {search}")
}

async fn load_list(
    catalog: &CatalogService,
    filter: EventListFilter,
    page: Page,
) -> Result<CachedResponse, ApiError> {
    let found = catalog.list_events(filter, page).await?;
    let now = found.now;
    let views = found.events.into_iter().map(|event| EventSummaryView::new(event, now)).collect();
    let Paged { items: events, pagination } = Paged::new(views, found.total, page);
    let body = render(&EventListView { events, pagination })?;
    let lifetime = CacheLifetime::new(found.expiry_hint, now, catalog.cache.settings());
    Ok(CachedResponse::new(body, found.revision, lifetime))
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
        ErrorStatus<400>, ErrorStatus<404>,
    ),
)]
pub async fn get_event(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let cache = catalog.cache.clone();
    let load = || {
        let catalog = catalog.clone();
        async move { load_event(&catalog, EventId(id)).await }
    };
    let cached = cache.get(&format!("event {id}"), load).await?;
    Ok(respond(&headers, &cached, REVALIDATED))
}

async fn load_event(catalog: &CatalogService, id: EventId) -> Result<CachedResponse, ApiError> {
    let found = catalog.get_event(id).await?;
    let shown = found.filter(|found| found.event.deleted_at.is_none());
    let EventDetail { event, ticket_types, revision, now } = shown.ok_or_else(event_not_found)?;
    let settings = catalog.cache.settings();
    let expiry_hint = ExpiryHint {
        next_change: event.schedule.next_change_after(now),
        is_near_opening: event.schedule.is_near_opening(now, settings.opening_distance),
    };
    let lifetime = CacheLifetime::new(expiry_hint, now, settings);
    let body = render(&EventDetailView { event: EventView::new(event, ticket_types, now) })?;
    Ok(CachedResponse::new(body, revision, lifetime))
}
