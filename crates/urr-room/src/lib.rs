//! Waiting rooms: the users who wait for an event, their order, and the users who have a slot.
//!
//! One contract, two forms: [`memory`] holds the rooms in the process and writes every change to a
//! journal; [`redis`] holds them in Redis, shared by all processes. Every operation is atomic, and
//! its answer is durable.
//!
//! Invariants: no user waits and has a slot at once; no user waits twice; there are never more
//! slots than the threshold; in no second of the clock all processes together admit more than the
//! rate allows; the order comes from the room alone, never from the request (D-4).
//!
//! Deliberately absent: sales, tiers and tokens. A room obeys the [`AdmissionRules`] of each call.

pub mod memory;
pub mod redis;
pub mod relocation;
pub mod slot_log;

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Schema, migrations};

use self::memory::MemoryRooms;
use self::redis::RedisRooms;

/// The journal of rooms in memory: always a file of SQLite.
pub const JOURNAL: Schema = Schema {
    name: "queue_room",
    migrations: migrations![1 "places" => "../migrations/0001_places.sql"],
};

/// What a room allows at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionRules {
    pub admission: AdmissionState,
    /// How many users may have a slot at once.
    pub threshold: u32,
    pub admitted_per_second_max: u32,
    /// A slot ends this long after its owner was last seen.
    pub slot_ttl: Duration,
    /// A slot ends this long after the admission in any case.
    pub slot_max: Duration,
    /// How many users may wait.
    pub waiting_max: u32,
    /// For how many events one user may wait.
    pub queues_per_user_max: u32,
}

/// Whether users are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionState {
    Open,
    /// Users join the line: the sale has not begun, is paused, or everything is sold.
    Closed,
}

/// A request of a user to the room of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomRequest {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub now: Timestamp,
}

/// A user's status with the size of the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusSnapshot {
    pub status: UserStatus,
    /// How many users wait, and how many have a slot, this user included.
    pub waiting: u32,
    pub active: u32,
    /// Whether this call admitted the user.
    pub is_just_admitted: bool,
}

/// Whether a user waits or has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserStatus {
    Waiting(LinePosition),
    Active(Slot),
    Absent,
}

/// The same, read without marking the user as seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserLocation {
    Waiting(LinePosition),
    Active,
    Absent,
}

/// A user's number and position in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePosition {
    /// Orders the line and never changes, except by the draw. Arrivals count up from one; drawn
    /// numbers are below zero.
    pub number: i64,
    /// The first in line has 1.
    pub position: u32,
}

/// The right to book for some minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// New with each admission, so that a token of an older slot is not valid.
    pub id: Uuid,
    pub admitted_at: Timestamp,
    /// Extended while its owner is seen, up to `last_end`.
    pub ends_at: Timestamp,
    pub last_end: Timestamp,
}

/// A user who was admitted from the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    pub user_id: Uuid,
    pub slot_id: Uuid,
}

/// The state of a room as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    pub waiting: u32,
    pub active: u32,
    /// The number of the last arrival; 0 before the first.
    pub last_number: i64,
    /// How many users were admitted and how many left the line by themselves, since the room was
    /// opened.
    pub admitted_total: u64,
    pub left_total: u64,
    pub pace: LinePace,
    /// Some positions of the line, front first, the first and the last included. A user whose
    /// number is between two of them stands between their positions.
    pub marks: Vec<LinePosition>,
}

/// How the line moved in the last whole seconds, oldest first, counted over all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinePace {
    /// Admitted from the line, per second.
    pub admitted: Vec<u32>,
    /// Left the line by themselves or were dropped, per second.
    pub left: Vec<u32>,
    /// All admissions per second: also of those who did not have to wait.
    pub let_in: Vec<u32>,
    /// Slots that ended per second. One that expired ends when that is noticed.
    pub ended: Vec<u32>,
    /// The slots in use at the end of the last of these seconds.
    pub in_use: u32,
}

impl LinePace {
    pub const SECONDS: usize = 60;
}

/// A longer gap between two sweeps means that the room itself was down.
pub const SWEEP_GAP_MAX: Duration = Duration::from_mins(2);

/// The allowed gap between sweeps. It grows with the time for which users may be unseen.
fn sweep_gap_max_us(unseen_for_us: i64) -> i64 {
    let shortest_us = i64::try_from(SWEEP_GAP_MAX.as_micros()).expect("minutes");
    shortest_us.max(unseen_for_us / 2)
}

/// The number of marks in a [`Crowd`] at most.
pub const MARKS_MAX: usize = 160;

/// How many positions and slots were ended by clearing a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClearedCounts {
    pub waiting: u32,
    pub active: u32,
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoomError {
    #[error("the waiting room is full")]
    Full,
    #[error("the user waits for too many events")]
    TooManyQueues,
    /// The outcome is not known. The call can be repeated without harm.
    #[error("the waiting room does not answer")]
    Unavailable,
}

/// The rooms of all events. Clones share them.
#[derive(Clone)]
pub enum Rooms {
    Memory(MemoryRooms),
    Redis(RedisRooms),
}

/// Defines the operations: each asks the form that holds the rooms, and may fail with [`RoomError`].
macro_rules! operations {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)*) => {
        impl Rooms {
            $($(#[$meta])*
            pub async fn $name(&self $(, $argument: $type)*) -> Result<$answer, RoomError> {
                match self {
                    Rooms::Memory(rooms) => rooms.$name($($argument),*).await,
                    Rooms::Redis(rooms) => rooms.$name($($argument),*).await,
                }
            })*
        }
    };
}

operations! {
    /// Reports a user's status and marks the user as seen. A user who is not in the room is
    /// admitted if nobody waits and the rules allow it, or else joins the line.
    fn check(request: RoomRequest, rules: &AdmissionRules) -> StatusSnapshot;

    /// Reports a user's status and marks the user as seen.
    fn poll(request: RoomRequest, rules: &AdmissionRules) -> StatusSnapshot;

    /// The locations of these users, in the same order. It does not mark them as seen, so nobody
    /// keeps a position or a slot by it.
    fn locate(event_id: Uuid, users: &[Uuid], now: Timestamp) -> Vec<UserLocation>;

    /// Ends a user's position or slot. False if there was none.
    fn leave(request: RoomRequest) -> bool;

    /// Ends the slot of a user who has bought, unless it was given after `bought_at`: the message
    /// of a purchase may be old.
    fn finish(request: RoomRequest, bought_at: Timestamp) -> bool;

    /// Whether this slot is live. Only then the user is marked as seen: a request with an old slot
    /// keeps neither a position nor a newer slot.
    fn holds_slot(request: RoomRequest, slot_id: Uuid, rules: &AdmissionRules) -> bool;

    /// Admits from the front of the line as many users as the rules allow. Several processes may
    /// call it at any time: together they admit no more.
    fn admit(event_id: Uuid, rules: &AdmissionRules, now: Timestamp) -> Vec<Admission>;

    /// Drops at most `count_max` users from the line who were not seen since. Returns how many:
    /// fewer than `count_max` means that there are no more.
    ///
    /// Users do not lose their positions by an outage of the room: after a gap between sweeps
    /// ([`SWEEP_GAP_MAX`], or half the time for which users may be unseen if that is more)
    /// everybody counts as seen when the sweeps began again. A new line counts as swept.
    fn sweep(event_id: Uuid, unseen_since: Timestamp, count_max: u32, now: Timestamp) -> u32;

    /// Ends every position and slot of an event. After a large room was cleared, its users may for
    /// a moment still be rejected elsewhere as waiting for too many events.
    fn clear(event_id: Uuid, now: Timestamp) -> ClearedCounts;

    fn crowd(event_id: Uuid, now: Timestamp) -> Crowd;

    /// The events whose rooms are occupied.
    fn occupied_events() -> Vec<Uuid>;

    /// The users who wait with an arrival number up to `last_number`, in order of arrival.
    fn entrants(event_id: Uuid, last_number: i64) -> Vec<Uuid>;

    /// Gives the users who still wait with an arrival number up to `last_number` their drawn
    /// numbers, which are below zero. A user who left and joined again has a later number and keeps
    /// it. Nobody must be admitted before it has answered: then all numbers are durable, also those
    /// of an earlier call that failed. Repeating it changes nothing.
    fn renumber(event_id: Uuid, last_number: i64, drawn: &[(Uuid, i64)]) -> ();
}
