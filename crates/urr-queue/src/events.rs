//! What the waiting rooms announce. The key is the event's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{EventData, Uuid};

/// Someone who wanted to be told is about to be let in, or is in already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnNear {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub event_title: String,
    /// The first in line has 1; 0: they are in.
    pub position: u32,
    pub estimated_wait_seconds: u64,
}

impl EventData for TurnNear {
    const TOPIC: &'static str = "queue-events";
    const TYPE: &'static str = "TURN_NEAR";

    fn aggregate_id(&self) -> Uuid {
        self.event_id
    }
}
