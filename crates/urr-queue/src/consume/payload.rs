//! What others publish, read and checked. Fields that we have no use for are ignored.

use serde::Deserialize;
use urr_kernel::{Timestamp, Uuid};

use crate::EventStatus;
use crate::store::event_projection::{ProjectedFacts, EventUpdate};

/// `EVENT_CREATED` and `EVENT_UPDATED`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventFacts {
    pub event_id: Uuid,
    revision: i64,
    title: String,
    artist_id: Option<Uuid>,
    artist_name: Option<String>,
    sale_starts_at: Timestamp,
    sale_ends_at: Timestamp,
    has_presale: bool,
    status: String,
}

/// `EVENT_CANCELLED` and `EVENT_DELETED`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventEnded {
    pub event_id: Uuid,
}

/// `RESERVATION_CONFIRMED`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationConfirmed {
    pub reservation_id: Uuid,
    pub event_id: Uuid,
    pub user_id: Uuid,
}

impl EventFacts {
    /// What there is to be merged, or why nobody can wait for such an event.
    pub fn into_news(self) -> Result<EventUpdate, String> {
        if self.revision < 1 {
            return Err(format!("there is no revision {}", self.revision));
        }
        if self.sale_starts_at >= self.sale_ends_at {
            return Err("the sale ends before it begins".to_owned());
        }
        let is_cancelled = self.status == "cancelled";
        Ok(EventUpdate {
            status: if is_cancelled { EventStatus::Cancelled } else { EventStatus::Open },
            facts: Some(ProjectedFacts {
                revision: self.revision,
                title: self.title,
                artist_id: self.artist_id,
                artist_name: self.artist_name,
                sale_starts_at: self.sale_starts_at,
                sale_ends_at: self.sale_ends_at,
                has_presale: self.has_presale,
            }),
        })
    }
}
