//! Complete purchases per second through the gateway, beside what the databases alone can do,
//! in the same run.
//!
//! The whole system runs in one process: embedded, or on PostgreSQL, Redis and Kafka. Each buyer
//! has a connection and buys again as soon as the last purchase is done, each time as a new user
//! who enters the waiting room, reserves a seat, pays with the sandbox and gets the ticket. All
//! seats belong to one event, so its changes are serial. Buyers, services and servers share all
//! cores; relays, consumers and statistics run as usual.
//!
//! The baseline commits as often as a round did, as many transactions of the same size, and does
//! nothing else: a bare `rusqlite` loop per service on SQLite, pgbench on PostgreSQL. The commits
//! of the embedded bus and of the waiting rooms' journal come on top on our side only.
//!
//! Beside it is the least work: the rows of a purchase in three transactions (`least_work.rs`).
//!
//! A benchmark that sells wrongly fails: at the end every purchase has one seat, one ticket and one
//! charge, the books are proved, and the statistics have counted them all.
//!
//! Without an argument it runs both forms; `embedded` or `distributed` picks one.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

mod baseline;
mod boards;
mod buyers;
mod growth;
mod least_work;
mod processes;
mod system;
mod tables;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use urr_kernel::Clock;
use urr_test::figures::{BenchFigure, RatioTarget};
use urr_test::servers::{self, Server};

use baseline::BareSqlite;
use buyers::{PurchaseRun, percentiles};
use processes::ProcessUses;
use system::{BenchDeployment, BenchSystem, CommitCounts};

const BUYERS: [usize; 2] = [16, 64];
/// Ours and the baseline take turns, so that a busy moment of the machine hits both.
const ROUNDS: u32 = 2;
const ROUND: Duration = Duration::from_secs(4);
/// A ratio below these is a step backwards, not a slow machine. They are low because purchases share
/// commits, so that the baselines have little to do beside HTTP, JSON, the bus and the waiting room.
const SQLITE_RATIO_MIN: f64 = 0.1;
const POSTGRES_RATIO_MIN: f64 = 0.1;
/// The same for the least work.
const SQLITE_LEAST_WORK_MIN: f64 = 0.02;
const POSTGRES_LEAST_WORK_MIN: f64 = 0.04;

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|it| it == name);
    let runtime = Runtime::new()?;
    let mut passed = true;
    if is_wanted("embedded") {
        passed &= bench(&runtime, BenchDeployment::Embedded)?;
    }
    let servers = [Server::Postgres, Server::Redis, Server::Kafka];
    let are_there = servers.into_iter().map(servers::available).collect::<Result<Vec<bool>>>()?;
    if is_wanted("distributed") && are_there.iter().all(|is_there| *is_there) {
        passed &= bench(&runtime, BenchDeployment::Distributed)?;
    }
    ensure!(passed, "a ratio is below its target");
    Ok(())
}

fn bench(runtime: &Runtime, form: BenchDeployment) -> Result<bool> {
    println!("{}", form.name());
    let (system, mut bare_sqlite) = (BenchSystem::open(runtime, form)?, BareSqlite::open()?);
    // A round that does not count: connections are made, memory is touched for the first time.
    let mut sold = runtime.block_on(buyers::run(&system, BUYERS[0])).purchases.len();
    runtime.block_on(system.settled())?;
    let mut repeat = |effort: &CommitCounts, buyers: usize| match &system.postgres_url {
        None => bare_sqlite.repeat(effort),
        Some(url) => baseline::pgbench(url, effort, buyers),
    };
    repeat(&system.effort(), BUYERS[0])?;
    let mut passed = true;
    for buyers in BUYERS {
        let since = Clock::System.now();
        let (mut bought, mut effort, mut bare) = (PurchaseRun::default(), CommitCounts::new(), 0.0);
        let mut used = ProcessUses::new();
        for _ in 0..ROUNDS {
            let (before, used_before) = (system.effort(), processes::read()?);
            let round = runtime.block_on(buyers::run(&system, buyers));
            let caught_up = runtime.block_on(system.settled())?;
            processes::add_difference(&mut used, &processes::read()?, &used_before);
            let (count, spent) =
                (round.purchases.len(), system::difference(&system.effort(), &before));
            let time = repeat(&spent, buyers)?;
            let rate = count as f64 / time.as_secs_f64();
            println!(
                "  {:.0}/s; all was told {:.2} s later; bare {rate:.0}/s",
                round.rate(),
                caught_up.as_secs_f64()
            );
            bare += rate / f64::from(ROUNDS);
            system::add(&mut effort, &spent);
            bought.add(round);
        }
        sold += bought.purchases.len();
        print_purchases(buyers, &bought);
        print_effort(&effort, bought.purchases.len());
        print_uses(&used, bought.purchases.len());
        let delays = runtime.block_on(system.tables.publishing_delays(since))?;
        print_spread("change until it is published", &delays);
        let least = match &system.postgres_url {
            None => least_work::sqlite(buyers)?,
            Some(url) => least_work::postgres(url, buyers)?,
        };
        passed &= report_least_work(form, bought.rate(), least);
        passed &= report(form, bought.rate(), bare);
    }
    if form == BenchDeployment::Embedded {
        let (count, is_met) = boards::bench(runtime, &system)?;
        sold += count;
        passed &= is_met;
    }
    runtime.block_on(system.check(sold))?;
    runtime.block_on(system.growth.print(sold))?;
    println!("{sold} purchases: a seat, a ticket and a charge each; the books are proved\n");
    runtime.block_on(system.close());
    Ok(passed)
}

fn print_purchases(buyers: usize, bought: &PurchaseRun) {
    let name = format!("{buyers} buyers");
    println!("{name:<34} {:>9.0} purchases/s", bought.rate());
    for (name, step) in [
        ("being let in", (|it| it.enter) as fn(&buyers::Purchase) -> Duration),
        ("reserving", |it| it.reserve),
        ("paying", |it| it.pay),
        ("the purchase", |it| it.enter + it.reserve + it.pay),
    ] {
        print_spread(name, &bought.purchases.iter().map(step).collect::<Vec<Duration>>());
    }
    let refusals: u32 = bought.purchases.iter().map(|purchase| purchase.refusals).sum();
    if refusals > 0 {
        println!("  sent away for a moment, because of too much work: {refusals} times");
    }
}

fn print_spread(name: &str, times: &[Duration]) {
    let [p50, p99] = percentiles(times).map(|time| time.as_secs_f64() * 1e3);
    println!("  {name:<32} {p50:>9.1} ms p50 {p99:>9.1} ms p99");
}

/// What one purchase costs, until everybody has heard of it.
fn print_effort(effort: &BTreeMap<String, system::CommitCount>, purchases: usize) {
    let per_purchase = |count: u64| count as f64 / purchases as f64;
    let (mut all, mut parts) = (system::CommitCount::default(), Vec::new());
    for (service, work) in effort {
        all = all.plus(*work);
        let (each, of) = (per_purchase(work.commits), per_purchase(work.transactions));
        if of >= 0.05 {
            parts.push(format!("{service} {each:.1} ({of:.1})"));
        }
    }
    let (commits, transactions) = (per_purchase(all.commits), per_purchase(all.transactions));
    let (statements, trips) = (per_purchase(all.statements), per_purchase(all.round_trips));
    println!(
        "  a purchase is {commits:.1} commits of {transactions:.1} transactions: {}",
        parts.join(", ")
    );
    println!("  with {statements:.1} statements, and {trips:.1} waits for PostgreSQL");
}

fn print_uses(used: &ProcessUses, purchases: usize) {
    for (name, used) in used {
        let milliseconds = used.processor.as_secs_f64() * 1e3 / purchases as f64;
        let calls = used.write_calls as f64 / purchases as f64;
        let kilobytes = used.written_bytes as f64 / 1e3 / purchases as f64;
        if milliseconds >= 0.005 {
            println!(
                "  {name:<25} {milliseconds:>6.2} ms of a processor, {calls:>6.1} writes \
                 of {kilobytes:.1} kB"
            );
        }
    }
}

fn report_least_work(form: BenchDeployment, ours: f64, least: f64) -> bool {
    let target = match form {
        BenchDeployment::Embedded => SQLITE_LEAST_WORK_MIN,
        BenchDeployment::Distributed => POSTGRES_LEAST_WORK_MIN,
    };
    show(form, ours, ("the least work", least), target)
}

fn report(form: BenchDeployment, ours: f64, bare: f64) -> bool {
    let (name, target) = match form {
        BenchDeployment::Embedded => ("bare rusqlite, same commits", SQLITE_RATIO_MIN),
        BenchDeployment::Distributed => ("pgbench, same commits", POSTGRES_RATIO_MIN),
    };
    show(form, ours, (name, bare), target)
}

fn show(form: BenchDeployment, ours: f64, baseline: (&str, f64), target: f64) -> bool {
    let figure = BenchFigure {
        name: &format!("purchases, {}", form.name()),
        value: ours,
        unit: "purchases/s",
        baseline: baseline.0,
        baseline_value: baseline.1,
        target: RatioTarget::AtLeast(target),
    };
    figure.show()
}
