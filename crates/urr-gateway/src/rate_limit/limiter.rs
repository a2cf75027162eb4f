//! The rate limiter: buckets in Redis if there is one, in memory if not or if Redis fails.
//!
//! A bucket never allows more than `burst` requests at once, and in any period `t` never more than
//! `burst` + `per_minute` · `t`; a refused request takes nothing. Both stores use GCRA, which keeps
//! one number per bucket and no log of requests (P-8).
//!
//! - In memory the time is that of the given clock.
//! - In Redis the time is the server's, so that replicas with different clocks agree, and a check is
//!   one script on one key. If Redis fails, the local buckets decide: a limit never opens (G4). They
//!   follow Redis, so a failure gives nobody a second burst from the same process. Each process then
//!   counts alone: with n processes a client may get n times its quota.
//! - A clock that jumps back neither opens a bucket nor blocks it for longer than a full one.
//!
//! Callers name the buckets, such as `booking:user:<id>`, and always use the same quota for a name.
//! Names are visible in Redis, so they must not contain personal data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use urr_kernel::Clock;
use urr_redis::Redis;

use super::gcra::{BucketUpdate, Gcra, Quota, RateDecision};
use super::local_buckets::{BucketHash, LocalBuckets};
use super::redis_buckets;

/// A rate limiter. Clones share everything.
#[derive(Clone)]
pub struct RateLimiter(Arc<Inner>);

struct Inner {
    clock: Clock,
    local: LocalBuckets,
    redis: Option<Redis>,
    allowed: AtomicU64,
    denied: AtomicU64,
    fallback: AtomicU64,
}

/// Counts since the start, and the present size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimiterStats {
    pub allowed: u64,
    pub denied: u64,
    /// Checks that the local buckets decided because Redis failed.
    pub fallback: u64,
    /// Checks that shared a bucket because memory was full.
    pub overflowed: u64,
    /// Local buckets, drained ones included.
    pub buckets: usize,
}

/// A counted request, with what is needed to undo it.
struct BucketCheck<'a> {
    bucket: &'a str,
    gcra: Gcra,
    update: BucketUpdate,
    /// The local bucket that counted it; `None` if Redis did.
    local: Option<BucketHash>,
}

impl RateLimiter {
    /// Limits within this process.
    pub fn local(clock: Clock) -> RateLimiter {
        RateLimiter::new(clock, None)
    }

    /// Limits all processes together; while Redis fails, each process alone.
    pub fn shared(redis: Redis, clock: Clock) -> RateLimiter {
        RateLimiter::new(clock, Some(redis))
    }

    fn new(clock: Clock, redis: Option<Redis>) -> RateLimiter {
        let local = LocalBuckets::new();
        let [allowed, denied, fallback] = std::array::from_fn(|_| AtomicU64::new(0));
        RateLimiter(Arc::new(Inner { clock, local, redis, allowed, denied, fallback }))
    }

    /// Counts one request in a bucket if its quota allows it.
    pub async fn check(&self, bucket: &str, quota: Quota) -> RateDecision {
        self.check_all(&[(bucket, quota)]).await
    }

    /// Counts one request in every bucket, or in none if one of them refuses. Returns the refusal, or
    /// the decision with the fewest requests remaining.
    ///
    /// A Redis Cluster keeps buckets on different servers, so they are checked one after the other,
    /// and earlier ones are undone when a later one refuses. Name the client's own bucket (address)
    /// before those that it could empty for others (account): a refusal by the first never touches
    /// the second. An undone request loses the time since it was counted, and if undoing fails or
    /// the caller is cancelled, it stays counted. So this may be stricter than each bucket alone,
    /// never laxer.
    pub async fn check_all(&self, checks: &[(&str, Quota)]) -> RateDecision {
        let mut counted = Vec::with_capacity(checks.len());
        let mut tightest: Option<RateDecision> = None;
        for &(bucket, quota) in checks {
            let check = self.0.take(bucket, quota).await;
            let decision = check.as_ref().map_or(quota.deny(), BucketCheck::decision);
            if !decision.allowed {
                for earlier in counted.iter().rev() {
                    self.0.undo(earlier).await;
                }
                return self.0.count(decision);
            }
            counted.extend(check);
            if tightest.is_none_or(|tightest| decision.remaining < tightest.remaining) {
                tightest = Some(decision);
            }
        }
        self.0.count(tightest.expect("a check needs a bucket"))
    }

    /// Whether there is a Redis that is not used at the moment because it fails.
    pub fn is_redis_down(&self) -> bool {
        self.0.redis.as_ref().is_some_and(Redis::is_refusing)
    }

    pub fn stats(&self) -> RateLimiterStats {
        let inner = &self.0;
        RateLimiterStats {
            allowed: inner.allowed.load(Ordering::Relaxed),
            denied: inner.denied.load(Ordering::Relaxed),
            fallback: inner.fallback.load(Ordering::Relaxed),
            overflowed: inner.local.overflowed(),
            buckets: inner.local.buckets(),
        }
    }
}

impl Inner {
    /// `None` if the quota allows nothing at all.
    async fn take<'a>(&self, bucket: &'a str, quota: Quota) -> Option<BucketCheck<'a>> {
        let gcra = quota.gcra()?;
        if let Some(redis) = &self.redis {
            // Boxed, so that checks without Redis have a small future.
            if let Ok(update) = Box::pin(redis_buckets::take(redis, bucket, &gcra)).await {
                self.copy_from_redis(bucket, update.empty_at_us - update.now_us);
                return Some(BucketCheck { bucket, gcra, update, local: None });
            }
            self.fallback.fetch_add(1, Ordering::Relaxed);
        }
        let (update, hash) = self.local.take(bucket, &gcra, self.now_us());
        Some(BucketCheck { bucket, gcra, update, local: Some(hash) })
    }

    async fn undo(&self, check: &BucketCheck<'_>) {
        let BucketCheck { bucket, gcra, update, local } = check;
        if let Some(hash) = local {
            self.local.undo(*hash, gcra, update, self.now_us());
        } else if let Some(redis) = &self.redis
            && let Ok(ahead_us) = Box::pin(redis_buckets::undo(redis, bucket, gcra, update)).await
        {
            self.copy_from_redis(bucket, ahead_us);
        }
    }

    /// Stores by our clock how far the bucket is ahead of the clock of Redis.
    fn copy_from_redis(&self, bucket: &str, ahead_us: i64) {
        let now_us = self.now_us();
        self.local.copy_from_redis(bucket, now_us + ahead_us, now_us);
    }

    fn count(&self, decision: RateDecision) -> RateDecision {
        let counter = if decision.allowed { &self.allowed } else { &self.denied };
        counter.fetch_add(1, Ordering::Relaxed);
        decision
    }

    fn now_us(&self) -> i64 {
        self.clock.now().as_microsecond()
    }
}

impl BucketCheck<'_> {
    fn decision(&self) -> RateDecision {
        self.gcra.decision(&self.update)
    }
}
