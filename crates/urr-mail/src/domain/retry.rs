//! What becomes of a mail after an attempt.

use std::time::Duration;

use urr_kernel::Timestamp;

/// After so many attempts, within more than half a day, nobody tries again by themselves.
pub const ATTEMPTS_MAX: u32 = 12;

const PAUSE_MIN: Duration = Duration::from_secs(30);
const PAUSE_MAX: Duration = Duration::from_secs(6 * 60 * 60);

/// What the sender says of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Sent,
    /// This address will never take it.
    Refused {
        code: String,
    },
    /// It did not work now. The server may even have it.
    Unclear {
        code: String,
    },
}

/// What is to be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Sent,
    Failed { error: String },
    Later { due_at: Timestamp, error: String },
}

/// `attempts` is with the one that has just ended.
pub fn decide(outcome: Outcome, attempts: u32, now: Timestamp) -> Verdict {
    match outcome {
        Outcome::Sent => Verdict::Sent,
        Outcome::Refused { code } => Verdict::Failed { error: code },
        Outcome::Unclear { code } if attempts >= ATTEMPTS_MAX => Verdict::Failed { error: code },
        Outcome::Unclear { code } => Verdict::Later { due_at: now + pause(attempts), error: code },
    }
}

/// Twice as long each time.
fn pause(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unclear() -> Outcome {
        Outcome::Unclear { code: "451".to_owned() }
    }

    #[test]
    fn pauses_double_from_half_a_minute_to_six_hours() {
        let minutes: Vec<u64> = (1..ATTEMPTS_MAX).map(|n| pause(n).as_secs() / 30).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 720]);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }

    #[test]
    fn the_last_attempt_is_the_last_and_a_refusal_needs_only_one() {
        let now = Timestamp::UNIX_EPOCH;
        let due_at = now + Duration::from_secs(30);
        let later = Verdict::Later { due_at, error: "451".to_owned() };
        assert_eq!(decide(unclear(), 1, now), later);
        assert!(matches!(decide(unclear(), ATTEMPTS_MAX - 1, now), Verdict::Later { .. }));
        let failed = |code: &str| Verdict::Failed { error: code.to_owned() };
        assert_eq!(decide(unclear(), ATTEMPTS_MAX, now), failed("451"));
        let refused = Outcome::Refused { code: "550".to_owned() };
        assert_eq!(decide(refused, 1, now), failed("550"));
        assert_eq!(decide(Outcome::Sent, ATTEMPTS_MAX, now), Verdict::Sent);
    }
}
