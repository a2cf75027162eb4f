//! What a seat map of 50,000 seats costs, beside a bare axum route that answers the same bytes, in
//! the same run: once for viewers who have it already (304), once for those who get all of it. Then
//! what it costs to choose the best seat of its largest grade, beside a reservation of a seat that
//! was picked by hand.
//!
//! Both listen on loopback and are asked in turns, so that a busy moment of the machine hits both.
//! Clients and servers share all cores. The map is refreshed from the database all the while.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use urr_kernel::{CallContext, Clock, IdSource, Secret, Uuid, Won};
use urr_layout::{GradeRows, Grid, Layout};
use urr_service::{Metrics, RequestLimits, ServiceKit, serve};
use urr_storage::{Db, SqliteOptions, StorageError, migrate};
use urr_test::figures::{BenchFigure, RatioTarget};
use urr_ticket::inventory::store::{NewSale, SaleFacts, sale_create};
use urr_ticket::{
    Inventory, InventoryKind, RequestedItems, ReserveRequest, SCHEMA, SeatLocks, SeatPreference,
    Signer, SlotChecker, TicketParts, TicketService, TicketSettings,
};

const CONNECTIONS: u32 = 64;
const ROUNDS: u32 = 4;
const ROUND: Duration = Duration::from_millis(1_500);
const RATIO_MIN: f64 = 0.5;
/// How many each of those who reserve makes in a round.
const RESERVATIONS: u32 = 2;
const EVENT: Uuid = Uuid::from_u128(50_000);

fn main() {
    let machine = Runtime::new().expect("threads can be started");
    let folder = tempfile::tempdir().expect("a folder for the database");
    let ticket = machine.block_on(office(folder.path()));
    let (office, map, tag) = machine.block_on(async {
        let office = listen(ticket.service(&kit()).local_router()).await;
        let (head, map) = ask_once(office, &request(None)).await;
        let tag = field(&head, "etag").expect("a map has a tag").to_owned();
        (office, map, tag)
    });
    println!("a map of 50,000 seats: {} bytes, uncompressed", map.len());
    let bare = machine.block_on(async { listen(bare(map, &tag)).await });
    for (name, request) in [("unchanged (304)", request(Some(&tag))), ("whole", request(None))] {
        let (mut bares, mut maps) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bares.push(machine.block_on(full_load(bare, &request)));
            maps.push(machine.block_on(full_load(office, &request)));
        }
        let (bare_rate, map_rate) = (median(&mut bares), median(&mut maps));
        let figure = BenchFigure {
            name: &format!("seat map of 50,000 seats, {name}"),
            value: map_rate,
            unit: "requests/s",
            baseline: "bare axum route",
            baseline_value: bare_rate,
            target: RatioTarget::AtLeast(RATIO_MIN),
        };
        figure.show();
    }
    let (mut by_hand, mut best) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        by_hand.push(machine.block_on(reserve_all(&ticket, Some(round))));
        best.push(machine.block_on(reserve_all(&ticket, None)));
    }
    let (by_hand, best) = (median(&mut by_hand), median(&mut best));
    let figure = BenchFigure {
        name: "best seat of 30,000",
        value: best,
        unit: "reservations/s",
        baseline: "picked by hand",
        baseline_value: by_hand,
        target: RatioTarget::None,
    };
    figure.show();
}

/// Reservations per second: of given free seats from the back of the hall, or of the best.
async fn reserve_all(ticket: &TicketService, round: Option<u32>) -> f64 {
    let (begun, mut people) = (Instant::now(), JoinSet::new());
    let free = (0..50_000_u32).rev().filter(|seat_id| seat_id * 7_919 % 101 >= 67);
    let many = usize::try_from(CONNECTIONS * RESERVATIONS).expect("a small number");
    let skipped = many * usize::try_from(round.unwrap_or(0)).expect("a small number");
    let mut seats: Vec<u32> = free.skip(skipped).take(many).collect();
    for _ in 0..CONNECTIONS {
        let (ticket, ids) = (ticket.clone(), IdSource::from_system_randomness(Clock::System));
        let rest = seats.len() - usize::try_from(RESERVATIONS).expect("a small number");
        let seats = seats.split_off(rest);
        people.spawn(async move {
            for seat_id in seats {
                let (user_id, context) = (ids.next_id(), CallContext::root(ids.next_id()));
                if round.is_some() {
                    let requested = RequestedItems::of_seats(vec![seat_id]).expect("one seat");
                    let request = ReserveRequest { user_id, event_id: EVENT, requested, key: None };
                    ticket.reserve(request, context).await.expect("it is free");
                } else {
                    let grade = Some("S".to_owned());
                    let preference =
                        SeatPreference { count: 1, grade, section: None, accessible: false };
                    let requested = RequestedItems::Best(preference);
                    let request = ReserveRequest { user_id, event_id: EVENT, requested, key: None };
                    ticket.reserve(request, context).await.expect("enough are free");
                }
            }
        });
    }
    people.join_all().await;
    f64::from(CONNECTIONS * RESERVATIONS) / begun.elapsed().as_secs_f64()
}

/// A ticket service that sells 50,000 seats, two thirds of them taken.
async fn office(folder: &std::path::Path) -> TicketService {
    let clock = Clock::System;
    let path = folder.join("reservation_service.db");
    migrate::migrate_sqlite(&path, &SCHEMA, clock.now()).expect("the schema is made");
    let db = Db::open_sqlite(&path, &SqliteOptions::default()).expect("the database opens");
    let (new, now) = (new_sale(&clock), clock.now());
    let sell = move |tx: &mut urr_storage::Tx<'_>| {
        assert!(sale_create(tx, &new, now)?);
        tx.execute(
            "update seats set fence = 1, reservation_id = event_id, \
             status = case when seat_id * 7919 % 101 < 50 then 'sold' else 'held' end \
             where seat_id * 7919 % 101 < 67",
            &[],
        )?;
        tx.execute("update sales set fence = 1", &[])
    };
    let sold: Result<u64, StorageError> = db.write(sell).await;
    sold.expect("the sale is made");
    let ids = IdSource::from_system_randomness(clock.clone());
    TicketService::new(TicketParts {
        db,
        ids,
        settings: TicketSettings::default(),
        locks: SeatLocks::memory(clock.clone()),
        clock,
        signer: Signer::new(&Secret::generate(), &[]),
        data_keys: urr_service::DataKeys::single(Secret::generate()),
        slots: SlotChecker::AllowAll,
        persons: urr_ticket::PersonFinder::nobody(),
        peers: None,
    })
}

fn kit() -> ServiceKit {
    let clock = Clock::System;
    ServiceKit {
        ids: IdSource::from_system_randomness(clock.clone()),
        clock,
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    }
}

fn new_sale(clock: &Clock) -> NewSale {
    let hour = Duration::from_secs(60 * 60);
    let range = |(grade, from_row, to_row): (&str, u16, u16)| GradeRows {
        grade: grade.to_owned(),
        from_row,
        to_row,
    };
    let grade_mapping = [("VIP", 1, 100), ("R", 101, 400), ("S", 401, 1_000)].map(range).to_vec();
    let grid = Grid { rows: 1_000, seats_per_row: 50, grade_mapping };
    let layout: Layout = grid.to_layout().expect("a good grid");
    let prices: BTreeMap<String, Won> =
        layout.grades().into_iter().map(|grade| (grade.to_owned(), Won::new(99_000))).collect();
    NewSale {
        inventory: Inventory { event_id: EVENT, kind: InventoryKind::Seated, layout, prices },
        facts: SaleFacts {
            revision: 1,
            title: "한강의 밤".to_owned(),
            venue_name: "강변 경기장".to_owned(),
            artist_id: None,
            starts_at: clock.now() + 48 * hour,
            sale_starts_at: clock.now() - hour,
            sale_ends_at: clock.now() + 24 * hour,
            has_presale: false,
            seats_per_user_max: 4,
            requires_identity: false,
            allows_reentry: false,
            organiser_id: None,
            cancel_policy: None,
        },
        ticket_types: Vec::new(),
    }
}

/// The same answers without any work.
fn bare(map: Bytes, tag: &str) -> Router {
    let tag = tag.to_owned();
    let answer = async move |headers: axum::http::HeaderMap| {
        let is_known = headers.contains_key("if-none-match");
        match is_known {
            true => (StatusCode::NOT_MODIFIED, [(ETAG, tag.clone())], Bytes::new()),
            false => (StatusCode::OK, [(CONTENT_TYPE, "application/json".to_owned())], map.clone()),
        }
    };
    Router::new().route("/api/seats/events/{eventId}", get(answer))
}

async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(serve(listener, router, CancellationToken::new(), Duration::ZERO));
    address
}

fn request(tag: Option<&str>) -> Vec<u8> {
    let known = tag.map_or(String::new(), |tag| format!("if-none-match: {tag}\r\n"));
    format!("GET /api/seats/events/{EVENT} HTTP/1.1\r\nhost: localhost\r\n{known}\r\n").into_bytes()
}

async fn ask_once(address: SocketAddr, request: &[u8]) -> (String, Bytes) {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let mut answer = Vec::new();
    let head = ask(&mut stream, request, &mut answer).await;
    (String::from_utf8_lossy(&answer[..head]).into_owned(), Bytes::copy_from_slice(&answer[head..]))
}

/// Asks and reads the whole answer; says how long its head is.
async fn ask(stream: &mut TcpStream, request: &[u8], answer: &mut Vec<u8>) -> usize {
    stream.write_all(request).await.expect("the server reads");
    answer.clear();
    let head = loop {
        assert!(stream.read_buf(answer).await.expect("the server answers") > 0, "it closed");
        if let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = str::from_utf8(&answer[..head]).expect("a head is text");
    assert!(text.starts_with("HTTP/1.1 200 ") || text.starts_with("HTTP/1.1 304 "), "{text}");
    let length = match text.starts_with("HTTP/1.1 304 ") {
        true => 0,
        false => field(text, "content-length").expect("a length").parse().expect("a number"),
    };
    while answer.len() < head + length {
        assert!(stream.read_buf(answer).await.expect("the server answers") > 0, "it closed");
    }
    head
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Requests per second if every connection asks as soon as it is answered.
async fn full_load(address: SocketAddr, request: &[u8]) -> f64 {
    let mut clients = JoinSet::new();
    let end = Instant::now() + ROUND;
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        let request = request.to_vec();
        clients.spawn(async move {
            let mut answer = Vec::with_capacity(256 * 1024);
            let mut count = 0_u64;
            while Instant::now() < end {
                ask(&mut stream, &request, &mut answer).await;
                count += 1;
            }
            count
        });
    }
    clients.join_all().await.into_iter().sum::<u64>() as f64 / ROUND.as_secs_f64()
}

fn median(summary: &mut [f64]) -> f64 {
    summary.sort_by(f64::total_cmp);
    summary[summary.len() / 2]
}
