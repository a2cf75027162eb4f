//! The room of one event under its lock. It never waits and has no clock.
//!
//! Every operation first removes expired slots. Changes gather in `changes` and are appended to the
//! journal before the lock is released ([`MemoryRoom::append_changes`]).

mod draw;

pub use draw::DrawnNumbers;

use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use urr_kernel::{IdSource, Timestamp, Uuid};

use super::flow_counters::{PaceHistory, SECONDS_KEPT, SecondCounts};
use super::journal::{Journal, JournalRecord, RoomTotals};
use super::line::{EntryIndex, LineEntry, LineKey, WaitingLine, mark_positions};
use super::pending_writes::{Durability, PendingWrites};
use super::queue_counts::QueueCounts;
use super::slots::SlotTable;
use crate::slot_log::{SlotChange, SlotLogEntry};
use crate::{
    Admission, AdmissionRules, AdmissionState, ClearedCounts, Crowd, LinePosition, RoomError,
    RoomRequest, StatusSnapshot, UserLocation, UserStatus, sweep_gap_max_us,
};

/// Requests on several threads may arrive out of order by this much. A clock that is further back
/// was set back.
const DISORDER_MAX_US: i64 = 5_000_000;
const SECOND_US: i64 = 1_000_000;

pub struct MemoryRoom {
    /// The counters, and the number in the journal, which clearing changes.
    totals: RoomTotals,
    line: WaitingLine,
    slots: SlotTable,
    recent: PaceHistory,
    /// The admissions since the start.
    admissions: u64,
    now_us: i64,
    sweeping: SweepTimes,
    /// When the users of recovered slots count as last seen, until the rules are known.
    restored_at_us: Option<i64>,
    changes: Vec<JournalRecord>,
    pending_writes: PendingWrites,
    draw_progress: DrawProgress,
    hasher: DefaultHashBuilder,
}

/// The state of a draw that is under way.
#[derive(Default)]
struct DrawProgress {
    /// Held by the draw: one at a time.
    lock: Arc<tokio::sync::Mutex<()>>,
    /// The users who were seen or left since it began.
    touched: Option<Vec<Uuid>>,
}

/// When the line was swept.
#[derive(Clone, Copy)]
struct SweepTimes {
    last_us: i64,
    /// The begin of the sweeps without a gap.
    began_us: i64,
}

/// A status with the change on which it depends.
type PendingStatus = (StatusSnapshot, Durability);

/// What a room needs to admit users or let them join.
pub struct RoomContext<'a> {
    pub queue_counts: &'a QueueCounts,
    pub ids: &'a IdSource,
    /// Whether the journal accepts changes.
    pub is_accepting: bool,
}

/// A room as it was before a restart.
pub struct RestoredRoom {
    pub totals: RoomTotals,
    /// In the order of the line.
    pub entries: Vec<LineEntry>,
    pub slots: Vec<(Uuid, Uuid, Timestamp)>,
    /// What the log of slots has of the last seconds.
    pub recent: Vec<SlotLogEntry>,
}

impl MemoryRoom {
    /// An empty room.
    pub fn empty(totals: RoomTotals, hasher: DefaultHashBuilder) -> MemoryRoom {
        let restored =
            RestoredRoom { totals, entries: Vec::new(), slots: Vec::new(), recent: Vec::new() };
        MemoryRoom::restore(restored, i64::MIN, hasher)
    }

    pub fn restore(restored: RestoredRoom, now_us: i64, hasher: DefaultHashBuilder) -> MemoryRoom {
        let totals = restored.totals;
        let (mut slots, mut recent) = (SlotTable::new(hasher.clone()), PaceHistory::new());
        for (user_id, slot_id, admitted_at) in &restored.slots {
            slots.restore(*user_id, *slot_id, admitted_at.as_microsecond());
        }
        restored.recent.iter().for_each(|logged| recent.restore(logged));
        MemoryRoom {
            totals,
            line: WaitingLine::of(restored.entries, hasher.clone()),
            slots,
            recent,
            admissions: 0,
            now_us,
            sweeping: SweepTimes { last_us: now_us, began_us: now_us },
            restored_at_us: (!restored.slots.is_empty()).then_some(now_us),
            changes: Vec::new(),
            pending_writes: PendingWrites::new(totals.last_number),
            draw_progress: DrawProgress::default(),
            hasher,
        }
    }

    pub fn check(
        &mut self,
        request: RoomRequest,
        rules: &AdmissionRules,
        context: &RoomContext<'_>,
    ) -> Result<PendingStatus, RoomError> {
        self.begin_by_rules(request.now, rules);
        if let Some(answer) = self.find(request.user_id, rules) {
            return Ok(answer);
        }
        if !context.is_accepting {
            return Err(RoomError::Unavailable);
        }
        if self.line.is_empty() && self.free_slots(rules) > 0 {
            self.admit_user(request.user_id, None, context.ids, rules);
            let found = self.find(request.user_id, rules).expect("they were just let in");
            return Ok((StatusSnapshot { is_just_admitted: true, ..found.0 }, found.1));
        }
        self.join_line(request.user_id, rules, context.queue_counts)?;
        Ok(self.find(request.user_id, rules).expect("they were just lined up"))
    }

    pub fn poll(&mut self, request: RoomRequest, rules: &AdmissionRules) -> PendingStatus {
        self.begin_by_rules(request.now, rules);
        let absent = (self.snapshot(UserStatus::Absent), Durability::Nothing);
        self.find(request.user_id, rules).unwrap_or(absent)
    }

    /// Locates users without marking them as seen.
    pub fn locate(&mut self, users: &[Uuid], now: Timestamp) -> Vec<UserLocation> {
        self.begin(now);
        let locate = |user_id: &Uuid| match self.line.find(*user_id) {
            Some(at) => UserLocation::Waiting(self.place(at)),
            None if self.slots.get(*user_id).is_some() => UserLocation::Active,
            None => UserLocation::Absent,
        };
        users.iter().map(locate).collect()
    }

    /// Whether this slot is live, and the change on which the answer depends. Only a live slot
    /// marks the user as seen.
    pub fn holds(
        &mut self,
        request: RoomRequest,
        slot_id: Uuid,
        rules: &AdmissionRules,
    ) -> (bool, Durability) {
        self.begin_by_rules(request.now, rules);
        let Some(held) = self.slots.get(request.user_id) else {
            return (false, Durability::Nothing);
        };
        let (is_same, durability) = (held.id == slot_id, Durability::Admission(held.admission));
        (is_same && self.find(request.user_id, rules).is_some(), durability)
    }

    pub fn leave(&mut self, request: RoomRequest, queue_counts: &QueueCounts) -> bool {
        self.begin(request.now);
        self.leave_line(request.user_id, queue_counts) || self.end_slot(request.user_id)
    }

    pub fn finish(&mut self, request: RoomRequest, bought_at: Timestamp) -> bool {
        self.begin(request.now);
        let bought_at_us = bought_at.as_microsecond();
        let slot = self.slots.get(request.user_id);
        slot.is_some_and(|slot| slot.admitted_at_us <= bought_at_us)
            && self.end_slot(request.user_id)
    }

    /// Admits as many users as the rules allow, at most `count_max`.
    pub fn admit(
        &mut self,
        rules: &AdmissionRules,
        now: Timestamp,
        count_max: u32,
        context: &RoomContext<'_>,
    ) -> Vec<Admission> {
        self.begin_by_rules(now, rules);
        let mut admitted = Vec::new();
        for _ in 0..self.free_slots(rules).min(count_max) {
            let Some(entry) = self.line.pop_front() else { break };
            self.touch(entry.user_id);
            context.queue_counts.remove(entry.user_id);
            self.changes
                .push(JournalRecord::LineLeft { room: self.totals.room, arrival: entry.arrival });
            self.this_second().admitted += 1;
            let number = Some(entry.number);
            let slot_id = self.admit_user(entry.user_id, number, context.ids, rules);
            admitted.push(Admission { user_id: entry.user_id, slot_id });
        }
        admitted
    }

    /// Scans the next `scanned_max` users behind `key` and drops those who were not seen since.
    pub fn sweep(
        &mut self,
        sweep: &SweepRequest,
        key: Option<LineKey>,
        queue_counts: &QueueCounts,
    ) -> SweepResult {
        self.begin(sweep.now);
        let unseen_since_us = sweep.unseen_since.as_microsecond();
        if self.note_sweep(sweep) > unseen_since_us {
            return SweepResult { count: 0, last: None };
        }
        let mut dropped = Vec::new();
        let mut last = None;
        for entry in self.line.behind(key).take(sweep.scanned_max) {
            if dropped.len() == sweep.count_max as usize {
                break;
            }
            last = Some(entry.key());
            if entry.seen_at_us <= unseen_since_us {
                dropped.push(entry.user_id);
            }
        }
        for user_id in &dropped {
            self.leave_line(*user_id, queue_counts);
        }
        SweepResult { count: u32::try_from(dropped.len()).expect("at most count_max"), last }
    }

    /// Ends everything. The line is returned, because dropping it takes too long for the lock.
    pub fn clear(&mut self, now: Timestamp, new_number: i64) -> (ClearedCounts, WaitingLine) {
        self.begin(now);
        let cleared = ClearedCounts { waiting: self.line.len(), active: self.slots.len() };
        if cleared == ClearedCounts::default() {
            return (cleared, WaitingLine::new(self.hasher.clone()));
        }
        self.changes.push(JournalRecord::RoomRetired { room: self.totals.room });
        self.log_slot(SlotChange::Cleared, None);
        self.totals.room = new_number;
        self.slots = SlotTable::new(self.hasher.clone());
        (cleared, std::mem::replace(&mut self.line, WaitingLine::new(self.hasher.clone())))
    }

    pub fn crowd(&mut self, now: Timestamp, durable: u64) -> Crowd {
        self.begin(now);
        Crowd {
            waiting: self.line.len(),
            active: self.slots.len(),
            last_number: self.pending_writes.last_written(durable),
            admitted_total: self.totals.admitted,
            left_total: self.totals.left,
            pace: self.recent.pace(self.second(), self.slots.len()),
            marks: mark_positions(self.line.len())
                .into_iter()
                .filter_map(|position| {
                    let number = self.line.nth(position)?.number;
                    Some(LinePosition { number, position })
                })
                .collect(),
        }
    }

    /// Notes a sweep. Returns since when the line has been swept without a gap.
    fn note_sweep(&mut self, sweep: &SweepRequest) -> i64 {
        let unseen_for_us = sweep.now.as_microsecond() - sweep.unseen_since.as_microsecond();
        let gap_us = self.now_us.saturating_sub(self.sweeping.last_us).saturating_abs();
        if gap_us > sweep_gap_max_us(unseen_for_us) {
            self.sweeping.began_us = self.now_us;
        }
        self.sweeping.last_us = self.now_us;
        self.sweeping.began_us
    }

    /// The counters of a room that can be unloaded: empty, idle and written.
    pub fn unload(&mut self, now_second: i64, durable: u64) -> Option<RoomTotals> {
        let kept = i64::try_from(SECONDS_KEPT).expect("few");
        let is_idle = now_second.saturating_sub(self.second()) > kept;
        let is_written = self.changes.is_empty() && self.pending_writes.is_empty(durable);
        (is_idle && is_written && !self.is_occupied()).then_some(self.totals)
    }

    pub fn is_occupied(&self) -> bool {
        !self.line.is_empty() || self.slots.len() > 0
    }

    /// The next `count_max` users who wait with an arrival number up to `last_number`.
    pub fn entrants(
        &self,
        behind: Option<LineKey>,
        last_number: i64,
        count_max: usize,
    ) -> Vec<LineKey> {
        // Drawn users stand before the first arrival.
        let behind = behind.or(Some((0, Uuid::max())));
        let entrants = self.line.behind(behind).take_while(|entry| entry.number <= last_number);
        entrants.take(count_max).map(LineEntry::key).collect()
    }

    /// Appends the changes to the journal. Returns their batch; 0 if there are none.
    pub fn append_changes(&mut self, journal: &Journal) -> u64 {
        if self.changes.is_empty() {
            return 0;
        }
        let batch = journal.append(self.changes.drain(..), Some(self.totals));
        self.pending_writes.note(batch, self.totals.last_number, self.admissions);
        batch
    }

    /// The batch that must be on disk before the answer; 0 if it is.
    pub fn batch_of(&mut self, durability: Durability, durable: u64) -> u64 {
        self.pending_writes.batch_of(durability, durable)
    }

    pub fn bytes(&self) -> usize {
        size_of::<MemoryRoom>() + self.line.bytes() + self.slots.bytes()
    }

    pub fn waiting(&self) -> u32 {
        self.line.len()
    }

    fn begin_by_rules(&mut self, now: Timestamp, rules: &AdmissionRules) {
        if let Some(at_us) = self.restored_at_us.take() {
            self.slots.set_expiries(at_us, rules);
        }
        self.begin(now);
    }

    /// Sets the room's time and removes expired slots.
    fn begin(&mut self, now: Timestamp) {
        let now_us = now.as_microsecond();
        let is_behind =
            now_us < self.now_us && self.now_us.saturating_sub(now_us) <= DISORDER_MAX_US;
        if !is_behind {
            self.now_us = now_us;
        }
        while let Some((user_id, _)) = self.slots.pop_expired(self.now_us) {
            self.slot_ended(user_id);
        }
    }

    fn second(&self) -> i64 {
        second(self.now_us)
    }

    fn this_second(&mut self) -> &mut SecondCounts {
        self.recent.at(second(self.now_us))
    }

    /// The status of a user who is in the room, who is marked as seen.
    fn find(&mut self, user_id: Uuid, rules: &AdmissionRules) -> Option<PendingStatus> {
        if let Some(at) = self.line.find(user_id) {
            self.line.mark_seen(at, self.now_us);
            self.touch(user_id);
            let durability = Durability::Arrival(self.line.entry(at).arrival);
            return Some((self.snapshot(UserStatus::Waiting(self.place(at))), durability));
        }
        let admission = self.slots.get(user_id)?.admission;
        let Some(slot) = self.slots.mark_seen(user_id, self.now_us, rules) else {
            self.end_slot(user_id);
            return None;
        };
        Some((self.snapshot(UserStatus::Active(slot)), Durability::Admission(admission)))
    }

    fn place(&self, at: EntryIndex) -> LinePosition {
        LinePosition { number: self.line.entry(at).number, position: self.line.position(at) }
    }

    fn snapshot(&self, status: UserStatus) -> StatusSnapshot {
        let (waiting, active) = (self.line.len(), self.slots.len());
        StatusSnapshot { status, waiting, active, is_just_admitted: false }
    }

    /// How many users may be admitted now.
    fn free_slots(&self, rules: &AdmissionRules) -> u32 {
        match rules.admission {
            AdmissionState::Closed => 0,
            AdmissionState::Open => {
                let by_rate = self.recent.rate_left(self.second(), rules.admitted_per_second_max);
                rules.threshold.saturating_sub(self.slots.len()).min(by_rate)
            }
        }
    }

    /// `number` is the user's in the line; none if nobody waited.
    fn admit_user(
        &mut self,
        user_id: Uuid,
        number: Option<i64>,
        ids: &IdSource,
        rules: &AdmissionRules,
    ) -> Uuid {
        let slot_id = ids.next_id();
        self.admissions += 1;
        self.totals.admitted += 1;
        self.this_second().let_in += 1;
        self.slots.insert(user_id, slot_id, self.admissions, self.now_us, rules);
        let (room, admitted_at_us) = (self.totals.room, self.now_us);
        self.changes.push(JournalRecord::SlotGiven { room, user_id, slot_id, admitted_at_us });
        let (last_number, inside_max) = (self.totals.last_number, rules.threshold);
        self.log_slot(SlotChange::Admitted { number, last_number, inside_max }, Some(user_id));
        slot_id
    }

    fn join_line(
        &mut self,
        user_id: Uuid,
        rules: &AdmissionRules,
        queue_counts: &QueueCounts,
    ) -> Result<(), RoomError> {
        if self.line.len() >= rules.waiting_max {
            return Err(RoomError::Full);
        }
        if !queue_counts.add(user_id, rules.queues_per_user_max) {
            return Err(RoomError::TooManyQueues);
        }
        if self.line.is_empty() {
            self.sweeping = SweepTimes { last_us: self.now_us, began_us: self.now_us };
        }
        self.totals.last_number += 1;
        let (number, arrival) = (self.totals.last_number, self.totals.last_number);
        self.line.push(LineEntry { user_id, number, arrival, seen_at_us: self.now_us });
        self.changes.push(JournalRecord::LineJoined { room: self.totals.room, arrival, user_id });
        Ok(())
    }

    /// Removes a user from the line who is not admitted.
    fn leave_line(&mut self, user_id: Uuid, queue_counts: &QueueCounts) -> bool {
        let Some(entry) = self.line.remove(user_id) else { return false };
        self.touch(user_id);
        queue_counts.remove(user_id);
        self.totals.left += 1;
        self.this_second().left += 1;
        self.changes
            .push(JournalRecord::LineLeft { room: self.totals.room, arrival: entry.arrival });
        true
    }

    fn end_slot(&mut self, user_id: Uuid) -> bool {
        let is_ended = self.slots.remove(user_id).is_some();
        if is_ended {
            self.slot_ended(user_id);
        }
        is_ended
    }

    fn slot_ended(&mut self, user_id: Uuid) {
        self.this_second().ended += 1;
        self.changes.push(JournalRecord::SlotEnded { room: self.totals.room, user_id });
        self.log_slot(SlotChange::Ended, Some(user_id));
    }

    /// Adds to the log from which the audit replays the room.
    fn log_slot(&mut self, change: SlotChange, user_id: Option<Uuid>) {
        self.totals.logged += 1;
        let at = Timestamp::from_microsecond(self.now_us).expect("it was made from a time");
        let logged = SlotLogEntry { entry: self.totals.logged, user_id, at, change };
        let event_id = self.totals.event_id;
        self.changes.push(JournalRecord::SlotLogged { event_id, logged });
    }
}

fn second(time_us: i64) -> i64 {
    time_us.div_euclid(SECOND_US)
}

/// One step of a sweep.
pub struct SweepRequest {
    pub unseen_since: Timestamp,
    pub now: Timestamp,
    pub count_max: u32,
    pub scanned_max: usize,
}

pub struct SweepResult {
    pub count: u32,
    /// The last user who was scanned; `None` at the end of the line.
    pub last: Option<LineKey>,
}
