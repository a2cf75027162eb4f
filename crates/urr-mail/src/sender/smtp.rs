//! Mails by SMTP.
//!
//! A mail is taken when the server has said so after its last line. Every step is taken by itself,
//! because it matters who is refused: the recipient for good, or us for now.

use std::fmt;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use lettre::address::AddressError;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};
use urr_kernel::Secret;

use super::Letter;
use crate::domain::retry::Outcome;

/// From the first step to the last.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_MAX: usize = 8;

/// How the way to the server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte.
    Tls,
    /// TLS before anything else is said; without it nothing is sent.
    StartTls,
    /// For a server on this machine only.
    None,
}

#[derive(Clone, Debug)]
pub struct Login {
    pub username: String,
    pub password: Secret,
}

#[derive(Clone, Debug)]
pub struct SmtpSettings {
    pub host: String,
    pub port: u16,
    pub security: Security,
    pub login: Option<Login>,
    /// `tickets@urr.example`, or `URR <tickets@urr.example>`.
    pub from: String,
    /// A certificate to trust beside those of the web, as DER: of a server of one's own.
    pub trusted: Option<Vec<u8>>,
    /// Of one mail.
    pub timeout: Duration,
}

impl SmtpSettings {
    pub fn new(host: impl Into<String>, port: u16, from: impl Into<String>) -> SmtpSettings {
        SmtpSettings {
            host: host.into(),
            port,
            security: Security::StartTls,
            login: None,
            from: from.into(),
            trusted: None,
            timeout: SEND_TIMEOUT,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum InvalidSmtp {
    #[error("the sender is no mail address")]
    From(#[source] AddressError),
    #[error("mails go unprotected to a server on this machine only")]
    PlainToOthers,
    #[error("TLS cannot be set up")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// A server that takes mails, with connections to it.
pub struct Smtp {
    settings: SmtpSettings,
    from: Mailbox,
    hello: ClientId,
    tls: Option<TlsParameters>,
    /// Connections that are open and that nobody uses.
    idle: Mutex<Vec<AsyncSmtpConnection>>,
}

/// Where a step was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connect,
    StartTls,
    Login,
    Mail,
    Recipient,
    Data,
    Content,
}

type Step<T> = Result<T, Outcome>;

impl Smtp {
    pub fn new(settings: SmtpSettings) -> Result<Smtp, InvalidSmtp> {
        let from: Mailbox = settings.from.parse().map_err(InvalidSmtp::From)?;
        let tls = match settings.security {
            Security::None if !is_loopback(&settings.host) => {
                return Err(InvalidSmtp::PlainToOthers);
            }
            Security::None => None,
            Security::Tls | Security::StartTls => {
                Some(tls_of(&settings).map_err(InvalidSmtp::Tls)?)
            }
        };
        let hello = ClientId::Domain(from.email.domain().to_owned());
        Ok(Smtp { settings, from, hello, tls, idle: Mutex::default() })
    }

    pub async fn send(&self, letter: &Letter) -> Outcome {
        let Ok(address) = letter.address.parse::<Address>() else {
            return Outcome::Refused { code: "INVALID_ADDRESS".to_owned() };
        };
        let content = self.content(letter, address.clone()).formatted();
        let sent = tokio::time::timeout(self.settings.timeout, self.deliver(&address, &content));
        match sent.await {
            Ok(Ok(())) => Outcome::Sent,
            Ok(Err(outcome)) => outcome,
            Err(_) => Outcome::Unclear { code: "TIMEOUT".to_owned() },
        }
    }

    /// Closes what is open.
    pub fn hang_up(&self) {
        self.idle().clear();
    }

    /// The mail, with all its headers. Its id follows from ours: a copy has the same.
    fn content(&self, letter: &Letter, address: Address) -> Message {
        let id = format!("<mail-{}@{}>", letter.mail_id, self.from.email.domain());
        let machine = HeaderName::new_from_ascii_str("Auto-Submitted");
        let written_at = SystemTime::from(letter.written_at);
        let (text, html) = (letter.rendered.text.clone(), letter.rendered.html.clone());
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, address))
            .subject(letter.rendered.subject.clone())
            .message_id(Some(id))
            .date(written_at)
            .raw_header(HeaderValue::new(machine, "auto-generated".to_owned()))
            .multipart(MultiPart::alternative_plain_html(text, html))
            .expect("it has a sender and a recipient")
    }

    async fn deliver(&self, to: &Address, content: &[u8]) -> Step<()> {
        let mut connection = self.ready().await?;
        let step = connection.command(Rcpt::new(to.clone(), Vec::new())).await;
        step.map_err(|error| at(Stage::Recipient, &error))?;
        let step = connection.command(Data).await;
        step.map_err(|error| at(Stage::Data, &error))?;
        let step = connection.message(content).await;
        step.map_err(|error| at(Stage::Content, &error))?;
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        Ok(())
    }

    /// A connection that has accepted us as the sender. One that was open may be closed by now:
    /// nothing was sent on it, so that another one can be taken.
    async fn ready(&self) -> Step<AsyncSmtpConnection> {
        let open = self.idle().pop();
        if let Some(mut connection) = open
            && self.announce(&mut connection).await.is_ok()
        {
            return Ok(connection);
        }
        let mut connection = self.connect().await?;
        let step = self.announce(&mut connection).await;
        step.map_err(|error| at(Stage::Mail, &error))?;
        Ok(connection)
    }

    async fn announce(
        &self,
        connection: &mut AsyncSmtpConnection,
    ) -> Result<(), lettre::transport::smtp::Error> {
        let from = self.from.email.clone();
        connection.command(Mail::new(Some(from), Vec::new())).await.map(drop)
    }

    async fn connect(&self) -> Step<AsyncSmtpConnection> {
        let SmtpSettings { host, port, security, login, .. } = &self.settings;
        let tls = self.tls.clone();
        let (at_once, later) = match security {
            Security::Tls => (tls, None),
            Security::StartTls => (None, tls),
            Security::None => (None, None),
        };
        let (server, timeout) = ((host.as_str(), *port), Some(CONNECT_TIMEOUT));
        let opened =
            AsyncSmtpConnection::connect_tokio1(server, timeout, &self.hello, at_once, None);
        let mut connection = opened.await.map_err(|error| at(Stage::Connect, &error))?;
        if let Some(tls) = later {
            let step = connection.starttls(tls, &self.hello).await;
            step.map_err(|error| at(Stage::StartTls, &error))?;
        }
        if let Some(Login { username, password }) = login {
            let known = Credentials::new(username.clone(), password.expose().to_owned());
            let step = connection.auth(&[Mechanism::Plain, Mechanism::Login], &known).await;
            step.map_err(|error| at(Stage::Login, &error))?;
        }
        Ok(connection)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<AsyncSmtpConnection>> {
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn tls_of(settings: &SmtpSettings) -> Result<TlsParameters, lettre::transport::smtp::Error> {
    let mut tls = TlsParameters::builder(settings.host.clone());
    if let Some(trusted) = &settings.trusted {
        tls = tls.add_root_certificate(Certificate::from_der(trusted.clone())?);
    }
    tls.build_rustls()
}

/// What a failed step means. The server's sentence stays here: it may repeat the address.
fn at(stage: Stage, error: &lettre::transport::smtp::Error) -> Outcome {
    let status = error.status().map(u16::from);
    let code = match status {
        Some(status) => format!("{stage} {status}"),
        None if error.is_timeout() => format!("{stage} TIMEOUT"),
        None if error.is_tls() => format!("{stage} TLS"),
        None if error.is_client() => format!("{stage} UNSUPPORTED"),
        None => format!("{stage} BROKEN"),
    };
    let concerns_us = matches!(status, Some(530 | 535 | 538));
    let is_about_the_mail = matches!(stage, Stage::Recipient | Stage::Content);
    match error.is_permanent() && is_about_the_mail && !concerns_us {
        true => Outcome::Refused { code },
        false => Outcome::Unclear { code },
    }
}

/// Only addresses that cannot mean another machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Connect => "CONNECT",
            Stage::StartTls => "STARTTLS",
            Stage::Login => "LOGIN",
            Stage::Mail => "MAIL",
            Stage::Recipient => "RECIPIENT",
            Stage::Data => "DATA",
            Stage::Content => "CONTENT",
        })
    }
}

impl fmt::Debug for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SmtpSettings { host, port, .. } = &self.settings;
        f.debug_struct("Smtp").field("host", host).field("port", port).finish_non_exhaustive()
    }
}
