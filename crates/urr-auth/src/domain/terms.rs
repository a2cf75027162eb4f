//! What someone agreed to when they registered.

/// A document to agree to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TermsKind {
    Service,
    Privacy,
    Marketing,
}

impl TermsKind {
    pub const ALL: [TermsKind; 3] = [TermsKind::Service, TermsKind::Privacy, TermsKind::Marketing];

    pub const fn name(self) -> &'static str {
        match self {
            TermsKind::Service => "SERVICE",
            TermsKind::Privacy => "PRIVACY",
            TermsKind::Marketing => "MARKETING",
        }
    }

    /// Whether there is no account without it.
    pub const fn is_required(self) -> bool {
        match self {
            TermsKind::Service | TermsKind::Privacy => true,
            TermsKind::Marketing => false,
        }
    }
}

/// An answer to one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    pub kind: TermsKind,
    pub version: String,
    pub agreed: bool,
}

/// The answers to all documents: each once at most, the required ones with yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms(Vec<Agreement>);

pub const VERSION_CHARS_MAX: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTerms {
    #[error("The {} terms must be agreed to.", .0.name())]
    NotAgreed(TermsKind),
    #[error("The {} terms are answered twice.", .0.name())]
    Twice(TermsKind),
    #[error("A version of terms has 1 to {VERSION_CHARS_MAX} letters, digits, dots or dashes.")]
    BadVersion,
}

impl Terms {
    pub fn parse(mut answers: Vec<Agreement>) -> Result<Terms, InvalidTerms> {
        answers.sort_by_key(|answer| answer.kind);
        for pair in answers.windows(2) {
            if pair[0].kind == pair[1].kind {
                return Err(InvalidTerms::Twice(pair[0].kind));
            }
        }
        if answers.iter().any(|answer| !is_version(&answer.version)) {
            return Err(InvalidTerms::BadVersion);
        }
        for kind in TermsKind::ALL.into_iter().filter(|kind| kind.is_required()) {
            if !answers.iter().any(|answer| answer.kind == kind && answer.agreed) {
                return Err(InvalidTerms::NotAgreed(kind));
            }
        }
        Ok(Terms(answers))
    }

    pub fn answers(&self) -> &[Agreement] {
        &self.0
    }
}

fn is_version(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    (1..=VERSION_CHARS_MAX).contains(&text.len()) && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::TermsKind::{Marketing, Privacy, Service};
    use super::*;

    fn parse(answers: &[(TermsKind, bool)]) -> Result<usize, InvalidTerms> {
        let answers = answers.iter().map(|(kind, agreed)| Agreement {
            kind: *kind,
            version: "2026-11".to_owned(),
            agreed: *agreed,
        });
        Terms::parse(answers.collect()).map(|terms| terms.answers().len())
    }

    #[test]
    fn service_and_privacy_are_required_and_marketing_is_not() {
        assert_eq!(parse(&[(Privacy, true), (Service, true)]), Ok(2));
        assert_eq!(parse(&[(Service, true), (Privacy, true), (Marketing, false)]), Ok(3));
        assert_eq!(parse(&[]), Err(InvalidTerms::NotAgreed(Service)));
        assert_eq!(parse(&[(Service, true)]), Err(InvalidTerms::NotAgreed(Privacy)));
        let refused = [(Service, true), (Privacy, false), (Marketing, true)];
        assert_eq!(parse(&refused), Err(InvalidTerms::NotAgreed(Privacy)));
    }

    #[test]
    fn an_answer_counts_once_and_names_its_version() {
        let twice = [(Service, true), (Privacy, true), (Service, false)];
        assert_eq!(parse(&twice), Err(InvalidTerms::Twice(Service)));
        for version in ["", "v 1", "<b>", &"1".repeat(21)] {
            let answer = Agreement { kind: Service, version: version.to_owned(), agreed: true };
            assert_eq!(Terms::parse(vec![answer]), Err(InvalidTerms::BadVersion), "{version}");
        }
    }
}
