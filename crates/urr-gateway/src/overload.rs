//! What happens when there is more to do than can be done (G9).
//!
//! Work in progress is bounded, not the rate of requests: what is beyond the bound is refused at
//! once, so that what is within stays fast. Every service has a bound of its own, which adapts: it
//! shrinks while the service is slower than it should be and grows while it is fast and in demand.
//! So a slow service is squeezed and the others keep their places. One more bound is for all
//! services together.
//!
//! Of each bound, browsing may use a part only, holding seats a larger one, and paying all of it:
//! when it gets tight, browsing goes first and payments go last.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use urr_service::ApiError;

use crate::routes::{Priority, ROUTES};

/// Answers this fast are never slow, whatever the service does on a good day.
const FAST_ENOUGH: Duration = Duration::from_millis(100);
/// So are payments. What slows them down is most often what they share with the rest; that is
/// squeezed first, and mostly that is enough.
const FAST_ENOUGH_TO_PAY: Duration = Duration::from_millis(500);
/// Slow is this many times the least time the route took lately.
const SLOW_FACTOR: u64 = 5;
/// The bound changes after so many answers, and shrinks once in this time: the answers that are
/// under way when it shrinks say nothing new.
const WINDOW_ANSWERS: u32 = 50;
const SHRINK_PAUSE: Duration = Duration::from_millis(100);
/// How long a least time is remembered, at least.
const BEST_KEPT: Duration = Duration::from_secs(30);

/// How many requests may be under way.
#[derive(Clone, Copy, Debug)]
pub struct Concurrency {
    /// At all services together.
    pub total_max: usize,
    /// At one service, when it is started, and as it adapts.
    pub start: usize,
    pub min: usize,
    pub max: usize,
}

impl Default for Concurrency {
    fn default() -> Concurrency {
        Concurrency { total_max: 2_048, start: 512, min: 32, max: 1_024 }
    }
}

/// The bounds of all services and of each.
#[derive(Debug)]
pub struct Overload {
    total: Bound,
    services: BTreeMap<&'static str, Service>,
    bests: Vec<Best>,
    begun: Instant,
}

#[derive(Debug)]
struct Service {
    bound: Bound,
    range: (usize, usize),
    window: Mutex<Window>,
}

/// A number of places, and how many of them are taken.
#[derive(Debug)]
struct Bound {
    limit: AtomicUsize,
    taken: AtomicUsize,
}

/// How many places there are at the moment, and how many are taken.
pub struct Places {
    pub service: &'static str,
    pub limit: usize,
    pub taken: usize,
}

/// The answers since the bound was last looked at.
#[derive(Debug)]
struct Window {
    answers: u32,
    slow: u32,
    busiest: usize,
    shrunk_at: Instant,
}

/// The least time that a route took in this stretch of time and in the one before, in
/// microseconds.
#[derive(Debug)]
struct Best {
    stretch: AtomicU64,
    this_us: AtomicU64,
    last_us: AtomicU64,
}

impl Bound {
    fn new(limit: usize) -> Bound {
        Bound { limit: AtomicUsize::new(limit), taken: AtomicUsize::new(0) }
    }

    /// Takes a place if one is left for this priority.
    fn take(&self, priority: Priority) -> bool {
        let limit = share(self.limit.load(Ordering::Relaxed), priority);
        let more = |taken| (taken < limit).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }

    fn places(&self, service: &'static str) -> Places {
        let [limit, taken] = [&self.limit, &self.taken].map(|n| n.load(Ordering::Relaxed));
        Places { service, limit, taken }
    }
}

/// The part of the places that a priority may fill. What is left is for those above it.
fn share(limit: usize, priority: Priority) -> usize {
    match priority {
        Priority::Pay => limit,
        Priority::Hold => limit - limit / 10,
        Priority::Browse => limit - limit * 3 / 10,
    }
}

fn fast_enough(priority: Priority) -> Duration {
    match priority {
        Priority::Pay => FAST_ENOUGH_TO_PAY,
        Priority::Hold | Priority::Browse => FAST_ENOUGH,
    }
}

/// A request under way. Dropped, it gives its places back.
#[derive(Debug)]
pub struct Place<'a> {
    overload: &'a Overload,
    service: &'a Service,
}

impl Place<'_> {
    /// Notes that the route at `position` has begun to answer. How fast a client reads the rest is
    /// its own affair.
    pub fn answered(self, position: usize, took: Duration) {
        self.overload.learn(&self, position, took);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.service.bound.give_back();
        self.overload.total.give_back();
    }
}

impl Overload {
    pub fn new(services: impl Iterator<Item = &'static str>, concurrency: Concurrency) -> Overload {
        let Concurrency { total_max, start, min, max } = concurrency;
        let begun = Instant::now();
        let service = |name| {
            let window = Window { answers: 0, slow: 0, busiest: 0, shrunk_at: begun };
            let (bound, window) = (Bound::new(start.clamp(min, max)), Mutex::new(window));
            (name, Service { bound, range: (min, max), window })
        };
        Overload {
            total: Bound::new(total_max),
            services: services.map(service).collect(),
            bests: ROUTES.iter().map(|_| Best::new()).collect(),
            begun,
        }
    }

    /// The places of each service, and of all together.
    pub fn places(&self) -> impl Iterator<Item = Places> {
        let services = self.services.iter().map(|(name, service)| service.bound.places(name));
        services.chain([self.total.places("all")])
    }

    /// Lets a request begin if there is a place for it, and refuses it at once if not.
    pub fn enter(&self, service: &str, priority: Priority) -> Result<Place<'_>, ApiError> {
        let service = &self.services[service];
        if !self.total.take(priority) {
            return Err(overloaded());
        }
        if !service.bound.take(priority) {
            self.total.give_back();
            return Err(overloaded());
        }
        Ok(Place { overload: self, service })
    }

    /// Learns from an answer of the route at `position`.
    fn learn(&self, place: &Place<'_>, position: usize, took: Duration) {
        let now = Instant::now();
        let stretch = now.duration_since(self.begun).as_secs() / BEST_KEPT.as_secs();
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let best_us = self.bests[position].learn(stretch, took_us);
        let is_slow = took > fast_enough(ROUTES[position].priority)
            && took_us > best_us.saturating_mul(SLOW_FACTOR);
        place.service.learn(is_slow, now);
    }
}

impl Service {
    fn learn(&self, is_slow: bool, now: Instant) {
        let taken = self.bound.taken.load(Ordering::Relaxed);
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        window.answers += 1;
        window.slow += u32::from(is_slow);
        window.busiest = window.busiest.max(taken);
        if window.answers < WINDOW_ANSWERS {
            return;
        }
        let limit = self.bound.limit.load(Ordering::Relaxed);
        let next = window.next_limit(limit, now).clamp(self.range.0, self.range.1);
        self.bound.limit.store(next, Ordering::Relaxed);
        if next < limit {
            window.shrunk_at = now;
        }
        (window.answers, window.slow, window.busiest) = (0, 0, 0);
    }
}

impl Window {
    /// One in five is slow: a tenth less. Hardly any is, and half of the places were needed: a
    /// little more.
    fn next_limit(&self, limit: usize, now: Instant) -> usize {
        let paused = now.duration_since(self.shrunk_at) < SHRINK_PAUSE;
        if self.slow * 5 >= self.answers {
            return if paused { limit } else { limit - (limit / 10).max(1) };
        }
        let in_demand = self.busiest * 2 >= limit;
        if self.slow * 20 < self.answers && in_demand { limit + limit / 16 + 1 } else { limit }
    }
}

impl Best {
    fn new() -> Best {
        let [stretch, this_us, last_us] = [0, u64::MAX, u64::MAX].map(AtomicU64::new);
        Best { stretch, this_us, last_us }
    }

    /// Takes a time in and gives the least one. Two that change the stretch at once may lose a
    /// time; the next ones make up for it.
    fn learn(&self, stretch: u64, took_us: u64) -> u64 {
        if self.stretch.swap(stretch, Ordering::Relaxed) != stretch {
            let ended = self.this_us.swap(u64::MAX, Ordering::Relaxed);
            self.last_us.store(ended, Ordering::Relaxed);
        }
        let this = self.this_us.fetch_min(took_us, Ordering::Relaxed).min(took_us);
        this.min(self.last_us.load(Ordering::Relaxed))
    }
}

fn overloaded() -> ApiError {
    let sentence = "There is more to do than we can do right now. Please try again in a moment.";
    ApiError::unavailable("OVERLOADED", sentence, Duration::from_secs(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Concurrency = Concurrency { total_max: 20, start: 10, min: 4, max: 12 };

    fn overload() -> Overload {
        Overload::new(["catalog", "ticket", "payment"].into_iter(), SMALL)
    }

    fn limit(overload: &Overload) -> usize {
        overload.services["catalog"].bound.limit.load(Ordering::Relaxed)
    }

    #[test]
    fn browsing_leaves_places_for_holding_and_holding_for_paying() {
        let overload = overload();
        let mut places = Vec::new();
        let mut fill = |service, priority| {
            let before = places.len();
            places.extend(std::iter::from_fn(|| overload.enter(service, priority).ok()));
            places.len() - before
        };
        assert_eq!(fill("ticket", Priority::Browse), 7);
        assert_eq!(fill("ticket", Priority::Hold), 2);
        assert_eq!(fill("ticket", Priority::Pay), 1);
        // Another service has its own places, until those of all together are taken.
        assert_eq!(fill("catalog", Priority::Browse), 4);
        assert_eq!(fill("catalog", Priority::Hold), 4);
        assert_eq!(fill("payment", Priority::Browse), 0);
        assert_eq!(fill("payment", Priority::Pay), 2);
        drop(places);
        assert_eq!(overload.total.taken.load(Ordering::Relaxed), 0);
        assert!(overload.enter("payment", Priority::Browse).is_ok());
    }

    /// Answers that take `millis` each, `count` of them, while `busy` places are taken.
    async fn answer(overload: &Overload, millis: u64, count: u32, busy: usize) {
        answer_at(overload, 0, millis, count, busy).await;
    }

    /// The same at a route of this position in the table.
    async fn answer_at(overload: &Overload, at: usize, millis: u64, count: u32, busy: usize) {
        let places: Vec<_> =
            (0..busy).filter_map(|_| overload.enter("catalog", Priority::Pay).ok()).collect();
        for _ in 0..count {
            tokio::time::advance(Duration::from_millis(5)).await;
            overload.learn(&places[0], at, Duration::from_millis(millis));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_bound_shrinks_while_answers_are_slow_and_grows_back() {
        let overload = overload();
        answer(&overload, 10, 50, 1).await;
        assert_eq!(limit(&overload), 10, "fast, but not in demand");
        answer(&overload, 10, 50, 9).await;
        assert_eq!(limit(&overload), 11);
        answer(&overload, 400, 5_000, 1).await;
        assert_eq!(limit(&overload), 4, "no further than its minimum");
        answer(&overload, 10, 5_000, 9).await;
        answer(&overload, 10, 5_000, 9).await;
        assert_eq!(limit(&overload), 12, "no further than its maximum");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_is_measured_by_what_the_route_can_do() {
        let overload = overload();
        // It always takes 300 ms, as a payment provider may: that is not overload.
        answer(&overload, 300, 500, 1).await;
        assert_eq!(limit(&overload), 10);
        // Five times that is. What is faster than anybody notices never is.
        answer(&overload, 1_600, 500, 1).await;
        assert!(limit(&overload) < 10);
        let other = self::overload();
        answer(&other, 1, 50, 1).await;
        answer(&other, 90, 500, 1).await;
        assert_eq!(limit(&other), 10);
    }

    /// G9: when all share what is slow, payments are squeezed last.
    #[tokio::test(start_paused = true)]
    async fn payments_may_be_slower_before_their_bound_shrinks() {
        let position = |priority| ROUTES.iter().position(|route| route.priority == priority);
        let limit_after = async |priority, millis| {
            let (overload, at) = (overload(), position(priority).unwrap());
            answer_at(&overload, at, 20, 50, 1).await;
            answer_at(&overload, at, millis, 500, 1).await;
            limit(&overload)
        };
        assert_eq!(limit_after(Priority::Pay, 400).await, 10);
        assert!(limit_after(Priority::Pay, 600).await < 10);
        assert!(limit_after(Priority::Hold, 400).await < 10);
        assert!(limit_after(Priority::Browse, 400).await < 10);
    }
}
