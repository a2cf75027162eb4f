//! The waiting rooms of all events: who waits, in which order, and who is in.
//!
//! One contract, two forms: [`memory`] keeps the rooms in the process and every place in a journal;
//! [`redis`] keeps them in Redis, shared by all processes. Every operation is one atomic step, and
//! what it answers is durable when it answers.
//!
//! Invariants: nobody is in and waits at once; nobody waits twice; those who are in are never more
//! than the threshold; in no second of the clock more are let in than the rate allows, by all
//! processes together; order comes from the room alone, never from who asks (D-4).
//!
//! Deliberately absent: events, sales, tiers and tokens. A room obeys the [`AdmissionRules`] it is given.

pub mod memory;
pub mod redis;

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Schema, migrations};

use self::memory::MemoryRooms;
use self::redis::RedisRooms;

/// The journal of rooms that live in a process: always a file of SQLite beside the process.
pub const JOURNAL: Schema = Schema {
    name: "queue_room",
    migrations: migrations![1 "places" => "../migrations/0001_places.sql"],
};

/// What a room allows at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionRules {
    pub admission: AdmissionState,
    /// So many may be in at once.
    pub threshold: u32,
    /// So many may be let in within a second of the clock.
    pub admitted_per_second_max: u32,
    /// A slot ends so long after its owner was last seen.
    pub slot_ttl: Duration,
    /// A slot ends so long after it was given, whatever its owner does.
    pub slot_max: Duration,
    /// So many may wait.
    pub waiting_max: u32,
    /// So many events may one person wait for.
    pub queues_per_user_max: u32,
}

/// Whether anybody is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionState {
    Open,
    /// Who comes waits: the sale has not begun, is paused, or everything is sold.
    Closed,
}

/// Who asks about which event, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomRequest {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub now: Timestamp,
}

/// What someone is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusSnapshot {
    pub status: UserStatus,
    /// How many wait, and how many are in: with the one who asks.
    pub waiting: u32,
    pub active: u32,
    /// Whether this very call let them in.
    pub is_just_admitted: bool,
}

/// Where someone stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserStatus {
    Waiting(LinePosition),
    Active(Slot),
    Absent,
}

/// Where someone stands, for who asks behind their back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserLocation {
    Waiting(LinePosition),
    Active,
    Absent,
}

/// A place in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePosition {
    /// Orders the line and never changes, except by the draw. Arrivals count up from one; those who
    /// were drawn have numbers below zero.
    pub number: i64,
    /// The first in line has 1.
    pub position: u32,
}

/// The right to book, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Another one each time: a token that names an older slot is dead.
    pub id: Uuid,
    pub admitted_at: Timestamp,
    /// Moves on while its owner is seen, up to `last_end`.
    pub ends_at: Timestamp,
    pub last_end: Timestamp,
}

/// Someone who was let in by a turn of the admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    pub user_id: Uuid,
    pub slot_id: Uuid,
}

/// A room as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    pub waiting: u32,
    pub active: u32,
    /// The newest number of an arrival; 0 before the first.
    pub last_number: i64,
    /// How many came in and how many left the line by themselves, since the room was opened.
    pub admitted_total: u64,
    pub left_total: u64,
    pub pace: LinePace,
    /// Some people in the line, front first: who has a number between two of them stands between
    /// their positions. The first and the last of the line are among them.
    pub marks: Vec<LinePosition>,
}

/// How the line moved in the last whole seconds, oldest first. Shared by all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinePace {
    /// Let in from the line, per second.
    pub admitted: Vec<u32>,
    /// Left the line by themselves or were dropped, per second.
    pub left: Vec<u32>,
}

impl LinePace {
    /// So many seconds are remembered.
    pub const SECONDS: usize = 60;
}

/// A room that was not swept for longer was away itself, unless one may be unseen for very long.
pub const SWEEP_GAP_MAX: Duration = Duration::from_mins(2);

/// How long a room may not be swept, if people may be unseen for so long.
fn sweep_gap_max_us(unseen_for_us: i64) -> i64 {
    let shortest_us = i64::try_from(SWEEP_GAP_MAX.as_micros()).expect("minutes");
    shortest_us.max(unseen_for_us / 2)
}

/// How many places are marked in a [`Crowd`] at most.
pub const MARKS_MAX: usize = 160;

/// What was ended by clearing a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClearedCounts {
    pub waiting: u32,
    pub active: u32,
}

/// Why nobody was let in or lined up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoomError {
    #[error("as many wait as may")]
    Full,
    #[error("they wait for as many events as they may")]
    TooManyQueues,
    /// Nothing was done, or it is not known: asking again does no harm.
    #[error("the waiting room does not answer")]
    Unavailable,
}

/// The rooms of all events. Clones share them.
#[derive(Clone)]
pub enum Rooms {
    Memory(MemoryRooms),
    Redis(RedisRooms),
}

macro_rules! in_either {
    ($rooms:expr, $room:ident => $call:expr) => {
        match $rooms {
            Rooms::Memory($room) => $call.await,
            Rooms::Redis($room) => $call.await,
        }
    };
}

impl Rooms {
    /// Tells someone where they stand; who is neither in nor in line is let in, if nobody waits
    /// and the rules allow it, or else lined up. It counts as being seen.
    pub async fn check(
        &self,
        request: RoomRequest,
        rules: &AdmissionRules,
    ) -> Result<StatusSnapshot, RoomError> {
        in_either!(self, room => room.check(request, rules))
    }

    /// Tells someone where they stand. It counts as being seen.
    pub async fn poll(
        &self,
        request: RoomRequest,
        rules: &AdmissionRules,
    ) -> Result<StatusSnapshot, RoomError> {
        in_either!(self, room => room.poll(request, rules))
    }

    /// Where these people stand, in the order in which they are asked for. It does not count as being
    /// seen: nobody keeps a place or a slot by it.
    pub async fn locate(
        &self,
        event_id: Uuid,
        users: &[Uuid],
        now: Timestamp,
    ) -> Result<Vec<UserLocation>, RoomError> {
        in_either!(self, room => room.locate(event_id, users, now))
    }

    /// Ends someone's place or slot at once. False if they had none.
    pub async fn leave(&self, request: RoomRequest) -> Result<bool, RoomError> {
        in_either!(self, room => room.leave(request))
    }

    /// Ends the slot of someone who has bought, unless it was given after `bought_at`: the news of a
    /// purchase may be old.
    pub async fn finish(
        &self,
        request: RoomRequest,
        bought_at: Timestamp,
    ) -> Result<bool, RoomError> {
        in_either!(self, room => room.finish(request, bought_at))
    }

    /// Whether this slot lives. Only then it counts as being seen: who asks with a dead one keeps
    /// neither a place nor another slot by it.
    pub async fn holds_slot(
        &self,
        request: RoomRequest,
        slot_id: Uuid,
        rules: &AdmissionRules,
    ) -> Result<bool, RoomError> {
        in_either!(self, room => room.holds_slot(request, slot_id, rules))
    }

    /// Lets in from the front of the line as many as the rules allow. Several processes may take
    /// turns as they like: together they let in no more.
    pub async fn admit(
        &self,
        event_id: Uuid,
        rules: &AdmissionRules,
        now: Timestamp,
    ) -> Result<Vec<Admission>, RoomError> {
        in_either!(self, room => room.admit(event_id, rules, now))
    }

    /// Drops at most `count_max` of those in line who were not seen since. Returns how many: fewer
    /// than `count_max` means that there are no more.
    ///
    /// Nobody is blamed for the room's own absence: if it was not swept for a while
    /// ([`SWEEP_GAP_MAX`], or half of how long one may be unseen if that is more), since it or all
    /// its processes were away or the clock has jumped, everybody counts as seen when the sweeps
    /// began again. A line begins as if it were swept then.
    pub async fn sweep(
        &self,
        event_id: Uuid,
        unseen_since: Timestamp,
        count_max: u32,
        now: Timestamp,
    ) -> Result<u32, RoomError> {
        in_either!(self, room => room.sweep(event_id, unseen_since, count_max, now))
    }

    /// Ends every place and slot of an event. Who waited in a large room may for a moment still be
    /// told elsewhere that they wait for too many events.
    pub async fn clear(&self, event_id: Uuid, now: Timestamp) -> Result<ClearedCounts, RoomError> {
        in_either!(self, room => room.clear(event_id, now))
    }

    pub async fn crowd(&self, event_id: Uuid, now: Timestamp) -> Result<Crowd, RoomError> {
        in_either!(self, room => room.crowd(event_id, now))
    }

    /// The events whose room has anybody in it.
    pub async fn occupied_events(&self) -> Result<Vec<Uuid>, RoomError> {
        in_either!(self, room => room.occupied_events())
    }

    /// Those who wait with an arrival's number up to `last_number`, in order of arrival.
    pub async fn entrants(&self, event_id: Uuid, last_number: i64) -> Result<Vec<Uuid>, RoomError> {
        in_either!(self, room => room.entrants(event_id, last_number))
    }

    /// Gives those who still wait with an arrival's number up to `last_number` their number from
    /// the draw, which is below zero. Who left and came again has a later one, and keeps it. Nobody
    /// must be let in before it has answered; then all numbers that were ever given are durable,
    /// also if `drawn` is empty because an earlier call that failed gave them. Once more changes
    /// nothing.
    pub async fn renumber(
        &self,
        event_id: Uuid,
        last_number: i64,
        drawn: &[(Uuid, i64)],
    ) -> Result<(), RoomError> {
        in_either!(self, room => room.renumber(event_id, last_number, drawn))
    }
}
