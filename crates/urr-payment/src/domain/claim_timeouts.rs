//! How long the saga waits for others. It follows from the time limit of a call to the provider.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SagaTimeouts {
    /// How long a payment belongs to the process that works on it: longer than all calls of a step.
    pub claim_ttl: Duration,
    /// A request that timed out may still arrive at the provider. Before this time, the provider's
    /// "not found" is not trusted.
    pub not_found_trusted_after: Duration,
}

/// The most calls of the provider in one step: query, charge and closing of a deposit account, and
/// a read after each of the latter two.
const PROVIDER_CALLS_MAX: u32 = 5;
/// For the ticket service, which a step calls at most four times, and for our own tables.
const CLAIM_MARGIN: Duration = Duration::from_secs(30);
const NOT_FOUND_MARGIN: Duration = Duration::from_secs(40);

impl SagaTimeouts {
    /// `provider_timeout` is the longest time that a call to a provider may take.
    pub fn new(provider_timeout: Duration) -> SagaTimeouts {
        SagaTimeouts {
            claim_ttl: provider_timeout * PROVIDER_CALLS_MAX + CLAIM_MARGIN,
            not_found_trusted_after: provider_timeout * 2 + NOT_FOUND_MARGIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use urr_contracts::internal::ticket::ConfirmPayable;
    use urr_service::InternalCall;

    use super::*;

    #[test]
    fn a_claim_outlasts_the_longest_step_whatever_the_time_limit() {
        for seconds in [1, 10, 30, 60] {
            let timeout = Duration::from_secs(seconds);
            let SagaTimeouts { claim_ttl, not_found_trusted_after } = SagaTimeouts::new(timeout);
            assert!(claim_ttl > timeout * PROVIDER_CALLS_MAX, "{seconds}");
            assert!(claim_ttl > ConfirmPayable::SPEC.deadline * 4, "{seconds}");
            assert!(not_found_trusted_after > timeout, "{seconds}");
        }
        let usual = SagaTimeouts::new(Duration::from_secs(10));
        assert_eq!(usual.claim_ttl, Duration::from_secs(80));
    }
}
