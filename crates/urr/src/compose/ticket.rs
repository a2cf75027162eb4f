//! The ticket service, from the configuration.

use std::time::Duration;

use anyhow::Result;
use urr_contracts::clients::{AuthClient, MailClient, PaymentClient, QueueClient};
use urr_kernel::{Secret, Won};
use urr_service::{Caller, DataKeys, Service};
use urr_storage::Db;
use urr_ticket::{
    AlertSettings, PersonFinder, SeatLocks, Signer, SlotChecker, TicketParts, TicketPeers,
    TicketService, TicketSettings,
};

use super::ClockAndIds;
use super::auth::data_keys;
use super::builder::Builder;
use super::consumers;
use crate::config::Config;
use crate::engines;
use crate::role::ProcessRole;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Starts the ticket service.
pub fn start(builder: &mut Builder<'_>, db: Db) -> Result<Service> {
    let sources = builder.sources();
    let locks = match &builder.redis {
        Some(redis) => SeatLocks::redis(redis.clone()),
        None => SeatLocks::memory(sources.clock.clone()),
    };
    let queue = builder.upstream(Caller::Ticket, ProcessRole::Queue)?;
    let slots = SlotChecker::new(QueueClient::new(queue));
    let auth = AuthClient::new(builder.upstream(Caller::Ticket, ProcessRole::Auth)?);
    let persons = PersonFinder::Auth(auth.clone());
    let peers = TicketPeers {
        auth,
        payment: PaymentClient::new(builder.upstream(Caller::Ticket, ProcessRole::Payment)?),
        mail: MailClient::new(builder.upstream(Caller::Ticket, ProcessRole::Mail)?),
    };
    let parts = parts(builder.config, db.clone(), &sources, locks, data_keys(builder.config)?);
    let ticket = TicketService::new(TicketParts { slots, persons, peers: Some(peers), ..parts });
    builder.consume_with(&db, &consumers::TICKET, ticket.event_handler());
    let (jobs, stopping) = (ticket.clone(), builder.stopping.clone());
    builder.add_jobs("the ticket jobs", async move { jobs.run_jobs(stopping).await });
    let maps = ticket.seat_maps().clone();
    builder.close_on_drain(move || maps.close_streams());
    Ok(ticket.service(builder.kit))
}

/// The ticket service for a command, which sells nothing.
pub fn ticket_service_alone(
    config: &Config,
    db: Db,
    sources: &ClockAndIds,
) -> Result<TicketService> {
    let locks = SeatLocks::memory(sources.clock.clone());
    // An audit reads no guests and needs no key; without one, its service could open none.
    let keys = match config.auth.data_key.expose() {
        "" => DataKeys::single(Secret::generate()),
        _ => data_keys(config)?,
    };
    Ok(TicketService::new(parts(config, db, sources, locks, keys)))
}

/// The ticket service without other services.
fn parts(
    config: &Config,
    db: Db,
    sources: &ClockAndIds,
    locks: SeatLocks,
    data_keys: DataKeys,
) -> TicketParts {
    TicketParts {
        db,
        clock: sources.clock.clone(),
        ids: sources.ids.clone(),
        settings: settings(config),
        locks,
        signer: signer(config),
        data_keys,
        slots: SlotChecker::AllowAll,
        persons: PersonFinder::nobody(),
        peers: None,
    }
}

/// Signs with the current key, and verifies with the one before as well.
fn signer(config: &Config) -> Signer {
    let seats = &config.seats;
    Signer::new(&seats.ticket_signing_key, seats.other_ticket_signing_key.as_slice())
}

fn settings(config: &Config) -> TicketSettings {
    TicketSettings {
        hold_ttl: Duration::from_secs(config.seats.hold_ttl_seconds),
        hold_extension: Duration::from_secs(config.seats.hold_extension_seconds),
        lock_ttl: Duration::from_secs(config.seats.lock_ttl_seconds),
        expiry_interval: Duration::from_millis(config.reservations.cleanup_interval_ms),
        alerts: AlertSettings {
            sale_lead: Duration::from_secs(config.alerts.sale_lead_seconds),
            head_start: Duration::from_secs(config.alerts.head_start_seconds),
            exclusive_max: Duration::from_secs(config.alerts.exclusive_seconds),
            ..AlertSettings::default()
        },
        guests_kept: Duration::from_secs(u64::from(config.seats.guests_kept_days) * DAY_SECONDS),
        shares_bookings: engines::is_on_postgres(config, ProcessRole::Ticket),
        support_refund_max: Won::new(config.payments.support_refund_max_won),
        ..TicketSettings::default()
    }
}
