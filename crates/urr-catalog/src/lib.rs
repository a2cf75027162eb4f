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
//! Deliberately absent: whether a seat is free, and any call to another service but for the
//! dashboard and for what is wrong now.

mod artists;
mod consumer;
mod dashboard;
mod demo;
mod errors;
mod events;
mod http;
mod images;
mod jobs;
mod operations;
mod response_cache;
mod revision;
mod settings;
mod sql;
mod text;
mod venues;

use std::sync::Arc;

use axum::extract::FromRef;
pub use urr_kernel::search::SearchQuery;
use urr_kernel::{CallContext, Clock, IdSource, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_service::{EventScope, Service, ServiceKit};
use urr_storage::outbox::EventMetadata;
use urr_storage::{Db, Schema, StorageError, Tx, migrations};
use utoipa::openapi::OpenApi;

use dashboard::Dashboard;
use operations::problems::{ProblemCache, problem_cache};
use response_cache::ResponseCache;

pub use artists::{
    Artist, ArtistChange, ArtistDetail, ArtistError, ArtistId, InvalidArtist, NewArtist,
};
pub use consumer::{CONSUMED_TOPICS, CONSUMED_TYPES, GROUP, handle};
pub use dashboard::CatalogPeers;
pub use demo::SeedError;
pub use events::change::{
    ArtistChoice, CreateEventError, EditEventError, EventLocation, NewEvent, OrganiserFixed,
    UnknownArtist,
};
pub use events::list_store::CatalogCounts;
pub use events::rename::TooManyEvents;
pub use events::rules::{
    ArtistRef, EditRejection, EventChange, EventId, EventKind, EventRecord, HallRef,
    InvalidPresale, InvalidPrices, InvalidTicketTypes, OrderedInventory, StartsInPast, TicketType,
    VenueRef,
};
pub use events::schedule::{EventStatus, InvalidSchedule, PresaleSchedule, Schedule};
pub use events::{EventDetail, EventListFilter, EventListOrder, EventPage};
pub use images::content::{IMAGE_BYTES_MAX, InvalidImage};
pub use images::http::UPLOAD_BYTES_MAX;
pub use images::{Image, ImageId, ImageOwner, UploadError};
pub use operations::{Operations, SettingInForce};
pub use response_cache::ExpiryHint;
pub use settings::{CacheSettings, CatalogSettings};
pub use venues::VenueError;
pub use venues::model::{
    Hall, HallChange, HallId, HallSummary, InvalidTemplate, NewHall, NewVenue, SeatTemplate, Venue,
    VenueChange, VenueId,
};

/// The tables of the catalogue.
pub const SCHEMA: Schema = Schema {
    name: "event_service",
    migrations: migrations![
        1 "artists" => "../migrations/0001_artists.sql",
        2 "events" => "../migrations/0002_events.sql",
    ],
};

const SOURCE: &str = "urr/catalog";

/// Who makes a change: an administrator, or an organiser of their own events. As an extractor it
/// refuses everybody but administrators.
#[derive(Clone, Copy, Debug)]
pub struct AdminActor {
    pub admin_id: Uuid,
    /// The events that may be changed.
    pub scope: EventScope,
    pub context: CallContext,
}

/// Extractor: an organiser or an administrator.
#[derive(Clone, Copy, Debug)]
pub struct EventActor(pub AdminActor);

/// What the catalogue service is made from.
#[derive(Clone)]
pub struct CatalogParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: CatalogSettings,
    /// None in commands: the dashboard is without reservations then.
    pub peers: Option<CatalogPeers>,
}

/// The catalogue service with one method per operation. Clones share it.
#[derive(Clone)]
pub struct CatalogService(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    ids: IdSource,
    settings: CatalogSettings,
    cache: ResponseCache,
    dashboard: Dashboard,
    problems: ProblemCache,
}

/// The interface description, for a process that does not run the service.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl CatalogService {
    pub fn new(parts: CatalogParts) -> CatalogService {
        let CatalogParts { db, clock, ids, settings, peers } = parts;
        let dashboard = Dashboard::new(peers, clock.clone());
        let cache = ResponseCache::new(db.clone(), clock.clone(), settings.cache.clone());
        let problems = problem_cache(clock.clone());
        CatalogService(Arc::new(Inner { db, clock, ids, settings, cache, dashboard, problems }))
    }

    /// The other services, unless this is a command.
    fn peers(&self) -> Option<&CatalogPeers> {
        self.0.dashboard.peers()
    }

    fn operations(&self) -> Option<&Operations> {
        self.peers().map(|peers| &peers.operations)
    }

    /// The HTTP service, for the network or for calls within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        let mut kit = kit.clone();
        // `http::routes` keeps the usual limit for every route but the upload of images.
        kit.limits.body_bytes_max = kit.limits.body_bytes_max.max(UPLOAD_BYTES_MAX);
        Service::new("catalog", http::routes().with_state(self.clone()), &kit)
            .with_calls(events::http::calls(self.clone()))
    }

    /// Runs a change under the lock of the catalogue, gives it the next revision, and makes our
    /// own readers see it at once.
    async fn change<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let changed = self.0.db.write(move |tx| {
            revision::catalog_lock(tx)?;
            let value = body(tx)?;
            Ok::<_, E>((value, revision::revision_bump(tx)?))
        });
        let (value, revision) = changed.await?;
        self.0.cache.note_revision(revision);
        Ok(value)
    }

    /// The metadata of a domain event that happens now.
    fn event_metadata(&self, context: CallContext) -> EventMetadata {
        let (event_id, time) = (self.0.ids.next_id(), self.0.clock.now());
        EventMetadata { event_id, source: SOURCE, time, context }
    }

    /// A change by an administrator: what was done, to which kind of resource and to which one.
    /// `body` also returns the summary for the admin log, or `None` if nothing had to change.
    async fn admin_change<T, E, F>(
        &self,
        actor: AdminActor,
        action: (&'static str, &'static str, impl ToString),
        body: F,
    ) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<(T, Option<String>), E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let logged = self.admin_action(actor, action);
        self.change(move |tx| {
            let (value, summary) = body(tx)?;
            if let Some(summary) = summary {
                admin_log::insert(tx, &AdminAction { summary, ..logged.clone() })?;
            }
            Ok(value)
        })
        .await
    }

    /// A row of the admin log without its summary, made before the transaction that inserts it.
    fn admin_action(
        &self,
        actor: AdminActor,
        (action, resource_type, resource_id): (&'static str, &'static str, impl ToString),
    ) -> AdminAction {
        AdminAction {
            id: self.0.ids.next_id(),
            admin_id: Some(actor.admin_id),
            action: action.into(),
            resource_type: resource_type.into(),
            resource_id: resource_id.to_string(),
            summary: String::new(),
            details: None,
            created_at: self.0.clock.now(),
        }
    }
}

/// The admin log is read from it.
impl FromRef<CatalogService> for Db {
    fn from_ref(catalog: &CatalogService) -> Db {
        catalog.0.db.clone()
    }
}
