//! What the ticket office announces about tickets that are passed on. The key is the transfer's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{EventData, Uuid, Won};

pub const TOPIC: &str = "transfer-events";

/// A reservation has a new owner. Its payment is the buyer's from now on; the seller's goes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferCompleted {
    pub transfer_id: Uuid,
    pub reservation_id: Uuid,
    pub event_id: Uuid,
    pub seller_id: Uuid,
    pub buyer_id: Uuid,
    /// What the seller had paid.
    pub original_price: Won,
    /// What the platform keeps.
    pub fee: Won,
    /// What the buyer has paid.
    pub total_price: Won,
    /// The buyer's.
    pub payment_id: Uuid,
    pub seller_payment_id: Uuid,
    /// What goes back to the seller, by their payment.
    pub seller_payout: Won,
}

/// A reservation is not for sale any more, and was not sold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferCancelled {
    pub transfer_id: Uuid,
    pub reservation_id: Uuid,
    pub event_id: Uuid,
    pub seller_id: Uuid,
    pub reason: String,
}

macro_rules! transfer_events {
    ($($event:ty => $type:literal;)*) => {$(
        impl EventData for $event {
            const TOPIC: &'static str = TOPIC;
            const TYPE: &'static str = $type;

            fn aggregate_id(&self) -> Uuid {
                self.transfer_id
            }
        }
    )*};
}

transfer_events! {
    TransferCompleted => "TRANSFER_COMPLETED";
    TransferCancelled => "TRANSFER_CANCELLED";
}
