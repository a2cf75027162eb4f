//! The number of solved proofs and failures per minute in this process.
//!
//! Challenges are not counted: whoever asks for them has done no work, and must not make it harder for
//! others.

use std::sync::Mutex;

use urr_kernel::Timestamp;

use super::proof_of_work::Pressure;

/// Counts by whole minutes. The result is the busier of this minute and the last one, so that it
/// does not drop at the start of a minute.
#[derive(Debug, Default)]
pub struct PressureCounter(Mutex<Minutes>);

#[derive(Clone, Copy, Debug, Default)]
struct Minutes {
    minute: i64,
    now: Pressure,
    before: Pressure,
}

impl Minutes {
    fn move_to(&mut self, minute: i64) {
        match minute - self.minute {
            0 => return,
            1 => self.before = self.now,
            _ => self.before = Pressure::default(),
        }
        self.minute = minute;
        self.now = Pressure::default();
    }

    fn busier(&self) -> Pressure {
        Pressure {
            proofs: self.now.proofs.max(self.before.proofs),
            failures: self.now.failures.max(self.before.failures),
        }
    }
}

impl PressureCounter {
    /// Counts a solved proof and returns the pressure.
    pub fn count_proof(&self, now: Timestamp) -> Pressure {
        self.count(now, |pressure| pressure.proofs = pressure.proofs.saturating_add(1))
    }

    pub fn count_failure(&self, now: Timestamp) {
        self.count(now, |pressure| pressure.failures = pressure.failures.saturating_add(1));
    }

    pub fn pressure(&self, now: Timestamp) -> Pressure {
        self.count(now, |_| {})
    }

    fn count(&self, now: Timestamp, add: impl FnOnce(&mut Pressure)) -> Pressure {
        let mut minutes = self.0.lock().expect("nothing panics while it counts");
        minutes.move_to(now.as_second().div_euclid(60));
        add(&mut minutes.now);
        minutes.busier()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_busier_of_two_minutes_counts_and_older_ones_are_forgotten() {
        let counter = PressureCounter::default();
        for _ in 0..5 {
            counter.count_proof(at(0));
        }
        counter.count_failure(at(59));
        let later = counter.count_proof(at(60));
        assert_eq!(later, Pressure { proofs: 5, failures: 1 });
        let much_later = counter.count_proof(at(180));
        assert_eq!(much_later, Pressure { proofs: 1, failures: 0 });
        let next = counter.count_proof(at(240));
        assert_eq!(next, Pressure { proofs: 1, failures: 0 });
    }

    #[test]
    fn a_clock_that_jumps_back_starts_anew() {
        let counter = PressureCounter::default();
        counter.count_proof(at(600));
        counter.count_proof(at(600));
        assert_eq!(counter.count_proof(at(0)).proofs, 1);
    }
}
