//! Parsers of the texts that administrators enter.

use serde::{Serialize, Serializer};
use urr_kernel::{UnfitText, one_line, paragraphs};

/// Why the text of a field was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The {field} {reason}.")]
pub struct InvalidText {
    field: &'static str,
    reason: UnfitText,
}

/// One line that is trimmed, not empty, of bounded length, without control characters.
pub fn parse_line(
    field: &'static str,
    text: &str,
    chars_max: usize,
) -> Result<String, InvalidText> {
    let line = one_line(text, chars_max).map_err(|reason| InvalidText { field, reason })?;
    Ok(line.to_owned())
}

/// A text of any number of lines, which may be empty.
pub fn parse_paragraphs(
    field: &'static str,
    text: &str,
    chars_max: usize,
) -> Result<String, InvalidText> {
    let text = paragraphs(text, chars_max).map_err(|reason| InvalidText { field, reason })?;
    Ok(text.to_owned())
}

/// Shows an empty text as null.
pub fn empty_as_null<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    Some(text).filter(|text| !text.is_empty()).serialize(serializer)
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
        let invalid = |field, reason| InvalidText { field, reason };
        assert_eq!(parse_line("title", " 가을 밤 ", 10), Ok("가을 밤".to_owned()));
        assert_eq!(parse_line("title", " ", 10), Err(invalid("title", UnfitText::Empty)));
        let bell = UnfitText::ControlCharacter;
        assert_eq!(parse_line("title", "a\nb", 10), Err(invalid("title", bell)));
        let long = invalid("title", UnfitText::TooLong { chars_max: 2 });
        assert_eq!(parse_line("title", "가나다", 2), Err(long));
        assert_eq!(long.to_string(), "The title is longer than 2 characters.");
        assert_eq!(parse_paragraphs("text", "a\nb\n", 10), Ok("a\nb".to_owned()));
        assert_eq!(parse_paragraphs("text", "", 10), Ok(String::new()));
        assert_eq!(parse_paragraphs("text", "a\u{7}", 10), Err(invalid("text", bell)));
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
