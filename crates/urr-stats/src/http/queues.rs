//! How the waiting rooms stood.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json, Path, Query};
use utoipa::ToSchema;

use super::{DaysQuery, Envelope, answer, title_or_id};
use crate::Stats;
use crate::domain::{QueueHour, since_before};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueView {
    event_id: Uuid,
    title: String,
    #[serde(flatten)]
    stood: QueueFiguresView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueHourView {
    #[schema(value_type = String, format = Date)]
    day: jiff::civil::Date,
    /// From 0 to 23.
    hour: u8,
    #[serde(flatten)]
    stood: QueueFiguresView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QueueFiguresView {
    /// The longest line, as it was seen once a minute.
    waiting_max: i64,
    /// The most people who could book at once.
    inside_max: i64,
    /// Who got a place in line.
    joined: i64,
    /// Who was let in, from the line or at once.
    admitted: i64,
    /// Who left the line by themselves.
    left: i64,
}

impl QueueFiguresView {
    fn new(stood: &QueueHour) -> QueueFiguresView {
        QueueFiguresView {
            waiting_max: stood.waiting_max,
            inside_max: stood.inside_max,
            joined: stood.joined_total,
            admitted: stood.admitted_total,
            left: stood.left_total,
        }
    }
}

/// The waiting rooms with people lately, the longest lines first, up to 100. What they counted is
/// since they were opened.
#[utoipa::path(
    get, path = "/api/stats/queues", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = Envelope<Vec<QueueView>>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_queues(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<Envelope<Vec<QueueView>>>, ApiError> {
    let queues = stats.queues(query.days()).await?;
    let view = |(event_id, title, stood): (Uuid, Option<String>, QueueHour)| QueueView {
        event_id,
        title: title_or_id(title, event_id),
        stood: QueueFiguresView::new(&stood),
    };
    answer(&stats, queues.into_iter().map(view).collect::<Vec<QueueView>>()).await
}

/// A waiting room hour by hour, oldest first.
#[utoipa::path(
    get, path = "/api/stats/queues/{eventId}", tag = "statistics",
    params(("eventId" = Uuid, Path), DaysQuery),
    responses(
        (status = 200, body = Envelope<Vec<QueueHourView>>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_queue_hours(
    State(stats): State<Stats>,
    _admin: Admin,
    Path(event_id): Path<Uuid>,
    Query(query): Query<DaysQuery>,
) -> Result<Json<Envelope<Vec<QueueHourView>>>, ApiError> {
    let hours = stats.queue_hours(event_id, query.days()).await?;
    let view = |(hour, stood): (crate::domain::Hour, QueueHour)| QueueHourView {
        day: hour.day,
        hour: hour.hour,
        stood: QueueFiguresView::new(&stood),
    };
    answer(&stats, since_before(hours).into_iter().map(view).collect::<Vec<QueueHourView>>()).await
}
