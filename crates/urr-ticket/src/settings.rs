//! How the ticket office works.

use std::time::Duration;

/// The rules that an operator can change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a hold waits for its payment.
    pub hold_ttl: Duration,
    /// How long the lock of a held seat lasts: longer than the hold.
    pub lock_ttl: Duration,
    /// Time between two sweeps for holds whose time is over.
    pub expiry_interval: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            hold_ttl: Duration::from_secs(300),
            lock_ttl: Duration::from_secs(420),
            expiry_interval: Duration::from_secs(1),
        }
    }
}
