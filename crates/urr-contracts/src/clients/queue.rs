//! The queue service, as the ticket service and an operator see it.

use serde_json::Value;
use urr_kernel::{CallContext, Uuid};
use urr_service::Upstream;

use super::{ClientError, get, post};
use crate::internal::queue::{
    CHANGE_ROOM, CHECK_SLOTS, CLEAR_ROOM, CheckSlotsAnswer, CheckSlotsBody, ConfirmClearBody,
    FINISH_SLOT, FinishSlotAnswer, FinishSlotBody, GET_ROOM, LIST_ROOMS, RoomPage, SlotCheck,
};

#[derive(Clone, Debug)]
pub struct QueueClient(Upstream);

impl QueueClient {
    pub fn new(upstream: Upstream) -> QueueClient {
        QueueClient(upstream)
    }

    /// Whether these slots are live, in the order of the checks. The caller compares the lengths.
    pub async fn check_slots(
        &self,
        checks: Vec<SlotCheck>,
        context: &CallContext,
    ) -> Result<Vec<bool>, ClientError> {
        let body = CheckSlotsBody { checks };
        let answer = post(&self.0, &CHECK_SLOTS, CHECK_SLOTS.path, &body, context).await;
        answer.map(|CheckSlotsAnswer { live }| live)
    }

    /// Ends the slot of a user who has bought.
    pub async fn finish_slot(
        &self,
        body: &FinishSlotBody,
        context: &CallContext,
    ) -> Result<FinishSlotAnswer, ClientError> {
        post(&self.0, &FINISH_SLOT, FINISH_SLOT.path, body, context).await
    }

    pub async fn list_rooms(
        &self,
        page: u32,
        limit: u32,
        context: &CallContext,
    ) -> Result<RoomPage, ClientError> {
        let path = format!("{}?page={page}&limit={limit}", LIST_ROOMS.path);
        get(&self.0, &LIST_ROOMS, &path, context).await
    }

    pub async fn get_room(
        &self,
        event_id: Uuid,
        context: &CallContext,
    ) -> Result<Value, ClientError> {
        get(&self.0, &GET_ROOM, &GET_ROOM.path_with(&[&event_id]), context).await
    }

    pub async fn change_room(
        &self,
        event_id: Uuid,
        body: &Value,
        context: &CallContext,
    ) -> Result<Value, ClientError> {
        post(&self.0, &CHANGE_ROOM, &CHANGE_ROOM.path_with(&[&event_id]), body, context).await
    }

    pub async fn clear_room(
        &self,
        event_id: Uuid,
        context: &CallContext,
    ) -> Result<Value, ClientError> {
        let body = ConfirmClearBody { confirm: event_id };
        post(&self.0, &CLEAR_ROOM, &CLEAR_ROOM.path_with(&[&event_id]), &body, context).await
    }
}
