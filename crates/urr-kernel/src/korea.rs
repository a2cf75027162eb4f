//! The time of Korea, where events take place and days are counted.

use jiff::civil::Date;
use jiff::tz::{self, TimeZone};

use crate::Timestamp;

/// Korea is nine hours ahead of UTC all year: no summer time, and no time-zone database needed.
pub const KOREA: tz::Offset = tz::offset(9);

/// When the calendar day of a moment began in Korea.
pub fn start_of_korean_day(time: Timestamp) -> Timestamp {
    let start = time.to_zoned(TimeZone::fixed(KOREA)).start_of_day();
    start.map_or(Timestamp::MIN, |start| start.timestamp())
}

/// When a calendar day begins in Korea.
pub fn start_of_korean_date(day: Date) -> Timestamp {
    let start = day.at(0, 0, 0, 0).to_zoned(TimeZone::fixed(KOREA));
    start.map_or(Timestamp::MIN, |start| start.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_in_korea_and_not_in_greenwich() {
        for (time, start) in [
            ("2026-11-14T14:59:59.999999Z", "2026-11-13T15:00:00Z"),
            ("2026-11-14T15:00:00Z", "2026-11-14T15:00:00Z"),
            ("2026-11-15T00:30:00Z", "2026-11-14T15:00:00Z"),
        ] {
            let (time, start): (Timestamp, Timestamp) =
                (time.parse().unwrap(), start.parse().unwrap());
            assert_eq!(start_of_korean_day(time), start, "{time}");
        }
    }
}
