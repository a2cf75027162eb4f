//! A waiting room as one would tell it to somebody: a list of those who wait, and who is in.

use std::collections::BTreeMap;

use urr_kernel::{Timestamp, Uuid};
use urr_room::{
    AdmissionRules, AdmissionState, ClearedCounts, Crowd, LinePace, LinePosition, RoomError,
    SWEEP_GAP_MAX, Slot, StatusSnapshot, UserLocation, UserStatus,
};

use crate::fixture::World;

/// Why a check may be refused. If there are several reasons, any of them may be told.
#[derive(Debug)]
pub struct Refusal(pub Vec<RoomError>);

pub struct Plain {
    rooms: Vec<Room>,
}

#[derive(Default)]
struct Room {
    line: Vec<Waiter>,
    slots: BTreeMap<usize, Slot>,
    last_number: i64,
    admitted_total: u64,
    /// The seconds in which somebody came in, whether from the line or not.
    admitted: Vec<i64>,
    admitted_from_line: Vec<i64>,
    left: Vec<i64>,
    /// When the line was last swept, and since when without a gap.
    sweep: Option<(Timestamp, Timestamp)>,
}

#[derive(Clone, Copy)]
struct Waiter {
    number: i64,
    user: usize,
    snapshot: Timestamp,
}

impl Room {
    fn end_slots(&mut self, now: Timestamp) {
        self.slots.retain(|_, slot| slot.ends_at > now);
    }

    fn find(&self, user: usize) -> Option<usize> {
        self.line.iter().position(|waiter| waiter.user == user)
    }

    /// How many more may come in now.
    fn free(&self, rules: &AdmissionRules, now: Timestamp) -> usize {
        let second = self.admitted.iter().filter(|second| **second == now.as_second()).count();
        let by_rate = to_usize(rules.admitted_per_second_max).saturating_sub(second);
        let by_threshold = to_usize(rules.threshold).saturating_sub(self.slots.len());
        if rules.admission == AdmissionState::Open { by_rate.min(by_threshold) } else { 0 }
    }

    fn let_in(&mut self, user: usize, slot_id: Uuid, rules: &AdmissionRules, now: Timestamp) {
        let slot = Slot {
            id: slot_id,
            admitted_at: now,
            ends_at: now + rules.slot_ttl.min(rules.slot_max),
            last_end: now + rules.slot_max,
        };
        assert!(self.slots.insert(user, slot).is_none(), "the model lets nobody in twice");
        self.admitted_total += 1;
        self.admitted.push(now.as_second());
    }

    fn see(&mut self, user: usize, rules: &AdmissionRules, now: Timestamp) -> StatusSnapshot {
        let status = if let Some(slot) = self.slots.get_mut(&user) {
            slot.ends_at = (now + rules.slot_ttl).min(slot.last_end);
            UserStatus::Active(*slot)
        } else if let Some(at) = self.find(user) {
            self.line[at].snapshot = now;
            UserStatus::Waiting(LinePosition {
                number: self.line[at].number,
                position: to_u32(at + 1),
            })
        } else {
            UserStatus::Absent
        };
        let (waiting, active) = (to_u32(self.line.len()), to_u32(self.slots.len()));
        StatusSnapshot { status, waiting, active, is_just_admitted: false }
    }
}

impl Plain {
    pub fn new(occupied_events: usize) -> Plain {
        Plain { rooms: (0..occupied_events).map(|_| Room::default()).collect() }
    }

    pub fn check(
        &mut self,
        event: usize,
        user: usize,
        fresh: Uuid,
        world: &World,
    ) -> Result<StatusSnapshot, Refusal> {
        let (rules, now) = (&world.rules, world.now());
        let queues = self.rooms.iter().filter(|room| room.find(user).is_some()).count();
        let room = &mut self.rooms[event];
        room.end_slots(now);
        if room.slots.contains_key(&user) || room.find(user).is_some() {
            return Ok(room.see(user, rules, now));
        }
        if room.line.is_empty() && room.free(rules, now) > 0 {
            room.let_in(user, fresh, rules, now);
            return Ok(StatusSnapshot { is_just_admitted: true, ..room.see(user, rules, now) });
        }
        let mut reasons = Vec::new();
        if room.line.len() >= to_usize(rules.waiting_max) {
            reasons.push(RoomError::Full);
        }
        if queues >= to_usize(rules.queues_per_user_max) {
            reasons.push(RoomError::TooManyQueues);
        }
        if !reasons.is_empty() {
            return Err(Refusal(reasons));
        }
        if room.line.is_empty() {
            room.sweep = Some((now, now));
        }
        room.last_number += 1;
        room.line.push(Waiter { number: room.last_number, user, snapshot: now });
        Ok(room.see(user, rules, now))
    }

    pub fn poll(&mut self, event: usize, user: usize, world: &World) -> StatusSnapshot {
        self.rooms[event].end_slots(world.now());
        self.rooms[event].see(user, &world.rules, world.now())
    }

    pub fn locate(&mut self, event: usize, users: usize, now: Timestamp) -> Vec<UserLocation> {
        let room = &mut self.rooms[event];
        room.end_slots(now);
        let locate = |user| match room.find(user) {
            Some(at) => UserLocation::Waiting(LinePosition {
                number: room.line[at].number,
                position: to_u32(at + 1),
            }),
            None if room.slots.contains_key(&user) => UserLocation::Active,
            None => UserLocation::Absent,
        };
        (0..users).map(locate).collect()
    }

    pub fn leave(&mut self, event: usize, user: usize, now: Timestamp) -> bool {
        let room = &mut self.rooms[event];
        room.end_slots(now);
        if let Some(at) = room.find(user) {
            room.line.remove(at);
            room.left.push(now.as_second());
            return true;
        }
        room.slots.remove(&user).is_some()
    }

    pub fn finish(
        &mut self,
        event: usize,
        user: usize,
        bought_at: Timestamp,
        now: Timestamp,
    ) -> bool {
        let room = &mut self.rooms[event];
        room.end_slots(now);
        let is_older = room.slots.get(&user).is_some_and(|slot| slot.admitted_at <= bought_at);
        is_older && room.slots.remove(&user).is_some()
    }

    pub fn holds(&mut self, event: usize, user: usize, slot_id: Uuid, world: &World) -> bool {
        let room = &mut self.rooms[event];
        room.end_slots(world.now());
        let holds = room.slots.get(&user).is_some_and(|slot| slot.id == slot_id);
        if holds {
            room.see(user, &world.rules, world.now());
        }
        holds
    }

    /// The users who are admitted, with the ids of their slots if there are any.
    pub fn admit(&mut self, event: usize, slot_ids: &[Uuid], world: &World) -> Vec<usize> {
        let (rules, now) = (&world.rules, world.now());
        let room = &mut self.rooms[event];
        room.end_slots(now);
        let count = room.free(rules, now).min(room.line.len());
        let users: Vec<usize> = room.line.drain(..count).map(|waiter| waiter.user).collect();
        let slot_ids = slot_ids.iter().copied().chain(std::iter::repeat(Uuid::nil()));
        for (user, slot_id) in users.iter().zip(slot_ids) {
            room.let_in(*user, slot_id, rules, now);
            room.admitted_from_line.push(now.as_second());
        }
        users
    }

    pub fn sweep(&mut self, event: usize, unseen_since: Timestamp, now: Timestamp) -> u32 {
        let room = &mut self.rooms[event];
        let before = room.line.len();
        let (last, began) = room.sweep.unwrap_or((now, now));
        let is_gap = now.duration_since(last).unsigned_abs() > SWEEP_GAP_MAX;
        let began = if is_gap { now } else { began };
        room.sweep = Some((now, began));
        if began <= unseen_since {
            room.line.retain(|waiter| waiter.snapshot > unseen_since);
        }
        let dropped = before - room.line.len();
        room.left.extend(std::iter::repeat_n(now.as_second(), dropped));
        to_u32(dropped)
    }

    pub fn clear(&mut self, event: usize, now: Timestamp) -> ClearedCounts {
        let room = &mut self.rooms[event];
        room.end_slots(now);
        let cleared =
            ClearedCounts { waiting: to_u32(room.line.len()), active: to_u32(room.slots.len()) };
        room.line.clear();
        room.slots.clear();
        cleared
    }

    /// With every place among the marks.
    pub fn crowd(&mut self, event: usize, now: Timestamp) -> Crowd {
        let room = &mut self.rooms[event];
        room.end_slots(now);
        let pace = |seconds: &[i64]| -> Vec<u32> {
            let begin = now.as_second() - i64::try_from(LinePace::SECONDS).unwrap();
            (begin..now.as_second())
                .map(|second| to_u32(seconds.iter().filter(|other| **other == second).count()))
                .collect()
        };
        Crowd {
            waiting: to_u32(room.line.len()),
            active: to_u32(room.slots.len()),
            last_number: room.last_number,
            admitted_total: room.admitted_total,
            left_total: u64::try_from(room.left.len()).unwrap(),
            pace: LinePace {
                admitted: pace(&room.admitted_from_line),
                left: pace(&room.left),
                let_in: pace(&room.admitted),
                // An expired slot ends when it is noticed, which differs: `crowd.rs` has a case.
                ended: Vec::new(),
                in_use: 0,
            },
            marks: room
                .line
                .iter()
                .zip(1..)
                .map(|(waiter, position)| LinePosition { number: waiter.number, position })
                .collect(),
        }
    }

    pub fn entrants(&self, event: usize, last_number: i64) -> Vec<usize> {
        let line = self.rooms[event].line.iter();
        line.filter(|waiter| (1..=last_number).contains(&waiter.number))
            .map(|waiter| waiter.user)
            .collect()
    }

    pub fn renumber(&mut self, event: usize, last: i64, drawn: &[(usize, i64)]) {
        let line = &mut self.rooms[event].line;
        for waiter in line.iter_mut().filter(|waiter| (1..=last).contains(&waiter.number)) {
            if let Some((_, number)) = drawn.iter().find(|(user, _)| *user == waiter.user) {
                waiter.number = *number;
            }
        }
        line.sort_by_key(|waiter| (waiter.number, waiter.user));
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap()
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).unwrap()
}
