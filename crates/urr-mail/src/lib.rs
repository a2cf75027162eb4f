//! Mails: what people are told of their purchases, cancellations, refunds and turns.
//!
//! Events of other services become rows of the schema `mail_service`, each once ([`handle`]). A job
//! takes due rows with a lease and gives them to a [`Sender`]: the log, or a server that speaks
//! SMTP. A mail is sent at least once; its `Message-ID` follows from its row, so that a copy can be
//! recognised.
//!
//! Who somebody is, the accounts are asked when a mail is sent: no address and no name is stored
//! here, nor written into events or the log.
//!
//! Deliberately absent: a transaction that is open while something is sent, advertising, and any
//! effect of a mail on what it tells of.

mod accounts;
mod consume;
mod domain;
mod figures;
mod http;
mod jobs;
mod looking;
mod office;
mod sender;
mod sending;
mod settings;
mod store;

use std::sync::Arc;

use urr_kernel::{Clock, IdSource};
use urr_service::{Service, ServiceKit, Upstream};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

use accounts::Accounts;
pub use consume::{GROUP, TOPICS, handle};
pub use domain::facts::Facts;
pub use domain::mail::{Kind, Language, Mail, MailId, Status};
pub use domain::retry::{ATTEMPTS_MAX, Outcome};
pub use domain::template::{Rendered, render};
use figures::Figures;
pub use looking::{MailFilter, RetryError};
use office::Office;
pub use sender::smtp::{InvalidSmtp, Login, Security, Smtp, SmtpSettings};
pub use sender::{Letter, Sender};
pub use settings::Settings;

/// The tables of mails.
pub const SCHEMA: Schema = Schema {
    name: "mail_service",
    migrations: migrations![1 "mails" => "../migrations/0001_mails.sql"],
};

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "mail_svc_user";

/// The mail service, with one method per operation. Clones share it.
#[derive(Clone)]
pub struct Mails(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: Settings,
    pub sender: Sender,
    pub accounts: Accounts,
    pub office: Office,
    pub figures: Figures,
}

/// What the mail service is made of.
pub struct MailParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: Settings,
    pub sender: Sender,
    /// Who knows addresses.
    pub accounts: Upstream,
    /// Who knows what was booked.
    pub office: Upstream,
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl Mails {
    pub fn new(parts: MailParts) -> Mails {
        let MailParts { db, clock, ids, settings, sender, accounts, office } = parts;
        let (accounts, office) = (Accounts::new(accounts), Office::new(office));
        let figures = Figures::default();
        Mails(Arc::new(Inner { db, clock, ids, settings, sender, accounts, office, figures }))
    }

    /// Mails as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.0.figures.register(&kit.metrics);
        Service::new("mail", http::routes().with_state(self.clone()), kit)
    }
}
