//! `urr stats`: rebuilds the statistics from the events.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Subcommand;
use urr_bus::Bus;
use urr_kernel::Clock;
use urr_stats::{RebuildError, RebuildReport, RebuildUpdate, StatsParts, StatsService};
use urr_storage::Db;

use super::{CommandNotRun, block_on, print_line};
use crate::config::Config;
use crate::engines;
use crate::role::ProcessRole;

/// How often the progress is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Subcommand)]
pub enum StatsCommand {
    /// Count everything again from the events that the bus has and those that were counted before
    ///
    /// URR may go on running meanwhile, and selling is not touched; the pages show less than there
    /// is until it has ended. If it is broken off, run it again. A second run changes nothing. Exit
    /// code 1: it was begun and not ended. 2: it could not begin.
    Rebuild,
}

pub fn run(config: &Config, command: StatsCommand) -> Result<()> {
    let StatsCommand::Rebuild = command;
    block_on(async {
        let (db, bus) = open(config).await.map_err(CommandNotRun::wrap)?;
        let stats = StatsService::new(StatsParts { db: db.clone(), clock: Clock::System });
        let rebuilt = rebuild(&stats, &bus).await;
        bus.close().await;
        tokio::task::spawn_blocking(move || db.close()).await?;
        rebuilt
    })
}

/// A running URR is no obstacle: rebuilds and consumers exclude each other in the database.
async fn open(config: &Config) -> Result<(Db, Bus)> {
    ensure!(
        engines::has_bus(config) && engines::has_tables(config, ProcessRole::Stats),
        "there are no statistics in {}; has `urr up` run there?",
        config.data.dir.display()
    );
    let db = engines::open_storage(config, ProcessRole::Stats, &Clock::System).await?;
    Ok((db, engines::connect_bus(config, &Clock::System)?))
}

async fn rebuild(stats: &StatsService, bus: &Bus) -> Result<()> {
    let begun = Instant::now();
    let mut printed_at = begun;
    let mut printed = Ok(());
    let rebuilt = stats.rebuild_with_updates(bus, |step| {
        let is_end = matches!(step, RebuildUpdate::TopicRead { .. });
        if is_end || printed_at.elapsed() >= PROGRESS_INTERVAL {
            printed_at = Instant::now();
            let line = format!("{}, {}", describe(&step), seconds(begun));
            printed = std::mem::replace(&mut printed, Ok(())).and_then(|()| print_line(&line));
        }
    });
    let rebuilt = rebuilt.await.map_err(|error| match error {
        // The topics are read first: nothing has been deleted yet.
        RebuildError::Bus(_) => CommandNotRun::wrap(error.into()),
        RebuildError::Storage(_) => {
            anyhow::Error::new(error).context("not everything is counted; run it again")
        }
        RebuildError::Overtaken => error.into(),
    })?;
    printed?;
    let RebuildReport { messages, unreadable, facts } = rebuilt;
    print_line(&format!(
        "The statistics are counted again: {messages} events ({unreadable} of them unreadable), \
         {facts} facts, {}.",
        seconds(begun)
    ))
}

fn describe(step: &RebuildUpdate<'_>) -> String {
    match step {
        RebuildUpdate::Reading { topic, messages } => format!("{topic}: {messages} events so far"),
        RebuildUpdate::TopicRead { topic, messages } => format!("{topic}: {messages} events"),
        RebuildUpdate::Counting { facts } => format!("counting: {facts} facts so far"),
    }
}

fn seconds(since: Instant) -> String {
    let elapsed = since.elapsed();
    format!("{}.{} s", elapsed.as_secs(), elapsed.subsec_millis() / 100)
}
