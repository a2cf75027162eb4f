//! Performance of sales and the size of the statistics' own tables.

use jiff::civil::Date;
use serde::Serialize;
use urr_service::{ApiError, Errors};
use urr_storage::Tx;
use utoipa::ToSchema;

use super::{StatsAnswer, StatsReader, StatsResult};
use crate::domain::{StatsCounters, percent, ratio, ratio_number};
use crate::store::counter_queries::{counters_total, hour_list, storage_bytes};
use crate::store::event_queries::event_counts;

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
    responses((status = 200, body = StatsAnswer<PerformanceView>), Errors<401, 403>),
)]
pub(super) async fn get_performance(stats: StatsReader) -> StatsResult<PerformanceView> {
    let since = stats.0.first_day(DAYS);
    stats.answer(move |tx| performance(tx, since)).await
}

fn performance(tx: &mut Tx<'_>, since: Date) -> Result<PerformanceView, ApiError> {
    let (totals, hours) = (counters_total(tx)?, hour_list(tx, since)?);
    let (counts, bytes) = (event_counts(tx)?, storage_bytes(tx)?);
    let recent = hours.total();
    let load = |(hour, counters): (u8, StatsCounters)| LoadView {
        hour,
        request_count: counters.created,
        avg_per_day: ratio_number(counters.created, i64::from(DAYS)),
    };
    Ok(PerformanceView {
        database: DatabaseView {
            size: format!("{} MB", ratio(bytes, 1024 * 1024)),
            size_bytes: bytes,
            table_counts: TableCountsView {
                users: totals.users(),
                events: counts.events,
                reservations: totals.created,
                seats: counts.places,
                payments: totals.charges,
            },
        },
        recent_performance: RecentPerformanceView {
            success_rate: percent(recent.pays, recent.holds),
            total_requests: recent.created,
        },
        metrics: PerformanceMetricsView {
            avg_seat_lock_seconds: ratio(recent.held_seconds, recent.holds),
            payment_failure_rate: percent(recent.undelivered, recent.charges),
        },
        load_pattern: hours.by_hour().into_iter().map(load).collect(),
    })
}
