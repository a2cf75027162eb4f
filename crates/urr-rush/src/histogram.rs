//! A histogram of durations with buckets of equal ratio.
//!
//! It takes a fixed, small amount of memory whatever is recorded, because a report keeps one per
//! operation and second.

use std::time::Duration;

/// Buckets per doubling: neighbours differ by 4.4 %.
const PER_DOUBLING: usize = 16;
/// From 1 µs to about 19 hours.
const DOUBLINGS: usize = 36;

#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Empty until something is recorded.
    buckets: Vec<u32>,
    count: u64,
    max: Duration,
}

impl Histogram {
    pub fn record(&mut self, duration: Duration) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; PER_DOUBLING * DOUBLINGS];
        }
        let bucket = &mut self.buckets[bucket_of(duration)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.max = self.max.max(duration);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> Duration {
        self.max
    }

    /// The duration that this share of all did not exceed, between 0 and 1. Zero if there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (share * self.count as f64).ceil().max(1.0);
        let mut seen = 0.0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += f64::from(*count);
            if seen >= wanted {
                return upper_bound(index).min(self.max);
            }
        }
        self.max
    }

    pub fn add(&mut self, other: &Histogram) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
                *own = own.saturating_add(*more);
            }
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }
}

/// Without its fraction; 0 if it is negative.
#[expect(clippy::cast_possible_truncation, reason = "the fraction is to go")]
pub fn whole(number: f64) -> usize {
    number as usize
}

fn bucket_of(duration: Duration) -> usize {
    let micros = (duration.as_secs_f64() * 1e6).max(1.0);
    let index = (micros.log2() * PER_DOUBLING as f64).floor();
    whole(index).min(PER_DOUBLING * DOUBLINGS - 1)
}

fn upper_bound(index: usize) -> Duration {
    let micros = ((index + 1) as f64 / PER_DOUBLING as f64).exp2();
    Duration::from_secs_f64(micros / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_the_truth() {
        let mut histogram = Histogram::default();
        for millis in 1..=1_000 {
            histogram.record(Duration::from_millis(millis));
        }
        for (share, millis) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = histogram.quantile(share).as_secs_f64() * 1e3;
            assert!((found / millis - 1.0).abs() < 0.05, "{share}: {found}");
        }
        assert_eq!(histogram.max(), Duration::from_secs(1));
    }

    #[test]
    fn an_empty_histogram_and_extremes_are_harmless() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.99), Duration::ZERO);
        histogram.record(Duration::ZERO);
        histogram.record(Duration::from_secs(10_000_000));
        assert_eq!((histogram.count(), histogram.max()), (2, Duration::from_secs(10_000_000)));
    }

    #[test]
    fn sums_count_both() {
        let (mut one, mut two) = (Histogram::default(), Histogram::default());
        one.record(Duration::from_millis(1));
        two.record(Duration::from_millis(100));
        one.add(&two);
        assert_eq!(one.count(), 2);
        assert!(one.quantile(1.0) >= Duration::from_millis(99));
    }
}
