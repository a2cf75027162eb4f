//! Statistics: what happened, counted from the events of all services.
//!
//! It is the only writer of its schema `stats_service`, and it writes only what events tell it.
//!
//! - What is known of each reservation, payment and account is a fact. Facts are the same whatever
//!   the order of the messages, and a message that comes again, even as a copy under another id,
//!   has no second effect.
//! - Figures are sums over facts, by hour and by event, in Korea's time. When a fact changes they
//!   move by the difference, in the rows where it belongs: a cancellation takes its seats from the
//!   day they were sold.
//! - [`Stats::rebuild`] counts everything again and comes to the same figures.
//!
//! Revenue is what payments took less what refunds gave back, each on its day; what a ticket that
//! is passed on costs its buyer is part of it.
//!
//! How waiting rooms stood is told once a minute and kept by the hour.
//!
//! Deliberately absent: any question to another service.

mod domain;
mod events;
mod http;
mod reading;
mod rebuild;
mod store;

use urr_kernel::Clock;
use urr_service::{Service, ServiceKit};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use domain::{Activity, day_in_korea};
pub use events::{GROUP, TOPICS, handle};
pub use rebuild::{RebuildError, Rebuilding, Rebuilt};

/// The tables of the statistics.
pub const SCHEMA: Schema = Schema {
    name: "stats_service",
    migrations: migrations![
        1 "activity" => "../migrations/0001_activity.sql",
        2 "figures" => "../migrations/0002_figures.sql",
        3 "queues" => "../migrations/0003_queues.sql",
    ],
};

/// The statistics with one method per operation. Clones share them.
#[derive(Clone)]
pub struct Stats {
    db: Db,
    clock: Clock,
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl Stats {
    pub fn new(db: Db, clock: Clock) -> Stats {
        Stats { db, clock }
    }

    /// The statistics as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        Service::new("stats", http::routes().with_state(self.clone()), kit)
    }
}
