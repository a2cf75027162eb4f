//! Events: reading them, uncached. `http.rs` caches the answers that are made from this.

pub mod admin_http;
mod bodies;
pub mod change;
pub mod copy;
pub mod http;
pub mod list_store;
pub mod move_preview;
pub mod planning_http;
pub mod rename;
pub mod rules;
pub mod schedule;
pub mod search_store;
pub mod store;
pub mod terms;
pub mod views;

use serde::Deserialize;
use urr_kernel::search::SearchQuery;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::DbResult;
use utoipa::ToSchema;

use crate::response_cache::ExpiryHint;
use crate::revision::revision_load;
use crate::{ArtistId, CatalogService, EditEventError};
use list_store::{CatalogCounts, counts_load, event_list, expiry_hint_load};
use rules::{EventId, EventRecord, TicketType};
use schedule::EventStatus;

/// Which events to list, and in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventListFilter {
    pub status: Option<EventStatus>,
    pub artist_id: Option<ArtistId>,
    /// Only the events of this organiser.
    pub organiser_id: Option<Uuid>,
    /// Events that start at this time or later.
    pub from: Option<Timestamp>,
    /// Events that start before this time.
    pub to: Option<Timestamp>,
    pub search: Option<SearchQuery>,
    pub sort: EventListOrder,
    pub with_deleted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum EventListOrder {
    #[default]
    SaleStart,
    Date,
    Title,
    /// What was added last comes first.
    Newest,
}

/// A page of events, with the revision and the time at which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<EventRecord>,
    pub total: u64,
    pub revision: i64,
    pub expiry_hint: ExpiryHint,
    pub now: Timestamp,
}

/// An event with its ticket types, and the revision and the time at which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDetail {
    pub event: EventRecord,
    pub ticket_types: Vec<TicketType>,
    pub revision: i64,
    pub now: Timestamp,
}

impl CatalogService {
    pub async fn list_events(&self, filter: EventListFilter, page: Page) -> DbResult<EventPage> {
        let (now, distance) = (self.0.clock.now(), self.0.settings.cache.opening_distance);
        let found = self.0.db.read(move |tx| {
            let revision = revision_load(tx)?;
            let (events, total) = event_list(tx, &filter, page, now)?;
            let expiry_hint = expiry_hint_load(tx, now, distance)?;
            Ok(EventPage { events, total, revision, expiry_hint, now })
        });
        found.await
    }

    /// An event, even a deleted one; public answers leave those out.
    pub async fn get_event(&self, id: EventId) -> DbResult<Option<EventDetail>> {
        let now = self.0.clock.now();
        let found = self.0.db.read(move |tx| {
            let revision = revision_load(tx)?;
            let Some(event) = store::event_find(tx, id)? else { return Ok(None) };
            let ticket_types = store::ticket_type_list(tx, id)?;
            Ok(Some(EventDetail { event, ticket_types, revision, now }))
        });
        found.await
    }

    /// An event that was not deleted.
    pub async fn get_public_event(&self, id: EventId) -> Result<EventDetail, EditEventError> {
        let found = self.get_event(id).await?;
        found.filter(|found| found.event.deleted_at.is_none()).ok_or(EditEventError::NotFound)
    }

    /// How many events there are by status, for the dashboard; those of one organiser, or all.
    pub async fn get_counts(&self, organiser_id: Option<Uuid>) -> DbResult<CatalogCounts> {
        let now = self.0.clock.now();
        self.0.db.read(move |tx| counts_load(tx, organiser_id, now)).await
    }

    /// The database's plan for a search. `None`: the text has nothing to search for.
    pub async fn explain_search(&self, text: &str) -> DbResult<Option<Vec<String>>> {
        let Some(search) = SearchQuery::parse(text) else { return Ok(None) };
        self.0.db.read(move |tx| search_store::search_explain(tx, &search).map(Some)).await
    }

    /// How often the response cache has read from the database since the start.
    pub fn cache_loads(&self) -> u64 {
        self.0.cache.loads()
    }

    /// How often the response cache has checked the revision of the catalogue.
    pub fn cache_checks(&self) -> u64 {
        self.0.cache.checks()
    }

    /// The number of cached responses, and their bytes.
    pub fn cache_size(&self) -> (usize, usize) {
        self.0.cache.size()
    }
}
