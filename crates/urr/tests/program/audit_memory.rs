//! `urr audit` reads its tables a page at a time: what it needs of memory does not grow with them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use urr_storage::{Db, Schema, SqliteOptions};
use urr_test::sales_history::{PRICE, SalesHistory};

use crate::process::{Installation, Process};

/// As many as a sale of a large hall, so that the caches of the databases are full.
const EVENTS_FEW: u32 = 10;
const EVENTS_MANY: u32 = 50;
const SEATS_PER_EVENT: u32 = 2_000;
/// For pages of the databases and the allocator. A hundred bytes for each reservation more would
/// exceed it.
const MORE_KIB_MAX: u64 = 6 * 1024;
/// Facts of ten reservations: themselves, 31 messages, 9 charges and a refund.
const FACTS_PER_TEN: u64 = 51;
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn an_audit_of_five_times_as_many_reservations_needs_no_more_memory() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("URR_DEMO_SEED", "false");
    installation.up(&[])?.stop("TERM")?.succeeded()?;
    let history =
        SalesHistory { first_event: 0, last_event: EVENTS_FEW, seats_per_event: SEATS_PER_EVENT };
    fill(&installation.path("data"), history)?;
    let few = audit_peak_kib(&installation, history.reservations())?;
    let later = SalesHistory { first_event: EVENTS_FEW, last_event: EVENTS_MANY, ..history };
    fill(&installation.path("data"), later)?;
    let many = audit_peak_kib(&installation, history.reservations() + later.reservations())?;
    ensure!(many < few + MORE_KIB_MAX, "{few} KiB, with five times as many rows {many} KiB");
    Ok(())
}

fn fill(folder: &Path, history: SalesHistory) -> Result<()> {
    let open = |schema: &Schema| {
        let path = folder.join(schema.name).with_extension("db");
        let options = SqliteOptions { statement_timeout: PATIENCE, ..SqliteOptions::default() };
        Db::open_sqlite(&path, &options)
    };
    let (tickets, payments) = (open(&urr_ticket::SCHEMA)?, open(&urr_payment::SCHEMA)?);
    let statistics = open(&urr_stats::SCHEMA)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        tokio::try_join!(
            history.fill_tickets(&tickets),
            history.fill_payments(&payments),
            history.fill_statistics(&statistics),
        )?;
        let databases = [tickets, payments, statistics];
        tokio::task::spawn_blocking(move || databases.iter().for_each(Db::close)).await?;
        Ok(())
    })
}

/// Audits a system in which everything agrees. Returns the most memory that the process had.
fn audit_peak_kib(installation: &Installation, reservations: u64) -> Result<u64> {
    let process = Process::start(installation.command(&["audit"]))?;
    let (outcome, peak) = process.await_end_and_peak(PATIENCE)?;
    let outcome = outcome.succeeded()?;
    let facts = format!("{} facts counted again", reservations / 10 * FACTS_PER_TEN);
    let (paid, kept) = (reservations / 10 * 9, reservations / 10 * 8 * PRICE.unsigned_abs());
    let books =
        format!("{paid} payments and {paid} paid reservations, {kept} won with the provider");
    for said in [facts, books] {
        ensure!(outcome.stdout.contains(&said), "{said}: {outcome:?}");
    }
    ensure!(peak > 0, "the audit ended before it was looked at");
    Ok(peak)
}
