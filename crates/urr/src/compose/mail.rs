//! Mails as the configuration wants them.

use std::sync::Arc;

use anyhow::{Context, Result};
use urr_mail::{
    GROUP, Login, MailParts, Mails, Sender, Settings, Smtp, SmtpSettings, TOPICS, handle,
};
use urr_service::{Service, Upstream};
use urr_storage::Db;

use super::{Builder, World};
use crate::config::{Config, MailConfig, MailSenderKind};

/// Whom mails ask.
pub struct Neighbours {
    pub accounts: Upstream,
    pub office: Upstream,
}

/// Starts the mails with what runs beside them.
pub fn start(
    builder: &Builder<'_>,
    db: Db,
    world: &World,
    neighbours: Neighbours,
) -> Result<Service> {
    builder.consume(&db, GROUP, TOPICS, handle);
    let Neighbours { accounts, office } = neighbours;
    let mails = Mails::new(MailParts {
        db,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: Settings { public_url: public_url(builder.config) },
        sender: sender(&builder.config.mail)?,
        accounts,
        office,
    });
    let (jobs, stopping) = (mails.clone(), builder.stopping.clone());
    builder.spawn("the mails' jobs", async move { jobs.run_jobs(stopping).await });
    Ok(mails.service(builder.kit))
}

fn sender(mail: &MailConfig) -> Result<Sender> {
    if mail.sender == MailSenderKind::Log {
        return Ok(Sender::Log);
    }
    let checked = "a server needs it, and that was checked";
    let (host, from) = (mail.smtp_host.clone(), mail.from.clone());
    let settings = SmtpSettings {
        security: mail.smtp_security,
        login: mail
            .smtp_username
            .clone()
            .zip(mail.smtp_password.clone())
            .map(|(username, password)| Login { username, password }),
        ..SmtpSettings::new(host.context(checked)?, mail.smtp_port, from.context(checked)?)
    };
    let smtp = Smtp::new(settings).context("mail.from or mail.smtp_host")?;
    Ok(Sender::Smtp(Arc::new(smtp)))
}

/// Where the links of mails lead.
fn public_url(config: &Config) -> String {
    let known = config.mail.public_url.clone().or_else(|| config.auth.public_url.clone());
    known.unwrap_or_else(|| format!("http://localhost:{}", config.server.port))
}
