//! How many people can ask for their place, through the whole gateway, with few and with a million
//! waiting; beside a bare axum route that answers JSON of the same size, in the same run.
//!
//! Everything is on loopback and asked in turns, so that a busy moment of the machine hits all.
//! Clients and servers share all cores. The room is the one that lives in the process.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use urr_contracts::clients::TicketClient;
use urr_gateway::{Gateway, GatewaySettings, RateLimiter, RateLimits};
use urr_kernel::{Clock, IdSource, Secret, Uuid};
use urr_queue::draw::{BeaconSource, DrawSeal};
use urr_queue::{LiveSources, Notices, QueueParts, QueueService, QueueSettings, SCHEMA};
use urr_room::memory::MemoryRooms;
use urr_room::{AdmissionRules, AdmissionState, RoomRequest, Rooms};
use urr_service::token::{ACCESS, AccessClaims, TokenFacts, TokenKey};
use urr_service::{
    Caller, LocalService, Metrics, RequestLimits, Service, ServiceKit, Upstream, UserRole, serve,
};
use urr_storage::{Db, StorageError, params};
use urr_test::engines::{Database, Engine};
use urr_test::figures::{BenchFigure, RatioTarget};
use utoipa_axum::router::OpenApiRouter;

const CONNECTIONS: usize = 64;
const ROUNDS: u32 = 5;
const ROUND: Duration = Duration::from_millis(1_500);
const CROWDS: [u128; 3] = [1_000, 100_000, 1_000_000];
/// How many of the waiting users poll, spread over the queue.
const ASKING: u128 = 1_024;
const BARE_RATIO_MIN: f64 = 0.5;
const CROWD_RATIO_MIN: f64 = 0.8;

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    let bare = runtime.block_on(bare())?;
    let mut houses = Vec::new();
    for waiting in CROWDS {
        houses.push(runtime.block_on(House::open(waiting))?);
    }
    let (mut bares, mut polls, mut checks) =
        (Vec::new(), [const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for _ in 0..ROUNDS {
        bares.push(runtime.block_on(full_load(&bare)));
        for (index, house) in houses.iter().enumerate() {
            polls[index].push(runtime.block_on(full_load(&house.poll)));
            checks[index].push(runtime.block_on(full_load(&house.check)));
        }
    }
    let bare = median(&mut bares);
    println!("bare axum, JSON of the same size        {bare:>9.0} requests/s");
    let polls = polls.map(|mut rates| median(&mut rates));
    let checks = checks.map(|mut rates| median(&mut rates));
    for (index, waiting) in CROWDS.iter().enumerate() {
        for (what, rate) in [("polls", polls[index]), ("checks", checks[index])] {
            let ratio = rate / bare;
            println!(
                "{what:<6} with {waiting:>9} waiting          {rate:>9.0} requests/s   {ratio:.2} of bare"
            );
        }
    }
    let mut passed = true;
    for (what, rates) in [("polls", polls), ("checks", checks)] {
        let figure = BenchFigure {
            name: &format!("{what}, a million waiting"),
            value: rates[2],
            unit: "requests/s",
            baseline: "bare axum, JSON of the same size",
            baseline_value: bare,
            target: RatioTarget::AtLeast(BARE_RATIO_MIN),
        };
        passed &= figure.show();
        let figure = BenchFigure {
            baseline: "a thousand waiting",
            baseline_value: rates[0],
            target: RatioTarget::AtLeast(CROWD_RATIO_MIN),
            ..figure
        };
        passed &= figure.show();
    }
    ensure!(passed, "a figure is below its target");
    Ok(())
}

/// Whom to ask what.
struct Target {
    address: SocketAddr,
    requests: Arc<Vec<Vec<u8>>>,
}

/// A gateway before a waiting room with people in it.
struct House {
    poll: Target,
    check: Target,
    _databases: [Database; 2],
}

impl House {
    async fn open(waiting: u128) -> Result<House> {
        let clock = Clock::System;
        let now = clock.now();
        let database = Database::open(Engine::Sqlite, &SCHEMA, now).context("SQLite")?;
        let journal = Database::open(Engine::Sqlite, &urr_room::JOURNAL, now).context("SQLite")?;
        let ids = IdSource::from_system_randomness(clock.clone());
        let event_id = ids.next_id();
        open_sale(&database.db, event_id, now).await?;
        let (rooms, _) = MemoryRooms::open(journal.db.clone(), ids.clone(), now).await?;
        let rooms = Rooms::Memory(rooms);
        let metrics = Metrics::new();
        let kit = ServiceKit {
            clock: clock.clone(),
            ids: ids.clone(),
            metrics,
            limits: RequestLimits::default(),
        };
        let ticket = Upstream::local(Caller::Queue, "ticket", LocalService::default(), &kit);
        let queue = QueueService::new(QueueParts {
            db: database.db.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            settings: QueueSettings { threshold: 1, ..QueueSettings::default() },
            rooms: rooms.clone(),
            entry_key: TokenKey::new(&[2; 32]),
            notices: Notices::off(),
            ticket: TicketClient::new(ticket),
            draw_seal: DrawSeal::new(&Secret::new("benchmark")),
            beacon: BeaconSource::Offline,
            live_sources: LiveSources::default(),
        });
        queue.load().await?;
        fill(&rooms, event_id, waiting).await?;
        let address = listen(gateway(&queue.service(&kit), &kit)).await?;
        let users = (0..ASKING.min(waiting))
            .map(|number| Uuid::from_u128(1 + number * waiting / ASKING.min(waiting)));
        let tokens: Vec<String> = users.map(token).collect();
        let requests = |line: &str| {
            let of = |token: &String| {
                format!(
                    "{line} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\ncookie: access_token={token}\r\n"
                )
            };
            Arc::new(tokens.iter().map(of).collect::<Vec<String>>())
        };
        let end = |lines: Arc<Vec<String>>, tail: &str| {
            Arc::new(lines.iter().map(|head| format!("{head}{tail}\r\n").into_bytes()).collect())
        };
        let poll = requests(&format!("GET /api/queue/status/{event_id}"));
        let check = requests(&format!("POST /api/queue/check/{event_id}"));
        Ok(House {
            poll: Target { address, requests: end(poll, "") },
            check: Target {
                address,
                requests: end(check, "origin: http://localhost:3000\r\ncontent-length: 0\r\n"),
            },
            _databases: [database, journal],
        })
    }
}

async fn open_sale(
    db: &Db,
    event_id: Uuid,
    now: urr_kernel::Timestamp,
) -> Result<(), StorageError> {
    let hour = Duration::from_secs(3_600);
    db.write(move |tx| {
        tx.execute(
            "insert into rooms (event_id, revision, status, title, artist_name, sale_starts_at, \
             sale_ends_at, has_presale, opening, is_paused, has_autopilot, updated_at) \
             values ($1, 1, 'open', '우르르 콘서트', '우르르', $2, $3, false, 'fifo', false, false, $4)",
            params![event_id, now - hour, now + 24 * hour, now],
        )?;
        Ok(())
    })
    .await
}

async fn fill(rooms: &Rooms, event_id: Uuid, waiting: u128) -> Result<()> {
    let now = Clock::System.now();
    let rules = AdmissionRules {
        admission: AdmissionState::Open,
        threshold: 1,
        admitted_per_second_max: 1,
        slot_ttl: Duration::from_mins(10),
        slot_max: Duration::from_mins(30),
        waiting_max: 1_000_000,
        queues_per_user_max: 3,
    };
    let first = RoomRequest { event_id, user_id: Uuid::from_u128(u128::MAX), now };
    rooms.check(first, &rules).await?;
    let mut tasks = JoinSet::new();
    let share = waiting.div_ceil(256);
    for task in 0..256 {
        let rooms = rooms.clone();
        tasks.spawn(async move {
            for number in task * share..((task + 1) * share).min(waiting) {
                let user_id = Uuid::from_u128(1 + number);
                rooms
                    .check(RoomRequest { event_id, user_id, now }, &rules)
                    .await
                    .expect("there is room");
            }
        });
    }
    tasks.join_all().await;
    let crowd = rooms.crowd(event_id, Clock::System.now()).await?;
    ensure!(u128::from(crowd.waiting) == waiting, "{} wait", crowd.waiting);
    Ok(())
}

fn gateway(service: &Service, kit: &ServiceKit) -> Router {
    let upstream = Upstream::local(Caller::Gateway, "queue", service.local_router(), kit);
    let mut settings = GatewaySettings::new(key(), TokenKey::new(&[2; 32]));
    settings.rate_limits = RateLimits { queue: 1_000_000_000, ..RateLimits::default() };
    settings.allowed_origins = vec!["http://localhost:3000".to_owned()];
    let limiter = RateLimiter::local(kit.clock.clone());
    Gateway::new(vec![upstream], limiter, settings, kit).router(|_| Router::new(), kit)
}

/// A route that answers what a poll answers, and does nothing for it.
async fn bare() -> Result<Target> {
    let answer: Arc<Value> = Arc::new(json!({
        "status": "queued", "queued": true, "currentUsers": 1000, "position": 123_456,
        "number": 123_456, "peopleAhead": 123_455, "peopleBehind": 876_543, "estimatedWait": 1234,
        "estimatedWaitRange": { "from": 1000, "to": 1500 }, "nextPoll": 58.731,
        "queueSize": 1_000_000, "phase": "open", "soldOut": false,
    }));
    let routes = OpenApiRouter::<()>::new();
    let router: Router = routes.split_for_parts().0;
    let router = router.route("/api/place", get(async move || Json(Value::clone(&answer))));
    let request = format!(
        "GET /api/place HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\ncookie: access_token={}\r\n\r\n",
        token(Uuid::from_u128(1))
    );
    Ok(Target { address: listen(router).await?, requests: Arc::new(vec![request.into_bytes()]) })
}

async fn listen(router: Router) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener, router, CancellationToken::new(), Duration::ZERO));
    Ok(address)
}

fn key() -> TokenKey {
    TokenKey::new(&[1; 32])
}

fn token(user_id: Uuid) -> String {
    let issue = TokenFacts {
        subject: user_id.to_string(),
        id: Uuid::from_u128(2),
        issued_at: Clock::System.now(),
        lifetime: Duration::from_secs(1_800),
    };
    let email = "fan@example.com".to_owned();
    let claims = AccessClaims {
        email,
        role: UserRole::User,
        family_id: Uuid::from_u128(3),
        email_verified: true,
    };
    key().sign(ACCESS, &issue, &claims)
}

/// Requests per second if every connection asks as soon as it is answered.
async fn full_load(target: &Target) -> f64 {
    let mut clients = JoinSet::new();
    let end = Instant::now() + ROUND;
    for connection in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(target.address).await.expect("the server listens");
        let requests = Arc::clone(&target.requests);
        clients.spawn(async move {
            let mut buffer = vec![0; 4_096];
            let mut count = 0_usize;
            while Instant::now() < end {
                let request = &requests[(connection * 16 + count) % requests.len()];
                send_request(&mut stream, request, &mut buffer).await;
                count += 1;
            }
            count
        });
    }
    clients.join_all().await.into_iter().sum::<usize>() as f64 / ROUND.as_secs_f64()
}

/// Asks and reads the whole answer.
async fn send_request(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) {
    stream.write_all(request).await.expect("the server reads");
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).await.expect("the server answers");
        assert!(read > 0, "the server closed: {}", String::from_utf8_lossy(&buffer[..filled]));
        filled += read;
        if is_whole(&buffer[..filled]) {
            break;
        }
    }
    let answer = String::from_utf8_lossy(&buffer[..filled]);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"queued\":true"), "{answer}");
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = str::from_utf8(&answer[..end]).expect("a head is ASCII");
    let (_, rest) = head.split_once("content-length: ").expect("it has a length");
    let length: usize = rest.lines().next().expect("a line").parse().expect("a number");
    answer.len() >= end + 4 + length
}

fn median(metrics: &mut [f64]) -> f64 {
    metrics.sort_by(f64::total_cmp);
    metrics[metrics.len() / 2]
}
