//! Artists.

use std::fmt;

use urr_kernel::{Timestamp, UnfitText, Won, define_id, one_line};

define_id!(
    /// Which artist.
    ArtistId
);

/// Someone who performs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artist {
    pub id: ArtistId,
    pub name: ArtistName,
    pub description: String,
    /// Empty: there is none.
    pub image_url: String,
    /// The price of a year's fan membership.
    pub membership_price: Won,
    pub created_at: Timestamp,
}

/// A name fit to be shown: trimmed, not empty, of bounded length, without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtistName(String);

pub const NAME_CHARS_MAX: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The name {0}.")]
pub struct InvalidArtistName(UnfitText);

impl ArtistName {
    pub fn parse(text: &str) -> Result<ArtistName, InvalidArtistName> {
        let name = one_line(text, NAME_CHARS_MAX).map_err(InvalidArtistName)?;
        Ok(ArtistName(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ArtistName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_and_keeps_its_letters() {
        assert_eq!(ArtistName::parse("  한강 밴드 ").unwrap().as_str(), "한강 밴드");
    }

    #[test]
    fn names_that_cannot_be_shown_are_refused() {
        let long = "가".repeat(NAME_CHARS_MAX);
        assert!(ArtistName::parse(&long).is_ok());
        for (text, reason) in [
            (format!("{long}나").as_str(), "The name is longer than 100 characters."),
            (" \t ", "The name is empty."),
            ("a\0b", "The name has characters that cannot be shown."),
        ] {
            assert_eq!(ArtistName::parse(text).unwrap_err().to_string(), reason);
        }
    }
}
