//! How long others are waited for, which follows from how long a call to the provider may take.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// So long a payment is left to whoever takes its step: longer than all calls of a step.
    pub claim: Duration,
    /// A call that nobody waits for any more may still arrive at the provider: before this,
    /// "nothing" is not believed.
    pub nothing_believed_after: Duration,
}

/// No step has more calls of the provider than this: one looks, one charges, one calls that off,
/// and after each of these one reads what it did.
const PROVIDER_CALLS_MAX: u32 = 5;
/// For the ticket office, which a step asks four times at most, and for our own tables.
const CLAIM_MARGIN: Duration = Duration::from_secs(30);
const BELIEF_MARGIN: Duration = Duration::from_secs(40);

impl Patience {
    /// `timeout` is the longest that a call to a provider may take.
    pub fn of(timeout: Duration) -> Patience {
        Patience {
            claim: timeout * PROVIDER_CALLS_MAX + CLAIM_MARGIN,
            nothing_believed_after: timeout * 2 + BELIEF_MARGIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_outlasts_the_longest_step_whatever_the_time_limit() {
        for seconds in [1, 10, 30, 60] {
            let timeout = Duration::from_secs(seconds);
            let Patience { claim, nothing_believed_after } = Patience::of(timeout);
            let office = crate::office::DEADLINE * 4;
            assert!(claim > timeout * PROVIDER_CALLS_MAX, "{seconds}");
            assert!(claim > office, "{seconds}");
            assert!(nothing_believed_after > timeout, "{seconds}");
        }
        assert_eq!(Patience::of(Duration::from_secs(10)).claim, Duration::from_secs(80));
    }
}
