//! Mails and the server that takes them.

use std::path::PathBuf;

use urr_kernel::Secret;
use urr_mail::SmtpSecurity;

use super::rule::{choice, file, host, optional, password, port, text, web_origin};
use super::section::section;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSenderKind {
    Log,
    Smtp,
}

const MAIL_SENDERS: &[(&str, MailSenderKind)] =
    &[("log", MailSenderKind::Log), ("smtp", MailSenderKind::Smtp)];

const SMTP_SECURITY: &[(&str, SmtpSecurity)] = &[
    ("starttls", SmtpSecurity::StartTls),
    ("tls", SmtpSecurity::Tls),
    ("none", SmtpSecurity::None),
];

section! {
    MailConfig = "mail" {
        sender: MailSenderKind = value(choice(MAIL_SENDERS));
        from: Option<String> = value(optional(text()));
        /// Where the links of mails lead. None: where browsers find this site otherwise.
        public_url: Option<String> = value(optional(web_origin()));
        smtp_host: Option<String> = value(optional(host()));
        smtp_port: u16 = value(port());
        smtp_security: SmtpSecurity = value(choice(SMTP_SECURITY));
        /// None: the authorities of the web.
        smtp_tls_root_path: Option<PathBuf> = value(optional(file()));
        smtp_username: Option<String> = value(optional(text()));
        smtp_password: Option<Secret> = secret(password());
    }
}
