//! How soon someone should ask again (Q3): the nearer the front, the sooner.

use std::time::Duration;

/// Who is in, and who is not in line at all.
pub const NOT_IN_LINE: Duration = Duration::from_secs(3);
/// When there is nothing to be had.
pub const SOLD_OUT: Duration = Duration::from_secs(60);

/// The pause for a position in the line, before it is spread.
pub fn pause_at(position: u32) -> Duration {
    Duration::from_secs(match position {
        0 => 3,
        1..=1_000 => 1,
        1_001..=5_000 => 5,
        5_001..=10_000 => 10,
        10_001..=100_000 => 30,
        _ => 60,
    })
}

/// The pause and up to two fifths more, so that those who came together do not ask together. Never
/// less: who waits for two events near their fronts must not be refused for asking as told.
/// `chance` is any number.
pub fn spread(pause: Duration, chance: u32) -> Duration {
    let millis = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis + u64::from(chance) % (millis * 2 / 5 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_distance() {
        let steps = [
            (1, 1),
            (1_000, 1),
            (1_001, 5),
            (5_000, 5),
            (5_001, 10),
            (10_000, 10),
            (10_001, 30),
            (100_000, 30),
            (100_001, 60),
            (u32::MAX, 60),
        ];
        for (position, seconds) in steps {
            assert_eq!(pause_at(position), Duration::from_secs(seconds), "{position}");
        }
    }

    #[test]
    fn a_spread_pause_is_two_fifths_longer_at_most_and_not_always_the_same() {
        let pause = Duration::from_secs(10);
        let spreads: Vec<_> = (0..5_000).map(|chance| spread(pause, chance)).collect();
        assert_eq!(spreads.iter().min(), Some(&pause));
        assert_eq!(spreads.iter().max(), Some(&Duration::from_secs(14)));
        assert_eq!(spread(Duration::from_millis(2), 7), Duration::from_millis(2));
    }
}
