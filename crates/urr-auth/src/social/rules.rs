//! The rules of social logins: which account a profile belongs to, and where the browser may continue.

use serde::Serialize;
use urr_kernel::fits_in_line;
use urr_storage::storable_enum;

use crate::SocialError;
use crate::accounts::account::UserId;
use crate::accounts::email::Email;
use crate::accounts::profile::{NAME_CHARS_MAX, PersonName};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SocialProvider {
    Google,
    Kakao,
    Naver,
}

storable_enum!(SocialProvider {
    Google => "google",
    Kakao => "kakao",
    Naver => "naver",
});

impl SocialProvider {
    /// The kind under which its subjects are encrypted and indexed.
    pub const fn subject_kind(self) -> &'static str {
        match self {
            SocialProvider::Google => "social-google",
            SocialProvider::Kakao => "social-kakao",
            SocialProvider::Naver => "social-naver",
        }
    }
}

/// The profile of a user at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocialProfile {
    /// The provider's id of the user, which never changes and is never reused.
    pub subject: String,
    pub email: Option<Email>,
    /// Whether the provider has verified the address.
    pub email_verified: bool,
    pub name: Option<String>,
}

impl SocialProfile {
    /// A valid name, made from the name or the address.
    pub fn display_name(&self, email: &Email) -> PersonName {
        let local_part = email.as_str().split('@').next();
        let candidates = [self.name.as_deref(), local_part];
        let parsed = candidates.into_iter().flatten().find_map(|candidate| {
            let shown = candidate.chars().filter(|c| fits_in_line(*c)).take(NAME_CHARS_MAX);
            PersonName::parse(&shown.collect::<String>()).ok()
        });
        parsed.expect("an address has a local part that can be shown")
    }
}

/// The account that has the address of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmailOwner {
    pub id: UserId,
    pub email_verified: bool,
    /// It has another identity of the same provider.
    pub has_other_identity: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInDecision {
    /// The identity belongs to this account.
    Existing(UserId),
    /// The address proves that the account is theirs, so the identity is linked to it.
    Link(UserId),
    /// There is no account yet.
    Register,
    /// Nobody has proved that the address of this account is theirs, and its owner is here. If the
    /// account never bought anything, it is deleted, and the owner registers.
    Replace(UserId),
}

/// Decides which account a social login leads to.
///
/// An address links an identity to an account only if both sides have verified it. Otherwise anyone
/// could claim the address at the provider, or register it here in advance and wait for its owner.
/// An account that nobody verified may have been registered by a stranger, so it is never joined; it
/// may give way to who has verified the address.
pub fn decide_sign_in(
    identity_owner: Option<UserId>,
    email_owner: Option<EmailOwner>,
    profile: &SocialProfile,
    terms_agreed: bool,
) -> Result<SignInDecision, SocialError> {
    if let Some(id) = identity_owner {
        return Ok(SignInDecision::Existing(id));
    }
    if profile.email.is_none() {
        return Err(SocialError::EmailRequired);
    }
    match email_owner {
        Some(owner)
            if profile.email_verified && owner.email_verified && !owner.has_other_identity =>
        {
            Ok(SignInDecision::Link(owner.id))
        }
        Some(owner) if profile.email_verified && !owner.email_verified => match terms_agreed {
            true => Ok(SignInDecision::Replace(owner.id)),
            false => Err(SocialError::TermsRequired),
        },
        Some(_) => Err(SocialError::EmailInUse),
        None if !terms_agreed => Err(SocialError::TermsRequired),
        None => Ok(SignInDecision::Register),
    }
}

/// A path of our own site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPath(String);

pub const PATH_BYTES_MAX: usize = 512;

impl LocalPath {
    /// Accepts only what every browser takes as a path of the same site: `//host` and `/\host` are
    /// other sites, and browsers drop tabs and line ends first.
    pub fn parse(text: &str) -> Option<LocalPath> {
        let visible = |byte: u8| (0x21..=0x7e).contains(&byte) && byte != b'\\';
        let is_local = text.starts_with('/')
            && !text.starts_with("//")
            && text.len() <= PATH_BYTES_MAX
            && text.bytes().all(visible);
        is_local.then(|| LocalPath(text.to_owned()))
    }

    pub fn root() -> LocalPath {
        LocalPath("/".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path with an error code in the query.
    pub fn with_error(&self, code: &str) -> String {
        let (path, fragment) = match self.0.split_once('#') {
            Some((path, fragment)) => (path, format!("#{fragment}")),
            None => (self.0.as_str(), String::new()),
        };
        let separator = if path.contains('?') { '&' } else { '?' };
        format!("{path}{separator}error={code}{fragment}")
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;

    fn profile(email_verified: bool) -> SocialProfile {
        SocialProfile {
            subject: "108".to_owned(),
            email: Some(Email::parse("mina@example.com").unwrap()),
            email_verified,
            name: None,
        }
    }

    fn owner(email_verified: bool) -> EmailOwner {
        EmailOwner { id: user(2), email_verified, has_other_identity: false }
    }

    fn user(number: u128) -> UserId {
        UserId(Uuid::from_u128(number))
    }

    #[test]
    fn d_16_an_address_joins_an_account_only_if_both_sides_proved_it() {
        for (theirs, ours, expected) in [
            (true, true, Ok(SignInDecision::Link(user(2)))),
            (true, false, Ok(SignInDecision::Replace(user(2)))),
            (false, true, Err(SocialError::EmailInUse)),
            (false, false, Err(SocialError::EmailInUse)),
        ] {
            let decided = decide_sign_in(None, Some(owner(ours)), &profile(theirs), true);
            assert_eq!(decided, expected, "provider {theirs}, account {ours}");
        }
        let other = EmailOwner { has_other_identity: true, ..owner(true) };
        let decided = decide_sign_in(None, Some(other), &profile(true), true);
        assert_eq!(decided, Err(SocialError::EmailInUse));
    }

    #[test]
    fn who_is_known_needs_neither_address_nor_terms() {
        let nameless = SocialProfile { email: None, ..profile(false) };
        let decided = decide_sign_in(Some(user(1)), Some(owner(true)), &nameless, false);
        assert_eq!(decided, Ok(SignInDecision::Existing(user(1))));
        let decided = decide_sign_in(None, None, &nameless, true);
        assert_eq!(decided, Err(SocialError::EmailRequired));
    }

    #[test]
    fn a_new_account_needs_the_terms() {
        let decide = |agreed| decide_sign_in(None, None, &profile(true), agreed);
        assert_eq!(decide(true), Ok(SignInDecision::Register));
        assert_eq!(decide(false), Err(SocialError::TermsRequired));
    }

    #[test]
    fn only_paths_of_this_site_are_gone_on_at() {
        for good in ["/", "/events/7?tab=seats#map", "/a//b", "/%2f/x", "/login?return=https://b"] {
            assert_eq!(LocalPath::parse(good).unwrap().as_str(), good);
        }
        let long = format!("/{}", "a".repeat(PATH_BYTES_MAX));
        for bad in [
            "",
            "events",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "\t//evil.example",
            " //evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/a\r\nset-cookie: x=1",
            "/공연",
            &long,
        ] {
            assert_eq!(LocalPath::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_path_is_told_what_went_wrong() {
        let told = |path| LocalPath::parse(path).unwrap().with_error("X");
        assert_eq!(told("/me"), "/me?error=X");
        assert_eq!(told("/me?tab=1"), "/me?tab=1&error=X");
        assert_eq!(told("/me#links"), "/me?error=X#links");
    }

    #[test]
    fn a_name_can_always_be_shown() {
        let email = Email::parse("mina@example.com").unwrap();
        let shown = |name: Option<&str>| {
            let profile = SocialProfile { name: name.map(str::to_owned), ..profile(true) };
            profile.display_name(&email).as_str().to_owned()
        };
        assert_eq!(shown(Some(" 김\u{7}민아 ")), "김민아");
        assert_eq!(shown(Some(" \u{7} ")), "mina");
        assert_eq!(shown(None), "mina");
        assert_eq!(shown(Some(&"가".repeat(300))).chars().count(), NAME_CHARS_MAX);
    }
}
