//! How fast `Db` is, beside the same SQL without it, in the same run.
//!
//! One reservation: read the seat, versioned update, two inserts, one outbox row. The baseline on
//! SQLite is a bare `rusqlite` loop that commits groups of the same size; on PostgreSQL it is
//! pgbench with prepared statements.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use urr_kernel::{Clock, IdSource, Secret, Timestamp, Uuid};
use urr_storage::{
    Db, Migration, PostgresOptions, Schema, ServiceRole, SqliteOptions, StorageError, Tx, migrate,
    params, provision,
};
use urr_test::figures::{BenchFigure, RatioTarget};
use urr_test::servers::{self, Server};

const SCHEMA: Schema = Schema {
    name: "bench",
    migrations: &[Migration {
        series: "service",
        version: 1,
        name: "bench",
        sql: "create table seats (
                  id bigint primary key, status text not null, version bigint not null
              );
              create table reservations (
                  id uuid primary key, user_id bigint not null, status text not null,
                  created_at timestamptz not null
              );
              create table reservation_seats (
                  reservation_id uuid not null, seat_id bigint not null, price bigint not null,
                  primary key (reservation_id, seat_id)
              );",
    }],
};

const SEATS: i64 = 100_000;
const CALLERS: usize = 64;
const CONNECTIONS: usize = 32;
/// Ours and the baseline take turns, so that a busy moment of the machine hits both.
const ROUNDS: u32 = 2;
const ROUND: Duration = Duration::from_secs(3);
const SQLITE_RATIO_MIN: f64 = 0.6;
const POSTGRES_RATIO_MIN: f64 = 0.8;

const READ_SEAT: &str = "select status, version from seats where id = $1";
const HOLD_SEAT: &str =
    "update seats set status = 'held', version = version + 1 where id = $1 and version = $2";
const INSERT_RESERVATION: &str =
    "insert into reservations (id, user_id, status, created_at) values ($1, $2, 'pending', $3)";
const INSERT_SEAT: &str =
    "insert into reservation_seats (reservation_id, seat_id, price) values ($1, $2, 99000)";
const INSERT_OUTBOX: &str = "insert into outbox (event_id, topic, key, body, created_at) \
                             values ($1, 'reservation-events', $2, $3, $4)";
const BODY: &str = r#"{"specversion":"1.0","type":"RESERVATION_CREATED","data":{"seats":1}}"#;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut passed = bench_sqlite(&runtime)?;
    if servers::available(Server::Postgres)? {
        passed &= bench_postgres(&runtime)?;
    }
    ensure!(passed, "a ratio is below its target");
    Ok(())
}

fn report(name: &str, ours: f64, baseline_name: &str, baseline: f64, target: f64) -> bool {
    let figure = BenchFigure {
        name,
        value: ours,
        unit: "transactions/s",
        baseline: baseline_name,
        baseline_value: baseline,
        target: RatioTarget::AtLeast(target),
    };
    figure.show()
}

fn reserve(tx: &mut Tx<'_>, seat_id: i64, id: Uuid, now: Timestamp) -> Result<(), StorageError> {
    let read =
        |row: &urr_storage::Row<'_>| Ok((row.get::<String>("status")?, row.get::<i64>("version")?));
    let (_status, version) = tx.query_one(READ_SEAT, params![seat_id], read)?;
    tx.execute(HOLD_SEAT, params![seat_id, version])?;
    tx.execute(INSERT_RESERVATION, params![id, seat_id, now])?;
    tx.execute(INSERT_SEAT, params![id, seat_id])?;
    tx.execute(INSERT_OUTBOX, params![id, id.to_string(), BODY, now])?;
    Ok(())
}

/// What was done in how much time, over all rounds.
#[derive(Default)]
struct Measured {
    count: usize,
    time: Duration,
    latencies: Vec<Duration>,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }

    fn print_latencies(&mut self) {
        self.latencies.sort_unstable();
        let at = |percent| self.latencies[(self.latencies.len() - 1) * percent / 100];
        let (p50, p99) = (at(50).as_secs_f64() * 1e3, at(99).as_secs_f64() * 1e3);
        println!("{CALLERS} callers: p50 {p50:.2} ms, p99 {p99:.2} ms");
    }
}

/// Callers that each wait for their answer before they reserve again.
async fn run_callers(db: &Db, measured: &mut Measured) {
    let ids = IdSource::from_system_randomness(Clock::System);
    let next_seat = Arc::new(AtomicI64::new(0));
    let started = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (db, ids, next_seat) = (db.clone(), ids.clone(), Arc::clone(&next_seat));
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while started.elapsed() < ROUND {
                    let seat_id = next_seat.fetch_add(1, Ordering::Relaxed) % SEATS + 1;
                    let (id, now) = (ids.next_id(), Clock::System.now());
                    let begun = Instant::now();
                    let done = db.write(move |tx| reserve(tx, seat_id, id, now)).await;
                    done.unwrap_or_else(|error: StorageError| panic!("{error}"));
                    latencies.push(begun.elapsed());
                }
                latencies
            })
        })
        .collect();
    for caller in callers {
        measured.latencies.extend(caller.await.expect("a caller does not panic"));
    }
    measured.count = measured.latencies.len();
    measured.time += started.elapsed();
}

fn bench_sqlite(runtime: &tokio::runtime::Runtime) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let (ours_path, bare_path) = (folder.path().join("ours.db"), folder.path().join("bare.db"));
    for path in [&ours_path, &bare_path] {
        migrate::migrate_sqlite(path, &SCHEMA, Timestamp::UNIX_EPOCH)?;
        rusqlite::Connection::open(path)?.execute_batch(FILL)?;
    }
    let options = SqliteOptions { queue_max: 4096, ..SqliteOptions::default() };
    let db = Db::open_sqlite(&ours_path, &options)?;
    let (mut ours, mut bare) = (Measured::default(), Measured::default());
    let mut group = 0;
    for _ in 0..ROUNDS {
        runtime.block_on(run_callers(&db, &mut ours));
        let stats = db.stats();
        group = usize::try_from(stats.committed / stats.groups.max(1))?.max(1);
        bare_rusqlite(&bare_path, group, &mut bare)?;
    }
    db.close();
    println!("average group: {group} transactions per commit");
    ours.print_latencies();
    let baseline = "bare rusqlite, same groups";
    Ok(report("SQLite through Db", ours.rate(), baseline, bare.rate(), SQLITE_RATIO_MIN))
}

const FILL: &str = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 100000) \
                    insert into seats (id, status, version) select i, 'free', 0 from n";

/// The same statements in a loop on one thread, committed in groups of the same size.
fn bare_rusqlite(path: &Path, group: usize, measured: &mut Measured) -> Result<()> {
    let connection = rusqlite::Connection::open(path)?;
    connection.execute_batch("pragma journal_mode = wal; pragma synchronous = full;")?;
    connection.execute_batch("pragma foreign_keys = on; pragma temp_store = memory;")?;
    let ids = IdSource::from_system_randomness(Clock::System);
    let sqlite = |sql: &str| urr_storage::dialect::statement_to_sqlite(sql);
    let mut read_seat = connection.prepare(&sqlite(READ_SEAT))?;
    let mut hold_seat = connection.prepare(&sqlite(HOLD_SEAT))?;
    let mut insert_reservation = connection.prepare(&sqlite(INSERT_RESERVATION))?;
    let mut insert_seat = connection.prepare(&sqlite(INSERT_SEAT))?;
    let mut insert_outbox = connection.prepare(&sqlite(INSERT_OUTBOX))?;
    let mut seat_id = 0;
    let started = Instant::now();
    while started.elapsed() < ROUND {
        connection.execute_batch("begin immediate")?;
        for _ in 0..group {
            seat_id = seat_id % SEATS + 1;
            let (id, now) = (ids.next_id(), Clock::System.now().as_microsecond());
            let (_status, version): (String, i64) =
                read_seat.query_row([seat_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            hold_seat.execute((seat_id, version))?;
            insert_reservation.execute((id.as_bytes(), seat_id, now))?;
            insert_seat.execute((id.as_bytes(), seat_id))?;
            insert_outbox.execute((id.as_bytes(), id.to_string(), BODY, now))?;
            measured.count += 1;
        }
        connection.execute_batch("commit")?;
    }
    measured.time += started.elapsed();
    Ok(())
}

fn bench_postgres(runtime: &tokio::runtime::Runtime) -> Result<bool> {
    let server = servers::shared_postgres()?;
    let admin_url = server.create_database("bench")?;
    let role = ServiceRole { name: "bench_svc_user".to_owned(), password: Secret::generate() };
    provision(&admin_url, &SCHEMA, &role, Timestamp::UNIX_EPOCH)?;
    let mut admin = postgres::Client::connect(&admin_url, postgres::NoTls)?;
    admin.batch_execute(&format!("set search_path to bench; {FILL}; analyze"))?;
    let (_, place) = admin_url.split_once('@').context("the URL names a user")?;
    let url = format!("postgres://{}:{}@{place}", role.name, role.password.expose());
    let mut options = PostgresOptions::new(&url, SCHEMA.name);
    options.connections = CONNECTIONS;
    let db = Db::open_postgres(&options)?;
    let (mut ours, mut baseline) = (Measured::default(), 0.0);
    for _ in 0..ROUNDS {
        runtime.block_on(run_callers(&db, &mut ours));
        baseline += pgbench(&url)? / f64::from(ROUNDS);
    }
    db.close();
    ours.print_latencies();
    let name = "pgbench, prepared, one each";
    Ok(report("PostgreSQL through Db", ours.rate(), name, baseline, POSTGRES_RATIO_MIN))
}

fn pgbench(url: &str) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("reserve.sql");
    // The program makes its ids itself; so does pgbench, without another round trip.
    let id = "lpad(to_hex(:id::bigint), 32, '0')::uuid";
    let reservation = INSERT_RESERVATION.replace("$1", id).replace("$2", ":seat");
    let outbox = INSERT_OUTBOX.replace("$1", id).replace("$2", "to_hex(:id::bigint)");
    let lines = [
        format!("\\set seat random(1, {SEATS})"),
        format!("\\set id random(1, {})", i64::MAX),
        "begin;".to_owned(),
        format!("{} \\gset", READ_SEAT.replace("$1", ":seat")),
        format!("{};", HOLD_SEAT.replace("$1", ":seat").replace("$2", ":version")),
        format!("{};", reservation.replace("$3", "now()")),
        format!("{};", INSERT_SEAT.replace("$1", id).replace("$2", ":seat")),
        format!("{};", outbox.replace("$3", &format!("'{BODY}'")).replace("$4", "now()")),
        "end;".to_owned(),
    ];
    std::fs::write(&script, lines.join("\n"))?;
    let output = Command::new("pgbench")
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
        .arg(format!("--client={CONNECTIONS}"))
        .arg(format!("--time={}", ROUND.as_secs()))
        .arg(format!("--file={}", script.display()))
        .env("PGOPTIONS", "-c search_path=bench")
        .arg(url)
        .output()
        .context("pgbench comes with PostgreSQL's client programs")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find(|line| line.starts_with("tps = ")).context("pgbench gives tps")?;
    line.split_whitespace().nth(2).context("a figure")?.parse().context("a number")
}
