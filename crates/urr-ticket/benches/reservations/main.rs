//! How many seats are held per second over HTTP, beside what the database alone can do, in the same
//! run.
//!
//! 256 clients with a connection each ask the ticket service on loopback as the gateway does, each
//! for a seat of its own and as someone new each time. Clients, service and database share all
//! cores. No relay runs, on neither side.
//!
//! The baseline on SQLite is a bare `rusqlite` loop that commits the same statements in groups of
//! the same size. On PostgreSQL it is pgbench: one transaction per reservation, prepared, 32
//! connections, and without the lock of the sale, which would make it wait for itself.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

mod baseline;
mod crowd;
mod service;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use urr_kernel::{Clock, Secret};
use urr_redis::{Redis, RedisTopology};
use urr_test::figures::{BenchFigure, RatioTarget};
use urr_test::servers::{self, Server};
use urr_ticket::SeatLocks;

use crowd::{Measured, SeatPreference};
use service::BenchService;

/// Ours and the baseline take turns, so that a busy moment of the machine hits both.
const ROUNDS: u32 = 2;
const ROUND: Duration = Duration::from_secs(3);
const CLIENTS: u32 = 256;
const SEATS: u32 = 50_000;
const SQLITE_RATIO_MIN: f64 = 0.5;
const POSTGRES_RATIO_MIN: f64 = 2.5;
const CREATION_MAX: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    let mut passed = bench_sqlite(&runtime)?;
    if servers::available(Server::Postgres)? {
        passed &= bench_postgres(&runtime, SeatLocks::memory(Clock::System), "locks in memory")?;
        if servers::available(Server::Redis)? {
            let place = RedisTopology::Single(Secret::new(servers::shared_redis()?.url()));
            let redis = runtime.block_on(Redis::connect(&place))?;
            passed &= bench_postgres(&runtime, SeatLocks::redis(redis), "locks in Redis")?;
        }
    }
    ensure!(passed, "a figure is below its target");
    Ok(())
}

fn bench_sqlite(runtime: &Runtime) -> Result<bool> {
    println!("SQLite");
    let folder = tempfile::tempdir()?;
    let locks = SeatLocks::memory(Clock::System);
    let service =
        runtime.block_on(BenchService::on_sqlite(&folder.path().join("ours.db"), locks))?;
    let mut bare = baseline::BareSqlite::open(&folder.path().join("bare.db"))?;
    let (mut ours, mut base) = (Measured::default(), Measured::default());
    let mut passed = true;
    warm_up(runtime, &service);
    for _ in 0..ROUNDS {
        let (event_id, took) = runtime.block_on(service.open_sale());
        passed &= took < CREATION_MAX;
        report_creation(took);
        let before = service.db.stats();
        let round = runtime.block_on(crowd::run(&service, event_id, SeatPreference::SeatOfOnesOwn));
        let commits = service.db.stats().groups - before.groups;
        let group = round.count / usize::try_from(commits.max(1))?;
        println!("  {group} reservations per commit");
        ours.add(round);
        bare.run(group.max(1), &mut base)?;
    }
    ours.print("SQLite");
    let bare = ("bare rusqlite, same groups", base.rate());
    passed &= report("reservations, SQLite", ours.rate(), bare, SQLITE_RATIO_MIN);
    bench_refusals(runtime, &service);
    service.close();
    Ok(passed)
}

fn bench_postgres(runtime: &Runtime, locks: SeatLocks, name: &str) -> Result<bool> {
    println!("PostgreSQL, {name}");
    let service = runtime.block_on(BenchService::on_postgres(locks))?;
    let (mut ours, mut base) = (Measured::default(), 0.0);
    let mut passed = true;
    warm_up(runtime, &service);
    for _ in 0..ROUNDS {
        let (event_id, took) = runtime.block_on(service.open_sale());
        passed &= took < CREATION_MAX;
        report_creation(took);
        let before = service.db.stats();
        let round = runtime.block_on(crowd::run(&service, event_id, SeatPreference::SeatOfOnesOwn));
        let commits = service.db.stats().groups - before.groups;
        println!("  {} reservations per commit", round.count / usize::try_from(commits.max(1))?);
        ours.add(round);
        base += baseline::pgbench(&service)? / f64::from(ROUNDS);
    }
    ours.print("PostgreSQL");
    let (bare, name) = (("pgbench, one transaction each", base), format!("reservations, {name}"));
    passed &= report(&name, ours.rate(), bare, POSTGRES_RATIO_MIN);
    bench_refusals(runtime, &service);
    service.close();
    Ok(passed)
}

/// A round that does not count: memory is touched for the first time, connections are made.
fn warm_up(runtime: &Runtime, service: &BenchService) {
    let (event_id, _) = runtime.block_on(service.open_sale());
    runtime.block_on(crowd::run(service, event_id, SeatPreference::SeatOfOnesOwn));
}

fn report_creation(took: Duration) {
    println!("  an event of {SEATS} seats was made in {:.2} s", took.as_secs_f64());
}

fn report(name: &str, ours: f64, baseline: (&str, f64), target: f64) -> bool {
    let figure = BenchFigure {
        name,
        value: ours,
        unit: "reservations/s",
        baseline: baseline.0,
        baseline_value: baseline.1,
        target: RatioTarget::AtLeast(target),
    };
    figure.show()
}

/// Everybody wants the one seat that somebody has.
fn bench_refusals(runtime: &Runtime, service: &BenchService) {
    let (event_id, _) = runtime.block_on(service.open_sale());
    for (preference, name) in [
        (SeatPreference::HotSeat { with_key: false }, "refusals, one hot seat"),
        (SeatPreference::HotSeat { with_key: true }, "refusals, each with its own key"),
    ] {
        let mut refused = runtime.block_on(crowd::run(service, event_id, preference));
        println!("{name:<34} {:>9.0} refusals/s", refused.rate());
        refused.print_latencies();
    }
    println!();
}

/// How long something took.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    (work.await, begun.elapsed())
}
