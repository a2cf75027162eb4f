//! Membership tiers, and when each may buy in a pre-sale.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::named_enum;

const HOUR: Duration = Duration::from_hours(1);

/// The tier of a member. `Option::None` is the general public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Silver,
    Gold,
    Diamond,
}

named_enum!(Tier { Silver => "silver", Gold => "gold", Diamond => "diamond" });

/// How long after the start of a sale with a pre-sale someone of this tier may buy.
pub fn presale_delay(tier: Option<Tier>) -> Duration {
    match tier {
        Some(Tier::Diamond) => Duration::ZERO,
        Some(Tier::Gold) => HOUR,
        Some(Tier::Silver) => 24 * HOUR,
        None => 48 * HOUR,
    }
}
