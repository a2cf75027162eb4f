//! Traffic by hour of the day.

use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_service::{
    ApiError, CsvColumn, CsvLanguage, CsvQuery, CsvRow, Errors, Json, Query, csv_row,
};
use utoipa::{IntoParams, ToSchema};

use super::{CsvRecord, StatsAnswer, StatsReader, StatsResult, clamp, csv_file};
use crate::domain::{HourlyCounters, StatsCounters, is_weekend};
use crate::store::counter_queries::hour_list;

const TRAFFIC_DAYS_DEFAULT: u16 = 7;
const TRAFFIC_DAYS_MAX: u16 = 90;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TrafficQuery {
    /// The number of days, today included; 7 by default, at most 90.
    days: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HourlyTrafficView {
    /// From 0 to 23.
    hourly: Vec<HourView>,
    weekday_comparison: Vec<DayTypeView>,
    /// The hour with the most reservations; the first of several.
    peak_hour: PeakHourView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HourView {
    hour: u8,
    total_reservations: i64,
    confirmed: i64,
    cancelled: i64,
    revenue: i64,
}

impl CsvRecord for HourView {
    const COLUMNS: &'static [CsvColumn] = &[
        CsvColumn("시(한국 시간)", "Hour (Korean time)"),
        CsvColumn("예매", "Reservations"),
        CsvColumn("확정", "Confirmed"),
        CsvColumn("취소", "Cancelled"),
        CsvColumn("매출(원)", "Revenue (won)"),
    ];

    fn row(&self) -> CsvRow {
        csv_row![self.hour, self.total_reservations, self.confirmed, self.cancelled, self.revenue,]
    }
}

/// Returns reservations by hour of the day as a CSV file.
///
/// For administrators. Errors: 400 `INVALID_LANGUAGE`; 503 `STATISTICS_REBUILDING`.
#[utoipa::path(
    get, path = "/api/stats/hourly-traffic.csv", tag = "statistics", params(TrafficQuery, CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String), Errors<401, 403>),
)]
pub(super) async fn export_hours(
    stats: StatsReader,
    query: Query<TrafficQuery>,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    let Json(list) = get_hourly_traffic(stats, query).await?;
    csv_file("hourly-traffic", language, list.rebuilding, &list.data.hourly)
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DayTypeView {
    /// `weekday` or `weekend`.
    day_type: &'static str,
    reservations: i64,
    /// The average charge.
    avg_amount: i64,
}

#[derive(Serialize, ToSchema)]
struct PeakHourView {
    hour: u8,
    reservations: i64,
}

/// Returns reservations by hour of the day.
///
/// For administrators. `days` is 7 by default, at most 90.
#[utoipa::path(
    get, path = "/api/stats/hourly-traffic", tag = "statistics", params(TrafficQuery),
    responses((status = 200, body = StatsAnswer<HourlyTrafficView>), Errors<401, 403>),
)]
pub(super) async fn get_hourly_traffic(
    stats: StatsReader,
    Query(query): Query<TrafficQuery>,
) -> StatsResult<HourlyTrafficView> {
    let since = stats.0.first_day(clamp(query.days, TRAFFIC_DAYS_DEFAULT, TRAFFIC_DAYS_MAX));
    let view = |(hour, counters): (u8, StatsCounters)| HourView {
        hour,
        total_reservations: counters.created,
        confirmed: counters.confirmed,
        cancelled: counters.cancelled,
        revenue: counters.revenue(),
    };
    stats
        .answer(move |tx| {
            let hours = hour_list(tx, since)?;
            let hourly: Vec<HourView> = hours.by_hour().into_iter().map(view).collect();
            let mut peak_hour = PeakHourView { hour: 0, reservations: 0 };
            for hour in &hourly {
                if hour.total_reservations > peak_hour.reservations {
                    let reservations = hour.total_reservations;
                    peak_hour = PeakHourView { hour: hour.hour, reservations };
                }
            }
            let weekday_comparison =
                vec![day_type(&hours, "weekday", false), day_type(&hours, "weekend", true)];
            Ok(HourlyTrafficView { hourly, weekday_comparison, peak_hour })
        })
        .await
}

fn day_type(hours: &HourlyCounters, day_type: &'static str, weekend: bool) -> DayTypeView {
    let counters = hours.total_where(|hour| is_weekend(hour.day) == weekend);
    DayTypeView { day_type, reservations: counters.created, avg_amount: counters.charge_average() }
}
