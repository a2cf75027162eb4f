//! The settings of the payment service.

use std::time::Duration;

use urr_kernel::Won;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentSettings {
    /// A buyer who confirms gets an answer within this time, also if the outcome is open.
    pub answer_timeout: Duration,
    /// How often the ledger is audited and compared with the providers.
    pub audit_interval: Duration,
    /// Where a provider and we differ, both are read again after this time, because one of them may
    /// have been ahead.
    pub recheck_after: Duration,
    /// After so many declines a hold is given up.
    pub declines_per_hold_max: u32,
    /// Support may refund at most this much of a payment.
    pub support_refund_max: Won,
}

impl Default for PaymentSettings {
    fn default() -> PaymentSettings {
        PaymentSettings {
            answer_timeout: Duration::from_secs(15),
            audit_interval: Duration::from_secs(5 * 60),
            recheck_after: Duration::from_secs(3),
            declines_per_hold_max: 5,
            support_refund_max: Won::new(100_000),
        }
    }
}
