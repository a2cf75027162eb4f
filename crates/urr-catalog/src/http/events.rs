//! Events as the public sees them, from the cache.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, ErrorBody, Page, Paged, Pagination, Path, Query};
use urr_storage::storable;
use utoipa::{IntoParams, ToSchema};

use super::cached::{BRIEFLY, REVALIDATED, answer, render};
use super::errors::event_not_found;
use super::views::{EventSummaryView, EventView};
use crate::cache::{Entry, Horizon, Lifetime};
use crate::domain::search::QUERY_CHARS_MAX;
use crate::{
    ArtistId, Catalog, EventDetail, EventFilter, EventId, EventSort, Question, Status, Visibility,
};

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusName {
    Upcoming,
    OnSale,
    Ended,
    Cancelled,
}

impl From<StatusName> for Status {
    fn from(name: StatusName) -> Status {
        match name {
            StatusName::Upcoming => Status::Upcoming,
            StatusName::OnSale => Status::OnSale,
            StatusName::Ended => Status::Ended,
            StatusName::Cancelled => Status::Cancelled,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum SortName {
    SaleStart,
    Date,
    Title,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct EventQuery {
    #[param(inline)]
    status: Option<StatusName>,
    artist_id: Option<Uuid>,
    /// Events that happen at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Events that happen before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
    /// `saleStart` if it is not given.
    #[param(inline)]
    sort: Option<SortName>,
    /// Words in the title, artist, venue or address; initial consonants (ㅎㄱ) work too.
    #[param(max_length = 100)]
    q: Option<String>,
}

pub fn parse_question(text: Option<&str>) -> Result<Option<Question>, ApiError> {
    let text = text.unwrap_or_default();
    if text.chars().count() > QUERY_CHARS_MAX {
        let sentence = format!("Please look for at most {QUERY_CHARS_MAX} characters.");
        return Err(ApiError::bad_request("INVALID_QUERY", sentence));
    }
    Ok(Question::parse(text))
}

impl EventQuery {
    fn parse(&self) -> Result<EventFilter, ApiError> {
        Ok(EventFilter {
            status: self.status.map(Status::from),
            artist_id: self.artist_id.map(ArtistId),
            from: self.from.map(storable),
            to: self.to.map(storable),
            question: parse_question(self.q.as_deref())?,
            sort: match self.sort {
                None | Some(SortName::SaleStart) => EventSort::SaleStart,
                Some(SortName::Date) => EventSort::Date,
                Some(SortName::Title) => EventSort::Title,
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

/// The events, with filters and search.
#[utoipa::path(
    get, path = "/api/events", tag = "events", params(EventQuery, Page),
    responses(
        (status = 200, body = EventListView),
        (status = 304, description = "It is as the client knows it."),
        (status = 400, body = ErrorBody),
    ),
)]
pub async fn list_events(
    State(catalog): State<Catalog>,
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
    let entry = cache.get(&key, load).await?;
    Ok(answer(&headers, &entry, BRIEFLY))
}

/// The same for all questions that have the same answer.
fn list_key(filter: &EventFilter, page: Page) -> String {
    let EventFilter { status, artist_id, from, to, question, sort, visibility: _ } = filter;
    let question = question.as_ref().map(Question::canonical).unwrap_or_default();
    let (number, limit) = (page.number(), page.limit());
    format!("events {number} {limit} {status:?} {artist_id:?} {from:?} {to:?} {sort:?} {question}")
}

async fn load_list(catalog: &Catalog, filter: EventFilter, page: Page) -> Result<Entry, ApiError> {
    let found = catalog.list_events(filter, page).await?;
    let now = found.now;
    let views = found.events.into_iter().map(|event| EventSummaryView::new(event, now)).collect();
    let Paged { items: events, pagination } = Paged::new(views, found.total, page);
    let body = render(&EventListView { events, pagination })?;
    let lifetime = Lifetime::new(found.horizon, now, catalog.cache.settings());
    Ok(Entry::new(body, found.revision, lifetime))
}

#[derive(Serialize, ToSchema)]
pub struct EventDetailView {
    event: EventView,
}

/// One event. For countdowns there is `GET /api/time`: this answer is kept by caches.
#[utoipa::path(
    get, path = "/api/events/{id}", tag = "events", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = EventDetailView),
        (status = 304, description = "It is as the client knows it."),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
pub async fn get_event(
    State(catalog): State<Catalog>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let cache = catalog.cache.clone();
    let load = || {
        let catalog = catalog.clone();
        async move { load_event(&catalog, EventId(id)).await }
    };
    let entry = cache.get(&format!("event {id}"), load).await?;
    Ok(answer(&headers, &entry, REVALIDATED))
}

async fn load_event(catalog: &Catalog, id: EventId) -> Result<Entry, ApiError> {
    let found = catalog.get_event(id).await?;
    let shown = found.filter(|found| found.event.deleted_at.is_none());
    let EventDetail { event, ticket_types, revision, now } = shown.ok_or_else(event_not_found)?;
    let settings = catalog.cache.settings();
    let horizon = Horizon {
        next_change: event.schedule.next_change_after(now),
        is_near_opening: event.schedule.is_near_opening(now, settings.opening_distance),
    };
    let lifetime = Lifetime::new(horizon, now, settings);
    let body = render(&EventDetailView { event: EventView::new(event, ticket_types, now) })?;
    Ok(Entry::new(body, revision, lifetime))
}
