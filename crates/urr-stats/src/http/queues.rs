//! Waiting rooms: their lines and admissions, in total and by hour.

use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{Errors, Path};
use utoipa::ToSchema;

use super::{DaysQuery, FirstDay, StatsAnswer, StatsReader, StatsResult, title_or_id};
use crate::domain::{Hour, QueueHour, hourly_differences};
use crate::store::queues::{queue_hour_list, queue_list};

const QUEUES_MAX: u32 = 100;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueTotalsView {
    event_id: Uuid,
    title: String,
    #[serde(flatten)]
    observed: QueueStatsView,
}

#[derive(Serialize, ToSchema)]
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

impl From<QueueHour> for QueueStatsView {
    fn from(observed: QueueHour) -> QueueStatsView {
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
    responses((status = 200, body = StatsAnswer<Vec<QueueTotalsView>>), Errors<401, 403>),
)]
pub(super) async fn list_queues(
    stats: StatsReader,
    FirstDay(since): FirstDay,
) -> StatsResult<Vec<QueueTotalsView>> {
    let view = |(event_id, title, observed): (Uuid, Option<String>, QueueHour)| QueueTotalsView {
        event_id,
        title: title_or_id(title, event_id),
        observed: observed.into(),
    };
    stats
        .answer(move |tx| Ok(queue_list(tx, since, QUEUES_MAX)?.into_iter().map(view).collect()))
        .await
}

/// Lists the hours of a waiting room, oldest first.
///
/// For administrators. The counts are of that hour.
#[utoipa::path(
    get, path = "/api/stats/queues/{eventId}", tag = "statistics",
    params(("eventId" = Uuid, Path), DaysQuery),
    responses((status = 200, body = StatsAnswer<Vec<QueueHourView>>), Errors<401, 403>),
)]
pub(super) async fn list_queue_hours(
    stats: StatsReader,
    Path(event_id): Path<Uuid>,
    FirstDay(since): FirstDay,
) -> StatsResult<Vec<QueueHourView>> {
    let view = |(Hour { day, hour }, observed): (Hour, QueueHour)| QueueHourView {
        day,
        hour,
        observed: observed.into(),
    };
    stats
        .answer(move |tx| {
            let hours = hourly_differences(queue_hour_list(tx, event_id, since)?);
            Ok(hours.into_iter().map(view).collect())
        })
        .await
}
