//! The rules of counting: no clock, no I/O, no async.

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::{self, TimeZone};
use urr_kernel::Timestamp;

/// How often something happened on a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    pub day: Date,
    pub event_type: String,
    pub total: i64,
}

/// Korea is nine hours ahead of UTC all year; no daylight saving, and no time-zone database needed.
const KOREA: tz::Offset = tz::offset(9);

/// The calendar day on which people in Korea saw it happen.
pub fn day_in_korea(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::fixed(KOREA)).date()
}

/// The first of `days` days that end today.
pub fn first_day(today: Date, days: u16) -> Date {
    let back = i64::from(days.max(1)) - 1;
    today.checked_sub(back.days()).unwrap_or(Date::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_begins_at_midnight_in_korea() {
        let before: Timestamp = "2026-11-14T14:59:59Z".parse().unwrap();
        let after: Timestamp = "2026-11-14T15:00:00Z".parse().unwrap();
        assert_eq!(day_in_korea(before).to_string(), "2026-11-14");
        assert_eq!(day_in_korea(after).to_string(), "2026-11-15");
    }

    #[test]
    fn a_number_of_days_includes_today() {
        let today: Date = "2026-03-01".parse().unwrap();
        assert_eq!(first_day(today, 1), today);
        assert_eq!(first_day(today, 2).to_string(), "2026-02-28");
        assert_eq!(first_day(today, 0), today);
    }
}
