//! Bounds the lines of a log while the same thing is refused thousands of times a second.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const PERIOD: Duration = Duration::from_secs(1);
/// So many lines with one key are written in a period.
const LINES_MAX: u64 = 5;

/// Which lines are written, by a key such as the code of an error.
#[derive(Debug)]
pub(crate) struct LogThrottle(Mutex<BTreeMap<String, LinePeriod>>);

#[derive(Debug)]
struct LinePeriod {
    began_at: Instant,
    lines: u64,
}

impl LogThrottle {
    pub(crate) const fn new() -> LogThrottle {
        LogThrottle(Mutex::new(BTreeMap::new()))
    }

    /// Whether a line is written; if so, how many were left out since the last one.
    pub(crate) fn allow(&self, key: &str) -> Option<u64> {
        let now = Instant::now();
        let mut periods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(period) = periods.get_mut(key) else {
            periods.insert(key.to_owned(), LinePeriod { began_at: now, lines: 1 });
            return Some(0);
        };
        let is_over = now.duration_since(period.began_at) >= PERIOD;
        let left_out = if is_over { period.lines.saturating_sub(LINES_MAX) } else { 0 };
        if is_over {
            *period = LinePeriod { began_at: now, lines: 0 };
        }
        period.lines += 1;
        (period.lines <= LINES_MAX).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_one_code_is_a_few_lines_and_a_number() {
        let throttle = LogThrottle::new();
        let written = (0..1_000).filter(|_| throttle.allow("OVERLOADED").is_some()).count();
        assert_eq!(written, 5);
        assert_eq!(throttle.allow("DATABASE_UNAVAILABLE"), Some(0), "another code has its own");
        tokio::time::advance(PERIOD).await;
        assert_eq!(throttle.allow("OVERLOADED"), Some(995));
        assert_eq!(throttle.allow("OVERLOADED"), Some(0));
    }
}
