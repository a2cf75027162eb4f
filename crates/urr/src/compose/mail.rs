//! The mail service, from the configuration.

use std::sync::Arc;

use anyhow::{Context, Result};
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_mail::{
    MailParts, MailService, MailSettings, MailTransport, SmtpCredentials, SmtpSettings,
    SmtpTransport, TrustedCertificates,
};
use urr_service::{Caller, Service};
use urr_storage::Db;

use super::builder::Builder;
use super::consumers;
use crate::config::{Config, MailConfig, MailSenderKind};
use crate::role::ProcessRole;

/// Starts the mail service.
pub fn start(builder: &mut Builder<'_>, db: Db) -> Result<Service> {
    builder.consume(&db, &consumers::MAIL);
    let mail = MailService::new(MailParts {
        db,
        clock: builder.kit.clock.clone(),
        ids: builder.kit.ids.clone(),
        settings: MailSettings { public_url: public_url(builder.config) },
        transport: transport(&builder.config.mail)?,
        auth: AuthClient::new(builder.upstream(Caller::Mail, ProcessRole::Auth)?),
        ticket: TicketClient::new(builder.upstream(Caller::Mail, ProcessRole::Ticket)?),
    });
    builder.add_jobs("the mail jobs", mail.clone().run_jobs(builder.stopping.clone()));
    Ok(mail.service(builder.kit))
}

fn transport(mail: &MailConfig) -> Result<MailTransport> {
    if mail.sender == MailSenderKind::Log {
        return Ok(MailTransport::Log);
    }
    let checked = "a server needs it, and that was checked";
    let (host, from) = (mail.smtp_host.clone(), mail.from.clone());
    let settings = SmtpSettings {
        trusted_certificates: trusted_certificates(mail)?,
        security: mail.smtp_security,
        credentials: mail
            .smtp_username
            .clone()
            .zip(mail.smtp_password.clone())
            .map(|(username, password)| SmtpCredentials { username, password }),
        ..SmtpSettings::new(host.context(checked)?, mail.smtp_port, from.context(checked)?)
    };
    let smtp = SmtpTransport::new(settings).context("mail.from or mail.smtp_host")?;
    Ok(MailTransport::Smtp(Arc::new(smtp)))
}

/// The authority of the mail server, if it is not one of the web.
fn trusted_certificates(mail: &MailConfig) -> Result<TrustedCertificates> {
    let Some(path) = &mail.smtp_tls_root_path else { return Ok(Vec::new().into()) };
    let file = urr_tls::CertificateFile::open(path).context("mail.smtp_tls_root_path")?;
    Ok(TrustedCertificates::read_by(move || file.current()))
}

/// Where the links of mails lead.
fn public_url(config: &Config) -> String {
    let known = config.mail.public_url.clone().or_else(|| config.auth.public_url.clone());
    known.unwrap_or_else(|| format!("http://localhost:{}", config.server.port))
}
