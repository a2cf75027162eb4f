//! Being told when one's turn is near.

use axum::extract::State;
use axum::http::StatusCode;
use urr_kernel::Uuid;
use urr_service::{ApiError, ErrorBody, Path, User};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Queue;
use crate::reminders::ReminderError;

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new().routes(routes!(ask_queue_reminder, withdraw_queue_reminder))
}

impl From<ReminderError> for ApiError {
    fn from(error: ReminderError) -> ApiError {
        match error {
            ReminderError::NotWaiting => ApiError::conflict(
                "NOT_WAITING",
                "You do not wait for this event, so there is no turn to tell you of.",
            ),
            ReminderError::LinePosition(error) => error.into(),
            ReminderError::Storage(error) => error.into(),
        }
    }
}

/// Be told when your turn is near.
///
/// You are told once: when it is about three minutes away, or when you are among the next in line.
/// Asking again changes nothing. It does not keep your place: go on asking where you stand.
#[utoipa::path(
    post, path = "/api/queue/{eventId}/reminder", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 204, description = "You will be told."),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`"),
        (status = 409, body = ErrorBody, description = "`NOT_WAITING`: you have no place in this \
            line, or you are in already."),
        (status = 503, body = ErrorBody, description = "`QUEUE_UNAVAILABLE`, with `Retry-After`."),
    ),
)]
async fn ask_queue_reminder(
    State(queue): State<QueueService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    queue.ask_reminder(event_id, user.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Do not be told.
///
/// Doing it again changes nothing.
#[utoipa::path(
    delete, path = "/api/queue/{eventId}/reminder", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 204, description = "You will not be told."),
        (status = 401, body = ErrorBody),
    ),
)]
async fn withdraw_queue_reminder(
    State(queue): State<QueueService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    queue.withdraw_reminder(event_id, user.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
