//! The admin paths under `/api/queue/admin`, which the tools of the original system call.

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, Json, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::RoomAdmin;
use super::bodies::{THRESHOLD, parse_number};
use crate::QueueService;
use crate::admin::{PEOPLE, RoomChange, RoomReport};
use crate::http::AdminErrors;
use crate::status::EventContext;

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .routes(routes!(get_queue_summary))
        .routes(routes!(clear_queue))
        .routes(routes!(set_queue_threshold))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QueueSummaryView {
    event_id: Uuid,
    queue_size: u32,
    current_users: u32,
    threshold: u32,
    available: u32,
    #[schema(example = "open")]
    phase: &'static str,
}

impl From<RoomReport> for QueueSummaryView {
    fn from(RoomReport { context, crowd, .. }: RoomReport) -> QueueSummaryView {
        let EventContext { event, phase, rules, .. } = context;
        QueueSummaryView {
            event_id: event.event_id,
            queue_size: crowd.waiting,
            current_users: crowd.active,
            threshold: rules.threshold,
            available: rules.threshold.saturating_sub(crowd.active),
            phase: phase.as_str(),
        }
    }
}

/// Returns the numbers of a room.
///
/// For administrators; kept for tools of the original system. Errors: 404 `EVENT_NOT_FOUND`; 503
/// `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/queue/admin/{eventId}", tag = "admin", params(("eventId" = Uuid, Path)),
    responses((status = 200, body = QueueSummaryView), AdminErrors),
)]
async fn get_queue_summary(
    _admin: Admin,
    room: RoomAdmin,
) -> Result<Json<QueueSummaryView>, ApiError> {
    Ok(Json(room.queue.report_room(room.event_id, room.actor.scope()).await?.into()))
}

#[derive(Serialize, ToSchema)]
struct QueueClearedView {
    message: &'static str,
}

/// Removes all users from a room, without confirmation.
///
/// For administrators; kept for tools of the original system. Errors: 404 `EVENT_NOT_FOUND`; 503
/// `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/queue/admin/clear/{eventId}", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = QueueClearedView), AdminErrors),
)]
async fn clear_queue(_admin: Admin, room: RoomAdmin) -> Result<Json<QueueClearedView>, ApiError> {
    room.queue.clear_room(room.event_id, room.actor).await?;
    Ok(Json(QueueClearedView { message: "Queue cleared" }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ThresholdQuery {
    /// How many users may have a slot at once.
    #[param(minimum = 1, maximum = 100_000_000)]
    threshold: i64,
}

/// Sets how many slots a room has.
///
/// For administrators; kept for tools of the original system. Errors: 400 `INVALID_THRESHOLD`; 404
/// `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/queue/admin/threshold/{eventId}", tag = "admin",
    params(("eventId" = Uuid, Path), ThresholdQuery),
    responses((status = 200, body = QueueSummaryView), AdminErrors),
)]
async fn set_queue_threshold(
    _admin: Admin,
    room: RoomAdmin,
    Query(query): Query<ThresholdQuery>,
) -> Result<Json<QueueSummaryView>, ApiError> {
    let threshold = parse_number(Some(Some(query.threshold)), PEOPLE, THRESHOLD)?;
    let change = RoomChange { threshold, ..RoomChange::default() };
    room.queue.change_room(room.event_id, change, room.actor).await?;
    Ok(Json(room.queue.report_room(room.event_id, room.actor.scope()).await?.into()))
}
