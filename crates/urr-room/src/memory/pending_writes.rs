//! The changes of a room that are not on disk yet.

use std::collections::VecDeque;

/// The change that must be on disk before the answer.
#[derive(Clone, Copy)]
pub enum Durability {
    Nothing,
    Arrival(i64),
    Admission(u64),
}

/// Arrivals and admissions are numbered, so it is enough to know the last ones of each batch.
pub struct PendingWrites {
    /// Everything up to here is on disk.
    written: WrittenUpTo,
    /// Oldest first. There are few: one batch is written while another is filled.
    batches: VecDeque<(u64, WrittenUpTo)>,
}

#[derive(Clone, Copy, Default)]
struct WrittenUpTo {
    arrival: i64,
    admission: u64,
}

impl PendingWrites {
    pub fn new(last_arrival: i64) -> PendingWrites {
        let written = WrittenUpTo { arrival: last_arrival, admission: 0 };
        PendingWrites { written, batches: VecDeque::new() }
    }

    /// The batch holds everything up to these.
    pub fn note(&mut self, batch: u64, arrival: i64, admission: u64) {
        let reach = WrittenUpTo { arrival, admission };
        match self.batches.back_mut() {
            Some((last, last_reach)) if *last == batch => *last_reach = reach,
            _ => self.batches.push_back((batch, reach)),
        }
    }

    /// The batch that must be on disk before the answer; 0 if it is.
    pub fn batch_of(&mut self, durability: Durability, durable: u64) -> u64 {
        self.forget(durable);
        let holds = |reach: &WrittenUpTo| match durability {
            Durability::Nothing => true,
            Durability::Arrival(arrival) => reach.arrival >= arrival,
            Durability::Admission(admission) => reach.admission >= admission,
        };
        if holds(&self.written) {
            return 0;
        }
        let found = self.batches.iter().find(|(_, reach)| holds(reach));
        found.expect("what has happened was handed to the journal").0
    }

    /// The last arrival that is on disk.
    pub fn last_written(&mut self, durable: u64) -> i64 {
        self.forget(durable);
        self.written.arrival
    }

    /// Whether everything is on disk.
    pub fn is_empty(&mut self, durable: u64) -> bool {
        self.forget(durable);
        self.batches.is_empty()
    }

    fn forget(&mut self, durable: u64) {
        while let Some((_, reach)) = self.batches.pop_front_if(|(batch, _)| *batch <= durable) {
            self.written = reach;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_awaited_until_its_own_batch_is_on_disk() {
        let mut pending_writes = PendingWrites::new(10);
        pending_writes.note(4, 11, 0);
        pending_writes.note(4, 12, 1);
        pending_writes.note(6, 12, 2);
        pending_writes.note(7, 13, 2);
        assert_eq!(pending_writes.batch_of(Durability::Arrival(10), 3), 0);
        assert_eq!(pending_writes.batch_of(Durability::Arrival(12), 3), 4);
        assert_eq!(pending_writes.batch_of(Durability::Arrival(13), 3), 7);
        assert_eq!(pending_writes.batch_of(Durability::Admission(2), 3), 6);
        assert_eq!(pending_writes.last_written(3), 10);
        assert_eq!(pending_writes.last_written(5), 12);
        assert_eq!(pending_writes.batch_of(Durability::Admission(1), 5), 0);
        assert_eq!(pending_writes.batch_of(Durability::Admission(2), 5), 6);
        assert_eq!(pending_writes.batch_of(Durability::Arrival(13), 7), 0);
        assert_eq!(pending_writes.last_written(7), 13);
    }
}
