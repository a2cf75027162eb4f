//! Parsers of the texts that administrators enter.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    #[error("The {0} is empty.")]
    Empty(&'static str),
    #[error("The {0} is longer than {1} characters.")]
    TooLong(&'static str, usize),
    #[error("The {0} has characters that cannot be shown.")]
    ControlCharacter(&'static str),
}

/// One line that is trimmed, not empty, of bounded length, without control characters.
pub fn parse_line(what: &'static str, text: &str, chars_max: usize) -> Result<String, InvalidText> {
    let text = text.trim();
    if text.is_empty() {
        return Err(InvalidText::Empty(what));
    }
    check_length(what, text, chars_max)?;
    if text.chars().any(char::is_control) {
        return Err(InvalidText::ControlCharacter(what));
    }
    Ok(text.to_owned())
}

/// A text of any number of lines, which may be empty.
pub fn parse_paragraphs(
    what: &'static str,
    text: &str,
    chars_max: usize,
) -> Result<String, InvalidText> {
    let text = text.trim();
    check_length(what, text, chars_max)?;
    let is_forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if text.chars().any(is_forbidden) {
        return Err(InvalidText::ControlCharacter(what));
    }
    Ok(text.to_owned())
}

fn check_length(what: &'static str, text: &str, chars_max: usize) -> Result<(), InvalidText> {
    match text.chars().count() > chars_max {
        true => Err(InvalidText::TooLong(what, chars_max)),
        false => Ok(()),
    }
}

const URL_CHARS_MAX: usize = 500;
const OWN_IMAGES: &str = "/api/image/";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The address of an image begins with https:// or /api/image/ and has no spaces.")]
pub struct InvalidImageUrl;

/// The address of an image: one of ours, or any with TLS. Empty if there is none.
pub fn parse_image_url(text: &str) -> Result<String, InvalidImageUrl> {
    let url = text.trim();
    if url.is_empty() {
        return Ok(String::new());
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix(OWN_IMAGES));
    let is_plain = url.len() <= URL_CHARS_MAX
        && url.bytes().all(|byte| byte.is_ascii_graphic())
        && !url.contains(['"', '\'', '<', '>', '\\', '`']);
    let begins_well =
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    if is_plain && begins_well && !url.contains("/../") {
        Ok(url.to_owned())
    } else {
        Err(InvalidImageUrl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_a_paragraph_may_have_several() {
        assert_eq!(parse_line("title", " 가을 밤 ", 10), Ok("가을 밤".to_owned()));
        assert_eq!(parse_line("title", " ", 10), Err(InvalidText::Empty("title")));
        assert_eq!(parse_line("title", "a\nb", 10), Err(InvalidText::ControlCharacter("title")));
        assert_eq!(parse_line("title", "가나다", 2), Err(InvalidText::TooLong("title", 2)));
        assert_eq!(parse_paragraphs("text", "a\nb\n", 10), Ok("a\nb".to_owned()));
        assert_eq!(parse_paragraphs("text", "", 10), Ok(String::new()));
        let bell = InvalidText::ControlCharacter("text");
        assert_eq!(parse_paragraphs("text", "a\u{7}", 10), Err(bell));
    }

    #[test]
    fn a_picture_is_ours_or_behind_tls() {
        for good in ["https://example.com/a.png?x=1", "/api/image/0a1b", ""] {
            assert_eq!(parse_image_url(good), Ok(good.to_owned()));
        }
        for bad in [
            "http://example.com/a.png",
            "javascript:alert(1)",
            "//example.com/a.png",
            "/api/images/x",
            "/api/image/../admin",
            "/api/image/a/../../admin",
            "https://",
            "https:///x",
            "https://example.com/\" onerror=\"x",
            "https://example.com/a b",
            "data:image/png;base64,xx",
            "https://예매.kr/a.png",
        ] {
            assert_eq!(parse_image_url(bad), Err(InvalidImageUrl), "{bad}");
        }
        let long = format!("https://example.com/{}", "a".repeat(500));
        assert_eq!(parse_image_url(&long), Err(InvalidImageUrl));
    }
}
