//! New numbers for those who were drawn. To line a million people up anew takes too long for the
//! lock: they are copied in parts, the new line is made beside the room, and under the lock it only
//! gets what has changed meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use tokio::sync::Mutex;
use urr_kernel::Uuid;

use super::super::line::{Entry, Line};
use super::{Key, Room};

/// Everybody's number from a draw.
pub type Drawn = HashMap<Uuid, i64, DefaultHashBuilder>;

/// The line as it was copied, in order.
pub struct Copied {
    /// The room's in the journal: another one after clearing.
    room: i64,
    entries: Vec<Entry>,
}

/// A line with numbers from a draw.
pub struct NewLine {
    room: i64,
    line: Line,
    /// The last one who was copied. Who comes later stands behind.
    last: Option<Key>,
    /// What is to be journalled: arrival and number.
    pub written: Vec<(i64, i64)>,
}

impl Room {
    /// To be held from the first copy until everything is journalled.
    pub fn turn_to_draw(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.drawing.turn)
    }

    /// From now on it is noted who is seen or goes.
    pub fn draw_begin(&mut self) -> Copied {
        self.drawing.touched = Some(Vec::new());
        Copied { room: self.number, entries: Vec::new() }
    }

    /// Copies the next `count_max` of the line. False if there are no more.
    pub fn draw_copy(&self, copied: &mut Copied, count_max: usize) -> bool {
        let last = copied.entries.last().map(Entry::key);
        let before = copied.entries.len();
        copied.entries.extend(self.line.behind(last).take(count_max));
        copied.entries.len() - before == count_max
    }

    /// Goes on with the new line. Returns what is to be journalled, and the old line: to take it
    /// apart takes too long for the lock.
    pub fn draw_end(&mut self, new: NewLine) -> (i64, Vec<(i64, i64)>, Line) {
        let touched = self.drawing.touched.take().unwrap_or_default();
        let NewLine { room, mut line, last, written } = new;
        if room != self.number {
            // Cleared meanwhile: all who were copied are gone.
            return (self.number, Vec::new(), line);
        }
        for user_id in touched {
            let present = self.line.find(user_id).map(|at| self.line.entry(at));
            match (present, line.find(user_id)) {
                (Some(entry), Some(at)) if Some(entry.key()) <= last => {
                    line.see(at, entry.seen_at_us);
                }
                // They have gone, and perhaps come again.
                (_, Some(_)) => drop(line.remove(user_id)),
                (_, None) => {}
            }
        }
        self.line.behind(last).for_each(|entry| line.push(*entry));
        (self.number, written, std::mem::replace(&mut self.line, line))
    }

    pub(super) fn touch(&mut self, user_id: Uuid) {
        if let Some(touched) = &mut self.drawing.touched {
            touched.push(user_id);
        }
    }
}

impl Copied {
    /// Lines everybody up with the numbers they have drawn; only those with an arrival's number up
    /// to `last_number` get one.
    pub fn line_up(
        mut self,
        drawn: &Drawn,
        last_number: i64,
        hasher: DefaultHashBuilder,
    ) -> NewLine {
        let last = self.entries.last().map(Entry::key);
        let mut written = Vec::with_capacity(drawn.len());
        for entry in
            self.entries.iter_mut().filter(|entry| (1..=last_number).contains(&entry.number))
        {
            let Some(number) = drawn.get(&entry.user_id) else { continue };
            debug_assert!(*number < 0, "a number from the draw is below zero");
            entry.number = *number;
            written.push((entry.arrival, *number));
        }
        self.entries.sort_unstable_by_key(Entry::key);
        NewLine { room: self.room, line: Line::of(self.entries, hasher), last, written }
    }
}
