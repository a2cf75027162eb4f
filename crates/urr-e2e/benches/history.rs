//! `urr audit` on PostgreSQL, with ten times as many past reservations: its memory stays, its time
//! grows with them and not faster.
//!
//! `cargo bench --bench history -- fill URL FIRST LAST SEATS` fills a migrated database with the
//! events FIRST to LAST of so many seats, for measuring other things by hand.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use urr::command::{SinceTime, audit_everything};
use urr::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};
use urr::role::ProcessRole;
use urr_kernel::Clock;
use urr_storage::{Db, PostgresOptions};
use urr_test::figures::{BenchFigure, RatioTarget};
use urr_test::sales_history::SalesHistory;
use urr_test::servers::PostgresServer;

const SEATS_PER_EVENT: u32 = 10_000;
const EVENTS_FEW: u32 = 10;
const EVENTS_MANY: u32 = 100;
const MEMORY_RATIO_MAX: f64 = 1.25;
const TIME_RATIO_MAX: f64 = 1.5;
const STATEMENT_TIMEOUT: Duration = Duration::from_mins(10);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = Runtime::new()?;
    if let ["fill", url, first, last, seats, ..] = arguments.as_slice() {
        let history = SalesHistory {
            first_event: first.parse()?,
            last_event: last.parse()?,
            seats_per_event: seats.parse()?,
        };
        return runtime.block_on(fill(url, history));
    }
    let (folder, server) = (tempfile::tempdir()?, PostgresServer::start()?);
    let config = configure(folder.path().join("data"), server.url());
    for role in ProcessRole::ALL {
        urr::migrate_storage(&config, role, Clock::System.now())?;
    }
    let few =
        SalesHistory { first_event: 0, last_event: EVENTS_FEW, seats_per_event: SEATS_PER_EVENT };
    let before = runtime.block_on(measure(&config, server.url(), few))?;
    let more = SalesHistory { first_event: EVENTS_FEW, last_event: EVENTS_MANY, ..few };
    let after = runtime.block_on(measure(&config, server.url(), more))?;
    let times = f64::from(EVENTS_MANY / EVENTS_FEW);
    let memory = BenchFigure {
        name: "memory of an audit of 1,000,000 reservations",
        value: after.peak_kib as f64 / 1024.0,
        unit: "MiB",
        baseline: "100,000",
        baseline_value: before.peak_kib as f64 / 1024.0,
        target: RatioTarget::AtMost(MEMORY_RATIO_MAX),
    };
    let time = BenchFigure {
        name: "time of an audit of 1,000,000 reservations, a tenth",
        value: after.took.as_secs_f64() / times,
        unit: "s",
        baseline: "100,000",
        baseline_value: before.took.as_secs_f64(),
        target: RatioTarget::AtMost(TIME_RATIO_MAX),
    };
    let is_met = [memory.show(), time.show()];
    ensure!(is_met == [true, true], "an audit does not grow as it may");
    Ok(())
}

struct Audited {
    took: Duration,
    peak_kib: u64,
}

/// Adds past sales, and audits everything.
async fn measure(config: &Config, url: &str, history: SalesHistory) -> Result<Audited> {
    let begun = Instant::now();
    fill(url, history).await?;
    println!("{} more reservations in {:?}", history.reservations(), begun.elapsed());
    // From now on the kernel counts the most memory anew.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let begun = Instant::now();
    let report = audit_everything(config, SinceTime::Ago(Duration::from_hours(24))).await?;
    let took = begun.elapsed();
    ensure!(report.is_clean(), "{}", report.to_text());
    println!("{}\naudited in {took:?}", report.to_text());
    Ok(Audited { took, peak_kib: memory_peak_kib()? })
}

fn memory_peak_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("a line")?;
    Ok(peak.split_whitespace().next().context("a number")?.parse()?)
}

/// Writes with the administrator's login, and lets PostgreSQL count what there is, as it does by
/// itself after a while.
async fn fill(url: &str, history: SalesHistory) -> Result<()> {
    let open = |role: ProcessRole| {
        let schema = role.schema().context("the role has tables")?;
        let options = PostgresOptions::new(url, schema.name);
        let options =
            PostgresOptions { connections: 2, statement_timeout: STATEMENT_TIMEOUT, ..options };
        Ok::<_, anyhow::Error>(Db::open_postgres(&options)?)
    };
    let tickets = open(ProcessRole::Ticket)?;
    let (payments, statistics) = (open(ProcessRole::Payment)?, open(ProcessRole::Stats)?);
    tokio::try_join!(
        history.fill_tickets(&tickets),
        history.fill_payments(&payments),
        history.fill_statistics(&statistics),
    )?;
    let url = url.to_owned();
    tokio::task::spawn_blocking(move || {
        [tickets, payments, statistics].iter().for_each(Db::close);
        let mut client = postgres::Client::connect(&url, postgres::NoTls)?;
        client.batch_execute("analyze")
    })
    .await??;
    Ok(())
}

fn configure(data_dir: PathBuf, database_url: &str) -> Config {
    let overrides =
        CommandLineOverrides { data_dir: Some(data_dir), ..CommandLineOverrides::default() };
    let args = LoadOptions { mode: LoadMode::Embedded, config_file: None, overrides };
    let environment = [("URR_DATABASE_URL", database_url)];
    let environment =
        environment.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    config::load(args, environment).unwrap_or_else(|errors| panic!("{errors}"))
}
