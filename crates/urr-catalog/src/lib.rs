//! The catalogue: artists, venues with their halls, events, and the search for them.
//!
//! It is the only writer of its schema `event_service`. Other services learn of changes through
//! `catalog-events`; the ticket service answers on `inventory-events` once it has made the seats.
//!
//! Invariants:
//! - A change, its row in the admin log and its domain event are committed together.
//! - What tickets are made of (hall, prices, kind) never changes after an event was created.
//! - An event can be booked only after the ticket service has counted the inventory it was asked
//!   to make.
//! - Changes of the catalogue run one after the other; readers never wait for them.
//!
//! Deliberately absent: whether a seat is free, and any call to the ticket service.

mod admin_log;
mod artists;
mod consumer;
mod demo;
mod errors;
mod events;
mod http;
mod images;
mod jobs;
mod response_cache;
mod revision;
mod settings;
mod sql;
mod text;
mod venues;

use urr_kernel::{CallContext, Clock, IdSource};
use urr_service::{Service, ServiceKit};
use urr_storage::outbox::Stamp;
use urr_storage::{Db, Schema, StorageError, Tx, migrations};
use utoipa::openapi::OpenApi;

pub use admin_log::{Actor, AuditEntry, AuditFilter};
pub use artists::{
    Artist, ArtistChange, ArtistDetail, ArtistId, ArtistName, CreateArtistError, EditArtistError,
    InvalidArtistName, NewArtist,
};
pub use consumer::{CONSUMED_TOPICS, GROUP, handle};
pub use demo::SeedError;
pub use events::change::{
    ArtistChoice, CreateEventError, EditEventError, EventEdit, EventLocation, NewEvent,
};
pub use events::list_store::CatalogCounts;
pub use events::rename::TooManyEvents;
pub use events::rules::{
    ArtistRef, EditRejection, EventChange, EventId, EventKind, EventRecord, HallRef,
    InvalidPresale, InvalidPrices, InvalidTicketTypes, OrderedInventory, TicketType, VenueRef,
};
pub use events::schedule::{EventStatus, InvalidSchedule, PresaleSchedule, Schedule};
pub use events::search::SearchQuery;
pub use events::store::RequestKey;
pub use events::{EventDetail, EventListFilter, EventPage, EventSort, Visibility};
pub use images::content::{IMAGE_BYTES_MAX, InvalidImage};
pub use images::http::UPLOAD_BYTES_MAX;
pub use images::{Image, ImageId, UploadError};
pub use response_cache::ExpiryHint;
pub use settings::{CacheSettings, CatalogSettings};
pub use venues::model::{Hall, HallId, HallSummary, InvalidTemplate, SeatTemplate, Venue, VenueId};
pub use venues::{HallChange, NewHall, NewVenue, VenueChange, VenueError};

/// The tables of the catalogue.
pub const SCHEMA: Schema = Schema {
    name: "event_service",
    migrations: migrations![
        1 "artists" => "../migrations/0001_artists.sql",
        2 "events" => "../migrations/0002_events.sql",
    ],
};

const SOURCE: &str = "urr/catalog";

/// The catalogue service with one method per operation. Clones share it.
#[derive(Clone)]
pub struct CatalogService {
    db: Db,
    clock: Clock,
    ids: IdSource,
    settings: CatalogSettings,
    cache: response_cache::ResponseCache,
}

/// The interface description, for a process that does not run the service.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl CatalogService {
    pub fn new(db: Db, clock: Clock, ids: IdSource) -> CatalogService {
        CatalogService::with_settings(db, clock, ids, CatalogSettings::default())
    }

    pub fn with_settings(
        db: Db,
        clock: Clock,
        ids: IdSource,
        settings: CatalogSettings,
    ) -> CatalogService {
        let cache =
            response_cache::ResponseCache::new(db.clone(), clock.clone(), settings.cache.clone());
        CatalogService { db, clock, ids, settings, cache }
    }

    /// The HTTP service, for the network or for calls within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        let mut kit = kit.clone();
        // `http::routes` keeps the usual limit for every route but the upload of images.
        kit.limits.body_bytes_max = kit.limits.body_bytes_max.max(UPLOAD_BYTES_MAX);
        Service::new("catalog", http::routes().with_state(self.clone()), &kit)
    }

    /// Runs a change under the lock of the catalogue, gives it the next revision, and makes our
    /// own readers see it at once.
    async fn change<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let changed = self.db.write(move |tx| {
            revision::catalog_lock(tx)?;
            let value = body(tx)?;
            Ok::<_, E>((value, revision::revision_bump(tx)?))
        });
        let (value, revision) = changed.await?;
        self.cache.note_revision(revision);
        Ok(value)
    }

    /// The metadata of a domain event that happens now.
    fn stamp(&self, context: CallContext) -> Stamp {
        let (event_id, time) = (self.ids.next_id(), self.clock.now());
        Stamp { event_id, source: SOURCE, time, context }
    }
}
