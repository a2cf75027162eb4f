//! The settings of mails.

use urr_kernel::Secret;

use super::reader::Reader;
use super::rule::{choice, host, optional, password, port, text, web_origin};

/// Who takes mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSender {
    Log,
    Smtp,
}

const MAIL_SENDERS: &[(&str, MailSender)] = &[("log", MailSender::Log), ("smtp", MailSender::Smtp)];

/// How the way to the mail server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSecurity {
    StartTls,
    Tls,
    None,
}

const MAIL_SECURITIES: &[(&str, MailSecurity)] = &[
    ("starttls", MailSecurity::StartTls),
    ("tls", MailSecurity::Tls),
    ("none", MailSecurity::None),
];

#[derive(Debug, Clone)]
pub struct MailConfig {
    pub sender: MailSender,
    pub from: Option<String>,
    /// Where the links of mails lead. None: where browsers find this site otherwise.
    pub public_url: Option<String>,
    pub smtp_host: Option<String>,
    pub smtp_port: u16,
    pub smtp_security: MailSecurity,
    pub smtp_username: Option<String>,
    pub smtp_password: Option<Secret>,
}

impl MailConfig {
    pub fn read(read: &mut Reader) -> MailConfig {
        MailConfig {
            sender: read.value("mail.sender", &[], choice(MAIL_SENDERS)),
            from: read.value("mail.from", &[], optional(text())),
            public_url: read.value("mail.public_url", &[], optional(web_origin())),
            smtp_host: read.value("mail.smtp_host", &[], optional(host())),
            smtp_port: read.value("mail.smtp_port", &[], port()),
            smtp_security: read.value("mail.smtp_security", &[], choice(MAIL_SECURITIES)),
            smtp_username: read.value("mail.smtp_username", &[], optional(text())),
            smtp_password: read.secret("mail.smtp_password", &[], password()),
        }
    }
}
