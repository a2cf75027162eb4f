//! Texts that people write. They are plain text: the service makes no markup of them, and the pages
//! show them as text. Nothing then has to be cleaned, in any of the places that show a post.

use urr_kernel::{UnfitText, one_line, paragraphs};

const TITLE_CHARS_MAX: usize = 100;
const CONTENT_CHARS_MAX: usize = 5_000;
const COMMENT_CHARS_MAX: usize = 1_000;
const NOTE_CHARS_MAX: usize = 500;
const IMAGES_MAX: usize = 4;
const OWN_IMAGES: &str = "/api/image/";
const IMAGE_ID_CHARS: usize = 64;

/// Why a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWriting {
    #[error("The title {0}.")]
    Title(UnfitText),
    #[error("The text {0}.")]
    Content(UnfitText),
    #[error("The note {0}.")]
    Note(UnfitText),
    #[error("A post has at most {IMAGES_MAX} pictures, and each was uploaded here.")]
    Images,
}

/// What a person writes in a post or in news: checked and trimmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostText {
    title: String,
    content: String,
    image_urls: Vec<String>,
}

impl PostText {
    pub fn parse(
        title: &str,
        content: &str,
        image_urls: Vec<String>,
    ) -> Result<PostText, InvalidWriting> {
        let title = one_line(title, TITLE_CHARS_MAX).map_err(InvalidWriting::Title)?.to_owned();
        let content = parse_content(content, CONTENT_CHARS_MAX)?;
        let is_allowed = image_urls.len() <= IMAGES_MAX && image_urls.iter().all(|url| is_own(url));
        match is_allowed {
            true => Ok(PostText { title, content, image_urls }),
            false => Err(InvalidWriting::Images),
        }
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn content(&self) -> &str {
        &self.content
    }

    pub fn image_urls(&self) -> &[String] {
        &self.image_urls
    }
}

pub fn parse_comment(text: &str) -> Result<String, InvalidWriting> {
    parse_content(text, COMMENT_CHARS_MAX)
}

/// What a moderator or somebody who reports adds. It may be empty.
pub fn parse_note(text: &str) -> Result<String, InvalidWriting> {
    let note = paragraphs(text, NOTE_CHARS_MAX).map_err(InvalidWriting::Note)?;
    Ok(note.to_owned())
}

/// Any number of lines, at least one, with one kind of line end.
fn parse_content(text: &str, chars_max: usize) -> Result<String, InvalidWriting> {
    let text = paragraphs(text, chars_max).map_err(InvalidWriting::Content)?;
    match text.is_empty() {
        true => Err(InvalidWriting::Content(UnfitText::Empty)),
        false => Ok(text.replace("\r\n", "\n").replace('\r', "\n")),
    }
}

/// The address of a picture that was uploaded here. One elsewhere would tell its owner who reads.
fn is_own(url: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    url.strip_prefix(OWN_IMAGES)
        .is_some_and(|id| id.len() == IMAGE_ID_CHARS && id.bytes().all(is_hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(title: &str, content: &str, images: &[&str]) -> Result<PostText, String> {
        let images = images.iter().map(|url| (*url).to_owned()).collect();
        PostText::parse(title, content, images).map_err(|error| error.to_string())
    }

    #[test]
    fn a_post_has_a_line_as_its_title_and_any_text() {
        let post = parse(" 첫 글 ", "하나\r\n둘\r셋", &[]).unwrap();
        assert_eq!((post.title(), post.content()), ("첫 글", "하나\n둘\n셋"));
        // Markup is text like any other.
        let script = "<script>alert(1)</script>";
        assert_eq!(parse(script, script, &[]).unwrap().content(), script);
        let refused = |title: &str, content: &str| parse(title, content, &[]).unwrap_err();
        assert_eq!(refused(" ", "x"), "The title is empty.");
        assert_eq!(refused("x", " \n "), "The text is empty.");
        assert_eq!(refused("a\nb", "x"), "The title has characters that cannot be shown.");
        let long = "가".repeat(CONTENT_CHARS_MAX + 1);
        assert_eq!(refused("x", &long), "The text is longer than 5000 characters.");
    }

    #[test]
    fn characters_that_turn_the_text_around_are_refused() {
        let turned = "Refund \u{202e}REGANAM";
        assert!(parse(turned, "x", &[]).is_err());
        assert!(parse("x", turned, &[]).is_err());
        assert!(parse_comment(turned).is_err());
        assert!(parse_note(turned).is_err());
        assert_eq!(parse_note(" "), Ok(String::new()));
    }

    #[test]
    fn pictures_are_our_own() {
        let own = format!("/api/image/{}", "0a".repeat(32));
        assert!(parse("x", "x", &[own.as_str(); 4]).is_ok());
        assert!(parse("x", "x", &[own.as_str(); 5]).is_err());
        for other in [
            "https://example.com/a.png",
            "javascript:alert(1)",
            "/api/image/../auth/me",
            "/api/image/0a",
            &own.to_uppercase(),
        ] {
            assert!(parse("x", "x", &[other]).is_err(), "{other}");
        }
    }
}
