//! An event as its waiting room knows it: when people gather, when they are let in, and who may.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};

use crate::Settings;
use crate::room::{Door, Rules};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// What is known of an event and its room. A copy of what the catalogue says, with the organiser's
/// wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRoom {
    pub event_id: Uuid,
    pub status: EventStatus,
    pub title: String,
    pub artist_id: Option<Uuid>,
    pub artist_name: Option<String>,
    pub sale_starts_at: Timestamp,
    pub sale_ends_at: Timestamp,
    pub has_presale: bool,
    pub wishes: Wishes,
    /// Of a lottery.
    pub draw: Option<DrawState>,
}

/// In this order: what is over is never open again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventStatus {
    Open,
    Deleted,
    Cancelled,
}

/// How the organiser wants the room to be run; `None` is the default of the installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    pub threshold: Option<u32>,
    pub admitted_per_second_max: Option<u32>,
    pub gathering: Option<Duration>,
    pub opening: Opening,
    pub is_paused: bool,
    pub has_autopilot: bool,
    /// Shown to those who wait.
    pub message: Option<String>,
}

/// In which order those are let in who came before the sale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    #[default]
    Fifo,
    Lottery,
}

/// How far a draw is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawState {
    Committed,
    Done,
}

/// A fan's standing with an artist. `None` of it is the general public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Silver,
    Gold,
    Diamond,
}

/// What happens in the room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nobody may come yet.
    Closed {
        gathers_at: Timestamp,
    },
    /// People come and wait for the opening.
    Gathering {
        opens_at: Timestamp,
    },
    /// The sale has begun; the order of those who came before is being drawn.
    Drawing,
    Open,
    Paused,
    Over,
    Cancelled,
    /// It was taken out of sight.
    Deleted,
}

/// Why someone may not line up now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmissible {
    #[error("there is no such event")]
    Unknown,
    #[error("the event was cancelled")]
    Cancelled,
    #[error("the waiting room is not open yet")]
    NotYet { gathers_at: Timestamp },
    /// Only members of a higher tier may come at the moment.
    #[error("only members may come at the moment")]
    Presale { opens_at: Timestamp },
    #[error("the sale is over")]
    Over,
}

impl EventStatus {
    pub fn name(self) -> &'static str {
        match self {
            EventStatus::Open => "open",
            EventStatus::Deleted => "deleted",
            EventStatus::Cancelled => "cancelled",
        }
    }

    pub fn parse(name: &str) -> Option<EventStatus> {
        let all = [EventStatus::Open, EventStatus::Deleted, EventStatus::Cancelled];
        all.into_iter().find(|status| status.name() == name)
    }
}

impl Opening {
    pub fn name(self) -> &'static str {
        match self {
            Opening::Fifo => "fifo",
            Opening::Lottery => "lottery",
        }
    }

    pub fn parse(name: &str) -> Option<Opening> {
        [Opening::Fifo, Opening::Lottery].into_iter().find(|opening| opening.name() == name)
    }
}

impl Tier {
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

impl EventRoom {
    pub fn phase(&self, settings: &Settings, now: Timestamp) -> Phase {
        match self.status {
            EventStatus::Open => {}
            EventStatus::Cancelled => return Phase::Cancelled,
            EventStatus::Deleted => return Phase::Deleted,
        }
        let opens_at = self.sale_starts_at;
        let gathers_at = opens_at - self.wishes.gathering.unwrap_or(settings.gathering);
        let is_drawn = self.wishes.opening == Opening::Fifo || self.draw == Some(DrawState::Done);
        match () {
            () if now >= self.sale_ends_at => Phase::Over,
            () if now < gathers_at => Phase::Closed { gathers_at },
            () if now < opens_at => Phase::Gathering { opens_at },
            () if !is_drawn => Phase::Drawing,
            () if self.wishes.is_paused => Phase::Paused,
            () => Phase::Open,
        }
    }

    /// Whether a pre-sale runs or is gathered for: then the tier of who comes has to be known.
    pub fn needs_tier(&self, now: Timestamp) -> bool {
        self.has_presale && now < self.opens_at(None)
    }

    /// When someone of this tier may buy: members of the artist earlier, if there is a pre-sale.
    pub fn opens_at(&self, tier: Option<Tier>) -> Timestamp {
        let after = match (self.has_presale, tier) {
            (false, _) | (true, Some(Tier::Diamond)) => Duration::ZERO,
            (true, Some(Tier::Gold)) => HOUR,
            (true, Some(Tier::Silver)) => 24 * HOUR,
            (true, None) => 48 * HOUR,
        };
        self.sale_starts_at + after
    }

    /// Whether someone of this tier may line up now (B-1, B-2, Q8).
    pub fn check_admissible(
        &self,
        tier: Option<Tier>,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<(), NotAdmissible> {
        match self.phase(settings, now) {
            Phase::Deleted => return Err(NotAdmissible::Unknown),
            Phase::Cancelled => return Err(NotAdmissible::Cancelled),
            Phase::Over => return Err(NotAdmissible::Over),
            Phase::Closed { gathers_at } => return Err(NotAdmissible::NotYet { gathers_at }),
            Phase::Gathering { .. } | Phase::Drawing | Phase::Open | Phase::Paused => {}
        }
        // Before the sale those gather whom it opens for.
        let opens_at = self.opens_at(tier);
        match now.max(self.sale_starts_at) < opens_at {
            true => Err(NotAdmissible::Presale { opens_at }),
            false => Ok(()),
        }
    }

    /// What the room is told. `rate_max` is what the autopilot allows, if it flies.
    pub fn rules(
        &self,
        settings: &Settings,
        is_sold_out: bool,
        rate_max: Option<u32>,
        now: Timestamp,
    ) -> Rules {
        let is_open = self.phase(settings, now) == Phase::Open && !is_sold_out;
        let rate = self.wishes.admitted_per_second_max.unwrap_or(settings.admitted_per_second_max);
        Rules {
            door: if is_open { Door::Open } else { Door::Shut },
            threshold: self.wishes.threshold.unwrap_or(settings.threshold),
            admitted_per_second_max: rate.min(rate_max.unwrap_or(u32::MAX)),
            slot_ttl: settings.slot_ttl,
            slot_max: settings.slot_max,
            waiting_max: settings.waiting_max,
            queues_per_user_max: settings.queues_per_user_max,
        }
    }
}
