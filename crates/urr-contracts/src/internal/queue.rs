//! Internal calls to the queue service: the slots that the ticket service checks, and the rooms
//! that an operator manages.
//!
//! What an operator reads and sends about a room are the documents of the administrators'
//! operations, which OpenAPI describes; the command line prints them as they are.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Caller;

use super::InternalCall;

const TICKET: &[Caller] = &[Caller::Ticket];
const OPERATOR: &[Caller] = &[Caller::Operator];
const SLOT_DEADLINE: Duration = Duration::from_secs(2);
const OPERATOR_DEADLINE: Duration = Duration::from_secs(10);

pub const CHECK_SLOTS: InternalCall =
    InternalCall::post("queue.slots.check", "/internal/queue/slots", TICKET, SLOT_DEADLINE);

pub const FINISH_SLOT: InternalCall =
    InternalCall::post("queue.slots.finish", "/internal/queue/finish", TICKET, SLOT_DEADLINE);

pub const LIST_ROOMS: InternalCall = InternalCall::get(
    "queue.rooms.list",
    "/internal/queue/admin/rooms",
    OPERATOR,
    OPERATOR_DEADLINE,
);

pub const GET_ROOM: InternalCall = InternalCall::get(
    "queue.rooms.get",
    "/internal/queue/admin/rooms/{event_id}",
    OPERATOR,
    OPERATOR_DEADLINE,
);

pub const CHANGE_ROOM: InternalCall = InternalCall::post(
    "queue.rooms.change",
    "/internal/queue/admin/rooms/{event_id}",
    OPERATOR,
    OPERATOR_DEADLINE,
)
.once();

pub const CLEAR_ROOM: InternalCall = InternalCall::post(
    "queue.rooms.clear",
    "/internal/queue/admin/rooms/{event_id}/clear",
    OPERATOR,
    OPERATOR_DEADLINE,
)
.once();

/// [`CHECK_SLOTS`] answers for at most this many slots at once.
pub const SLOT_CHECKS_MAX: usize = 5_000;

/// A slot that a user claims to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotCheck {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub slot_id: Uuid,
}

/// The body of [`CHECK_SLOTS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSlotsBody {
    pub checks: Vec<SlotCheck>,
}

/// The answer of [`CHECK_SLOTS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSlotsAnswer {
    /// In the order of the checks.
    pub live: Vec<bool>,
}

/// The body of [`FINISH_SLOT`]: a user has bought, so the slot is free for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishSlotBody {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub bought_at: Timestamp,
}

/// The answer of [`FINISH_SLOT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishSlotAnswer {
    /// Whether there was a slot to end.
    pub ended: bool,
}

/// The answer of [`LIST_ROOMS`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomPage {
    pub rooms: Vec<Value>,
    pub pagination: RoomPagination,
}

/// The part of the pagination that is needed to read all pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomPagination {
    pub total_pages: u32,
}

/// The body of [`CLEAR_ROOM`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmClearBody {
    /// The event's id once more, so that no room is cleared by accident.
    pub confirm: Uuid,
}
