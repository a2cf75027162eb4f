//! Mails as the configuration wants them.

use std::sync::Arc;

use anyhow::{Context, Result};
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_mail::{
    GROUP, MailParts, MailService, MailSettings, MailTransport, SmtpCredentials, SmtpSettings,
    SmtpTransport, TOPICS, handle,
};
use urr_service::Service;
use urr_storage::Db;

use super::{Builder, World};
use crate::config::{Config, MailConfig, MailSenderKind};

/// The services that the mail service calls.
pub struct MailPeers {
    pub auth: AuthClient,
    pub ticket: TicketClient,
}

/// Starts the mail service with its consumer and jobs.
pub fn start(builder: &Builder<'_>, db: Db, world: &World, peers: MailPeers) -> Result<Service> {
    builder.consume(&db, GROUP, TOPICS, handle);
    let MailPeers { auth, ticket } = peers;
    let service = MailService::new(MailParts {
        db,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: MailSettings { public_url: public_url(builder.config) },
        transport: transport(&builder.config.mail)?,
        auth,
        ticket,
    });
    let jobs = service.clone().run_jobs(builder.stopping.clone());
    builder.spawn("the mails' jobs", jobs);
    Ok(service.service(builder.kit))
}

fn transport(mail: &MailConfig) -> Result<MailTransport> {
    if mail.sender == MailSenderKind::Log {
        return Ok(MailTransport::Log);
    }
    let checked = "a server needs it, and that was checked";
    let (host, from) = (mail.smtp_host.clone(), mail.from.clone());
    let settings = SmtpSettings {
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

/// Where the links of mails lead.
fn public_url(config: &Config) -> String {
    let known = config.mail.public_url.clone().or_else(|| config.auth.public_url.clone());
    known.unwrap_or_else(|| format!("http://localhost:{}", config.server.port))
}
