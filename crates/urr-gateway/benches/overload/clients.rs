//! Clients on sockets: a fixed number at once, or a fixed rate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// At most this many requests are in progress; later ones are late, which counts.
const CONNECTIONS: usize = 1_024;

/// The address of the server, and the token to send.
#[derive(Clone)]
pub struct BenchTarget {
    pub address: SocketAddr,
    pub bearer: String,
    /// The class of the request with this number.
    pub class_of: fn(u64) -> Class,
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

    /// 5 % pay, 15 % hold, 80 % browse.
    pub fn mixed(number: u64) -> Class {
        match number % 20 {
            7 => Class::Pay,
            2 | 9 | 15 => Class::Hold,
            _ => Class::Browse,
        }
    }
}

/// An answer: in which second it was due, and how long after that it came.
#[derive(Clone, Copy, Debug)]
pub struct BenchResponse {
    pub class: Class,
    pub status: u16,
    pub second: u64,
    pub took: Duration,
}

/// Runs a number of clients, each of which sends the next request after a response.
pub async fn at_once(target: &BenchTarget, clients: usize, time: Duration) -> Vec<BenchResponse> {
    let begun = Instant::now();
    send_all(target, clients, move |_| {
        let now = Instant::now();
        (now < begun + time).then_some(now)
    })
    .await
}

/// Sends a fixed number of requests per second.
pub async fn at_rate(target: &BenchTarget, rate: f64, time: Duration) -> Vec<BenchResponse> {
    let begun = Instant::now();
    send_all(target, CONNECTIONS, move |number| {
        let due = Duration::from_secs_f64(number as f64 / rate);
        (due < time).then_some(begun + due)
    })
    .await
}

/// Sends requests as long as `due` gives a time for the next number.
async fn send_all<D>(target: &BenchTarget, clients: usize, due: D) -> Vec<BenchResponse>
where
    D: Fn(u64) -> Option<Instant> + Clone + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..clients {
        let (target, next, due) = (target.clone(), Arc::clone(&next), due.clone());
        all.spawn(async move {
            let mut client = Client::connect(&target).await;
            let mut answers = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(due) = due(number) else { return answers };
                sleep_until(due).await;
                let class = (target.class_of)(number);
                let status = client.send(class).await;
                let second = due.duration_since(begun).as_secs();
                answers.push(BenchResponse { class, status, second, took: due.elapsed() });
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
    async fn connect(target: &BenchTarget) -> Client {
        let stream = TcpStream::connect(target.address).await.expect("the server listens");
        let requests = Class::ALL.map(|class| {
            let line = match class {
                Class::Pay => "POST /api/payments/7",
                Class::Hold => "POST /api/memberships/7",
                Class::Browse => "GET /api/memberships/7",
            };
            let length = if class == Class::Browse { "" } else { "content-length: 0\r\n" };
            let bearer = &target.bearer;
            let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\n{length}");
            format!("{head}authorization: Bearer {bearer}\r\n\r\n").into_bytes()
        });
        Client { stream, requests, buffer: vec![0; 4_096] }
    }

    /// Asks, reads the whole answer, and gives its status.
    async fn send(&mut self, class: Class) -> u16 {
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
