//! A mail server that takes every mail and keeps it in a folder, a file each: for a cluster on this
//! machine. It speaks as much of SMTP as the program does, and only TLS.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// The program's mails are far smaller, tickets included.
const MAIL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// It ends when it is dropped; the mails stay.
pub struct MailServer {
    address: SocketAddr,
    _listener: AbortOnDropHandle<()>,
}

struct Mailbox {
    folder: PathBuf,
    /// How many mails it has.
    count: AtomicUsize,
}

impl MailServer {
    /// Listens on a port of this machine; 0 means a free one.
    pub async fn start(port: u16, folder: &Path, tls: ServerConfig) -> io::Result<MailServer> {
        fs::create_dir_all(folder)?;
        let count = AtomicUsize::new(fs::read_dir(folder)?.count());
        let mailbox = Arc::new(Mailbox { folder: folder.to_owned(), count });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let tls = TlsAcceptor::from(Arc::new(tls));
        let _listener = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (tls, mailbox) = (tls.clone(), Arc::clone(&mailbox));
                // A connection that breaks is the client's business.
                tokio::spawn(async move { drop(serve(stream, tls, &mailbox).await) });
            }
        }));
        Ok(MailServer { address, _listener })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, mailbox: &Mailbox) -> io::Result<()> {
    stream.set_nodelay(true)?;
    talk(BufReader::new(tls.accept(stream).await?), mailbox).await
}

async fn talk<S>(mut stream: BufReader<S>, mailbox: &Mailbox) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    say(&mut stream, "220 ready").await?;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let verb = line.trim_end().split(' ').next().unwrap_or_default().to_ascii_uppercase();
        match verb.as_str() {
            "EHLO" | "HELO" => say(&mut stream, "250-mails\r\n250 AUTH PLAIN").await?,
            // Whoever is on this machine may send.
            "AUTH" => say(&mut stream, "235 welcome").await?,
            "DATA" => {
                say(&mut stream, "354 go on").await?;
                let mail = read_mail(&mut stream).await?;
                mailbox.keep(&mail)?;
                say(&mut stream, "250 taken").await?;
            }
            "QUIT" => return say(&mut stream, "221 bye").await,
            _ => say(&mut stream, "250 ok").await?,
        }
    }
}

async fn say<S: AsyncWrite + Unpin>(stream: &mut S, line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    stream.flush().await
}

/// Everything up to the line with a dot alone. A dot that begins another line was doubled.
async fn read_mail<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> io::Result<Vec<u8>> {
    let mut mail = Vec::new();
    loop {
        let mut line = Vec::new();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == b".\r\n" {
            return Ok(mail);
        }
        if mail.len() + line.len() > MAIL_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        mail.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
    }
}

impl Mailbox {
    /// A reader sees the whole file or none.
    fn keep(&self, mail: &[u8]) -> io::Result<()> {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let (part, whole) = (format!(".{number:06}"), format!("{number:06}.eml"));
        fs::write(self.folder.join(&part), mail)?;
        fs::rename(self.folder.join(part), self.folder.join(whole))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_mail_is_kept_as_it_was_sent_and_half_a_mail_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let mailbox = Mailbox { folder: folder.path().to_owned(), count };
        let sends = async |text: &str| {
            let (mut client, server) = duplex(4096);
            client.write_all(text.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let ended = talk(BufReader::new(server), &mailbox).await;
            let mut said = String::new();
            client.read_to_string(&mut said).await.ok();
            (ended.is_ok(), said)
        };
        let head = "EHLO urr\r\nMAIL FROM:<a@b.c>\r\nRCPT TO:<d@e.f>\r\nDATA\r\nSubject: x\r\n\r\n";
        let (ended, said) = sends(&format!("{head}..dot\r\n.\r\nQUIT\r\n")).await;
        assert!(ended && said.ends_with("250 taken\r\n221 bye\r\n"), "{said}");
        let kept = fs::read_to_string(folder.path().join("000001.eml")).unwrap();
        assert_eq!(kept, "Subject: x\r\n\r\n.dot\r\n");
        assert!(!sends(&format!("{head}half")).await.0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
