//! Validation of texts that users enter and others see.

/// Why a text cannot be shown in one line. The text follows a subject, as in "The name is empty".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitText {
    #[error("is empty")]
    Empty,
    #[error("is longer than {chars_max} characters")]
    TooLong { chars_max: usize },
    #[error("has characters that cannot be shown")]
    ControlCharacter,
}

/// The text without the space around it, if it can be shown in one line.
pub fn one_line(text: &str, chars_max: usize) -> Result<&str, UnfitText> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnfitText::Empty);
    }
    if text.chars().count() > chars_max {
        return Err(UnfitText::TooLong { chars_max });
    }
    match text.chars().any(char::is_control) {
        true => Err(UnfitText::ControlCharacter),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_trimmed_bounded_by_characters_and_free_of_what_cannot_be_shown() {
        assert_eq!(one_line(" 한강 밴드 ", 5), Ok("한강 밴드"));
        assert_eq!(one_line("한강 밴드들", 5), Err(UnfitText::TooLong { chars_max: 5 }));
        for empty in ["", " \t\n "] {
            assert_eq!(one_line(empty, 5), Err(UnfitText::Empty));
        }
        for bad in ["a\0b", "a\nb", "a\u{7}b", "a\u{9b}b"] {
            assert_eq!(one_line(bad, 5), Err(UnfitText::ControlCharacter), "{bad:?}");
        }
    }
}
