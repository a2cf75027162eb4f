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
    bounded(text, chars_max, |c| !fits_in_line(c))
}

/// The text without the space around it, if it can be shown in any number of lines. It may be empty.
pub fn paragraphs(text: &str, chars_max: usize) -> Result<&str, UnfitText> {
    let is_unfit = |c: char| !fits_in_line(c) && !matches!(c, '\n' | '\r' | '\t');
    bounded(text.trim(), chars_max, is_unfit)
}

fn bounded(
    text: &str,
    chars_max: usize,
    is_unfit: impl Fn(char) -> bool,
) -> Result<&str, UnfitText> {
    if text.chars().count() > chars_max {
        return Err(UnfitText::TooLong { chars_max });
    }
    match text.chars().any(is_unfit) {
        true => Err(UnfitText::ControlCharacter),
        false => Ok(text),
    }
}

/// Whether a character may be in a line of text. Characters that end a line are refused, and so are
/// those that change the direction of the text: with them a name can look like another one.
pub fn fits_in_line(c: char) -> bool {
    let ends_line = matches!(c, '\u{2028}' | '\u{2029}');
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    !c.is_control() && !ends_line && !turns
}

/// An e-mail address as those see it who need not write to it: enough to recognise it.
pub fn mask_email(address: &str) -> String {
    let (name, domain) = address.rsplit_once('@').unwrap_or((address, ""));
    let first: String = name.chars().take(1).collect();
    format!("{first}***@{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_the_first_letter_and_the_domain_are_shown() {
        assert_eq!(mask_email("mina@example.com"), "m***@example.com");
        assert_eq!(mask_email("김@example.com"), "김***@example.com");
        assert_eq!(mask_email("none"), "n***@");
    }

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
        assert_eq!(paragraphs(" 하나\n\t둘\r\n", 9), Ok("하나\n\t둘"));
        assert_eq!(paragraphs("", 9), Ok(""));
        assert_eq!(paragraphs("하나", 1), Err(UnfitText::TooLong { chars_max: 1 }));
        assert_eq!(paragraphs("a\u{7}", 9), Err(UnfitText::ControlCharacter));
    }

    /// "Refund \u{202e}REGANAM" is shown as "Refund MANAGER". The list is that of Unicode (`Bidi_Control`).
    #[test]
    fn characters_that_turn_the_text_around_are_refused() {
        let turns = ['\u{61c}', '\u{200e}', '\u{200f}'].into_iter();
        for c in turns.chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}') {
            let text = format!("Refund {c}REGANAM");
            for refused in [one_line(&text, 99), paragraphs(&text, 99)] {
                assert_eq!(refused, Err(UnfitText::ControlCharacter), "{c:?}");
            }
        }
        for line_end in ["a\u{2028}b", "a\u{2029}b"] {
            assert_eq!(one_line(line_end, 99), Err(UnfitText::ControlCharacter), "{line_end:?}");
        }
        // Control: scripts that are written from right to left, and joined emoji, are fine.
        for fine in ["فرقة النهر", "להקת הנהר", "👩\u{200d}🎤 한강", "é\u{301}"]
        {
            assert_eq!(one_line(fine, 99), Ok(fine));
            assert_eq!(paragraphs(fine, 99), Ok(fine));
        }
    }
}
