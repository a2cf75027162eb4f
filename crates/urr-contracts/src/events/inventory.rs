//! What the ticket service announces about the inventory of an event. The key is the event's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{Uuid, Won};

pub const TOPIC: &str = "inventory-events";

/// The inventory of an event was created and counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryReady {
    pub event_id: Uuid,
    /// The revision of the event that was created from.
    pub revision: i64,
    pub seats: u32,
    /// How many ticket types there are.
    pub ticket_types: u32,
    /// Seats and standing tickets together.
    pub total: i64,
}

/// Seats or standing tickets were blocked by the organiser, or released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HouseSeatsChanged {
    pub event_id: Uuid,
    /// How many are blocked now.
    pub blocked: u32,
    /// Grows with every change of the sale. A reader that has a newer one ignores an older one.
    pub fence: i64,
}

/// A ticket type was added or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TicketTypeChanged {
    pub event_id: Uuid,
    pub ticket_type_id: Uuid,
    pub name: String,
    pub description: String,
    pub price: Won,
    pub total: u32,
    /// Grows with every change of the sale. A reader that has a newer one ignores an older one.
    pub fence: i64,
}
