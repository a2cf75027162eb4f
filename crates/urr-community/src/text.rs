//! Texts that people write. They are plain text: the service makes no markup of them, and the pages
//! show them as text. Nothing then has to be cleaned, in any of the places that show a post.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use urr_kernel::{UnfitText, one_line, paragraphs};
use utoipa::ToSchema;

const TITLE_CHARS_MAX: usize = 100;
const CONTENT_CHARS_MAX: usize = 5_000;
const COMMENT_CHARS_MAX: usize = 1_000;
const NOTE_CHARS_MAX: usize = 500;
const ALT_CHARS_MAX: usize = 200;
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
    #[error("The description of a picture {0}.")]
    Alt(UnfitText),
}

/// A picture of a post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PostImage {
    /// The `url` of an upload.
    #[schema(
        example = "/api/image/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    )]
    url: String,
    /// What it shows, for those who cannot see it.
    #[serde(default)]
    #[schema(max_length = 200, example = "푸른 조명 아래의 무대")]
    alt: String,
}

impl PostImage {
    /// The name of the picture in the catalogue.
    pub fn id(&self) -> String {
        self.url.trim_start_matches(OWN_IMAGES).to_owned()
    }

    fn parse(self) -> Result<PostImage, InvalidWriting> {
        if !is_own(&self.url) {
            return Err(InvalidWriting::Images);
        }
        let alt = match self.alt.trim().is_empty() {
            true => "",
            false => one_line(&self.alt, ALT_CHARS_MAX).map_err(InvalidWriting::Alt)?,
        };
        Ok(PostImage { alt: alt.to_owned(), url: self.url })
    }
}

/// What a person writes in a post or in news: checked and trimmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostText {
    title: String,
    content: String,
    images: Vec<PostImage>,
}

impl PostText {
    pub fn parse(
        title: &str,
        content: &str,
        images: Vec<PostImage>,
    ) -> Result<PostText, InvalidWriting> {
        let title = one_line(title, TITLE_CHARS_MAX).map_err(InvalidWriting::Title)?.to_owned();
        let content = parse_content(content, CONTENT_CHARS_MAX)?;
        let ids: BTreeSet<&str> = images.iter().map(|image| image.url.as_str()).collect();
        if images.len() > IMAGES_MAX || ids.len() < images.len() {
            return Err(InvalidWriting::Images);
        }
        let images = images.into_iter().map(PostImage::parse).collect::<Result<_, _>>()?;
        Ok(PostText { title, content, images })
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn content(&self) -> &str {
        &self.content
    }

    pub fn images(&self) -> &[PostImage] {
        &self.images
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
        let image = |url: &&str| PostImage { url: (*url).to_owned(), alt: String::new() };
        let images = images.iter().map(image).collect();
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
        let url = |number: u8| format!("/api/image/{}", format!("0{number}").repeat(32));
        let own = format!("/api/image/{}", "0a".repeat(32));
        let five: Vec<String> = (0..5).map(url).collect();
        let five: Vec<&str> = five.iter().map(String::as_str).collect();
        assert!(parse("x", "x", &five[..4]).is_ok());
        assert!(parse("x", "x", &five).is_err());
        assert!(parse("x", "x", &[own.as_str(); 2]).is_err(), "one picture twice");
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
