//! How soon a client polls again (Q3): the nearer to the front, the sooner.

use std::time::Duration;

/// For users who have a slot or are not in the line.
pub const NOT_IN_LINE: Duration = Duration::from_secs(3);
/// For sold-out events.
pub const SOLD_OUT: Duration = Duration::from_secs(60);

/// The pause for a position in the line, without jitter.
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

/// Adds up to two fifths to a pause, so that users who joined together do not poll together. It never
/// shortens the pause, because the rate limit allows for polls as told. `chance` is any number.
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
