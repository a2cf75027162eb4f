//! A mail server that takes everything, behind a line that can be harmed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;
use urr_cluster::{Balancer, LineFault};

pub struct MailServer {
    line: Balancer,
    taken: Arc<AtomicU32>,
    _listener: AbortOnDropHandle<()>,
}

impl MailServer {
    pub async fn start() -> Result<MailServer> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let line = Balancer::start(0, &[listener.local_addr()?]).await?;
        let taken = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&taken);
        let _listener = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&counted)));
            }
        }));
        Ok(MailServer { line, taken, _listener })
    }

    /// Where the cluster finds it.
    pub fn port(&self) -> u16 {
        self.line.address().port()
    }

    pub fn set_fault(&self, fault: LineFault) {
        self.line.set_fault(fault);
    }

    /// How many mails it took.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }
}

async fn converse(stream: TcpStream, taken: Arc<AtomicU32>) -> std::io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut lines = BufReader::new(from).lines();
    let mut is_content = false;
    to.write_all(b"220 ready\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let answer: &[u8] = match line.as_str() {
            "." if is_content => {
                is_content = false;
                taken.fetch_add(1, Ordering::Relaxed);
                b"250 taken\r\n"
            }
            _ if is_content => continue,
            "DATA" => {
                is_content = true;
                b"354 go on\r\n"
            }
            "QUIT" => b"221 bye\r\n",
            _ => b"250 yes\r\n",
        };
        to.write_all(answer).await?;
    }
    Ok(())
}
