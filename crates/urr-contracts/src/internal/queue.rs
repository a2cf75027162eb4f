//! Internal calls to the queue service: the slots that the ticket service checks, and the rooms
//! that an operator manages.
//!
//! What an operator reads and sends about a room are the documents of the administrators'
//! operations, which OpenAPI describes; the command line prints them as they are.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use urr_kernel::{Timestamp, Uuid};
use urr_service::Caller;

use super::problems::{self, ListQueueProblems, ProblemList};

const TICKET: &[Caller] = &[Caller::Ticket];
const OPERATOR: &[Caller] = &[Caller::Operator];
const SLOT_DEADLINE: Duration = Duration::from_secs(2);
const OPERATOR_DEADLINE: Duration = Duration::from_secs(10);

internal_calls! {
    /// The calls to the queue service.
    pub enum QueueCalls {
        CheckSlots -> CheckSlotsAnswer: Post "/internal/queue/slots", TICKET, SLOT_DEADLINE;
        FinishSlot -> FinishSlotAnswer: Post "/internal/queue/finish", TICKET, SLOT_DEADLINE;
        ListQueueProblems -> ProblemList:
            Get "/internal/queue/problems", problems::CALLERS, problems::DEADLINE;
        ListRooms -> RoomPage: Get "/internal/queue/admin/rooms", OPERATOR, OPERATOR_DEADLINE;
        GetRoom -> Value: Get "/internal/queue/admin/rooms/{eventId}", OPERATOR, OPERATOR_DEADLINE;
        ChangeRoom -> Value:
            PostOnce "/internal/queue/admin/rooms/{eventId}", OPERATOR, OPERATOR_DEADLINE;
        ClearRoom -> Value:
            PostOnce "/internal/queue/admin/rooms/{eventId}/clear", OPERATOR, OPERATOR_DEADLINE;
    }
}

/// [`CheckSlots`] answers for at most this many slots at once.
pub const SLOT_CHECKS_MAX: usize = 5_000;

/// A slot that a user claims to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotCheck {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub slot_id: Uuid,
}

/// Asks whether slots are live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSlots {
    pub checks: Vec<SlotCheck>,
}

/// The answer of [`CheckSlots`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSlotsAnswer {
    /// In the order of the checks.
    pub live: Vec<bool>,
}

/// A user has bought, so the slot is free for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishSlot {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub bought_at: Timestamp,
}

/// The answer of [`FinishSlot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishSlotAnswer {
    /// Whether there was a slot to end.
    pub ended: bool,
}

/// Asks for a page of the rooms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRooms {
    #[serde(default)]
    pub page: Option<i64>,
    #[serde(default)]
    pub limit: Option<i64>,
}

/// Asks for a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetRoom {
    pub event_id: Uuid,
}

/// Changes a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRoom {
    pub event_id: Uuid,
    #[serde(flatten)]
    pub change: Map<String, Value>,
}

/// The answer of [`ListRooms`].
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

/// Removes all users from a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClearRoom {
    pub event_id: Uuid,
    /// The event's id once more, so that no room is cleared by accident.
    #[serde(default)]
    pub confirm: Option<Uuid>,
}
