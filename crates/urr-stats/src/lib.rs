//! Statistics for organisers, counted from the domain events of all services.
//!
//! The service is the only writer of its schema `stats_service`, and writes only what events say.
//!
//! - A fact is what is known about one reservation, payment or account. Facts do not depend on the
//!   order of the messages, and a repeated message, even a copy under another id, has no effect.
//! - Counters are sums over facts, by hour and by event, in Korean time. When a fact changes they move
//!   by the difference, in the rows where it belongs: a cancellation takes its seats from the day on
//!   which they were sold.
//! - [`StatsService::rebuild`] counts everything again and comes to the same counters.
//!
//! Revenue is what was charged less what was refunded, each on its day; what the buyer of a transfer
//! pays is part of it. The numbers of waiting rooms come once a minute and are kept by the hour.
//!
//! Deliberately absent: any call to another service.

mod audit;
mod consumer;
mod domain;
mod http;
mod rebuild;
mod store;

use urr_kernel::Clock;
use urr_service::{Service, ServiceKit};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use audit::{CounterAudit, SharedFacts};
pub use consumer::{GROUP, TOPICS, handle, handle_all};
pub use domain::day_in_korea;
pub use rebuild::{RebuildError, RebuildReport, RebuildUpdate};

/// The tables of the statistics.
pub const SCHEMA: Schema = Schema {
    name: "stats_service",
    migrations: migrations![
        1 "activity" => "../migrations/0001_activity.sql",
        2 "counters" => "../migrations/0002_counters.sql",
        3 "queues" => "../migrations/0003_queues.sql",
    ],
};

/// The statistics with one method per operation. Clones share them.
#[derive(Clone)]
pub struct StatsService {
    db: Db,
    clock: Clock,
}

/// What the statistics are made of.
pub struct StatsParts {
    pub db: Db,
    pub clock: Clock,
}

/// The interface of the service, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl StatsService {
    pub fn new(parts: StatsParts) -> StatsService {
        let StatsParts { db, clock } = parts;
        StatsService { db, clock }
    }

    /// The service with its routes, for a listener or for calls within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        Service::new("stats", http::routes().with_state(self.clone()), kit)
            .with_calls(http::live::calls(self.clone()))
    }
}
