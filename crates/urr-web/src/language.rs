//! The language of a page: the one that the user chose, or else the one that the browser prefers.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_LANGUAGE, COOKIE};
use urr_kernel::Language;

/// Set by the language switch of the pages.
pub const LANGUAGE_COOKIE: &str = "urr-language";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageLanguage {
    Korean,
    English,
}

impl PageLanguage {
    pub const fn tag(self) -> &'static str {
        match self {
            PageLanguage::Korean => "ko",
            PageLanguage::English => "en",
        }
    }

    /// `text` in the language.
    pub const fn pick<T: Copy>(self, korean: T, english: T) -> T {
        match self {
            PageLanguage::Korean => korean,
            PageLanguage::English => english,
        }
    }

    /// Korean unless the cookie or the browser says English.
    pub fn of(headers: &HeaderMap) -> PageLanguage {
        chosen(headers).or_else(|| preferred(headers)).unwrap_or(PageLanguage::Korean)
    }
}

impl From<Language> for PageLanguage {
    fn from(language: Language) -> PageLanguage {
        match language {
            Language::Korean => PageLanguage::Korean,
            Language::English => PageLanguage::English,
        }
    }
}

fn chosen(headers: &HeaderMap) -> Option<PageLanguage> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim() == LANGUAGE_COOKIE)?;
    Language::of_tag(value).map(PageLanguage::from)
}

fn preferred(headers: &HeaderMap) -> Option<PageLanguage> {
    let values = headers.get_all(ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
    Language::preferred(values).map(PageLanguage::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(cookie: &str, accepted: &str) -> &'static str {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, cookie.parse().unwrap());
        headers.insert(ACCEPT_LANGUAGE, accepted.parse().unwrap());
        PageLanguage::of(&headers).tag()
    }

    #[test]
    fn the_users_choice_comes_before_the_browsers() {
        assert_eq!(PageLanguage::of(&HeaderMap::new()), PageLanguage::Korean);
        for (cookie, accepted, expected) in [
            ("", "", "ko"),
            ("", "en-US,en;q=0.9,ko;q=0.8", "en"),
            ("", "ko-KR,ko;q=0.9,en;q=0.8", "ko"),
            ("", "fr, de;q=0.9", "ko"),
            ("", "fr, EN-gb;q=0.5", "en"),
            ("", "en;q=0, fr", "ko"),
            ("a=b; urr-language=en", "ko", "en"),
            ("urr-language=ko", "en", "ko"),
            ("urr-language=xx", "en", "en"),
            ("Xurr-language=en", "ko", "ko"),
        ] {
            assert_eq!(language(cookie, accepted), expected, "{cookie:?} {accepted:?}");
        }
    }
}
