//! A fan's standing with an artist, and what it means for a pre-sale.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const HOUR: Duration = Duration::from_hours(1);

/// A fan's standing with an artist. `None` of it is the general public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Silver,
    Gold,
    Diamond,
}

impl Tier {
    /// As it is stored and sent.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Silver => "silver",
            Tier::Gold => "gold",
            Tier::Diamond => "diamond",
        }
    }

    pub fn parse(name: &str) -> Option<Tier> {
        [Tier::Silver, Tier::Gold, Tier::Diamond].into_iter().find(|tier| tier.name() == name)
    }
}

/// How long after the start of a sale with a pre-sale someone of this tier may buy.
pub fn presale_delay(tier: Option<Tier>) -> Duration {
    match tier {
        Some(Tier::Diamond) => Duration::ZERO,
        Some(Tier::Gold) => HOUR,
        Some(Tier::Silver) => 24 * HOUR,
        None => 48 * HOUR,
    }
}
