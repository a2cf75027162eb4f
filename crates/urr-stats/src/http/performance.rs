//! Performance of sales and the size of the statistics' own tables.

use axum::extract::State;
use serde::Serialize;
use urr_service::{Admin, ApiError, ErrorBody, Json};
use utoipa::ToSchema;

use super::{StatsAnswer, answer};
use crate::StatsService;
use crate::domain::{StatsCounter, StatsCounters, percent, ratio, ratio_number};
use crate::queries::PerformanceStats;

/// The days that are looked at, today included.
const DAYS: u16 = 7;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PerformanceView {
    database: DatabaseView,
    recent_performance: RecentPerformanceView,
    metrics: PerformanceMetricsView,
    /// From 0 to 23, over seven days.
    load_pattern: Vec<LoadView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DatabaseView {
    /// The size of the statistics' own tables.
    #[schema(example = "1.50 MB")]
    size: String,
    size_bytes: i64,
    table_counts: TableCountsView,
}

/// What was counted so far.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TableCountsView {
    users: i64,
    events: i64,
    reservations: i64,
    seats: i64,
    payments: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RecentPerformanceView {
    /// The percentage of the reservations that ended within seven days by a payment.
    success_rate: f64,
    /// Reservations that were created within seven days.
    total_requests: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PerformanceMetricsView {
    /// From reserving to paying, cancelling or expiring.
    #[schema(example = "95.20")]
    avg_seat_lock_seconds: String,
    /// The percentage of charges that were refunded because they could not be delivered.
    payment_failure_rate: f64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LoadView {
    hour: u8,
    /// Reservations.
    request_count: i64,
    avg_per_day: f64,
}

/// Returns how sales went in the last seven days.
///
/// For administrators. `successRate` is paid reservations of those that ended; `paymentFailureRate`
/// counts payments that were returned because nothing could be delivered.
#[utoipa::path(
    get, path = "/api/stats/performance", tag = "statistics",
    responses(
        (status = 200, body = StatsAnswer<PerformanceView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_performance(
    State(stats): State<StatsService>,
    _admin: Admin,
) -> Result<Json<StatsAnswer<PerformanceView>>, ApiError> {
    let found = stats.performance(DAYS).await?;
    let PerformanceStats { totals, events, hours, bytes } = &found;
    let recent = hours.total();
    let locks = ratio(recent.of(StatsCounter::HeldSeconds), recent.of(StatsCounter::Holds));
    let load = |(hour, counters): (u8, StatsCounters)| LoadView {
        hour,
        request_count: counters.of(StatsCounter::Created),
        avg_per_day: ratio_number(counters.of(StatsCounter::Created), i64::from(DAYS)),
    };
    answer(
        &stats,
        PerformanceView {
            database: DatabaseView {
                size: format!("{} MB", ratio(*bytes, 1024 * 1024)),
                size_bytes: *bytes,
                table_counts: TableCountsView {
                    users: totals.of(StatsCounter::Registered) - totals.of(StatsCounter::Deleted),
                    events: events.events,
                    reservations: totals.of(StatsCounter::Created),
                    seats: events.places,
                    payments: totals.of(StatsCounter::Charges),
                },
            },
            recent_performance: RecentPerformanceView {
                success_rate: percent(
                    recent.of(StatsCounter::Pays),
                    recent.of(StatsCounter::Holds),
                ),
                total_requests: recent.of(StatsCounter::Created),
            },
            metrics: PerformanceMetricsView {
                avg_seat_lock_seconds: locks,
                payment_failure_rate: percent(
                    recent.of(StatsCounter::Undelivered),
                    recent.of(StatsCounter::Charges),
                ),
            },
            load_pattern: hours.by_hour().into_iter().map(load).collect(),
        },
    )
    .await
}
