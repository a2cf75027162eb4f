//! The ticket office as the configuration wants it.

use std::time::Duration;

use urr_service::Service;
use urr_storage::Db;
use urr_ticket::{
    SeatLocks, Signer, SlotChecker, TicketParts, TicketService, TicketSettings, consumer,
};

use super::{Builder, World};
use crate::config::Config;

/// Starts the ticket office with what runs beside it.
pub fn start(builder: &Builder<'_>, db: Db, world: &World, slots: SlotChecker) -> Service {
    builder.consume(&db, consumer::GROUP, consumer::TOPICS, consumer::handle);
    let locks = match &builder.redis {
        Some(redis) => SeatLocks::redis(redis.clone()),
        None => SeatLocks::memory(world.clock.clone()),
    };
    let ticket = service(builder.config, db, world, locks, slots);
    let (jobs, stopping) = (ticket.clone(), builder.stopping.clone());
    builder.spawn("the ticket office's jobs", async move { jobs.run_jobs(stopping).await });
    // A stream would outlast the grace of the shutdown.
    let (maps, draining) = (ticket.seat_maps().clone(), builder.draining.clone());
    builder.tasks.spawn(async move {
        draining.cancelled().await;
        maps.close_streams();
    });
    ticket.service(builder.kit)
}

/// The ticket office for a command that looks at its books: nobody books there.
pub fn ticket_service_to_read(config: &Config, db: Db, world: &World) -> TicketService {
    service(config, db, world, SeatLocks::memory(world.clock.clone()), SlotChecker::AllowAll)
}

fn service(
    config: &Config,
    db: Db,
    world: &World,
    locks: SeatLocks,
    slots: SlotChecker,
) -> TicketService {
    TicketService::new(TicketParts {
        db,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: settings(config),
        locks,
        signer: signer(config),
        slots,
    })
}

/// Signs with the key in force, and knows the one before.
fn signer(config: &Config) -> Signer {
    let seats = &config.seats;
    Signer::new(&seats.ticket_signing_key, seats.other_ticket_signing_key.as_slice())
}

fn settings(config: &Config) -> TicketSettings {
    TicketSettings {
        hold_ttl: Duration::from_secs(config.seats.hold_ttl_seconds),
        lock_ttl: Duration::from_secs(config.seats.lock_ttl_seconds),
        expiry_interval: Duration::from_millis(config.reservations.cleanup_interval_ms),
        ..TicketSettings::default()
    }
}
