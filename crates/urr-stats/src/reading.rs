//! What the pages ask for: one transaction that reads, one look as of one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::civil::Date;
use serde::Deserialize;
use urr_kernel::{Timestamp, Uuid};
use urr_layout::Layout;
use urr_storage::{StorageError, storable};

use crate::domain::{
    Activity, Distribution, Figures, Hour, Hours, MethodFigures, Preferences, QueueHour,
    Reservation, first_day, start_of_day,
};
use crate::rebuild::Progress;
use crate::store::figures::progress_find;
use crate::store::looks::{self, EventCounts, EventFilter, EventLook, EventOrder, Lately};
use crate::store::{self, facts, queues};
use crate::{Stats, day_in_korea};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// So many of the latest reservations are shown as they happen.
const RECENT_MAX: u32 = 10;
const TRENDING_MAX: u32 = 5;
const QUEUES_MAX: u32 = 100;
const CANCELLED_EVENTS_MAX: u32 = 10;

/// Without an event the seats of so many events are looked at: those that start last.
const HALLS_MAX: u32 = 100;

/// Bounds of what people spend, in won.
const SPENDING_BOUNDS: [i64; 3] = [50_000, 150_000, 300_000];

pub struct Overview {
    pub totals: Figures,
    pub events: EventCounts,
}

pub struct Users {
    /// Who had come and gone before the first hour.
    pub before: Figures,
    pub hours: Hours,
}

pub struct Cancellations {
    pub hours: Hours,
    pub events: Vec<EventLook>,
}

pub struct Realtime {
    pub held_places: i64,
    pub last_hour: Lately,
    /// With the titles of their events.
    pub recent: Vec<(Reservation, Option<String>)>,
    pub trending: Vec<(Uuid, Option<String>, i64)>,
}

pub struct Behavior {
    pub hours: Hours,
    /// Reservations within the days, and ever, of those who made one within the days.
    pub lately: Distribution,
    pub ever: Distribution,
    /// How many spent how much, by [`SPENDING_BOUNDS`].
    pub spending: [i64; 4],
}

pub struct Performance {
    pub totals: Figures,
    pub events: EventCounts,
    pub hours: Hours,
    pub bytes: i64,
}

impl Stats {
    /// Whether the figures are being counted again, or that was broken off: until it is done, they
    /// are not whole.
    pub async fn is_rebuilding(&self) -> Result<bool, StorageError> {
        Ok(self.db.read(progress_find).await? != Progress::DONE)
    }

    /// What happened in the last `days` days, today included, newest first.
    pub async fn list_activity(&self, days: u16) -> Result<Vec<Activity>, StorageError> {
        let since = self.first_day(days);
        self.db.read(move |tx| store::activity_list(tx, since)).await
    }

    pub(crate) async fn overview(&self) -> Result<Overview, StorageError> {
        self.db
            .read(|tx| {
                let totals = looks::sums_total(tx)?;
                Ok(Overview { totals, events: looks::event_counts(tx)? })
            })
            .await
    }

    /// The hours of the last `days` days.
    pub(crate) async fn hours(&self, days: u16) -> Result<Hours, StorageError> {
        let since = self.first_day(days);
        self.db.read(move |tx| looks::hour_list(tx, since).map(Hours)).await
    }

    /// The waiting rooms of the last `days` days with the longest lines, and their titles.
    pub(crate) async fn queues(
        &self,
        days: u16,
    ) -> Result<Vec<(Uuid, Option<String>, QueueHour)>, StorageError> {
        let since = self.first_day(days);
        self.db.read(move |tx| queues::queue_list(tx, since, QUEUES_MAX)).await
    }

    pub(crate) async fn queue_hours(
        &self,
        event_id: Uuid,
        days: u16,
    ) -> Result<Vec<(Hour, QueueHour)>, StorageError> {
        let since = self.first_day(days);
        self.db.read(move |tx| queues::queue_hour_list(tx, event_id, since)).await
    }

    pub(crate) async fn events(
        &self,
        order: EventOrder,
        limit: u32,
    ) -> Result<Vec<EventLook>, StorageError> {
        let filter = EventFilter { since: None, id: None, order, limit };
        self.db.read(move |tx| looks::event_list(tx, &filter)).await
    }

    pub(crate) async fn event(&self, id: Uuid) -> Result<Option<EventLook>, StorageError> {
        let order = EventOrder::Revenue;
        let filter = EventFilter { since: None, id: Some(id), order, limit: 1 };
        self.db.read(move |tx| looks::event_list(tx, &filter).map(|mut found| found.pop())).await
    }

    pub(crate) async fn methods(&self) -> Result<Vec<(String, MethodFigures)>, StorageError> {
        self.db.read(looks::method_list).await
    }

    pub(crate) async fn users(&self, days: u16) -> Result<Users, StorageError> {
        let since = self.first_day(days);
        self.db
            .read(move |tx| {
                let before = looks::sums_before(tx, since)?;
                Ok(Users { before, hours: Hours(looks::hour_list(tx, since)?) })
            })
            .await
    }

    pub(crate) async fn cancellations(&self, days: u16) -> Result<Cancellations, StorageError> {
        let since = self.first_day(days);
        let (order, limit) = (EventOrder::Cancellations, CANCELLED_EVENTS_MAX);
        let filter = EventFilter { since: Some(since), id: None, order, limit };
        self.db
            .read(move |tx| {
                let hours = Hours(looks::hour_list(tx, since)?);
                Ok(Cancellations { hours, events: looks::event_list(tx, &filter)? })
            })
            .await
    }

    pub(crate) async fn realtime(&self) -> Result<Realtime, StorageError> {
        let now = self.clock.now();
        let since = storable(now.checked_sub(HOUR).unwrap_or(Timestamp::MIN));
        self.db
            .read(move |tx| {
                let mut recent = Vec::new();
                for reservation in facts::reservation_latest(tx, RECENT_MAX)? {
                    let title = looks::event_title(tx, reservation.terms.event_id)?;
                    recent.push((reservation, title));
                }
                let mut trending = Vec::new();
                for (id, reservations) in looks::trending(tx, since, TRENDING_MAX)? {
                    trending.push((id, looks::event_title(tx, id)?, reservations));
                }
                Ok(Realtime {
                    held_places: looks::held_places(tx, now)?,
                    last_hour: looks::lately(tx, since)?,
                    recent,
                    trending,
                })
            })
            .await
    }

    /// Of one event, if it is known, or of those that start last.
    pub(crate) async fn seat_preferences(
        &self,
        event: Option<Uuid>,
    ) -> Result<Option<Preferences>, StorageError> {
        let halls = self.db.read(move |tx| looks::hall_list(tx, event, HALLS_MAX)).await?;
        if event.is_some() && halls.is_empty() {
            return Ok(None);
        }
        let mut preferences = Preferences::default();
        for hall in halls {
            if let Some(layout) = &hall.layout {
                let layout = Layout::deserialize(layout).expect("it was read when it was stored");
                let prices = hall.prices.as_ref().map(BTreeMap::<String, i64>::deserialize);
                let prices = prices.and_then(Result::ok).unwrap_or_default();
                preferences.add_seats(&layout, &prices, &hall.sold_seats);
            }
            if !hall.ticket_types.is_empty() {
                preferences.add_tickets(&hall.ticket_types, hall.places_sold);
            }
        }
        Ok(Some(preferences))
    }

    pub(crate) async fn user_behavior(&self, days: u16) -> Result<Behavior, StorageError> {
        let since = self.first_day(days);
        let start = storable(start_of_day(since));
        self.db
            .read(move |tx| {
                Ok(Behavior {
                    hours: Hours(looks::hour_list(tx, since)?),
                    lately: Distribution(looks::reservations_per_user(tx, start)?),
                    ever: Distribution(looks::reservations_ever(tx, start)?),
                    spending: looks::spending(tx, start, SPENDING_BOUNDS)?,
                })
            })
            .await
    }

    pub(crate) async fn performance(&self, days: u16) -> Result<Performance, StorageError> {
        let since = self.first_day(days);
        self.db
            .read(move |tx| {
                Ok(Performance {
                    totals: looks::sums_total(tx)?,
                    events: looks::event_counts(tx)?,
                    hours: Hours(looks::hour_list(tx, since)?),
                    bytes: looks::storage_bytes(tx)?,
                })
            })
            .await
    }

    fn first_day(&self, days: u16) -> Date {
        first_day(day_in_korea(self.clock.now()), days)
    }
}
