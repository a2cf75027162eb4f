//! The calls of the ticket service, and of operators by the command line.

use futures_util::future::try_join_all;
use urr_contracts::internal::queue::{
    CheckSlots, CheckSlotsAnswer, FinishSlot, FinishSlotAnswer, SLOT_CHECKS_MAX,
};
use urr_kernel::CallContext;
use urr_service::{ApiError, InternalCalls};

use super::admin::operator;
use super::room_error;
use crate::QueueService;
use crate::problems::list_queue_problems;

pub fn calls(queue: QueueService) -> InternalCalls<QueueService> {
    InternalCalls::new(queue)
        .serve(check_slots)
        .serve(finish_slot)
        .serve(list_queue_problems)
        .serve(operator::list_rooms)
        .serve(operator::get_room)
        .serve(operator::change_room)
        .serve(operator::clear_room)
}

/// Whether these slots are live. Without a live slot nobody books, whatever the token says.
async fn check_slots(
    queue: QueueService,
    call: CheckSlots,
    _: CallContext,
) -> Result<CheckSlotsAnswer, ApiError> {
    if call.checks.len() > SLOT_CHECKS_MAX {
        let sentence = format!("At most {SLOT_CHECKS_MAX} slots can be checked at once.");
        return Err(ApiError::bad_request("TOO_MANY_SLOT_CHECKS", sentence));
    }
    queue.learn_events(&call.checks).await.map_err(room_error)?;
    let live = call.checks.into_iter().map(|check| queue.is_slot_live(check));
    Ok(CheckSlotsAnswer { live: try_join_all(live).await.map_err(room_error)? })
}

/// Ends the slot of a user who has bought.
async fn finish_slot(
    queue: QueueService,
    call: FinishSlot,
    _: CallContext,
) -> Result<FinishSlotAnswer, ApiError> {
    let FinishSlot { event_id, user_id, bought_at } = call;
    let ended = queue.finish(event_id, user_id, bought_at).await.map_err(room_error)?;
    Ok(FinishSlotAnswer { ended })
}
