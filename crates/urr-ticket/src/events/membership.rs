//! What the ticket office announces about memberships. The key is the membership's id.

use serde::{Deserialize, Serialize};
use urr_kernel::{EventData, Timestamp, Uuid, Won};

pub const TOPIC: &str = "membership-events";

/// A year was paid: the first one, or the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MembershipActivated {
    pub membership_id: Uuid,
    pub user_id: Uuid,
    pub artist_id: Uuid,
    pub tier: String,
    pub expires_at: Timestamp,
    pub payment_id: Uuid,
    pub amount: Won,
    /// Whether there was a year before.
    pub is_renewal: bool,
}

/// The last year that was paid is over, or its money went back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MembershipExpired {
    pub membership_id: Uuid,
    pub user_id: Uuid,
    pub artist_id: Uuid,
    /// What it was until then.
    pub tier: String,
    pub expires_at: Timestamp,
}

macro_rules! membership_events {
    ($($event:ty => $type:literal;)*) => {$(
        impl EventData for $event {
            const TOPIC: &'static str = TOPIC;
            const TYPE: &'static str = $type;

            fn aggregate_id(&self) -> Uuid {
                self.membership_id
            }
        }
    )*};
}

membership_events! {
    MembershipActivated => "MEMBERSHIP_ACTIVATED";
    MembershipExpired => "MEMBERSHIP_EXPIRED";
}
