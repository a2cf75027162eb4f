//! Statistics of the bookings of the last seconds: durations and failures.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use urr_contracts::internal::ticket::BookingHealth;
use urr_service::ApiError;

/// How many seconds are covered.
const SECONDS: u64 = 10;
/// Four steps for each doubling: a duration is known to a quarter.
const STEPS: u32 = 4;
const BUCKETS: usize = 128;
/// A client that gives up earlier has changed its mind; later, it was not answered in time.
const ABANDONED_AFTER: Duration = Duration::from_secs(2);

/// The bookings of the last seconds. Clones share them.
#[derive(Clone)]
pub struct BookingStats(Arc<Inner>);

struct Inner {
    begun_at: Instant,
    seconds: Mutex<Vec<SecondStats>>,
}

#[derive(Clone)]
struct SecondStats {
    number: u64,
    answered: u32,
    failed: u32,
    by_duration: [u32; BUCKETS],
}

/// What the bookings of the last seconds add up to, in one process or in several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookingTotals {
    pub answered: u64,
    pub failed: u64,
    by_duration: [u64; BUCKETS],
}

impl BookingTotals {
    pub const NONE: BookingTotals =
        BookingTotals { answered: 0, failed: 0, by_duration: [0; BUCKETS] };

    /// `durations` are pairs of a bucket and a number. Buckets that there are not are ignored.
    pub fn new(answered: u64, failed: u64, durations: &[(usize, u64)]) -> BookingTotals {
        let mut totals = BookingTotals { answered, failed, ..BookingTotals::NONE };
        for (bucket, count) in durations {
            if let Some(sum) = totals.by_duration.get_mut(*bucket) {
                *sum += count;
            }
        }
        totals
    }

    /// Buckets that are not empty.
    pub fn durations(&self) -> Vec<(usize, u64)> {
        let buckets = self.by_duration.iter().copied().enumerate();
        buckets.filter(|(_, count)| *count > 0).collect()
    }

    pub fn add(&mut self, other: &BookingTotals) {
        self.answered += other.answered;
        self.failed += other.failed;
        for (sum, count) in self.by_duration.iter_mut().zip(other.by_duration) {
            *sum += count;
        }
    }

    pub fn health(&self) -> BookingHealth {
        let BookingTotals { answered, failed, by_duration } = self;
        let [p50_micros, p95_micros, p99_micros] =
            [50, 95, 99].map(|share| percentile(by_duration, share));
        let (answered, failed) = (*answered, *failed);
        BookingHealth { answered, failed, p50_micros, p95_micros, p99_micros }
    }
}

impl BookingStats {
    pub fn new() -> BookingStats {
        let empty = SecondStats { number: 0, answered: 0, failed: 0, by_duration: [0; BUCKETS] };
        let seconds = (0..SECONDS).map(|_| empty.clone()).collect();
        BookingStats(Arc::new(Inner { begun_at: Instant::now(), seconds: Mutex::new(seconds) }))
    }

    /// Awaits a booking and records its outcome, also if the client gives up.
    pub async fn measure<T, E: Into<ApiError>>(
        &self,
        booking: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ApiError> {
        let mut timer = BookingTimer { stats: self, begun: Instant::now(), is_recorded: false };
        let outcome = booking.await.map_err(E::into);
        let is_failed = matches!(&outcome, Err(error) if error.status().is_server_error());
        timer.is_recorded = true;
        self.record(timer.begun.elapsed(), is_failed);
        outcome
    }

    fn record(&self, took: Duration, is_failed: bool) {
        let number = self.second();
        let mut seconds = self.0.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(number % SECONDS).expect("it is small");
        let second = &mut seconds[place];
        if second.number != number {
            *second = SecondStats { number, answered: 0, failed: 0, by_duration: [0; BUCKETS] };
        }
        match is_failed {
            true => second.failed += 1,
            false => second.answered += 1,
        }
        second.by_duration[bucket(took)] += 1;
    }

    pub fn totals(&self) -> BookingTotals {
        let now = self.second();
        let mut totals = BookingTotals::NONE;
        let seconds = self.0.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        for second in seconds.iter().filter(|second| now - second.number < SECONDS) {
            totals.add(&BookingTotals {
                answered: second.answered.into(),
                failed: second.failed.into(),
                by_duration: second.by_duration.map(u64::from),
            });
        }
        totals
    }

    fn second(&self) -> u64 {
        self.0.begun_at.elapsed().as_secs()
    }
}

/// A booking under way.
struct BookingTimer<'a> {
    stats: &'a BookingStats,
    begun: Instant,
    is_recorded: bool,
}

impl Drop for BookingTimer<'_> {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        if !self.is_recorded && took >= ABANDONED_AFTER {
            self.stats.record(took, true);
        }
    }
}

/// The upper end of the bucket that so many of a hundred are in or below.
fn percentile(by_duration: &[u64; BUCKETS], share: u64) -> u64 {
    let total: u64 = by_duration.iter().sum();
    let rank = (total * share).div_ceil(100);
    let mut counted = 0;
    for (bucket, count) in by_duration.iter().enumerate() {
        counted += count;
        if *count > 0 && counted >= rank {
            return bucket_end_micros(bucket);
        }
    }
    0
}

/// The first four buckets have a microsecond each, then four more each time the duration doubles.
fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let steps = u64::from(STEPS);
    if micros < steps {
        return usize::try_from(micros).expect("it is small");
    }
    let doublings = micros.ilog2() - STEPS.ilog2();
    let step = (micros >> doublings) - steps;
    let bucket = u64::from((doublings + 1) * STEPS) + step;
    usize::try_from(bucket).expect("it is small").min(BUCKETS - 1)
}

/// No duration in the bucket is longer.
fn bucket_end_micros(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).expect("it is small");
    let steps = u64::from(STEPS);
    if bucket < steps {
        return bucket;
    }
    let (doublings, step) = (bucket / steps - 1, bucket % steps);
    ((steps + step + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    async fn book(stats: &BookingStats, took: Duration, outcome: Result<(), ApiError>) {
        let booking = async {
            tokio::time::advance(took).await;
            outcome
        };
        drop(stats.measure(booking).await);
    }

    #[test]
    fn a_duration_is_known_to_a_quarter() {
        for micros in (0..10_000).chain([123_456, 9_999_999, 3_600_000_000]) {
            let took = Duration::from_micros(micros);
            let end = Duration::from_micros(bucket_end_micros(bucket(took)));
            assert!(took <= end && end <= took + took / 4, "{took:?} {end:?}");
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_answers_and_failures_of_ours_are_not() {
        let stats = BookingStats::new();
        let summary = BookingHealth::default();
        assert_eq!(stats.totals().health(), summary, "nobody has booked");
        book(&stats, MILLI, Ok(())).await;
        book(&stats, MILLI, Err(ApiError::conflict("SEAT_TAKEN", "Taken."))).await;
        book(&stats, MILLI, Err(ApiError::internal("a bug"))).await;
        let summary = stats.totals().health();
        assert_eq!((summary.answered, summary.failed), (2, 1));
        tokio::time::advance(Duration::from_secs(SECONDS)).await;
        assert_eq!(stats.totals().health(), BookingHealth::default(), "it is long ago");
    }

    #[tokio::test(start_paused = true)]
    async fn one_slow_booking_of_twenty_does_not_count_and_two_do() {
        let stats = BookingStats::new();
        for _ in 0..18 {
            book(&stats, MILLI, Ok(())).await;
        }
        book(&stats, 100 * MILLI, Ok(())).await;
        let p95 = Duration::from_micros(stats.totals().health().p95_micros);
        assert!((100 * MILLI..=125 * MILLI).contains(&p95), "one of nineteen: {p95:?}");
        book(&stats, MILLI, Ok(())).await;
        let p95 = Duration::from_micros(stats.totals().health().p95_micros);
        assert!((MILLI..=2 * MILLI).contains(&p95), "one of twenty: {p95:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_kept_waiting_until_they_left_was_failed() {
        let stats = BookingStats::new();
        for wait in [ABANDONED_AFTER, ABANDONED_AFTER - MILLI] {
            let booking = stats.measure(pending::<Result<(), ApiError>>());
            assert!(tokio::time::timeout(wait, booking).await.is_err());
        }
        assert_eq!(stats.measure(ready(Ok::<_, ApiError>(7))).await.ok(), Some(7));
        let summary = stats.totals().health();
        assert_eq!((summary.answered, summary.failed), (1, 1));
    }
}
