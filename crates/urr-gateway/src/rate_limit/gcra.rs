//! The generic cell rate algorithm (GCRA), in whole microseconds.
//!
//! A bucket is one number: the time at which it will be empty. Each request moves it forward by one
//! interval and is refused if it would then be more than a burst of intervals ahead of now. A log of
//! all requests, checked over every period up to now, gives the same decisions; the tests compare
//! the two.

use std::time::Duration;

const MINUTE_US: i64 = 60_000_000;
/// No bucket is further ahead than 32 years, so that times stay exact in Lua's numbers.
const TOLERANCE_US_MAX: i64 = 1_000_000_000_000_000;

/// How many requests a bucket allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    /// The sustained rate. The interval between two requests is rounded up to a microsecond.
    pub per_minute: u32,
    /// How many requests may come at once. If this or the rate is zero, nothing is allowed.
    pub burst: u32,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    pub allowed: bool,
    /// The burst. `remaining` never exceeds it.
    pub limit: u32,
    /// How many more requests would be allowed now.
    pub remaining: u32,
    /// When the next request will be allowed; zero if this one was.
    pub retry_after: Duration,
    /// When the bucket will be empty.
    pub reset_after: Duration,
}

/// A quota in the algorithm's terms.
#[derive(Debug, Clone, Copy)]
pub struct Gcra {
    quota: Quota,
    /// How long one request takes to drain.
    pub interval_us: i64,
    /// How far ahead of now a bucket may be.
    pub tolerance_us: i64,
}

/// The change that a request made to a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketUpdate {
    pub allowed: bool,
    /// When the bucket will be empty, after this request.
    pub empty_at_us: i64,
    pub now_us: i64,
}

impl Quota {
    /// `None` if nothing is ever allowed.
    pub(super) fn gcra(self) -> Option<Gcra> {
        let per_minute = i64::from(self.per_minute);
        if per_minute == 0 || self.burst == 0 {
            return None;
        }
        let interval_us = (MINUTE_US + per_minute - 1) / per_minute;
        let tolerance_us = (interval_us * i64::from(self.burst)).min(TOLERANCE_US_MAX);
        Some(Gcra { quota: self, interval_us, tolerance_us })
    }

    /// The decision for a quota that allows nothing.
    pub(super) fn deny(self) -> RateDecision {
        let minute = Duration::from_secs(60);
        RateDecision {
            allowed: false,
            limit: self.burst,
            remaining: 0,
            retry_after: minute,
            reset_after: minute,
        }
    }
}

impl Gcra {
    /// Counts a request if it is allowed. `take.lua` does the same.
    pub fn take(&self, empty_at_us: Option<i64>, now_us: i64) -> BucketUpdate {
        // A time further ahead than a full bucket means that the clock was set back. It counts as full.
        let ahead_max_us = now_us + self.tolerance_us;
        let from_us = empty_at_us.unwrap_or(now_us).clamp(now_us, ahead_max_us);
        let next_us = from_us + self.interval_us;
        let allowed = next_us <= ahead_max_us;
        BucketUpdate { allowed, empty_at_us: if allowed { next_us } else { from_us }, now_us }
    }

    /// Undoes an allowed request: subtracts its interval less the time since. In that time it may
    /// have drained, or other requests may have used the space, so subtracting the whole interval
    /// could allow one request too many.
    pub fn undo(&self, empty_at_us: i64, update: &BucketUpdate, now_us: i64) -> i64 {
        let left_us = self.interval_us - (now_us - update.now_us);
        empty_at_us - left_us.min(empty_at_us - now_us).clamp(0, self.interval_us)
    }

    pub fn decision(&self, update: &BucketUpdate) -> RateDecision {
        let ahead_us = update.empty_at_us - update.now_us;
        let remaining = (self.tolerance_us - ahead_us) / self.interval_us;
        let wait_us =
            if update.allowed { 0 } else { ahead_us + self.interval_us - self.tolerance_us };
        RateDecision {
            allowed: update.allowed,
            limit: self.quota.burst,
            remaining: u32::try_from(remaining).unwrap_or(self.quota.burst),
            retry_after: micros(wait_us),
            reset_after: micros(ahead_us),
        }
    }
}

fn micros(us: i64) -> Duration {
    Duration::from_micros(us.try_into().unwrap_or(0))
}

#[cfg(test)]
pub(super) mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// The specification: a log of allowed requests, checked over every period.
    #[derive(Default)]
    pub struct RequestLog(Vec<i64>);

    impl RequestLog {
        pub fn take(&mut self, gcra: &Gcra, now_us: i64) -> bool {
            let fits = self.0.iter().rev().zip(2_i64..).all(|(&since_us, count)| {
                count * gcra.interval_us <= gcra.tolerance_us + now_us - since_us
            });
            if fits {
                self.0.push(now_us);
            }
            fits
        }
    }

    pub fn random_quota(random: &mut StdRng) -> Quota {
        Quota { per_minute: random.random_range(1..=6000), burst: random.random_range(1..=8) }
    }

    #[test]
    fn gcra_decides_as_a_log_of_all_requests_would() {
        let (mut allowed, mut refused) = (0, 0);
        for seed in 0..500 {
            let mut random = StdRng::seed_from_u64(seed);
            let quota = random_quota(&mut random);
            let gcra = quota.gcra().unwrap();
            let (mut log, mut empty_at_us, mut now_us) = (RequestLog::default(), None, 1_000_000);
            for step in 0..100 {
                // Often no time, often about one interval, seldom a pause that empties the bucket.
                now_us += match random.random_range(0..10) {
                    0..4 => 0,
                    4..9 => random.random_range(0..=2 * gcra.interval_us),
                    _ => random.random_range(0..=2 * gcra.tolerance_us),
                };
                let update = gcra.take(empty_at_us, now_us);
                assert_eq!(update.allowed, log.take(&gcra, now_us), "seed {seed} step {step}");
                empty_at_us = Some(update.empty_at_us);
                if update.allowed {
                    allowed += 1
                } else {
                    refused += 1
                }
                check_decision(&gcra, &update, &format!("seed {seed} step {step}"));
            }
        }
        assert!(allowed > 10_000 && refused > 10_000, "{allowed} and {refused}: both were tried");
    }

    /// The predictions of a decision come true.
    fn check_decision(gcra: &Gcra, update: &BucketUpdate, at: &str) {
        let decision = gcra.decision(update);
        assert_eq!(decision.limit, gcra.quota.burst, "{at}");
        let us = |duration: Duration| i64::try_from(duration.as_micros()).unwrap();
        let mut bucket = *update;
        for left in 0..=decision.remaining {
            bucket = gcra.take(Some(bucket.empty_at_us), update.now_us);
            assert_eq!(bucket.allowed, left < decision.remaining, "{at}");
        }
        if !update.allowed {
            let then_us = update.now_us + us(decision.retry_after);
            assert!(gcra.take(Some(update.empty_at_us), then_us).allowed, "{at}");
            assert!(!gcra.take(Some(update.empty_at_us), then_us - 1).allowed, "{at}");
        }
        assert_eq!(update.now_us + us(decision.reset_after), update.empty_at_us, "{at}");
    }

    #[test]
    fn the_largest_quotas_do_not_overflow() {
        for per_minute in [1, 7, 3000, 60_000_000, u32::MAX] {
            for burst in [1, 1000, u32::MAX] {
                let gcra = Quota { per_minute, burst }.gcra().unwrap();
                let now_us = 2_000_000_000_000_000;
                let update = gcra.take(None, now_us);
                assert!(update.allowed && gcra.decision(&update).remaining < burst);
                assert!(update.now_us + gcra.tolerance_us < 1 << 53, "exact in Lua");
            }
        }
    }

    #[test]
    fn a_quota_of_nothing_allows_nothing() {
        for quota in [Quota { per_minute: 0, burst: 5 }, Quota { per_minute: 5, burst: 0 }] {
            assert!(quota.gcra().is_none());
            assert!(!quota.deny().allowed);
        }
    }

    #[test]
    fn a_clock_set_back_leaves_a_full_bucket_that_drains_as_usual() {
        let gcra = Quota { per_minute: 60, burst: 3 }.gcra().unwrap();
        let (mut empty_at_us, now_us) = (None, 10_000_000_000);
        for _ in 0..3 {
            empty_at_us = Some(gcra.take(empty_at_us, now_us).empty_at_us);
        }
        let an_hour_ago_us = now_us - 3_600_000_000;
        let update = gcra.take(empty_at_us, an_hour_ago_us);
        assert!(!update.allowed, "still limited");
        assert_eq!(
            gcra.decision(&update).retry_after,
            Duration::from_secs(1),
            "but not blocked for long"
        );
        assert!(gcra.take(Some(update.empty_at_us), an_hour_ago_us + 1_000_000).allowed);
    }

    #[test]
    fn a_request_that_is_undone_at_once_leaves_no_trace() {
        let gcra = Quota { per_minute: 60, burst: 3 }.gcra().unwrap();
        let first = gcra.take(None, 0);
        let second = gcra.take(Some(first.empty_at_us), 500_000);
        assert_eq!(gcra.undo(second.empty_at_us, &second, 500_000), first.empty_at_us);
        assert_eq!(gcra.undo(first.empty_at_us, &first, 0), 0);
        // The first request has drained; the bucket now holds another one.
        let later = gcra.take(Some(first.empty_at_us), 5_000_000);
        assert_eq!(gcra.undo(later.empty_at_us, &first, 5_000_000), later.empty_at_us);
    }

    #[test]
    fn undoing_never_allows_more_than_a_log_without_the_undone_requests() {
        let mut undone = 0;
        for seed in 0..2000 {
            let mut random = StdRng::seed_from_u64(seed);
            let gcra = random_quota(&mut random).gcra().unwrap();
            let (mut log, mut empty_at_us, mut now_us) = (RequestLog::default(), None, 1_000_000);
            let mut open = Vec::new();
            for step in 0..60 {
                now_us += random.random_range(0..=gcra.interval_us);
                if random.random_range(0..3) == 0 && !open.is_empty() {
                    let update: BucketUpdate = open.swap_remove(random.random_range(0..open.len()));
                    empty_at_us = empty_at_us.map(|at_us| gcra.undo(at_us, &update, now_us));
                    let index = log.0.iter().position(|&at_us| at_us == update.now_us).unwrap();
                    log.0.remove(index);
                    undone += 1;
                    continue;
                }
                let update = gcra.take(empty_at_us, now_us);
                empty_at_us = Some(update.empty_at_us);
                if update.allowed {
                    assert!(log.take(&gcra, now_us), "seed {seed} step {step}: one too many");
                    open.push(update);
                }
            }
        }
        assert!(undone > 10_000, "{undone}");
    }
}
