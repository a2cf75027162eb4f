//! The rules for new passwords.

use urr_kernel::Secret;

use crate::accounts::email::Email;

/// A password that follows the rules. It is never printed.
#[derive(Clone, Debug)]
pub struct Password(Secret);

pub const PASSWORD_CHARS_MIN: usize = 8;
/// Longer ones would only cost time to hash.
pub const PASSWORD_CHARS_MAX: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPassword {
    #[error("The password must have at least {PASSWORD_CHARS_MIN} characters.")]
    TooShort,
    #[error("The password must have at most {PASSWORD_CHARS_MAX} characters.")]
    TooLong,
    #[error("The password must not be the e-mail address.")]
    SameAsEmail,
    #[error("This password is among the first that anyone would try. Please choose another.")]
    TooCommon,
}

impl Password {
    pub fn parse(text: &str, email: &Email) -> Result<Password, InvalidPassword> {
        let chars = text.chars().count();
        if chars < PASSWORD_CHARS_MIN {
            return Err(InvalidPassword::TooShort);
        }
        if chars > PASSWORD_CHARS_MAX {
            return Err(InvalidPassword::TooLong);
        }
        let lower = text.trim().to_lowercase();
        if lower == email.lookup_key() {
            return Err(InvalidPassword::SameAsEmail);
        }
        if is_monotonous(&lower) || COMMON.split(' ').any(|common| common == lower) {
            return Err(InvalidPassword::TooCommon);
        }
        Ok(Password(Secret::new(text)))
    }

    /// A password that a login has just proved, whether or not it follows the rules.
    pub fn already_in_use(text: Secret) -> Password {
        Password(text)
    }

    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// Whether a text is too long to be anybody's password, so that it need not be compared.
pub fn is_too_long(text: &str) -> bool {
    text.chars().count() > PASSWORD_CHARS_MAX
}

fn is_monotonous(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next();
    chars.all(|c| Some(c) == first)
}

/// The most common leaked passwords in lower case, with some that are common in Korea.
const COMMON: &str = "0123456789 1234567890 123456789 12345678 87654321 987654321 123123123 12341234 11223344 \
    1q2w3e4r 1q2w3e4r! 1q2w3e4r5t 1qaz2wsx 1qaz2wsx3edc zaq12wsx q1w2e3r4 qwer1234 qwer1234! \
    qwerty12 qwerty123 qwertyui qwertyuiop asdf1234 asdfasdf asdfghjk asdfghjkl zxcvbnm1 \
    abcd1234 abcd1234! abc12345 abcdefgh a1234567 a12345678 aa123456 password password! \
    password1 password1! password12 password123 passw0rd p@ssw0rd p@ssword admin123 \
    administrator welcome1 letmein1 changeme trustno1 iloveyou sunshine princess football \
    baseball superman starwars computer tkfkdgo12 dkssudgktpdy gksrnr123";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(), InvalidPassword> {
        let email = Email::parse("mina.kim@example.com").unwrap();
        Password::parse(text, &email).map(|password| assert_eq!(password.expose(), text))
    }

    #[test]
    fn a_password_is_kept_as_it_is_typed() {
        assert_eq!(parse(" 달무리 뜨는 밤 "), Ok(()));
        assert_eq!(parse(&"가".repeat(4).repeat(2).replace("가가", "가나")), Ok(()));
    }

    #[test]
    fn passwords_that_are_easily_guessed_are_refused() {
        assert_eq!(parse("달무리 뜨는"), Err(InvalidPassword::TooShort));
        assert_eq!(parse(&"ab".repeat(64)), Ok(()));
        assert_eq!(parse(&"ab".repeat(65)), Err(InvalidPassword::TooLong));
        assert_eq!(parse("Mina.Kim@Example.com"), Err(InvalidPassword::SameAsEmail));
        for common in
            ["password", "PassWord1", "qwer1234", "zzzzzzzzzzzz", "        ", "가가가가가가가가"]
        {
            assert_eq!(parse(common), Err(InvalidPassword::TooCommon), "{common:?}");
        }
    }

    #[test]
    fn the_list_holds_only_what_the_length_does_not_refuse_already() {
        for common in COMMON.split(' ') {
            let length = PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX;
            assert!(length.contains(&common.len()) && common == common.to_lowercase(), "{common}");
        }
    }

    #[test]
    fn a_password_is_not_printed_by_accident() {
        let email = Email::parse("a@b").unwrap();
        let password = Password::parse("correct horse", &email).unwrap();
        assert_eq!(format!("{password:?}"), "Password([secret])");
    }
}
