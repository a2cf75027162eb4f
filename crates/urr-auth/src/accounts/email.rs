//! E-mail addresses.

use std::fmt;

use urr_kernel::fits_in_line;

/// An address that is trimmed, of bounded length, and has one `@` with text on both sides. It is
/// stored as it was written and compared in lower case.
#[derive(Clone, PartialEq, Eq)]
pub struct Email(String);

pub const EMAIL_CHARS_MAX: usize = 254;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEmail {
    #[error("The e-mail address is empty.")]
    Empty,
    #[error("The e-mail address is longer than {EMAIL_CHARS_MAX} characters.")]
    TooLong,
    #[error("The e-mail address needs one @ with something before and after it.")]
    NoAddress,
    #[error("The e-mail address has spaces or characters that cannot be shown.")]
    BadCharacter,
}

impl Email {
    pub fn parse(text: &str) -> Result<Email, InvalidEmail> {
        let text = text.trim();
        if text.is_empty() {
            return Err(InvalidEmail::Empty);
        }
        if text.chars().count() > EMAIL_CHARS_MAX {
            return Err(InvalidEmail::TooLong);
        }
        if text.chars().any(|c| !fits_in_line(c) || c.is_whitespace()) {
            return Err(InvalidEmail::BadCharacter);
        }
        match text.split_once('@') {
            Some((name, host)) if !name.is_empty() && !host.is_empty() && !host.contains('@') => {
                Ok(Email(text.to_owned()))
            }
            _ => Err(InvalidEmail::NoAddress),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address in lower case, by which accounts are found. All providers treat upper and lower
    /// case as the same, although the standard does not.
    pub fn lookup_key(&self) -> String {
        self.0.to_lowercase()
    }
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[e-mail]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_trimmed_and_found_in_any_case() {
        let email = Email::parse("  Mina.Kim@Example.COM ").unwrap();
        assert_eq!(email.as_str(), "Mina.Kim@Example.COM");
        assert_eq!(email.lookup_key(), "mina.kim@example.com");
        assert_eq!(Email::parse("민아@예매.kr").unwrap().lookup_key(), "민아@예매.kr");
    }

    #[test]
    fn what_is_no_address_is_refused_with_its_reason() {
        let long = format!("{}@example.com", "a".repeat(EMAIL_CHARS_MAX - "@example.com".len()));
        assert!(Email::parse(&long).is_ok());
        for (text, expected) in [
            (" ", InvalidEmail::Empty),
            (&format!("a{long}"), InvalidEmail::TooLong),
            ("mina", InvalidEmail::NoAddress),
            ("@example.com", InvalidEmail::NoAddress),
            ("mina@", InvalidEmail::NoAddress),
            ("mina@a@b", InvalidEmail::NoAddress),
            ("mina@@example.com", InvalidEmail::NoAddress),
            ("mi na@example.com", InvalidEmail::BadCharacter),
            ("mina\0@example.com", InvalidEmail::BadCharacter),
            ("mina@exa\nmple.com", InvalidEmail::BadCharacter),
        ] {
            assert_eq!(Email::parse(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn an_address_is_not_printed_by_accident() {
        assert_eq!(format!("{:?}", Email::parse("mina@example.com").unwrap()), "[e-mail]");
    }
}
