//! What the ticket service announces about transfers. The key is the transfer's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};

pub const TOPIC: &str = "transfer-events";

/// A reservation has a new owner. The buyer's payment replaces the seller's, which is refunded.
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
    /// The buyer's payment.
    pub payment_id: Uuid,
    /// Null if the seller had never paid.
    #[serde(default)]
    pub seller_payment_id: Option<Uuid>,
    /// What is refunded to the seller.
    pub seller_payout: Won,
    /// Null in events of earlier programs.
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
}

/// A listing ended without a sale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferCancelled {
    pub transfer_id: Uuid,
    pub reservation_id: Uuid,
    pub event_id: Uuid,
    pub seller_id: Uuid,
    pub reason: String,
    /// Null in events of earlier programs.
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
}
