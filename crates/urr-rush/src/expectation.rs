//! Expectations of a rush, such as `p99.check<200ms` or `failed=0`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::recorder::Operation;
use crate::report::RushReport;

/// A figure of the report, a comparison and a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    text: String,
    figure: Figure,
    comparison: Comparison,
    /// Milliseconds for latencies.
    bound: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Equal,
    AtLeast,
    Greater,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Latency(Quantile, Operation),
    Failed,
    Deferred,
    SeatsSold,
    Bought,
    Unfinished,
    ProgramsSucceeded,
    OutOfOrder,
    EstimatesWithin,
    EstimatesUpper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantile {
    P50,
    P99,
    Max,
}

/// Whether an expectation came true.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExpectationResult {
    pub text: String,
    /// None if nothing was measured: then it did not come true, whatever was expected.
    pub value: Option<f64>,
    pub passed: bool,
}

impl ExpectationResult {
    /// What was measured, in words.
    pub(crate) fn measured(&self) -> String {
        self.value.map_or_else(|| "nothing was measured".to_owned(), |value| format!("{value:.1}"))
    }
}

const FIGURES: &str = "p50, p99 or max with .check, .poll, .map, .reserve, .pay, .cancel, .leave, \
    .crowd, .transfer or .program; failed, deferred, seats-sold, bought, unfinished, \
    programs-succeeded, out-of-order, estimates-within, estimates-upper";
const PROGRAM: &str = Operation::Program.name();

impl Expectation {
    pub fn check(&self, report: &RushReport) -> ExpectationResult {
        let value = self.figure.of(report);
        let passed = value.is_some_and(|value| match self.comparison {
            Comparison::Less => value < self.bound,
            Comparison::AtMost => value <= self.bound,
            Comparison::Equal => (value - self.bound).abs() < 1e-9,
            Comparison::AtLeast => value >= self.bound,
            Comparison::Greater => value > self.bound,
        });
        ExpectationResult { text: self.text.clone(), value, passed }
    }
}

impl Figure {
    /// None if nobody did what it measures: a rush in which nobody checked says nothing about checks.
    /// Outcomes are counted over all fans, so that 0 is an answer.
    fn of(self, report: &RushReport) -> Option<f64> {
        let count = |count: u64| Some(count as f64);
        let has_requests = report.operations.iter().any(|it| it.sent() > 0);
        match self {
            Figure::Latency(quantile, operation) => {
                let found = report.operations.iter().find(|it| it.name == operation.name())?;
                let value = match quantile {
                    Quantile::P50 => found.p50_ms,
                    Quantile::P99 => found.p99_ms,
                    Quantile::Max => found.max_ms,
                };
                (found.answered() > 0).then_some(value)
            }
            Figure::Failed | Figure::Deferred if !has_requests => None,
            Figure::Failed => count(report.operations.iter().map(|it| it.failed).sum()),
            // Limits are there to slow programs down.
            Figure::Deferred => {
                let people = report.operations.iter().filter(|it| it.name != PROGRAM);
                count(people.map(|it| it.deferred).sum())
            }
            Figure::SeatsSold => count(report.seats_sold),
            Figure::Bought => count(report.outcome("bought")),
            Figure::Unfinished => count(report.outcome("unfinished")),
            Figure::ProgramsSucceeded => count(report.outcome("programs that succeeded")),
            Figure::OutOfOrder => {
                let fairness = &report.fairness;
                let found = fairness.joined_out_of_order + fairness.admitted_out_of_order;
                (fairness.numbered > 0).then_some(found as f64)
            }
            Figure::EstimatesWithin => {
                (report.estimates.compared > 0).then_some(report.estimates.within_range)
            }
            Figure::EstimatesUpper => {
                (report.estimates.compared > 0).then_some(report.estimates.upper_ratio)
            }
        }
    }

    fn parse(text: &str) -> Result<Figure> {
        if let Some((quantile, operation)) = text.split_once('.') {
            let quantile = match quantile {
                "p50" => Quantile::P50,
                "p99" => Quantile::P99,
                "max" => Quantile::Max,
                _ => bail!("{quantile:?} is none of {FIGURES}"),
            };
            let known = Operation::ALL.into_iter().find(|it| it.name() == operation);
            let operation = known.with_context(|| format!("{operation:?} is none of {FIGURES}"))?;
            return Ok(Figure::Latency(quantile, operation));
        }
        Ok(match text {
            "failed" => Figure::Failed,
            "deferred" => Figure::Deferred,
            "seats-sold" => Figure::SeatsSold,
            "bought" => Figure::Bought,
            "unfinished" => Figure::Unfinished,
            "programs-succeeded" => Figure::ProgramsSucceeded,
            "out-of-order" => Figure::OutOfOrder,
            "estimates-within" => Figure::EstimatesWithin,
            "estimates-upper" => Figure::EstimatesUpper,
            _ => bail!("{text:?} is none of {FIGURES}"),
        })
    }
}

impl FromStr for Expectation {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Expectation> {
        let signs = [
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ];
        let split = signs.iter().find_map(|(sign, comparison)| {
            text.split_once(sign).map(|(figure, bound)| (figure, *comparison, bound))
        });
        let (figure, comparison, bound) =
            split.ok_or_else(|| anyhow!("{text:?} has none of <, <=, =, >=, >"))?;
        let figure = Figure::parse(figure.trim())?;
        let bound = parse_bound(bound.trim(), figure)
            .map_err(|error| anyhow!("{text:?} has no bound that can be read: {error}"))?;
        Ok(Expectation { text: text.to_owned(), figure, comparison, bound })
    }
}

/// Latencies need a unit: `200ms` or `2s`.
fn parse_bound(text: &str, figure: Figure) -> Result<f64> {
    if !matches!(figure, Figure::Latency(..)) {
        return Ok(text.parse()?);
    }
    if let Some(millis) = text.strip_suffix("ms") {
        return Ok(millis.parse()?);
    }
    let seconds = text.strip_suffix('s').context("a time ends in ms or s")?;
    Ok(seconds.parse::<f64>()? * 1e3)
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_checked_against_the_report() {
        let mut report = RushReport::empty();
        report.operations[0].p99_ms = 150.0;
        report.operations[0].done = 5;
        report.fairness.numbered = 5;
        report.estimates.compared = 5;
        report.operations[0].failed = 2;
        report.operations[Operation::Program as usize].deferred = 7;
        for (text, passed) in [
            ("p99.check<200ms", true),
            ("p99.check<0.1s", false),
            ("p99.check >= 150ms", true),
            ("failed=0", false),
            ("failed<=2", true),
            ("out-of-order=0", true),
            ("seats-sold>0", false),
            ("deferred=0", true),
            ("estimates-upper<3", true),
        ] {
            let expectation: Expectation = text.parse().unwrap();
            assert_eq!(expectation.check(&report).passed, passed, "{text}");
        }
    }

    /// A system that refuses everybody at the door has no slow answers, and meets nothing by that.
    #[test]
    fn an_expectation_without_samples_is_not_met() {
        let check = |report: &RushReport, text: &str| {
            text.parse::<Expectation>().unwrap().check(report).passed
        };
        let mut report = RushReport::empty();
        let of_checks = ["p99.check<200ms", "p50.check>=0ms", "max.check=0ms"];
        for text in of_checks {
            assert!(!check(&report, text), "{text}");
        }
        for text in ["failed=0", "deferred=0", "out-of-order=0", "estimates-within<=1"] {
            assert!(!check(&report, text), "{text}");
        }
        assert!(check(&report, "bought=0"), "how fans ended is known of all of them");
        report.operations[Operation::Check as usize].deferred = 3;
        assert!(!check(&report, "p99.check<200ms"), "who was told to wait has no answer yet");
        assert!(check(&report, "failed=0"));
        report.operations[Operation::Check as usize].done = 1;
        assert!(check(&report, "p99.check<200ms"), "the control");
        assert!(!check(&report, "p99.pay<200ms"));
        report.judge(&["p99.pay<200ms".parse().unwrap()]);
        assert!(!report.has_passed());
        let said = "expected p99.pay<200ms: nothing was measured, NOT MET";
        assert!(report.summary().contains(said), "{}", report.summary());
    }

    #[test]
    fn unclear_expectations_are_refused_with_what_is_possible() {
        for text in ["", "p99.check", "p99.check<200", "p98.check<1ms", "p99.sing<1ms", "x<1"] {
            assert!(text.parse::<Expectation>().is_err(), "{text}");
        }
        let error = "p99.sing<1ms".parse::<Expectation>().unwrap_err();
        assert!(format!("{error:#}").contains(".reserve"), "{error:#}");
    }
}
