//! Addresses that existing tools know: the figures of a room, its threshold, its end.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json, Path, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::bodies::{THRESHOLD, parse_number};
use super::views::phase_name;
use crate::Queue;
use crate::admin::{Actor, RoomChange, PEOPLE};

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .routes(routes!(get_queue_figures))
        .routes(routes!(clear_queue))
        .routes(routes!(set_queue_threshold))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QueueFiguresView {
    event_id: Uuid,
    queue_size: u32,
    current_users: u32,
    threshold: u32,
    available: u32,
    #[schema(example = "open")]
    phase: &'static str,
}

/// The figures of a room.
#[utoipa::path(
    get, path = "/api/queue/admin/{eventId}", tag = "admin", params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = QueueFiguresView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn get_queue_figures(
    State(queue): State<QueueService>,
    _admin: Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<QueueFiguresView>, ApiError> {
    let report = queue.report_room(event_id).await?;
    let (crowd, threshold) = (&report.crowd, report.rules.threshold);
    Ok(Json(QueueFiguresView {
        event_id,
        queue_size: crowd.waiting,
        current_users: crowd.active,
        threshold,
        available: threshold.saturating_sub(crowd.active),
        phase: phase_name(report.phase),
    }))
}

#[derive(Serialize, ToSchema)]
struct QueueClearedView {
    message: &'static str,
}

/// Ends every place and every slot of an event, for good: everybody has to line up again.
#[utoipa::path(
    post, path = "/api/queue/admin/clear/{eventId}", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = QueueClearedView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn clear_queue(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<QueueClearedView>, ApiError> {
    queue.clear_room(event_id, Actor::Admin(admin.user_id)).await?;
    Ok(Json(QueueClearedView { message: "Queue cleared" }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ThresholdQuery {
    /// So many may be in at once.
    #[param(minimum = 1, maximum = 100_000_000)]
    threshold: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QueueThresholdView {
    event_id: Uuid,
    threshold: u32,
}

/// Sets how many may be in at once.
#[utoipa::path(
    post, path = "/api/queue/admin/threshold/{eventId}", tag = "admin",
    params(("eventId" = Uuid, Path), ThresholdQuery),
    responses(
        (status = 200, body = QueueThresholdView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn set_queue_threshold(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
    Query(query): Query<ThresholdQuery>,
) -> Result<Json<QueueThresholdView>, ApiError> {
    let threshold = parse_number(Some(Some(query.threshold)), PEOPLE, THRESHOLD)?;
    let change = RoomChange { threshold, ..RoomChange::default() };
    queue.change_room(event_id, change, Actor::Admin(admin.user_id)).await?;
    let threshold = queue.report_room(event_id).await?.rules.threshold;
    Ok(Json(QueueThresholdView { event_id, threshold }))
}
