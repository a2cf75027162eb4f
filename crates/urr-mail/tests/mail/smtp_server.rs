//! A server that speaks SMTP (RFC 5321, STARTTLS, AUTH PLAIN) and fails on demand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio_rustls::TlsAcceptor;

/// What goes wrong, once, at the step that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is greeted with this.
    Greeting(&'static str),
    Sender(&'static str),
    Recipient(&'static str),
    /// The recipient is never answered.
    Slow,
    /// The connection ends before the mail was read.
    Cut,
    Content(&'static str),
    /// The mail is taken, and the connection ends before that is said.
    Reset,
    /// The mail is taken, and that is said when [`SmtpServer::release`] is called.
    Held,
}

/// A mail that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedMail {
    pub from: String,
    pub to: String,
    pub raw: String,
}

impl AcceptedMail {
    /// The value of a header, unfolded.
    pub fn header(&self, name: &str) -> String {
        let (head, _) = self.raw.split_once("\r\n\r\n").unwrap();
        let head = head.replace("\r\n ", " ");
        let found = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        found.unwrap_or_default().to_owned()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerSecurity {
    #[default]
    Plain,
    StartTls,
    Tls,
}

/// Clones share it.
#[derive(Clone)]
pub struct SmtpServer {
    pub port: u16,
    pub certificate: Vec<u8>,
    inner: Arc<Inner>,
}

struct Inner {
    security: ServerSecurity,
    login: Option<(&'static str, &'static str)>,
    tls: TlsAcceptor,
    state: Mutex<ServerState>,
    arrived: Notify,
    held: Semaphore,
}

#[derive(Default)]
struct ServerState {
    faults: VecDeque<Fault>,
    taken: Vec<AcceptedMail>,
    commands: Vec<String>,
    connections: usize,
    open: usize,
    open_max: usize,
}

impl SmtpServer {
    pub async fn open() -> SmtpServer {
        SmtpServer::with(ServerSecurity::Plain, None).await
    }

    pub async fn with(
        security: ServerSecurity,
        login: Option<(&'static str, &'static str)>,
    ) -> SmtpServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let names = vec!["localhost".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let certificate = cert.der().to_vec();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let provider = rustls::crypto::ring::default_provider();
        let config = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let inner = Arc::new(Inner {
            security,
            login,
            tls: TlsAcceptor::from(Arc::new(config)),
            state: Mutex::default(),
            arrived: Notify::new(),
            held: Semaphore::new(0),
        });
        let server = SmtpServer { port, certificate, inner };
        tokio::spawn(server.clone().listen(listener));
        server
    }

    /// The next ones fail, one after the other.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.inner.state.lock().unwrap().faults.extend(faults);
    }

    pub fn accepted(&self) -> Vec<AcceptedMail> {
        self.inner.state.lock().unwrap().taken.clone()
    }

    /// What was said to it before any TLS, without the mails.
    pub fn commands(&self) -> Vec<String> {
        self.inner.state.lock().unwrap().commands.clone()
    }

    pub fn connections(&self) -> usize {
        self.inner.state.lock().unwrap().connections
    }

    pub fn open_max(&self) -> usize {
        self.inner.state.lock().unwrap().open_max
    }

    /// Waits until so many mails were taken.
    pub async fn arrived(&self, count: usize) {
        while self.accepted().len() < count {
            self.inner.arrived.notified().await;
        }
    }

    /// Says of one mail that is held that it was taken.
    pub fn release(&self) {
        self.inner.held.add_permits(1);
    }

    fn fault(&self, matches: impl Fn(Fault) -> bool) -> Option<Fault> {
        let mut state = self.inner.state.lock().unwrap();
        state.faults.pop_front_if(|fault| matches(*fault))
    }

    async fn listen(self, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let server = self.clone();
            tokio::spawn(async move {
                server.count(1);
                // A connection that breaks is the other side's business.
                drop(server.serve(stream).await);
                server.inner.state.lock().unwrap().open -= 1;
            });
        }
    }

    fn count(&self, opened: usize) {
        let mut state = self.inner.state.lock().unwrap();
        state.connections += opened;
        state.open += opened;
        state.open_max = state.open_max.max(state.open);
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        if self.inner.security == ServerSecurity::Tls {
            let stream = self.inner.tls.accept(stream).await?;
            return self.talk(BufReader::new(stream), true).await.map(drop);
        }
        let rest = self.talk(BufReader::new(stream), false).await?;
        if let Some(stream) = rest {
            let stream = self.inner.tls.accept(stream.into_inner()).await?;
            self.talk_on(BufReader::new(stream), true).await?;
        }
        Ok(())
    }

    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut stream: BufReader<S>,
        is_safe: bool,
    ) -> std::io::Result<Option<BufReader<S>>> {
        if let Some(Fault::Greeting(line)) = self.fault(|f| matches!(f, Fault::Greeting(_))) {
            say(&mut stream, line).await?;
            return Ok(None);
        }
        say(&mut stream, "220 post.example ESMTP").await?;
        self.talk_on(stream, is_safe).await
    }

    /// The stream, if it is to be protected from now on.
    async fn talk_on<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut stream: BufReader<S>,
        is_safe: bool,
    ) -> std::io::Result<Option<BufReader<S>>> {
        let (mut from, mut to) = (String::new(), String::new());
        let mut is_known = self.inner.login.is_none();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(None);
            }
            let line = line.trim_end().to_owned();
            if !is_safe {
                self.inner.state.lock().unwrap().commands.push(line.clone());
            }
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match verb.to_ascii_uppercase().as_str() {
                "EHLO" => {
                    let offers = self.offers(is_safe);
                    say(&mut stream, &offers).await?;
                }
                "STARTTLS" => {
                    say(&mut stream, "220 go ahead").await?;
                    return Ok(Some(stream));
                }
                "AUTH" => {
                    is_known = self.is_login(rest);
                    let answer = if is_known { "235 welcome" } else { "535 5.7.8 who?" };
                    say(&mut stream, answer).await?;
                }
                "MAIL" if !is_known => say(&mut stream, "530 5.7.0 log in first").await?,
                "MAIL" => {
                    from = address(rest);
                    let fault = self.fault(|fault| matches!(fault, Fault::Sender(_)));
                    let Some(Fault::Sender(refusal)) = fault else {
                        say(&mut stream, "250 ok").await?;
                        continue;
                    };
                    say(&mut stream, refusal).await?;
                }
                "RCPT" => {
                    to = address(rest);
                    match self.fault(|f| matches!(f, Fault::Recipient(_) | Fault::Slow)) {
                        Some(Fault::Recipient(refusal)) => say(&mut stream, refusal).await?,
                        Some(_) => std::future::pending().await,
                        None => say(&mut stream, "250 ok").await?,
                    }
                }
                "DATA" => {
                    say(&mut stream, "354 end with a dot").await?;
                    if !self.take(&mut stream, &from, &to).await? {
                        return Ok(None);
                    }
                }
                "QUIT" => {
                    say(&mut stream, "221 bye").await?;
                    return Ok(None);
                }
                _ => say(&mut stream, "502 what?").await?,
            }
        }
    }

    fn offers(&self, is_safe: bool) -> String {
        let mut offers = vec!["250-post.example"];
        if self.inner.security == ServerSecurity::StartTls && !is_safe {
            offers.push("250-STARTTLS");
        }
        if self.inner.login.is_some() {
            offers.push("250-AUTH PLAIN LOGIN");
        }
        offers.push("250 8BITMIME");
        offers.join("\r\n")
    }

    fn is_login(&self, said: &str) -> bool {
        let (user, password) = self.inner.login.unwrap();
        let expected = STANDARD.encode(format!("\0{user}\0{password}"));
        said == format!("PLAIN {expected}")
    }

    /// `false`: the connection ends.
    async fn take<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut BufReader<S>,
        from: &str,
        to: &str,
    ) -> std::io::Result<bool> {
        let fault = self.fault(|fault| {
            matches!(fault, Fault::Cut | Fault::Content(_) | Fault::Reset | Fault::Held)
        });
        if fault == Some(Fault::Cut) {
            return Ok(false);
        }
        let mut raw = String::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(false);
            }
            if line == ".\r\n" {
                break;
            }
            raw.push_str(line.strip_prefix('.').unwrap_or(&line));
        }
        if let Some(Fault::Content(refusal)) = fault {
            say(stream, refusal).await?;
            return Ok(true);
        }
        let taken = AcceptedMail { from: from.to_owned(), to: to.to_owned(), raw };
        self.inner.state.lock().unwrap().taken.push(taken);
        self.inner.arrived.notify_one();
        match fault {
            Some(Fault::Reset) => return Ok(false),
            Some(_) => self.inner.held.acquire().await.unwrap().forget(),
            None => {}
        }
        say(stream, "250 taken").await?;
        Ok(true)
    }
}

async fn say<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
    line: &str,
) -> std::io::Result<()> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    stream.flush().await
}

/// What is between `<` and `>`.
fn address(said: &str) -> String {
    let (_, rest) = said.split_once('<').unwrap();
    rest.split_once('>').unwrap().0.to_owned()
}
