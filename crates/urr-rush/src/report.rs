//! The report of a rush, as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};

use crate::expectation::{Expectation, ExpectationResult};
use crate::fairness::{EstimateReport, FairnessReport, judge_estimates, judge_order};
use crate::faults::{FaultReport, ServerUsage, fault_lines};
use crate::histogram::Histogram;
use crate::monitor::RoomSample;
use crate::recorder::{FanOutcome, Operation, Records};

/// What was rehearsed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RushSetup {
    pub url: String,
    pub event_id: Uuid,
    pub event_title: String,
    pub capacity: usize,
    pub seed: u64,
    pub fans: usize,
    pub started_at: Timestamp,
}

/// How a rush ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RushEnding {
    /// All fans are done.
    #[default]
    Complete,
    /// The event was sold out, and nobody could buy any more.
    SoldOut,
    /// Its time was over.
    TimeOver,
    /// It was stopped from outside.
    Interrupted,
}

impl RushEnding {
    /// In words; none if all fans are done.
    pub(crate) fn sentence(self) -> Option<&'static str> {
        match self {
            RushEnding::Complete => None,
            RushEnding::SoldOut => Some("Ended when the event was sold out."),
            RushEnding::TimeOver => Some("Ended early: the time was over."),
            RushEnding::Interrupted => Some("Ended early: it was interrupted."),
        }
    }
}

/// All requests of one operation. A latency counts from the moment when the fan wanted to act.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationReport {
    pub name: String,
    pub done: u64,
    /// Refusals that belong to a sale.
    pub refused: u64,
    /// The fan was asked to wait.
    pub deferred: u64,
    pub failed: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl OperationReport {
    /// Requests that have a latency.
    pub(crate) fn answered(&self) -> u64 {
        self.done + self.refused + self.failed
    }

    pub(crate) fn sent(&self) -> u64 {
        self.answered() + self.deferred
    }
}

/// One second of the rush.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecondReport {
    pub arrived: u32,
    pub admitted: u32,
    pub seats_sold: u32,
    pub deferred: u32,
    #[serde(default)]
    pub programs_deferred: u32,
    pub failed: u32,
    /// Those that failed, by what was said.
    #[serde(default)]
    pub failures: BTreeMap<String, u32>,
    /// What was paid, without what was paid back, in won.
    #[serde(default)]
    pub revenue: i64,
    /// In milliseconds, by operation; null if there was none.
    pub p50_ms: BTreeMap<String, f64>,
    pub p99_ms: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RushReport {
    pub setup: RushSetup,
    #[serde(default)]
    pub ended: RushEnding,
    pub seconds_total: f64,
    /// How many fans ended how.
    pub outcomes: BTreeMap<String, u64>,
    pub seats_sold: u64,
    /// What was paid, without what was paid back, in won.
    pub revenue: i64,
    pub operations: Vec<OperationReport>,
    pub failures: BTreeMap<String, u64>,
    pub fairness: FairnessReport,
    pub estimates: EstimateReport,
    pub room: Vec<RoomSample>,
    pub seconds: Vec<SecondReport>,
    pub expectations: Vec<ExpectationResult>,
    /// The first second in which the event was sold out.
    #[serde(default)]
    pub sold_out_second: Option<u64>,
    /// The last second in which a fan bought. Seats return after it was sold out.
    #[serde(default)]
    pub last_sale_second: Option<u64>,
    /// What was done to the system meanwhile.
    #[serde(default)]
    pub faults: Vec<FaultReport>,
    /// Of a program that the rush started itself.
    #[serde(default)]
    pub server: Option<ServerUsage>,
    /// Reservations that a fan has paid by what the fan was told.
    #[serde(skip)]
    pub told_paid: BTreeSet<String>,
}

impl RushReport {
    pub(crate) fn new(
        setup: RushSetup,
        ended: RushEnding,
        records: &Records,
        room: Vec<RoomSample>,
        took: Duration,
    ) -> RushReport {
        let name = |(outcome, count): (&FanOutcome, &u64)| (outcome.name().to_owned(), *count);
        let mut outcomes: BTreeMap<String, u64> = records.outcomes.iter().map(name).collect();
        let finished: u64 = outcomes.values().sum();
        let unfinished = (setup.fans as u64).saturating_sub(finished);
        let left = match ended {
            RushEnding::SoldOut => FanOutcome::WaitedInVain,
            _ => FanOutcome::Unfinished,
        };
        if unfinished > 0 {
            outcomes.insert(left.name().to_owned(), unfinished);
        }
        RushReport {
            ended,
            seconds_total: took.as_secs_f64(),
            outcomes,
            seats_sold: records.seats_sold,
            revenue: records.revenue,
            operations: Operation::ALL.map(|it| operation_report(it, records)).to_vec(),
            failures: records.failures.clone(),
            fairness: judge_order(&records.visits),
            estimates: judge_estimates(&records.visits),
            sold_out_second: room.iter().find(|it| it.sold_out).map(|it| it.second),
            last_sale_second: records
                .seconds
                .iter()
                .rposition(|second| second.seats_sold > 0)
                .map(|at| at as u64),
            room,
            seconds: second_reports(records),
            expectations: Vec::new(),
            faults: Vec::new(),
            server: None,
            told_paid: records.told_paid.clone(),
            setup,
        }
    }

    /// Checks expectations. A program must never succeed, whether that was asked for or not.
    pub fn judge(&mut self, expectations: &[Expectation]) {
        let always = "programs-succeeded=0".parse().expect("it can be read");
        let all = expectations.iter().chain([&always]);
        self.expectations = all.map(|it| it.check(self)).collect();
    }

    pub fn has_passed(&self) -> bool {
        self.expectations.iter().all(|it| it.passed)
    }

    pub(crate) fn outcome(&self, name: &str) -> u64 {
        self.outcomes.get(name).copied().unwrap_or(0)
    }

    /// The report in some lines of text.
    pub fn summary(&self) -> String {
        let mut lines = vec![format!(
            "{} fans, {:.0} s: {} seats sold for {} won",
            self.setup.fans, self.seconds_total, self.seats_sold, self.revenue
        )];
        lines.extend(self.ended.sentence().map(str::to_owned));
        lines.extend(self.sales_sentence());
        let outcomes = self.outcomes.iter().map(|(name, count)| format!("{name} {count}"));
        lines.push(outcomes.collect::<Vec<_>>().join(", "));
        lines.push(format!(
            "{:<10}{:>10}{:>10}{:>10}{:>10}{:>12}{:>12}{:>12}",
            "", "done", "refused", "deferred", "failed", "p50 ms", "p99 ms", "max ms"
        ));
        for it in self.operations.iter().filter(|it| it.answered() > 0) {
            lines.push(format!(
                "{:<10}{:>10}{:>10}{:>10}{:>10}{:>12.1}{:>12.1}{:>12.1}",
                it.name,
                it.done,
                it.refused,
                it.deferred,
                it.failed,
                it.p50_ms,
                it.p99_ms,
                it.max_ms
            ));
        }
        let fairness = &self.fairness;
        lines.push(format!(
            "order: {} of {} joined out of order, {} of {} admitted out of order",
            fairness.joined_out_of_order,
            fairness.numbered,
            fairness.admitted_out_of_order,
            fairness.admitted
        ));
        lines.extend(self.estimates.sentence());
        let failures = self.failures.iter().map(|(text, count)| format!("  {count} × {text}"));
        lines.extend(failures);
        lines.extend(self.system_lines());
        for it in &self.expectations {
            let verdict = if it.passed { "ok" } else { "NOT MET" };
            lines.push(format!("expected {}: {}, {verdict}", it.text, it.measured()));
        }
        lines.join("\n")
    }

    /// When all was sold, if it was.
    pub(crate) fn sales_sentence(&self) -> Option<String> {
        let (sold_out, last) = (self.sold_out_second?, self.last_sale_second?);
        Some(format!("Sold out after {sold_out} s; the last seat was sold after {last} s."))
    }

    /// What was done to the system, and what it used.
    pub(crate) fn system_lines(&self) -> Vec<String> {
        let mut lines = fault_lines(&self.faults, self.seconds_total);
        lines.extend(self.server.map(|it| it.sentence(self.seconds_total)));
        lines
    }

    #[cfg(test)]
    pub(crate) fn empty() -> RushReport {
        RushReport::ended(RushEnding::Complete)
    }

    #[cfg(test)]
    fn ended(ended: RushEnding) -> RushReport {
        let setup = RushSetup {
            url: "http://127.0.0.1:3001".to_owned(),
            event_id: Uuid::nil(),
            event_title: "<b>제목</b>".to_owned(),
            capacity: 100,
            seed: 1,
            fans: 10,
            started_at: Timestamp::UNIX_EPOCH,
        };
        RushReport::new(setup, ended, &Records::default(), Vec::new(), Duration::from_secs(1))
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn operation_report(operation: Operation, records: &Records) -> OperationReport {
    let index = operation as usize;
    let mut latencies = Histogram::default();
    records.seconds.iter().for_each(|second| latencies.add(&second.latencies[index]));
    let counts = records.requests[index];
    OperationReport {
        name: operation.name().to_owned(),
        done: counts.done,
        refused: counts.refused,
        deferred: counts.deferred,
        failed: counts.failed,
        p50_ms: millis(latencies.quantile(0.5)),
        p99_ms: millis(latencies.quantile(0.99)),
        max_ms: millis(latencies.max()),
    }
}

fn second_reports(records: &Records) -> Vec<SecondReport> {
    let quantiles = |second: &crate::recorder::SecondRecord, share: f64| {
        let of = |operation: Operation| {
            let latencies = &second.latencies[operation as usize];
            let value = millis(latencies.quantile(share));
            (latencies.count() > 0).then(|| (operation.name().to_owned(), value))
        };
        Operation::ALL.into_iter().filter_map(of).collect()
    };
    let report = |second: &crate::recorder::SecondRecord| SecondReport {
        arrived: second.arrived,
        admitted: second.admitted,
        seats_sold: second.seats_sold,
        deferred: second.deferred,
        programs_deferred: second.programs_deferred,
        failed: second.failed,
        failures: second.failures.clone(),
        revenue: second.revenue,
        p50_ms: quantiles(second, 0.5),
        p99_ms: quantiles(second, 0.99),
    };
    records.seconds.iter().map(report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fans_that_did_not_end_are_counted_as_unfinished() {
        let mut report = RushReport::empty();
        assert_eq!(report.outcome("unfinished"), 10);
        report.judge(&["unfinished=0".parse().unwrap()]);
        assert!(!report.has_passed());
        assert!(report.summary().contains("expected unfinished=0: 10.0, NOT MET"));
    }

    #[test]
    fn fans_who_wait_in_front_of_a_sold_out_event_are_not_unfinished() {
        let report = RushReport::ended(RushEnding::SoldOut);
        assert_eq!(report.outcome("waiting when it was sold out"), 10);
        assert_eq!(report.outcome("unfinished"), 0);
        assert!(report.summary().contains("Ended when the event was sold out."));
    }

    #[test]
    fn a_program_that_succeeds_fails_every_rush() {
        let mut report = RushReport::empty();
        report.judge(&[]);
        assert!(report.has_passed());
        report.outcomes.insert(FanOutcome::ProgramSucceeded.name().to_owned(), 1);
        report.judge(&[]);
        assert!(!report.has_passed());
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = RushReport::empty();
        let text = serde_json::to_string(&report).unwrap();
        let read: RushReport = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
