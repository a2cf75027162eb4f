//! Two reports side by side.

use crate::report::{OperationReport, RushReport};

/// A table of what differs, for people.
pub fn compare(before: &RushReport, after: &RushReport) -> String {
    let mut lines = vec![format!("{:<24}{:>14}{:>14}{:>10}", "", "before", "after", "ratio")];
    let mut row = |name: &str, one: f64, two: f64| {
        let ratio = if one > 0.0 { format!("{:.2}", two / one) } else { "–".to_owned() };
        lines.push(format!("{name:<24}{one:>14.1}{two:>14.1}{ratio:>10}"));
    };
    let fans = |report: &RushReport| report.setup.fans as f64;
    row("fans", fans(before), fans(after));
    row("seconds", before.seconds_total, after.seconds_total);
    row("seats sold", before.seats_sold as f64, after.seats_sold as f64);
    let out_of_order = |report: &RushReport| report.fairness.admitted_out_of_order as f64;
    row("admitted out of order", out_of_order(before), out_of_order(after));
    for (one, two) in before.operations.iter().zip(&after.operations) {
        for ((name, one_figure), (_, two_figure)) in figures(one).into_iter().zip(figures(two)) {
            if one_figure + two_figure > 0.0 {
                row(&format!("{} {name}", one.name), one_figure, two_figure);
            }
        }
    }
    lines.join("\n")
}

fn figures(operation: &OperationReport) -> [(&'static str, f64); 4] {
    let OperationReport { p50_ms, p99_ms, deferred, failed, .. } = operation;
    let counts = [*deferred, *failed].map(|count| count as f64);
    [("p50 ms", *p50_ms), ("p99 ms", *p99_ms), ("deferred", counts[0]), ("failed", counts[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_each_other_with_their_ratio() {
        let (mut before, mut after) = (RushReport::empty(), RushReport::empty());
        before.operations[0].p99_ms = 100.0;
        after.operations[0].p99_ms = 150.0;
        let table = compare(&before, &after);
        let line = table.lines().find(|line| line.starts_with("check p99 ms")).unwrap();
        assert!(line.ends_with("1.50") && line.contains("100.0"), "{line}");
        assert!(!table.contains("pay p99"), "what did not happen is left out");
    }
}
