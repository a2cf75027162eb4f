//! Renumbers a line after a draw. Sorting a million users takes too long for the lock: the line is
//! copied in parts, the new line is made from the copy, and under the lock it only gets what has
//! changed meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use tokio::sync::Mutex;
use urr_kernel::Uuid;

use super::super::line::{LineEntry, WaitingLine};
use super::{LineKey, MemoryRoom};

/// The drawn number of each user.
pub type DrawnNumbers = HashMap<Uuid, i64, DefaultHashBuilder>;

/// A copy of the line, in order.
pub struct LineCopy {
    /// The room's number in the journal. Clearing changes it.
    room: i64,
    entries: Vec<LineEntry>,
}

/// A line with drawn numbers.
pub struct RedrawnLine {
    room: i64,
    line: WaitingLine,
    /// The last user who was copied. Later arrivals stand behind.
    last: Option<LineKey>,
    /// For the journal: arrival and number.
    pub written: Vec<(i64, i64)>,
}

impl MemoryRoom {
    /// Held from the first copy until everything is in the journal.
    pub fn draw_lock(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.draw_progress.lock)
    }

    /// Begins the copy. From now on it is noted who is seen or leaves.
    pub fn draw_begin(&mut self) -> LineCopy {
        self.draw_progress.touched = Some(Vec::new());
        let entries = Vec::with_capacity(self.line.len() as usize);
        LineCopy { room: self.totals.room, entries }
    }

    /// Copies the next `count_max` users. False if there are no more.
    pub fn draw_copy(&self, copied: &mut LineCopy, count_max: usize) -> bool {
        let last = copied.entries.last().map(LineEntry::key);
        let before = copied.entries.len();
        copied.entries.extend(self.line.behind(last).take(count_max));
        copied.entries.len() - before == count_max
    }

    /// Replaces the line. Returns the records for the journal, and the old line, because dropping
    /// it takes too long for the lock.
    pub fn draw_end(&mut self, new: RedrawnLine) -> (i64, Vec<(i64, i64)>, WaitingLine) {
        let touched = self.draw_progress.touched.take().unwrap_or_default();
        let RedrawnLine { room, mut line, last, written } = new;
        if room != self.totals.room {
            // The room was cleared meanwhile: the copied users are gone.
            return (self.totals.room, Vec::new(), line);
        }
        for user_id in touched {
            let present = self.line.find(user_id).map(|at| self.line.entry(at));
            match (present, line.find(user_id)) {
                (Some(entry), Some(at)) if Some(entry.key()) <= last => {
                    line.mark_seen(at, entry.seen_at_us);
                }
                // The user left, and perhaps joined again.
                (_, Some(_)) => drop(line.remove(user_id)),
                (_, None) => {}
            }
        }
        self.line.behind(last).for_each(|entry| line.push(*entry));
        (self.totals.room, written, std::mem::replace(&mut self.line, line))
    }

    pub(super) fn touch(&mut self, user_id: Uuid) {
        if let Some(touched) = &mut self.draw_progress.touched {
            touched.push(user_id);
        }
    }
}

impl LineCopy {
    /// Sorts the users by their drawn numbers. Only users with an arrival number up to
    /// `last_number` get one.
    pub fn join_line(
        mut self,
        drawn: &DrawnNumbers,
        last_number: i64,
        hasher: DefaultHashBuilder,
    ) -> RedrawnLine {
        let last = self.entries.last().map(LineEntry::key);
        let mut written = Vec::with_capacity(drawn.len());
        for entry in
            self.entries.iter_mut().filter(|entry| (1..=last_number).contains(&entry.number))
        {
            let Some(number) = drawn.get(&entry.user_id) else { continue };
            debug_assert!(*number < 0, "a number from the draw is below zero");
            entry.number = *number;
            written.push((entry.arrival, *number));
        }
        self.entries.sort_unstable_by_key(LineEntry::key);
        RedrawnLine { room: self.room, line: WaitingLine::of(self.entries, hasher), last, written }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use urr_kernel::{Clock, IdSource, Timestamp};

    use super::super::super::journal::RoomTotals;
    use super::super::super::queue_counts::QueueCounts;
    use super::super::{RoomContext, SweepRequest};
    use super::*;
    use crate::{AdmissionRules, AdmissionState, RoomRequest, UserStatus};

    const SHUT: AdmissionRules = AdmissionRules {
        admission: AdmissionState::Closed,
        threshold: 10,
        admitted_per_second_max: 10,
        slot_ttl: Duration::from_mins(10),
        slot_max: Duration::from_mins(30),
        waiting_max: 100,
        queues_per_user_max: 1,
    };

    struct Case {
        room: MemoryRoom,
        queue_counts: QueueCounts,
        ids: IdSource,
        now: Timestamp,
    }

    impl Case {
        /// Users 1 to `count` wait.
        fn new(count: u128) -> Case {
            let hasher = DefaultHashBuilder::default();
            let event_id = Uuid::nil();
            let totals =
                RoomTotals { room: 1, event_id, last_number: 0, admitted: 0, left: 0, logged: 0 };
            let mut case = Case {
                room: MemoryRoom::empty(totals, hasher.clone()),
                queue_counts: QueueCounts::new(hasher),
                ids: IdSource::from_system_randomness(Clock::System),
                now: Timestamp::from_second(1_800_000_000).unwrap(),
            };
            (1..=count).for_each(|user| case.come(user));
            case
        }

        fn request(&self, user: u128) -> RoomRequest {
            RoomRequest { event_id: Uuid::nil(), user_id: Uuid::from_u128(user), now: self.now }
        }

        fn come(&mut self, user: u128) {
            let (request, queue_counts, ids) = (self.request(user), &self.queue_counts, &self.ids);
            let context = RoomContext { queue_counts, ids, is_accepting: true };
            let answer = self.room.check(request, &SHUT, &context).unwrap();
            assert!(matches!(answer.0.status, UserStatus::Waiting(_)));
        }

        fn leave(&mut self, user: u128) {
            assert!(self.room.leave(self.request(user), &self.queue_counts));
        }

        /// Draws the reverse order of arrivals up to `last_number`, while something happens.
        fn draw(&mut self, last_number: i64, meanwhile: impl FnOnce(&mut Case)) -> usize {
            let mut copied = self.room.draw_begin();
            while self.room.draw_copy(&mut copied, 2) {}
            meanwhile(self);
            let drawn =
                (1..=100).map(|user| (Uuid::from_u128(user), -i64::try_from(user).unwrap()));
            let new =
                copied.join_line(&drawn.collect(), last_number, DefaultHashBuilder::default());
            self.room.draw_end(new).1.len()
        }

        fn line(&self) -> Vec<u128> {
            self.room.line.behind(None).map(|entry| entry.user_id.as_u128()).collect()
        }
    }

    #[test]
    fn what_happens_while_the_new_line_is_made_is_not_lost() {
        let mut case = Case::new(7);
        let written = case.draw(6, |case| {
            case.now += Duration::from_mins(1);
            case.leave(2);
            case.leave(4);
            case.come(4);
            case.come(8);
            case.come(9);
            case.leave(9);
            let context = RoomContext {
                queue_counts: &case.queue_counts,
                ids: &case.ids,
                is_accepting: true,
            };
            let one = AdmissionRules { admission: AdmissionState::Open, threshold: 1, ..SHUT };
            assert_eq!(case.room.admit(&one, case.now, 1, &context).len(), 1);
            case.room.poll(case.request(5), &SHUT);
        });
        assert_eq!(written, 6, "also of those who have gone: that changes nothing on disk");
        assert_eq!(case.line(), [6, 5, 3, 7, 4, 8]);
        let sweep = SweepRequest {
            unseen_since: case.now - Duration::from_mins(1),
            now: case.now,
            count_max: 10,
            scanned_max: 10,
        };
        case.room.sweep(&sweep, None, &case.queue_counts);
        assert_eq!(case.line(), [5, 4, 8], "who was seen meanwhile was seen");
    }

    #[test]
    fn a_room_that_was_cleared_meanwhile_stays_cleared() {
        let mut case = Case::new(5);
        let written = case.draw(5, |case| {
            let (_, line) = case.room.clear(case.now, 2);
            line.behind(None).for_each(|entry| case.queue_counts.remove(entry.user_id));
            case.come(3);
        });
        assert_eq!((written, case.line()), (0, vec![3]));
        case.draw(5, |_| ());
        assert_eq!(case.line(), [3]);
        assert!(case.room.draw_progress.touched.is_none(), "nothing is noted after it");
    }
}
