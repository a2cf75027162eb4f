//! Activity: how many domain events of each type happened.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_service::{Admin, ApiError, ErrorBody, Json, Query};
use utoipa::{IntoParams, ToSchema};

use super::{DAYS_DEFAULT, DAYS_MAX};
use crate::{Activity, StatsService};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ActivityQuery {
    /// The number of days, today included; 30 by default, at most 365.
    #[param(minimum = 1, maximum = 365)]
    days: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ActivityListView {
    /// Whether a rebuild runs or was interrupted. Until it is done, the numbers are too small.
    rebuilding: bool,
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

/// Lists how many domain events of each type happened, by day, newest first.
///
/// For administrators. This response is not wrapped in `data`.
#[utoipa::path(
    get, path = "/api/stats/activity", tag = "statistics", params(ActivityQuery),
    responses(
        (status = 200, body = ActivityListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_activity(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityListView>, ApiError> {
    let days = i64::from(DAYS_DEFAULT);
    let days = query.days.unwrap_or(days).clamp(1, i64::from(DAYS_MAX));
    let days = u16::try_from(days).expect("the number was clamped");
    let activity = stats.list_activity(days).await?;
    let rebuilding = stats.is_rebuilding().await?;
    let activity = activity.into_iter().map(ActivityView::from).collect();
    Ok(Json(ActivityListView { rebuilding, activity }))
}
