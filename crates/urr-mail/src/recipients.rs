//! The recipients of mails, as the auth service knows them.

use std::collections::HashMap;

use urr_contracts::clients::ClientError;
use urr_contracts::internal::auth::{AccountLanguage, ListUsers};
use urr_kernel::{CallContext, Language, Uuid};

use crate::MailService;

/// A user who can be written to.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient {
    pub address: String,
    /// Whether they have proved that the address is theirs.
    pub is_verified: bool,
    pub language: Language,
}

pub type Recipients = HashMap<Uuid, Recipient>;

impl MailService {
    /// Those of the users who have an account. At most a hundred can be asked for.
    pub(crate) async fn find_recipients(
        &self,
        user_ids: Vec<Uuid>,
        context: &CallContext,
    ) -> Result<Recipients, ClientError> {
        let users = self.parts.auth.call(ListUsers { user_ids }, context).await?.users;
        let recipients = users.into_iter().map(|user| {
            let language = match user.language {
                AccountLanguage::Korean | AccountLanguage::Other => Language::Korean,
                AccountLanguage::English => Language::English,
            };
            let is_verified = user.email_verified;
            (user.id, Recipient { address: user.email, is_verified, language })
        });
        Ok(recipients.collect())
    }
}
