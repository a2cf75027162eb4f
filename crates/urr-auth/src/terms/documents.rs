//! Versions with their texts. What a version said is stored when it comes into force, so that
//! users can read later what they agreed to, and nobody can change it afterwards.

use urr_storage::StorageError;

use super::{TermsKind, TermsText, TermsVersion, store};
use crate::{AuthService, InternalError};

/// One of the terms in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsDocument {
    pub kind: TermsKind,
    pub version: String,
    pub text: TermsText,
}

#[derive(Debug, thiserror::Error)]
pub enum TermsTextError {
    #[error(
        "the {kind} terms were shown in version {version} with another text; users agreed to that \
         one: set auth.{}_terms_version to a new version, or restore the text of auth.terms_dir",
        .kind.as_str().to_ascii_lowercase()
    )]
    OtherText { kind: TermsKind, version: String },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindTermsError {
    #[error("There is no such version of these terms.")]
    UnknownVersion,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

crate::internal_error::from_internal_errors!(FindTermsError);

impl AuthService {
    /// Stores the texts in force. Fails if a version was shown with another text before.
    pub async fn record_terms(&self) -> Result<(), TermsTextError> {
        let (documents, now) = (TermsKind::ALL.map(|kind| self.document(kind)), self.0.clock.now());
        let written = self.0.db.write(move |tx| {
            for document in &documents {
                // The key decides between two processes that start at once.
                store::document_insert(tx, document, now)?;
                let stored = store::document_find(tx, document.kind, &document.version)?;
                let stored = stored.expect("it was inserted, and none is deleted").text;
                if !document.text.may_follow(&stored) {
                    let (kind, version) = (document.kind, document.version.clone());
                    return Err(TermsTextError::OtherText { kind, version });
                }
                if document.text != stored {
                    store::document_replace_example(tx, document)?;
                }
            }
            Ok(())
        });
        written.await
    }

    /// The terms in force, or in the version that was asked for.
    pub async fn find_terms(
        &self,
        kind: TermsKind,
        version: Option<String>,
    ) -> Result<TermsDocument, FindTermsError> {
        let in_force = self.document(kind);
        let Some(version) = version.filter(|version| *version != in_force.version) else {
            return Ok(in_force);
        };
        let version = TermsVersion::parse(&version).ok_or(FindTermsError::UnknownVersion)?;
        let find =
            move |tx: &mut urr_storage::Tx<'_>| store::document_find(tx, kind, version.as_str());
        self.read(find).await?.ok_or(FindTermsError::UnknownVersion)
    }

    fn document(&self, kind: TermsKind) -> TermsDocument {
        let settings = &self.0.settings;
        let (version, text) = (settings.terms.of(kind), settings.terms_texts.of(kind));
        TermsDocument { kind, version: version.as_str().to_owned(), text: text.clone() }
    }
}
