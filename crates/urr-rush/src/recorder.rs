//! Collects what happens to the fans, second by second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::fairness::QueueVisit;
use crate::histogram::Histogram;

/// What fans do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Enters the waiting room.
    Check,
    Poll,
    Map,
    Reserve,
    Pay,
    Cancel,
    /// Leaves the waiting room.
    Leave,
    /// Reads the crowd document.
    Crowd,
    /// Lists tickets for sale, or looks for some.
    Transfer,
    /// What programs do against the rules.
    Program,
}

impl Operation {
    pub const ALL: [Operation; 10] = [
        Operation::Check,
        Operation::Poll,
        Operation::Map,
        Operation::Reserve,
        Operation::Pay,
        Operation::Cancel,
        Operation::Leave,
        Operation::Crowd,
        Operation::Transfer,
        Operation::Program,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Operation::Check => "check",
            Operation::Poll => "poll",
            Operation::Map => "map",
            Operation::Reserve => "reserve",
            Operation::Pay => "pay",
            Operation::Cancel => "cancel",
            Operation::Leave => "leave",
            Operation::Crowd => "crowd",
            Operation::Transfer => "transfer",
            Operation::Program => "program",
        }
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    Done,
    /// A refusal that belongs to a sale, for example a seat that someone else was quicker to take.
    Refused,
    /// Too many requests, or too much work for the moment: the fan was asked to wait.
    Deferred,
    /// Anything that should not happen.
    Failed(String),
}

/// How a fan's visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FanOutcome {
    Bought,
    BoughtAndCancelled,
    /// Bought from another fan.
    BoughtTransfer,
    /// All seats were sold, before or after the fan was admitted.
    SoldOut,
    ChangedMind,
    /// The fan could not pay, for example because the hold expired.
    NotPaid,
    /// A program was refused.
    ProgramRefused,
    /// A program got something that it must not get.
    ProgramSucceeded,
    Failed,
    /// The rush ended when it was sold out. The fan waited in the line or had not come.
    WaitedInVain,
    /// The rush ended first.
    Unfinished,
}

impl FanOutcome {
    pub fn name(self) -> &'static str {
        match self {
            FanOutcome::Bought => "bought",
            FanOutcome::BoughtAndCancelled => "bought and cancelled",
            FanOutcome::BoughtTransfer => "bought from another fan",
            FanOutcome::SoldOut => "sold out",
            FanOutcome::ChangedMind => "changed their mind",
            FanOutcome::NotPaid => "not paid",
            FanOutcome::ProgramRefused => "programs refused",
            FanOutcome::ProgramSucceeded => "programs that succeeded",
            FanOutcome::Failed => "failed",
            FanOutcome::WaitedInVain => "waiting when it was sold out",
            FanOutcome::Unfinished => "unfinished",
        }
    }
}

/// What happened in one second.
#[derive(Clone, Debug, Default)]
pub struct SecondRecord {
    pub arrived: u32,
    pub admitted: u32,
    pub seats_sold: u32,
    pub deferred: u32,
    /// Requests of programs that were deferred.
    pub programs_deferred: u32,
    pub failed: u32,
    /// Those that failed, by what was said.
    pub failures: BTreeMap<String, u32>,
    /// What was paid, without what was paid back, in won.
    pub revenue: i64,
    /// Per operation, in the order of [`Operation::ALL`].
    pub latencies: [Histogram; Operation::ALL.len()],
}

/// Requests of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestCounts {
    pub done: u64,
    pub refused: u64,
    pub deferred: u64,
    pub failed: u64,
}

/// Everything so far.
#[derive(Clone, Debug, Default)]
pub struct Records {
    pub seconds: Vec<SecondRecord>,
    pub requests: [RequestCounts; Operation::ALL.len()],
    /// Failures by what was said, with an example.
    pub failures: BTreeMap<String, u64>,
    pub outcomes: BTreeMap<FanOutcome, u64>,
    pub visits: Vec<QueueVisit>,
    pub seats_sold: u64,
    /// In won.
    pub revenue: i64,
    /// Reservations of which a fan was told that they are paid, and that the fan did not cancel.
    pub told_paid: BTreeSet<String>,
}

/// Shared by all fans.
pub struct Recorder {
    started: Instant,
    records: Mutex<Records>,
    acting: AtomicUsize,
}

/// A fan who does more than wait, until it is dropped.
pub struct ActingFan<'a>(&'a AtomicUsize);

impl Drop for ActingFan<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Figures for the screen.
#[derive(Clone, Debug, Default)]
pub struct LiveFigures {
    pub elapsed: Duration,
    pub fans: usize,
    pub arrived: u64,
    pub finished: u64,
    pub admitted: u64,
    /// In the last full second.
    pub admitted_per_second: u32,
    pub seats_sold: u64,
    pub requests: u64,
    pub deferred: u64,
    pub failed: u64,
    /// Of the last ten seconds, by operation: name, median, 99 %.
    pub latencies: Vec<(&'static str, Duration, Duration)>,
    /// Of the waiting room, if it answered: waiting, inside, threshold.
    pub room: Option<(u64, u64, u64)>,
    /// Until nobody waits, if it goes on as in the last ten seconds.
    pub time_left: Option<Duration>,
}

const FAILURE_KINDS_MAX: usize = 50;
const RECENT_SECONDS: usize = 10;

impl Recorder {
    pub fn new(started: Instant) -> Recorder {
        Recorder { started, records: Mutex::default(), acting: AtomicUsize::new(0) }
    }

    /// A fan chooses, pays, cancels or trades from now on.
    pub fn act(&self) -> ActingFan<'_> {
        self.acting.fetch_add(1, Ordering::Relaxed);
        ActingFan(&self.acting)
    }

    /// How many fans do more than wait.
    pub fn acting(&self) -> usize {
        self.acting.load(Ordering::Relaxed)
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Records, usize)) {
        let second = usize::try_from(self.elapsed().as_secs()).unwrap_or(usize::MAX);
        let mut records = self.lock();
        if records.seconds.len() <= second {
            records.seconds.resize_with(second + 1, SecondRecord::default);
        }
        change(&mut records, second);
    }

    /// A request that a fan wanted to make at `wanted` has ended.
    pub fn request(&self, operation: Operation, wanted: Instant, end: &RequestEnd) {
        let latency = wanted.elapsed();
        let index = operation as usize;
        self.update(|records, second| {
            let counts = &mut records.requests[index];
            let recent = &mut records.seconds[second];
            match end {
                RequestEnd::Done => counts.done += 1,
                RequestEnd::Refused => counts.refused += 1,
                RequestEnd::Deferred => {
                    counts.deferred += 1;
                    match operation {
                        Operation::Program => recent.programs_deferred += 1,
                        _ => recent.deferred += 1,
                    }
                }
                RequestEnd::Failed(text) => {
                    counts.failed += 1;
                    recent.failed += 1;
                    let is_known = records.failures.contains_key(text);
                    if is_known || records.failures.len() < FAILURE_KINDS_MAX {
                        *records.failures.entry(text.clone()).or_default() += 1;
                        *recent.failures.entry(text.clone()).or_default() += 1;
                    }
                }
            }
            // A fan that is told to wait has no answer yet.
            if *end != RequestEnd::Deferred {
                recent.latencies[index].record(latency);
            }
        });
    }

    pub fn arrived(&self) {
        self.update(|records, second| records.seconds[second].arrived += 1);
    }

    pub fn admitted(&self) {
        self.update(|records, second| records.seconds[second].admitted += 1);
    }

    pub fn sold(&self, reservation_id: &str, seats: u32, amount: i64) {
        self.update(|records, second| {
            records.told_paid.insert(reservation_id.to_owned());
            records.seconds[second].seats_sold += seats;
            records.seconds[second].revenue += amount;
            records.seats_sold += u64::from(seats);
            records.revenue += amount;
        });
    }

    /// The fan begins to cancel: from now on both is right.
    pub fn cancels(&self, reservation_id: &str) {
        self.lock().told_paid.remove(reservation_id);
    }

    /// Paid back if below zero.
    pub fn paid(&self, amount: i64) {
        self.update(|records, second| {
            records.seconds[second].revenue += amount;
            records.revenue += amount;
        });
    }

    pub fn visited(&self, visit: QueueVisit) {
        self.lock().visits.push(visit);
    }

    pub fn finished(&self, outcome: FanOutcome) {
        *self.lock().outcomes.entry(outcome).or_default() += 1;
    }

    pub fn records(&self) -> Records {
        self.lock().clone()
    }

    pub fn live(&self, fans: usize, room: Option<(u64, u64, u64)>) -> LiveFigures {
        let elapsed = self.elapsed();
        let records = self.lock();
        let sum = |of: fn(&SecondRecord) -> u32| -> u64 {
            records.seconds.iter().map(|second| u64::from(of(second))).sum()
        };
        let all = |of: fn(&RequestCounts) -> u64| -> u64 { records.requests.iter().map(of).sum() };
        let full_second = records.seconds.len().checked_sub(2).map(|at| &records.seconds[at]);
        let recent = &records.seconds[records.seconds.len().saturating_sub(RECENT_SECONDS)..];
        let latency = |operation: Operation| {
            let mut histogram = Histogram::default();
            recent.iter().for_each(|second| histogram.add(&second.latencies[operation as usize]));
            (histogram.count() > 0)
                .then(|| (operation.name(), histogram.quantile(0.5), histogram.quantile(0.99)))
        };
        let admitted: u32 = recent.iter().map(|second| second.admitted).sum();
        let waiting = room.map(|(waiting, ..)| waiting).filter(|_| admitted > 0);
        let seconds = |waiting: u64| waiting * recent.len() as u64 / u64::from(admitted);
        LiveFigures {
            time_left: waiting.map(|waiting| Duration::from_secs(seconds(waiting))),
            elapsed,
            fans,
            arrived: sum(|second| second.arrived),
            finished: records.outcomes.values().sum(),
            admitted: sum(|second| second.admitted),
            admitted_per_second: full_second.map_or(0, |second| second.admitted),
            seats_sold: records.seats_sold,
            requests: all(|it| it.done + it.refused + it.deferred + it.failed),
            deferred: sum(|second| second.deferred),
            failed: all(|it| it.failed),
            latencies: Operation::ALL.into_iter().filter_map(latency).collect(),
            room,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn latencies_count_from_the_wish_and_land_in_their_second() {
        let recorder = Recorder::new(Instant::now());
        let wanted = Instant::now();
        tokio::time::advance(Duration::from_millis(2_500)).await;
        recorder.request(Operation::Pay, wanted, &RequestEnd::Done);
        recorder.request(Operation::Pay, wanted, &RequestEnd::Deferred);
        recorder.request(Operation::Pay, wanted, &RequestEnd::Failed("500".to_owned()));
        recorder.sold("1", 2, 300);
        recorder.paid(-100);
        let records = recorder.records();
        assert_eq!(records.seconds.len(), 3);
        let pay = Operation::Pay as usize;
        assert_eq!(records.seconds[2].latencies[pay].count(), 2, "waiting is no answer");
        assert_eq!(records.seconds[2].latencies[pay].max(), Duration::from_millis(2_500));
        let counts = records.requests[pay];
        assert_eq!((counts.done, counts.deferred, counts.failed), (1, 1, 1));
        assert_eq!((records.seats_sold, records.revenue), (2, 200));
        assert_eq!(records.seconds[2].revenue, 200);
        assert_eq!(records.seconds[2].failures, BTreeMap::from([("500".to_owned(), 1)]));
        let live = recorder.live(7, None);
        assert_eq!((live.requests, live.failed, live.latencies.len()), (3, 1, 1));
        recorder.request(Operation::Program, wanted, &RequestEnd::Deferred);
        let second = &recorder.records().seconds[2];
        assert_eq!((second.deferred, second.programs_deferred), (1, 1));
        assert_eq!(recorder.live(7, None).deferred, 1, "limits slow programs down");
    }
}
