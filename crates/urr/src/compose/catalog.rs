//! The catalog service, from the configuration.

use std::time::Duration;

use anyhow::Result;
use urr_catalog::{
    CatalogParts, CatalogPeers, CatalogService, CatalogSettings, Operations, SettingInForce,
};
use urr_contracts::clients::{AuthClient, MailClient, PaymentClient, QueueClient, TicketClient};
use urr_service::{Caller, Service};
use urr_storage::Db;

use super::builder::Builder;
use super::consumers;
use crate::config::{Config, Setting};
use crate::role::ProcessRole;

/// Starts the catalog service.
pub fn start(builder: &mut Builder<'_>, db: Db) -> Result<Service> {
    let peers = CatalogPeers {
        ticket: TicketClient::new(builder.upstream(Caller::Catalog, ProcessRole::Ticket)?),
        auth: AuthClient::new(builder.upstream(Caller::Catalog, ProcessRole::Auth)?),
        operations: operations(builder),
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

/// What operators ask about. A service whose address is not known here is not asked.
fn operations(builder: &Builder<'_>) -> Operations {
    let upstream = |role| builder.upstream(Caller::Catalog, role).ok();
    let setting = |setting: &Setting| SettingInForce {
        key: setting.key.clone(),
        value: setting.display_value.clone(),
        source: setting.source.to_string(),
        environment: setting.env_names.clone(),
        comment: setting.comment.clone(),
    };
    Operations {
        payment: upstream(ProcessRole::Payment).map(PaymentClient::new),
        queue: upstream(ProcessRole::Queue).map(QueueClient::new),
        mail: upstream(ProcessRole::Mail).map(MailClient::new),
        bus: builder.bus.clone(),
        settings: builder.config.describe().iter().map(setting).collect(),
    }
}

fn settings(config: &Config) -> CatalogSettings {
    CatalogSettings {
        status_interval: Duration::from_millis(config.catalog.event_status_interval_ms),
        seats_per_user_max_default: config.seats.seats_per_user_max,
        ..CatalogSettings::default()
    }
}
