//! The rules of counting: no clock, no I/O, no async.

mod counters;
mod facts;
mod hourly;
pub mod live;
mod queues;
mod seat_preferences;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use serde::Deserialize;
use urr_kernel::{KOREA, Timestamp};
use utoipa::ToSchema;

pub use counters::{CounterChanges, MethodTotals, StatsCounters};
pub use facts::{
    CountedMessage, Fact, ReservationFact, ReservationTerms, Transaction, TransactionKind,
    UserFact, keep_earliest,
};
pub use hourly::{HourlyCounters, ReservationDistribution};
pub use queues::{QueueHour, hourly_differences};
pub use seat_preferences::{HallSales, SeatOccupancy, SeatPreferences};

/// An hour of a day in Korea.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hour {
    pub day: Date,
    pub hour: u8,
}

/// The calendar day in Korea.
pub fn day_in_korea(time: Timestamp) -> Date {
    hour_in_korea(time).day
}

/// The hour in Korea.
pub fn hour_in_korea(time: Timestamp) -> Hour {
    let time = time.to_zoned(TimeZone::fixed(KOREA));
    let hour = u8::try_from(time.hour()).expect("hours are from 0 to 23");
    Hour { day: time.date(), hour }
}

/// The minute that a time is in.
pub fn start_of_minute(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second().div_euclid(60) * 60).unwrap_or(time)
}

/// The first of `days` days that end today.
pub fn first_day(today: Date, days: u16) -> Date {
    let back = i64::from(days.max(1)) - 1;
    today.checked_sub(back.days()).unwrap_or(Date::MIN)
}

/// Whole seconds; 0 if the end is before the start.
pub fn seconds_between(start: Timestamp, end: Timestamp) -> i64 {
    (end.as_second() - start.as_second()).max(0)
}

/// A period that days are summed up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum StatsPeriod {
    Daily,
    Weekly,
    Monthly,
}

impl StatsPeriod {
    /// The period of a day: the day, the Monday of its week, or its month.
    pub fn name_of(self, day: Date) -> String {
        match self {
            StatsPeriod::Daily => day.to_string(),
            StatsPeriod::Weekly => {
                let back = i64::from(day.weekday().to_monday_zero_offset());
                day.checked_sub(back.days()).unwrap_or(day).to_string()
            }
            StatsPeriod::Monthly => format!("{:04}-{:02}", day.year(), day.month()),
        }
    }
}

pub fn is_weekend(day: Date) -> bool {
    matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// The price tier of a seat.
pub fn price_tier(price: i64) -> &'static str {
    match price {
        ..50_000 => "budget",
        50_000..100_000 => "standard",
        100_000..150_000 => "premium",
        _ => "vip",
    }
}

/// `part ÷ whole` with two decimals, rounded; 0 if the whole is 0.
pub fn ratio(part: i64, whole: i64) -> String {
    if whole == 0 {
        return "0.00".to_owned();
    }
    let (part, whole) = (i128::from(part) * 100, i128::from(whole));
    let hundredths = (2 * part + whole).div_euclid(2 * whole);
    let sign = if hundredths < 0 { "-" } else { "" };
    let hundredths = hundredths.unsigned_abs();
    format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
}

/// The same as a number for charts.
pub fn ratio_number(part: i64, whole: i64) -> f64 {
    ratio(part, whole).parse().expect("it is written as a number")
}

/// The percentage, with two decimals.
pub fn percent(part: i64, whole: i64) -> f64 {
    ratio_number(part.saturating_mul(100), whole)
}

/// The average of whole won, rounded down.
pub fn average(sum: i64, count: i64) -> i64 {
    if count == 0 { 0 } else { sum.div_euclid(count) }
}

#[cfg(test)]
mod tests {
    use urr_kernel::start_of_korean_date;

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_day_begins_at_midnight_in_korea() {
        let before = time("2026-11-14T14:59:59Z");
        let after = time("2026-11-14T15:00:00Z");
        assert_eq!(day_in_korea(before).to_string(), "2026-11-14");
        assert_eq!(day_in_korea(after).to_string(), "2026-11-15");
        assert_eq!((hour_in_korea(before).hour, hour_in_korea(after).hour), (23, 0));
        assert_eq!(start_of_korean_date(day_in_korea(after)), after);
    }

    #[test]
    fn a_number_of_days_includes_today() {
        let today: Date = "2026-03-01".parse().unwrap();
        assert_eq!(first_day(today, 1), today);
        assert_eq!(first_day(today, 2).to_string(), "2026-02-28");
        assert_eq!(first_day(today, 0), today);
    }

    #[test]
    fn ratios_are_rounded_and_nothing_out_of_nothing_is_none() {
        assert_eq!([ratio(2, 3), ratio(1, 3), ratio(0, 0)], ["0.67", "0.33", "0.00"]);
        assert_eq!([ratio(-1, 3), ratio(7, 1)], ["-0.33", "7.00"]);
        assert_eq!(percent(1, 8).to_string(), "12.5");
        assert_eq!(average(-1, 2), -1);
        assert_eq!(average(5, 0), 0);
    }

    #[test]
    fn days_belong_to_the_week_of_their_monday_and_to_their_month() {
        let sunday: Date = "2026-11-15".parse().unwrap();
        assert_eq!(StatsPeriod::Daily.name_of(sunday), "2026-11-15");
        assert_eq!(StatsPeriod::Weekly.name_of(sunday), "2026-11-09");
        assert_eq!(StatsPeriod::Monthly.name_of(sunday), "2026-11");
        assert!(is_weekend(sunday) && !is_weekend("2026-11-16".parse().unwrap()));
    }

    #[test]
    fn the_tier_of_a_price_begins_at_its_bound() {
        let tiers = [49_999, 50_000, 99_999, 100_000, 149_999, 150_000].map(price_tier);
        assert_eq!(tiers, ["budget", "standard", "standard", "premium", "premium", "vip"]);
    }
}
