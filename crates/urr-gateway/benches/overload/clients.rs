//! Clients on sockets: as many as there are at once, or at a rate whatever the answers are.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// More requests than this are never under way; those that are due then are late, which counts.
const CONNECTIONS: usize = 1_024;

/// Where to ask, and as whom.
#[derive(Clone)]
pub struct Asking {
    pub address: SocketAddr,
    pub bearer: String,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Pay,
    Hold,
    Browse,
}

impl Class {
    pub const ALL: [Class; 3] = [Class::Pay, Class::Hold, Class::Browse];

    pub fn name(self) -> &'static str {
        match self {
            Class::Pay => "paying",
            Class::Hold => "holding seats",
            Class::Browse => "browsing",
        }
    }

    /// The class of the request with this number: 5 % pay, 15 % hold, 80 % browse.
    fn of(number: u64) -> Class {
        match number % 20 {
            7 => Class::Pay,
            2 | 9 | 15 => Class::Hold,
            _ => Class::Browse,
        }
    }
}

/// An answer: in which second it was due, and how long after that it came.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub class: Class,
    pub status: u16,
    pub second: u64,
    pub took: Duration,
}

/// So many clients, each of which asks again as soon as it is answered.
pub async fn at_once(asking: &Asking, clients: usize, time: Duration) -> Vec<Answered> {
    let begun = Instant::now();
    ask_all(asking, clients, move |_| {
        let now = Instant::now();
        (now < begun + time).then_some(now)
    })
    .await
}

/// So many requests per second.
pub async fn at_rate(asking: &Asking, rate: f64, time: Duration) -> Vec<Answered> {
    let begun = Instant::now();
    ask_all(asking, CONNECTIONS, move |number| {
        let due = Duration::from_secs_f64(number as f64 / rate);
        (due < time).then_some(begun + due)
    })
    .await
}

/// Asks as long as `due` says when the request with the next number is.
async fn ask_all<D>(asking: &Asking, clients: usize, due: D) -> Vec<Answered>
where
    D: Fn(u64) -> Option<Instant> + Clone + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..clients {
        let (asking, next, due) = (asking.clone(), Arc::clone(&next), due.clone());
        all.spawn(async move {
            let mut client = Client::connect(&asking).await;
            let mut answers = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(due) = due(number) else { return answers };
                sleep_until(due).await;
                let class = Class::of(number);
                let status = client.ask(class).await;
                let second = due.duration_since(begun).as_secs();
                answers.push(Answered { class, status, second, took: due.elapsed() });
            }
        });
    }
    all.join_all().await.into_iter().flatten().collect()
}

struct Client {
    stream: TcpStream,
    /// By class.
    requests: [Vec<u8>; 3],
    buffer: Vec<u8>,
}

impl Client {
    async fn connect(asking: &Asking) -> Client {
        let stream = TcpStream::connect(asking.address).await.expect("the server listens");
        let requests = Class::ALL.map(|class| {
            let line = match class {
                Class::Pay => "POST /api/payments/7",
                Class::Hold => "POST /api/memberships/7",
                Class::Browse => "GET /api/memberships/7",
            };
            let length = if class == Class::Browse { "" } else { "content-length: 0\r\n" };
            let bearer = &asking.bearer;
            let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\n{length}");
            format!("{head}authorization: Bearer {bearer}\r\n\r\n").into_bytes()
        });
        Client { stream, requests, buffer: vec![0; 4_096] }
    }

    /// Asks, reads the whole answer, and gives its status.
    async fn ask(&mut self, class: Class) -> u16 {
        let request = &self.requests[class as usize];
        self.stream.write_all(request).await.expect("the server reads");
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).await;
            let read = read.expect("the server answers");
            assert!(read > 0, "the server closed the connection");
            filled += read;
            if let Some(status) = whole_answer(&self.buffer[..filled]) {
                return status;
            }
        }
    }
}

/// The status of an answer, if it is there to its end.
fn whole_answer(bytes: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?;
    let is_whole = length.parse().is_ok_and(|length: usize| body.len() >= length);
    let status = head.get("HTTP/1.1 ".len()..)?.get(..3)?;
    status.parse().ok().filter(|_| is_whole)
}
