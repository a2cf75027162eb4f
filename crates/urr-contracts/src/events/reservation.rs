//! What the ticket service announces about reservations. The key is the reservation's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;

pub const TOPIC: &str = "reservation-events";

/// What every event of a reservation says about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationSnapshot {
    pub reservation_id: Uuid,
    pub reservation_number: String,
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub total_amount: Won,
    /// Part of the total: the surcharge of a purchase in a pre-sale, and the fees of transfers.
    #[serde(default)]
    pub booking_fee: Won,
    /// Seats or standing tickets.
    pub quantity: u32,
    /// Empty for standing tickets.
    #[serde(default)]
    pub seat_ids: Vec<SeatId>,
    pub timestamp: Timestamp,
}

/// A user holds seats or standing tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationCreated {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
    pub expires_at: Timestamp,
}

/// A hold has other seats than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationChanged {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
    pub previous_seat_ids: Vec<SeatId>,
    pub previous_total_amount: Won,
}

/// A hold was paid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationConfirmed {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
    pub payment_id: Uuid,
    #[serde(default)]
    pub payment_method: Option<String>,
}

/// The reason of a cancellation whose money was handed over at the box office.
pub const REFUNDED_AT_BOX_OFFICE: &str = "REFUNDED_AT_BOX_OFFICE";

/// Tickets were sold at the box office: paid, and confirmed at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoxOfficeSold {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
    pub payment_id: Uuid,
    pub fencing_token: i64,
    /// `box_office_cash` or `box_office_card`.
    pub payment_method: String,
    /// Of the card terminal.
    #[serde(default)]
    pub receipt_number: Option<String>,
}

/// Tickets were given away: a confirmed reservation that costs nothing and has no payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComplimentaryIssued {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
}

/// A hold was released, or a paid reservation was cancelled: then there may be a refund.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationCancelled {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
    pub reason: String,
    #[serde(default)]
    pub refund_amount: Won,
    /// Refund and fee together are what was paid.
    #[serde(default)]
    pub cancellation_fee: Won,
    /// Null if it was never paid.
    #[serde(default)]
    pub payment_id: Option<Uuid>,
}

/// Some tickets of a paid reservation were cancelled. The others stay valid, and the amounts, the
/// quantity and the seats of the snapshot are those of the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationPartlyCancelled {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
    /// Which cancellation it is: a reservation may have several.
    pub cancellation_id: Uuid,
    /// Empty for standing tickets.
    #[serde(default)]
    pub cancelled_seat_ids: Vec<SeatId>,
    pub cancelled_quantity: u32,
    /// The price of the cancelled tickets: refund and fee together.
    pub cancelled_amount: Won,
    pub refund_amount: Won,
    pub cancellation_fee: Won,
    pub reason: String,
    pub payment_id: Uuid,
}

/// The event of a paid reservation takes place at another time than its owner was told before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationRescheduled {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
    pub previous_starts_at: Timestamp,
    pub starts_at: Timestamp,
    /// Whether the owner can cancel for free until the event begins.
    pub is_free_to_cancel: bool,
}

/// The time of a hold was over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationExpired {
    #[serde(flatten)]
    pub reservation: ReservationSnapshot,
}
