//! The last fifteen minutes of a sale, second by second.

use std::collections::VecDeque;

use urr_contracts::internal::stats::{SaleSpan, SaleTotals};
use urr_contracts::internal::ticket::{BookingHealth, EventAvailability};
use urr_kernel::Won;

/// Fifteen minutes.
pub const SECONDS_MAX: usize = 15 * 60;
/// A clock that was set back by more than this begins anew; after a smaller step the ring waits.
const STEP_BACK_SECONDS_MAX: i64 = 60;

/// A sale at a second. What nobody asked for is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSecond {
    /// Since 1970.
    pub second: i64,
    pub waiting: u32,
    pub inside: u32,
    pub threshold: u32,
    pub joined_total: u64,
    pub admitted_total: u64,
    pub left_total: u64,
    pub stock: Option<EventAvailability>,
    pub money: Option<SaleTotals>,
    pub declined_total: Option<u64>,
    pub booking: Option<BookingHealth>,
}

/// Seconds in order, at most [`SECONDS_MAX`] of them and none older than that. A second in which
/// nothing was recorded is missing.
#[derive(Clone, Debug, Default)]
pub struct SecondRing(VecDeque<LiveSecond>);

impl SecondRing {
    /// Adds a second. False if the ring has this second already, or a later one.
    pub fn push(&mut self, sample: LiveSecond) -> bool {
        if let Some(last) = self.last_second() {
            if sample.second + STEP_BACK_SECONDS_MAX < last {
                self.0.clear();
            } else if sample.second <= last {
                return false;
            }
        }
        self.0.push_back(sample);
        let kept = i64::try_from(SECONDS_MAX).expect("it is small");
        while self.0.front().is_some_and(|first| first.second <= sample.second - kept) {
            self.0.pop_front();
        }
        true
    }

    pub fn last_second(&self) -> Option<i64> {
        self.0.back().map(|last| last.second)
    }

    pub fn last(&self) -> Option<&LiveSecond> {
        self.0.back()
    }

    /// The last second and the one before it.
    pub fn tail(&self) -> SecondRing {
        SecondRing(self.0.iter().skip(self.0.len().saturating_sub(2)).copied().collect())
    }

    /// The seconds after one, each with the one before it.
    pub fn after(&self, second: i64) -> impl Iterator<Item = (Option<&LiveSecond>, &LiveSecond)> {
        let before = std::iter::once(None).chain(self.0.iter().map(Some));
        before.zip(&self.0).filter(move |(_, sample)| sample.second > second)
    }

    /// Fills in the money of the seconds in which nobody asked for it: from the totals of now back
    /// by what has moved since.
    pub fn fill_money(&mut self, totals: SaleTotals, moved: &[SaleSpan]) {
        let (mut totals, mut moved) = (totals, moved.iter().rev().peekable());
        for sample in self.0.iter_mut().rev() {
            while let Some(span) = moved.next_if(|span| span.at > sample.second) {
                totals = minus(totals, span.moved);
            }
            sample.money.get_or_insert(totals);
        }
    }
}

fn minus(totals: SaleTotals, moved: SaleTotals) -> SaleTotals {
    let money = |all: Won, part: Won| Won::new(all.amount() - part.amount());
    SaleTotals {
        charges: totals.charges - moved.charges,
        charged: money(totals.charged, moved.charged),
        refunds: totals.refunds - moved.refunds,
        refunded: money(totals.refunded, moved.refunded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: i64) -> LiveSecond {
        LiveSecond { second, ..LiveSecond::default() }
    }

    fn ring(seconds: impl IntoIterator<Item = i64>) -> SecondRing {
        let mut ring = SecondRing::default();
        for second in seconds {
            ring.push(sample(second));
        }
        ring
    }

    fn seconds(ring: &SecondRing) -> Vec<i64> {
        ring.after(i64::MIN).map(|(_, sample)| sample.second).collect()
    }

    #[test]
    fn a_ring_keeps_fifteen_minutes_and_no_second_twice() {
        let mut full = ring(1..=1_000);
        assert_eq!(seconds(&full), (101..=1_000).collect::<Vec<_>>());
        assert!(!full.push(sample(1_000)) && !full.push(sample(990)));
        assert_eq!(seconds(&full).len(), SECONDS_MAX);
        assert!(full.push(sample(5_000)), "a pause");
        assert_eq!(seconds(&full), [5_000]);
        assert!(full.push(sample(4_000)), "the clock was set back");
        assert_eq!(seconds(&full), [4_000]);
    }

    #[test]
    fn who_was_away_gets_what_was_missed_with_the_second_before() {
        let ring = ring([1, 2, 4]);
        let missed = |after| {
            let missed = ring.after(after);
            missed.map(|(before, at)| (before.map(|b| b.second), at.second)).collect::<Vec<_>>()
        };
        assert_eq!(missed(0), [(None, 1), (Some(1), 2), (Some(2), 4)]);
        assert_eq!(missed(2), [(Some(2), 4)]);
        assert_eq!(missed(4), []);
    }

    #[test]
    fn money_of_the_past_is_filled_in_from_what_moved() {
        let totals = |charges| SaleTotals { charges, ..SaleTotals::default() };
        let span = |at, charges| SaleSpan { at, moved: totals(charges) };
        let mut ring = ring([10, 11, 12, 14]);
        ring.fill_money(totals(20), &[span(9, 1), span(11, 2), span(13, 3)]);
        let filled = ring.after(0).map(|(_, at)| at.money.map(|money| money.charges));
        assert_eq!(filled.collect::<Vec<_>>(), [Some(15), Some(17), Some(17), Some(20)]);
        ring.fill_money(totals(99), &[]);
        assert_eq!(ring.last().and_then(|last| last.money), Some(totals(20)), "it stays");
    }
}
