//! The values that a template is filled with.
//!
//! Most of them come with the event that causes the mail, the rest from the ticket service. None of
//! them names a person.

use serde::{Deserialize, Serialize};
use urr_contracts::internal::ticket::ReservationSummary;
use urr_kernel::{Timestamp, Uuid, Won};

/// The known values. A line of a template whose value is missing is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateData {
    pub event_id: Option<Uuid>,
    pub reservation_id: Option<Uuid>,
    pub reservation_number: Option<String>,
    pub event_title: Option<String>,
    pub venue_name: Option<String>,
    pub starts_at: Option<Timestamp>,
    /// When a moved event was to begin before.
    pub previous_starts_at: Option<Timestamp>,
    /// Whether a moved event can be cancelled for free.
    pub is_free_to_cancel: Option<bool>,
    /// Labels of seats, and standing tickets with their number.
    pub places: Vec<String>,
    pub quantity: Option<u32>,
    /// What was paid.
    pub amount: Option<Won>,
    /// What is refunded.
    pub refund: Option<Won>,
    /// The cancellation fee.
    pub fee: Option<Won>,
    pub method: Option<String>,
    pub reason: Option<String>,
    /// The position in the waiting room; 0 means admitted.
    pub position: Option<u32>,
    pub wait_seconds: Option<u64>,
    /// When the sale opens for the fan.
    pub opens_at: Option<Timestamp>,
    /// Whether the fan can buy before the general sale.
    pub is_presale: Option<bool>,
    /// The grade or ticket type of which seats have returned.
    pub grade: Option<String>,
    /// Until then nobody else is told of returned seats.
    pub head_start_until: Option<Timestamp>,
    /// Whether the recipient has no account. It is known only while the mail is sent.
    #[serde(skip)]
    pub is_guest: bool,
    /// Whether the tickets are attached. It is known only while the mail is sent.
    #[serde(skip)]
    pub has_attached_tickets: Option<bool>,
    /// The secret of a link. It is known only while the mail is sent, and never stored.
    #[serde(skip)]
    pub link_token: Option<LinkToken>,
}

/// The secret of a link, which is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkToken(pub String);

impl std::fmt::Debug for LinkToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[link]")
    }
}

impl TemplateData {
    /// Adds what the event did not say. What it said stays.
    pub fn complete(&mut self, summary: ReservationSummary) {
        let ReservationSummary { reservation_number, event_id, event_title, venue_name, .. } =
            summary;
        self.reservation_number.get_or_insert(reservation_number);
        self.event_id.get_or_insert(event_id);
        self.event_title.get_or_insert(event_title);
        self.venue_name.get_or_insert(venue_name);
        self.starts_at.get_or_insert(summary.event_starts_at);
        self.quantity.get_or_insert(summary.quantity);
        if self.places.is_empty() {
            self.places = summary.places;
        }
    }
}
