//! The rule: the generic cell rate algorithm (GCRA), in whole microseconds.
//!
//! A bucket is one number, the time at which it will be empty again. Each request moves it forward
//! by one interval, and is refused if it would then be more than a burst of intervals ahead. That is
//! the same as looking at the log of all requests and asking of every stretch of time up to now
//! whether it has too many; the tests compare the two.

use std::time::Duration;

const MINUTE_US: i64 = 60_000_000;
/// No bucket reaches further ahead (32 years), so that times stay exact in Lua's numbers.
const TOLERANCE_US_MAX: i64 = 1_000_000_000_000_000;

/// How often something may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    /// The rate that can go on for ever. The time between two is rounded up to a microsecond.
    pub per_minute: u32,
    /// How many at once, after a pause. If this or the rate is zero, nothing is allowed.
    pub burst: u32,
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    /// How many at once: the burst. `remaining` never exceeds it.
    pub limit: u32,
    /// How many more would be allowed now.
    pub remaining: u32,
    /// When the next one will be allowed; zero if this one was.
    pub retry_after: Duration,
    /// When the bucket is as if never used.
    pub reset_after: Duration,
}

/// A quota in the algorithm's terms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    quota: Quota,
    /// Each request takes this long to drain.
    pub interval_us: i64,
    /// How far ahead of now a bucket may be.
    pub tolerance_us: i64,
}

/// What a request did to a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub allowed: bool,
    /// When the bucket will be empty, after this request.
    pub empty_at_us: i64,
    pub now_us: i64,
}

impl Quota {
    /// None if nothing is ever allowed.
    pub(crate) fn pace(self) -> Option<Pace> {
        let per_minute = i64::from(self.per_minute);
        if per_minute == 0 || self.burst == 0 {
            return None;
        }
        let interval_us = (MINUTE_US + per_minute - 1) / per_minute;
        let tolerance_us = (interval_us * i64::from(self.burst)).min(TOLERANCE_US_MAX);
        Some(Pace { quota: self, interval_us, tolerance_us })
    }

    /// The decision for a quota without a pace.
    pub(crate) fn nothing(self) -> Decision {
        let minute = Duration::from_secs(60);
        Decision {
            allowed: false,
            limit: self.burst,
            remaining: 0,
            retry_after: minute,
            reset_after: minute,
        }
    }
}

impl Pace {
    /// Lets a request through, or not. `take.lua` is the same.
    pub fn take(&self, empty_at_us: Option<i64>, now_us: i64) -> Taken {
        // Further ahead than any request can bring it: the clock was set back. It counts as full.
        let ahead_max_us = now_us + self.tolerance_us;
        let from_us = empty_at_us.unwrap_or(now_us).clamp(now_us, ahead_max_us);
        let next_us = from_us + self.interval_us;
        let allowed = next_us <= ahead_max_us;
        Taken { allowed, empty_at_us: if allowed { next_us } else { from_us }, now_us }
    }

    /// Undoes a request that was let through: its interval, less the time since. In that time it
    /// may have drained, or others may have been let through as if it had: giving back all of it
    /// could let one too many through.
    pub fn give_back(&self, empty_at_us: i64, taken: &Taken, now_us: i64) -> i64 {
        let left_us = self.interval_us - (now_us - taken.now_us);
        empty_at_us - left_us.min(empty_at_us - now_us).clamp(0, self.interval_us)
    }

    pub fn decision(&self, taken: &Taken) -> Decision {
        let ahead_us = taken.empty_at_us - taken.now_us;
        let remaining = (self.tolerance_us - ahead_us) / self.interval_us;
        let wait_us =
            if taken.allowed { 0 } else { ahead_us + self.interval_us - self.tolerance_us };
        Decision {
            allowed: taken.allowed,
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
pub(crate) mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// The promise, word for word: the log of what was let through, and every stretch of time.
    #[derive(Default)]
    pub struct RequestLog(Vec<i64>);

    impl RequestLog {
        pub fn take(&mut self, pace: &Pace, now_us: i64) -> bool {
            let fits = self.0.iter().rev().zip(2_i64..).all(|(&since_us, count)| {
                count * pace.interval_us <= pace.tolerance_us + now_us - since_us
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
    fn one_number_decides_as_the_log_of_all_requests_would() {
        let (mut allowed, mut refused) = (0, 0);
        for seed in 0..500 {
            let mut random = StdRng::seed_from_u64(seed);
            let quota = random_quota(&mut random);
            let pace = quota.pace().unwrap();
            let (mut log, mut empty_at_us, mut now_us) = (RequestLog::default(), None, 1_000_000);
            for step in 0..100 {
                // Often nothing, often about one interval, seldom a pause that empties it.
                now_us += match random.random_range(0..10) {
                    0..4 => 0,
                    4..9 => random.random_range(0..=2 * pace.interval_us),
                    _ => random.random_range(0..=2 * pace.tolerance_us),
                };
                let taken = pace.take(empty_at_us, now_us);
                assert_eq!(taken.allowed, log.take(&pace, now_us), "seed {seed} step {step}");
                empty_at_us = Some(taken.empty_at_us);
                if taken.allowed {
                    allowed += 1
                } else {
                    refused += 1
                }
                check_decision(&pace, &taken, &format!("seed {seed} step {step}"));
            }
        }
        assert!(allowed > 10_000 && refused > 10_000, "{allowed} and {refused}: both were tried");
    }

    /// What is said of the future comes true.
    fn check_decision(pace: &Pace, taken: &Taken, at: &str) {
        let decision = pace.decision(taken);
        assert_eq!(decision.limit, pace.quota.burst, "{at}");
        let us = |duration: Duration| i64::try_from(duration.as_micros()).unwrap();
        let mut bucket = *taken;
        for left in 0..=decision.remaining {
            bucket = pace.take(Some(bucket.empty_at_us), taken.now_us);
            assert_eq!(bucket.allowed, left < decision.remaining, "{at}");
        }
        if !taken.allowed {
            let then_us = taken.now_us + us(decision.retry_after);
            assert!(pace.take(Some(taken.empty_at_us), then_us).allowed, "{at}");
            assert!(!pace.take(Some(taken.empty_at_us), then_us - 1).allowed, "{at}");
        }
        assert_eq!(taken.now_us + us(decision.reset_after), taken.empty_at_us, "{at}");
    }

    #[test]
    fn the_largest_quotas_stay_within_their_numbers() {
        for per_minute in [1, 7, 3000, 60_000_000, u32::MAX] {
            for burst in [1, 1000, u32::MAX] {
                let pace = Quota { per_minute, burst }.pace().unwrap();
                let now_us = 2_000_000_000_000_000;
                let taken = pace.take(None, now_us);
                assert!(taken.allowed && pace.decision(&taken).remaining < burst);
                assert!(taken.now_us + pace.tolerance_us < 1 << 53, "exact in Lua");
            }
        }
    }

    #[test]
    fn a_quota_of_nothing_allows_nothing() {
        for quota in [Quota { per_minute: 0, burst: 5 }, Quota { per_minute: 5, burst: 0 }] {
            assert!(quota.pace().is_none());
            assert!(!quota.nothing().allowed);
        }
    }

    #[test]
    fn a_clock_set_back_leaves_a_full_bucket_that_drains_as_usual() {
        let pace = Quota { per_minute: 60, burst: 3 }.pace().unwrap();
        let (mut empty_at_us, now_us) = (None, 10_000_000_000);
        for _ in 0..3 {
            empty_at_us = Some(pace.take(empty_at_us, now_us).empty_at_us);
        }
        let an_hour_ago_us = now_us - 3_600_000_000;
        let taken = pace.take(empty_at_us, an_hour_ago_us);
        assert!(!taken.allowed, "not open");
        assert_eq!(pace.decision(&taken).retry_after, Duration::from_secs(1), "nor shut for long");
        assert!(pace.take(Some(taken.empty_at_us), an_hour_ago_us + 1_000_000).allowed);
    }

    #[test]
    fn what_is_given_back_at_once_is_as_never_taken() {
        let pace = Quota { per_minute: 60, burst: 3 }.pace().unwrap();
        let first = pace.take(None, 0);
        let second = pace.take(Some(first.empty_at_us), 500_000);
        assert_eq!(pace.give_back(second.empty_at_us, &second, 500_000), first.empty_at_us);
        assert_eq!(pace.give_back(first.empty_at_us, &first, 0), 0);
        // The first has drained; what is in the bucket now is another's.
        let later = pace.take(Some(first.empty_at_us), 5_000_000);
        assert_eq!(pace.give_back(later.empty_at_us, &first, 5_000_000), later.empty_at_us);
    }

    #[test]
    fn giving_back_never_lets_one_more_through_than_the_log_without_them_would() {
        let mut given_back = 0;
        for seed in 0..2000 {
            let mut random = StdRng::seed_from_u64(seed);
            let pace = random_quota(&mut random).pace().unwrap();
            let (mut log, mut empty_at_us, mut now_us) = (RequestLog::default(), None, 1_000_000);
            let mut open = Vec::new();
            for step in 0..60 {
                now_us += random.random_range(0..=pace.interval_us);
                if random.random_range(0..3) == 0 && !open.is_empty() {
                    let taken: Taken = open.swap_remove(random.random_range(0..open.len()));
                    empty_at_us = empty_at_us.map(|at_us| pace.give_back(at_us, &taken, now_us));
                    let index = log.0.iter().position(|&at_us| at_us == taken.now_us).unwrap();
                    log.0.remove(index);
                    given_back += 1;
                    continue;
                }
                let taken = pace.take(empty_at_us, now_us);
                empty_at_us = Some(taken.empty_at_us);
                if taken.allowed {
                    assert!(log.take(&pace, now_us), "seed {seed} step {step}: one too many");
                    open.push(taken);
                }
            }
        }
        assert!(given_back > 10_000, "{given_back}");
    }
}
