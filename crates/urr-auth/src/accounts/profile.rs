//! Names and phone numbers.

use std::fmt;

use urr_kernel::{UnfitText, one_line};

/// A name that is trimmed, not empty and of bounded length.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonName(String);

/// A phone number of digits, `+` and `-`.
#[derive(Clone, PartialEq, Eq)]
pub struct PhoneNumber(String);

pub const NAME_CHARS_MAX: usize = 100;
pub const PHONE_CHARS_MAX: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The name {0}.")]
pub struct InvalidName(UnfitText);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPhone {
    #[error("The phone number has no digits.")]
    NoDigits,
    #[error("The phone number is longer than {PHONE_CHARS_MAX} characters.")]
    TooLong,
    #[error("The phone number may have digits, + and - only.")]
    BadCharacter,
}

impl PersonName {
    pub fn parse(text: &str) -> Result<PersonName, InvalidName> {
        let name = one_line(text, NAME_CHARS_MAX).map_err(InvalidName)?;
        Ok(PersonName(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in lower case and without spaces, by which administrators find accounts.
    pub fn lookup_key(&self) -> String {
        self.0.to_lowercase().split_whitespace().collect()
    }
}

impl PhoneNumber {
    pub fn parse(text: &str) -> Result<PhoneNumber, InvalidPhone> {
        let phone = text.trim();
        if phone.len() > PHONE_CHARS_MAX {
            return Err(InvalidPhone::TooLong);
        }
        if !phone.chars().all(|c| c.is_ascii_digit() || c == '+' || c == '-') {
            return Err(InvalidPhone::BadCharacter);
        }
        if !phone.contains(|c: char| c.is_ascii_digit()) {
            return Err(InvalidPhone::NoDigits);
        }
        Ok(PhoneNumber(phone.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digits, as they are dialled in Korea, by which administrators find accounts.
    pub fn lookup_key(&self) -> String {
        let digits: String = self.0.chars().filter(char::is_ascii_digit).collect();
        match digits.strip_prefix("82") {
            Some(rest) if self.0.starts_with('+') => format!("0{}", rest.trim_start_matches('0')),
            _ => digits,
        }
    }
}

impl fmt::Debug for PersonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[name]")
    }
}

impl fmt::Debug for PhoneNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[phone]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_shown_are_refused() {
        assert_eq!(PersonName::parse(" 김민아 ").unwrap().as_str(), "김민아");
        let long = "가".repeat(NAME_CHARS_MAX);
        assert!(PersonName::parse(&long).is_ok());
        let refusal = PersonName::parse(&format!("{long}나")).unwrap_err();
        assert_eq!(refusal.to_string(), "The name is longer than 100 characters.");
        assert_eq!(PersonName::parse(" \t "), Err(InvalidName(UnfitText::Empty)));
        assert_eq!(PersonName::parse("a\u{7}b"), Err(InvalidName(UnfitText::ControlCharacter)));
    }

    #[test]
    fn phone_numbers_have_digits_and_little_else() {
        for good in ["010-1234-5678", "+82-10-1234-5678", "1"] {
            assert_eq!(PhoneNumber::parse(good).unwrap().as_str(), good);
        }
        assert_eq!(PhoneNumber::parse(&"1".repeat(21)), Err(InvalidPhone::TooLong));
        assert_eq!(PhoneNumber::parse("010 1234"), Err(InvalidPhone::BadCharacter));
        assert_eq!(PhoneNumber::parse("٠١٠"), Err(InvalidPhone::BadCharacter));
        assert_eq!(PhoneNumber::parse("+-"), Err(InvalidPhone::NoDigits));
        assert_eq!(PhoneNumber::parse(""), Err(InvalidPhone::NoDigits));
    }

    #[test]
    fn names_and_numbers_are_found_however_they_are_written() {
        let number = |text| PhoneNumber::parse(text).unwrap().lookup_key();
        for same in ["010-1234-5678", "01012345678", "+82-10-1234-5678", "+82-010-1234-5678"] {
            assert_eq!(number(same), "01012345678", "{same}");
        }
        assert_eq!(number("8210"), "8210", "without a plus it is no country");
        let name = |text| PersonName::parse(text).unwrap().lookup_key();
        assert_eq!(name("Kim  Mina"), name("kim mina"));
        assert_ne!(name("김민아"), name("김민지"));
    }
}
