//! Overload control: limits the requests in progress and sheds the rest at once (G9).
//!
//! A request needs a permit of its service and one of all services together. The number of permits
//! of a service adapts (`limiter.rs`), so a slow service gets less work and the others keep their
//! permits.
//!
//! Browsing may use only a part of the permits, holding seats a larger part, and paying all of them:
//! browsing is shed first and payments last. Webhooks come from anybody, so they share a few permits
//! of their own beside those of their service.
//!
//! A busy processor makes everything slow, although no service is: then fewer permits make nothing
//! faster. So the permits do not shrink below a floor for users who are inside, whose number the
//! waiting room bounds: for paying, holding seats, seat maps and the own reservations, in this order.
//!
//! Joining a line and asking for one's position take permits of their own, whose number is fixed.
//! Serving them costs hardly more than a refusal, and everybody who is refused asks again: a crowd
//! that is refused makes more work than one that is served.
//!
//! A client that is shed is told when to come back. The time grows with the number of clients that
//! are shed, and differs from client to client, so that they do not all come back at once.

mod limiter;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use urr_service::ApiError;

use self::limiter::{LatencyBaselines, Limiter};
use crate::routes::{Policy, Priority, RateClass, Route};

/// How many webhooks may be in progress. Providers send those again that are shed.
const WEBHOOKS_MAX: usize = 16;

/// A client that is shed comes back after this time at the earliest, and the latest.
const RETRY_SECONDS_MIN: u64 = 2;
const RETRY_SECONDS_MAX: u64 = 30;

/// How many requests may be in progress.
#[derive(Clone, Copy, Debug)]
pub struct ConcurrencyLimits {
    /// For all services together, without those of `line`.
    pub total_max: usize,
    /// For joining lines and asking for positions.
    pub line: usize,
    /// For one service at the start; it adapts between `min` and `max`.
    pub start: usize,
    pub min: usize,
    pub max: usize,
    /// How many permits of a service users who are inside have at least.
    pub inside_min: usize,
}

impl ConcurrencyLimits {
    /// Few of those who are inside ask at the same moment.
    const INSIDE_PER_PERMIT: usize = 4;
    const INSIDE_MIN_MAX: usize = 256;

    /// For a waiting room that lets so many users in at once.
    pub fn for_threshold(threshold: u32) -> ConcurrencyLimits {
        let limits = ConcurrencyLimits::default();
        let inside = usize::try_from(threshold).unwrap_or(usize::MAX);
        let inside_min = inside / ConcurrencyLimits::INSIDE_PER_PERMIT;
        let inside_min = inside_min.clamp(limits.min, ConcurrencyLimits::INSIDE_MIN_MAX);
        ConcurrencyLimits { inside_min, ..limits }
    }
}

impl Default for ConcurrencyLimits {
    fn default() -> ConcurrencyLimits {
        ConcurrencyLimits {
            total_max: 2_048,
            line: 8_192,
            start: 512,
            min: 32,
            max: 1_024,
            inside_min: 0,
        }
    }
}

/// The permits of each service, and of all services together.
#[derive(Debug)]
pub struct OverloadControl {
    total: PermitPool,
    webhooks: PermitPool,
    line: PermitPool,
    recent: RecentRequests,
    inside_min: usize,
    services: BTreeMap<&'static str, ServicePermits>,
    baselines: LatencyBaselines,
    started_at: Instant,
}

#[derive(Debug)]
struct ServicePermits {
    pool: PermitPool,
    limiter: Limiter,
}

#[derive(Debug)]
struct PermitPool {
    limit: AtomicUsize,
    used: AtomicUsize,
}

/// A snapshot of a pool for metrics.
pub struct PermitUsage {
    pub service: &'static str,
    pub limit: usize,
    pub used: usize,
}

impl PermitPool {
    fn new(limit: usize) -> PermitPool {
        PermitPool { limit: AtomicUsize::new(limit), used: AtomicUsize::new(0) }
    }

    /// Takes a permit if one is left for this priority, or of the `floor`.
    fn try_acquire(&self, priority: Priority, floor: usize) -> bool {
        let limit = share(self.limit.load(Ordering::Relaxed), priority).max(floor);
        let more = |used| (used < limit).then_some(used + 1);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    fn release(&self) {
        self.used.fetch_sub(1, Ordering::AcqRel);
    }

    fn usage(&self, service: &'static str) -> PermitUsage {
        let [limit, used] = [&self.limit, &self.used].map(|n| n.load(Ordering::Relaxed));
        PermitUsage { service, limit, used }
    }
}

/// How many permits a priority may use. The rest is reserved for higher priorities.
fn share(limit: usize, priority: Priority) -> usize {
    match priority {
        Priority::Pay => limit,
        Priority::Hold => limit - limit / 10,
        // It has permits of its own.
        Priority::Line => limit,
        Priority::Browse => limit - limit * 3 / 10,
    }
}

/// How many permits of its service a request may use however far they have shrunk. Each step leaves
/// some for the next one.
fn floor(route: &Route, inside_min: usize) -> usize {
    match (route.priority, route.policy) {
        (Priority::Pay, _) => inside_min,
        (Priority::Hold, Policy::Admitted) => inside_min * 3 / 4,
        (Priority::Browse, Policy::Admitted) => inside_min / 2,
        (Priority::Browse, Policy::User) => inside_min / 4,
        _ => 0,
    }
}

/// The permit of a request in progress, released on drop.
#[derive(Debug)]
pub struct OverloadPermit<'a> {
    control: &'a OverloadControl,
    kind: PermitKind<'a>,
    acquired_at: Instant,
}

#[derive(Debug)]
enum PermitKind<'a> {
    Line,
    Service { permits: &'a ServicePermits, is_webhook: bool },
}

impl<'a> OverloadPermit<'a> {
    fn new(control: &'a OverloadControl, kind: PermitKind<'a>) -> OverloadPermit<'a> {
        OverloadPermit { control, kind, acquired_at: Instant::now() }
    }

    /// Records the latency up to the response headers and releases the permit. How fast a client
    /// reads the body says nothing about the service.
    pub fn complete(self, route_index: usize) {
        let now = Instant::now();
        self.control.record(&self, route_index, now.duration_since(self.acquired_at), now);
    }
}

impl Drop for OverloadPermit<'_> {
    fn drop(&mut self) {
        match self.kind {
            PermitKind::Line => self.control.line.release(),
            PermitKind::Service { permits, is_webhook } => {
                permits.pool.release();
                self.control.total.release();
                if is_webhook {
                    self.control.webhooks.release();
                }
            }
        }
    }
}

impl OverloadControl {
    pub fn new(
        services: impl Iterator<Item = &'static str>,
        limits: ConcurrencyLimits,
    ) -> OverloadControl {
        let ConcurrencyLimits { total_max, line, start, min, max, inside_min } = limits;
        let started_at = Instant::now();
        let service = |name| {
            let limiter = Limiter::new(min..=max, started_at);
            (name, ServicePermits { pool: PermitPool::new(start.clamp(min, max)), limiter })
        };
        OverloadControl {
            total: PermitPool::new(total_max),
            webhooks: PermitPool::new(WEBHOOKS_MAX),
            line: PermitPool::new(line),
            recent: RecentRequests::default(),
            inside_min: inside_min.min(max),
            services: services.map(service).collect(),
            baselines: LatencyBaselines::new(started_at),
            started_at,
        }
    }

    /// The usage of each service, of lines, and of all services together.
    pub fn usage(&self) -> impl Iterator<Item = PermitUsage> {
        let services = self.services.iter().map(|(name, service)| service.pool.usage(name));
        services.chain([self.line.usage("line"), self.total.usage("all")])
    }

    /// Takes a permit for a request, or none.
    fn acquire(
        &self,
        service: &str,
        priority: Priority,
        floor: usize,
    ) -> Option<OverloadPermit<'_>> {
        let permits = &self.services[service];
        if !self.total.try_acquire(priority, 0) {
            return None;
        }
        if !permits.pool.try_acquire(priority, floor) {
            self.total.release();
            return None;
        }
        let kind = PermitKind::Service { permits, is_webhook: false };
        Some(OverloadPermit::new(self, kind))
    }

    /// Takes the permits that requests of a route need, or refuses the request at once.
    pub fn acquire_for(&self, route: &Route) -> Result<OverloadPermit<'_>, ApiError> {
        let permit = match route.priority {
            Priority::Line => {
                let is_free = self.line.try_acquire(Priority::Line, 0);
                is_free.then(|| OverloadPermit::new(self, PermitKind::Line))
            }
            priority => self.acquire(route.service, priority, floor(route, self.inside_min)),
        };
        let permit = permit.and_then(|permit| self.with_webhook(permit, route));
        let second = |now: Instant| now.duration_since(self.started_at).as_secs();
        match permit {
            Some(permit) => {
                self.recent.count_served(second(permit.acquired_at));
                Ok(permit)
            }
            None => Err(overloaded(self.recent.count_shed(second(Instant::now())))),
        }
    }

    /// Takes a permit for webhooks too, if the request is one.
    fn with_webhook<'a>(
        &'a self,
        mut permit: OverloadPermit<'a>,
        route: &Route,
    ) -> Option<OverloadPermit<'a>> {
        if let PermitKind::Service { is_webhook, .. } = &mut permit.kind
            && route.rate_class == RateClass::Webhook
        {
            if !self.webhooks.try_acquire(route.priority, 0) {
                return None;
            }
            *is_webhook = true;
        }
        Some(permit)
    }

    /// Records the latency of a response, and adapts the limit of its service.
    fn record(
        &self,
        permit: &OverloadPermit<'_>,
        route_index: usize,
        latency: Duration,
        now: Instant,
    ) {
        let is_slow = self.baselines.record(route_index, latency, now);
        if let PermitKind::Service { permits: ServicePermits { pool, limiter }, .. } = permit.kind {
            limiter.record(is_slow, pool.used.load(Ordering::Relaxed), &pool.limit, now);
        }
    }
}

/// How many requests were served and shed in this second and the one before. Two threads that
/// begin a second at once may lose a few.
#[derive(Debug, Default)]
struct RecentRequests {
    second: AtomicU64,
    served: AtomicU64,
    shed: AtomicU64,
    served_before: AtomicU64,
    shed_before: AtomicU64,
}

impl RecentRequests {
    fn count_served(&self, second: u64) {
        self.begin(second);
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that is shed, and returns when its client should come back: the time in
    /// which the clients that are shed in a second could be served, each at a second of its own.
    fn count_shed(&self, second: u64) -> Duration {
        self.begin(second);
        let shed = self.shed.fetch_add(1, Ordering::Relaxed) + 1;
        let shed_max = shed.max(self.shed_before.load(Ordering::Relaxed));
        let [now, before] = [&self.served, &self.served_before];
        let served_max = now.load(Ordering::Relaxed).max(before.load(Ordering::Relaxed)).max(1);
        let span = (shed_max / served_max).min(RETRY_SECONDS_MAX - RETRY_SECONDS_MIN) + 1;
        Duration::from_secs(RETRY_SECONDS_MIN + shed % span)
    }

    fn begin(&self, second: u64) {
        let begun = self.second.swap(second, Ordering::Relaxed);
        if begun == second {
            return;
        }
        let is_next = begun + 1 == second;
        for (now, before) in [(&self.served, &self.served_before), (&self.shed, &self.shed_before)]
        {
            let count = now.swap(0, Ordering::Relaxed);
            before.store(if is_next { count } else { 0 }, Ordering::Relaxed);
        }
    }
}

pub fn overloaded(retry_after: Duration) -> ApiError {
    let sentence = "The service is very busy right now. Please try again in a moment.";
    ApiError::unavailable("OVERLOADED", sentence, retry_after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{ROUTES, RouteMatch, find_route, match_route};

    const SMALL: ConcurrencyLimits =
        ConcurrencyLimits { total_max: 20, line: 5, start: 10, min: 4, max: 12, inside_min: 0 };

    pub(super) fn overload() -> OverloadControl {
        OverloadControl::new(["catalog", "ticket", "payment"].into_iter(), SMALL)
    }

    fn route_of(method: &str, path: &str) -> (usize, &'static Route) {
        match match_route(&method.parse().unwrap(), path) {
            RouteMatch::Route(index, route) => (index, route),
            _ => panic!("{method} {path} has no route"),
        }
    }

    #[test]
    fn browsing_leaves_permits_for_holding_and_holding_for_paying() {
        let overload = overload();
        let mut permits = Vec::new();
        let mut fill = |service, priority| {
            let before = permits.len();
            permits.extend(std::iter::from_fn(|| overload.acquire(service, priority, 0)));
            permits.len() - before
        };
        assert_eq!(fill("ticket", Priority::Browse), 7);
        assert_eq!(fill("ticket", Priority::Hold), 2);
        assert_eq!(fill("ticket", Priority::Pay), 1);
        // Another service has its own permits, until those of all services together are used.
        assert_eq!(fill("catalog", Priority::Browse), 4);
        assert_eq!(fill("catalog", Priority::Hold), 4);
        assert_eq!(fill("payment", Priority::Browse), 0);
        assert_eq!(fill("payment", Priority::Pay), 2);
        drop(permits);
        assert_eq!(overload.total.used.load(Ordering::Relaxed), 0);
        assert!(overload.acquire("payment", Priority::Browse, 0).is_some());
    }

    #[test]
    fn webhooks_have_few_permits_and_leave_the_others() {
        let limits = ConcurrencyLimits { total_max: 100, start: 50, max: 50, ..SMALL };
        let overload = OverloadControl::new(["payment"].into_iter(), limits);
        let [webhook, pay] = ["/api/payments/webhooks/toss", "/api/payments/confirm"]
            .map(|path| find_route(path).unwrap());
        let mut permits: Vec<_> =
            std::iter::from_fn(|| overload.acquire_for(webhook).ok()).take(50).collect();
        assert_eq!(permits.len(), WEBHOOKS_MAX);
        permits.extend(std::iter::from_fn(|| overload.acquire_for(pay).ok()).take(50));
        assert_eq!(permits.len(), 50, "the others have the rest");
        drop(permits);
        assert!(overload.acquire_for(webhook).is_ok());
    }

    /// Polls neither take the permits of sales nor lose theirs when the services are slow.
    #[tokio::test(start_paused = true)]
    async fn lines_have_permits_of_their_own_that_do_not_shrink() {
        let overload = overload();
        let [poll, seats] =
            ["/api/queue/status/1", "/api/seats/events/1"].map(|path| find_route(path).unwrap());
        let fill = |route| -> Vec<_> {
            std::iter::from_fn(|| overload.acquire_for(route).ok()).take(100).collect()
        };
        let polls = fill(poll);
        assert_eq!(polls.len(), 5);
        assert_eq!(fill(seats).len(), 7, "polls have not taken them");
        let at = ROUTES.iter().position(|route| route.priority == Priority::Line).unwrap();
        for _ in 0..500 {
            tokio::time::advance(Duration::from_millis(5)).await;
            overload.record(&polls[0], at, Duration::from_secs(3), Instant::now());
        }
        drop(polls);
        assert_eq!(fill(poll).len(), 5);
    }

    #[test]
    fn clients_that_are_shed_come_back_over_a_time_that_grows_with_their_number() {
        let recent = RecentRequests::default();
        let seconds = |second| recent.count_shed(second).as_secs();
        (0..100).for_each(|_| recent.count_served(7));
        assert_eq!(seconds(7), 2, "one is shed and a hundred are served");
        for _ in 0..1_000 {
            recent.count_shed(7);
        }
        // In the next second their number is known: ten were shed for each that was served.
        let answers: Vec<_> = (0..990).map(|_| seconds(8)).collect();
        for second in 2..=12 {
            let count = answers.iter().filter(|answer| **answer == second).count();
            assert_eq!(count, 90, "after {second} s");
        }
        assert!(seconds(20) <= 3, "that is long ago");
        for _ in 0..10_000 {
            recent.count_shed(30);
        }
        assert!(seconds(30) <= RETRY_SECONDS_MAX);
    }

    /// Lets `fans` ask for seat maps all the time while they share a processor that needs 2 ms for
    /// each answer. Returns how many of a thousand requests are shed in the end.
    async fn shed_by_a_busy_processor(inside_min: usize, fans: usize) -> usize {
        let limits = ConcurrencyLimits { inside_min, ..ConcurrencyLimits::default() };
        let overload = OverloadControl::new(["ticket"].into_iter(), limits);
        let (at, route) = route_of("GET", "/api/seats/events/1");
        for _ in 0..50 {
            let permit = overload.acquire_for(route).unwrap();
            tokio::time::advance(Duration::from_millis(2)).await;
            permit.complete(at);
        }
        let mut shed = 0;
        for round in 0..2_000 / fans * 20 {
            let permits: Vec<_> =
                (0..fans).filter_map(|_| overload.acquire_for(route).ok()).collect();
            // Everybody waits for everybody else, so less at once is not more per second.
            let latency = Duration::from_millis(2) * u32::try_from(permits.len()).unwrap();
            tokio::time::advance(latency).await;
            if round >= 1_000 / fans * 20 {
                shed += fans - permits.len();
            }
            permits.into_iter().for_each(|permit| permit.complete(at));
        }
        shed / 20
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_processor_takes_no_permits_from_users_who_are_inside() {
        assert_eq!(shed_by_a_busy_processor(256, 100).await, 0);
        // Without the floor more than half of them are shed, although nothing gets faster by it.
        let control = shed_by_a_busy_processor(0, 100).await;
        assert!(control > 400, "{control} of 1000");
        // And there is still a bound: more than can be inside are shed.
        let flood = shed_by_a_busy_processor(256, 1_000).await;
        assert!(flood > 700, "{flood} of 1000");
    }

    #[test]
    fn the_floor_leaves_permits_for_paying_and_the_rest_has_none() {
        let limits = ConcurrencyLimits { start: 4, max: 100, total_max: 200, ..SMALL };
        let limits = ConcurrencyLimits { inside_min: 40, ..limits };
        let overload = OverloadControl::new(["ticket", "payment", "catalog"].into_iter(), limits);
        let mut held = Vec::new();
        let mut fill = |method, path| {
            let (before, (_, route)) = (held.len(), route_of(method, path));
            held.extend(std::iter::from_fn(|| overload.acquire_for(route).ok()).take(100));
            held.len() - before
        };
        assert_eq!(fill("GET", "/api/reservations/1"), 10);
        assert_eq!(fill("GET", "/api/seats/events/1"), 10);
        assert_eq!(fill("POST", "/api/seats/reserve"), 10);
        assert_eq!(fill("POST", "/api/payments/confirm"), 40);
        assert_eq!(fill("GET", "/api/events"), 3, "who is not inside has no floor");
    }

    #[test]
    fn the_floor_follows_the_threshold() {
        let floor = |threshold| ConcurrencyLimits::for_threshold(threshold).inside_min;
        assert_eq!([0, 100, 400, 1_000, 100_000].map(floor), [32, 32, 100, 250, 256]);
    }
}
