//! The statistics over HTTP. All of them are for administrators; organisers see those of their own
//! events. Days and hours are Korea's, money is whole won, rates are per cent with two decimals.

mod activity;
mod cancellations;
mod conversion;
mod event_days;
mod events;
pub(crate) mod live;
mod performance;
mod queues;
mod realtime;
mod sales;
mod seats;
mod traffic;
mod users;

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use urr_kernel::{Language, Uuid};
use urr_service::{
    Admin, ApiError, CsvColumn, CsvFile, CsvRow, EventScope, Json, Organiser, Query,
};
use urr_storage::Tx;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::StatsService;
use crate::domain::{day_in_korea, first_day};
use crate::store::counters::is_rebuilding;

pub fn routes() -> OpenApiRouter<StatsService> {
    OpenApiRouter::new()
        .routes(routes!(activity::list_activity))
        .routes(routes!(sales::get_overview))
        .routes(routes!(sales::list_days))
        .routes(routes!(events::list_event_stats))
        .routes(routes!(events::get_event_stats))
        .routes(routes!(event_days::list_event_days))
        .routes(routes!(sales::list_payment_methods))
        .routes(routes!(sales::list_revenue))
        .routes(routes!(users::get_user_stats))
        .routes(routes!(users::get_user_behavior))
        .routes(routes!(traffic::get_hourly_traffic))
        .routes(routes!(conversion::get_conversion))
        .routes(routes!(cancellations::get_cancellations))
        .routes(routes!(realtime::get_realtime))
        .routes(routes!(queues::list_queues))
        .routes(routes!(queues::list_queue_hours))
        .routes(routes!(seats::get_seat_preferences))
        .routes(routes!(performance::get_performance))
        .routes(routes!(events::export_event_stats))
        .routes(routes!(sales::export_days))
        .routes(routes!(sales::export_payment_methods))
        .routes(routes!(sales::export_revenue))
        .routes(routes!(traffic::export_hours))
}

/// The envelope of every answer.
#[derive(Serialize, ToSchema)]
struct StatsAnswer<T: ToSchema> {
    success: bool,
    /// Whether a rebuild runs or was interrupted. Until it is done, the numbers are too small.
    rebuilding: bool,
    data: T,
}

type StatsResult<T> = Result<Json<StatsAnswer<T>>, ApiError>;

/// Reads the statistics for an administrator.
struct StatsReader(StatsService);

impl FromRequestParts<StatsService> for StatsReader {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        stats: &StatsService,
    ) -> Result<StatsReader, ApiError> {
        Admin::from_request_parts(parts, stats).await?;
        Ok(StatsReader(stats.clone()))
    }
}

/// Reads the statistics of events: for organisers their own, for administrators all.
struct EventStatsReader {
    stats: StatsReader,
    scope: EventScope,
}

impl FromRequestParts<StatsService> for EventStatsReader {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        stats: &StatsService,
    ) -> Result<EventStatsReader, ApiError> {
        let Organiser(organiser) = Organiser::from_request_parts(parts, stats).await?;
        let scope = organiser.event_scope();
        Ok(EventStatsReader { stats: StatsReader(stats.clone()), scope })
    }
}

impl StatsReader {
    /// Answers with what is read in one transaction, so that all numbers are of one moment.
    async fn answer<T: ToSchema + Send + 'static>(
        &self,
        read: impl Fn(&mut Tx<'_>) -> Result<T, ApiError> + Send + 'static,
    ) -> StatsResult<T> {
        let read = self.0.db.read(move |tx| Ok::<_, ApiError>((is_rebuilding(tx)?, read(tx)?)));
        let (rebuilding, data) = read.await?;
        Ok(Json(StatsAnswer { success: true, rebuilding, data }))
    }
}

impl StatsService {
    /// The first of the last `days` days, today included.
    fn first_day(&self, days: u16) -> Date {
        first_day(day_in_korea(self.clock.now()), days)
    }
}

/// An item of a list that can be read as a CSV file.
trait CsvRecord {
    const COLUMNS: &'static [CsvColumn];

    fn row(&self) -> CsvRow;
}

/// The list as a file. The lists are short, so it is made as a whole. Numbers that are too small
/// would not say so in a file, so there is none during a rebuild.
fn csv_file<T: CsvRecord>(
    name: &str,
    language: Language,
    rebuilding: bool,
    list: &[T],
) -> Result<Response, ApiError> {
    if rebuilding {
        let sentence = "The statistics are being counted again. Please try again later.";
        return Err(ApiError::unavailable("STATISTICS_REBUILDING", sentence, REBUILD_RETRY_AFTER));
    }
    let rows: Vec<CsvRow> = list.iter().map(T::row).collect();
    Ok(CsvFile::new(name, language, T::COLUMNS).whole(&rows))
}

const REBUILD_RETRY_AFTER: Duration = Duration::from_secs(60);

const DAYS_DEFAULT: u16 = 30;
const DAYS_MAX: u16 = 365;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct DaysQuery {
    /// The number of days, today included; 30 by default, at most 365.
    days: Option<i64>,
}

/// The first of the days that a request asks for by [`DaysQuery`].
struct FirstDay(Date);

impl FromRequestParts<StatsService> for FirstDay {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        stats: &StatsService,
    ) -> Result<FirstDay, ApiError> {
        let Query(DaysQuery { days }) = Query::from_request_parts(parts, stats).await?;
        Ok(FirstDay(stats.first_day(clamp(days, DAYS_DEFAULT, DAYS_MAX))))
    }
}

/// A missing or non-positive number is the default; a larger one than the maximum is the maximum.
fn clamp(wanted: Option<i64>, default: u16, max: u16) -> u16 {
    match wanted {
        Some(wanted) if wanted > 0 => u16::try_from(wanted).unwrap_or(max).min(max),
        _ => default,
    }
}

fn event_not_found() -> ApiError {
    ApiError::not_found("EVENT_NOT_FOUND", "There is no such event.")
}

/// The title of an event, or a name from its id until the catalog has announced it.
fn title_or_id(title: Option<String>, id: Uuid) -> String {
    title.unwrap_or_else(|| format!("Event {}", &id.to_string()[..8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_moved_into_it() {
        let days = |wanted| clamp(wanted, 30, 365);
        assert_eq!([days(None), days(Some(0)), days(Some(-7))], [30, 30, 30]);
        assert_eq!([days(Some(1)), days(Some(365)), days(Some(i64::MAX))], [1, 365, 365]);
    }
}
