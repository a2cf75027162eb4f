//! The terms that users agree to: which version is in force, and who has agreed to it.

pub mod documents;
pub mod http;
pub mod store;
pub mod texts;

use serde::{Deserialize, Serialize};
use urr_kernel::Timestamp;
use urr_storage::{DbResult, Tx, storable_enum};
use utoipa::ToSchema;

use crate::accounts::account::UserId;
use crate::accounts::store as users;
use crate::{AuthService, UserError};

pub use documents::{FindTermsError, TermsDocument, TermsTextError};
pub use texts::{InvalidTermsText, TermsText, TermsTexts};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TermsKind {
    Service,
    Privacy,
    Marketing,
}

storable_enum!(TermsKind {
    Service => "SERVICE",
    Privacy => "PRIVACY",
    Marketing => "MARKETING",
});

impl TermsKind {
    /// Whether an account needs the agreement.
    pub const fn is_required(self) -> bool {
        match self {
            TermsKind::Service | TermsKind::Privacy => true,
            TermsKind::Marketing => false,
        }
    }
}

/// A version of a document, such as `2026-11`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsVersion(String);

const VERSION_CHARS_MAX: usize = 20;

impl TermsVersion {
    /// 1 to 20 letters, digits, dots or dashes.
    pub fn parse(text: &str) -> Option<TermsVersion> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        let is_version = (1..=VERSION_CHARS_MAX).contains(&text.len()) && text.chars().all(plain);
        is_version.then(|| TermsVersion(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which version of each document is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsVersions {
    pub service: TermsVersion,
    pub privacy: TermsVersion,
    pub marketing: TermsVersion,
}

impl TermsVersions {
    /// The same for every document.
    pub fn all(version: &TermsVersion) -> TermsVersions {
        let [service, privacy, marketing] = [(); 3].map(|()| version.clone());
        TermsVersions { service, privacy, marketing }
    }

    pub fn of(&self, kind: TermsKind) -> &TermsVersion {
        match kind {
            TermsKind::Service => &self.service,
            TermsKind::Privacy => &self.privacy,
            TermsKind::Marketing => &self.marketing,
        }
    }

    /// The required terms that a user has not agreed to in the version in force. `latest` has the
    /// last answer to each.
    pub fn outstanding(&self, latest: &[TermsAnswer]) -> Vec<TermsKind> {
        let is_settled = |kind: TermsKind| {
            let in_force = self.of(kind).as_str();
            let mut latest = latest.iter().filter(|answer| answer.kind == kind);
            latest.any(|answer| answer.agreed && answer.version == in_force)
        };
        let required = TermsKind::ALL.into_iter().filter(|kind| kind.is_required());
        required.filter(|kind| !is_settled(*kind)).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = TermsAnswerBody)]
pub struct TermsAnswer {
    #[serde(rename = "type")]
    pub kind: TermsKind,
    /// The version in force.
    #[schema(max_length = 20, example = "2026-11")]
    pub version: String,
    pub agreed: bool,
}

/// An answer that was stored, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreedTerms {
    pub kind: TermsKind,
    pub version: String,
    pub agreed: bool,
    pub agreed_at: Timestamp,
}

/// Answers to the versions in force: at most one to each, and no refusal of required terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsAnswers(Vec<TermsAnswer>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTerms {
    #[error("The {0} terms must be agreed to.")]
    NotAgreed(TermsKind),
    #[error("The {0} terms are answered twice.")]
    Twice(TermsKind),
    #[error("Of the {} terms version {} is in force. Please read and answer that one.",
        .kind, .in_force.as_str())]
    Outdated { kind: TermsKind, in_force: TermsVersion },
}

impl TermsAnswers {
    /// The answers for a new account, which needs all required terms.
    pub fn for_new_account(
        answers: Vec<TermsAnswer>,
        in_force: &TermsVersions,
    ) -> Result<TermsAnswers, InvalidTerms> {
        for kind in TermsKind::ALL.into_iter().filter(|kind| kind.is_required()) {
            if !answers.iter().any(|answer| answer.kind == kind) {
                return Err(InvalidTerms::NotAgreed(kind));
            }
        }
        TermsAnswers::for_account(answers, in_force)
    }

    /// The answers for an existing account, to any of the terms.
    pub fn for_account(
        mut answers: Vec<TermsAnswer>,
        in_force: &TermsVersions,
    ) -> Result<TermsAnswers, InvalidTerms> {
        answers.sort_by_key(|answer| answer.kind);
        for pair in answers.windows(2) {
            if pair[0].kind == pair[1].kind {
                return Err(InvalidTerms::Twice(pair[0].kind));
            }
        }
        for TermsAnswer { kind, version, agreed } in &answers {
            if kind.is_required() && !agreed {
                return Err(InvalidTerms::NotAgreed(*kind));
            }
            let now = in_force.of(*kind);
            if version != now.as_str() {
                return Err(InvalidTerms::Outdated { kind: *kind, in_force: now.clone() });
            }
        }
        Ok(TermsAnswers(answers))
    }

    pub fn answers(&self) -> &[TermsAnswer] {
        &self.0
    }
}

impl AuthService {
    /// Stores answers. A repetition changes nothing. Returns the required terms that are still
    /// outstanding.
    pub async fn answer_terms(
        &self,
        id: UserId,
        terms: TermsAnswers,
    ) -> Result<Vec<TermsKind>, UserError> {
        let (auth, now) = (self.clone(), self.0.clock.now());
        let written = self.0.db.write(move |tx| {
            users::user_lock_existing(tx, id)?.ok_or(UserError::NotFound)?;
            let before = store::terms_list_latest(tx, id)?;
            let changed = terms.answers().iter().filter(|answer| !before.contains(answer));
            for answer in changed {
                store::terms_answer_insert(tx, id, answer, now)?;
            }
            Ok(auth.terms_outstanding(tx, id)?)
        });
        written.await
    }

    pub(crate) fn terms_outstanding(
        &self,
        tx: &mut Tx<'_>,
        id: UserId,
    ) -> DbResult<Vec<TermsKind>> {
        Ok(self.0.settings.terms.outstanding(&store::terms_list_latest(tx, id)?))
    }
}

#[cfg(test)]
mod tests {
    use super::TermsKind::{Marketing, Privacy, Service};
    use super::*;

    fn version(text: &str) -> TermsVersion {
        TermsVersion::parse(text).unwrap()
    }

    fn in_force() -> TermsVersions {
        TermsVersions { privacy: version("2026-12"), ..TermsVersions::all(&version("2026-11")) }
    }

    /// An answer to a document as it is now.
    fn answer(kind: TermsKind, agreed: bool) -> TermsAnswer {
        TermsAnswer { kind, version: in_force().of(kind).as_str().to_owned(), agreed }
    }

    fn newcomer(answers: &[(TermsKind, bool)]) -> Result<usize, InvalidTerms> {
        let answers = answers.iter().map(|(kind, agreed)| answer(*kind, *agreed));
        let terms = TermsAnswers::for_new_account(answers.collect(), &in_force());
        terms.map(|terms| terms.answers().len())
    }

    #[test]
    fn service_and_privacy_are_required_and_marketing_is_not() {
        assert_eq!(newcomer(&[(Privacy, true), (Service, true)]), Ok(2));
        assert_eq!(newcomer(&[(Service, true), (Privacy, true), (Marketing, false)]), Ok(3));
        assert_eq!(newcomer(&[]), Err(InvalidTerms::NotAgreed(Service)));
        assert_eq!(newcomer(&[(Service, true)]), Err(InvalidTerms::NotAgreed(Privacy)));
        let refused = [(Service, true), (Privacy, false), (Marketing, true)];
        assert_eq!(newcomer(&refused), Err(InvalidTerms::NotAgreed(Privacy)));
        let twice = [(Service, true), (Privacy, true), (Service, false)];
        assert_eq!(newcomer(&twice), Err(InvalidTerms::Twice(Service)));
    }

    #[test]
    fn who_has_an_account_answers_what_they_like_but_takes_nothing_required_back() {
        let member = |answers: Vec<TermsAnswer>| TermsAnswers::for_account(answers, &in_force());
        assert!(member(vec![answer(Marketing, true)]).is_ok());
        assert!(member(vec![]).is_ok());
        let refused = member(vec![answer(Service, false)]);
        assert_eq!(refused, Err(InvalidTerms::NotAgreed(Service)));
    }

    #[test]
    fn only_the_version_in_force_can_be_answered() {
        for old in ["2026-11", "2027-01", "", "<b>"] {
            let old = TermsAnswer { version: old.to_owned(), ..answer(Privacy, true) };
            let refused =
                TermsAnswers::for_new_account(vec![answer(Service, true), old], &in_force());
            let in_force = version("2026-12");
            assert_eq!(refused, Err(InvalidTerms::Outdated { kind: Privacy, in_force }));
        }
    }

    #[test]
    fn what_was_agreed_to_in_another_version_is_outstanding() {
        let outstanding = |latest: &[TermsAnswer]| in_force().outstanding(latest);
        let old = TermsAnswer { version: "2026-11".to_owned(), ..answer(Privacy, true) };
        assert_eq!(outstanding(&[]), [Service, Privacy]);
        assert_eq!(outstanding(&[answer(Service, true), old]), [Privacy]);
        assert_eq!(outstanding(&[answer(Service, false), answer(Privacy, true)]), [Service]);
        assert_eq!(outstanding(&[answer(Service, true), answer(Privacy, true)]), []);
    }

    #[test]
    fn a_version_is_short_and_plain() {
        assert!(TermsVersion::parse("2026-11").is_some());
        for bad in ["", "v 1", "<b>", &"1".repeat(21)] {
            assert_eq!(TermsVersion::parse(bad), None, "{bad}");
        }
    }
}
