//! The ticket office as the configuration wants it.

use std::time::Duration;

use anyhow::Result;
use urr_service::Service;
use urr_storage::Db;
use urr_ticket::{Settings, Ticket, TicketParts};

use super::{Builder, World};
use crate::config::Config;

/// Starts the ticket office with what runs beside it.
pub fn start(builder: &Builder<'_>, db: Db, world: &World) -> Result<Service> {
    let ticket = Ticket::new(TicketParts {
        db,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: settings(builder.config),
    });
    Ok(ticket.service(builder.kit))
}

fn settings(config: &Config) -> Settings {
    Settings {
        hold_ttl: Duration::from_secs(config.seats.hold_ttl_seconds),
        lock_ttl: Duration::from_secs(config.seats.lock_ttl_seconds),
        expiry_interval: Duration::from_millis(config.reservations.cleanup_interval_ms),
    }
}
