//! Looking at mails: one's own, and for administrators everybody's.

use urr_kernel::CallContext;
use urr_service::Page;
use urr_storage::StorageError;

use crate::Mails;
use crate::accounts::mask;
use crate::domain::mail::{Mail, MailId};
use crate::domain::template::{Rendered, render};
use crate::store;
pub use crate::store::MailFilter;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetryError {
    #[error("there is no such mail")]
    NotFound,
    #[error("the mail has not failed")]
    NotFailed,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Mails {
    /// One page of mails, the newest first, and how many there are.
    pub async fn list(
        &self,
        filter: MailFilter,
        page: Page,
    ) -> Result<(Vec<Mail>, u64), StorageError> {
        self.0.db.read(move |tx| store::mail_list(tx, filter, page)).await
    }

    pub async fn find(&self, id: MailId) -> Result<Option<Mail>, StorageError> {
        self.0.db.read(move |tx| store::mail_find(tx, id)).await
    }

    /// A mail as it is read, in the language in which it was last about to be sent.
    pub fn preview(&self, mail: &Mail) -> Rendered {
        let language = mail.language.unwrap_or_default();
        render(mail.kind, language, &mail.facts, &self.0.settings.public_url)
    }

    /// Where it goes, so that one recognises it. None: nowhere, or nobody says.
    pub async fn masked_address(&self, mail: &Mail, context: &CallContext) -> Option<String> {
        let readers = self.0.accounts.find(&[mail.user_id], context).await;
        let readers = readers.inspect_err(|error| tracing::warn!(%error, "no address to show"));
        let reader = readers.ok()?.remove(&mail.user_id)?;
        (!reader.address.is_empty()).then(|| mask(&reader.address))
    }

    /// A mail that has failed is due again, with all its attempts.
    pub async fn retry(&self, id: MailId) -> Result<Mail, RetryError> {
        let now = self.0.clock.now();
        self.0
            .db
            .write(move |tx| {
                let found = store::mail_find(tx, id)?.ok_or(RetryError::NotFound)?;
                if !store::mail_retry(tx, id, now)? {
                    return Err(RetryError::NotFailed);
                }
                Ok(store::mail_find(tx, id)?.unwrap_or(found))
            })
            .await
    }
}
