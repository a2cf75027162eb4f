//! What users agreed to, after they have registered.

use urr_storage::{StorageError, Tx};

use crate::domain::account::UserId;
use crate::domain::terms::{Terms, TermsKind};
use crate::store::{records, users};
use crate::{Auth, UserError};

impl Auth {
    /// Writes down what someone answers. Saying the same again changes nothing. Returns which
    /// required documents still wait for an answer.
    pub async fn answer_terms(
        &self,
        id: UserId,
        terms: Terms,
    ) -> Result<Vec<TermsKind>, UserError> {
        let (auth, now) = (self.clone(), self.clock.now());
        self.db
            .write(move |tx| {
                let user = users::user_lock(tx, id)?.filter(|user| user.person.is_some());
                user.ok_or(UserError::NotFound)?;
                let before = records::terms_list_latest(tx, id)?;
                let news = terms.answers().iter().filter(|answer| !before.contains(answer));
                for answer in news {
                    records::agreement_insert(tx, id, answer, now)?;
                }
                Ok(auth.terms_outstanding(tx, id)?)
            })
            .await
    }

    pub(crate) fn terms_outstanding(
        &self,
        tx: &mut Tx<'_>,
        id: UserId,
    ) -> Result<Vec<TermsKind>, StorageError> {
        Ok(self.settings.terms.outstanding(&records::terms_list_latest(tx, id)?))
    }
}
