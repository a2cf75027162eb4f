//! What the ticket office announces about reservations. The key is the reservation's id: its facts
//! keep their order.

pub mod membership;
pub mod transfer;

use serde::{Deserialize, Serialize};
use urr_kernel::{EventData, Timestamp, Uuid, Won};
use urr_layout::SeatId;

/// What every fact about a reservation says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationFacts {
    pub reservation_id: Uuid,
    pub reservation_number: String,
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub total_amount: Won,
    /// Part of the total: the surcharge of a purchase in a pre-sale, and the fees of transfers.
    #[serde(default)]
    pub booking_fee: Won,
    /// Seats or standing tickets together.
    pub quantity: u32,
    /// Of standing tickets there are none.
    pub seat_ids: Vec<SeatId>,
    pub timestamp: Timestamp,
}

/// Someone holds seats or standing tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationCreated {
    #[serde(flatten)]
    pub facts: ReservationFacts,
    pub expires_at: Timestamp,
}

/// A hold has other seats than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationChanged {
    #[serde(flatten)]
    pub facts: ReservationFacts,
    pub previous_seat_ids: Vec<SeatId>,
    pub previous_total_amount: Won,
}

/// A hold was paid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationConfirmed {
    #[serde(flatten)]
    pub facts: ReservationFacts,
    pub payment_id: Uuid,
    pub payment_method: String,
}

/// A hold was given back, or a paid reservation: then there is an amount to refund.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationCancelled {
    #[serde(flatten)]
    pub facts: ReservationFacts,
    pub reason: String,
    pub refund_amount: Won,
    /// What is kept: together with the refund it is what was paid.
    #[serde(default)]
    pub cancellation_fee: Won,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_id: Option<Uuid>,
}

/// The time of a hold was over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationExpired {
    #[serde(flatten)]
    pub facts: ReservationFacts,
}

macro_rules! reservation_events {
    ($($event:ty => $type:literal;)*) => {$(
        impl EventData for $event {
            const TOPIC: &'static str = "reservation-events";
            const TYPE: &'static str = $type;

            fn aggregate_id(&self) -> Uuid {
                self.facts.reservation_id
            }
        }
    )*};
}

reservation_events! {
    ReservationCreated => "RESERVATION_CREATED";
    ReservationChanged => "RESERVATION_CHANGED";
    ReservationConfirmed => "RESERVATION_CONFIRMED";
    ReservationCancelled => "RESERVATION_CANCELLED";
    ReservationExpired => "RESERVATION_EXPIRED";
}
