//! Conversion: how many reservations are completed.

use axum::extract::State;
use jiff::civil::Date;
use serde::Serialize;
use urr_service::{Admin, ApiError, ErrorBody, Json, Query};
use utoipa::ToSchema;

use super::{DaysQuery, StatsAnswer, answer};
use crate::StatsService;
use crate::domain::{StatsCounter, StatsCounters, percent};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversionView {
    funnel: FunnelView,
    rates: ConversionRatesView,
    /// By the day of creation, newest first.
    daily_trend: Vec<ConversionDayView>,
}

/// The reservations that were created within the days, by their state.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FunnelView {
    total_started: i64,
    /// Paid and not cancelled later.
    completed: i64,
    cancelled: i64,
    expired: i64,
    pending: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConversionRatesView {
    conversion_rate: f64,
    cancellation_rate: f64,
    pending_rate: f64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConversionDayView {
    date: String,
    total: i64,
    completed: i64,
    conversion_rate: f64,
}

/// All reservations that were created, whatever their state.
fn started(counters: &StatsCounters) -> i64 {
    let outcomes = [
        StatsCounter::Completed,
        StatsCounter::Dropped,
        StatsCounter::Lapsed,
        StatsCounter::Pending,
    ];
    outcomes.into_iter().map(|outcome| counters.of(outcome)).sum()
}

/// Returns how many reservations were completed.
///
/// For administrators. Counts the reservations that started within the days. Rates are per cent.
#[utoipa::path(
    get, path = "/api/stats/conversion", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = StatsAnswer<ConversionView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_conversion(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<StatsAnswer<ConversionView>>, ApiError> {
    let hours = stats.hours(query.days()).await?;
    let totals = hours.total();
    let funnel = FunnelView {
        total_started: started(&totals),
        completed: totals.of(StatsCounter::Completed),
        cancelled: totals.of(StatsCounter::Dropped),
        expired: totals.of(StatsCounter::Lapsed),
        pending: totals.of(StatsCounter::Pending),
    };
    let view = |(day, counters): (Date, StatsCounters)| {
        let (total, completed) = (started(&counters), counters.of(StatsCounter::Completed));
        let conversion_rate = percent(completed, total);
        ConversionDayView { date: day.to_string(), total, completed, conversion_rate }
    };
    let days = hours.by_day().into_iter().rev().map(view);
    answer(
        &stats,
        ConversionView {
            rates: ConversionRatesView {
                conversion_rate: percent(funnel.completed, funnel.total_started),
                cancellation_rate: percent(funnel.cancelled, funnel.total_started),
                pending_rate: percent(funnel.pending, funnel.total_started),
            },
            funnel,
            daily_trend: days.filter(|day| day.total > 0).collect(),
        },
    )
    .await
}
