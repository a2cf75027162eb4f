//! Reading events, uncached. `http/cached.rs` keeps what is read here.

use urr_kernel::Timestamp;
use urr_service::Page;
use urr_storage::StorageError;

use crate::cache::Horizon;
use crate::domain::event::{Event, EventId, Status, TicketType};
use crate::domain::search::Question;
use crate::store::listing::{Figures, event_list, figures_read, horizon_read};
use crate::store::revision::revision_read;
use crate::store::{events, search};
use crate::{ArtistId, Catalog};

/// Which events are wanted, and in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub status: Option<Status>,
    pub artist_id: Option<ArtistId>,
    /// The time of the event: from this moment on …
    pub from: Option<Timestamp>,
    /// … and before this one.
    pub to: Option<Timestamp>,
    pub question: Option<Question>,
    pub sort: EventSort,
    pub visibility: Visibility,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventSort {
    #[default]
    SaleStart,
    Date,
    Title,
    Newest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    #[default]
    Public,
    WithDeleted,
}

/// A page of events, and the moment that it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<Event>,
    pub total: u64,
    pub revision: i64,
    pub horizon: Horizon,
    pub now: Timestamp,
}

/// An event with its tickets, and the moment that it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDetail {
    pub event: Event,
    pub ticket_types: Vec<TicketType>,
    pub revision: i64,
    pub now: Timestamp,
}

impl Catalog {
    pub async fn list_events(
        &self,
        filter: EventFilter,
        page: Page,
    ) -> Result<EventPage, StorageError> {
        let (now, distance) = (self.clock.now(), self.cache.settings().opening_distance);
        self.db
            .read(move |tx| {
                let revision = revision_read(tx)?;
                let (events, total) = event_list(tx, &filter, page, now)?;
                let horizon = horizon_read(tx, now, distance)?;
                Ok(EventPage { events, total, revision, horizon, now })
            })
            .await
    }

    /// An event, even a deleted one: who shows it to the public leaves those out.
    pub async fn get_event(&self, id: EventId) -> Result<Option<EventDetail>, StorageError> {
        let now = self.clock.now();
        self.db
            .read(move |tx| {
                let revision = revision_read(tx)?;
                let Some(event) = events::event_find(tx, id)? else { return Ok(None) };
                let ticket_types = events::ticket_type_list(tx, id)?;
                Ok(Some(EventDetail { event, ticket_types, revision, now }))
            })
            .await
    }

    /// Figures for the administrators' first page.
    pub async fn get_figures(&self) -> Result<Figures, StorageError> {
        let now = self.clock.now();
        self.db.read(move |tx| figures_read(tx, now)).await
    }

    /// How the database searches, in its own words. `None`: there is nothing to look for.
    pub async fn explain_search(&self, text: &str) -> Result<Option<Vec<String>>, StorageError> {
        let Some(question) = Question::parse(text) else { return Ok(None) };
        self.db.read(move |tx| search::search_explain(tx, &question).map(Some)).await
    }

    /// How often the cache read from the database since the start.
    pub fn cache_loads(&self) -> u64 {
        self.cache.loads()
    }

    /// How often it looked whether another process changed something.
    pub fn cache_checks(&self) -> u64 {
        self.cache.checks()
    }

    /// How many answers are kept, and their bytes.
    pub fn cache_size(&self) -> (usize, usize) {
        self.cache.size()
    }
}
