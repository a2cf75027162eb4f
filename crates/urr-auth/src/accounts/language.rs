//! The languages in which people are written to.

/// What an account wants to be written to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    Korean,
    English,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The language is ko or en.")]
pub struct InvalidLanguage;

impl Language {
    const ALL: [Language; 2] = [Language::Korean, Language::English];

    pub const fn code(self) -> &'static str {
        match self {
            Language::Korean => "ko",
            Language::English => "en",
        }
    }

    pub fn parse(code: &str) -> Result<Language, InvalidLanguage> {
        let found = Language::ALL.into_iter().find(|language| language.code() == code);
        found.ok_or(InvalidLanguage)
    }

    /// The first one that a browser asks for and that we speak (`Accept-Language`). Browsers name
    /// their languages in the order of preference; a weight of zero means "not this one".
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
        let preferred = |accepted| Language::preferred(accepted).map(Language::code);
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
        assert!(Language::ALL.iter().all(|one| Language::parse(one.code()) == Ok(*one)));
        for unknown in ["", "KO", "fr", "en-US"] {
            assert_eq!(Language::parse(unknown), Err(InvalidLanguage), "{unknown:?}");
        }
    }
}
