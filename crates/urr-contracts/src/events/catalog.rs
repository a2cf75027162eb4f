//! What the catalog announces about artists and events. The key is the artist's or the event's id.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use urr_kernel::{CancelPolicy, Timestamp, Uuid, Won};
use urr_layout::Layout;

pub const TOPIC: &str = "catalog-events";

wire_enum! {
    /// What an event sells: numbered seats, or tickets of some types.
    pub enum EventKind {
        Seated => "seated",
        Standing => "standing",
    }
}

wire_enum! {
    /// How far an event is. It follows from the time, except for `Cancelled`.
    pub open enum CatalogEventStatus {
        Upcoming => "upcoming",
        OnSale => "on_sale",
        Ended => "ended",
        Cancelled => "cancelled",
    }
}

/// An artist was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtistCreated {
    pub artist_id: Uuid,
    pub name: String,
    pub membership_price: Won,
}

/// An artist has another name, price or portrait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtistUpdated {
    pub artist_id: Uuid,
    pub name: String,
    pub membership_price: Won,
}

/// An event at one revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventSnapshot {
    pub event_id: Uuid,
    /// Grows with every change. A reader that has a newer revision ignores an older one.
    pub revision: i64,
    pub title: String,
    pub kind: EventKind,
    pub status: CatalogEventStatus,
    #[serde(default)]
    pub artist_id: Option<Uuid>,
    #[serde(default)]
    pub artist_name: Option<String>,
    pub venue_id: Uuid,
    pub venue_name: String,
    pub address: String,
    pub starts_at: Timestamp,
    pub sale_starts_at: Timestamp,
    pub sale_ends_at: Timestamp,
    pub has_presale: bool,
    pub seats_per_user_max: u32,
    /// Whose event it is. Without one it belongs to administrators.
    #[serde(default)]
    pub organiser_id: Option<Uuid>,
    /// Whether only persons with a checked identity may buy, each within the limit.
    #[serde(default)]
    pub requires_identity: bool,
    /// Whether a ticket that was checked out admits again.
    #[serde(default)]
    pub allows_reentry: bool,
    /// The cancellation fees of the event; null means the usual ones.
    #[serde(default)]
    pub cancel_policy: Option<CancelPolicy>,
    /// Only in `EVENT_CREATED` of a seated event: a layout never changes.
    #[serde(default)]
    pub layout: Option<Layout>,
    /// The price of each grade.
    #[serde(default)]
    pub prices: BTreeMap<String, Won>,
    /// Only in `EVENT_CREATED` of a standing event. Later changes are `TICKET_TYPE_CHANGED`.
    #[serde(default)]
    pub ticket_types: Vec<OrderedTicketType>,
}

/// A ticket type that the ticket service is asked to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderedTicketType {
    pub id: Uuid,
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub price: Won,
    pub total: u32,
}

/// An event was created: the ticket service creates its inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventCreated(pub EventSnapshot);

/// An event has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventUpdated(pub EventSnapshot);

/// An event does not take place: everybody gets their money back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventCancelled {
    pub event_id: Uuid,
    pub revision: i64,
    #[serde(default)]
    pub reason: Option<String>,
}

/// An event is no longer shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDeleted {
    pub event_id: Uuid,
    pub revision: i64,
    /// Whether the event has taken place; then there are no refunds. A reader that is not told
    /// compares the start of the event with the time of the message.
    #[serde(default)]
    pub is_over: Option<bool>,
}
