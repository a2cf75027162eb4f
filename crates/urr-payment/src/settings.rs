//! How payments are set up.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentSettings {
    /// A buyer who pays is answered within this, whatever is known by then.
    pub answer_timeout: Duration,
    /// How often the books are proved and compared with the providers'.
    pub audit_interval: Duration,
    /// Where a provider's books and ours differ, both are read again after this: one of them may
    /// have been ahead.
    pub recheck_after: Duration,
}

impl Default for PaymentSettings {
    fn default() -> PaymentSettings {
        PaymentSettings {
            answer_timeout: Duration::from_secs(15),
            audit_interval: Duration::from_secs(5 * 60),
            recheck_after: Duration::from_secs(3),
        }
    }
}
