//! The language of mails to a user.

use urr_storage::storable_enum;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    Korean,
    English,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The language is ko or en.")]
pub struct InvalidLanguage;

storable_enum!(Language { Korean => "ko", English => "en" });

impl Language {
    pub fn parse(code: &str) -> Result<Language, InvalidLanguage> {
        code.parse().map_err(|_| InvalidLanguage)
    }

    /// The first supported language of `Accept-Language`. Browsers list languages in the order of
    /// preference; a weight of zero excludes one.
    pub fn preferred(accepted: &str) -> Option<Language> {
        accepted.split(',').find_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let tag = parts.next().unwrap_or_default();
            if parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000")) {
                return None;
            }
            let primary = tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
            Language::parse(&primary).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_language_that_we_speak_is_taken() {
        let preferred = |accepted| Language::preferred(accepted).map(Language::as_str);
        assert_eq!(preferred("ko-KR,ko;q=0.9,en-US;q=0.8"), Some("ko"));
        assert_eq!(preferred("en-US,en;q=0.9,ko;q=0.8"), Some("en"));
        assert_eq!(preferred("fr-FR, EN;q=0.7, ko;q=0.5"), Some("en"));
        assert_eq!(preferred("en;q=0, ko"), Some("ko"));
        for none in ["", "*", "fr,de;q=0.5", ",,;", "english", "-en"] {
            assert_eq!(preferred(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_language_is_found_by_its_code_alone() {
        assert!(Language::ALL.iter().all(|one| Language::parse(one.as_str()) == Ok(*one)));
        for unknown in ["", "KO", "fr", "en-US"] {
            assert_eq!(Language::parse(unknown), Err(InvalidLanguage), "{unknown:?}");
        }
    }
}
