//! Cancellations by hour, event and day.

use jiff::civil::Date;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{ApiError, Errors};
use urr_storage::Tx;
use utoipa::ToSchema;

use super::{DaysQuery, FirstDay, StatsAnswer, StatsReader, StatsResult, title_or_id};
use crate::domain::{StatsCounters, percent, ratio_number};
use crate::store::counter_queries::hour_list;
use crate::store::event_queries::{EventStats, EventStatsFilter, EventStatsOrder, event_list};

const EVENTS_MAX: u32 = 10;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancellationsView {
    overview: CancellationOverviewView,
    /// From 0 to 23.
    hourly_pattern: Vec<CancellationHourView>,
    /// At most ten, the most cancelled first.
    by_event: Vec<CancelledEventView>,
    /// Newest first.
    daily_trend: Vec<CancellationDayView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancellationOverviewView {
    total_cancelled: i64,
    /// From reserving to cancelling.
    avg_hours_before_cancel: f64,
    /// The refunds that were announced.
    total_refund_amount: i64,
}

#[derive(Serialize, ToSchema)]
struct CancellationHourView {
    hour: u8,
    cancellations: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancelledEventView {
    id: Uuid,
    title: String,
    total_reservations: i64,
    cancelled: i64,
    cancellation_rate: f64,
}

#[derive(Serialize, ToSchema)]
struct CancellationDayView {
    date: String,
    cancellations: i64,
}

/// Returns the cancellations within the days.
///
/// For administrators. `totalRefundAmount` is what was promised.
#[utoipa::path(
    get, path = "/api/stats/cancellations", tag = "statistics", params(DaysQuery),
    responses((status = 200, body = StatsAnswer<CancellationsView>), Errors<401, 403>),
)]
pub(super) async fn get_cancellations(
    stats: StatsReader,
    FirstDay(since): FirstDay,
) -> StatsResult<CancellationsView> {
    stats.answer(move |tx| cancellations(tx, since)).await
}

fn cancellations(tx: &mut Tx<'_>, since: Date) -> Result<CancellationsView, ApiError> {
    let (order, limit) = (EventStatsOrder::Cancellations, EVENTS_MAX);
    let filter =
        EventStatsFilter { since: Some(since), id: None, organiser_id: None, order, limit };
    let (hours, events) = (hour_list(tx, since)?, event_list(tx, &filter)?);
    let totals = hours.total();
    let hour = |(hour, counters): (u8, StatsCounters)| CancellationHourView {
        hour,
        cancellations: counters.cancelled,
    };
    let day = |(day, counters): (Date, StatsCounters)| CancellationDayView {
        date: day.to_string(),
        cancellations: counters.cancelled,
    };
    let by_event = events.into_iter().map(CancelledEventView::from);
    let days = hours.by_day().into_iter().rev().map(day);
    Ok(CancellationsView {
        overview: CancellationOverviewView {
            total_cancelled: totals.cancelled,
            avg_hours_before_cancel: ratio_number(totals.cancelled_seconds, 3_600 * totals.cancels),
            total_refund_amount: totals.owed,
        },
        hourly_pattern: hours.by_hour().into_iter().map(hour).collect(),
        by_event: by_event.filter(|event| event.cancelled > 0).collect(),
        daily_trend: days.filter(|day| day.cancellations > 0).collect(),
    })
}

impl From<EventStats> for CancelledEventView {
    fn from(event: EventStats) -> CancelledEventView {
        let total_reservations = event.counters.created;
        let cancelled = event.counters.cancelled;
        CancelledEventView {
            id: event.id,
            title: title_or_id(event.title, event.id),
            total_reservations,
            cancelled,
            cancellation_rate: percent(cancelled, total_reservations),
        }
    }
}
