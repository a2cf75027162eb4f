//! Whether the waiting room kept the order.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a fan saw of the waiting room. Times are since the start of the rush.
#[derive(Clone, Copy, Debug)]
pub struct QueueVisit {
    pub asked_at: Duration,
    pub joined_at: Duration,
    /// The number in line; none if the fan was admitted at once.
    pub number: Option<i64>,
    /// The end of the slot as the server tells it, in milliseconds. Slots have the same length, so
    /// their ends are in the order of the admissions, whenever a fan polled.
    pub slot_end_ms: Option<i64>,
    /// When the fan learned of the admission.
    pub admitted_at: Option<Duration>,
    /// The first estimate that the fan was told.
    pub estimate: Option<ToldWait>,
}

/// What a fan was told about the wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToldWait {
    pub at: Duration,
    /// The range in seconds.
    pub from: f64,
    pub to: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FairnessReport {
    pub numbered: usize,
    /// Fans with a smaller number than someone who had joined before they asked.
    pub joined_out_of_order: usize,
    pub admitted: usize,
    /// Fans who were admitted before someone with a smaller number.
    pub admitted_out_of_order: usize,
    /// Rank by number and rank by admission of up to 1,000 fans, for a plot.
    pub sample: Vec<(usize, usize)>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EstimateReport {
    pub compared: usize,
    /// The share of waits that came true within the first range that was told.
    pub within_range: f64,
    /// Waits that were longer than the range.
    pub longer: usize,
    /// The median of the upper end over the wait that came true: a range that holds everything says
    /// nothing.
    #[serde(default)]
    pub upper_ratio: f64,
    /// Fans who were told that the wait was not known yet when they joined.
    #[serde(default)]
    pub told_later: usize,
    /// The upper end of the range and the wait in seconds, of up to 1,000 fans, for a plot.
    pub sample: Vec<(f64, f64)>,
}

impl EstimateReport {
    /// None if nobody was told anything.
    pub fn sentence(&self) -> Option<String> {
        let EstimateReport { compared, within_range, longer, upper_ratio, told_later, .. } = self;
        (*compared > 0).then(|| {
            format!(
                "estimates: {:.0} % of {compared} waits within the range, {longer} longer; its \
                 upper end was {upper_ratio:.1} times the wait (median); {told_later} fans were \
                 not told any when they joined",
                within_range * 100.0,
            )
        })
    }
}

/// Points per plot.
const SAMPLE_MAX: usize = 1_000;
/// A fan learns of the admission by the next poll, and ranges are in whole seconds.
const ESTIMATE_SLACK_SECONDS: f64 = 5.0;

pub fn judge_order(visits: &[QueueVisit]) -> FairnessReport {
    let mut by_number: Vec<(i64, &QueueVisit)> =
        visits.iter().filter_map(|visit| Some((visit.number?, visit))).collect();
    by_number.sort_unstable_by_key(|(number, _)| *number);
    let (mut latest_ask, mut joined_out_of_order) = (Duration::ZERO, 0);
    for (_, visit) in &by_number {
        // Someone with a smaller number asked after this fan had a number.
        joined_out_of_order += usize::from(latest_ask > visit.joined_at);
        latest_ask = latest_ask.max(visit.asked_at);
    }
    let admitted: Vec<i64> = by_number.iter().filter_map(|(_, visit)| visit.slot_end_ms).collect();
    let mut earliest_behind = i64::MAX;
    let mut admitted_out_of_order = 0;
    for slot_end in admitted.iter().rev() {
        // Someone with a larger number was admitted before this fan.
        admitted_out_of_order += usize::from(earliest_behind < *slot_end);
        earliest_behind = earliest_behind.min(*slot_end);
    }
    FairnessReport {
        numbered: by_number.len(),
        joined_out_of_order,
        admitted: admitted.len(),
        admitted_out_of_order,
        sample: ranks(&admitted),
    }
}

/// Rank by number and rank by admission.
fn ranks(slot_ends: &[i64]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..slot_ends.len()).collect();
    order.sort_by_key(|index| slot_ends[*index]);
    let step = (order.len() / SAMPLE_MAX).max(1);
    order.into_iter().enumerate().step_by(step).map(|(rank, index)| (index, rank)).collect()
}

pub fn judge_estimates(visits: &[QueueVisit]) -> EstimateReport {
    let waits: Vec<(f64, f64, f64)> = visits
        .iter()
        .filter_map(|visit| {
            let ToldWait { at, from, to } = visit.estimate?;
            Some((from, to, visit.admitted_at?.saturating_sub(at).as_secs_f64()))
        })
        .collect();
    let is_later = |visit: &QueueVisit| visit.estimate.is_none_or(|it| it.at > visit.joined_at);
    let told_later = visits.iter().filter(|it| it.number.is_some() && is_later(it)).count();
    if waits.is_empty() {
        return EstimateReport { told_later, ..EstimateReport::default() };
    }
    let is_longer = |wait: f64, to: f64| wait > to + ESTIMATE_SLACK_SECONDS;
    let longer = waits.iter().filter(|(_, to, wait)| is_longer(*wait, *to)).count();
    let within = waits.iter().filter(|(from, to, wait)| {
        *wait + ESTIMATE_SLACK_SECONDS >= *from && !is_longer(*wait, *to)
    });
    let step = (waits.len() / SAMPLE_MAX).max(1);
    let mut ratios: Vec<f64> =
        waits.iter().map(|(_, to, wait)| to / wait.max(ESTIMATE_SLACK_SECONDS)).collect();
    ratios.sort_by(f64::total_cmp);
    EstimateReport {
        compared: waits.len(),
        upper_ratio: ratios[ratios.len() / 2],
        told_later,
        within_range: within.count() as f64 / waits.len() as f64,
        longer,
        sample: waits.iter().step_by(step).map(|(_, to, wait)| (*to, *wait)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(asked: u64, joined: u64, number: i64, slot_end: Option<i64>) -> QueueVisit {
        let (asked_at, joined_at) = (Duration::from_millis(asked), Duration::from_millis(joined));
        QueueVisit {
            asked_at,
            joined_at,
            number: Some(number),
            slot_end_ms: slot_end,
            admitted_at: slot_end.map(|_| Duration::from_secs(30)),
            estimate: Some(ToldWait { at: joined_at, from: 10.0, to: 20.0 }),
        }
    }

    #[test]
    fn an_order_that_was_kept_is_fair() {
        let visits = [
            visit(0, 10, 1, Some(100)),
            visit(5, 12, 2, Some(100)),
            visit(20, 30, 3, Some(150)),
            visit(40, 50, 4, None),
        ];
        let report = judge_order(&visits);
        assert_eq!((report.numbered, report.admitted), (4, 3));
        assert_eq!((report.joined_out_of_order, report.admitted_out_of_order), (0, 0));
    }

    #[test]
    fn concurrent_requests_may_get_any_order() {
        let report = judge_order(&[visit(0, 10, 2, None), visit(5, 12, 1, None)]);
        assert_eq!(report.joined_out_of_order, 0);
    }

    #[test]
    fn overtaking_is_found() {
        // The second one asked after the first one had a number, and got a smaller one.
        let visits = [visit(0, 10, 2, Some(100)), visit(20, 30, 1, Some(200))];
        let report = judge_order(&visits);
        assert_eq!(report.joined_out_of_order, 1);
        assert_eq!(report.admitted_out_of_order, 1, "number 2 was admitted before number 1");
    }

    #[test]
    fn estimates_are_compared_with_what_came_true() {
        let report = judge_estimates(&[visit(0, 0, 1, Some(1)), visit(0, 12_000, 2, Some(2))]);
        assert_eq!((report.compared, report.longer), (2, 1));
        assert!((report.within_range - 0.5).abs() < f64::EPSILON);
        assert_eq!(judge_estimates(&[visit(0, 0, 1, None)]).compared, 0);
    }

    /// All waits are within it, and it says nothing.
    #[test]
    fn a_range_that_holds_everything_is_seen_to_be_wide() {
        let told = |to| {
            let first = visit(0, 0, 1, Some(1));
            let estimate = first.estimate.map(|it| ToldWait { to, ..it });
            judge_estimates(&[QueueVisit { estimate, ..first }])
        };
        let (honest, wide) = (told(33.0), told(3_000.0));
        assert_eq!((honest.longer, wide.longer), (0, 0));
        assert!((honest.upper_ratio - 1.1).abs() < 1e-9, "{}", honest.upper_ratio);
        assert!((wide.upper_ratio - 100.0).abs() < 1e-9, "{}", wide.upper_ratio);
    }

    #[test]
    fn who_is_told_later_waits_from_then_on() {
        let first = visit(0, 0, 1, Some(1));
        let at = Duration::from_secs(15);
        let later = QueueVisit { estimate: Some(ToldWait { at, from: 10.0, to: 20.0 }), ..first };
        let never = QueueVisit { estimate: None, ..first };
        let report = judge_estimates(&[first, later, never]);
        assert_eq!((report.compared, report.told_later, report.longer), (2, 2, 1));
    }
}
