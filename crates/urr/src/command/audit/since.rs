//! A moment in the past, as people say it.

use std::str::FromStr;
use std::time::Duration;

use urr_kernel::Timestamp;

/// How far back to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    Ago(Duration),
    Moment(Timestamp),
}

/// Longer than any provider keeps its list.
const DAYS_MAX: u64 = 3_650;

impl Since {
    /// Never after `now`.
    pub fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Since::Ago(span) => now - span,
            Since::Moment(moment) => moment.min(now),
        }
    }
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Since, &'static str> {
        if let Ok(moment) = text.parse() {
            return Ok(Since::Moment(moment));
        }
        let expected = "expected a span such as 90m, 24h or 7d, or a moment such as \
                        2026-11-15T09:00:00+09:00";
        let unit = text.chars().next_back().ok_or(expected)?;
        let seconds = match unit {
            'm' => 60,
            'h' => 60 * 60,
            'd' => 24 * 60 * 60,
            _ => return Err(expected),
        };
        let count = text.strip_suffix(unit).and_then(|count| count.parse::<u64>().ok());
        let count = count.ok_or(expected)?;
        let span = count.checked_mul(seconds).filter(|span| *span <= DAYS_MAX * 24 * 60 * 60);
        span.map(|span| Since::Ago(Duration::from_secs(span))).ok_or("that is more than ten years")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_or_a_moment_says_how_far_back() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let check = |text: &str, expected: &str| {
            let since = text.parse::<Since>().map(|since| since.before(now).to_string());
            assert_eq!(since.as_deref(), Ok(expected), "{text}");
        };
        check("90m", "2026-11-15T10:30:00Z");
        check("24h", "2026-11-14T12:00:00Z");
        check("7d", "2026-11-08T12:00:00Z");
        check("2026-11-15T09:00:00+09:00", "2026-11-15T00:00:00Z");
        check("2027-01-01T00:00:00Z", "2026-11-15T12:00:00Z");
        for wrong in ["", "h", "24", "24x", "-1h", "1hh", "99999999d", "yesterday", "1.5h"] {
            assert!(wrong.parse::<Since>().is_err(), "{wrong}");
        }
    }
}
