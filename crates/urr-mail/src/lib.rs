//! Mails about purchases, cancellations, refunds, admissions and alerts, and links to verify an
//! address or to reset a password.
//!
//! Domain events of other services become rows of the schema `mail_service`, each once ([`handle`]).
//! A job leases the rows that are due and gives them to a [`MailTransport`]: the log or an SMTP
//! server. A mail is sent at least once; its `Message-ID` follows from its row, so that a copy can
//! be recognised.
//!
//! The address of a recipient is asked for when a mail is sent: neither addresses nor names are
//! stored here or written to the log. So are the secret of a link and the tickets of a purchase. An address that its owner has not
//! verified gets links only.
//!
//! Deliberately absent: a transaction that is open while a mail is sent, advertising, and any effect
//! of a mail on what it reports.

mod attempts;
mod consumer;
mod delivery;
mod domain;
mod http;
mod jobs;
mod mails;
mod metrics;
mod recipients;
mod store;
mod transport;

use std::sync::Arc;

use axum::extract::FromRef;
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_kernel::{Clock, IdSource};
use urr_service::{Service, ServiceKit};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use consumer::{GROUP, TOPICS, TYPES, handle};
pub use domain::mail::{Mail, MailId, MailKind, MailStatus};
pub use domain::retry::{ATTEMPTS_MAX, DeliveryOutcome};
pub use domain::template::{RenderedMail, render};
pub use domain::template_data::{LinkToken, TemplateData};
pub use mails::{MailFilter, RetryMailError};
use metrics::MailMetrics;
pub use transport::smtp::{
    InvalidSmtpSettings, SmtpCredentials, SmtpSecurity, SmtpSettings, SmtpTransport,
    TrustedCertificates,
};
pub use transport::{MailAttachment, MailTransport, OutgoingMail};

/// The tables of mails.
pub const SCHEMA: Schema = Schema {
    name: "mail_service",
    migrations: migrations![1 "mails" => "../migrations/0001_mails.sql"],
};

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "mail_svc_user";

/// The mail service, with one method per operation. Clones share it.
#[derive(Clone)]
pub struct MailService {
    parts: Arc<MailParts>,
    metrics: MailMetrics,
}

/// The settings of the mail service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailSettings {
    /// The address of the pages that mails link to, without a slash at its end.
    pub public_url: String,
}

/// What the mail service is made of.
pub struct MailParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: MailSettings,
    pub transport: MailTransport,
    pub auth: AuthClient,
    pub ticket: TicketClient,
}

/// The interface of the service, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl MailService {
    pub fn new(parts: MailParts) -> MailService {
        MailService { parts: Arc::new(parts), metrics: MailMetrics::default() }
    }

    /// The service with its routes, for a listener or for calls within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.metrics.register(&kit.metrics);
        Service::new("mail", http::routes().with_state(self.clone()), kit)
            .with_calls(http::user_records::calls(self.clone()))
    }
}

/// For the routes of the admin log.
impl FromRef<MailService> for Db {
    fn from_ref(service: &MailService) -> Db {
        service.parts.db.clone()
    }
}
