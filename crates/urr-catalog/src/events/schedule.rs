//! The times of an event, and the status that follows from them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_contracts::events::catalog::CatalogEventStatus;
use urr_kernel::{Timestamp, truncate_to_micros};
use urr_storage::storable_enum;
use utoipa::ToSchema;

use crate::response_cache::ExpiryHint;

const HOUR: Duration = Duration::from_secs(60 * 60);
const YEAR_FIRST: i16 = 2020;
const YEAR_LAST: i16 = 2100;
/// From the first second of 2020 to the last one of 2100.
const SECONDS: std::ops::Range<i64> = 1_577_836_800..4_133_980_800;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventStatus {
    Upcoming,
    OnSale,
    Ended,
    Cancelled,
}

storable_enum!(EventStatus {
    Upcoming => "upcoming",
    OnSale => "on_sale",
    Ended => "ended",
    Cancelled => "cancelled",
});

impl From<EventStatus> for CatalogEventStatus {
    fn from(status: EventStatus) -> CatalogEventStatus {
        match status {
            EventStatus::Upcoming => CatalogEventStatus::Upcoming,
            EventStatus::OnSale => CatalogEventStatus::OnSale,
            EventStatus::Ended => CatalogEventStatus::Ended,
            EventStatus::Cancelled => CatalogEventStatus::Cancelled,
        }
    }
}

/// The times of the sale and of the event: sale start < sale end ≤ event start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    starts_at: Timestamp,
    sale_starts_at: Timestamp,
    sale_ends_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    #[error("The sale must end after it starts.")]
    EndsBeforeStart,
    #[error("The sale must end before the event starts.")]
    EndsAfterEvent,
    #[error("The times must be in the years {YEAR_FIRST} to {YEAR_LAST}.")]
    Year,
}

/// When members of each tier, and everybody, may start to buy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PresaleView)]
pub struct PresaleSchedule {
    pub diamond: Timestamp,
    pub gold: Timestamp,
    pub silver: Timestamp,
    pub general: Timestamp,
}

impl Schedule {
    pub fn parse(
        starts_at: Timestamp,
        sale_starts_at: Timestamp,
        sale_ends_at: Timestamp,
    ) -> Result<Schedule, InvalidSchedule> {
        let times = [starts_at, sale_starts_at, sale_ends_at].map(truncate_to_micros);
        if !times.iter().all(|time| SECONDS.contains(&time.as_second())) {
            return Err(InvalidSchedule::Year);
        }
        let [starts_at, sale_starts_at, sale_ends_at] = times;
        if sale_ends_at <= sale_starts_at {
            return Err(InvalidSchedule::EndsBeforeStart);
        }
        if starts_at < sale_ends_at {
            return Err(InvalidSchedule::EndsAfterEvent);
        }
        Ok(Schedule { starts_at, sale_starts_at, sale_ends_at })
    }

    pub fn starts_at(&self) -> Timestamp {
        self.starts_at
    }

    pub fn sale_starts_at(&self) -> Timestamp {
        self.sale_starts_at
    }

    pub fn sale_ends_at(&self) -> Timestamp {
        self.sale_ends_at
    }

    pub fn status_at(&self, now: Timestamp) -> EventStatus {
        if now >= self.sale_ends_at {
            EventStatus::Ended
        } else if now >= self.sale_starts_at {
            EventStatus::OnSale
        } else {
            EventStatus::Upcoming
        }
    }

    /// The next time at which the status changes.
    pub fn next_change_after(&self, now: Timestamp) -> Option<Timestamp> {
        [self.sale_starts_at, self.sale_ends_at].into_iter().find(|time| *time > now)
    }

    /// Whether the sale opens or opened within `distance` of now.
    pub fn is_near_opening(&self, now: Timestamp, distance: Duration) -> bool {
        now >= self.sale_starts_at - distance && now <= self.sale_starts_at + distance
    }

    /// When an answer about the event becomes outdated.
    pub fn expiry_hint(&self, now: Timestamp, distance: Duration) -> ExpiryHint {
        ExpiryHint {
            next_change: self.next_change_after(now),
            is_near_opening: self.is_near_opening(now, distance),
        }
    }

    pub fn presale(&self) -> PresaleSchedule {
        let diamond = self.sale_starts_at;
        PresaleSchedule {
            diamond,
            gold: diamond + HOUR,
            silver: diamond + 24 * HOUR,
            general: diamond + 48 * HOUR,
        }
    }
}
