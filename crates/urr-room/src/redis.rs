//! Rooms in Redis, shared by all processes: sorted sets per event, and a script per operation.
//!
//! The keys of an event share a hash tag: `queue` (user → number), `active` (user → end of the
//! slot), `seen` (when users were last seen, in parts), `slots` (user → id and begin of the slot),
//! `room` (the last number, totals, the listing, the sweeps), `pace` (the last seconds) and
//! `room:log` ([`crate::slot_log`]). See also [`queue_limit`] and [`occupied_rooms`]. The numbers of an empty room stay for 90 days.
//!
//! An answer is as durable as Redis: with `appendonly yes` it survives a crash of Redis, with
//! `appendfsync always` that of the machine. Every script may run twice, as when a call times out
//! and is repeated: a check then reports the position that it made. Users who were admitted by a
//! call that did not answer find out at their next poll; their notices are lost.
//!
//! No script walks the whole line: each takes logarithmic time.

pub(crate) mod keys;
mod occupied_rooms;
mod queue_limit;
pub(crate) mod scripts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use urr_kernel::{IdSource, Timestamp, Uuid};
use urr_redis::{FromRedisValue, Redis, RedisError, Script, ToRedisArgs};

use self::keys::{RoomKeys, cleared_line, void_mark};
use self::queue_limit::QueueReservation;
use self::scripts::{
    ADMIT, CHECK, CLEAR, CROWD, ENTRANTS, FINISH, HOLDS_SLOT, LEAVE, LOCATE, POLL, READ_ROOM,
    READ_SLOT_LOG, RENUMBER, SWEEP, TAKE_CLEARED,
};
use super::{
    Admission, AdmissionRules, AdmissionState, ClearedCounts, Crowd, LinePace, LinePosition,
    MARKS_MAX, RoomError, RoomRequest, Slot, StatusSnapshot, UserLocation, UserStatus,
    sweep_gap_max_us,
};
use crate::slot_log::{RoomEnd, SlotChange, SlotLogEntry};

/// Which clock decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomTime {
    /// The clock of Redis, because those of the processes may differ. Polls note that a user was
    /// seen at most once a minute, and a sweep allows for that.
    Server,
    /// The clock of the caller, and every poll is noted: for tests with a manual clock.
    Caller,
}

/// Stands for the time of Redis.
pub(crate) const SERVER_TIME: i64 = -1;
/// A tenth of the time for which users may be unseen: most polls write nothing.
const SEEN_GRAIN: Duration = Duration::from_secs(60);
/// A check that joins takes two more steps, and concurrent calls may interfere.
const CHECK_ATTEMPTS_MAX: u32 = 8;
/// For how long a log of slots stays in Redis after its last entry.
pub(crate) const SLOT_LOG_SECONDS: u32 = 30 * 86_400;
/// How many users one script handles at most: a fraction of a millisecond.
const CHUNK: u32 = 500;
/// After a clearing, the reservations of so many users are released before the answer, the others
/// after it.
const CLEARED_AT_ONCE_MAX: usize = 1_000;

/// A handle on the rooms. Clones share the connection.
#[derive(Clone)]
pub struct RedisRooms {
    redis: Redis,
    ids: IdSource,
    time: RoomTime,
    /// Whether the last answer was an error that was logged.
    is_refused: Arc<AtomicBool>,
}

/// A script's answer: a kind, then values whose meaning depends on it.
type ScriptAnswer = (u8, i64, i64, Vec<u8>, u32, u32);

/// What a check needs to join the line.
#[derive(Clone, Copy, Default)]
struct JoinPreparation {
    listing: i64,
    reservation: Option<QueueReservation>,
}

impl RedisRooms {
    pub fn new(redis: Redis, ids: IdSource, time: RoomTime) -> RedisRooms {
        RedisRooms { redis, ids, time, is_refused: Arc::default() }
    }

    pub async fn check(
        &self,
        request: RoomRequest,
        rules: &AdmissionRules,
    ) -> Result<StatusSnapshot, RoomError> {
        let mut prepared = JoinPreparation::default();
        for _ in 0..CHECK_ATTEMPTS_MAX {
            let answer = self.try_check(&request, rules, prepared).await?;
            let outcome = match answer.0 {
                5 => {
                    self.prepare(&request, rules, &answer, &mut prepared).await?;
                    continue;
                }
                6 => {
                    let again = self.reserve(&request, rules.queues_per_user_max).await?;
                    prepared.reservation = Some(again);
                    continue;
                }
                4 => Err(RoomError::Full),
                _ => snapshot(&answer, rules),
            };
            let waits =
                matches!(outcome, Ok(StatusSnapshot { status: UserStatus::Waiting(_), .. }));
            if prepared.reservation.is_some() && !waits {
                self.give_back(request.event_id, request.user_id).await;
            }
            return outcome;
        }
        Err(RoomError::Unavailable)
    }

    async fn try_check(
        &self,
        request: &RoomRequest,
        rules: &AdmissionRules,
        prepared: JoinPreparation,
    ) -> Result<ScriptAnswer, RoomError> {
        let slot_id = self.ids.next_id();
        let arguments = (
            (self.time_of(request.now), request.user_id.as_bytes()),
            (micros(rules.slot_ttl), micros(rules.slot_max), self.seen_grain()),
            (
                rules.threshold,
                rules.admitted_per_second_max,
                rules.admission == AdmissionState::Open,
            ),
            (rules.waiting_max, slot_id.as_bytes()),
            (prepared.listing, prepared.reservation.map_or(String::new(), |at| at.to_string())),
        );
        let keys = RoomKeys::of(request.event_id);
        let mark = void_mark(request.event_id, request.user_id);
        self.run(&CHECK, &keys.all_and(&mark), arguments).await
    }

    /// Gets what a check needs to join the line.
    async fn prepare(
        &self,
        request: &RoomRequest,
        rules: &AdmissionRules,
        needs: &ScriptAnswer,
        prepared: &mut JoinPreparation,
    ) -> Result<(), RoomError> {
        let (listing, needs_reservation) = (needs.1, needs.2 == 1);
        if needs_reservation {
            let reservation = self.reserve(request, rules.queues_per_user_max).await?;
            prepared.reservation = Some(reservation);
        }
        if listing > 0 {
            self.list(request.event_id, listing).await?;
            prepared.listing = listing;
        }
        Ok(())
    }

    pub async fn poll(
        &self,
        request: RoomRequest,
        rules: &AdmissionRules,
    ) -> Result<StatusSnapshot, RoomError> {
        let arguments = (
            (self.time_of(request.now), request.user_id.as_bytes()),
            (micros(rules.slot_ttl), micros(rules.slot_max), self.seen_grain()),
        );
        let keys = RoomKeys::of(request.event_id);
        let answer: ScriptAnswer = self.run(&POLL, &keys.all(), arguments).await?;
        snapshot(&answer, rules)
    }

    pub async fn locate(
        &self,
        event_id: Uuid,
        users: &[Uuid],
        now: Timestamp,
    ) -> Result<Vec<UserLocation>, RoomError> {
        let keys = RoomKeys::of(event_id);
        let mut all = Vec::with_capacity(users.len());
        for some in users.chunks(CHUNK as usize) {
            let ids: Vec<&[u8]> = some.iter().map(|user| &user.as_bytes()[..]).collect();
            let found: Vec<i64> = self.run(&LOCATE, &keys.all(), (self.time_of(now), ids)).await?;
            for one in found.as_chunks::<3>().0 {
                all.push(location(*one)?);
            }
        }
        // An answer of another length is invalid.
        if all.len() == users.len() { Ok(all) } else { Err(RoomError::Unavailable) }
    }

    pub async fn leave(&self, request: RoomRequest) -> Result<bool, RoomError> {
        let arguments = (self.time_of(request.now), request.user_id.as_bytes());
        let keys = RoomKeys::of(request.event_id);
        let left: u8 = self.run(&LEAVE, &keys.all(), arguments).await?;
        if left == 1 {
            self.give_back(request.event_id, request.user_id).await;
        }
        Ok(left > 0)
    }

    pub async fn finish(
        &self,
        request: RoomRequest,
        bought_at: Timestamp,
    ) -> Result<bool, RoomError> {
        let bought_at = bought_at.as_microsecond();
        let arguments = (self.time_of(request.now), request.user_id.as_bytes(), bought_at);
        self.run(&FINISH, &RoomKeys::of(request.event_id).all(), arguments).await
    }

    pub async fn holds_slot(
        &self,
        request: RoomRequest,
        slot_id: Uuid,
        rules: &AdmissionRules,
    ) -> Result<bool, RoomError> {
        let arguments = (
            (self.time_of(request.now), request.user_id.as_bytes()),
            (micros(rules.slot_ttl), micros(rules.slot_max), self.seen_grain()),
            slot_id.as_bytes(),
        );
        self.run(&HOLDS_SLOT, &RoomKeys::of(request.event_id).all(), arguments).await
    }

    pub async fn admit(
        &self,
        event_id: Uuid,
        rules: &AdmissionRules,
        now: Timestamp,
    ) -> Result<Vec<Admission>, RoomError> {
        // Slots expire also while nobody is admitted.
        let threshold = if rules.admission == AdmissionState::Open { rules.threshold } else { 0 };
        let keys = RoomKeys::of(event_id);
        let mut admitted = Vec::new();
        loop {
            let count_max = threshold.min(rules.admitted_per_second_max).min(CHUNK);
            let slots: Vec<Uuid> = (0..count_max).map(|_| self.ids.next_id()).collect();
            let slot_bytes: Vec<u8> = slots.iter().flat_map(|slot| *slot.as_bytes()).collect();
            let arguments = (
                (self.time_of(now), micros(rules.slot_ttl), micros(rules.slot_max)),
                (threshold, rules.admitted_per_second_max, slot_bytes),
            );
            // If a Cluster client sends it twice, other users are admitted with the same slot ids.
            // Ids may repeat between users, never for one user, and a slot is always checked with
            // its owner.
            let answer = self.run(&ADMIT, &keys.all(), arguments).await;
            let answer = answer.and_then(|(time, users): (i64, _)| Ok((time, uuids(users)?)));
            let (admitted_at, users) = match answer {
                Ok(answer) => answer,
                // The users of earlier chunks were admitted.
                Err(_) if !admitted.is_empty() => return Ok(admitted),
                Err(error) => return Err(error),
            };
            let of_chunk = users.iter().zip(&slots);
            let of_chunk =
                of_chunk.map(|(user, slot)| Admission { user_id: *user, slot_id: *slot });
            admitted.extend(of_chunk);
            self.release(event_id, &users, admitted_at).await;
            if users.len() < slots.len() || users.is_empty() {
                return Ok(admitted);
            }
        }
    }

    pub async fn sweep(
        &self,
        event_id: Uuid,
        unseen_since: Timestamp,
        count_max: u32,
        now: Timestamp,
    ) -> Result<u32, RoomError> {
        // As a duration, because the caller's clock does not count.
        let unseen_for = now.as_microsecond() - unseen_since.as_microsecond() + self.seen_grain();
        let keys = RoomKeys::of(event_id);
        let mut count = 0;
        while count < count_max {
            let chunk = (count_max - count).min(CHUNK);
            let arguments =
                (self.time_of(now), unseen_for, chunk, CHUNK, sweep_gap_max_us(unseen_for));
            let (is_more, dropped_at, users): (bool, i64, _) =
                self.run(&SWEEP, &keys.all(), arguments).await?;
            let users = uuids(users)?;
            self.release(event_id, &users, dropped_at).await;
            let dropped = u32::try_from(users.len()).unwrap_or(chunk);
            count += dropped;
            if dropped < chunk && !is_more {
                break;
            }
        }
        Ok(count)
    }

    pub async fn clear(&self, event_id: Uuid, now: Timestamp) -> Result<ClearedCounts, RoomError> {
        self.clear_once(event_id, self.ids.next_id(), now).await
    }

    /// Ends every position and slot of an event. Repeating the same clearing ends nothing and
    /// answers as before.
    pub async fn clear_once(
        &self,
        event_id: Uuid,
        clearing: Uuid,
        now: Timestamp,
    ) -> Result<ClearedCounts, RoomError> {
        let line = cleared_line(event_id, clearing);
        let keys = RoomKeys::of(event_id);
        let (waiting, active, cleared_at) =
            self.run(&CLEAR, &keys.all_and(&line), self.time_of(now)).await?;
        let mut released = 0;
        while released < CLEARED_AT_ONCE_MAX {
            let count = self.release_cleared(event_id, &line, cleared_at).await;
            if count == 0 {
                return Ok(ClearedCounts { waiting, active });
            }
            released += count;
        }
        let rooms = self.clone();
        tokio::spawn(async move {
            while rooms.release_cleared(event_id, &line, cleared_at).await > 0 {}
        });
        Ok(ClearedCounts { waiting, active })
    }

    /// Releases the reservations of some users of a cleared line. Returns how many.
    async fn release_cleared(&self, event_id: Uuid, line: &str, cleared_at: i64) -> usize {
        let taken = self.run(&TAKE_CLEARED, &[line], CHUNK).await.and_then(uuids);
        let users = taken.unwrap_or_default();
        self.release(event_id, &users, cleared_at).await;
        users.len()
    }

    pub async fn crowd(&self, event_id: Uuid, now: Timestamp) -> Result<Crowd, RoomError> {
        type CrowdFields = (u32, u32, i64, u64, u64, i64, i64, Vec<String>, Vec<i64>);
        let keys = RoomKeys::of(event_id);
        let arguments = (self.time_of(now), MARKS_MAX);
        let figures: CrowdFields = self.run(&CROWD, &keys.all(), arguments).await?;
        let (waiting, active, last_number, admitted_total, left_total, listing, second, ..) =
            figures;
        if listing % 2 == 1 {
            // The node of the set may have lost it.
            self.list(event_id, listing).await?;
        }
        let marks = figures.8.as_chunks::<2>().0.iter().map(|[number, position]| LinePosition {
            number: *number,
            position: u32::try_from(*position).unwrap_or(u32::MAX),
        });
        Ok(Crowd {
            waiting,
            active,
            last_number,
            admitted_total,
            left_total,
            pace: pace(&figures.7, second, active),
            marks: marks.collect(),
        })
    }

    pub async fn entrants(&self, event_id: Uuid, last_number: i64) -> Result<Vec<Uuid>, RoomError> {
        let keys = RoomKeys::of(event_id);
        let (mut entrants, mut after) = (Vec::new(), 0.0_f64);
        loop {
            let arguments = (after, last_number, CHUNK);
            let chunk: Vec<(Vec<u8>, f64)> =
                self.run(&ENTRANTS, &[keys.queue()], arguments).await?;
            let Some((_, number)) = chunk.last() else { return Ok(entrants) };
            after = *number;
            entrants.extend(uuids(chunk.into_iter().map(|(user, _)| user).collect())?);
        }
    }

    pub async fn renumber(
        &self,
        event_id: Uuid,
        last_number: i64,
        drawn: &[(Uuid, i64)],
    ) -> Result<(), RoomError> {
        let keys = RoomKeys::of(event_id);
        for chunk in drawn.chunks(CHUNK as usize) {
            let arguments: Vec<(i64, &[u8])> =
                chunk.iter().map(|(user, number)| (*number, &user.as_bytes()[..])).collect();
            self.run::<()>(&RENUMBER, &[keys.queue()], (last_number, arguments)).await?;
        }
        Ok(())
    }

    fn time_of(&self, now: Timestamp) -> i64 {
        match self.time {
            RoomTime::Server => SERVER_TIME,
            RoomTime::Caller => now.as_microsecond().max(0),
        }
    }

    fn seen_grain(&self) -> i64 {
        match self.time {
            RoomTime::Server => micros(SEEN_GRAIN),
            RoomTime::Caller => 0,
        }
    }

    async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: impl ToRedisArgs,
    ) -> Result<T, RoomError> {
        match self.redis.run(script, keys, arguments).await {
            Ok(answer) => {
                self.is_refused.store(false, Ordering::Relaxed);
                Ok(answer)
            }
            // An unreachable Redis is logged by its circuit breaker.
            Err(RedisError::Unavailable | RedisError::Timeout) => Err(RoomError::Unavailable),
            Err(RedisError::Rejected(error)) => {
                if !self.is_refused.swap(true, Ordering::Relaxed) {
                    tracing::error!(error, "Redis rejects a request of the waiting rooms");
                }
                Err(RoomError::Unavailable)
            }
        }
    }
}

/// Some entries of the log of slots of an event, from an index on.
pub(crate) async fn read_slot_log(
    redis: &Redis,
    event_id: Uuid,
    from: i64,
    count: i64,
) -> Result<Vec<SlotLogEntry>, RedisError> {
    let key = RoomKeys::of(event_id).slot_log();
    let raw: Vec<Vec<u8>> =
        redis.run(&READ_SLOT_LOG, &[key.as_str()], (from, from + count - 1)).await?;
    let parsed = (from + 1..).zip(&raw).map(|(entry, raw)| {
        parse_slot_log(entry, raw)
            .ok_or_else(|| RedisError::Rejected(format!("entry {entry} of {key} cannot be read")))
    });
    parsed.collect()
}

/// An entry as `slot_log.lua` writes it.
fn parse_slot_log(entry: i64, raw: &[u8]) -> Option<SlotLogEntry> {
    let (letter, rest) = raw.split_first()?;
    let (user_id, rest) = match letter {
        b'C' => (None, rest),
        _ => {
            let (user, rest) = rest.split_at_checked(16)?;
            (Some(Uuid::from_slice(user).ok()?), rest)
        }
    };
    let words: Vec<&str> = std::str::from_utf8(rest).ok()?.split(' ').collect();
    let at = Timestamp::from_microsecond(words.first()?.parse().ok()?).ok()?;
    let change = match letter {
        b'A' => SlotChange::Admitted {
            number: match *words.get(1)? {
                "-" => None,
                number => Some(number.parse().ok()?),
            },
            last_number: words.get(2)?.parse().ok()?,
            inside_max: words.get(3)?.parse().ok()?,
        },
        b'E' => SlotChange::Ended,
        _ => SlotChange::Cleared,
    };
    Some(SlotLogEntry { entry, user_id, at, change })
}

/// An entry as `slot_log.lua` writes it.
pub(crate) fn slot_log_bytes(logged: &SlotLogEntry) -> Vec<u8> {
    let at = logged.at.as_microsecond();
    let (letter, rest) = match logged.change {
        SlotChange::Admitted { number, last_number, inside_max } => {
            let number = number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            (b'A', format!("{at} {number} {last_number} {inside_max}"))
        }
        SlotChange::Ended => (b'E', at.to_string()),
        SlotChange::Cleared => (b'C', at.to_string()),
    };
    let user = logged.user_id.filter(|_| letter != b'C');
    let mut bytes = vec![letter];
    bytes.extend(user.iter().flat_map(|user| *user.as_bytes()));
    bytes.extend(rest.into_bytes());
    bytes
}

/// The room of an event as it is.
pub(crate) async fn read_room(redis: &Redis, event_id: Uuid) -> Result<RoomEnd, RedisError> {
    let keys = RoomKeys::of(event_id);
    let [queue, active, _, _, room, _] = keys.all();
    let (inside, twice, first, _): (Vec<Vec<u8>>, Vec<Vec<u8>>, String, u64) =
        redis.run(&READ_ROOM, &[queue, active, room], 0).await?;
    let unreadable = |_| RedisError::Rejected("a user's id cannot be read".to_owned());
    Ok(RoomEnd {
        inside: uuids(inside).map_err(unreadable)?,
        twice: uuids(twice).map_err(unreadable)?,
        first_number: first.parse().ok(),
        // The log may have expired before the room's count.
        admitted: None,
        last_entry: None,
    })
}

fn snapshot(answer: &ScriptAnswer, rules: &AdmissionRules) -> Result<StatusSnapshot, RoomError> {
    let (what, first, second, slot_id, waiting, active) = answer;
    let status = match what {
        0 => UserStatus::Absent,
        1 => UserStatus::Waiting(LinePosition {
            number: *first,
            position: u32::try_from(*second).map_err(|_| RoomError::Unavailable)?,
        }),
        _ => {
            let admitted_at = time(*first)?;
            UserStatus::Active(Slot {
                id: Uuid::from_slice(slot_id).map_err(|_| RoomError::Unavailable)?,
                admitted_at,
                ends_at: time(*second)?,
                last_end: admitted_at + rules.slot_max,
            })
        }
    };
    Ok(StatusSnapshot { status, waiting: *waiting, active: *active, is_just_admitted: *what == 3 })
}

/// The last whole seconds of the ring in `flow_counters.lua`. `active` is how many slots are in use
/// in the present second.
fn pace(ring: &[String], present: i64, active: u32) -> LinePace {
    // One more, for the present second.
    let none = || vec![0_u32; LinePace::SECONDS + 1];
    let (mut admitted, mut left, mut let_in, mut ended) = (none(), none(), none(), none());
    for entry in ring {
        let fields: Vec<i64> = entry.split(' ').filter_map(|field| field.parse().ok()).collect();
        let Some((second, counts)) = fields.split_first() else { continue };
        let ago = usize::try_from(present - second).unwrap_or(usize::MAX);
        let Some(at) = LinePace::SECONDS.checked_sub(ago) else { continue };
        let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        match *counts {
            [from_line, from_line_gone, all] => {
                admitted[at] = count(from_line);
                left[at] = count(from_line_gone);
                let_in[at] = count(all);
            }
            [ends] => ended[at] = count(ends),
            _ => {}
        }
    }
    let now = |counts: &mut Vec<u32>| counts.pop().unwrap_or(0);
    now(&mut admitted);
    now(&mut left);
    let (let_in_now, ended_now) = (now(&mut let_in), now(&mut ended));
    let in_use = active.saturating_add(ended_now).saturating_sub(let_in_now);
    LinePace { admitted, left, let_in, ended, in_use }
}

fn uuids(raw: Vec<Vec<u8>>) -> Result<Vec<Uuid>, RoomError> {
    let parsed: Result<Vec<_>, _> = raw.iter().map(|bytes| Uuid::from_slice(bytes)).collect();
    parsed.map_err(|_| RoomError::Unavailable)
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn time(micros: i64) -> Result<Timestamp, RoomError> {
    Timestamp::from_microsecond(micros).map_err(|_| RoomError::Unavailable)
}

fn location([what, number, position]: [i64; 3]) -> Result<UserLocation, RoomError> {
    Ok(match what {
        0 => UserLocation::Absent,
        1 => {
            let position = u32::try_from(position).map_err(|_| RoomError::Unavailable)?;
            UserLocation::Waiting(LinePosition { number, position })
        }
        _ => UserLocation::Active,
    })
}
