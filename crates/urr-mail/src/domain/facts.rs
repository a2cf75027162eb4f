//! What a mail is filled with.
//!
//! Most of it comes with the event that causes the mail, the rest from the ticket office. Nothing
//! in it names a person.

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};

/// Whatever is known. A line of a template whose value is missing is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_number: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venue_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Timestamp>,
    /// Labels of seats, and standing tickets with their number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<u32>,
    /// What was paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<Won>,
    /// What goes back, or went back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund: Option<Won>,
    /// What is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fee: Option<Won>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In the waiting room, from 1; 0 means that it is their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<i64>,
}

/// What the ticket office knows of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub reservation_number: String,
    pub event_id: Uuid,
    pub event_title: String,
    pub venue_name: String,
    pub event_starts_at: Timestamp,
    pub places: Vec<String>,
    pub quantity: u32,
}

impl Facts {
    /// Adds what the event did not say. What it said stays.
    pub fn complete(&mut self, summary: Summary) {
        let Summary { reservation_number, event_id, event_title, venue_name, .. } = summary;
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
