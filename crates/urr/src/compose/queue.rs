//! The waiting rooms as the configuration wants them.

use std::time::Duration;

use anyhow::{Context, Result};
use tracing::info;
use urr_kernel::{Clock, Uuid};
use urr_queue::{Queue, QueueParts, Settings, consume};
use urr_room::Rooms;
use urr_room::memory::MemoryRooms;
use urr_room::redis::{RedisRooms, RoomTime};
use urr_service::token::TokenKey;
use urr_service::{Caller, Health};
use urr_storage::Db;

use super::{Builder, World, notices};
use crate::config::Config;
use crate::engines;
use crate::role::{ProcessRole, ProcessRoles};

/// The rooms of a process. It is closed when nothing else is at work any more.
#[derive(Clone)]
pub struct Line {
    rooms: Rooms,
    clock: Clock,
    /// Of rooms that live in the process.
    journal: Option<Db>,
}

/// Opens the waiting rooms. Before the ticket office: that one asks them.
pub async fn start(builder: &mut Builder<'_>, db: Db, world: &World) -> Result<Queue> {
    builder.consume(&db, consume::GROUP, consume::TOPICS, consume::handle);
    let line = Line::open(builder, world).await?;
    let queue = Queue::new(QueueParts {
        db,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: settings(builder.config),
        rooms: line.rooms.clone(),
        entry_key: entry_key(builder.config),
        notices: notices::start(builder)?,
    });
    if let Rooms::Memory(rooms) = &line.rooms {
        // Without its journal nobody can come or go: a new process is better than this one.
        let (rooms, stopping) = (rooms.clone(), builder.stopping.clone());
        builder.spawn("the journal of the waiting rooms", async move {
            stopping.run_until_cancelled(rooms.run_to_end()).await;
        });
    }
    builder.line = Some(line);
    queue.load().await.context("the waiting rooms")?;
    // A stream would outlast the grace of the shutdown.
    let (closing, draining) = (queue.clone(), builder.draining.clone());
    builder.tasks.spawn(async move {
        draining.cancelled().await;
        closing.close_streams();
    });
    Ok(queue)
}

/// Once the ticket office is known, wherever it is, the doors of the rooms are opened.
pub fn connect(builder: &Builder<'_>, queue: &Queue, roles: &ProcessRoles) -> Result<()> {
    queue.connect_office(builder.upstream(Caller::Queue, ProcessRole::Ticket, roles)?);
    let (jobs, stopping) = (queue.clone(), builder.stopping.clone());
    builder.spawn("the waiting rooms' jobs", async move { jobs.run_jobs(stopping).await });
    Ok(())
}

/// Signs entry tokens, and verifies them at the gateway.
pub fn entry_key(config: &Config) -> TokenKey {
    TokenKey::new(config.gateway.entry_token_secret.expose().as_bytes())
}

impl Line {
    async fn open(builder: &Builder<'_>, world: &World) -> Result<Line> {
        let clock = world.clock.clone();
        if let Some(redis) = &builder.redis {
            let rooms = RedisRooms::new(redis.clone(), world.ids.clone(), room_time(&clock));
            return Ok(Line { rooms: Rooms::Redis(rooms), clock, journal: None });
        }
        let journal = engines::open_room_journal(builder.config, &clock)?;
        let opened = MemoryRooms::open(journal.clone(), world.ids.clone(), clock.now()).await;
        let (rooms, recovered) = opened.context("the journal of the waiting rooms")?;
        if recovered.waiting + recovered.active > 0 {
            let (waiting, active) = (recovered.waiting, recovered.active);
            info!(rooms = recovered.rooms, waiting, active, "everybody is where they were");
        }
        Ok(Line { rooms: Rooms::Memory(rooms), clock, journal: Some(journal) })
    }

    /// Who does not get an answer from it cannot wait here.
    pub fn watched_by(&self, health: Health) -> Health {
        let Line { rooms, clock, .. } = self.clone();
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

    /// What was acknowledged is in the journal; the last of the rest follows.
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

/// Several processes share the rooms, and their clocks differ: that of Redis counts. Only a clock
/// that a test moves must be obeyed by everybody.
fn room_time(clock: &Clock) -> RoomTime {
    match clock {
        Clock::System => RoomTime::Server,
        Clock::Manual(_) => RoomTime::Caller,
    }
}

fn settings(config: &Config) -> Settings {
    let queue = &config.queue;
    Settings {
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
        streams_max: queue.streams_max,
    }
}

/// How many may come in within a second, if so many may at each turn of the admission. A turn that
/// comes less often than every second still lets in no more than its batch.
fn rate(batch_size: u32, interval_ms: u64) -> u32 {
    let per_second = u64::from(batch_size) * 1_000 / interval_ms.clamp(1, 1_000);
    u32::try_from(per_second).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_at_each_turn_is_a_rate_per_second() {
        assert_eq!(rate(100, 1_000), 100);
        assert_eq!(rate(50, 500), 100);
        assert_eq!(rate(100, 10_000), 100, "of which only one second in ten is used");
        assert_eq!(rate(1, 999), 1);
        assert_eq!(rate(u32::MAX, 1), u32::MAX);
    }
}
