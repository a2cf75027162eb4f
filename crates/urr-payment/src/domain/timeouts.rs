//! How long others are waited for, which follows from how long a call to the provider may take.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SagaTimeouts {
    /// So long a payment is left to whoever takes its step: longer than all calls of a step.
    pub claim_ttl: Duration,
    /// A call that nobody waits for any more may still arrive at the provider: before this,
    /// "nothing" is not believed.
    pub not_found_trusted_after: Duration,
}

/// No step has more calls of the provider than this: one attempts, one charges, one calls that off,
/// and after each of these one reads what it did.
const PROVIDER_CALLS_MAX: u32 = 5;
/// For the ticket service, which a step asks four times at most, and for our own tables.
const CLAIM_MARGIN: Duration = Duration::from_secs(30);
const BELIEF_MARGIN: Duration = Duration::from_secs(40);

impl SagaTimeouts {
    /// `timeout` is the longest that a call to a provider may take.
    pub fn of(timeout: Duration) -> SagaTimeouts {
        SagaTimeouts {
            claim_ttl: timeout * PROVIDER_CALLS_MAX + CLAIM_MARGIN,
            not_found_trusted_after: timeout * 2 + BELIEF_MARGIN,
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
            let SagaTimeouts { claim_ttl: claim, not_found_trusted_after } =
                SagaTimeouts::of(timeout);
            let tickets = crate::ticket_client::DEADLINE * 4;
            assert!(claim > timeout * PROVIDER_CALLS_MAX, "{seconds}");
            assert!(claim > tickets, "{seconds}");
            assert!(not_found_trusted_after > timeout, "{seconds}");
        }
        assert_eq!(SagaTimeouts::of(Duration::from_secs(10)).claim_ttl, Duration::from_secs(80));
    }
}
