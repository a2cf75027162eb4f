//! The same operations for operators, by the command line. Requests and answers about a room are
//! the documents of the administrators' operations.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use urr_contracts::internal::queue::{ChangeRoom, ClearRoom, GetRoom, ListRooms, RoomPage};
use urr_kernel::{CallContext, Uuid};
use urr_service::{ApiError, EventScope, Json, Page};

use super::bodies::ChangeRoomBody;
use super::{RoomAdmin, list};
use crate::QueueService;
use crate::admin::RoomActor;

type Room = Result<Value, ApiError>;

/// A view as the contract has it.
fn document<T: DeserializeOwned>(view: impl Serialize) -> Result<T, ApiError> {
    serde_json::to_value(view).and_then(serde_json::from_value).map_err(ApiError::internal)
}

fn by_operator(queue: QueueService, event_id: Uuid) -> RoomAdmin {
    RoomAdmin { queue, event_id, actor: RoomActor::Operator }
}

pub async fn list_rooms(
    queue: QueueService,
    call: ListRooms,
    _: CallContext,
) -> Result<RoomPage, ApiError> {
    document(list(&queue, EventScope::All, Page::of(call.page, call.limit)).await?)
}

pub async fn get_room(queue: QueueService, call: GetRoom, _: CallContext) -> Room {
    document(by_operator(queue, call.event_id).show().await?.0)
}

pub async fn change_room(queue: QueueService, call: ChangeRoom, _: CallContext) -> Room {
    let change_text = Value::Object(call.change).to_string();
    let Json(body) = Json::<ChangeRoomBody>::read(change_text.as_bytes())?;
    document(by_operator(queue, call.event_id).change(body.parse()?).await?.0)
}

pub async fn clear_room(queue: QueueService, call: ClearRoom, _: CallContext) -> Room {
    let is_confirmed = call.confirm == Some(call.event_id);
    document(by_operator(queue, call.event_id).clear(is_confirmed).await?.0)
}
