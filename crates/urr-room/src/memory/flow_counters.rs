//! Admissions and departures per second.

use crate::LinePace;

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
}

impl PaceHistory {
    pub fn new() -> PaceHistory {
        PaceHistory { seconds: [SecondCounts::default(); SECONDS_KEPT] }
    }

    /// How many more users may be admitted within this second.
    pub fn rate_left(&self, second: i64, count_max: u32) -> u32 {
        let kept = self.seconds[index(second)];
        let used = if kept.second == second { kept.let_in } else { 0 };
        count_max.saturating_sub(used)
    }

    pub fn pace(&self, now_second: i64) -> LinePace {
        let mut pace = LinePace::default();
        for ago in (1..=LinePace::SECONDS).rev() {
            let second = now_second - i64::try_from(ago).expect("few");
            let kept = self.seconds[index(second)];
            let counted = if kept.second == second { kept } else { SecondCounts::default() };
            pace.admitted.push(counted.admitted);
            pace.left.push(counted.left);
            pace.let_in.push(counted.let_in);
        }
        pace
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
        let pace = recent.pace(1_060);
        assert_eq!((pace.admitted[0], pace.admitted[59], pace.left[59]), (1, 1, 1));
        assert_eq!(pace.left.iter().sum::<u32>(), 1, "the running second is not told");
        let pace = recent.pace(1_061);
        assert_eq!(pace.admitted.iter().sum::<u32>(), 1);
        assert_eq!(pace.left[58..], [1, 1]);
        recent.at(1_064).admitted += 1;
        assert_eq!(recent.pace(1_065).admitted.iter().sum::<u32>(), 2);
        assert_eq!(recent.pace(9_999).admitted, [0; LinePace::SECONDS]);
    }
}
