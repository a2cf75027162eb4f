//! Activity: how many domain events of each type happened.

use serde::Serialize;
use urr_service::{ApiError, Errors, Json};
use utoipa::ToSchema;

use super::{DaysQuery, FirstDay, StatsAnswer, StatsReader};
use crate::store::{ActivityView, activity_list};

#[derive(Serialize, ToSchema)]
pub(super) struct ActivityListView {
    /// Whether a rebuild runs or was interrupted. Until it is done, the numbers are too small.
    rebuilding: bool,
    activity: Vec<ActivityView>,
}

/// Lists how many domain events of each type happened, by day, newest first.
///
/// For administrators. This response is not wrapped in `data`.
#[utoipa::path(
    get, path = "/api/stats/activity", tag = "statistics", params(DaysQuery),
    responses((status = 200, body = ActivityListView), Errors<401, 403>),
)]
pub(super) async fn list_activity(
    stats: StatsReader,
    FirstDay(since): FirstDay,
) -> Result<Json<ActivityListView>, ApiError> {
    let Json(StatsAnswer { rebuilding, data: activity, .. }) =
        stats.answer(move |tx| Ok(activity_list(tx, since)?)).await?;
    Ok(Json(ActivityListView { rebuilding, activity }))
}
