//! Clients that each wait for their answer before they ask again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use urr_kernel::{IdSource, Uuid};
use urr_service::Caller;

use crate::service::BenchService;
use crate::{CLIENTS, ROUND, SEATS};

#[derive(Clone, Copy)]
pub enum SeatPreference {
    SeatOfOnesOwn,
    HotSeat { with_key: bool },
}

/// What was done in how much time, over all rounds.
#[derive(Default)]
pub struct Measured {
    pub count: usize,
    pub time: Duration,
    pub latencies: Vec<Duration>,
}

impl Measured {
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }

    pub fn add(&mut self, round: Measured) {
        println!("  {:.0}/s", round.rate());
        self.count += round.count;
        self.time += round.time;
        self.latencies.extend(round.latencies);
    }

    pub fn print(&mut self, name: &str) {
        self.print_latencies();
        let name = format!("{name} over HTTP");
        println!("{name:<34} {:>9.0} reservations/s", self.rate());
    }

    pub fn print_latencies(&mut self) {
        self.latencies.sort_unstable();
        let at = |percent| self.latencies[(self.latencies.len() - 1) * percent / 100];
        let (p50, p99) = (at(50).as_secs_f64() * 1e3, at(99).as_secs_f64() * 1e3);
        println!("{CLIENTS} clients: p50 {p50:.2} ms, p99 {p99:.2} ms");
    }
}

/// One round of a crowd. It ends early if all seats are sold.
pub async fn run(service: &BenchService, event_id: Uuid, preference: SeatPreference) -> Measured {
    let head = head(service, event_id);
    if let SeatPreference::HotSeat { .. } = preference {
        // Somebody has it; nobody minds if that is so already.
        let mut client = Client::connect(service, &head, event_id).await;
        client.reserve(0, None).await;
    }
    let next_seat = Arc::new(AtomicU32::new(0));
    let mut clients = JoinSet::new();
    let started = Instant::now();
    for _ in 0..CLIENTS {
        let (client, next_seat) =
            (Client::connect(service, &head, event_id).await, Arc::clone(&next_seat));
        clients.spawn(client.run(preference, next_seat, started + ROUND));
    }
    let mut measured = Measured::default();
    for latencies in clients.join_all().await {
        measured.latencies.extend(latencies);
    }
    measured.count = measured.latencies.len();
    measured.time = started.elapsed();
    measured
}

/// What the headers of all requests have in common.
fn head(service: &BenchService, event_id: Uuid) -> String {
    let credential = service.credentials.for_call(Caller::Gateway, "ticket");
    format!(
        "POST /api/seats/reserve HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         x-urr-caller: gateway\r\nx-urr-credential: {}\r\nx-urr-entry-event: {event_id}\r\n\
         x-user-role: user\r\n",
        credential.expose()
    )
}

struct Client {
    stream: TcpStream,
    head: String,
    event_id: Uuid,
    ids: IdSource,
    buffer: Vec<u8>,
}

impl Client {
    async fn connect(service: &BenchService, head: &str, event_id: Uuid) -> Client {
        let stream = TcpStream::connect(service.address).await.expect("the service listens");
        stream.set_nodelay(true).expect("the socket is open");
        let (head, ids) = (head.to_owned(), service.ids.clone());
        Client { stream, head, event_id, ids, buffer: vec![0; 8_192] }
    }

    async fn run(
        mut self,
        preference: SeatPreference,
        next_seat: Arc<AtomicU32>,
        end: Instant,
    ) -> Vec<Duration> {
        let mut latencies = Vec::new();
        while Instant::now() < end {
            let begun = Instant::now();
            match preference {
                SeatPreference::SeatOfOnesOwn => {
                    let seat_id = next_seat.fetch_add(1, Ordering::Relaxed);
                    if seat_id >= SEATS {
                        break;
                    }
                    self.reserve(seat_id, None).await;
                    self.must_say(b"201");
                }
                SeatPreference::HotSeat { with_key } => {
                    let key = with_key.then(|| self.ids.next_id());
                    self.reserve(0, key).await;
                    self.must_say(b"409");
                }
            }
            latencies.push(begun.elapsed());
        }
        latencies
    }

    fn must_say(&self, status: &[u8; 3]) {
        let is_said = self.buffer[9..].starts_with(status);
        assert!(is_said, "{}", String::from_utf8_lossy(&self.buffer));
    }

    /// Asks as someone new and reads the whole answer.
    async fn reserve(&mut self, seat_id: u32, key: Option<Uuid>) {
        let (event_id, user_id) = (self.event_id, self.ids.next_id());
        let key = key.map_or_else(String::new, |key| format!("idempotency-key: {key}\r\n"));
        let body = format!(r#"{{"eventId":"{event_id}","seatIds":[{seat_id}]}}"#);
        let head = &self.head;
        let length = body.len();
        let request =
            format!("{head}{key}x-user-id: {user_id}\r\ncontent-length: {length}\r\n\r\n{body}");
        self.stream.write_all(request.as_bytes()).await.expect("the service reads");
        let mut filled = 0;
        while answer_length(&self.buffer[..filled]).is_none_or(|length| filled < length) {
            let read = self.stream.read(&mut self.buffer[filled..]).await;
            let read = read.expect("the service answers");
            assert!(read > 0, "closed: {}", String::from_utf8_lossy(&self.buffer[..filled]));
            filled += read;
        }
    }
}

/// How long the answer is with its head, once the head is there.
fn answer_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..head]).expect("a head is ASCII");
    let line = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let body: usize = line.expect("the answer has a length").parse().expect("a number");
    Some(head + 4 + body)
}
