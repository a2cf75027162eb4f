//! What the payment service announces. The key is the order's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};

pub const TOPIC: &str = "payment-events";

wire_enum! {
    /// What was paid.
    pub open enum PaymentType {
        Reservation => "reservation",
        Transfer => "transfer",
        Membership => "membership",
    }
}

wire_enum! {
    /// Why money goes back.
    pub open enum RefundCause {
        /// The reservation was cancelled.
        Cancelled => "cancelled",
        /// Some tickets of the reservation were cancelled.
        PartlyCancelled => "partly_cancelled",
        /// The reservation was sold to another member, whose payment replaces this one (M-8).
        Transferred => "transferred",
        /// The ticket service refused to confirm what was paid (P7).
        NotConfirmable => "not_confirmable",
        /// Another payment has paid for the same payable.
        Duplicate => "duplicate",
        /// The provider charged something else than was ordered, or by another channel.
        Mismatch => "mismatch",
        /// An administrator gives back a part.
        Goodwill => "goodwill",
    }
}

/// What every event of a payment says about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentSnapshot {
    pub payment_id: Uuid,
    pub order_id: String,
    pub user_id: Uuid,
    pub payment_type: PaymentType,
    /// The id of the payable.
    pub reference_id: Uuid,
    /// The paid reservation, or the one that a transfer hands over; null for a membership.
    #[serde(default)]
    pub reservation_id: Option<Uuid>,
    #[serde(default)]
    pub event_id: Option<Uuid>,
    /// Null if the provider does not say.
    #[serde(default)]
    pub payment_method: Option<String>,
    pub timestamp: Timestamp,
}

/// The money was charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentConfirmed {
    #[serde(flatten)]
    pub payment: PaymentSnapshot,
    pub amount: Won,
    /// Part of the amount: the surcharge of a purchase in a pre-sale.
    #[serde(default)]
    pub booking_fee: Won,
    /// Part of the amount; only of a transfer.
    #[serde(default)]
    pub transfer_fee: Option<Won>,
    /// The fencing token of what was paid.
    #[serde(default)]
    pub fencing_token: Option<i64>,
}

/// Money was given back: all, a part, or nothing if the policy keeps everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRefunded {
    #[serde(flatten)]
    pub payment: PaymentSnapshot,
    pub refund_id: Uuid,
    pub amount: Won,
    /// The cancellation fee.
    #[serde(default)]
    pub fee: Won,
    /// The amount that the ticket service asked for; null if it did not ask.
    #[serde(default)]
    pub requested_amount: Option<Won>,
    pub cause: RefundCause,
    #[serde(default)]
    pub reason: String,
    /// Whether the whole charge has gone back; null if the publisher does not say.
    #[serde(default)]
    pub is_whole: Option<bool>,
}

/// A charge that paid for nothing went back whole: the provider charged something else than was
/// ordered, or the same thing twice. It was never announced as [`PaymentConfirmed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChargeReversed {
    #[serde(flatten)]
    pub payment: PaymentSnapshot,
    pub refund_id: Uuid,
    /// What was charged and went back.
    pub amount: Won,
    pub ordered_amount: Won,
    pub cause: RefundCause,
    /// A code such as `AMOUNT_MISMATCH` or `TEST_CHANNEL`.
    #[serde(default)]
    pub reason: String,
}
