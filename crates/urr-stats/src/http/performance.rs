//! How the shop and the statistics' own storage do.

use axum::extract::State;
use serde::Serialize;
use urr_service::{Admin, ApiError, ErrorBody, Json};
use utoipa::ToSchema;

use super::{Envelope, answer};
use crate::Stats;
use crate::domain::{Figure, Figures, percent, ratio, ratio_number};
use crate::reading::Performance;

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
    /// Of the statistics' own tables.
    #[schema(example = "1.50 MB")]
    size: String,
    size_bytes: i64,
    table_counts: TableCountsView,
}

/// What the events of the services told of so far.
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
    /// How many of the reservations that ended within seven days were paid.
    success_rate: f64,
    /// Reservations that were begun within seven days.
    total_requests: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PerformanceMetricsView {
    /// From reserving to paying, cancelling or running out of time.
    #[schema(example = "95.20")]
    avg_seat_lock_seconds: String,
    /// Charges that went back because what was paid for could not be given.
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

/// How the last seven days went, and what the statistics take.
#[utoipa::path(
    get, path = "/api/stats/performance", tag = "statistics",
    responses(
        (status = 200, body = Envelope<PerformanceView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_performance(
    State(stats): State<Stats>,
    _admin: Admin,
) -> Result<Json<Envelope<PerformanceView>>, ApiError> {
    let found = stats.performance(DAYS).await?;
    let Performance { totals, events, hours, bytes } = &found;
    let recent = hours.total();
    let locks = ratio(recent.of(Figure::HeldSeconds), recent.of(Figure::Holds));
    let load = |(hour, figures): (u8, Figures)| LoadView {
        hour,
        request_count: figures.of(Figure::Created),
        avg_per_day: ratio_number(figures.of(Figure::Created), i64::from(DAYS)),
    };
    answer(
        &stats,
        PerformanceView {
            database: DatabaseView {
                size: format!("{} MB", ratio(*bytes, 1024 * 1024)),
                size_bytes: *bytes,
                table_counts: TableCountsView {
                    users: totals.of(Figure::Registered) - totals.of(Figure::Deleted),
                    events: events.events,
                    reservations: totals.of(Figure::Created),
                    seats: events.places,
                    payments: totals.of(Figure::Charges),
                },
            },
            recent_performance: RecentPerformanceView {
                success_rate: percent(recent.of(Figure::Pays), recent.of(Figure::Holds)),
                total_requests: recent.of(Figure::Created),
            },
            metrics: PerformanceMetricsView {
                avg_seat_lock_seconds: locks,
                payment_failure_rate: percent(
                    recent.of(Figure::Undelivered),
                    recent.of(Figure::Charges),
                ),
            },
            load_pattern: hours.by_hour().into_iter().map(load).collect(),
        },
    )
    .await
}
