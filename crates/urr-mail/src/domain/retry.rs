//! What happens to a mail after an attempt.

use std::time::Duration;

use urr_kernel::Timestamp;

use super::mail::MailStatus;

/// A mail is given up after this many attempts, which take more than half a day.
pub const ATTEMPTS_MAX: u32 = 12;

const PAUSE_MIN: Duration = Duration::from_secs(30);
const PAUSE_MAX: Duration = Duration::from_secs(6 * 60 * 60);

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Sent,
    /// This address will never accept it.
    Refused {
        code: String,
    },
    /// It did not work this time. The server may have accepted it even so.
    Unclear {
        code: String,
    },
    /// The server cannot be reached, so nothing was sent. That is no fault of the mail.
    NotReached {
        code: String,
    },
}

/// What is stored about the attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryDecision {
    Sent,
    /// It is not tried again.
    Ended {
        status: MailStatus,
        error: String,
    },
    Later {
        due_at: Timestamp,
        error: String,
    },
    /// It was no attempt, and the mail is due as before.
    Unsent {
        error: String,
    },
}

/// `attempts` includes the one that has just ended.
pub fn decide_delivery(
    outcome: DeliveryOutcome,
    attempts: u32,
    now: Timestamp,
) -> DeliveryDecision {
    match outcome {
        DeliveryOutcome::Sent => DeliveryDecision::Sent,
        DeliveryOutcome::Refused { code } => failed(code),
        DeliveryOutcome::NotReached { code } => DeliveryDecision::Unsent { error: code },
        DeliveryOutcome::Unclear { code } if attempts >= ATTEMPTS_MAX => failed(code),
        DeliveryOutcome::Unclear { code } => {
            DeliveryDecision::Later { due_at: now + pause(attempts), error: code }
        }
    }
}

/// The mail has failed.
pub fn failed(error: String) -> DeliveryDecision {
    DeliveryDecision::Ended { status: MailStatus::Failed, error }
}

/// Doubles with each attempt.
fn pause(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unclear() -> DeliveryOutcome {
        DeliveryOutcome::Unclear { code: "451".to_owned() }
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
        let later = DeliveryDecision::Later { due_at, error: "451".to_owned() };
        assert_eq!(decide_delivery(unclear(), 1, now), later);
        assert!(matches!(
            decide_delivery(unclear(), ATTEMPTS_MAX - 1, now),
            DeliveryDecision::Later { .. }
        ));
        let failed = |code: &str| failed(code.to_owned());
        assert_eq!(decide_delivery(unclear(), ATTEMPTS_MAX, now), failed("451"));
        let refused = DeliveryOutcome::Refused { code: "550".to_owned() };
        assert_eq!(decide_delivery(refused, 1, now), failed("550"));
        assert_eq!(
            decide_delivery(DeliveryOutcome::Sent, ATTEMPTS_MAX, now),
            DeliveryDecision::Sent
        );
    }
}
