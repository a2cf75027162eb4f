//! How mails leave: to the log, or to an SMTP server.

pub mod smtp;

use std::sync::Arc;

use urr_kernel::{Language, Timestamp};

use crate::domain::mail::{MailId, MailKind};
use crate::domain::retry::DeliveryOutcome;
use crate::domain::template::RenderedMail;
use smtp::SmtpTransport;

/// Where mails go. Clones share it.
#[derive(Clone, Debug)]
pub enum MailTransport {
    /// One line in the log; administrators can read the mails.
    Log,
    Smtp(Arc<SmtpTransport>),
}

/// A mail that is about to be sent.
#[derive(Clone)]
pub struct OutgoingMail {
    pub id: MailId,
    pub kind: MailKind,
    pub language: Language,
    pub address: String,
    pub rendered: RenderedMail,
    pub created_at: Timestamp,
    pub attachment: Option<MailAttachment>,
}

/// A file that goes with a mail. It is never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct MailAttachment {
    pub file_name: String,
    pub pdf: Vec<u8>,
}

impl MailTransport {
    pub async fn send(&self, mail: &OutgoingMail) -> DeliveryOutcome {
        match self {
            MailTransport::Log => {
                let (kind, language) = (mail.kind.as_str(), mail.language.as_str());
                tracing::info!(kind, mail = %mail.id, language, "mail written to the log only");
                DeliveryOutcome::Sent
            }
            MailTransport::Smtp(smtp) => smtp.send(mail).await,
        }
    }

    /// Whether mails can be sent. A server that could not be reached is tried again.
    pub async fn is_reachable(&self) -> bool {
        match self {
            MailTransport::Log => true,
            MailTransport::Smtp(smtp) => smtp.is_reachable().await,
        }
    }

    /// Whether the server could not be reached when it was last tried.
    pub fn is_away(&self) -> bool {
        match self {
            MailTransport::Log => false,
            MailTransport::Smtp(smtp) => smtp.is_away(),
        }
    }

    /// Closes connections, because there is nothing to send for now.
    pub fn close_idle(&self) {
        match self {
            MailTransport::Log => {}
            MailTransport::Smtp(smtp) => smtp.close_idle(),
        }
    }
}
