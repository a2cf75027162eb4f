//! Rooms in Redis, shared by all processes: sorted sets per event, and a script per operation.
//!
//! Of each event, under its hash tag: `queue` (user → number), `active` (user → end of the slot),
//! `snapshot` (when those who wait were last seen, in parts), `slots` (user → id and begin of the slot),
//! `room` (the newest number, totals, the listing, when it was swept) and `pace` (the last seconds).
//! Beside them: [`queue_limit`] and [`listing`]. Of a room that is empty its numbers stay, for 90 days.
//!
//! An answer is as durable as Redis is: with `appendonly yes` it survives the end of Redis, with
//! `appendfsync always` that of the machine. Every script may run twice, as it does when a call times
//! out and is repeated: a check reports the place it made. Who was let in by an `admit` that did not
//! answer is in, and finds out at the next look; nobody is told of them (at most once).
//!
//! No script walks the crowd: what it does grows with the logarithm of how many wait.

mod keys;
mod locate;
mod occupied_rooms;
mod queue_limit;
mod scripts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use urr_kernel::{IdSource, Timestamp, Uuid};
use urr_redis::{FromRedisValue, Redis, RedisError, Script, ToRedisArgs};

use self::keys::{RoomKeys, cleared_line, void_mark};
use self::queue_limit::QueueReservation;
use self::scripts::{
    ADMIT, CHECK, CLEAR, CROWD, ENTRANTS, FINISH, HOLDS_SLOT, LEAVE, POLL, RENUMBER, SWEEP,
    TAKE_CLEARED,
};
use super::{
    Admission, AdmissionRules, AdmissionState, ClearedCounts, Crowd, LinePace, LinePosition,
    MARKS_MAX, RoomError, RoomRequest, Slot, StatusSnapshot, UserStatus, sweep_gap_max_us,
};

/// Whose clock decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomTime {
    /// That of Redis: the clocks of the processes may differ. Polls write down that someone was seen
    /// once a minute at most, and a sweep lets them stay that much longer.
    Server,
    /// That of the caller, and every poll is written down: for tests with a clock of their own.
    Caller,
}

/// In place of a time: that of Redis.
const SERVER_TIME: i64 = -1;
/// A tenth of how long people may be unseen: most polls then write nothing.
const SEEN_GRAIN: Duration = Duration::from_secs(60);
/// A check that lines someone up takes two steps more; others may interfere now and then.
const CHECK_ATTEMPTS_MAX: u32 = 8;
/// How many people one script deals with at most: a fraction of a millisecond.
const CHUNK: u32 = 500;
/// So many who were cleared are taken out of their queues before the answer, the others after it.
const CLEARED_AT_ONCE_MAX: usize = 1_000;

/// A handle on the rooms. Clones share the connection.
#[derive(Clone)]
pub struct RedisRooms {
    redis: Redis,
    ids: IdSource,
    time: RoomTime,
    /// Whether the last answer was a refusal, which the log was told of.
    is_refused: Arc<AtomicBool>,
}

/// What a script answers about someone: what it is, then what that means.
type ScriptAnswer = (u8, i64, i64, Vec<u8>, u32, u32);

/// What someone brings along to be lined up.
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

    /// Gets what a check needs to line someone up.
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
        // Also in front of a shut door slots end.
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
            // Sent twice by a Cluster's client, it lets in others with the same ids: these may
            // repeat between people, never for one person, and nobody asks for a slot without its
            // owner.
            let answer = self.run(&ADMIT, &keys.all(), arguments).await;
            let answer = answer.and_then(|(time, users): (i64, _)| Ok((time, uuids(users)?)));
            let (admitted_at, users) = match answer {
                Ok(answer) => answer,
                // Those who were let in before are to be told.
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
        // As a length: the caller's clock does not count.
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

    /// Ends every place and slot of an event. The same clearing once more ends nothing, and tells
    /// what it ended.
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

    /// Takes some of a line that was cleared out of their queues. Returns how many.
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
            // The set of rooms may have been on a node that has lost it.
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
            pace: pace(&figures.7, second),
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
            // What is silent or down is told by the circuit.
            Err(RedisError::Unavailable | RedisError::Timeout) => Err(RoomError::Unavailable),
            Err(RedisError::Rejected(error)) => {
                if !self.is_refused.swap(true, Ordering::Relaxed) {
                    tracing::error!(error, "Redis refuses what the waiting rooms ask");
                }
                Err(RoomError::Unavailable)
            }
        }
    }
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

/// The last whole seconds of the ring that `pace.lua` keeps.
fn pace(ring: &[String], present: i64) -> LinePace {
    let mut pace =
        LinePace { admitted: vec![0; LinePace::SECONDS], left: vec![0; LinePace::SECONDS] };
    for entry in ring {
        let fields: Vec<i64> = entry.split(' ').filter_map(|field| field.parse().ok()).collect();
        let [second, admitted, left, _] = fields[..] else { continue };
        let ago = usize::try_from(present - second).unwrap_or(0);
        if (1..=LinePace::SECONDS).contains(&ago) {
            pace.admitted[LinePace::SECONDS - ago] = u32::try_from(admitted).unwrap_or(u32::MAX);
            pace.left[LinePace::SECONDS - ago] = u32::try_from(left).unwrap_or(u32::MAX);
        }
    }
    pace
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
