//! 100,000 holds whose time is over are ended: most while nobody books, the rest while the sale of
//! the same events goes on.
//!
//! Printed, on SQLite and on PostgreSQL: how many holds end per second in both cases, how many
//! reservations are made per second before and meanwhile, and the slowest of them. The baseline is
//! the sale without a sweep, in the same run. Everything is in one process and shares all cores.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use urr_kernel::{CallContext, Clock, IdSource, Secret, Uuid, Won};
use urr_layout::{GradeRows, Grid, Layout};
use urr_storage::{
    Db, PostgresOptions, ServiceRole, SqliteOptions, StorageError, Tx, migrate, params, provision,
};
use urr_test::figures::{BenchFigure, RatioTarget};
use urr_test::servers;
use urr_ticket::inventory::store::{NewSale, SaleFacts, sale_create};
use urr_ticket::{
    Inventory, InventoryKind, RequestedItems, ReserveRequest, SCHEMA, SeatLocks, Signer,
    SlotChecker, Sweeper, TicketParts, TicketService, TicketSettings,
};

const EVENTS: u32 = 4;
/// Holds that end while nobody books, and those that end during the sale.
const QUIET_PER_EVENT: u32 = 20_000;
const BUSY_PER_EVENT: u32 = 5_000;
const OVERDUE_PER_EVENT: u32 = QUIET_PER_EVENT + BUSY_PER_EVENT;
const MINUTE: Duration = Duration::from_secs(60);
/// The sale keeps so much of its speed.
const SALE_RATIO_MIN: f64 = 0.8;
const ROWS: u16 = 200;
const SEATS_PER_ROW: u16 = 500;
const CLIENTS: u32 = 32;
const BASELINE: Duration = Duration::from_secs(3);

struct Office {
    ticket: TicketService,
    ids: IdSource,
    events: Vec<Uuid>,
    /// The next seat that is for sale, by event.
    next_seats: Vec<Arc<AtomicU32>>,
}

/// What the sale did in a while.
struct Sold {
    per_second: f64,
    slowest: Duration,
}

fn main() {
    let machine = Runtime::new().expect("threads can be started");
    let folder = tempfile::tempdir().expect("a folder for the database");
    println!("100,000 holds whose time is over, {EVENTS} events, {CLIENTS} buyers meanwhile");
    let mut is_met = run(&machine, "SQLite", open_sqlite(folder.path()), || {});
    match servers::available(servers::Server::Postgres).expect("it can be looked up") {
        true => {
            let (db, admin_url) = open_postgres();
            is_met &= run(&machine, "PostgreSQL", db, || analyze(&admin_url));
        }
        false => println!("PostgreSQL is not installed"),
    }
    assert!(is_met, "a sale is slower than it may be");
}

/// Whether the sale kept its speed.
fn run(machine: &Runtime, name: &str, db: Db, analyze: impl FnOnce()) -> bool {
    let clock = Clock::manual("2026-12-01T12:00:00Z".parse().expect("a time"));
    let office = machine.block_on(open_office(db, &clock));
    analyze();
    let before = machine.block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let buyers = sell(&office, &stop);
        tokio::time::sleep(BASELINE).await;
        finish(buyers, &stop, BASELINE).await
    });
    let mut sweeper = Sweeper::new(office.ticket.clone());
    // The first sweep begins behind a sale, and has to notice that nobody books any more.
    machine.block_on(sweeper.expire_overdue()).expect("there is nothing to sweep");
    clock.advance(MINUTE);
    let quiet = machine.block_on(sweep(&mut sweeper, QUIET_PER_EVENT));
    clock.advance(MINUTE);
    let (busy, meanwhile) = machine.block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let buyers = sell(&office, &stop);
        let took = sweep(&mut sweeper, BUSY_PER_EVENT).await;
        (took, finish(buyers, &stop, took).await)
    });
    let audit = machine.block_on(office.ticket.audit()).expect("the audit works");
    assert!(audit.differences.is_empty(), "{:?}", audit.differences);
    println!("{name}:");
    for (when, per_event, took) in
        [("while nobody books", QUIET_PER_EVENT, quiet), ("during a sale", BUSY_PER_EVENT, busy)]
    {
        let rate = f64::from(EVENTS * per_event) / took.as_secs_f64();
        println!("  holds ended {when:<20} {rate:>8.0} per second ({:.1} s)", took.as_secs_f64());
    }
    let figure = BenchFigure {
        name: &format!("reservations while holds end, {name}"),
        value: meanwhile.per_second,
        unit: "reservations/s",
        baseline: "before",
        baseline_value: before.per_second,
        target: RatioTarget::AtLeast(SALE_RATIO_MIN),
    };
    let is_met = figure.show();
    let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
    println!("  slowest before       {:>8.1} ms", millis(before.slowest));
    println!("  slowest meanwhile    {:>8.1} ms", millis(meanwhile.slowest));
    is_met
}

/// Ends the holds whose time is over. Returns how long that took.
async fn sweep(sweeper: &mut Sweeper, per_event: u32) -> Duration {
    let begun = Instant::now();
    let swept = sweeper.expire_overdue().await.expect("the sweep works");
    assert_eq!(swept.ended, u64::from(EVENTS * per_event), "all of them end");
    begun.elapsed()
}

/// Buyers who each hold one seat after the other.
fn sell(office: &Office, stop: &Arc<AtomicBool>) -> JoinSet<(u64, Duration)> {
    let mut buyers = JoinSet::new();
    for number in 0..CLIENTS {
        let (ticket, ids, stop) = (office.ticket.clone(), office.ids.clone(), Arc::clone(stop));
        let place = (number % EVENTS) as usize;
        let (event_id, next_seat) = (office.events[place], Arc::clone(&office.next_seats[place]));
        buyers.spawn(async move {
            let (mut sold, mut slowest) = (0, Duration::ZERO);
            while !stop.load(Ordering::Relaxed) {
                let seat_id = next_seat.fetch_add(1, Ordering::Relaxed);
                let requested = RequestedItems::of_seats(vec![seat_id]).expect("one seat");
                let request =
                    ReserveRequest { user_id: ids.next_id(), event_id, requested, key: None };
                let begun = Instant::now();
                let context = CallContext::root(ids.next_id());
                ticket.reserve(request, context).await.expect("the seat is free");
                slowest = slowest.max(begun.elapsed());
                sold += 1;
            }
            (sold, slowest)
        });
    }
    buyers
}

async fn finish(buyers: JoinSet<(u64, Duration)>, stop: &Arc<AtomicBool>, took: Duration) -> Sold {
    stop.store(true, Ordering::Relaxed);
    let all = buyers.join_all().await;
    let sold: u64 = all.iter().map(|(sold, _)| sold).sum();
    let slowest = all.iter().map(|(_, slowest)| *slowest).max().unwrap_or_default();
    Sold { per_second: sold as f64 / took.as_secs_f64(), slowest }
}

async fn open_office(db: Db, clock: &Clock) -> Office {
    let ids = IdSource::seeded(clock.clone(), 1);
    let events: Vec<Uuid> = (0..EVENTS).map(|_| ids.next_id()).collect();
    let now = clock.now();
    for (place, event_id) in (0..).zip(events.clone()) {
        let new = new_sale(event_id, clock);
        let made = db.write(move |tx| sale_create(tx, &new, now)).await;
        assert!(made.unwrap_or_else(|error: StorageError| panic!("{error}")));
        for first in (0..OVERDUE_PER_EVENT).step_by(1_000) {
            let held = db.write(move |tx| hold_many(tx, (place, event_id), first, now)).await;
            held.unwrap_or_else(|error: StorageError| panic!("{error}"));
        }
    }
    let ticket = TicketService::new(TicketParts {
        db,
        clock: clock.clone(),
        ids: ids.clone(),
        settings: TicketSettings::default(),
        locks: SeatLocks::memory(clock.clone()),
        signer: Signer::new(&Secret::new("a secret for the benchmark, never used elsewhere"), &[]),
        data_keys: urr_service::DataKeys::single(Secret::generate()),
        slots: SlotChecker::AllowAll,
        persons: urr_ticket::PersonFinder::nobody(),
        peers: None,
    });
    let next_seat = || Arc::new(AtomicU32::new(OVERDUE_PER_EVENT));
    Office { ticket, ids, events, next_seats: (0..EVENTS).map(|_| next_seat()).collect() }
}

/// A thousand holds of one seat each that end in a minute, or in two if they are the last ones. As
/// in a sale their ids follow each other, and those of their owners do not.
fn hold_many(
    tx: &mut Tx<'_>,
    (place, event_id): (u32, Uuid),
    first: u32,
    now: urr_kernel::Timestamp,
) -> Result<(), StorageError> {
    let (next_id, random_id) = match tx.is_postgres() {
        true => ("lpad(to_hex($6::bigint + n), 32, '0')::uuid", "gen_random_uuid()"),
        false => ("unhex(printf('%032x', $6::bigint + n))", "randomblob(16)"),
    };
    let before = i64::from(place) * 1_000_000;
    let numbers = "with recursive numbers (n) as (\
        select $2::integer union all select n + 1 from numbers where n + 1 < $2::integer + 1000)";
    let ends = now + if first < QUIET_PER_EVENT { MINUTE } else { MINUTE * 2 };
    tx.execute(
        &format!(
            "insert into reservations (id, number, user_id, event_id, status, payment_status, \
             total_amount, booking_fee, quantity, fence, expires_at, cancel_policy, agreed_starts_at, \
             announced_starts_at, created_at, updated_at) {numbers} select {next_id}, $3::text || n, {random_id}, $1::uuid, 'pending', 'unpaid', \
             100000, 0, 1, n, $4::timestamptz, '{{}}', $5::timestamptz, $5::timestamptz, \
             $5::timestamptz, $5::timestamptz from numbers"
        ),
        params![event_id, first, format!("{event_id}-"), ends, now, before],
    )?;
    let of_these = "event_id = $1 and fence >= $2 and fence < $2 + 1000 and status = 'pending'";
    tx.execute(
        &format!(
            "insert into reservation_items (reservation_id, position, event_id, seat_id, \
             quantity, unit_price, is_live) \
             select id, 0, event_id, fence, 1, 100000, true from reservations where {of_these}"
        ),
        params![event_id, i64::from(first)],
    )?;
    tx.execute(
        "update seats set status = 'held', reservation_id = item.reservation_id \
         from reservation_items as item where item.event_id = $1 and item.is_live \
         and item.seat_id is not null and item.seat_id >= $2 and item.seat_id < $2 + 1000 \
         and seats.event_id = item.event_id and seats.seat_id = item.seat_id",
        params![event_id, first],
    )?;
    Ok(())
}

fn new_sale(event_id: Uuid, clock: &Clock) -> NewSale {
    let now = clock.now();
    let all = GradeRows { grade: "R".to_owned(), from_row: 1, to_row: ROWS };
    let grid = Grid { rows: ROWS, seats_per_row: SEATS_PER_ROW, grade_mapping: vec![all] };
    let layout: Layout = grid.to_layout().expect("a hall");
    let prices = BTreeMap::from([("R".to_owned(), Won::new(100_000))]);
    NewSale {
        inventory: Inventory { event_id, kind: InventoryKind::Seated, layout, prices },
        facts: SaleFacts {
            revision: 1,
            title: "한강의 밤".to_owned(),
            venue_name: "강변 홀".to_owned(),
            artist_id: None,
            starts_at: now + Duration::from_secs(864_000),
            sale_starts_at: now - Duration::from_secs(60),
            sale_ends_at: now + Duration::from_secs(432_000),
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

fn open_sqlite(folder: &std::path::Path) -> Db {
    let path = folder.join("reservation_service.db");
    migrate::migrate_sqlite(&path, &SCHEMA, Clock::System.now()).expect("the schema is made");
    let options =
        SqliteOptions { statement_timeout: Duration::from_secs(60), ..SqliteOptions::default() };
    Db::open_sqlite(&path, &options).expect("the database opens")
}

/// As PostgreSQL does by itself after a while: without it, plans are made for empty tables.
fn analyze(admin_url: &str) {
    let psql = Command::new("psql").args([admin_url, "-q", "-c", "analyze"]).status();
    assert!(psql.expect("psql comes with PostgreSQL's client programs").success());
}

fn open_postgres() -> (Db, String) {
    let server = servers::shared_postgres().expect("PostgreSQL starts");
    let admin_url = server.create_database("expiry").expect("a database");
    let role = ServiceRole { name: "expiry_svc".to_owned(), password: Secret::generate() };
    provision(&admin_url, &SCHEMA, &role, Clock::System.now()).expect("the schema is made");
    let (_, place) = admin_url.split_once('@').expect("an address with a login");
    let url = format!("postgres://{}:{}@{place}", role.name, role.password.expose());
    let options = PostgresOptions {
        connections: 8,
        statement_timeout: Duration::from_secs(60),
        ..PostgresOptions::new(url, SCHEMA.name)
    };
    (Db::open_postgres(&options).expect("PostgreSQL can be reached"), admin_url)
}
