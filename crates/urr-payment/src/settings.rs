//! How payments are set up.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A buyer who pays is answered within this, whatever is known by then.
    pub answer_within: Duration,
    /// How often the books are proved and compared with the providers'.
    pub proof_interval: Duration,
    /// Where a provider's books and ours differ, both are read again after this: one of them may
    /// have been ahead.
    pub second_look_after: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            answer_within: Duration::from_secs(15),
            proof_interval: Duration::from_secs(5 * 60),
            second_look_after: Duration::from_secs(3),
        }
    }
}
