//! The log of slots: every admission and every end of a slot, in order. A replay proves that nobody was
//! admitted twice, out of order, or when the room was full.
//!
//! The log does not hold who joined and left the line. An admission tells which numbers had been given
//! by then, so whoever was passed over is found when they are admitted later, or still wait.

use std::collections::HashSet;

use urr_kernel::{Timestamp, Uuid};
use urr_redis::{Redis, RedisError};
use urr_storage::{Db, DbResult, RowDifference, Tx};

use crate::memory::journal::{
    RoomTotals, position_first, room_list, slot_list, slot_log_list, twice_waiting_list,
};
use crate::redis::{read_room, read_slot_log};

/// More differences than this are not listed.
const DIFFERENCES_MAX: usize = 1_000;

/// What happened to slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotChange {
    Admitted {
        /// In the line; none if nobody waited.
        number: Option<i64>,
        /// The newest number that had been given.
        last_number: i64,
        /// How many might be inside.
        inside_max: u32,
    },
    Ended,
    Cleared,
}

impl SlotChange {
    pub(crate) fn name(self) -> &'static str {
        match self {
            SlotChange::Admitted { .. } => "admitted",
            SlotChange::Ended => "ended",
            SlotChange::Cleared => "cleared",
        }
    }
}

/// An entry of the log of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLogEntry {
    /// Counts up from one.
    pub entry: i64,
    /// None: the room was cleared.
    pub user_id: Option<Uuid>,
    pub at: Timestamp,
    pub change: SlotChange,
}

/// What the audit of all rooms found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomAudit {
    pub rooms: u64,
    pub admissions: u64,
    /// At most 1,000.
    pub differences: Vec<RowDifference>,
}

/// Where a replay ended.
#[derive(Clone, Debug, Default)]
pub struct RoomEnd {
    /// Users with a slot.
    pub inside: Vec<Uuid>,
    /// Users who wait twice, or wait and have a slot.
    pub twice: Vec<Uuid>,
    /// The number of the first in line.
    pub first_number: Option<i64>,
    /// How many were admitted by the room's own count, if the log must have them all.
    pub admitted: Option<u64>,
    /// The last entry by the room's own count, if it is known.
    pub last_entry: Option<i64>,
}

/// Replays the log of one event. It holds who is inside, and nothing else.
pub struct SlotLogReplay {
    event_id: Uuid,
    inside: HashSet<Uuid>,
    last_entry: Option<i64>,
    is_from_start: bool,
    /// The highest number that was admitted from the line, since the last clearing.
    front: i64,
    /// When somebody was last admitted without waiting, numbers up to this one had been given.
    passed: i64,
    admissions: u64,
    differences: Vec<RowDifference>,
}

impl SlotLogReplay {
    pub fn new(event_id: Uuid) -> SlotLogReplay {
        SlotLogReplay {
            event_id,
            inside: HashSet::new(),
            last_entry: None,
            is_from_start: true,
            front: i64::MIN,
            passed: i64::MIN,
            admissions: 0,
            differences: Vec::new(),
        }
    }

    pub fn apply(&mut self, logged: &SlotLogEntry) {
        match self.last_entry {
            Some(last) if logged.entry != last + 1 => {
                let sentence = format!("the log has no entry after {last} before this one");
                self.note("roomLog", sentence, Some(logged));
            }
            None => self.is_from_start = logged.entry == 1,
            Some(_) => {}
        }
        self.last_entry = Some(logged.entry);
        match (logged.change, logged.user_id) {
            (SlotChange::Admitted { number, last_number, inside_max }, Some(user_id)) => {
                self.admissions += 1;
                self.check_order(number, last_number, logged);
                if !self.inside.insert(user_id) {
                    self.note("admittedTwice", format!("user {user_id} was inside"), Some(logged));
                }
                if self.inside.len() > inside_max as usize {
                    let inside = self.inside.len();
                    let sentence = format!("{inside} are inside, and {inside_max} may be");
                    self.note("threshold", sentence, Some(logged));
                }
            }
            (SlotChange::Ended, Some(user_id)) => {
                // Without the beginning of the log it is not known who was inside.
                if !self.inside.remove(&user_id) && self.is_from_start {
                    let sentence = format!("user {user_id} had no slot that could end");
                    self.note("roomLog", sentence, Some(logged));
                }
            }
            (SlotChange::Cleared, _) => {
                self.inside.clear();
                (self.front, self.passed) = (i64::MIN, i64::MIN);
            }
            (_, None) => self.note("roomLog", "it names nobody".to_owned(), Some(logged)),
        }
    }

    fn check_order(&mut self, number: Option<i64>, last_number: i64, logged: &SlotLogEntry) {
        let Some(number) = number else {
            self.passed = self.passed.max(last_number);
            return;
        };
        if number <= self.front {
            let sentence = format!("number {number} was admitted after number {}", self.front);
            self.note("order", sentence, Some(logged));
        } else if number <= self.passed {
            let sentence = format!("somebody was admitted at once while number {number} waited");
            self.note("order", sentence, Some(logged));
        }
        self.front = self.front.max(number);
    }

    /// Compares the end of the log with the room as it is.
    pub fn finish(mut self, end: &RoomEnd, audit: &mut RoomAudit) {
        for user_id in &end.twice {
            self.note("waitsTwice", format!("user {user_id} is there twice"), None);
        }
        if let Some(first) = end.first_number.filter(|first| *first <= self.front.max(self.passed))
        {
            let sentence = format!("number {first} waits, and a later user was admitted");
            self.note("order", sentence, None);
        }
        let held: HashSet<Uuid> = end.inside.iter().copied().collect();
        let differing: Vec<Uuid> = match self.is_from_start {
            true => held.symmetric_difference(&self.inside).copied().collect(),
            false => self.inside.difference(&held).copied().collect(),
        };
        for user_id in differing {
            let is_held = held.contains(&user_id);
            let said = if is_held { "has a slot" } else { "has no slot" };
            let sentence = format!("user {user_id} {said}, and the log says otherwise");
            self.note("roomLog", sentence, None);
        }
        let counted = end.admitted.filter(|_| self.is_from_start);
        if let Some(admitted) = counted.filter(|admitted| *admitted != self.admissions) {
            let logged = self.admissions;
            let sentence = format!("the room counted {admitted} admissions, the log has {logged}");
            self.note("roomLog", sentence, None);
        }
        if let Some(last) = end.last_entry.filter(|last| Some(*last) != self.last_entry) {
            self.note("roomLog", format!("the log does not end with entry {last}"), None);
        }
        audit.rooms += 1;
        audit.admissions += self.admissions;
        let left = DIFFERENCES_MAX.saturating_sub(audit.differences.len());
        audit.differences.extend(self.differences.into_iter().take(left));
    }

    fn note(&mut self, kind: &'static str, sentence: String, logged: Option<&SlotLogEntry>) {
        if self.differences.len() >= DIFFERENCES_MAX {
            return;
        }
        let event_id = self.event_id;
        let row = |it: &SlotLogEntry| {
            let user = it.user_id.map_or_else(|| "null".to_owned(), |id| id.to_string());
            let SlotLogEntry { entry, at, change, .. } = it;
            format!("slot_log event_id={event_id} entry={entry} user_id={user} at={at} {change:?}")
        };
        self.differences.push(RowDifference {
            kind,
            sentence: format!("room of event {event_id}: {sentence}"),
            rows: logged.map(row).into_iter().collect(),
        });
    }
}

/// Audits the rooms of a journal, or that of one event. One transaction sees one moment.
pub async fn audit_journal(db: &Db, only: Option<Uuid>) -> DbResult<RoomAudit> {
    db.read(move |tx| {
        let mut audit = RoomAudit::default();
        let is_meant = |totals: &RoomTotals| only.is_none_or(|only| totals.event_id == only);
        for totals in room_list(tx)?.into_iter().filter(is_meant) {
            audit_journal_room(tx, &totals, &mut audit)?;
        }
        Ok(audit)
    })
    .await
}

fn audit_journal_room(tx: &mut Tx<'_>, totals: &RoomTotals, audit: &mut RoomAudit) -> DbResult<()> {
    let mut replay = SlotLogReplay::new(totals.event_id);
    let mut after = 0;
    loop {
        let page = slot_log_list(tx, totals.event_id, after)?;
        let Some(last) = page.last() else { break };
        after = last.entry;
        page.iter().for_each(|logged| replay.apply(logged));
    }
    let inside = slot_list(tx, totals.room)?.into_iter().map(|(user_id, ..)| user_id).collect();
    let end = RoomEnd {
        inside,
        twice: twice_waiting_list(tx, totals.room)?,
        first_number: position_first(tx, totals.room)?,
        // A log that is too old was deleted.
        admitted: (after > 0).then_some(totals.admitted),
        last_entry: (after > 0).then_some(totals.logged),
    };
    replay.finish(&end, audit);
    Ok(())
}

/// How many entries of a log in Redis are read at once.
const ENTRIES_AT_ONCE: i64 = 5_000;

/// Audits the rooms of events in Redis. The log grows meanwhile: what is reported while users are
/// admitted has to be looked at again.
pub async fn audit_redis(redis: &Redis, events: &[Uuid]) -> Result<RoomAudit, RedisError> {
    let mut audit = RoomAudit::default();
    for event_id in events {
        let mut replay = SlotLogReplay::new(*event_id);
        let mut next = 0;
        loop {
            let page = read_slot_log(redis, *event_id, next, ENTRIES_AT_ONCE).await?;
            page.iter().for_each(|logged| replay.apply(logged));
            next += i64::try_from(page.len()).expect("a page is small");
            if page.is_empty() {
                break;
            }
        }
        let end = read_room(redis, *event_id).await?;
        if next > 0 || !end.inside.is_empty() {
            replay.finish(&end, &mut audit);
        }
    }
    Ok(audit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: Uuid = Uuid::from_u128(7);

    fn user(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    /// Reads a line such as `admit 3 number 5 of 9 max 2`, `admit 3 at once of 9 max 2`, `end 3` or
    /// `clear`.
    fn parse(entry: i64, line: &str) -> SlotLogEntry {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = Timestamp::from_microsecond(entry).unwrap();
        let of = |name: &str| {
            let place = words.iter().position(|word| *word == name)?;
            words[place + 1].parse::<i64>().ok()
        };
        let user_id = words.get(1).and_then(|word| word.parse().ok()).map(user);
        let change = match words[0] {
            "admit" => SlotChange::Admitted {
                number: of("number"),
                last_number: of("of").unwrap(),
                inside_max: u32::try_from(of("max").unwrap()).unwrap(),
            },
            "end" => SlotChange::Ended,
            _ => SlotChange::Cleared,
        };
        SlotLogEntry { entry, user_id, at, change }
    }

    /// The kinds of differences of a log, if the room ends as given.
    fn replayed(log: &str, end: &RoomEnd) -> Vec<&'static str> {
        let mut replay = SlotLogReplay::new(EVENT);
        let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
        for (index, line) in lines.enumerate() {
            replay.apply(&parse(i64::try_from(index).unwrap() + 1, line));
        }
        let mut audit = RoomAudit::default();
        replay.finish(end, &mut audit);
        audit.differences.iter().map(|found| found.kind).collect()
    }

    fn inside(users: &[u128]) -> RoomEnd {
        RoomEnd { inside: users.iter().copied().map(user).collect(), ..RoomEnd::default() }
    }

    #[test]
    fn a_fair_log_has_no_difference() {
        let log = "admit 1 at once of 0 max 2
            admit 2 at once of 0 max 2
            end 1
            admit 3 number 1 of 4 max 2
            end 2
            admit 4 number 3 of 4 max 2
            end 4
            admit 4 number 5 of 5 max 2
            clear
            admit 5 number -3 of 5 max 2
            admit 6 number -1 of 5 max 2";
        let end = RoomEnd { first_number: Some(6), admitted: Some(7), ..inside(&[5, 6]) };
        assert_eq!(replayed(log, &end), Vec::<&str>::new());
    }

    #[test]
    fn every_unfairness_is_named() {
        let check = |log: &str, end: RoomEnd, expected: &[&str]| {
            assert_eq!(replayed(log, &end), expected, "{log}");
        };
        let two = "admit 1 number 2 of 2 max 9\nadmit 2 number 1 of 2 max 9";
        check(two, inside(&[1, 2]), &["order"]);
        let jumped = "admit 1 at once of 2 max 9\nadmit 2 number 1 of 2 max 9";
        check(jumped, inside(&[1, 2]), &["order"]);
        let waits = RoomEnd { first_number: Some(1), ..inside(&[1]) };
        check("admit 1 number 2 of 2 max 9", waits.clone(), &["order"]);
        check("admit 1 at once of 2 max 9", waits, &["order"]);
        let full = "admit 1 number 1 of 2 max 1\nadmit 2 number 2 of 2 max 1";
        check(full, inside(&[1, 2]), &["threshold"]);
        let twice = "admit 1 number 1 of 2 max 9\nadmit 1 number 2 of 2 max 9";
        check(twice, inside(&[1]), &["admittedTwice"]);
        check("end 1", inside(&[]), &["roomLog"]);
        check("admit 1 number 1 of 1 max 9", inside(&[]), &["roomLog"]);
        check("", inside(&[1]), &["roomLog"]);
        let counted = RoomEnd { admitted: Some(2), ..inside(&[1]) };
        check("admit 1 number 1 of 1 max 9", counted, &["roomLog"]);
        let both = RoomEnd { twice: vec![user(1)], ..inside(&[1]) };
        check("admit 1 number 1 of 1 max 9", both, &["waitsTwice"]);
    }

    #[test]
    fn a_log_without_its_beginning_is_read_as_far_as_it_goes() {
        let mut replay = SlotLogReplay::new(EVENT);
        replay.apply(&parse(50, "end 1"));
        replay.apply(&parse(51, "admit 2 number 9 of 9 max 1"));
        replay.apply(&parse(53, "end 2"));
        let mut audit = RoomAudit::default();
        replay.finish(&RoomEnd { admitted: Some(90), ..inside(&[]) }, &mut audit);
        let kinds: Vec<_> = audit.differences.iter().map(|found| found.kind).collect();
        assert_eq!(kinds, ["roomLog"], "an entry is missing in the middle");
    }
}
