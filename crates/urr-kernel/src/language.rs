//! The languages of texts for people.

use jiff::tz::{Offset, TimeZone};

use crate::{Timestamp, named_enum};

/// Korea has no summer time.
const KOREA: Offset = jiff::tz::offset(9);

/// A language in which the program speaks to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    Korean,
    English,
}

named_enum!(Language { Korean => "ko", English => "en" });

impl Language {
    /// The text of this language.
    pub const fn pick<T: Copy>(self, korean: T, english: T) -> T {
        match self {
            Language::Korean => korean,
            Language::English => english,
        }
    }

    /// A date with its weekday and the time in Korea.
    pub fn date(self, time: Timestamp) -> String {
        let time = time.to_zoned(TimeZone::fixed(KOREA));
        let weekday = usize::from(time.weekday().to_monday_zero_offset().unsigned_abs());
        match self {
            Language::Korean => {
                let weekday = ["월", "화", "수", "목", "금", "토", "일"][weekday];
                let date = time.strftime("%Y년 %-m월 %-d일");
                format!("{date} ({weekday}) {} (한국 시간)", time.strftime("%H:%M"))
            }
            Language::English => {
                format!("{} (Korean time, UTC+9)", time.strftime("%a, %-d %B %Y, %H:%M"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_that_of_korea() {
        let time: Timestamp = "2026-12-31T15:30:00Z".parse().unwrap();
        assert_eq!(Language::Korean.date(time), "2027년 1월 1일 (금) 00:30 (한국 시간)");
        let english = "Fri, 1 January 2027, 00:30 (Korean time, UTC+9)";
        assert_eq!(Language::English.date(time), english);
    }
}
