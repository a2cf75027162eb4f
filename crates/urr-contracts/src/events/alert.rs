//! What the ticket service announces to fans who asked for it. The key is the fan's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};

pub const TOPIC: &str = "alert-events";

/// A sale is about to open for a fan who asked to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SaleAlertDue {
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub event_title: String,
    pub venue_name: String,
    pub event_starts_at: Timestamp,
    /// When this fan may buy: in a pre-sale it depends on the tier.
    pub opens_at: Timestamp,
    /// Whether the fan buys before the general sale.
    #[serde(default)]
    pub is_presale: bool,
}

/// Seats have returned, and it is the turn of a fan who asked for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeatAlertDue {
    pub alert_id: Uuid,
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub event_title: String,
    pub venue_name: String,
    pub event_starts_at: Timestamp,
    /// The grade or the ticket type; null for the whole event.
    #[serde(default)]
    pub grade: Option<String>,
    /// How many the fan asked for.
    pub quantity: u32,
    /// Until then nobody is told after this fan. Null if everybody can buy already.
    #[serde(default)]
    pub head_start_until: Option<Timestamp>,
    /// After this time the mail is of no use.
    pub useful_until: Timestamp,
}
