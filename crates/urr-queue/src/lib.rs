//! The waiting room: a fair line in front of every sale.
//!
//! Who waits lives in a [`urr_room`]; how a room is run lives in the schema `queue_service`. What is sold
//! and when it learns from `catalog-events`; that someone has bought, from `reservation-events`. Of
//! turns that are near, to those who want to be told, it tells in `queue-events`.
//!
//! Deliberately absent: any read of another service or of the database while someone asks for their
//! place (P-1). Only in a pre-sale is the ticket office asked for the tier of who comes.

mod admin;
mod autopilot;
pub mod consumer;
mod crowds;
mod event_index;
mod domain;
pub mod draw;
mod entry;
pub mod events;
mod metrics;
mod http;
mod jobs;
mod notices;
mod observing;
mod place;
mod draw_cache;
mod sales_health;
mod reminders;
mod settings;
mod store;
mod stream;
mod tiers;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use urr_kernel::{Clock, IdSource, Timestamp, Uuid};
use urr_service::token::TokenKey;
use urr_service::{Service, ServiceKit, Upstream};
use urr_storage::{Db, Schema, StorageError, migrations};
use utoipa::openapi::OpenApi;

pub use admin::{Actor, AdminError, RoomChange, RoomChangeRejection, RoomMessage, RoomReport};
use autopilot::Autopilots;
use crowds::CrowdCache;
use event_index::EventIndex;
pub use domain::estimate::{WaitEstimator, WaitEstimate};
pub use domain::event::{
    DrawState, EventRoom, EventStatus, JoinRejection, OpeningOrder, RoomPhase, Tier, RoomSettings,
};
pub use domain::marks::position_bounds;
pub use draw::verify_draw;
use entry::EntryTokens;
use metrics::QueueMetrics;
pub use notices::{Notice, Notices, NoticeReceiver};
pub use place::{QueueError, SlotClaim, QueueStatus};
use draw_cache::DrawCache;
use sales_health::SalesHealth;
pub use reminders::ReminderError;
pub use settings::QueueSettings;
use stream::Streams;
use tiers::TierCache;
use urr_room::{AdmissionRules, AdmissionState, Rooms};

/// The tables of the waiting rooms' keeper.
pub const SCHEMA: Schema = Schema {
    name: "queue_service",
    migrations: migrations![
        1 "rooms" => "../migrations/0001_rooms.sql",
        2 "clearing" => "../migrations/0002_clearing.sql",
        3 "reminders" => "../migrations/0003_reminders.sql",
        4 "observations" => "../migrations/0004_observations.sql",
    ],
};

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "queue_svc_user";

/// The service as its events name it.
pub(crate) const SOURCE: &str = "urr/queue";

/// The keeper of the waiting rooms, with one method per operation. Clones share it.
#[derive(Clone)]
pub struct QueueService(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: QueueSettings,
    pub rooms: Rooms,
    pub entry: EntryTokens,
    pub notices: Notices,
    pub event_index: EventIndex,
    pub crowds: CrowdCache,
    pub sales_health: SalesHealth,
    pub draw_cache: DrawCache,
    /// The events that had people in their rooms when the rooms were listed last.
    pub occupied: RwLock<Arc<[Uuid]>>,
    /// The rooms with people when the statistics were told last.
    pub observed: Mutex<BTreeSet<Uuid>>,
    /// Few look into all rooms at a time.
    pub status_lists: Semaphore,
    pub autopilots: Autopilots,
    pub tiers: TierCache,
    pub streams: Streams,
    pub metrics: QueueMetrics,
    /// The ticket office.
    pub ticket: OnceLock<Upstream>,
    /// Ends the streams.
    pub closing: CancellationToken,
}

/// What the keeper of the waiting rooms is made of.
pub struct QueueParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: QueueSettings,
    pub rooms: Rooms,
    /// Signs entry tokens.
    pub entry_key: TokenKey,
    pub notices: Notices,
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl QueueService {
    pub fn new(parts: QueueParts) -> QueueService {
        let QueueParts { db, clock, ids, settings, rooms, entry_key, notices } = parts;
        QueueService(Arc::new(Inner {
            event_index: EventIndex::new(clock.clone()),
            crowds: CrowdCache::new(rooms.clone()),
            sales_health: SalesHealth::default(),
            draw_cache: DrawCache::default(),
            occupied: RwLock::new(Arc::new([])),
            observed: Mutex::default(),
            status_lists: Semaphore::new(place::STATUS_LISTS_MAX),
            autopilots: Autopilots::default(),
            tiers: TierCache::default(),
            streams: Streams::new(settings.streams_max),
            entry: EntryTokens::new(entry_key, settings.entry_token_ttl),
            metrics: QueueMetrics::default(),
            ticket: OnceLock::new(),
            closing: CancellationToken::new(),
            db,
            clock,
            ids,
            settings,
            rooms,
            notices,
        }))
    }

    /// Tells it where the ticket office is. Without it nobody's tier is known, so that a pre-sale
    /// lets nobody in, and whether all is sold is not known. Only the first one counts.
    pub fn connect_ticket(&self, ticket: Upstream) {
        self.0.ticket.get_or_init(|| ticket);
    }

    /// Reads what is known of the events. Until then there are none.
    pub async fn load(&self) -> Result<(), StorageError> {
        self.0.event_index.refresh(&self.0.db).await
    }

    /// What the room of an event is told now: the organiser's wishes, the settings, whether all is
    /// sold, and what the autopilot allows. A process that cannot read its database keeps the door
    /// shut: it would not hear of a pause or a cancellation. People still line up.
    pub fn rules_of(&self, event: &EventRoom, now: Timestamp) -> AdmissionRules {
        let is_sold_out = self.0.sales_health.is_sold_out(event.event_id, now);
        let rate_max = self.0.autopilots.rate_max(event.event_id);
        let rules = event.rules(&self.0.settings, is_sold_out, rate_max, now);
        let is_stale = self.0.event_index.is_stale(now);
        AdmissionRules {
            admission: if is_stale { AdmissionState::Closed } else { rules.admission },
            ..rules
        }
    }

    /// Ends all streams: their clients come back, perhaps to another process.
    pub fn close_streams(&self) {
        self.0.closing.cancel();
    }

    /// The waiting rooms as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.0.metrics.register(&kit.metrics);
        self.0.notices.register(&kit.metrics);
        Service::new("queue", http::routes().with_state(self.clone()), kit)
    }
}
