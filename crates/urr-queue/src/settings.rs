//! The settings of the installation for its waiting rooms.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    pub threshold: u32,
    pub admitted_per_second_max: u32,
    pub slot_ttl: Duration,
    pub slot_max: Duration,
    /// A user who was not seen for this long is dropped from the line.
    pub seen_ttl: Duration,
    pub admission_interval: Duration,
    pub sweep_interval: Duration,
    pub entry_token_ttl: Duration,
    pub queues_per_user_max: u32,
    pub waiting_max: u32,
    /// How long before the sale users may join.
    pub gathering: Duration,
    /// How long a draw waits for a beacon that cannot be reached.
    pub beacon_wait: Duration,
    /// The number of status streams in this process.
    pub streams_max: usize,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings {
            threshold: 1_000,
            admitted_per_second_max: 100,
            slot_ttl: Duration::from_mins(10),
            slot_max: Duration::from_mins(30),
            seen_ttl: Duration::from_mins(10),
            admission_interval: Duration::from_secs(1),
            sweep_interval: Duration::from_secs(30),
            entry_token_ttl: Duration::from_mins(10),
            queues_per_user_max: 3,
            waiting_max: 1_000_000,
            gathering: Duration::from_mins(60),
            beacon_wait: Duration::from_secs(60),
            streams_max: 2_000,
        }
    }
}
