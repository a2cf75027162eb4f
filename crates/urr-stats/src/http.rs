//! The statistics over HTTP. All of them are for admins.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_service::{Admin, ApiError, ErrorBody, Json, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{Activity, Stats};

const DAYS_DEFAULT: i64 = 30;
const DAYS_MAX: i64 = 365;

pub fn routes() -> OpenApiRouter<Stats> {
    OpenApiRouter::new().routes(routes!(list_activity))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ActivityQuery {
    /// How many days to look back, today included; 30 if it is not given, at most 365.
    #[param(minimum = 1, maximum = 365)]
    days: Option<i64>,
}

#[derive(Serialize, ToSchema)]
struct ActivityListView {
    activity: Vec<ActivityView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActivityView {
    /// The day in Korea.
    #[schema(example = "2026-11-15")]
    day: String,
    /// The type of the events.
    #[schema(example = "ARTIST_CREATED")]
    event_type: String,
    total: i64,
}

impl From<Activity> for ActivityView {
    fn from(activity: Activity) -> ActivityView {
        ActivityView {
            day: activity.day.to_string(),
            event_type: activity.event_type,
            total: activity.total,
        }
    }
}

/// How many events of each type happened, by day, newest first.
#[utoipa::path(
    get, path = "/api/stats/activity", tag = "statistics", params(ActivityQuery),
    responses(
        (status = 200, body = ActivityListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
async fn list_activity(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityListView>, ApiError> {
    let days = query.days.unwrap_or(DAYS_DEFAULT).clamp(1, DAYS_MAX);
    let days = u16::try_from(days).expect("the number was clamped");
    let activity = stats.list_activity(days).await?;
    Ok(Json(ActivityListView { activity: activity.into_iter().map(ActivityView::from).collect() }))
}
