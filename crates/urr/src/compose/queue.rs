//! The queue service, from the configuration.

use std::time::Duration;

use anyhow::{Context, Result};
use tracing::info;
use urr_contracts::clients::{PaymentClient, StatsClient, TicketClient};
use urr_kernel::{Clock, Uuid};
use urr_outbound::Outbound;
use urr_queue::draw::{BeaconSource, DrandClient, DrawSeal};
use urr_queue::{LiveSources, QueueParts, QueueService, QueueSettings};
use urr_room::Rooms;
use urr_room::memory::MemoryRooms;
use urr_room::redis::{RedisRooms, RoomTime};
use urr_service::token::TokenKey;
use urr_service::{Caller, Health, Service};
use urr_storage::Db;

use super::builder::Builder;
use super::consumers;
use super::notices;
use crate::config::{Config, DrawBeacon};
use crate::engines;
use crate::role::ProcessRole;

/// The rooms of this process. They are closed last.
#[derive(Clone)]
pub struct OpenRooms {
    rooms: Rooms,
    clock: Clock,
    /// Only of rooms in memory.
    journal: Option<Db>,
}

/// A secret that was sealed before the token was changed opens while both tokens are set.
fn draw_seal(config: &Config) -> DrawSeal {
    DrawSeal::new(&config.internal.token).or_root(config.internal.other_token.as_ref())
}

/// Starts the queue service.
pub async fn start(builder: &mut Builder<'_>, db: Db) -> Result<Service> {
    builder.consume(&db, &consumers::QUEUE);
    let rooms = OpenRooms::open(builder).await?;
    let queue = QueueService::new(QueueParts {
        db,
        clock: builder.kit.clock.clone(),
        ids: builder.kit.ids.clone(),
        settings: settings(builder.config),
        rooms: rooms.rooms.clone(),
        entry_key: entry_key(builder.config),
        notices: notices::start(builder)?,
        ticket: TicketClient::new(builder.upstream(Caller::Queue, ProcessRole::Ticket)?),
        draw_seal: draw_seal(builder.config),
        beacon: beacon(builder.config),
        live_sources: live_sources(builder),
    });
    if let Rooms::Memory(rooms) = &rooms.rooms {
        // Without its journal nobody can join or leave: a new process is better than this one.
        let (rooms, stopping) = (rooms.clone(), builder.stopping.clone());
        builder.spawn("the journal of the waiting rooms", async move {
            stopping.run_until_cancelled(rooms.run_to_end()).await;
        });
    }
    builder.rooms = Some(rooms);
    queue.load().await.context("the waiting rooms")?;
    let (jobs, stopping) = (queue.clone(), builder.stopping.clone());
    builder.add_jobs("the queue jobs", async move { jobs.run_jobs(stopping).await });
    let streams = queue.clone();
    builder.close_on_drain(move || streams.close_streams());
    let service = queue.service(builder.kit);
    builder.queue = Some(queue);
    Ok(service)
}

/// What live boards ask. A process that does not know where these services are shows the rest.
fn live_sources(builder: &Builder<'_>) -> LiveSources {
    let upstream = |role| builder.upstream(Caller::Queue, role).ok();
    LiveSources {
        stats: upstream(ProcessRole::Stats).map(StatsClient::new),
        payment: upstream(ProcessRole::Payment).map(PaymentClient::new),
    }
}

fn beacon(config: &Config) -> BeaconSource {
    match config.queue.draw_beacon {
        DrawBeacon::Drand => {
            let urls = config.queue.drand_urls.clone();
            BeaconSource::Drand(DrandClient::new(Outbound::new(), urls))
        }
        DrawBeacon::Offline => BeaconSource::Offline,
    }
}

/// Signs entry tokens, and verifies them at the gateway.
pub fn entry_key(config: &Config) -> TokenKey {
    TokenKey::new(config.gateway.entry_token_secret.expose().as_bytes())
}

impl OpenRooms {
    async fn open(builder: &Builder<'_>) -> Result<OpenRooms> {
        let (clock, ids) = (builder.kit.clock.clone(), builder.kit.ids.clone());
        if let Some(redis) = &builder.redis {
            let rooms = RedisRooms::new(redis.clone(), ids, room_time(&clock));
            return Ok(OpenRooms { rooms: Rooms::Redis(rooms), clock, journal: None });
        }
        let journal = engines::open_room_journal(builder.config, &clock)?;
        let opened = MemoryRooms::open(journal.clone(), ids, clock.now()).await;
        let (rooms, recovered) = opened.context("the journal of the waiting rooms")?;
        if recovered.waiting + recovered.active > 0 {
            let (waiting, active) = (recovered.waiting, recovered.active);
            info!(rooms = recovered.rooms, waiting, active, "the waiting rooms were recovered");
        }
        Ok(OpenRooms { rooms: Rooms::Memory(rooms), clock, journal: Some(journal) })
    }

    /// Adds the check that the rooms answer.
    pub fn add_check(&self, health: Health) -> Health {
        let OpenRooms { rooms, clock, .. } = self.clone();
        health.check("waiting-rooms", move || {
            let (rooms, now) = (rooms.clone(), clock.now());
            async move {
                if matches!(&rooms, Rooms::Memory(rooms) if !rooms.is_working()) {
                    return Err("the journal cannot be written".to_owned());
                }
                let answer = rooms.crowd(Uuid::nil(), now).await;
                answer.map(drop).map_err(|error| error.to_string())
            }
        })
    }

    /// Writes the last changes to the journal and closes it.
    pub async fn close(self) {
        if let Rooms::Memory(rooms) = &self.rooms {
            rooms.close().await;
        }
        if let Some(journal) = self.journal {
            let closed = tokio::task::spawn_blocking(move || journal.close());
            closed.await.expect("closing does not panic");
        }
    }
}

/// Several processes share the rooms and their clocks differ, so Redis keeps the time. A clock that a
/// test moves comes first.
fn room_time(clock: &Clock) -> RoomTime {
    match clock {
        Clock::System => RoomTime::Server,
        Clock::Manual(_) => RoomTime::Caller,
    }
}

fn settings(config: &Config) -> QueueSettings {
    let queue = &config.queue;
    QueueSettings {
        threshold: queue.threshold,
        admitted_per_second_max: rate(queue.admission_batch_size, queue.admission_interval_ms),
        slot_ttl: Duration::from_secs(queue.active_ttl_seconds),
        slot_max: Duration::from_secs(queue.active_seconds_max),
        seen_ttl: Duration::from_secs(queue.seen_ttl_seconds),
        admission_interval: Duration::from_millis(queue.admission_interval_ms),
        sweep_interval: Duration::from_millis(queue.stale_cleanup_interval_ms),
        entry_token_ttl: Duration::from_secs(queue.entry_token_ttl_seconds),
        queues_per_user_max: queue.queues_per_user_max,
        waiting_max: queue.waiting_per_event_max,
        gathering: Duration::from_secs(queue.gathering_seconds),
        beacon_wait: Duration::from_secs(queue.beacon_wait_seconds),
        streams_max: queue.streams_max,
    }
}

/// The admissions per second that follow from a batch per interval. An interval of more than a second
/// still admits no more than its batch.
fn rate(batch_size: u32, interval_ms: u64) -> u32 {
    let per_second = u64::from(batch_size) * 1_000 / interval_ms.clamp(1, 1_000);
    u32::try_from(per_second).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_per_interval_is_a_rate_per_second() {
        assert_eq!(rate(100, 1_000), 100);
        assert_eq!(rate(50, 500), 100);
        assert_eq!(rate(100, 10_000), 100, "of which only one second in ten is used");
        assert_eq!(rate(1, 999), 1);
        assert_eq!(rate(u32::MAX, 1), u32::MAX);
    }
}
