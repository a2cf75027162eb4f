//! The queue service: a fair line in front of every sale.
//!
//! A [`urr_room`] room holds who waits; the schema `queue_service` holds how each room is run. The
//! service learns from `catalog-events` what is sold and when, and from `reservation-events` who has
//! bought. It announces near admissions and room statistics in `queue-events`.
//!
//! Deliberately absent: any call of another service and any SQL statement while a user polls (P-1).
//! Only in a pre-sale the ticket service is asked for the tier of a user who joins.

mod admin;
mod autopilot;
pub mod consumer;
mod crowd_cache;
mod domain;
pub mod draw;
mod entry_token;
mod event_index;
mod http;
mod jobs;
mod live;
mod metrics;
mod notices;
mod problems;
mod reminders;
mod sales_health;
mod settings;
mod stats_publisher;
mod status;
mod store;
mod tier_cache;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, RwLock};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use urr_contracts::clients::TicketClient;
use urr_kernel::{Clock, IdSource, Timestamp, Uuid};
use urr_room::{AdmissionRules, AdmissionState, Rooms};
use urr_service::token::TokenKey;
use urr_service::{InternalCalls, Service, ServiceKit};
use urr_storage::{Db, DbResult, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use admin::{AdminError, RoomActor, RoomChange, RoomChangeRejection, RoomMessage, RoomReport};
use autopilot::Autopilots;
use crowd_cache::CrowdCache;
pub use domain::estimate::{EstimatedWait, WaitEstimator};
pub use domain::event::{
    DrawState, EventRoom, JoinRejection, OpeningOrder, RoomEventStatus, RoomPhase, RoomSettings,
    Tier,
};
pub use domain::marks::position_bounds;
use draw::cache::DrawCache;
pub use draw::verify_draw;
use draw::{BeaconSource, DrawSeal};
use entry_token::EntryTokens;
use event_index::EventIndex;
use http::{PER_USER_MAX, Streams};
use live::LiveBoards;
pub use live::LiveSources;
use metrics::QueueMetrics;
pub use notices::{Notice, NoticeReceiver, Notices};
pub use reminders::ReminderError;
use sales_health::SalesHealth;
pub use settings::QueueSettings;
pub use status::{QueueError, QueueStatus};
use tier_cache::TierCache;

/// The tables of the queue service.
pub const SCHEMA: Schema = Schema {
    name: "queue_service",
    migrations: migrations![
        1 "rooms" => "../migrations/0001_rooms.sql",
        2 "clearing" => "../migrations/0002_clearing.sql",
        3 "reminders" => "../migrations/0003_reminders.sql",
        4 "observations" => "../migrations/0004_observations.sql",
    ],
};

/// The PostgreSQL login, unless the configuration names another.
pub const DATABASE_USER: &str = "queue_svc_user";

/// How many live boards a process shows, and how many of one user.
const BOARDS_MAX: usize = 200;
const BOARDS_PER_USER_MAX: usize = 10;

/// The source of this service's domain events.
pub(crate) const SOURCE: &str = "urr/queue";

/// The queue service, with one method per operation. Clones share it.
#[derive(Clone)]
pub struct QueueService(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: QueueSettings,
    pub rooms: Rooms,
    pub entry_tokens: EntryTokens,
    pub notices: Notices,
    pub event_index: EventIndex,
    pub crowds: CrowdCache,
    pub sales_health: SalesHealth,
    pub draw_cache: DrawCache,
    pub draw_seal: DrawSeal,
    pub beacon: BeaconSource,
    /// The events whose rooms were occupied when the rooms were listed last.
    pub occupied: RwLock<Arc<[Uuid]>>,
    /// The occupied rooms of the last published statistics.
    pub observed: Mutex<BTreeSet<Uuid>>,
    /// Bounds how many users list their statuses of all rooms at once.
    pub status_lists: Semaphore,
    pub autopilots: Autopilots,
    pub tiers: TierCache,
    pub streams: Streams,
    /// The open live boards.
    pub boards: Streams,
    pub live: LiveBoards,
    pub live_sources: LiveSources,
    pub metrics: QueueMetrics,
    pub ticket: TicketClient,
    /// Ends the streams.
    pub closing: CancellationToken,
}

/// What the queue service is made of.
pub struct QueueParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: QueueSettings,
    pub rooms: Rooms,
    /// Signs entry tokens.
    pub entry_key: TokenKey,
    pub notices: Notices,
    pub ticket: TicketClient,
    /// Encrypts the secrets of draws.
    pub draw_seal: DrawSeal,
    pub beacon: BeaconSource,
    /// What live boards ask besides the ticket service.
    pub live_sources: LiveSources,
}

/// The events that have a room: for the audit.
pub async fn room_event_list(db: &Db) -> DbResult<Vec<Uuid>> {
    let sql = "select event_id from rooms order by event_id";
    db.read(move |tx| tx.query(sql, &[], |row| row.get("event_id"))).await
}

/// The interface description, for a process that does not run the service.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl QueueService {
    pub fn new(parts: QueueParts) -> QueueService {
        let QueueParts { db, clock, ids, settings, rooms, entry_key, notices, ticket, .. } = parts;
        QueueService(Arc::new(Inner {
            event_index: EventIndex::new(clock.clone()),
            crowds: CrowdCache::new(rooms.clone(), clock.clone()),
            sales_health: SalesHealth::default(),
            draw_cache: DrawCache::new(clock.clone()),
            draw_seal: parts.draw_seal,
            beacon: parts.beacon,
            occupied: RwLock::new(Arc::new([])),
            observed: Mutex::default(),
            status_lists: Semaphore::new(status::STATUS_LISTS_MAX),
            autopilots: Autopilots::default(),
            tiers: TierCache::new(clock.clone()),
            streams: Streams::new(settings.streams_max, PER_USER_MAX),
            boards: Streams::new(BOARDS_MAX, BOARDS_PER_USER_MAX),
            live: LiveBoards::default(),
            live_sources: parts.live_sources,
            entry_tokens: EntryTokens::new(entry_key, settings.entry_token_ttl),
            metrics: QueueMetrics::default(),
            closing: CancellationToken::new(),
            db,
            clock,
            ids,
            settings,
            rooms,
            notices,
            ticket,
        }))
    }

    /// Loads the events into memory. Before the first load every event is unavailable.
    pub async fn load(&self) -> DbResult<()> {
        self.0.event_index.refresh(&self.0.db).await
    }

    /// The rules of an event's room at this moment.
    ///
    /// A process that cannot read its database admits nobody, because it would miss a pause or a
    /// cancellation. Users can still join the line.
    pub fn rules_of(&self, event: &EventRoom, now: Timestamp) -> AdmissionRules {
        let is_sold_out = self.0.sales_health.is_sold_out(event.event_id, now);
        let rate_max = self.0.autopilots.rate_max(event.event_id);
        let rules = event.rules(&self.0.settings, is_sold_out, rate_max, now);
        match self.0.event_index.is_stale(now) {
            true => AdmissionRules { admission: AdmissionState::Closed, ..rules },
            false => rules,
        }
    }

    /// Ends all streams. Their clients reconnect, perhaps to another process.
    pub fn close_streams(&self) {
        self.0.closing.cancel();
    }

    /// The queue as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.0.metrics.register(&kit.metrics);
        self.0.notices.register(&kit.metrics);
        Service::new("queue", http::routes().with_state(self.clone()), kit)
            .with_calls(self.internal_calls())
    }

    /// What other services can ask it.
    pub fn internal_calls(&self) -> InternalCalls<QueueService> {
        http::internal::calls(self.clone())
    }
}
