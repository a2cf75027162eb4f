//! All lines that someone stands in.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{ApiError, ErrorBody, Json, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Queue;
use crate::status::QueueStatus;
use urr_room::UserStatus;

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new().routes(routes!(list_own_queues))
}

/// A line that you stand in, or an event that you may book.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OwnQueueView {
    event_id: Uuid,
    title: String,
    /// `queued` or `active`.
    #[schema(example = "queued")]
    status: &'static str,
    /// The first in line has 1. Null before a draw, and for who is in.
    position: Option<u32>,
}

/// Where you stand in all lines: one of them can be left if you wait for as many events as you may.
///
/// It looks into many rooms, so it is not for polls. It counts as being seen.
#[utoipa::path(
    get, path = "/api/queue/mine", tag = "queue",
    responses(
        (status = 200, body = Vec<OwnQueueView>),
        (status = 401, body = ErrorBody),
        (status = 503, body = ErrorBody, description = "`QUEUE_UNAVAILABLE`, with `Retry-After`."),
    ),
)]
async fn list_own_queues(
    State(queue): State<QueueService>,
    User(user): User,
) -> Result<Json<Vec<OwnQueueView>>, ApiError> {
    let places = queue.list_statuses(user.user_id).await?;
    Ok(Json(places.iter().filter_map(own_place).collect()))
}

fn own_place(told: &QueueStatus) -> Option<OwnQueueView> {
    let (status, position) = match told.seen.status {
        UserStatus::Absent => return None,
        UserStatus::Active(_) => ("active", None),
        UserStatus::Waiting(_) if told.is_before_draw() => ("queued", None),
        UserStatus::Waiting(place) => ("queued", Some(place.position)),
    };
    let (event_id, title) = (told.event.event_id, told.event.title.clone());
    Some(OwnQueueView { event_id, title, status, position })
}
