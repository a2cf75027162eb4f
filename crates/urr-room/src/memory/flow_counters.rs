//! Admissions, departures and ends of slots per second.

use crate::LinePace;
use crate::slot_log::{SlotChange, SlotLogEntry};

/// More than the reported seconds, because the current one is counted too.
pub const SECONDS_KEPT: usize = 64;

/// The last seconds. A clock that is set back a little finds its seconds again, so that no second
/// gets its rate twice.
pub struct PaceHistory {
    seconds: [SecondCounts; SECONDS_KEPT],
}

#[derive(Clone, Copy, Default)]
pub struct SecondCounts {
    second: i64,
    /// All admissions, those from the line, and departures from the line.
    pub let_in: u32,
    pub admitted: u32,
    pub left: u32,
    /// Slots that ended.
    pub ended: u32,
}

impl PaceHistory {
    pub fn new() -> PaceHistory {
        PaceHistory { seconds: [SecondCounts::default(); SECONDS_KEPT] }
    }

    /// How many more users may be admitted within this second.
    pub fn rate_left(&self, second: i64, count_max: u32) -> u32 {
        count_max.saturating_sub(self.counts(second).let_in)
    }

    /// `active` is how many slots are in use now.
    pub fn pace(&self, now_second: i64, active: u32) -> LinePace {
        let now = self.counts(now_second);
        let in_use = active.saturating_add(now.ended).saturating_sub(now.let_in);
        let mut pace = LinePace { in_use, ..LinePace::default() };
        for ago in (1..=LinePace::SECONDS).rev() {
            let counted = self.counts(now_second - i64::try_from(ago).expect("few"));
            pace.admitted.push(counted.admitted);
            pace.left.push(counted.left);
            pace.let_in.push(counted.let_in);
            pace.ended.push(counted.ended);
        }
        pace
    }

    fn counts(&self, second: i64) -> SecondCounts {
        let kept = self.seconds[index(second)];
        if kept.second == second { kept } else { SecondCounts::default() }
    }

    /// Counts what the log says of a second that is still kept: a restart must not circumvent the
    /// rate, and must not make the line look slower than it was.
    pub fn restore(&mut self, logged: &SlotLogEntry) {
        let counts = self.at(logged.at.as_second());
        match logged.change {
            SlotChange::Admitted { number, .. } => {
                counts.let_in += 1;
                counts.admitted += u32::from(number.is_some());
            }
            SlotChange::Ended => counts.ended += 1,
            SlotChange::Cleared => {}
        }
    }

    /// The counts of a second, to be raised.
    pub fn at(&mut self, second: i64) -> &mut SecondCounts {
        let counted = &mut self.seconds[index(second)];
        if counted.second != second {
            *counted = SecondCounts { second, ..SecondCounts::default() };
        }
        counted
    }
}

fn index(second: i64) -> usize {
    usize::try_from(second.rem_euclid(i64::try_from(SECONDS_KEPT).expect("few")))
        .expect("it is positive")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_has_its_own_rate_also_when_the_clock_is_set_back() {
        let mut recent = PaceHistory::new();
        (0..3).for_each(|_| recent.at(100).let_in += 1);
        let left = |recent: &PaceHistory, second| recent.rate_left(second, 5);
        assert_eq!((left(&recent, 100), recent.rate_left(100, 2), left(&recent, 101)), (2, 0, 5));
        recent.at(130).let_in += 1;
        assert_eq!((left(&recent, 130), left(&recent, 100)), (4, 2));
        recent.at(164).let_in += 1;
        assert_eq!(left(&recent, 100), 5, "this long ago it is forgotten");
    }

    #[test]
    fn only_whole_seconds_are_told_and_old_ones_are_forgotten() {
        let mut recent = PaceHistory::new();
        recent.at(1_000).admitted += 1;
        recent.at(1_059).admitted += 1;
        recent.at(1_059).left += 1;
        recent.at(1_060).left += 1;
        let pace = recent.pace(1_060, 0);
        assert_eq!((pace.admitted[0], pace.admitted[59], pace.left[59]), (1, 1, 1));
        assert_eq!(pace.left.iter().sum::<u32>(), 1, "the running second is not told");
        let pace = recent.pace(1_061, 0);
        assert_eq!(pace.admitted.iter().sum::<u32>(), 1);
        assert_eq!(pace.left[58..], [1, 1]);
        recent.at(1_064).admitted += 1;
        assert_eq!(recent.pace(1_065, 0).admitted.iter().sum::<u32>(), 2);
        assert_eq!(recent.pace(9_999, 0).admitted, [0; LinePace::SECONDS]);
    }
    #[test]
    fn the_slots_in_use_are_those_at_the_end_of_the_last_whole_second() {
        let mut recent = PaceHistory::new();
        recent.at(1_059).ended += 4;
        recent.at(1_060).ended += 2;
        recent.at(1_060).let_in += 5;
        let pace = recent.pace(1_060, 10);
        assert_eq!((pace.ended[59], pace.in_use), (4, 7));
    }
}
