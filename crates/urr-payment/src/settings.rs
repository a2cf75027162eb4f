//! How payments are set up.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A buyer who pays is answered within this, whatever is known by then.
    pub answer_within: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { answer_within: Duration::from_secs(15) }
    }
}
