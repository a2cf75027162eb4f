//! The breaker for Redis: stops calls while Redis keeps failing, until a probe succeeds.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Closed at first. Opens after some failures in a row; calls are refused while it is open.
#[derive(Default)]
pub(crate) struct RedisBreaker {
    failures: AtomicU32,
    open: AtomicBool,
}

impl RedisBreaker {
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// A call succeeded. That does not close the breaker: it may have been under way for long.
    pub fn succeeded(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// A call failed. True for the one call that opened the breaker; its caller starts the probe.
    pub fn failed(&self, failures_max: u32) -> bool {
        // Only calls that were admitted fail, so this cannot wrap.
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        failures >= failures_max && !self.open.swap(true, Ordering::Relaxed)
    }

    pub fn close(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.open.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_in_a_row_open_a_circuit() {
        let breaker = RedisBreaker::default();
        for _ in 0..10 {
            assert!(!breaker.failed(3));
            assert!(!breaker.failed(3));
            breaker.succeeded();
        }
        assert!(!breaker.is_open());
        assert_eq!([breaker.failed(3), breaker.failed(3), breaker.failed(3)], [false, false, true]);
        assert!(breaker.is_open());
        assert!(!breaker.failed(3), "calls that were under way do not open it again");
        breaker.succeeded();
        assert!(breaker.is_open());
        breaker.close();
        assert!(!breaker.is_open() && !breaker.failed(3));
    }
}
