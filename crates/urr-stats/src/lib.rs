//! Statistics: what happened, counted from the events of all services.
//!
//! It is the only writer of its schema `stats_service`, and it writes only what events tell it:
//! the figures can be rebuilt by replaying them.

mod domain;
mod events;
mod http;
mod store;

use jiff::civil::Date;
use urr_kernel::Clock;
use urr_service::{Service, ServiceKit};
use urr_storage::{Db, Schema, StorageError, migrations};
use utoipa::openapi::OpenApi;

pub use domain::{Activity, day_in_korea};
pub use events::{GROUP, TOPICS, handle};

/// The tables of the statistics.
pub const SCHEMA: Schema = Schema {
    name: "stats_service",
    migrations: migrations![1 "activity" => "../migrations/0001_activity.sql"],
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

    /// What happened in the last `days` days, today included, newest first.
    pub async fn list_activity(&self, days: u16) -> Result<Vec<Activity>, StorageError> {
        let since: Date = domain::first_day(day_in_korea(self.clock.now()), days);
        self.db.read(move |tx| store::activity_list(tx, since)).await
    }
}
