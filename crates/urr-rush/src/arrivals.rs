//! When fans arrive.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How the arrivals of all fans are spread over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// All within this time, evenly.
    Burst(Duration),
    /// This many per second, at random moments.
    Rate(f64),
    /// By a recorded curve: how many arrived in each second. Its shape counts; its sum is the
    /// number of fans.
    Curve(Vec<f64>),
}

impl Arrivals {
    /// Reads a curve: one number per line, the arrivals of a second. A line may have more columns;
    /// the last one counts. A heading is skipped.
    pub fn parse_curve(text: &str) -> Result<Arrivals> {
        let mut curve = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let last = line.rsplit(',').next().unwrap_or_default().trim();
            match last.parse::<f64>() {
                Ok(count) => {
                    ensure!(count.is_finite() && count >= 0.0, "line {}: {last}", index + 1);
                    curve.push(count);
                }
                Err(_) if index == 0 => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("line {}: {last:?}", index + 1));
                }
            }
        }
        ensure!(curve.iter().sum::<f64>() > 0.0, "the curve has no arrivals");
        Ok(Arrivals::Curve(curve))
    }

    /// The moments of `count` arrivals, in order.
    pub fn draw(&self, count: usize, seed: u64) -> Vec<Duration> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut moments: Vec<f64> = match self {
            Arrivals::Burst(within) => {
                (0..count).map(|_| random.random::<f64>() * within.as_secs_f64()).collect()
            }
            Arrivals::Rate(per_second) => {
                let mut moment = 0.0;
                let mut next = || {
                    moment -= (1.0 - random.random::<f64>()).ln() / per_second;
                    moment
                };
                (0..count).map(|_| next()).collect()
            }
            Arrivals::Curve(curve) => (0..count).map(|_| by_curve(curve, &mut random)).collect(),
        };
        moments.sort_by(f64::total_cmp);
        moments.into_iter().map(Duration::from_secs_f64).collect()
    }
}

/// A moment that is as likely as the curve says.
fn by_curve(curve: &[f64], random: &mut StdRng) -> f64 {
    let mut left = random.random::<f64>() * curve.iter().sum::<f64>();
    let mut second = 0.0;
    for count in curve {
        if left < *count {
            return second + left / count;
        }
        left -= count;
        second += 1.0;
    }
    second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_within_its_time_and_a_seed_repeats_it() {
        let burst = Arrivals::Burst(Duration::from_secs(2));
        let moments = burst.draw(1_000, 7);
        assert!(moments.is_sorted() && *moments.last().unwrap() <= Duration::from_secs(2));
        assert_eq!(moments, burst.draw(1_000, 7));
        assert_ne!(moments, burst.draw(1_000, 8));
    }

    #[test]
    fn a_rate_is_kept_on_average() {
        let moments = Arrivals::Rate(100.0).draw(10_000, 7);
        let seconds = moments.last().unwrap().as_secs_f64();
        assert!((90.0..110.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn a_curve_keeps_its_shape() {
        let curve = Arrivals::parse_curve("second,arrivals\n0,10\n1,0\n2,30\n").unwrap();
        let moments = curve.draw(4_000, 7);
        let within = |second: u64| moments.iter().filter(|it| it.as_secs() == second).count();
        assert_eq!(within(1), 0);
        assert!((900..1_100).contains(&within(0)), "{}", within(0));
        assert_eq!(within(0) + within(2), 4_000);
    }

    #[test]
    fn a_curve_that_says_nothing_is_refused() {
        for (text, said) in
            [("", "no arrivals"), ("0\n0", "no arrivals"), ("1\nx", "line 2"), ("-1", "line 1")]
        {
            let error = Arrivals::parse_curve(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }
}
