//! Seat locks: they reject competing requests before these reach the database.
//!
//! A lock is first acquired for an attempt, as "deciding", with a short life: a crash must not
//! block a free seat for minutes. After the commit it is confirmed, with the fencing token
//! that the database minted, for as long as the hold lives and a little longer.
//!
//! A lock proves nothing. Its holder still asks the database, and a holder who loses it keeps the
//! hold: a Redis that is flushed, killed or silent costs speed only. So calls do not fail;
//! [`LockResult::Unknown`] means that the database must decide.
//!
//! Invariants: acquiring, confirming or abandoning again, in any order of arrival, never weakens a
//! confirmed lock (M-14): it yields only to a higher token, to its own release, or to time.

pub(crate) mod memory;
pub(crate) mod redis;

use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{Clock, Uuid};
use urr_layout::SeatId;
use urr_redis::Redis;

use crate::locks::memory::MemoryLocks;
use crate::locks::redis::RedisLocks;

/// An attempt that takes longer loses its locks.
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

/// The result of acquiring locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockResult {
    /// The holder has all locks.
    Acquired,
    /// No lock was acquired: another user has this seat.
    Refused {
        seat_id: SeatId,
        /// The token of the hold; none while another request is being decided.
        token: Option<i64>,
    },
    /// The locks do not know: the database must decide.
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

    /// No locks: every request reaches the database.
    pub fn off() -> SeatLocks {
        SeatLocks(LockBackend::Off)
    }

    /// Acquires all of the locks, or none. `attempt` is a fresh id.
    ///
    /// Locks that the holder already has stay as they are, with their life and token.
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

    /// Confirms the locks after the commit: the holder has them for `ttl`. A higher token replaces
    /// any lock; a lower one does nothing.
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

    /// Removes the locks that this attempt newly acquired.
    pub async fn abandon(&self, event_id: Uuid, seat_ids: &[SeatId], attempt: Uuid) {
        match &self.0 {
            LockBackend::Memory(memory) => memory.abandon(event_id, seat_ids, attempt),
            LockBackend::Redis(redis) => redis.abandon(event_id, seat_ids, attempt).await,
            LockBackend::Off => {}
        }
    }

    /// Removes the locks of a hold that has ended or changed.
    pub async fn release(&self, event_id: Uuid, seat_ids: &[SeatId], token: i64) {
        match &self.0 {
            LockBackend::Memory(memory) => memory.release(event_id, seat_ids, token),
            LockBackend::Redis(redis) => redis.release(event_id, seat_ids, token).await,
            LockBackend::Off => {}
        }
    }
}
