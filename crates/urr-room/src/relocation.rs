//! Carries the rooms of a journal into Redis: the lines with their numbers, the slots, the counters and
//! the log of slots.
//!
//! Rooms are listed as occupied when everything is there, and a mark says that a move is under way, so
//! one that was interrupted can be repeated. Everybody counts as seen at the moment of the move, as
//! after a restart.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use urr_kernel::{Timestamp, Uuid};
use urr_redis::{FromRedisValue, Redis, RedisError, ToRedisArgs};
use urr_storage::{DbResult, Tx};

use crate::memory::journal::{RoomTotals, position_list, room_list, slot_list, slot_log_list};
use crate::redis::keys::{ROOMS_IN_USE, RoomKeys, user_hash};
use crate::redis::scripts::{LIST, RESERVE, RESTORE_LINE, RESTORE_ROOM, RESTORE_SLOTS};
use crate::redis::{SERVER_TIME, SLOT_LOG_SECONDS, slot_log_bytes};
use crate::slot_log::{SlotChange, SlotLogEntry};

/// Set while a move is under way: which one.
const MOVE_UNDER_WAY: &str = "queue:move-under-way";
/// How many users one script handles at most.
const CHUNK: usize = 500;
const CALLS_AT_ONCE: usize = 64;
/// Older than every number that was ever given, and a number that Redis can hold.
const BEFORE_ALL_NUMBERS: i64 = -(1 << 53);
/// A listed room has an odd number.
const FIRST_LISTING: i64 = 1;

/// For how long slots last.
#[derive(Clone, Copy, Debug)]
pub struct SlotTimes {
    pub slot_ttl: Duration,
    pub slot_max: Duration,
}

/// All rooms of a journal.
#[derive(Clone, Debug, Default)]
pub struct StoredRooms {
    rooms: Vec<StoredRoom>,
}

#[derive(Clone, Debug)]
struct StoredRoom {
    totals: RoomTotals,
    /// User and number, the first in line first.
    line: Vec<(Uuid, i64)>,
    /// User, slot, admission.
    slots: Vec<(Uuid, Uuid, Timestamp)>,
    log: Vec<SlotLogEntry>,
}

#[derive(Debug, thiserror::Error)]
pub enum RoomRelocationError {
    #[error("Redis has waiting rooms in use already; use an empty one")]
    RoomsInUse,
    #[error("the room of event {0} is not in Redis as it is in the journal")]
    Different(Uuid),
    #[error(transparent)]
    Redis(#[from] RedisError),
}

impl StoredRooms {
    /// Reads a journal, in the tables of [`crate::JOURNAL`].
    pub fn read(tx: &mut Tx<'_>) -> DbResult<StoredRooms> {
        let mut rooms = Vec::new();
        for totals in room_list(tx)? {
            let slots = slot_list(tx, totals.room)?;
            let log = begin_log(read_log(tx, totals.event_id)?, &slots);
            rooms.push(StoredRoom { totals, line: read_line(tx, totals.room)?, slots, log });
        }
        rooms.sort_by_key(|room| room.totals.event_id);
        Ok(StoredRooms { rooms })
    }

    /// How many rooms there are, and how many users wait and have slots in all of them.
    pub fn counts(&self) -> [usize; 3] {
        let waiting = self.rooms.iter().map(|room| room.line.len()).sum();
        let active = self.rooms.iter().map(|room| room.slots.len()).sum();
        [self.rooms.len(), waiting, active]
    }

    /// Whether nobody is in any room of Redis, except by an earlier attempt of this move.
    pub async fn require_unused(&self, redis: &Redis) -> Result<(), RoomRelocationError> {
        let known: Option<String> = redis.run(&LIST, &[MOVE_UNDER_WAY], "GET").await?;
        if known == Some(self.fingerprint()) {
            return Ok(());
        }
        let in_use: Vec<String> = redis.run(&LIST, &[ROOMS_IN_USE], "SMEMBERS").await?;
        if in_use.is_empty() { Ok(()) } else { Err(RoomRelocationError::RoomsInUse) }
    }

    /// Writes all rooms, and reads them again. Repeating it changes nothing.
    pub async fn write(&self, redis: &Redis, times: SlotTimes) -> Result<(), RoomRelocationError> {
        self.require_unused(redis).await?;
        let () = redis.run(&LIST, &[MOVE_UNDER_WAY], ("SET", self.fingerprint())).await?;
        for room in &self.rooms {
            room.write(redis, times).await?;
            room.compare(redis).await?;
        }
        for room in self.rooms.iter().filter(|room| room.is_occupied()) {
            let member = format!("{}:{FIRST_LISTING}", room.totals.event_id);
            let () = redis.run(&LIST, &[ROOMS_IN_USE], ("SADD", member)).await?;
        }
        Ok(())
    }

    /// The move is over: it cannot be repeated.
    pub async fn finish(redis: &Redis) -> Result<(), RedisError> {
        redis.run(&LIST, &[MOVE_UNDER_WAY], "DEL").await
    }

    fn fingerprint(&self) -> String {
        let mut hasher = DefaultHasher::new();
        for StoredRoom { totals, line, slots, .. } in &self.rooms {
            (totals.event_id, totals.last_number, line, slots).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}

impl StoredRoom {
    fn is_occupied(&self) -> bool {
        !self.line.is_empty() || !self.slots.is_empty()
    }

    async fn write(&self, redis: &Redis, times: SlotTimes) -> Result<(), RedisError> {
        let event_id = self.totals.event_id;
        let keys = RoomKeys::of(event_id);
        // The clock of Redis counts, as for all processes that use it.
        let now = SERVER_TIME;
        let RoomTotals { last_number, admitted, left, .. } = self.totals;
        let listing = if self.is_occupied() { FIRST_LISTING } else { 0 };
        let () = redis
            .run(&RESTORE_ROOM, &keys.all(), (now, last_number, admitted, left, listing))
            .await?;
        for chunk in self.line.chunks(CHUNK) {
            let line: Vec<(i64, &[u8])> =
                chunk.iter().map(|(user, number)| (*number, &user.as_bytes()[..])).collect();
            let () = redis.run(&RESTORE_LINE, &keys.all(), (now, line)).await?;
        }
        for chunk in self.slots.chunks(CHUNK) {
            let slots: Vec<(&[u8], &[u8], i64)> = chunk
                .iter()
                .map(|(user, slot, at)| {
                    (&user.as_bytes()[..], &slot.as_bytes()[..], at.as_microsecond())
                })
                .collect();
            let arguments = (now, micros(times.slot_ttl), micros(times.slot_max), slots);
            let () = redis.run(&RESTORE_SLOTS, &keys.all(), arguments).await?;
        }
        for chunk in self.log.chunks(CHUNK) {
            let entries: Vec<Vec<u8>> = chunk.iter().map(slot_log_bytes).collect();
            let () = redis.run(&LIST, &[&keys.slot_log()], ("RPUSH", entries)).await?;
        }
        if !self.log.is_empty() {
            let kept_for = ("EXPIRE", SLOT_LOG_SECONDS);
            let () = redis.run(&LIST, &[&keys.slot_log()], kept_for).await?;
        }
        self.reserve(redis).await
    }

    /// Those who wait may wait for a few other events only.
    async fn reserve(&self, redis: &Redis) -> Result<(), RedisError> {
        let event_id = self.totals.event_id;
        let reserve = |(user, _): (Uuid, i64)| async move {
            let arguments = (user.as_bytes(), event_id.as_bytes(), u32::MAX);
            let reserved: (bool, Vec<u8>) =
                redis.run(&RESERVE, &[&user_hash(user)], arguments).await?;
            assert!(reserved.0, "there is no limit here");
            Ok(())
        };
        let calls = stream::iter(self.line.iter().copied().map(reserve));
        calls.buffer_unordered(CALLS_AT_ONCE).try_collect().await
    }

    async fn compare(&self, redis: &Redis) -> Result<(), RoomRelocationError> {
        let keys = RoomKeys::of(self.totals.event_id);
        let [queue, _, _, slots, _, _] = keys.all();
        let different = || RoomRelocationError::Different(self.totals.event_id);
        let mut found: Vec<(Uuid, i64)> = Vec::new();
        loop {
            let range = ("ZRANGE", found.len(), found.len() + CHUNK - 1, "WITHSCORES");
            let page: Vec<(Vec<u8>, f64)> = ask(redis, queue, range).await?;
            if page.is_empty() {
                break;
            }
            for (user, number) in page {
                let user = Uuid::from_slice(&user).map_err(|_| different())?;
                found.push((user, whole(number).ok_or_else(different)?));
            }
        }
        let slot_count: usize = ask(redis, slots, "HLEN").await?;
        let log_count: usize = ask(redis, &keys.slot_log(), "LLEN").await?;
        let is_same =
            found == self.line && slot_count == self.slots.len() && log_count == self.log.len();
        if is_same { Ok(()) } else { Err(different()) }
    }
}

async fn ask<T: FromRedisValue>(
    redis: &Redis,
    key: &str,
    command: impl ToRedisArgs,
) -> Result<T, RedisError> {
    redis.run(&LIST, &[key], command).await
}

/// A number of the line, which Redis tells as a double.
#[expect(clippy::cast_possible_truncation, reason = "doubles hold numbers below 2^53 exactly")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0).then_some(number as i64)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).expect("slots end within centuries")
}

fn read_line(tx: &mut Tx<'_>, room: i64) -> DbResult<Vec<(Uuid, i64)>> {
    let mut line = Vec::new();
    let mut last = i64::MIN;
    loop {
        let page = position_list(tx, room, last)?;
        let Some(end) = page.last() else { break };
        last = end.arrival;
        line.extend(page.iter().map(|kept| (kept.user_id, kept.drawn.unwrap_or(kept.arrival))));
    }
    // Redis orders equal numbers by the user; there are none.
    line.sort_unstable_by_key(|(_, number)| *number);
    Ok(line)
}

fn read_log(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<SlotLogEntry>> {
    let mut log: Vec<SlotLogEntry> = Vec::new();
    loop {
        let after = log.last().map_or(0, |last| last.entry);
        let page = slot_log_list(tx, event_id, after)?;
        if page.is_empty() {
            return Ok(log);
        }
        log.extend(page);
    }
}

/// In Redis a log begins with its first entry. One whose beginning was deleted begins anew, with the
/// admissions of those who are inside.
fn begin_log(log: Vec<SlotLogEntry>, slots: &[(Uuid, Uuid, Timestamp)]) -> Vec<SlotLogEntry> {
    if log.first().is_some_and(|first| first.entry == 1) {
        return log;
    }
    let inside_max = u32::try_from(slots.len()).unwrap_or(u32::MAX);
    let change = SlotChange::Admitted { number: None, last_number: BEFORE_ALL_NUMBERS, inside_max };
    let admitted = (1..).zip(slots).map(|(entry, (user, _, at))| SlotLogEntry {
        entry,
        user_id: Some(*user),
        at: *at,
        change,
    });
    admitted.collect()
}
