//! The sales of one event by day.

use jiff::civil::Date;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{Errors, Path};
use utoipa::ToSchema;

use super::{EventStatsReader, StatsAnswer, StatsResult, event_not_found};
use crate::domain::StatsCounters;
use crate::store::event_queries::{EventStatsFilter, EventStatsOrder, event_day_list, event_list};

/// A sale rarely takes longer; of more days the last ones are listed.
const DAYS_MAX: u32 = 400;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventDayView {
    #[schema(example = "2026-11-15")]
    date: String,
    reservations: i64,
    confirmed: i64,
    cancelled: i64,
    expired: i64,
    /// Seats and standing tickets that were reserved on the day and are sold.
    places_sold: i64,
    /// Charges less refunds, each on its day: it may be below zero.
    revenue: i64,
    refunds: i64,
}

impl EventDayView {
    fn new((day, counters): (Date, StatsCounters)) -> EventDayView {
        EventDayView {
            date: day.to_string(),
            reservations: counters.created,
            confirmed: counters.confirmed,
            cancelled: counters.cancelled,
            expired: counters.expired,
            places_sold: counters.places_sold,
            revenue: counters.revenue(),
            refunds: counters.refunded,
        }
    }
}

/// Lists the days of an event's sale on which something happened, oldest first.
///
/// For its organiser and administrators. Days are those of Korea. Errors: 404 `EVENT_NOT_FOUND`,
/// also for somebody else's event.
#[utoipa::path(
    get, path = "/api/stats/events/{eventId}/days", tag = "statistics",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = StatsAnswer<Vec<EventDayView>>), Errors<401, 403, 404>),
)]
pub(super) async fn list_event_days(
    EventStatsReader { stats, scope }: EventStatsReader,
    Path(id): Path<Uuid>,
) -> StatsResult<Vec<EventDayView>> {
    let (order, organiser_id) = (EventStatsOrder::Revenue, scope.organiser_id());
    let filter = EventStatsFilter { since: None, id: Some(id), organiser_id, order, limit: 1 };
    stats
        .answer(move |tx| {
            event_list(tx, &filter)?.pop().ok_or_else(event_not_found)?;
            Ok(event_day_list(tx, id, DAYS_MAX)?.into_iter().map(EventDayView::new).collect())
        })
        .await
}
