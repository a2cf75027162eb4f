//! The clock: the system's, or one that a test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

/// Where the time comes from. Cloning a manual clock gives another handle on the same time.
#[derive(Clone, Debug)]
pub enum Clock {
    System,
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands still at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: Timestamp) -> Clock {
        Clock::Manual(Arc::new(AtomicI64::new(start.as_microsecond())))
    }

    /// The present moment, in whole microseconds: what both databases can store without loss.
    #[expect(clippy::disallowed_methods, reason = "this is the one home of the system time")]
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System => truncate_to_micros(Timestamp::now()),
            Clock::Manual(micros) => Timestamp::from_microsecond(micros.load(Ordering::SeqCst))
                .expect("a manual clock only holds times that jiff made"),
        }
    }

    /// Moves a manual clock forward. The system clock cannot be moved; asking is a bug in a test.
    pub fn advance(&self, by: Duration) {
        match self {
            Clock::System => panic!("only a manual clock can be moved"),
            Clock::Manual(micros) => {
                let by =
                    i64::try_from(by.as_micros()).expect("a test moves time by centuries at most");
                micros.fetch_add(by, Ordering::SeqCst);
            }
        }
    }
}

/// Drops what is below a microsecond, so that a stored time equals the one it was made from.
pub fn truncate_to_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond())
        .expect("fewer digits of a valid time are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let same = clock.clone();
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_secs(90));
        assert_eq!(same.now(), Timestamp::from_second(90).unwrap());
    }

    #[test]
    fn the_present_has_no_fraction_of_a_microsecond() {
        let now = Clock::System.now();
        assert_eq!(now.as_nanosecond() % 1_000, 0);
    }
}
