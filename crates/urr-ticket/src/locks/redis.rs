//! Locks in Redis, shared by all processes: a key per seat, a script per operation.
//!
//! A key holds `deciding:<attempt>:<holder>` or `kept:<token>:<holder>` and lives as long as the
//! lock. The keys of an event share its hash tag, so that several seats are one step on a Cluster
//! too (F-5). Every script may run twice and does no harm then.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use urr_kernel::Uuid;
use urr_layout::SeatId;
use urr_redis::{FromRedisValue, Redis, RedisError, Script, ToRedisArgs, hash_tag};

use crate::locks::{DECIDING_TTL, LockResult};

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire.lua")));
static CONFIRM: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("confirm.lua")));
static REMOVE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("remove.lua")));

pub(crate) struct RedisLocks {
    redis: Redis,
    /// Whether the last answer was a refusal that was logged.
    is_refused: AtomicBool,
}

impl RedisLocks {
    pub fn new(redis: Redis) -> RedisLocks {
        RedisLocks { redis, is_refused: AtomicBool::new(false) }
    }

    pub async fn acquire(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        holder: Uuid,
        attempt: Uuid,
    ) -> LockResult {
        if seat_ids.is_empty() {
            return LockResult::Acquired;
        }
        let arguments = (holder.to_string(), attempt.to_string(), millis(DECIDING_TTL));
        match self.run::<(usize, String)>(&ACQUIRE, event_id, seat_ids, arguments).await {
            None => LockResult::Unknown,
            Some((0, _)) => LockResult::Acquired,
            Some((number, token)) => {
                let seat_id = seat_ids[number - 1];
                LockResult::Refused { seat_id, token: token.parse().ok() }
            }
        }
    }

    pub async fn confirm(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        holder: Uuid,
        token: i64,
        ttl: Duration,
    ) {
        let arguments = (holder.to_string(), token, millis(ttl));
        self.run::<i64>(&CONFIRM, event_id, seat_ids, arguments).await;
    }

    pub async fn abandon(&self, event_id: Uuid, seat_ids: &[SeatId], attempt: Uuid) {
        self.run::<i64>(&REMOVE, event_id, seat_ids, format!("deciding:{attempt}:")).await;
    }

    pub async fn release(&self, event_id: Uuid, seat_ids: &[SeatId], token: i64) {
        self.run::<i64>(&REMOVE, event_id, seat_ids, format!("kept:{token}:")).await;
    }

    /// None if Redis failed or did not answer.
    async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        event_id: Uuid,
        seat_ids: &[SeatId],
        arguments: impl ToRedisArgs,
    ) -> Option<T> {
        if seat_ids.is_empty() {
            return None;
        }
        let tag = hash_tag(&event_id.to_string());
        let keys: Vec<String> = seat_ids.iter().map(|seat| format!("seat:{tag}:{seat}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        match self.redis.run(script, &keys, arguments).await {
            Ok(answer) => {
                self.is_refused.store(false, Ordering::Relaxed);
                Some(answer)
            }
            // The circuit logs a Redis that does not answer.
            Err(RedisError::Unavailable | RedisError::Timeout) => None,
            Err(RedisError::Rejected(error)) => {
                if !self.is_refused.swap(true, Ordering::Relaxed) {
                    tracing::warn!(error, "Redis refuses seat locks; the database is asked");
                }
                None
            }
        }
    }
}

/// Redis has no life of zero.
fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}
