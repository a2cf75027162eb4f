//! The catalog service, from the configuration.

use std::time::Duration;

use urr_catalog::{CatalogParts, CatalogService, CatalogSettings};
use urr_service::Service;
use urr_storage::Db;

use super::builder::Builder;
use super::consumers;
use crate::config::Config;

/// Starts the catalog service.
pub fn start(builder: &mut Builder<'_>, db: Db) -> Service {
    builder.consume(&db, &consumers::CATALOG);
    let (clock, ids) = (builder.kit.clock.clone(), builder.kit.ids.clone());
    let settings = settings(builder.config);
    let catalog = CatalogService::new(CatalogParts { db, clock, ids, settings });
    let (jobs, stopping) = (catalog.clone(), builder.stopping.clone());
    builder.add_jobs("the catalog jobs", async move { jobs.run_jobs(stopping).await });
    let service = catalog.service(builder.kit);
    builder.catalog = Some(catalog);
    service
}

fn settings(config: &Config) -> CatalogSettings {
    CatalogSettings {
        status_interval: Duration::from_millis(config.catalog.event_status_interval_ms),
        seats_per_user_max_default: config.seats.seats_per_user_max,
        ..CatalogSettings::default()
    }
}
