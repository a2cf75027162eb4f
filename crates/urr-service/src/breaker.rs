//! The circuit breaker: stops calling a service that keeps failing, and probes whether it is back.
//!
//! Only failures of infrastructure count: no connection, no answer in time, an answer of 5xx. A
//! refusal (4xx, or a 503 that says when to come back) is the service at work; were it counted, one
//! user with bad requests could close the service to everybody (M-12).

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use urr_kernel::Clock;

const WINDOW: usize = 20;
const CALLS_MIN: usize = 10;
/// Users of a service that is back find it back within seconds.
const OPEN_FOR: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;
/// When to come back while others probe.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Breaker {
    clock: Clock,
    circuit: Mutex<BreakerCircuit>,
}

#[derive(Debug)]
struct BreakerCircuit {
    state: CircuitState,
    /// Counts the changes of state: a call that was admitted in an older state is not counted.
    generation: u64,
}

#[derive(Debug)]
enum CircuitState {
    /// Calls pass. The window holds the last outcomes; true is a failure.
    Closed { window: VecDeque<bool> },
    /// Calls are refused.
    Open { since: Timestamp },
    /// A few calls pass, to see whether the service is back.
    HalfOpen { started: u32, succeeded: u32 },
}

/// What a breaker does with calls at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    HalfOpen,
    Open,
}

/// How a call went, for the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Success,
    Failure,
    /// The call tells nothing about the service, for example because the client went away.
    Nothing,
}

/// The breaker is open.
#[derive(Debug, PartialEq, Eq)]
pub struct BreakerOpen {
    pub retry_after: Duration,
}

/// The right to make one call. If it is dropped without an outcome, as when the caller is cancelled,
/// the call is not counted.
#[derive(Debug)]
pub struct CallPermit<'a> {
    breaker: &'a Breaker,
    generation: u64,
    outcome: CallOutcome,
}

impl Breaker {
    pub fn new(clock: Clock) -> Breaker {
        let state = CircuitState::Closed { window: VecDeque::with_capacity(WINDOW) };
        Breaker { clock, circuit: Mutex::new(BreakerCircuit { state, generation: 0 }) }
    }

    /// Lets a call pass, or says when to come back.
    pub fn admit(&self) -> Result<CallPermit<'_>, BreakerOpen> {
        let mut circuit = self.lock();
        circuit.admit(&self.clock)?;
        let generation = circuit.generation;
        Ok(CallPermit { breaker: self, generation, outcome: CallOutcome::Nothing })
    }

    /// Lets a call pass whose request has not arrived yet. It is never a probe: whoever sends it
    /// decides how long it takes.
    pub fn admit_streamed(&self) -> Result<CallPermit<'_>, BreakerOpen> {
        match self.state() {
            BreakerState::Closed => self.admit(),
            BreakerState::HalfOpen | BreakerState::Open => {
                Err(BreakerOpen { retry_after: PROBE_PAUSE })
            }
        }
    }

    pub fn state(&self) -> BreakerState {
        match self.lock().state {
            CircuitState::Closed { .. } => BreakerState::Closed,
            CircuitState::HalfOpen { .. } => BreakerState::HalfOpen,
            CircuitState::Open { .. } => BreakerState::Open,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BreakerCircuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallPermit<'_> {
    pub fn settle(mut self, outcome: CallOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        let mut circuit = self.breaker.lock();
        if circuit.generation == self.generation {
            circuit.learn(self.outcome, &self.breaker.clock);
        }
    }
}

impl BreakerCircuit {
    fn enter(&mut self, state: CircuitState) {
        self.state = state;
        self.generation += 1;
    }

    fn admit(&mut self, clock: &Clock) -> Result<(), BreakerOpen> {
        if let CircuitState::Open { since } = self.state {
            let now = clock.now();
            // A clock that was set back must not keep the breaker open for hours.
            let open_for = Duration::try_from(now.duration_since(since)).unwrap_or(OPEN_FOR);
            let left = OPEN_FOR.saturating_sub(open_for);
            if !left.is_zero() {
                return Err(BreakerOpen { retry_after: left });
            }
            self.enter(CircuitState::HalfOpen { started: 0, succeeded: 0 });
        }
        match &mut self.state {
            CircuitState::HalfOpen { started: PROBES, .. } => {
                Err(BreakerOpen { retry_after: PROBE_PAUSE })
            }
            CircuitState::HalfOpen { started, .. } => {
                *started += 1;
                Ok(())
            }
            CircuitState::Closed { .. } | CircuitState::Open { .. } => Ok(()),
        }
    }

    fn learn(&mut self, outcome: CallOutcome, clock: &Clock) {
        match (&mut self.state, outcome) {
            (CircuitState::Closed { window }, CallOutcome::Success | CallOutcome::Failure) => {
                if window.len() == WINDOW {
                    window.pop_front();
                }
                window.push_back(outcome == CallOutcome::Failure);
                let failures = window.iter().filter(|failed| **failed).count();
                if window.len() >= CALLS_MIN && failures * 2 >= window.len() {
                    self.enter(CircuitState::Open { since: clock.now() });
                }
            }
            (CircuitState::HalfOpen { succeeded, .. }, CallOutcome::Success) => {
                *succeeded += 1;
                if *succeeded == PROBES {
                    self.enter(CircuitState::Closed { window: VecDeque::with_capacity(WINDOW) });
                }
            }
            (CircuitState::HalfOpen { .. }, CallOutcome::Failure) => {
                self.enter(CircuitState::Open { since: clock.now() });
            }
            (CircuitState::HalfOpen { started, .. }, CallOutcome::Nothing) => *started -= 1,
            (CircuitState::Closed { .. }, CallOutcome::Nothing)
            | (CircuitState::Open { .. }, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> (Breaker, Clock) {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        (Breaker::new(clock.clone()), clock)
    }

    fn calls(breaker: &Breaker, verdicts: &str) {
        for outcome in verdicts.chars() {
            let permit = breaker.admit().unwrap();
            permit.settle(match outcome {
                '+' => CallOutcome::Success,
                '-' => CallOutcome::Failure,
                _ => CallOutcome::Nothing,
            });
        }
    }

    #[test]
    fn it_opens_when_half_of_at_least_ten_calls_failed() {
        for (verdicts, open) in [
            ("---------", false),
            ("----------", true),
            ("+++++-----", true),
            ("++++++----", false),
            ("++++++++++----------", true),
            // The ten successes have left the window of twenty, nine failures are in it.
            ("++++++++++---------+++++++++++", false),
            ("??????????----", false),
        ] {
            let (breaker, _clock) = breaker();
            calls(&breaker, verdicts);
            assert_eq!(breaker.admit().is_err(), open, "{verdicts}");
        }
    }

    #[test]
    fn it_lets_three_probes_through_after_five_seconds() {
        let (breaker, clock) = breaker();
        calls(&breaker, "----------");
        clock.advance(Duration::from_secs(2));
        let open = breaker.admit().unwrap_err();
        assert_eq!(open.retry_after, Duration::from_secs(3));
        clock.advance(Duration::from_secs(3));
        let probes: Vec<_> = (0..3).map(|_| breaker.admit().unwrap()).collect();
        assert!(breaker.admit().is_err(), "three at most");
        for probe in probes {
            probe.settle(CallOutcome::Success);
        }
        calls(&breaker, "---------");
        assert!(breaker.admit().is_ok(), "closed, with a window that begins anew");
    }

    #[test]
    fn a_failed_probe_opens_it_again_for_as_long() {
        let (breaker, clock) = breaker();
        calls(&breaker, "----------");
        clock.advance(OPEN_FOR);
        calls(&breaker, "++-");
        let open = breaker.admit().unwrap_err();
        assert_eq!(open.retry_after, OPEN_FOR);
    }

    #[test]
    fn a_cancelled_probe_gives_its_place_back() {
        let (breaker, clock) = breaker();
        calls(&breaker, "----------");
        clock.advance(OPEN_FOR);
        for _ in 0..10 {
            drop(breaker.admit().unwrap());
        }
        calls(&breaker, "+++");
        assert!(matches!(breaker.lock().state, CircuitState::Closed { .. }));
    }

    /// Three requests that never arrive would otherwise be all the probes there are.
    #[test]
    fn a_request_that_has_not_arrived_is_no_probe() {
        let (breaker, clock) = breaker();
        assert!(breaker.admit_streamed().is_ok());
        calls(&breaker, "----------");
        clock.advance(OPEN_FOR);
        assert!(breaker.admit_streamed().is_err());
        let probe = breaker.admit().unwrap();
        assert!(breaker.admit_streamed().is_err(), "half open");
        probe.settle(CallOutcome::Success);
        calls(&breaker, "++");
        assert!(breaker.admit_streamed().is_ok(), "closed again");
    }

    #[test]
    fn a_call_from_before_has_no_say_in_what_follows() {
        let (breaker, clock) = breaker();
        let late = breaker.admit().unwrap();
        calls(&breaker, "----------");
        clock.advance(OPEN_FOR);
        calls(&breaker, "++");
        late.settle(CallOutcome::Failure);
        calls(&breaker, "+");
        assert!(matches!(breaker.lock().state, CircuitState::Closed { .. }));
    }

    #[test]
    fn a_clock_set_back_does_not_keep_it_open() {
        let (breaker, _clock) = breaker();
        let later = Timestamp::UNIX_EPOCH + Duration::from_secs(3_600);
        breaker.lock().enter(CircuitState::Open { since: later });
        assert!(breaker.admit().is_ok());
    }
}
