//! What the waiting rooms announce. The key is the event's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};

pub const TOPIC: &str = "queue-events";

/// A user who asked for a reminder is about to be admitted, or has been admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionNear {
    pub event_id: Uuid,
    pub user_id: Uuid,
    #[serde(default)]
    pub event_title: Option<String>,
    /// The first in line has 1; 0 means admitted.
    #[serde(default)]
    pub position: Option<u32>,
    #[serde(default)]
    pub estimated_wait_seconds: Option<u64>,
    /// After this time the reminder is of no use.
    #[serde(default)]
    pub sale_ends_at: Option<Timestamp>,
}

/// The numbers of a room, once a minute. Totals count from the opening of the room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueObserved {
    pub event_id: Uuid,
    pub waiting: u32,
    /// Users who have a slot.
    pub inside: u32,
    /// Users who got a position in the line.
    pub joined_total: u64,
    pub admitted_total: u64,
    /// Users who left the line by themselves.
    pub left_total: u64,
}
