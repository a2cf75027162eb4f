//! The catalogue: artists, venues with their halls, events, and the search for them.
//!
//! It is the only writer of its schema `event_service`. Other services learn of changes through
//! `catalog-events`; the ticket office answers on `inventory-events` once the seats are there.
//!
//! Invariants:
//! - A change, its line in the audit log and its event are committed together.
//! - What tickets are made of (hall, prices, kind) never changes after an event was created.
//! - An event can be booked only after the ticket office counted what was ordered.
//! - Changes of the catalogue wait for each other; readers wait for nobody.
//!
//! Deliberately absent: whether a seat is free, and any call to the ticket office.

mod artists;
mod audit;
mod cache;
mod demo;
mod domain;
mod editing;
mod events;
mod http;
mod images;
mod jobs;
mod reading;
mod renaming;
mod settings;
mod store;
mod venues;

use urr_kernel::{CallContext, Clock, IdSource};
use urr_service::{Service, ServiceKit};
use urr_storage::outbox::Stamp;
use urr_storage::{Db, Schema, StorageError, Tx, migrations};
use utoipa::openapi::OpenApi;

pub use artists::{ArtistChange, ArtistDetail, CreateArtistError, EditArtistError, NewArtist};
pub use audit::{Actor, AuditEntry, AuditFilter};
pub use cache::Horizon;
pub use demo::SeedError;
pub use domain::artist::{Artist, ArtistId, ArtistName, InvalidArtistName};
pub use domain::event::{
    ArtistRef, EditRejection, Event, EventChange, EventId, HallRef, InvalidPresale, InvalidPrices,
    InvalidSchedule, InvalidTicketTypes, Kind, Ordered, PresaleSchedule, Schedule, Status,
    TicketType, VenueRef,
};
pub use domain::image::{IMAGE_BYTES_MAX, InvalidImage};
pub use domain::search::Question;
pub use domain::venue::{Hall, HallId, HallSummary, InvalidTemplate, SeatTemplate, Venue, VenueId};
pub use editing::{ArtistChoice, CreateEventError, EditEventError, EventEdit, NewEvent, Place};
pub use events::{
    ArtistCreated, ArtistUpdated, CONSUMED_TOPICS, EventCancelled, EventCreated, EventDeleted,
    EventFacts, EventUpdated, GROUP, InventoryReady, TOPIC, TicketTypeChanged, TicketTypeFacts,
    handle,
};
pub use http::images::UPLOAD_BYTES_MAX;
pub use images::{Image, ImageId, UploadError};
pub use reading::{EventDetail, EventFilter, EventPage, EventSort, Visibility};
pub use renaming::TooManyEvents;
pub use settings::{CacheSettings, Settings};
pub use store::events::RequestKey;
pub use store::listing::Figures;
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

/// The catalogue with one method per operation. Clones share it.
#[derive(Clone)]
pub struct Catalog {
    db: Db,
    clock: Clock,
    ids: IdSource,
    settings: Settings,
    cache: cache::Cache,
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl Catalog {
    pub fn new(db: Db, clock: Clock, ids: IdSource) -> Catalog {
        Catalog::with_settings(db, clock, ids, Settings::default())
    }

    pub fn with_settings(db: Db, clock: Clock, ids: IdSource, settings: Settings) -> Catalog {
        let cache = cache::Cache::new(db.clone(), clock.clone(), settings.cache.clone());
        Catalog { db, clock, ids, settings, cache }
    }

    /// The catalogue as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        let mut kit = kit.clone();
        // The routes that take no pictures keep the usual bound: `http::routes`.
        kit.limits.body_bytes_max = kit.limits.body_bytes_max.max(UPLOAD_BYTES_MAX);
        Service::new("catalog", http::routes().with_state(self.clone()), &kit)
    }

    /// Runs a change: after and before others, numbered, and seen by our own readers at once.
    async fn change<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let changed = self.db.write(move |tx| {
            store::revision::catalog_lock(tx)?;
            let value = body(tx)?;
            Ok::<_, E>((value, store::revision::revision_bump(tx)?))
        });
        let (value, revision) = changed.await?;
        self.cache.note_revision(revision);
        Ok(value)
    }

    /// The envelope of an event of now.
    fn stamp(&self, context: CallContext) -> Stamp {
        let (event_id, time) = (self.ids.next_id(), self.clock.now());
        Stamp { event_id, source: SOURCE, time, context }
    }
}
