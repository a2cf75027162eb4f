//! kill -9 of a process in which a hundred thousand wait, while others come, go and are let in;
//! again and again on the same journal.
//!
//! Every confirmed position exists afterwards, in order, and nobody has two. The control tells
//! people of their place before it is kept, and is caught.

mod audit;
mod process;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::audit::{Acknowledged, Findings};
use self::process::{Answer, Orders};

const ROUNDS: u64 = 5;
const SEED: u64 = 20_260_719;
const WAITING: u64 = 100_000;
/// A person's number tells its round, and no round uses the numbers of another.
const PEOPLE_PER_ROUND: u64 = 10_000_000;

#[test]
fn a_crash_costs_nobody_a_place_they_were_told_of() -> Result<()> {
    crash_again_and_again(Answer::WhenKept, WAITING, |findings| {
        ensure!(*findings == Findings::default(), "{findings:?}");
        Ok(false)
    })?;
    Ok(())
}

/// The control: the same crashes must show a loss, and nothing else.
#[test]
fn a_crash_shows_places_that_were_told_too_early() -> Result<()> {
    let is_caught = crash_again_and_again(Answer::TooEarly, 100, |findings| {
        let only_lost = Findings { lost: findings.lost.clone(), ..Findings::default() };
        ensure!(*findings == only_lost, "more than a loss: {findings:?}");
        Ok(!findings.lost.is_empty())
    })?;
    ensure!(is_caught, "after {ROUNDS} crashes every place that was told too early is there");
    Ok(())
}

/// What the tests start and kill. Without orders it has nothing to do.
#[test]
fn the_process_that_is_killed() -> Result<()> {
    Orders::received()?.map_or(Ok(()), process::obey)
}

/// Lets a process work until it is killed, looks at what it left, and again on the same journal;
/// until `judge` has seen enough. Says whether it had.
fn crash_again_and_again(
    answer: Answer,
    waiting: u64,
    judge: impl Fn(&Findings) -> Result<bool>,
) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("queue_room.db");
    let runtime = tokio::runtime::Runtime::new()?;
    let mut acknowledged = Acknowledged::default();
    runtime.block_on(process::fill(&file, waiting, &mut acknowledged))?;
    let mut random = StdRng::seed_from_u64(SEED);
    for round in 1..=ROUNDS {
        let kill_after = random.random_range(0..2_000);
        let case = format!("seed {SEED}, round {round}, killed after {kill_after} lines");
        let orders = Orders::new(&file, answer, round * PEOPLE_PER_ROUND);
        process::run_until_killed(&orders, kill_after, &mut acknowledged).context(case.clone())?;
        let findings = runtime.block_on(look_again(&file, &acknowledged)).context(case.clone())?;
        if judge(&findings).context(case)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Opens the journal as the next process would, and compares.
async fn look_again(file: &Path, acknowledged: &Acknowledged) -> Result<Findings> {
    let (db, rooms) = process::open(file).await?;
    let found = audit::poll(&rooms, acknowledged).await?;
    process::close(db, rooms).await?;
    Ok(audit::compare(acknowledged, &found))
}
