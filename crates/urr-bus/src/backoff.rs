//! How long to wait before trying again.

use std::time::Duration;

use crate::partition::murmur2;

const FIRST_MS: u64 = 100;
const MAX_MS: u64 = 5_000;

/// The wait after `attempt` failures (from 1): doubling from 100 ms to 5 s, of which up to half is
/// taken off by a jitter. The jitter comes from `salt`, so that keys which failed together do not
/// come back together, and a run can be repeated.
pub(crate) fn delay(attempt: u32, salt: &[u8]) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let full_ms = (FIRST_MS << doublings).min(MAX_MS);
    let mut seed = salt.to_vec();
    seed.extend_from_slice(&attempt.to_be_bytes());
    let off_ms = u64::from(murmur2(&seed)) % (full_ms / 2);
    Duration::from_millis(full_ms - off_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_seconds_and_never_halve_more_than_once() {
        for attempt in 1..100 {
            let full_ms = (100_u64 << (attempt - 1).min(10)).min(5_000);
            let wait = delay(attempt, b"salt");
            assert!(wait <= Duration::from_millis(full_ms), "{attempt}: {wait:?}");
            assert!(wait > Duration::from_millis(full_ms / 2), "{attempt}: {wait:?}");
        }
    }

    #[test]
    fn different_salts_spread_the_waits() {
        let waits: std::collections::BTreeSet<_> =
            (0_u8..100).map(|salt| delay(6, &[salt])).collect();
        assert!(waits.len() > 80, "{} different waits of 100", waits.len());
    }
}
