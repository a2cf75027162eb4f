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

/// How a room stood, once a minute. Totals are since it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueObserved {
    pub event_id: Uuid,
    pub waiting: u32,
    pub inside: u32,
    /// Who got a place in line.
    pub joined_total: i64,
    pub admitted_total: u64,
    /// Who left the line by themselves.
    pub left_total: u64,
}

impl EventData for QueueObserved {
    const TOPIC: &'static str = "queue-events";
    const TYPE: &'static str = "QUEUE_OBSERVED";

    fn aggregate_id(&self) -> Uuid {
        self.event_id
    }
}

impl EventData for TurnNear {
    const TOPIC: &'static str = "queue-events";
    const TYPE: &'static str = "TURN_NEAR";

    fn aggregate_id(&self) -> Uuid {
        self.event_id
    }
}
