//! Waiting rooms: their lines and admissions, in total and by hour.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json, Path, Query};
use utoipa::ToSchema;

use super::{DaysQuery, StatsAnswer, answer, title_or_id};
use crate::StatsService;
use crate::domain::{QueueHour, hourly_differences};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueTotalsView {
    event_id: Uuid,
    title: String,
    #[serde(flatten)]
    observed: QueueStatsView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueHourView {
    #[schema(value_type = String, format = Date)]
    day: jiff::civil::Date,
    /// From 0 to 23.
    hour: u8,
    #[serde(flatten)]
    observed: QueueStatsView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QueueStatsView {
    /// The longest line; it is measured once a minute.
    waiting_max: i64,
    /// The most users with a slot at once.
    inside_max: i64,
    /// Users who got a position in the line.
    joined: i64,
    /// Users who were admitted, from the line or at once.
    admitted: i64,
    /// Users who left the line by themselves.
    left: i64,
}

impl QueueStatsView {
    fn new(observed: &QueueHour) -> QueueStatsView {
        QueueStatsView {
            waiting_max: observed.waiting_max,
            inside_max: observed.inside_max,
            joined: observed.joined_total,
            admitted: observed.admitted_total,
            left: observed.left_total,
        }
    }
}

/// Lists the waiting rooms by their longest lines.
///
/// For administrators, up to 100. `waitingMax` and `insideMax` are sampled once a minute; the
/// counts are since the room opened.
#[utoipa::path(
    get, path = "/api/stats/queues", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = StatsAnswer<Vec<QueueTotalsView>>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_queues(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<StatsAnswer<Vec<QueueTotalsView>>>, ApiError> {
    let queues = stats.queues(query.days()).await?;
    let view = |(event_id, title, observed): (Uuid, Option<String>, QueueHour)| QueueTotalsView {
        event_id,
        title: title_or_id(title, event_id),
        observed: QueueStatsView::new(&observed),
    };
    answer(&stats, queues.into_iter().map(view).collect::<Vec<QueueTotalsView>>()).await
}

/// Lists the hours of a waiting room, oldest first.
///
/// For administrators. The counts are of that hour.
#[utoipa::path(
    get, path = "/api/stats/queues/{eventId}", tag = "statistics",
    params(("eventId" = Uuid, Path), DaysQuery),
    responses(
        (status = 200, body = StatsAnswer<Vec<QueueHourView>>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_queue_hours(
    State(stats): State<StatsService>,
    _admin: Admin,
    Path(event_id): Path<Uuid>,
    Query(query): Query<DaysQuery>,
) -> Result<Json<StatsAnswer<Vec<QueueHourView>>>, ApiError> {
    let hours = stats.queue_hours(event_id, query.days()).await?;
    let view = |(hour, observed): (crate::domain::Hour, QueueHour)| QueueHourView {
        day: hour.day,
        hour: hour.hour,
        observed: QueueStatsView::new(&observed),
    };
    answer(&stats, hourly_differences(hours).into_iter().map(view).collect::<Vec<QueueHourView>>())
        .await
}
