//! The process that is killed: this test binary once more, with a task in its environment.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use urr_bus::relay;
use urr_kernel::{CallContext, Clock};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{Db, StorageError, Tx, params};

use crate::fixture::{self, CrashFixture, CrashSite, SeatSold, event_id};

const TASKS: usize = 64;
const VARIABLE: &str = "URR_TEST_CRASH_ORDERS";
const READY: &str = "ready";
/// SQLite writes all pages of a commit before it can lose them no more: many pages make the time in
/// which an answer could be ahead of its commit long enough to be hit.
const PICTURE_BYTES: usize = 16 * 1024;
/// The process ends by itself if it is not killed.
const LIFETIME_MAX: Duration = Duration::from_secs(60);

/// What the process shall do.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerTask {
    site: CrashSite,
    first_number: i64,
}

impl WorkerTask {
    pub fn new(fixture: &CrashFixture, first_number: i64) -> WorkerTask {
        WorkerTask { site: fixture.site.clone(), first_number }
    }

    /// The task of this process, if it was started to be killed.
    #[expect(clippy::disallowed_methods, reason = "a test's task, not configuration")]
    pub fn received() -> Result<Option<WorkerTask>> {
        let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
        Ok(Some(serde_json::from_str(&text)?))
    }
}

/// Starts the process, kills it after `kill_after` acknowledged numbers, and returns all
/// that it acknowledged.
pub fn run_until_killed(task: &WorkerTask, kill_after: usize) -> Result<Vec<i64>> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(["--exact", "the_process_that_is_killed", "--nocapture"])
        .env(VARIABLE, serde_json::to_string(task)?)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = process.stdout.take().context("its output is piped")?;
    let (mut numbers, mut is_ready, mut is_killed) = (Vec::new(), false, false);
    // After the kill the pipe still holds what was acknowledged before it.
    for line in BufReader::new(output).lines() {
        let line = line?;
        is_ready |= line == READY;
        if let Some(number) = line.strip_prefix("ack ") {
            numbers.push(number.parse()?);
        }
        if is_ready && !is_killed && numbers.len() >= kill_after {
            process.kill()?;
            is_killed = true;
        }
    }
    let status = process.wait()?;
    ensure!(is_killed, "it ended by itself after {} numbers: {status}", numbers.len());
    Ok(numbers)
}

/// Writes and acknowledges until it is killed. Returning is a failure.
pub fn obey(task: WorkerTask) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let worked = tokio::time::timeout(LIFETIME_MAX, work(task)).await;
        worked.context("this process was not killed")?
    })
}

async fn work(task: WorkerTask) -> Result<()> {
    let (db, bus) = (task.site.open_db()?, task.site.open_bus().await?);
    tokio::spawn(relay::run(fixture::relay(&db, &bus), CancellationToken::new()));
    say("")?;
    say(READY)?;
    let next = Arc::new(AtomicI64::new(task.first_number));
    let mut sellers = JoinSet::new();
    for _ in 0..TASKS {
        sellers.spawn(sell_seats(db.clone(), Arc::clone(&next)));
    }
    match sellers.join_next().await {
        Some(ended) => ended?,
        None => bail!("there are sellers"),
    }
}

async fn sell_seats(db: Db, next: Arc<AtomicI64>) -> Result<()> {
    loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        db.write(move |tx| seat_sell(tx, number)).await?;
        say(&format!("ack {number}"))?;
    }
}

/// Two rows and an event, all of one number.
pub fn seat_sell(tx: &mut Tx<'_>, number: i64) -> Result<(), StorageError> {
    let stamp = EventMetadata {
        event_id: event_id(number),
        source: "urr/test",
        time: Clock::System.now(),
        context: CallContext::root(event_id(number)),
    };
    tx.execute("insert into seats (number) values ($1)", params![number])?;
    outbox::append(tx, &stamp, &SeatSold { number })?;
    tx.execute(
        "insert into tickets (number, picture) values ($1, $2)",
        params![number, "#".repeat(PICTURE_BYTES)],
    )?;
    Ok(())
}

/// One line in one system call, which a kill does not tear.
fn say(line: &str) -> Result<()> {
    std::io::stdout().write_all(format!("{line}\n").as_bytes())?;
    Ok(())
}
