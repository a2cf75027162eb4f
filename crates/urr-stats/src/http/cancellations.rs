//! Cancellations by hour, event and day.

use axum::extract::State;
use jiff::civil::Date;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json, Query};
use utoipa::ToSchema;

use super::{DaysQuery, StatsAnswer, answer, title_or_id};
use crate::StatsService;
use crate::domain::{StatsCounter, StatsCounters, percent, ratio_number};
use crate::store::event_queries::EventStats;

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
#[serde(rename_all = "camelCase")]
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
#[serde(rename_all = "camelCase")]
struct CancellationDayView {
    date: String,
    cancellations: i64,
}

/// Returns the cancellations within the days.
///
/// For administrators. `totalRefundAmount` is what was promised.
#[utoipa::path(
    get, path = "/api/stats/cancellations", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = StatsAnswer<CancellationsView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_cancellations(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<StatsAnswer<CancellationsView>>, ApiError> {
    let found = stats.cancellations(query.days()).await?;
    let totals = found.hours.total();
    let hour = |(hour, counters): (u8, StatsCounters)| CancellationHourView {
        hour,
        cancellations: counters.of(StatsCounter::Cancelled),
    };
    let day = |(day, counters): (Date, StatsCounters)| CancellationDayView {
        date: day.to_string(),
        cancellations: counters.of(StatsCounter::Cancelled),
    };
    let seconds = totals.of(StatsCounter::CancelledSeconds);
    let by_event = found.events.into_iter().map(CancelledEventView::from);
    let days = found.hours.by_day().into_iter().rev().map(day);
    answer(
        &stats,
        CancellationsView {
            overview: CancellationOverviewView {
                total_cancelled: totals.of(StatsCounter::Cancelled),
                avg_hours_before_cancel: ratio_number(
                    seconds,
                    3_600 * totals.of(StatsCounter::Cancels),
                ),
                total_refund_amount: totals.of(StatsCounter::Owed),
            },
            hourly_pattern: found.hours.by_hour().into_iter().map(hour).collect(),
            by_event: by_event.filter(|event| event.cancelled > 0).collect(),
            daily_trend: days.filter(|day| day.cancellations > 0).collect(),
        },
    )
    .await
}

impl From<EventStats> for CancelledEventView {
    fn from(event: EventStats) -> CancelledEventView {
        let total_reservations = event.counters.of(StatsCounter::Created);
        let cancelled = event.counters.of(StatsCounter::Cancelled);
        CancelledEventView {
            id: event.id,
            title: title_or_id(event.title, event.id),
            total_reservations,
            cancelled,
            cancellation_rate: percent(cancelled, total_reservations),
        }
    }
}
