//! The reads behind the pages: each is one transaction, so its numbers are of one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::civil::Date;
use serde::Deserialize;
use urr_kernel::{Timestamp, Uuid};
use urr_layout::Layout;
use urr_storage::{StorageError, storable_time};

use crate::domain::{
    Activity, Hour, HourlyCounters, MethodTotals, QueueHour, ReservationDistribution,
    ReservationFact, SeatPreferences, StatsCounters, first_day, start_of_day,
};
use crate::rebuild::RebuildProgress;
use crate::store::counters::progress_find;
use crate::store::event_queries::{EventCounts, EventStats, EventStatsFilter, EventStatsOrder};
use crate::store::user_queries::LastHourStats;
use crate::store::{self, counter_queries, event_queries, facts, queues, user_queries};
use crate::{StatsService, day_in_korea};

const HOUR: Duration = Duration::from_secs(60 * 60);

const RECENT_RESERVATIONS_MAX: u32 = 10;
const TRENDING_MAX: u32 = 5;
const QUEUES_MAX: u32 = 100;
const CANCELLED_EVENTS_MAX: u32 = 10;

/// Seat preferences without an event are those of this many events, the ones that start last.
const HALLS_MAX: u32 = 100;

/// Bounds of the spending tiers, in won.
const SPENDING_BOUNDS: [i64; 3] = [50_000, 150_000, 300_000];

pub struct OverviewStats {
    pub totals: StatsCounters,
    pub events: EventCounts,
}

pub struct UserStats {
    /// Accounts opened and closed before the first hour.
    pub before: StatsCounters,
    pub hours: HourlyCounters,
}

pub struct CancellationStats {
    pub hours: HourlyCounters,
    pub events: Vec<EventStats>,
}

pub struct RealtimeStats {
    pub held_places: i64,
    pub last_hour: LastHourStats,
    /// With the titles of their events.
    pub recent: Vec<(ReservationFact, Option<String>)>,
    pub trending: Vec<(Uuid, Option<String>, i64)>,
}

pub struct UserBehavior {
    pub hours: HourlyCounters,
    /// Reservations within the days and of all time, of the users who made one within the days.
    pub recent: ReservationDistribution,
    pub all_time: ReservationDistribution,
    /// Users by what they spent; see [`SPENDING_BOUNDS`].
    pub spending: [i64; 4],
}

pub struct PerformanceStats {
    pub totals: StatsCounters,
    pub events: EventCounts,
    pub hours: HourlyCounters,
    pub bytes: i64,
}

impl StatsService {
    /// Whether a rebuild runs or was interrupted: until it is done, the counters are too small.
    pub async fn is_rebuilding(&self) -> Result<bool, StorageError> {
        Ok(self.db.read(progress_find).await? != RebuildProgress::DONE)
    }

    /// The activity of the last `days` days, today included, newest first.
    pub async fn list_activity(&self, days: u16) -> Result<Vec<Activity>, StorageError> {
        let since = self.first_day(days);
        self.db.read(move |tx| store::activity_list(tx, since)).await
    }

    pub(crate) async fn overview(&self) -> Result<OverviewStats, StorageError> {
        self.db
            .read(|tx| {
                let totals = counter_queries::counters_total(tx)?;
                Ok(OverviewStats { totals, events: event_queries::event_counts(tx)? })
            })
            .await
    }

    /// The hours of the last `days` days.
    pub(crate) async fn hours(&self, days: u16) -> Result<HourlyCounters, StorageError> {
        let since = self.first_day(days);
        self.db.read(move |tx| counter_queries::hour_list(tx, since).map(HourlyCounters)).await
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
        order: EventStatsOrder,
        limit: u32,
    ) -> Result<Vec<EventStats>, StorageError> {
        let filter = EventStatsFilter { since: None, id: None, order, limit };
        self.db.read(move |tx| event_queries::event_list(tx, &filter)).await
    }

    pub(crate) async fn event(&self, id: Uuid) -> Result<Option<EventStats>, StorageError> {
        let order = EventStatsOrder::Revenue;
        let filter = EventStatsFilter { since: None, id: Some(id), order, limit: 1 };
        self.db
            .read(move |tx| event_queries::event_list(tx, &filter).map(|mut found| found.pop()))
            .await
    }

    pub(crate) async fn methods(&self) -> Result<Vec<(String, MethodTotals)>, StorageError> {
        self.db.read(counter_queries::method_list).await
    }

    pub(crate) async fn users(&self, days: u16) -> Result<UserStats, StorageError> {
        let since = self.first_day(days);
        self.db
            .read(move |tx| {
                let before = counter_queries::counters_total_before(tx, since)?;
                Ok(UserStats {
                    before,
                    hours: HourlyCounters(counter_queries::hour_list(tx, since)?),
                })
            })
            .await
    }

    pub(crate) async fn cancellations(&self, days: u16) -> Result<CancellationStats, StorageError> {
        let since = self.first_day(days);
        let (order, limit) = (EventStatsOrder::Cancellations, CANCELLED_EVENTS_MAX);
        let filter = EventStatsFilter { since: Some(since), id: None, order, limit };
        self.db
            .read(move |tx| {
                let hours = HourlyCounters(counter_queries::hour_list(tx, since)?);
                Ok(CancellationStats { hours, events: event_queries::event_list(tx, &filter)? })
            })
            .await
    }

    pub(crate) async fn realtime(&self) -> Result<RealtimeStats, StorageError> {
        let now = self.clock.now();
        let since = storable_time(now.checked_sub(HOUR).unwrap_or(Timestamp::MIN));
        self.db
            .read(move |tx| {
                let mut recent = Vec::new();
                for reservation in facts::reservation_latest(tx, RECENT_RESERVATIONS_MAX)? {
                    let title = event_queries::event_title(tx, reservation.terms.event_id)?;
                    recent.push((reservation, title));
                }
                let mut trending = Vec::new();
                for (id, reservations) in event_queries::trending_list(tx, since, TRENDING_MAX)? {
                    trending.push((id, event_queries::event_title(tx, id)?, reservations));
                }
                Ok(RealtimeStats {
                    held_places: user_queries::held_places(tx, now)?,
                    last_hour: user_queries::last_hour_stats(tx, since)?,
                    recent,
                    trending,
                })
            })
            .await
    }

    /// The seats of one event, or of the events that start last. None if the event is not known.
    pub(crate) async fn seat_preferences(
        &self,
        event: Option<Uuid>,
    ) -> Result<Option<SeatPreferences>, StorageError> {
        let sales =
            self.db.read(move |tx| event_queries::hall_sales_list(tx, event, HALLS_MAX)).await?;
        if event.is_some() && sales.is_empty() {
            return Ok(None);
        }
        let mut preferences = SeatPreferences::default();
        for sale in sales {
            if let Some(layout) = &sale.layout {
                let layout = Layout::deserialize(layout).expect("it was read when it was stored");
                let prices = sale.prices.as_ref().map(BTreeMap::<String, i64>::deserialize);
                let prices = prices.and_then(Result::ok).unwrap_or_default();
                preferences.add_seats(&layout, &prices, &sale.sold_seats);
            }
            if !sale.ticket_types.is_empty() {
                preferences.add_tickets(&sale.ticket_types, sale.places_sold);
            }
        }
        Ok(Some(preferences))
    }

    pub(crate) async fn user_behavior(&self, days: u16) -> Result<UserBehavior, StorageError> {
        let since = self.first_day(days);
        let start = storable_time(start_of_day(since));
        self.db
            .read(move |tx| {
                Ok(UserBehavior {
                    hours: HourlyCounters(counter_queries::hour_list(tx, since)?),
                    recent: ReservationDistribution(user_queries::reservations_per_user(
                        tx, start,
                    )?),
                    all_time: ReservationDistribution(user_queries::reservations_per_user_ever(
                        tx, start,
                    )?),
                    spending: user_queries::spending_tiers(tx, start, SPENDING_BOUNDS)?,
                })
            })
            .await
    }

    pub(crate) async fn performance(&self, days: u16) -> Result<PerformanceStats, StorageError> {
        let since = self.first_day(days);
        self.db
            .read(move |tx| {
                Ok(PerformanceStats {
                    totals: counter_queries::counters_total(tx)?,
                    events: event_queries::event_counts(tx)?,
                    hours: HourlyCounters(counter_queries::hour_list(tx, since)?),
                    bytes: counter_queries::storage_bytes(tx)?,
                })
            })
            .await
    }

    fn first_day(&self, days: u16) -> Date {
        first_day(day_in_korea(self.clock.now()), days)
    }
}
