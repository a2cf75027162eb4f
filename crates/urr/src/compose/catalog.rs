//! The catalog service, from the configuration.

use std::time::Duration;

use anyhow::Result;
use urr_catalog::{CatalogParts, CatalogPeers, CatalogService, CatalogSettings};
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_service::{Caller, Service};
use urr_storage::Db;

use super::builder::Builder;
use super::consumers;
use crate::config::Config;
use crate::role::ProcessRole;

/// Starts the catalog service.
pub fn start(builder: &mut Builder<'_>, db: Db) -> Result<Service> {
    let peers = CatalogPeers {
        ticket: TicketClient::new(builder.upstream(Caller::Catalog, ProcessRole::Ticket)?),
        auth: AuthClient::new(builder.upstream(Caller::Catalog, ProcessRole::Auth)?),
    };
    builder.consume(&db, &consumers::CATALOG);
    let (clock, ids) = (builder.kit.clock.clone(), builder.kit.ids.clone());
    let settings = settings(builder.config);
    let catalog =
        CatalogService::new(CatalogParts { db, clock, ids, settings, peers: Some(peers) });
    let (jobs, stopping) = (catalog.clone(), builder.stopping.clone());
    builder.add_jobs("the catalog jobs", async move { jobs.run_jobs(stopping).await });
    let service = catalog.service(builder.kit);
    builder.catalog = Some(catalog);
    Ok(service)
}

fn settings(config: &Config) -> CatalogSettings {
    CatalogSettings {
        status_interval: Duration::from_millis(config.catalog.event_status_interval_ms),
        seats_per_user_max_default: config.seats.seats_per_user_max,
        ..CatalogSettings::default()
    }
}
