//! Conversion: how many reservations are completed.

use jiff::civil::Date;
use serde::Serialize;
use urr_service::Errors;
use utoipa::ToSchema;

use super::{DaysQuery, FirstDay, StatsAnswer, StatsReader, StatsResult};
use crate::domain::{StatsCounters, percent};
use crate::store::counter_queries::hour_list;

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

/// Returns how many reservations were completed.
///
/// For administrators. Counts the reservations that started within the days. Rates are per cent.
#[utoipa::path(
    get, path = "/api/stats/conversion", tag = "statistics", params(DaysQuery),
    responses((status = 200, body = StatsAnswer<ConversionView>), Errors<401, 403>),
)]
pub(super) async fn get_conversion(
    stats: StatsReader,
    FirstDay(since): FirstDay,
) -> StatsResult<ConversionView> {
    let day = |(day, counters): (Date, StatsCounters)| ConversionDayView {
        date: day.to_string(),
        total: counters.started(),
        completed: counters.completed,
        conversion_rate: percent(counters.completed, counters.started()),
    };
    stats
        .answer(move |tx| {
            let hours = hour_list(tx, since)?;
            let totals = hours.total();
            let rate = |count| percent(count, totals.started());
            let days = hours.by_day().into_iter().rev().map(day);
            Ok(ConversionView {
                funnel: FunnelView {
                    total_started: totals.started(),
                    completed: totals.completed,
                    cancelled: totals.dropped,
                    expired: totals.lapsed,
                    pending: totals.pending,
                },
                rates: ConversionRatesView {
                    conversion_rate: rate(totals.completed),
                    cancellation_rate: rate(totals.dropped),
                    pending_rate: rate(totals.pending),
                },
                daily_trend: days.filter(|day| day.total > 0).collect(),
            })
        })
        .await
}
