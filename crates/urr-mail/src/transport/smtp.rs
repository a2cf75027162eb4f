//! The SMTP transport.
//!
//! Every step of the protocol is a command of its own, unlike in lettre's pooled transport, whose
//! error does not say which step was refused: a refused recipient (550 to `RCPT`) ends a mail, while
//! a refused sender (550 to `MAIL`) is our fault and is tried again.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use lettre::address::AddressError;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Mailbox, MultiPart};
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};
use urr_kernel::Secret;

use super::OutgoingMail;
use crate::domain::retry::DeliveryOutcome;

/// From the first step to the last.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_MAX: usize = 8;

/// How the connection to the server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpSecurity {
    /// TLS from the first byte.
    Tls,
    /// TLS before anything else; without it nothing is sent.
    StartTls,
    /// For a server on this machine only.
    None,
}

#[derive(Clone, Debug)]
pub struct SmtpCredentials {
    pub username: String,
    pub password: Secret,
}

/// Certificates to trust beside the public roots, as DER. Every connection asks for them.
#[derive(Clone)]
pub struct TrustedCertificates(Arc<dyn Fn() -> Vec<Vec<u8>> + Send + Sync>);

impl TrustedCertificates {
    pub fn read_by(read: impl Fn() -> Vec<Vec<u8>> + Send + Sync + 'static) -> TrustedCertificates {
        TrustedCertificates(Arc::new(read))
    }
}

impl From<Vec<Vec<u8>>> for TrustedCertificates {
    fn from(certificates: Vec<Vec<u8>>) -> TrustedCertificates {
        TrustedCertificates::read_by(move || certificates.clone())
    }
}

impl fmt::Debug for TrustedCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedCertificates").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct SmtpSettings {
    pub host: String,
    pub port: u16,
    pub security: SmtpSecurity,
    pub credentials: Option<SmtpCredentials>,
    /// `tickets@urr.example`, or `URR <tickets@urr.example>`.
    pub from: String,
    pub trusted_certificates: TrustedCertificates,
    /// For one mail, from the first step to the last.
    pub timeout: Duration,
}

impl SmtpSettings {
    pub fn new(host: impl Into<String>, port: u16, from: impl Into<String>) -> SmtpSettings {
        SmtpSettings {
            host: host.into(),
            port,
            security: SmtpSecurity::StartTls,
            credentials: None,
            from: from.into(),
            trusted_certificates: Vec::new().into(),
            timeout: SEND_TIMEOUT,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum InvalidSmtpSettings {
    #[error("the sender is not a mail address")]
    From(#[source] AddressError),
    #[error("mails without TLS are sent to a server on this machine only")]
    PlainToRemote,
    #[error("TLS cannot be set up")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// An SMTP server with connections to it.
pub struct SmtpTransport {
    settings: SmtpSettings,
    from: Mailbox,
    hello: ClientId,
    /// Open connections that are not in use.
    idle: Mutex<Vec<AsyncSmtpConnection>>,
    /// Whether the last connection failed. Then no mail is tried until one succeeds.
    is_away: AtomicBool,
}

/// The step that failed, as administrators read it.
type SmtpStage = &'static str;
const CONNECT: SmtpStage = "CONNECT";
const START_TLS: SmtpStage = "STARTTLS";
const LOGIN: SmtpStage = "LOGIN";
const MAIL: SmtpStage = "MAIL";
const RECIPIENT: SmtpStage = "RECIPIENT";
const DATA: SmtpStage = "DATA";
const CONTENT: SmtpStage = "CONTENT";

type StepResult<T> = Result<T, DeliveryOutcome>;

impl SmtpTransport {
    pub fn new(settings: SmtpSettings) -> Result<SmtpTransport, InvalidSmtpSettings> {
        let from: Mailbox = settings.from.parse().map_err(InvalidSmtpSettings::From)?;
        match settings.security {
            SmtpSecurity::None if !is_loopback(&settings.host) => {
                return Err(InvalidSmtpSettings::PlainToRemote);
            }
            SmtpSecurity::None => {}
            SmtpSecurity::Tls | SmtpSecurity::StartTls => {
                tls_parameters(&settings).map_err(InvalidSmtpSettings::Tls)?;
            }
        }
        let hello = ClientId::Domain(from.email.domain().to_owned());
        let (idle, is_away) = (Mutex::default(), AtomicBool::new(false));
        Ok(SmtpTransport { settings, from, hello, idle, is_away })
    }

    pub async fn send(&self, mail: &OutgoingMail) -> DeliveryOutcome {
        let Ok(address) = mail.address.parse::<Address>() else {
            return DeliveryOutcome::Refused { code: "INVALID_ADDRESS".to_owned() };
        };
        let content = self.message(mail, address.clone()).formatted();
        let sent = tokio::time::timeout(self.settings.timeout, self.deliver(&address, &content));
        match sent.await {
            Ok(Ok(())) => DeliveryOutcome::Sent,
            Ok(Err(outcome)) => outcome,
            Err(_) => DeliveryOutcome::Unclear { code: "TIMEOUT".to_owned() },
        }
    }

    /// Whether the server could not be reached when it was last tried.
    pub fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// Tries a server that was away. The connection is kept for the next mail.
    pub async fn is_reachable(&self) -> bool {
        if self.is_away()
            && let Ok(connection) = self.connect().await
        {
            self.idle().push(connection);
        }
        !self.is_away()
    }

    /// Closes the connections that are not in use.
    pub fn close_idle(&self) {
        self.idle().clear();
    }

    /// The message with its headers. Its id follows from the row, so a copy has the same one.
    fn message(&self, mail: &OutgoingMail, address: Address) -> Message {
        let id = format!("<mail-{}@{}>", mail.id, self.from.email.domain());
        let auto_submitted = HeaderName::new_from_ascii_str("Auto-Submitted");
        let created_at = SystemTime::from(mail.created_at);
        let (text, html) = (mail.rendered.text.clone(), mail.rendered.html.clone());
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, address))
            .subject(mail.rendered.subject.clone())
            .message_id(Some(id))
            .date(created_at)
            .raw_header(HeaderValue::new(auto_submitted, "auto-generated".to_owned()))
            .multipart(with_attachment(MultiPart::alternative_plain_html(text, html), mail))
            .expect("it has a sender and a recipient")
    }

    async fn deliver(&self, to: &Address, content: &[u8]) -> StepResult<()> {
        let mut connection = self.sender_accepted().await?;
        let recipient = Rcpt::new(to.clone(), Vec::new());
        connection.command(recipient).await.map_err(failed_at(RECIPIENT))?;
        connection.command(Data).await.map_err(failed_at(DATA))?;
        connection.message(content).await.map_err(failed_at(CONTENT))?;
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        Ok(())
    }

    /// A connection that has accepted us as the sender. The server may have closed an idle one;
    /// nothing was sent on it, so a new one is opened.
    async fn sender_accepted(&self) -> StepResult<AsyncSmtpConnection> {
        let open = self.idle().pop();
        if let Some(mut connection) = open
            && self.send_mail_from(&mut connection).await.is_ok()
        {
            return Ok(connection);
        }
        let mut connection = self.connect().await?;
        self.send_mail_from(&mut connection).await.map_err(failed_at(MAIL))?;
        Ok(connection)
    }

    async fn send_mail_from(
        &self,
        connection: &mut AsyncSmtpConnection,
    ) -> Result<(), lettre::transport::smtp::Error> {
        let from = self.from.email.clone();
        connection.command(Mail::new(Some(from), Vec::new())).await.map(drop)
    }

    /// Notes whether the server could be reached. What it says is an answer, whatever it is.
    async fn connect(&self) -> StepResult<AsyncSmtpConnection> {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.open_connection()).await;
        let not_reached = || DeliveryOutcome::NotReached { code: format!("{CONNECT} TIMEOUT") };
        let connected = connected.unwrap_or_else(|_| Err(not_reached()));
        let is_away = matches!(connected, Err(DeliveryOutcome::NotReached { .. }));
        self.is_away.store(is_away, Ordering::Relaxed);
        connected
    }

    async fn open_connection(&self) -> StepResult<AsyncSmtpConnection> {
        let SmtpSettings { host, port, security, credentials, .. } = &self.settings;
        let tls = || tls_parameters(&self.settings).map_err(failed_at(CONNECT));
        let (implicit, starttls) = match security {
            SmtpSecurity::Tls => (Some(tls()?), None),
            SmtpSecurity::StartTls => (None, Some(tls()?)),
            SmtpSecurity::None => (None, None),
        };
        let (server, timeout) = ((host.as_str(), *port), Some(CONNECT_TIMEOUT));
        let opened =
            AsyncSmtpConnection::connect_tokio1(server, timeout, &self.hello, implicit, None);
        let mut connection = opened.await.map_err(failed_at(CONNECT))?;
        if let Some(tls) = starttls {
            connection.starttls(tls, &self.hello).await.map_err(failed_at(START_TLS))?;
        }
        if let Some(SmtpCredentials { username, password }) = credentials {
            let credentials = Credentials::new(username.clone(), password.expose().to_owned());
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            connection.auth(&mechanisms, &credentials).await.map_err(failed_at(LOGIN))?;
        }
        Ok(connection)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<AsyncSmtpConnection>> {
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The texts, and the file beside them if there is one.
fn with_attachment(texts: MultiPart, mail: &OutgoingMail) -> MultiPart {
    let Some(file) = &mail.attachment else { return texts };
    let kind = ContentType::parse("application/pdf").expect("it is a content type");
    let part = Attachment::new(file.file_name.clone()).body(file.pdf.clone(), kind);
    MultiPart::mixed().multipart(texts).singlepart(part)
}

fn tls_parameters(
    settings: &SmtpSettings,
) -> Result<TlsParameters, lettre::transport::smtp::Error> {
    let mut tls = TlsParameters::builder(settings.host.clone());
    for trusted in settings.trusted_certificates.0() {
        tls = tls.add_root_certificate(Certificate::from_der(trusted)?);
    }
    tls.build_rustls()
}

fn failed_at(stage: SmtpStage) -> impl Fn(lettre::transport::smtp::Error) -> DeliveryOutcome {
    move |error| outcome_at(stage, &error)
}

/// What a failed step means. The server's sentence is not stored: it may repeat the address.
fn outcome_at(stage: SmtpStage, error: &lettre::transport::smtp::Error) -> DeliveryOutcome {
    let status = error.status().map(u16::from);
    let code = match status {
        Some(status) => format!("{stage} {status}"),
        None if error.is_timeout() => format!("{stage} TIMEOUT"),
        None if error.is_tls() => format!("{stage} TLS"),
        None if error.is_client() => format!("{stage} UNSUPPORTED"),
        None => format!("{stage} BROKEN"),
    };
    let is_about_us = matches!(status, Some(530 | 535 | 538));
    let is_about_the_mail = matches!(stage, RECIPIENT | CONTENT);
    match error.is_permanent() && is_about_the_mail && !is_about_us {
        true => DeliveryOutcome::Refused { code },
        // A server that does not offer what we want was reached.
        false if status.is_none() && !error.is_client() && matches!(stage, CONNECT | START_TLS) => {
            DeliveryOutcome::NotReached { code }
        }
        false => DeliveryOutcome::Unclear { code },
    }
}

/// Only names that cannot mean another machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

impl fmt::Debug for SmtpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SmtpSettings { host, port, .. } = &self.settings;
        f.debug_struct("SmtpTransport")
            .field("host", host)
            .field("port", port)
            .finish_non_exhaustive()
    }
}
