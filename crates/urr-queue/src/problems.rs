//! What is wrong with waiting rooms at the moment.

use futures_util::future::join_all;
use urr_contracts::internal::problems::{ListQueueProblems, Problem, ProblemCode, ProblemList};
use urr_kernel::CallContext;
use urr_service::ApiError;

use crate::{QueueService, RoomPhase};

/// More paused rooms than this are not listed.
const PAUSED_MAX: usize = 50;

/// Paused rooms with people in line, of an organiser's events or of all; for operators also rooms
/// and services that do not answer.
pub async fn list_queue_problems(
    queue: QueueService,
    ListQueueProblems { organiser_id }: ListQueueProblems,
    _: CallContext,
) -> Result<ProblemList, ApiError> {
    let now = queue.0.clock.now();
    let mut paused = queue.0.event_index.all();
    paused.retain(|event| {
        let is_shown = organiser_id.is_none() || event.organiser_id == organiser_id;
        is_shown && event.phase(&queue.0.settings, now) == RoomPhase::Paused
    });
    paused.truncate(PAUSED_MAX);
    let crowds = join_all(paused.iter().map(|event| queue.0.crowds.get(event.event_id, now))).await;
    let mut problems = Vec::new();
    for (event, crowd) in paused.iter().zip(&crowds) {
        let waiting = crowd.as_ref().map_or(0, |crowd| crowd.crowd.waiting);
        if waiting > 0 {
            problems.push(Problem {
                event_id: Some(event.event_id),
                subject: Some(event.title.clone()),
                ..Problem::new(ProblemCode::RoomPaused, waiting.into())
            });
        }
    }
    if organiser_id.is_none() {
        problems.extend(operator_problems(&queue).await);
    }
    Ok(ProblemList { problems })
}

async fn operator_problems(queue: &QueueService) -> Vec<Problem> {
    let is_away = queue.count_errors(queue.0.rooms.occupied_events().await).is_err();
    let rooms = is_away.then(|| Problem::new(ProblemCode::RoomsAway, 1));
    let open = queue.0.ticket.open_breaker();
    rooms.into_iter().chain(open.map(|target| Problem::breaker("queue", target))).collect()
}
