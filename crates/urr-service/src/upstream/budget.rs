//! How many calls may be repeated: a share of the traffic, so that retries cannot multiply the
//! load on a service that is failing under it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// In tenths of a retry: a call deposits one tenth, a retry costs ten.
const DEPOSIT: u32 = 1;
const COST: u32 = 10;
const INITIAL: u32 = 3 * COST;
const MAX: u32 = 20 * COST;

const PAUSE_BASE_MS: u64 = 50;

#[derive(Debug)]
pub(crate) struct RetryBudget {
    tenths: AtomicU32,
    random: Mutex<StdRng>,
}

impl RetryBudget {
    pub fn new(seed: u64) -> RetryBudget {
        RetryBudget {
            tenths: AtomicU32::new(INITIAL),
            random: Mutex::new(StdRng::seed_from_u64(seed)),
        }
    }

    /// A first attempt earns a tenth of a retry.
    pub fn deposit(&self) {
        let earn = |tenths: u32| Some((tenths + DEPOSIT).min(MAX));
        let earned = self.tenths.fetch_update(Ordering::Relaxed, Ordering::Relaxed, earn);
        earned.expect("the update always has a value");
    }

    /// Pays for a retry, if the budget has one.
    pub fn withdraw(&self) -> bool {
        let pay = |tenths: u32| tenths.checked_sub(COST);
        let paid = self.tenths.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
        paid.is_ok()
    }

    /// How long to wait before retry number `retry` (from 1): twice as long each time, less a
    /// random half, so that callers that failed together do not come back together.
    pub fn pause(&self, retry: u32) -> Duration {
        let longest = PAUSE_BASE_MS << retry.min(10);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_millis(longest / 2 + random.next_u64() % (longest / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_tenth_of_the_calls_and_a_few_to_begin_with() {
        let budget = RetryBudget::new(1);
        let mut retries = 0;
        for _ in 0..1_000 {
            budget.deposit();
            while budget.withdraw() {
                retries += 1;
            }
        }
        assert_eq!(retries, 100 + 3);
    }

    #[test]
    fn a_quiet_time_saves_up_a_bounded_number_of_retries() {
        let budget = RetryBudget::new(1);
        (0..100_000).for_each(|_| budget.deposit());
        let retries = (0..100).filter(|_| budget.withdraw()).count();
        assert_eq!(retries, 20);
    }

    #[test]
    fn pauses_grow_and_scatter_and_the_seed_decides_them() {
        let (a, b) = (RetryBudget::new(7), RetryBudget::new(7));
        for (retry, longest) in [(1, 100), (2, 200)] {
            let pauses: Vec<_> = (0..50).map(|_| a.pause(retry)).collect();
            assert!(pauses.iter().all(|pause| pause.as_millis() < longest));
            assert!(pauses.iter().all(|pause| pause.as_millis() >= longest / 2));
            assert!(pauses.iter().any(|pause| *pause != pauses[0]));
            assert_eq!(pauses, (0..50).map(|_| b.pause(retry)).collect::<Vec<_>>());
        }
    }
}
