//! One event's room, under its lock: what is decided, without waiting and without a clock.
//!
//! Every operation first ends what is over. Changes are noted in `changes` and handed to the
//! journal before the lock is given back ([`Room::hand_over`]).

mod draw;

pub use draw::Drawn;

use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use urr_kernel::{IdSource, Timestamp, Uuid};

use super::journal::{Journal, Record, Totals};
use super::line::{At, Entry, Key, Line};
use super::marks::mark_positions;
use super::pace::{KEPT, Recent};
use super::queues::Queues;
use super::slots::Slots;
use super::unwritten::Unwritten;
use crate::{
    Admitted, Ask, Cleared, Crowd, Door, Place, RoomError, Rules, Seen, Standing, Whereabouts,
    sweep_gap_max_us,
};

/// Callers on several threads may come in with their times in another order. A clock that is
/// further back was set back.
const DISORDER_MAX_US: i64 = 5_000_000;
const SECOND_US: i64 = 1_000_000;

pub struct Room {
    event_id: Uuid,
    /// In the journal. Another one after clearing.
    number: i64,
    line: Line,
    slots: Slots,
    recent: Recent,
    last_number: i64,
    admitted_total: u64,
    left_total: u64,
    /// Counts the slots that were given since the start.
    admissions: u64,
    now_us: i64,
    sweeping: Sweeping,
    /// When those who were in before the start count as last seen, until the rules are known.
    restored_at_us: Option<i64>,
    changes: Vec<Record>,
    unwritten: Unwritten,
    drawing: Drawing,
    hasher: DefaultHashBuilder,
}

/// Of a draw that is under way.
#[derive(Default)]
struct Drawing {
    /// One at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Who was seen or has gone since it began.
    touched: Option<Vec<Uuid>>,
}

/// When the line was looked through.
#[derive(Clone, Copy)]
struct Sweeping {
    last_us: i64,
    /// Since then without a gap.
    began_us: i64,
}

/// What a person is told, and by what they may rely on it.
#[derive(Clone, Copy)]
pub struct Told {
    pub seen: Seen,
    pub basis: Basis,
}

/// The change that must be on disk before someone is told of it.
#[derive(Clone, Copy)]
pub enum Basis {
    Nothing,
    Arrival(i64),
    Admission(u64),
}

/// What a room needs of its surroundings to let someone in or line them up.
pub struct Surroundings<'a> {
    pub queues: &'a Queues,
    pub ids: &'a IdSource,
    /// Whether the journal takes changes.
    pub is_accepting: bool,
}

/// Those who were in a room before a restart.
pub struct Restored {
    pub totals: Totals,
    /// In order.
    pub entries: Vec<Entry>,
    pub slots: Vec<(Uuid, Uuid, Timestamp)>,
}

impl Room {
    /// A room that nobody is in.
    pub fn empty(totals: Totals, hasher: DefaultHashBuilder) -> Room {
        let restored = Restored { totals, entries: Vec::new(), slots: Vec::new() };
        Room::restore(restored, i64::MIN, hasher)
    }

    pub fn restore(restored: Restored, now_us: i64, hasher: DefaultHashBuilder) -> Room {
        let totals = restored.totals;
        let (mut slots, mut recent) = (Slots::new(hasher.clone()), Recent::new());
        let kept = i64::try_from(KEPT).expect("few");
        for (user_id, slot_id, admitted_at) in &restored.slots {
            let admitted_at_us = admitted_at.as_microsecond();
            slots.restore(*user_id, *slot_id, admitted_at_us);
            // A quick restart must not be a way around the rate.
            let ago = second(now_us) - second(admitted_at_us);
            if (0..kept).contains(&ago) {
                recent.count_let_in(second(admitted_at_us));
            }
        }
        Room {
            event_id: totals.event_id,
            number: totals.room,
            line: Line::of(restored.entries, hasher.clone()),
            slots,
            recent,
            last_number: totals.last_number,
            admitted_total: totals.admitted,
            left_total: totals.left,
            admissions: 0,
            now_us,
            sweeping: Sweeping { last_us: now_us, began_us: now_us },
            restored_at_us: (!restored.slots.is_empty()).then_some(now_us),
            changes: Vec::new(),
            unwritten: Unwritten::new(totals.last_number),
            drawing: Drawing::default(),
            hasher,
        }
    }

    pub fn check(
        &mut self,
        ask: Ask,
        rules: &Rules,
        around: &Surroundings<'_>,
    ) -> Result<Told, RoomError> {
        self.begin_by_rules(ask.now, rules);
        if let Some(told) = self.find(ask.user_id, rules) {
            return Ok(told);
        }
        if !around.is_accepting {
            return Err(RoomError::Unavailable);
        }
        if self.line.is_empty() && self.free(rules) > 0 {
            self.let_in(ask.user_id, around.ids, rules);
            let mut told = self.find(ask.user_id, rules).expect("they were just let in");
            told.seen.is_just_admitted = true;
            return Ok(told);
        }
        self.line_up(ask.user_id, rules, around.queues)?;
        Ok(self.find(ask.user_id, rules).expect("they were just lined up"))
    }

    pub fn look(&mut self, ask: Ask, rules: &Rules) -> Told {
        self.begin_by_rules(ask.now, rules);
        let absent = Told { seen: self.seen(Standing::Absent), basis: Basis::Nothing };
        self.find(ask.user_id, rules).unwrap_or(absent)
    }

    /// Where these people stand. They are not seen by it.
    pub fn locate(&mut self, users: &[Uuid], now: Timestamp) -> Vec<Whereabouts> {
        self.begin(now);
        let locate = |user_id: &Uuid| match self.line.find(*user_id) {
            Some(at) => Whereabouts::Waiting(self.place(at)),
            None if self.slots.get(*user_id).is_some() => Whereabouts::Active,
            None => Whereabouts::Absent,
        };
        users.iter().map(locate).collect()
    }

    /// Whether this slot lives, which only then counts as being seen; and by what one may rely on
    /// the answer.
    pub fn holds(&mut self, ask: Ask, slot_id: Uuid, rules: &Rules) -> (bool, Basis) {
        self.begin_by_rules(ask.now, rules);
        let Some(held) = self.slots.get(ask.user_id) else { return (false, Basis::Nothing) };
        let (is_it, basis) = (held.id == slot_id, Basis::Admission(held.admission));
        (is_it && self.find(ask.user_id, rules).is_some(), basis)
    }

    pub fn leave(&mut self, ask: Ask, queues: &Queues) -> bool {
        self.begin(ask.now);
        self.drop_out(ask.user_id, queues) || self.end_slot(ask.user_id)
    }

    pub fn finish(&mut self, ask: Ask, bought_at: Timestamp) -> bool {
        self.begin(ask.now);
        let bought_at_us = bought_at.as_microsecond();
        let slot = self.slots.get(ask.user_id);
        slot.is_some_and(|slot| slot.admitted_at_us <= bought_at_us) && self.end_slot(ask.user_id)
    }

    /// Lets in as many as the rules allow, but `count_max` at once.
    pub fn admit(
        &mut self,
        rules: &Rules,
        now: Timestamp,
        count_max: u32,
        around: &Surroundings<'_>,
    ) -> Vec<Admitted> {
        self.begin_by_rules(now, rules);
        let mut admitted = Vec::new();
        for _ in 0..self.free(rules).min(count_max) {
            let Some(entry) = self.line.pop_front() else { break };
            self.touch(entry.user_id);
            around.queues.remove(entry.user_id);
            self.changes.push(Record::PlaceOut { room: self.number, arrival: entry.arrival });
            self.recent.count_admitted(self.second());
            let slot_id = self.let_in(entry.user_id, around.ids, rules);
            admitted.push(Admitted { user_id: entry.user_id, slot_id });
        }
        admitted
    }

    /// Looks at the next `looked_at_max` people behind `key` and drops those who were not seen
    /// since. Says where it stopped; `None` at the end of the line.
    pub fn sweep(&mut self, sweep: &Sweep, key: Option<Key>, queues: &Queues) -> Swept {
        self.begin(sweep.now);
        let unseen_since_us = sweep.unseen_since.as_microsecond();
        if self.note_sweep(sweep) > unseen_since_us {
            return Swept { count: 0, last: None };
        }
        let mut dropped = Vec::new();
        let mut last = None;
        for entry in self.line.behind(key).take(sweep.looked_at_max) {
            if dropped.len() == sweep.count_max as usize {
                break;
            }
            last = Some(entry.key());
            if entry.seen_at_us <= unseen_since_us {
                dropped.push(entry.user_id);
            }
        }
        for user_id in &dropped {
            self.drop_out(*user_id, queues);
        }
        Swept { count: u32::try_from(dropped.len()).expect("at most count_max"), last }
    }

    /// Ends everything. The line is returned: taking it apart takes too long for the lock.
    pub fn clear(&mut self, now: Timestamp, new_number: i64) -> (Cleared, Line) {
        self.begin(now);
        let cleared = Cleared { waiting: self.line.len(), active: self.slots.len() };
        if cleared == Cleared::default() {
            return (cleared, Line::new(self.hasher.clone()));
        }
        self.changes.push(Record::RoomLeft { room: self.number });
        self.number = new_number;
        self.slots = Slots::new(self.hasher.clone());
        (cleared, std::mem::replace(&mut self.line, Line::new(self.hasher.clone())))
    }

    pub fn crowd(&mut self, now: Timestamp, durable: u64) -> Crowd {
        self.begin(now);
        Crowd {
            waiting: self.line.len(),
            active: self.slots.len(),
            last_number: self.unwritten.last_written(durable),
            admitted_total: self.admitted_total,
            left_total: self.left_total,
            pace: self.recent.pace(self.second()),
            marks: mark_positions(self.line.len())
                .into_iter()
                .filter_map(|position| {
                    let number = self.line.nth(position)?.number;
                    Some(Place { number, position })
                })
                .collect(),
        }
    }

    /// Notes that the line is looked through. Returns since when that is so without a gap.
    fn note_sweep(&mut self, sweep: &Sweep) -> i64 {
        let unseen_for_us = sweep.now.as_microsecond() - sweep.unseen_since.as_microsecond();
        let gap_us = self.now_us.saturating_sub(self.sweeping.last_us).saturating_abs();
        if gap_us > sweep_gap_max_us(unseen_for_us) {
            self.sweeping.began_us = self.now_us;
        }
        self.sweeping.last_us = self.now_us;
        self.sweeping.began_us
    }

    /// What is kept of a room that was empty for longer than anything in it is remembered.
    pub fn rest(&mut self, now_second: i64, durable: u64) -> Option<Totals> {
        let kept = i64::try_from(KEPT).expect("few");
        let is_idle = now_second.saturating_sub(self.second()) > kept;
        let is_written = self.changes.is_empty() && self.unwritten.is_empty(durable);
        (is_idle && is_written && !self.is_occupied()).then(|| self.totals())
    }

    pub fn is_occupied(&self) -> bool {
        !self.line.is_empty() || self.slots.len() > 0
    }

    /// The next `count_max` of those who wait with an arrival's number between these.
    pub fn entrants(&self, behind: Option<Key>, last_number: i64, count_max: usize) -> Vec<Key> {
        // Those who were drawn stand before the first arrival.
        let behind = behind.or(Some((0, Uuid::max())));
        let entrants = self.line.behind(behind).take_while(|entry| entry.number <= last_number);
        entrants.take(count_max).map(Entry::key).collect()
    }

    /// Gives the journal what has changed. Returns the batch that has it; 0 if nothing has.
    pub fn hand_over(&mut self, journal: &Journal) -> u64 {
        if self.changes.is_empty() {
            return 0;
        }
        let totals = self.totals();
        let batch = journal.append(self.changes.drain(..), Some(totals));
        self.unwritten.note(batch, self.last_number, self.admissions);
        batch
    }

    /// The batch that must be on disk before someone is told; 0 if it is.
    pub fn batch_of(&mut self, basis: Basis, durable: u64) -> u64 {
        match basis {
            Basis::Nothing => 0,
            Basis::Arrival(arrival) => self.unwritten.batch_of_arrival(arrival, durable),
            Basis::Admission(admission) => self.unwritten.batch_of_admission(admission, durable),
        }
    }

    fn totals(&self) -> Totals {
        Totals {
            room: self.number,
            event_id: self.event_id,
            last_number: self.last_number,
            admitted: self.admitted_total,
            left: self.left_total,
        }
    }

    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        size_of::<Room>() + self.line.bytes() + self.slots.bytes()
    }

    pub fn waiting(&self) -> u32 {
        self.line.len()
    }

    fn begin_by_rules(&mut self, now: Timestamp, rules: &Rules) {
        if let Some(at_us) = self.restored_at_us.take() {
            self.slots.settle(at_us, rules);
        }
        self.begin(now);
    }

    /// Sets the room's time and ends what is over.
    fn begin(&mut self, now: Timestamp) {
        let now_us = now.as_microsecond();
        let is_behind =
            now_us < self.now_us && self.now_us.saturating_sub(now_us) <= DISORDER_MAX_US;
        if !is_behind {
            self.now_us = now_us;
        }
        while let Some((user_id, _)) = self.slots.pop_over(self.now_us) {
            self.changes.push(Record::SlotOut { room: self.number, user_id });
        }
    }

    fn second(&self) -> i64 {
        second(self.now_us)
    }

    /// Where someone stands, if anywhere. They are seen.
    fn find(&mut self, user_id: Uuid, rules: &Rules) -> Option<Told> {
        if let Some(at) = self.line.find(user_id) {
            self.line.see(at, self.now_us);
            self.touch(user_id);
            let basis = Basis::Arrival(self.line.entry(at).arrival);
            return Some(Told { seen: self.seen(Standing::Waiting(self.place(at))), basis });
        }
        let admission = self.slots.get(user_id)?.admission;
        let Some(slot) = self.slots.see(user_id, self.now_us, rules) else {
            self.end_slot(user_id);
            return None;
        };
        let basis = Basis::Admission(admission);
        Some(Told { seen: self.seen(Standing::Active(slot)), basis })
    }

    fn place(&self, at: At) -> Place {
        Place { number: self.line.entry(at).number, position: self.line.position(at) }
    }

    fn seen(&self, standing: Standing) -> Seen {
        let (waiting, active) = (self.line.len(), self.slots.len());
        Seen { standing, waiting, active, is_just_admitted: false }
    }

    /// How many may be let in now.
    fn free(&self, rules: &Rules) -> u32 {
        match rules.door {
            Door::Shut => 0,
            Door::Open => {
                let by_rate = self.recent.rate_left(self.second(), rules.admitted_per_second_max);
                rules.threshold.saturating_sub(self.slots.len()).min(by_rate)
            }
        }
    }

    fn let_in(&mut self, user_id: Uuid, ids: &IdSource, rules: &Rules) -> Uuid {
        let slot_id = ids.next_id();
        self.admissions += 1;
        self.admitted_total += 1;
        self.recent.count_let_in(self.second());
        self.slots.insert(user_id, slot_id, self.admissions, self.now_us, rules);
        let (room, admitted_at_us) = (self.number, self.now_us);
        self.changes.push(Record::SlotIn { room, user_id, slot_id, admitted_at_us });
        slot_id
    }

    fn line_up(&mut self, user_id: Uuid, rules: &Rules, queues: &Queues) -> Result<(), RoomError> {
        if self.line.len() >= rules.waiting_max {
            return Err(RoomError::Full);
        }
        if !queues.add(user_id, rules.queues_per_user_max) {
            return Err(RoomError::TooManyQueues);
        }
        if self.line.is_empty() {
            self.sweeping = Sweeping { last_us: self.now_us, began_us: self.now_us };
        }
        self.last_number += 1;
        let (number, arrival) = (self.last_number, self.last_number);
        self.line.push(Entry { user_id, number, arrival, seen_at_us: self.now_us });
        self.changes.push(Record::PlaceIn { room: self.number, arrival, user_id });
        Ok(())
    }

    /// Takes someone out of the line who is not let in.
    fn drop_out(&mut self, user_id: Uuid, queues: &Queues) -> bool {
        let Some(entry) = self.line.remove(user_id) else { return false };
        self.touch(user_id);
        queues.remove(user_id);
        self.left_total += 1;
        self.recent.count_left(self.second());
        self.changes.push(Record::PlaceOut { room: self.number, arrival: entry.arrival });
        true
    }

    fn end_slot(&mut self, user_id: Uuid) -> bool {
        let is_ended = self.slots.remove(user_id).is_some();
        if is_ended {
            self.changes.push(Record::SlotOut { room: self.number, user_id });
        }
        is_ended
    }
}

fn second(time_us: i64) -> i64 {
    time_us.div_euclid(SECOND_US)
}

/// What a sweep is to do at once.
pub struct Sweep {
    pub unseen_since: Timestamp,
    pub now: Timestamp,
    pub count_max: u32,
    pub looked_at_max: usize,
}

pub struct Swept {
    pub count: u32,
    /// The last one who was looked at; `None` if there was nobody left.
    pub last: Option<Key>,
}
