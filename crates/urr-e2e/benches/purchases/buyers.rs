//! Buyers that each wait for their answer before they go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use urr_kernel::Uuid;

use crate::ROUND;
use crate::system::{BenchSystem, SEATS, Tokens};

/// How soon, and how often, a buyer retries after a refusal because of overload.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
const TRIES_MAX: u32 = 200;

/// How long each part of a purchase took, being sent away included.
#[derive(Clone, Copy, Debug)]
pub struct Purchase {
    pub enter: Duration,
    pub reserve: Duration,
    pub pay: Duration,
    /// How often its buyer was sent away.
    pub refusals: u32,
}

/// What was bought in how much time.
#[derive(Default)]
pub struct PurchaseRun {
    pub purchases: Vec<Purchase>,
    time: Duration,
}

impl PurchaseRun {
    pub fn rate(&self) -> f64 {
        self.purchases.len() as f64 / self.time.as_secs_f64()
    }

    pub fn add(&mut self, round: PurchaseRun) {
        self.purchases.extend(round.purchases);
        self.time += round.time;
    }
}

/// The middle one, and the one that only one in a hundred is slower than.
pub fn percentiles(times: &[Duration]) -> [Duration; 2] {
    assert!(!times.is_empty(), "something was measured");
    let mut times = times.to_vec();
    times.sort_unstable();
    [50, 99].map(|percent| times[(times.len() - 1) * percent / 100])
}

/// One round. It ends early if all seats are sold.
pub async fn run(system: &BenchSystem, buyers: usize) -> PurchaseRun {
    let mut all = JoinSet::new();
    let started = Instant::now();
    for _ in 0..buyers {
        let buyer = Buyer::connect(system).await;
        all.spawn(buyer.run(started + ROUND));
    }
    let purchases = all.join_all().await.into_iter().flatten().collect();
    PurchaseRun { purchases, time: started.elapsed() }
}

struct Buyer {
    stream: TcpStream,
    tokens: Tokens,
    event_id: Uuid,
    next_seat: Arc<AtomicU32>,
    refusals: u32,
}

impl Buyer {
    async fn connect(system: &BenchSystem) -> Buyer {
        let stream = TcpStream::connect(system.address).await.expect("the gateway listens");
        stream.set_nodelay(true).expect("the socket is open");
        let (tokens, next_seat) = (system.tokens.clone(), Arc::clone(&system.next_seat));
        Buyer { stream, tokens, event_id: system.event_id, next_seat, refusals: 0 }
    }

    async fn run(mut self, end: Instant) -> Vec<Purchase> {
        let mut purchases = Vec::new();
        while Instant::now() < end {
            let seat = self.next_seat.fetch_add(1, Ordering::Relaxed);
            if seat >= SEATS {
                break;
            }
            purchases.push(self.buy(seat).await);
        }
        purchases
    }

    /// A purchase by someone new, from the waiting room to the ticket.
    async fn buy(&mut self, seat: u32) -> Purchase {
        self.refusals = 0;
        let session = format!("authorization: Bearer {}\r\n", self.tokens.user());
        let event_id = self.event_id;
        let check = format!("/api/queue/check/{event_id}");
        let (told, enter) = self.post(&check, &session, &Value::Null, 200).await;
        let entry = told["entryToken"].as_str().unwrap_or_else(|| panic!("not let in: {told}"));
        let admitted = format!("{session}x-queue-entry-token: {entry}\r\n");
        let wish = json!({ "eventId": event_id, "seatIds": [seat] });
        let (held, reserve) = self.post("/api/seats/reserve", &admitted, &wish, 201).await;
        let id = &held["reservation"]["id"];
        let card = json!({ "reservationId": id, "paymentMethod": "approve" });
        let (paid, pay) = self.post("/api/payments/process", &session, &card, 200).await;
        assert_eq!(paid["success"], true, "the ticket is there: {paid}");
        Purchase { enter, reserve, pay, refusals: self.refusals }
    }

    /// Asks until there is room for it, and says how long that took.
    async fn post(
        &mut self,
        path: &str,
        headers: &str,
        body: &Value,
        expected: u16,
    ) -> (Value, Duration) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             {headers}content-length: {length}\r\n\r\n{body}"
        );
        let begun = Instant::now();
        for _ in 0..TRIES_MAX {
            let (status, answer) = self.ask(&request).await;
            if status == expected {
                return (answer, begun.elapsed());
            }
            assert_eq!(answer["code"], "OVERLOADED", "{path} answers {status}: {answer}");
            self.refusals += 1;
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        panic!("{path} has no room for long");
    }

    /// Asks and reads the whole answer.
    async fn ask(&mut self, request: &str) -> (u16, Value) {
        self.stream.write_all(request.as_bytes()).await.expect("the gateway reads");
        let mut answer = Vec::new();
        loop {
            let read = self.stream.read_buf(&mut answer).await.expect("the gateway answers");
            assert!(read > 0, "it was not answered to its end: {request}");
            if let Some((status, body)) = whole_answer(&answer) {
                return (status, serde_json::from_str(body).expect("answers are JSON"));
            }
        }
    }
}

/// Status and body of an answer that is there to its end.
fn whole_answer(bytes: &[u8]) -> Option<(u16, &str)> {
    let (head, body) = std::str::from_utf8(bytes).ok()?.split_once("\r\n\r\n")?;
    let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?;
    let is_whole = length.parse().is_ok_and(|length: usize| body.len() >= length);
    let status = head.get(9..12)?.parse().ok()?;
    is_whole.then_some((status, body))
}
