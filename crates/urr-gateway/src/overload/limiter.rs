//! How many permits a service has: fewer while it is slower than it should be, more while it is fast
//! and in demand.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::routes::{Priority, ROUTES};

/// Responses faster than this are never slow.
const FAST_ENOUGH: Duration = Duration::from_millis(100);
/// For payments. What slows them down is usually shared with other services, which shrink first.
const FAST_ENOUGH_TO_PAY: Duration = Duration::from_millis(500);
/// Slow means this many times the lowest recent latency of the route.
const SLOW_FACTOR: u64 = 5;
/// How many responses decide about the next limit.
const WINDOW_RESPONSES: u32 = 50;
/// The limit shrinks at most once per this time, because requests that were in progress when it
/// shrank tell nothing new.
const SHRINK_PAUSE: Duration = Duration::from_millis(100);
/// The baseline is the lowest latency of this period and the one before.
const BASELINE_PERIOD: Duration = Duration::from_secs(30);

/// Adapts the limit of a service.
#[derive(Debug)]
pub(super) struct Limiter {
    limits: RangeInclusive<usize>,
    window: Mutex<LatencyWindow>,
}

/// The responses since the limit was last adapted.
#[derive(Debug)]
struct LatencyWindow {
    responses: u32,
    slow: u32,
    used_max: usize,
    shrunk_at: Instant,
}

/// The latencies by which slow responses are recognised, one per route.
#[derive(Debug)]
pub(super) struct LatencyBaselines {
    routes: Vec<LatencyBaseline>,
    started_at: Instant,
}

/// The lowest latency of a route in the current period and in the one before.
#[derive(Debug)]
struct LatencyBaseline {
    period: AtomicU64,
    current_us: AtomicU64,
    previous_us: AtomicU64,
}

fn fast_enough(priority: Priority) -> Duration {
    match priority {
        Priority::Pay => FAST_ENOUGH_TO_PAY,
        Priority::Hold | Priority::Line | Priority::Browse => FAST_ENOUGH,
    }
}

impl Limiter {
    pub(super) fn new(limits: RangeInclusive<usize>, now: Instant) -> Limiter {
        let window = LatencyWindow { responses: 0, slow: 0, used_max: 0, shrunk_at: now };
        Limiter { limits, window: Mutex::new(window) }
    }

    /// Records a response while so many permits are used, and adapts the limit now and then.
    pub(super) fn record(&self, is_slow: bool, used: usize, limit: &AtomicUsize, now: Instant) {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        window.responses += 1;
        window.slow += u32::from(is_slow);
        window.used_max = window.used_max.max(used);
        if window.responses < WINDOW_RESPONSES {
            return;
        }
        let before = limit.load(Ordering::Relaxed);
        let next = window.next_limit(before, now).clamp(*self.limits.start(), *self.limits.end());
        limit.store(next, Ordering::Relaxed);
        if next < before {
            window.shrunk_at = now;
        }
        (window.responses, window.slow, window.used_max) = (0, 0, 0);
    }
}

impl LatencyWindow {
    /// Shrinks by a tenth if one response in five is slow, and grows a little if fewer than one in
    /// twenty is and half of the permits were used.
    fn next_limit(&self, limit: usize, now: Instant) -> usize {
        let paused = now.duration_since(self.shrunk_at) < SHRINK_PAUSE;
        if self.slow * 5 >= self.responses {
            return if paused { limit } else { limit - (limit / 10).max(1) };
        }
        let in_demand = self.used_max * 2 >= limit;
        if self.slow * 20 < self.responses && in_demand { limit + limit / 16 + 1 } else { limit }
    }
}

impl LatencyBaselines {
    pub(super) fn new(started_at: Instant) -> LatencyBaselines {
        let routes = ROUTES.iter().map(|_| LatencyBaseline::new()).collect();
        LatencyBaselines { routes, started_at }
    }

    /// Records the latency of a response. Returns whether it is slow for its route.
    pub(super) fn record(&self, route_index: usize, latency: Duration, now: Instant) -> bool {
        let period = now.duration_since(self.started_at).as_secs() / BASELINE_PERIOD.as_secs();
        let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let baseline_us = self.routes[route_index].record(period, latency_us);
        latency > fast_enough(ROUTES[route_index].priority)
            && latency_us > baseline_us.saturating_mul(SLOW_FACTOR)
    }
}

impl LatencyBaseline {
    fn new() -> LatencyBaseline {
        let [period, current_us, previous_us] = [0, u64::MAX, u64::MAX].map(AtomicU64::new);
        LatencyBaseline { period, current_us, previous_us }
    }

    /// Records a latency and returns the lowest. Two threads that begin a period at once may lose a
    /// value; later responses make up for it.
    fn record(&self, period: u64, latency_us: u64) -> u64 {
        if self.period.swap(period, Ordering::Relaxed) != period {
            let ended = self.current_us.swap(u64::MAX, Ordering::Relaxed);
            self.previous_us.store(ended, Ordering::Relaxed);
        }
        let current = self.current_us.fetch_min(latency_us, Ordering::Relaxed).min(latency_us);
        current.min(self.previous_us.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overload::OverloadControl;
    use crate::overload::tests::overload;

    fn limit(overload: &OverloadControl) -> usize {
        overload.services["catalog"].pool.limit.load(Ordering::Relaxed)
    }

    /// Records `count` responses of `millis` each while `busy` permits are used.
    async fn respond(overload: &OverloadControl, millis: u64, count: u32, busy: usize) {
        respond_at(overload, 0, millis, count, busy).await;
    }

    /// The same for the route at this index.
    async fn respond_at(
        overload: &OverloadControl,
        at: usize,
        millis: u64,
        count: u32,
        busy: usize,
    ) {
        let permits: Vec<_> =
            (0..busy).filter_map(|_| overload.acquire("catalog", Priority::Pay, 0)).collect();
        for _ in 0..count {
            tokio::time::advance(Duration::from_millis(5)).await;
            let latency = Duration::from_millis(millis);
            overload.record(&permits[0], at, latency, Instant::now());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_shrinks_while_responses_are_slow_and_grows_back() {
        let overload = overload();
        respond(&overload, 10, 50, 1).await;
        assert_eq!(limit(&overload), 10, "fast, but not in demand");
        respond(&overload, 10, 50, 9).await;
        assert_eq!(limit(&overload), 11);
        respond(&overload, 400, 5_000, 1).await;
        assert_eq!(limit(&overload), 4, "not below its minimum");
        respond(&overload, 10, 5_000, 9).await;
        respond(&overload, 10, 5_000, 9).await;
        assert_eq!(limit(&overload), 12, "not above its maximum");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_is_relative_to_the_baseline_of_the_route() {
        let overload = overload();
        // It always takes 300 ms, as a payment provider may: that is not overload.
        respond(&overload, 300, 500, 1).await;
        assert_eq!(limit(&overload), 10);
        // Five times that is overload. A response below 100 ms never is.
        respond(&overload, 1_600, 500, 1).await;
        assert!(limit(&overload) < 10);
        let other = self::overload();
        respond(&other, 1, 50, 1).await;
        respond(&other, 90, 500, 1).await;
        assert_eq!(limit(&other), 10);
    }

    /// G9: when all services share what is slow, payments are shed last.
    #[tokio::test(start_paused = true)]
    async fn payments_may_be_slower_before_their_limit_shrinks() {
        let index_of = |priority| ROUTES.iter().position(|route| route.priority == priority);
        let limit_after = async |priority, millis| {
            let (overload, at) = (overload(), index_of(priority).unwrap());
            respond_at(&overload, at, 20, 50, 1).await;
            respond_at(&overload, at, millis, 500, 1).await;
            limit(&overload)
        };
        assert_eq!(limit_after(Priority::Pay, 400).await, 10);
        assert!(limit_after(Priority::Pay, 600).await < 10);
        assert!(limit_after(Priority::Hold, 400).await < 10);
        assert!(limit_after(Priority::Browse, 400).await < 10);
    }
}
