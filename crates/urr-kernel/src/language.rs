//! The languages of texts for people.

use jiff::tz::TimeZone;

use crate::{KOREA, Timestamp, named_enum};

/// A language in which the program speaks to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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

    /// The language that a client prefers by the values of `Accept-Language` (RFC 9110, 12.5.4). Of
    /// two that are equally welcome the first wins. None if any language is as welcome, or none that
    /// we have.
    pub fn preferred<'a>(accepted: impl IntoIterator<Item = &'a str>) -> Option<Language> {
        let mut best = (None, 0);
        let ranges = accepted.into_iter().flat_map(|value| value.split(','));
        for (language, quality) in ranges.filter_map(parse_range) {
            if quality > best.1 {
                best = (language, quality);
            }
        }
        best.0
    }

    /// The language of a tag such as `ko-KR`.
    pub fn of_tag(tag: &str) -> Option<Language> {
        let primary = tag.trim().split('-').next()?;
        Language::ALL.into_iter().find(|one| one.as_str().eq_ignore_ascii_case(primary))
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

/// A language that we have, or none for `*`, and how welcome it is, in thousandths.
fn parse_range(range: &str) -> Option<(Option<Language>, u32)> {
    let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
    let language = match name.trim() {
        "*" => None,
        name => Some(Language::of_tag(name)?),
    };
    let quality = match parameters.trim().strip_prefix("q=") {
        Some(number) => parse_quality(number.trim())?,
        None => 1_000,
    };
    Some((language, quality))
}

/// `0.8` is 800. At most three digits follow the point.
fn parse_quality(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths: u32 = format!("{fraction:0<3}").parse().ok()?;
    match (whole, is_number) {
        ("0", true) => Some(thousandths),
        ("1", true) if thousandths == 0 => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_most_welcome_one_that_we_have() {
        let preferred = |accepted| Language::preferred([accepted]).map(Language::as_str);
        for korean in ["ko", "ko-KR,ko;q=0.9,en-US;q=0.8", "fr, KO ;q=0.1", "en;q=0.5, ko;q=0.501"]
        {
            assert_eq!(preferred(korean), Some("ko"), "{korean}");
        }
        for english in ["en", "en-US,en;q=0.9,ko;q=0.8", "fr-FR, EN;q=0.7, ko;q=0.5", "en, ko"] {
            assert_eq!(preferred(english), Some("en"), "{english}");
        }
        for none in ["", "*", "*, ko", "fr-FR", "ko;q=0", "ko;q=2", ",,;", "english", "-en"] {
            assert_eq!(preferred(none), None, "{none:?}");
        }
        assert_eq!(Language::preferred(["fr", "en;q=0.1"]), Some(Language::English));
        assert_eq!(Language::preferred([]), None);
    }

    #[test]
    fn a_date_is_that_of_korea() {
        let time: Timestamp = "2026-12-31T15:30:00Z".parse().unwrap();
        assert_eq!(Language::Korean.date(time), "2027년 1월 1일 (금) 00:30 (한국 시간)");
        let english = "Fri, 1 January 2027, 00:30 (Korean time, UTC+9)";
        assert_eq!(Language::English.date(time), english);
    }
}
