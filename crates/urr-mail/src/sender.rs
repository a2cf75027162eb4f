//! Who takes mails from us: the log, or a server that speaks SMTP.

pub mod smtp;

use std::sync::Arc;

use urr_kernel::Timestamp;

use crate::domain::mail::{Kind, Language, MailId};
use crate::domain::retry::Outcome;
use crate::domain::template::Rendered;
use smtp::Smtp;

/// Where mails go. Clones share it.
#[derive(Clone, Debug)]
pub enum Sender {
    /// A line in the log and nothing else; administrators can read the mails.
    Log,
    Smtp(Arc<Smtp>),
}

/// A mail that is about to be sent.
#[derive(Clone)]
pub struct Letter {
    pub mail_id: MailId,
    pub kind: Kind,
    pub language: Language,
    pub address: String,
    pub rendered: Rendered,
    pub written_at: Timestamp,
}

impl Sender {
    pub async fn send(&self, letter: &Letter) -> Outcome {
        match self {
            Sender::Log => {
                let (kind, language) = (letter.kind.name(), letter.language.code());
                tracing::info!(kind, mail = %letter.mail_id, language, "a mail, to the log only");
                Outcome::Sent
            }
            Sender::Smtp(smtp) => smtp.send(letter).await,
        }
    }

    /// There is nothing to send for now.
    pub fn rest(&self) {
        match self {
            Sender::Log => {}
            Sender::Smtp(smtp) => smtp.hang_up(),
        }
    }
}
