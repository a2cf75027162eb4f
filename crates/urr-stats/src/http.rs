//! The statistics over HTTP. All of them are for admins. Days and hours are Korea's, money is whole
//! won, rates are per cent with two decimals.

mod activity;
mod people;
mod performance;
mod queues;
mod sales;
mod seats;
mod traffic;

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{ApiError, Json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Stats;

pub fn routes() -> OpenApiRouter<Stats> {
    OpenApiRouter::new()
        .routes(routes!(activity::list_activity))
        .routes(routes!(sales::get_overview))
        .routes(routes!(sales::list_days))
        .routes(routes!(sales::list_event_figures))
        .routes(routes!(sales::get_event_figures))
        .routes(routes!(sales::list_payment_methods))
        .routes(routes!(sales::list_revenue))
        .routes(routes!(people::get_user_figures))
        .routes(routes!(people::get_user_behavior))
        .routes(routes!(traffic::get_hourly_traffic))
        .routes(routes!(traffic::get_conversion))
        .routes(routes!(traffic::get_cancellations))
        .routes(routes!(traffic::get_realtime))
        .routes(routes!(queues::list_queues))
        .routes(routes!(queues::list_queue_hours))
        .routes(routes!(seats::get_seat_preferences))
        .routes(routes!(performance::get_performance))
}

/// How every answer is wrapped.
#[derive(Serialize, ToSchema)]
struct Envelope<T: ToSchema> {
    success: bool,
    /// Whether everything is being counted again, or was begun to and broken off: until that is
    /// done, the figures are too small.
    rebuilding: bool,
    data: T,
}

async fn answer<T: ToSchema>(stats: &Stats, data: T) -> Result<Json<Envelope<T>>, ApiError> {
    let rebuilding = stats.is_rebuilding().await?;
    Ok(Json(Envelope { success: true, rebuilding, data }))
}

const DAYS_DEFAULT: u16 = 30;
const DAYS_MAX: u16 = 365;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct DaysQuery {
    /// How many days to look back, today included; 30 if it is not given, at most 365.
    days: Option<i64>,
}

impl DaysQuery {
    fn days(&self) -> u16 {
        clamp(self.days, DAYS_DEFAULT, DAYS_MAX)
    }
}

/// What is missing or not positive is the default, what is too much is the most there is.
fn clamp(wanted: Option<i64>, default: u16, max: u16) -> u16 {
    match wanted {
        Some(wanted) if wanted > 0 => u16::try_from(wanted).unwrap_or(max).min(max),
        _ => default,
    }
}

/// What an event is called; as long as the catalogue's word was not heard, after its id.
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
