//! What the terms say: the operator's texts, or the program's examples.

use std::sync::Arc;

use urr_kernel::Language;

use super::TermsKind;

const TEXT_BYTES_MAX: usize = 100_000;

/// The text of one of the terms in every language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsText {
    korean: Arc<str>,
    english: Arc<str>,
    /// Whether it is the program's, which an operator has to replace.
    is_example: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTermsText {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {TEXT_BYTES_MAX} bytes")]
    TooLong,
    #[error("it has control characters; write plain text")]
    NotPlain,
}

impl TermsText {
    /// The operator's text.
    pub fn parse(korean: &str, english: &str) -> Result<TermsText, InvalidTermsText> {
        Ok(TermsText { korean: plain(korean)?, english: plain(english)?, is_example: false })
    }

    /// The program's text.
    pub fn example(kind: TermsKind) -> TermsText {
        let (korean, english) = match kind {
            TermsKind::Service => (
                include_str!("../../terms/service.ko.txt"),
                include_str!("../../terms/service.en.txt"),
            ),
            TermsKind::Privacy => (
                include_str!("../../terms/privacy.ko.txt"),
                include_str!("../../terms/privacy.en.txt"),
            ),
            TermsKind::Marketing => (
                include_str!("../../terms/marketing.ko.txt"),
                include_str!("../../terms/marketing.en.txt"),
            ),
        };
        let text = TermsText::parse(korean, english).expect("a test reads the examples");
        TermsText { is_example: true, ..text }
    }

    /// A text that was stored.
    pub(super) fn stored(korean: String, english: String, is_example: bool) -> TermsText {
        TermsText { korean: korean.into(), english: english.into(), is_example }
    }

    pub fn in_language(&self, language: Language) -> &str {
        language.pick(&*self.korean, &*self.english)
    }

    pub fn is_example(&self) -> bool {
        self.is_example
    }

    /// Whether a version that was shown with `stored` may be shown with this text. Nobody could
    /// prove otherwise what a user agreed to. The program's examples may change with the program.
    pub fn may_follow(&self, stored: &TermsText) -> bool {
        self == stored || (self.is_example && stored.is_example)
    }
}

fn plain(text: &str) -> Result<Arc<str>, InvalidTermsText> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
    match text.trim() {
        "" => Err(InvalidTermsText::Empty),
        text if text.len() > TEXT_BYTES_MAX => Err(InvalidTermsText::TooLong),
        text if text.contains(is_control) => Err(InvalidTermsText::NotPlain),
        text => Ok(text.into()),
    }
}

/// The texts in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsTexts {
    pub service: TermsText,
    pub privacy: TermsText,
    pub marketing: TermsText,
}

impl TermsTexts {
    pub fn examples() -> TermsTexts {
        TermsTexts {
            service: TermsText::example(TermsKind::Service),
            privacy: TermsText::example(TermsKind::Privacy),
            marketing: TermsText::example(TermsKind::Marketing),
        }
    }

    pub fn of(&self, kind: TermsKind) -> &TermsText {
        match kind {
            TermsKind::Service => &self.service,
            TermsKind::Privacy => &self.privacy,
            TermsKind::Marketing => &self.marketing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_says_that_it_is_one() {
        for kind in TermsKind::ALL {
            let text = TermsText::example(kind);
            assert!(text.is_example());
            assert!(
                text.in_language(Language::Korean).starts_with("이 글은 프로그램에 들어 있는 예시")
            );
            assert!(text.in_language(Language::English).starts_with("This text is an example"));
        }
    }

    #[test]
    fn a_text_is_plain_and_not_too_long() {
        let parse = |text: &str| TermsText::parse(text, "x").map(|text| text.korean.to_string());
        assert_eq!(parse("\u{feff} 가\r\n\r\n나\t \n").as_deref(), Ok("가\n\n나"));
        assert_eq!(parse(" \n"), Err(InvalidTermsText::Empty));
        assert_eq!(parse("\u{1b}[31m"), Err(InvalidTermsText::NotPlain));
        assert_eq!(parse(&"가".repeat(40_000)), Err(InvalidTermsText::TooLong));
        assert_eq!(TermsText::parse("x", ""), Err(InvalidTermsText::Empty));
    }

    #[test]
    fn a_version_keeps_its_text_except_that_examples_may_change() {
        let own = |text: &str| TermsText::parse(text, text).unwrap();
        let example = |text: &str| TermsText::stored(text.into(), text.into(), true);
        assert!(own("1").may_follow(&own("1")));
        assert!(!own("2").may_follow(&own("1")));
        assert!(example("2").may_follow(&example("1")));
        assert!(!own("1").may_follow(&example("1")), "nobody agreed to it as the operator's");
        assert!(!example("1").may_follow(&own("1")), "a process without the operator's texts");
    }
}
