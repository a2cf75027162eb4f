//! What the ticket service announces about memberships. The key is the membership's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{Tier, Timestamp, Uuid, Won};

pub const TOPIC: &str = "membership-events";

/// A year was paid: the first one or a renewal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MembershipActivated {
    pub membership_id: Uuid,
    pub user_id: Uuid,
    pub artist_id: Uuid,
    pub tier: Tier,
    pub expires_at: Timestamp,
    /// A membership is renewed under the same id; each year has its own payment.
    pub payment_id: Uuid,
    pub amount: Won,
    /// Whether there was a year before.
    pub is_renewal: bool,
    /// Null in events of earlier programs.
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
}

/// The last paid year is over, or its payment was refunded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MembershipExpired {
    pub membership_id: Uuid,
    pub user_id: Uuid,
    pub artist_id: Uuid,
    /// The tier until then.
    pub tier: Tier,
    pub expires_at: Timestamp,
    /// Null in events of earlier programs.
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
}
