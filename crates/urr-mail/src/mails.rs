//! Operations on stored mails: a user's own notifications, and every mail for administrators.

use urr_kernel::{CallContext, Uuid, mask_email};
use urr_service::Page;
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{DbResult, StorageError};

use crate::MailService;
use crate::domain::mail::{Mail, MailId};
use crate::domain::template::{RenderedMail, render};
use crate::store;
pub use crate::store::MailFilter;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetryMailError {
    #[error("there is no such mail")]
    NotFound,
    #[error("the mail has not failed")]
    NotFailed,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl MailService {
    /// One page of mails, the newest first, and how many there are.
    pub async fn list_mails(&self, filter: MailFilter, page: Page) -> DbResult<(Vec<Mail>, u64)> {
        self.parts.db.read(move |tx| store::mail_list(tx, filter, page)).await
    }

    pub async fn find_mail(&self, id: MailId) -> DbResult<Option<Mail>> {
        self.parts.db.read(move |tx| store::mail_find(tx, id)).await
    }

    /// The text of a mail, in the language of its last attempt.
    pub fn preview_mail(&self, mail: &Mail) -> RenderedMail {
        let language = mail.language.unwrap_or_default();
        render(mail.kind, language, &mail.template_data, &self.parts.settings.public_url)
    }

    /// None if the user has no account or no address, or if the auth service does not answer.
    pub async fn masked_address(&self, mail: &Mail, context: &CallContext) -> Option<String> {
        let recipients = self.find_recipients(vec![mail.user_id], context).await;
        let recipients = recipients
            .inspect_err(|error| tracing::warn!(%error, "the address of a mail is not shown"));
        let recipient = recipients.ok()?.remove(&mail.user_id)?;
        (!recipient.address.is_empty()).then(|| mask_email(&recipient.address))
    }

    /// Makes a failed mail due again, with all its attempts.
    pub async fn retry_mail(&self, id: MailId, admin_id: Uuid) -> Result<Mail, RetryMailError> {
        let (action_id, now) = (self.parts.ids.next_id(), self.parts.clock.now());
        self.parts
            .db
            .write(move |tx| {
                let mail = store::mail_find(tx, id)?.ok_or(RetryMailError::NotFound)?;
                if !store::mail_retry(tx, id, now)? {
                    return Err(RetryMailError::NotFailed);
                }
                let action = AdminAction {
                    id: action_id,
                    admin_id: Some(admin_id),
                    action: "MAIL_RETRIED".into(),
                    resource_type: "mail".into(),
                    resource_id: id.to_string(),
                    summary: mail.kind.to_string(),
                    details: None,
                    created_at: now,
                };
                admin_log::insert(tx, &action)?;
                Ok(store::mail_find(tx, id)?.unwrap_or(mail))
            })
            .await
    }
}
