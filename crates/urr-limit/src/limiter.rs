//! The limiter: asks Redis if there is one, its own memory if not or if Redis fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use urr_kernel::Clock;
use urr_redis::Redis;

use crate::memory::{Memory, Place};
use crate::pace::{Decision, Pace, Quota, Taken};
use crate::shared;

/// A rate limiter. Clones share everything.
#[derive(Clone)]
pub struct Limiter(Arc<Inner>);

struct Inner {
    clock: Clock,
    memory: Memory,
    redis: Option<Redis>,
    allowed: AtomicU64,
    denied: AtomicU64,
    fallback: AtomicU64,
}

/// Counts since the start, and the present size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterStats {
    pub allowed: u64,
    pub denied: u64,
    /// Checks that memory decided because Redis did not. Growing: every process limits alone.
    pub fallback: u64,
    /// Checks that shared a bucket because memory was full.
    pub overflowed: u64,
    /// Buckets in memory, drained ones included.
    pub buckets: usize,
}

/// A request that was decided, with what is needed to undo it.
struct Checked<'a> {
    bucket: &'a str,
    pace: Pace,
    taken: Taken,
    by: DecidedBy,
}

enum DecidedBy {
    Memory(Place),
    Redis,
}

impl Limiter {
    /// Limits within this process.
    pub fn memory(clock: Clock) -> Limiter {
        Limiter::new(clock, None)
    }

    /// Limits all processes together; without Redis, each for itself.
    pub fn redis(redis: Redis, clock: Clock) -> Limiter {
        Limiter::new(clock, Some(redis))
    }

    fn new(clock: Clock, redis: Option<Redis>) -> Limiter {
        let memory = Memory::new();
        let [allowed, denied, fallback] = std::array::from_fn(|_| AtomicU64::new(0));
        Limiter(Arc::new(Inner { clock, memory, redis, allowed, denied, fallback }))
    }

    /// Takes one from the bucket, if it may.
    pub async fn check(&self, bucket: &str, quota: Quota) -> Decision {
        let decision = match self.0.take(bucket, quota).await {
            Some(checked) => checked.decision(),
            None => quota.nothing(),
        };
        self.0.count(decision)
    }

    /// Takes one from each bucket, or from none if one of them refuses. Gives the refusal, or the
    /// decision that leaves least.
    ///
    /// A Cluster keeps buckets on different servers, so they are asked one after the other, and what
    /// was taken is given back when a later one refuses. In between others see it as taken. So
    /// name first the bucket that belongs to whoever asks (an address), and then those he could
    /// empty for others (an account): a refusal by the first never touches the second. What is given
    /// back lacks the moment that passed since; if giving back fails, or the caller goes away in the
    /// middle, all of it stays taken. So this may be stricter than each bucket alone, never laxer.
    pub async fn check_all(&self, checks: &[(&str, Quota)]) -> Decision {
        let mut taken = Vec::with_capacity(checks.len());
        let mut tightest: Option<Decision> = None;
        for &(bucket, quota) in checks {
            let checked = self.0.take(bucket, quota).await;
            let decision = checked.as_ref().map_or(quota.nothing(), Checked::decision);
            if !decision.allowed {
                for earlier in taken.iter().rev() {
                    self.0.give_back(earlier).await;
                }
                return self.0.count(decision);
            }
            taken.extend(checked);
            if tightest.is_none_or(|tightest| decision.remaining < tightest.remaining) {
                tightest = Some(decision);
            }
        }
        self.0.count(tightest.expect("a check needs a bucket"))
    }

    /// Whether there is a Redis that is left out at the moment, because it fails.
    pub fn is_alone(&self) -> bool {
        self.0.redis.as_ref().is_some_and(Redis::is_refusing)
    }

    pub fn stats(&self) -> LimiterStats {
        let inner = &self.0;
        LimiterStats {
            allowed: inner.allowed.load(Ordering::Relaxed),
            denied: inner.denied.load(Ordering::Relaxed),
            fallback: inner.fallback.load(Ordering::Relaxed),
            overflowed: inner.memory.overflowed(),
            buckets: inner.memory.buckets(),
        }
    }
}

impl Inner {
    /// None if the quota allows nothing at all.
    async fn take<'a>(&self, bucket: &'a str, quota: Quota) -> Option<Checked<'a>> {
        let pace = quota.pace()?;
        if let Some(redis) = &self.redis {
            // Boxed, so that those who ask memory do not carry the room for Redis along.
            if let Ok(taken) = Box::pin(shared::take(redis, bucket, &pace)).await {
                self.follow(bucket, taken.empty_at_us - taken.now_us);
                return Some(Checked { bucket, pace, taken, by: DecidedBy::Redis });
            }
            self.fallback.fetch_add(1, Ordering::Relaxed);
        }
        let (taken, place) = self.memory.take(bucket, &pace, self.now_us());
        Some(Checked { bucket, pace, taken, by: DecidedBy::Memory(place) })
    }

    async fn give_back(&self, checked: &Checked<'_>) {
        let Checked { bucket, pace, taken, by } = checked;
        match (by, &self.redis) {
            (DecidedBy::Redis, Some(redis)) => {
                let given = Box::pin(shared::give_back(redis, bucket, pace, taken)).await;
                if let Ok(ahead_us) = given {
                    self.follow(bucket, ahead_us);
                }
            }
            (DecidedBy::Redis, None) => unreachable!("there was a Redis when it decided"),
            (DecidedBy::Memory(place), _) => {
                self.memory.give_back(*place, pace, taken, self.now_us());
            }
        }
    }

    /// Notes by our clock how far ahead of its own Redis says the bucket is.
    fn follow(&self, bucket: &str, ahead_us: i64) {
        let now_us = self.now_us();
        self.memory.follow(bucket, now_us + ahead_us, now_us);
    }

    fn count(&self, decision: Decision) -> Decision {
        let counter = if decision.allowed { &self.allowed } else { &self.denied };
        counter.fetch_add(1, Ordering::Relaxed);
        decision
    }

    fn now_us(&self) -> i64 {
        self.clock.now().as_microsecond()
    }
}

impl Checked<'_> {
    fn decision(&self) -> Decision {
        self.pace.decision(&self.taken)
    }
}
