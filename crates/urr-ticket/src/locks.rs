//! Seat locks: they turn the crowd away before it reaches the database.
//!
//! A lock is first taken for an attempt, as "deciding", with a short life: a crash must not block a
//! free seat for minutes. After the commit it is kept, with the fencing token that the
//! database minted, for as long as the hold lives and a little longer.
//!
//! A lock proves nothing. Whoever has it still asks the database, and whoever loses it keeps the
//! hold: a Redis that is flushed, killed or silent costs speed only. So calls do not fail; what the
//! locks cannot tell is [`LockResult::Unknown`].
//!
//! Invariants: taking, keeping or giving up again, in whatever order the calls arrive, never weakens
//! what stands (M-14): a kept lock yields only to a higher token, to its own release, or to time.

pub(crate) mod memory;
pub(crate) mod redis;

use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{Clock, Uuid};
use urr_layout::SeatId;
use urr_redis::Redis;

use crate::locks::memory::MemoryLocks;
use crate::locks::redis::RedisLocks;

/// How long an attempt may take until its seats are free for others again.
const DECIDING_TTL: Duration = Duration::from_secs(10);

/// The locks of all events, in one of three forms. Clones share them.
#[derive(Clone)]
pub struct SeatLocks(LockBackend);

#[derive(Clone)]
enum LockBackend {
    Memory(Arc<MemoryLocks>),
    Redis(Arc<RedisLocks>),
    Off,
}

/// What came of taking locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockResult {
    /// All of them are the holder's.
    Acquired,
    /// None was taken: this seat is someone else's.
    Refused {
        seat_id: SeatId,
        /// The hold that has it. None: someone is being decided right now.
        token: Option<i64>,
    },
    /// The locks cannot tell: ask the database.
    Unknown,
}

impl SeatLocks {
    /// For a single process.
    pub fn memory(clock: Clock) -> SeatLocks {
        SeatLocks(LockBackend::Memory(Arc::new(MemoryLocks::new(clock))))
    }

    /// For several processes, on one server or on a Cluster.
    pub fn redis(redis: Redis) -> SeatLocks {
        SeatLocks(LockBackend::Redis(Arc::new(RedisLocks::new(redis))))
    }

    /// No locks: everyone asks the database.
    pub fn off() -> SeatLocks {
        SeatLocks(LockBackend::Off)
    }

    /// Takes all of the seats, or none. `attempt` is a fresh id.
    ///
    /// What the holder already has stays as it is: neither the life of the lock nor its token
    /// changes.
    pub async fn acquire(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        holder: Uuid,
        attempt: Uuid,
    ) -> LockResult {
        match &self.0 {
            LockBackend::Memory(memory) => memory.acquire(event_id, seat_ids, holder, attempt),
            LockBackend::Redis(redis) => redis.acquire(event_id, seat_ids, holder, attempt).await,
            LockBackend::Off => LockResult::Unknown,
        }
    }

    /// After the commit: the seats are the holder's for `ttl`. A higher token wins over whatever
    /// stands there; a lower one does nothing.
    pub async fn confirm(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        holder: Uuid,
        token: i64,
        ttl: Duration,
    ) {
        match &self.0 {
            LockBackend::Memory(memory) => memory.confirm(event_id, seat_ids, holder, token, ttl),
            LockBackend::Redis(redis) => {
                redis.confirm(event_id, seat_ids, holder, token, ttl).await
            }
            LockBackend::Off => {}
        }
    }

    /// The attempt came to nothing: undoes only what this very attempt newly took.
    pub async fn abandon(&self, event_id: Uuid, seat_ids: &[SeatId], attempt: Uuid) {
        match &self.0 {
            LockBackend::Memory(memory) => memory.abandon(event_id, seat_ids, attempt),
            LockBackend::Redis(redis) => redis.abandon(event_id, seat_ids, attempt).await,
            LockBackend::Off => {}
        }
    }

    /// The hold with this token is over: expired, cancelled or changed.
    pub async fn release(&self, event_id: Uuid, seat_ids: &[SeatId], token: i64) {
        match &self.0 {
            LockBackend::Memory(memory) => memory.release(event_id, seat_ids, token),
            LockBackend::Redis(redis) => redis.release(event_id, seat_ids, token).await,
            LockBackend::Off => {}
        }
    }
}
