//! The figures of benchmarks: a line each, which `scripts/bench.sh` makes into one table.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]

/// What was measured, beside a baseline of the same run.
#[derive(Clone, Copy, Debug)]
pub struct BenchFigure<'a> {
    pub name: &'a str,
    pub value: f64,
    pub unit: &'a str,
    pub baseline: &'a str,
    pub baseline_value: f64,
    pub target: RatioTarget,
}

/// What the value divided by the baseline has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RatioTarget {
    AtLeast(f64),
    AtMost(f64),
    None,
}

impl BenchFigure<'_> {
    /// Prints the line. Returns whether the target is met.
    pub fn show(&self) -> bool {
        let (line, is_met) = self.line();
        println!("{line}");
        is_met
    }

    fn line(&self) -> (String, bool) {
        let BenchFigure { name, value, unit, baseline, baseline_value, target } = self;
        let ratio = value / baseline_value;
        let (target, is_met) = match target {
            RatioTarget::AtLeast(least) => (format!("≥ {least}"), ratio >= *least),
            RatioTarget::AtMost(most) => (format!("≤ {most}"), ratio <= *most),
            RatioTarget::None => ("-".to_owned(), true),
        };
        let verdict = if is_met { "ok" } else { "MISSED" };
        let digits = |value: f64| if value.abs() < 100.0 { 2 } else { 0 };
        let line = format!(
            "figure\t{name}\t{value:.value_digits$} {unit}\t{baseline}: \
             {baseline_value:.baseline_digits$}\t{ratio:.2}\t{target}\t{verdict}",
            value_digits = digits(*value),
            baseline_digits = digits(*baseline_value),
        );
        (line, is_met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_ratio_and_says_whether_the_target_is_met() {
        let figure = BenchFigure {
            name: "joins",
            value: 500.0,
            unit: "joins/s",
            baseline: "bare",
            baseline_value: 1_000.0,
            target: RatioTarget::AtLeast(0.5),
        };
        let expected = "figure\tjoins\t500 joins/s\tbare: 1000\t0.50\t≥ 0.5\tok";
        assert_eq!(figure.line(), (expected.to_owned(), true));
        let missed = BenchFigure { target: RatioTarget::AtMost(0.4), ..figure };
        assert!(!missed.line().1 && missed.line().0.ends_with("MISSED"));
    }
}
