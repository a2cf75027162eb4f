//! The catalogue as the configuration wants it.

use std::time::Duration;

use urr_catalog::{CatalogService, CatalogSettings};
use urr_storage::Db;

use super::{Builder, World};
use crate::config::Config;

/// Starts the catalogue with what runs beside it.
pub fn start(builder: &Builder<'_>, db: Db, world: &World) -> CatalogService {
    let consumed = urr_catalog::CONSUMED_TOPICS;
    builder.consume(&db, urr_catalog::GROUP, consumed, urr_catalog::handle);
    let (clock, ids) = (world.clock.clone(), world.ids.clone());
    let catalog = CatalogService::with_settings(db, clock, ids, settings(builder.config));
    let (jobs, stopping) = (catalog.clone(), builder.stopping.clone());
    builder.spawn("the catalogue's jobs", async move { jobs.run_jobs(stopping).await });
    catalog
}

pub fn settings(config: &Config) -> CatalogSettings {
    CatalogSettings {
        status_interval: Duration::from_millis(config.catalog.event_status_interval_ms),
        seats_per_user_max_default: config.seats.seats_per_user_max,
        ..CatalogSettings::default()
    }
}
