//! kill -9 of a process that writes from 64 tasks, again and again on the same database.
//!
//! What was acknowledged is there, nothing is there by half, and the bus gets exactly the events
//! that were committed. The controls acknowledge before they commit, and are caught.

mod audit;
mod process;
mod sale;
mod world;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use urr_test::servers::{self, Server};

use crate::audit::{Findings, Ledger};
use crate::process::{Orders, Promise};
use crate::world::{Form, World};

const ROUNDS: i64 = 20;
/// Rounds take their numbers from ranges of their own, so that a number tells its round.
const NUMBERS_PER_ROUND: i64 = 1_000_000;
const SEED: u64 = 20_260_719;

#[test]
fn on_sqlite_a_crash_loses_nothing_that_was_acknowledged() -> Result<()> {
    survive(Form::Sqlite)
}

#[test]
fn on_postgres_a_crash_loses_nothing_that_was_acknowledged() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    survive(Form::Postgres)
}

#[test]
fn on_sqlite_an_answer_before_the_commit_is_caught() -> Result<()> {
    catch(Form::Sqlite)
}

#[test]
fn on_postgres_an_answer_before_the_commit_is_caught() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    catch(Form::Postgres)
}

/// Not a test: what the other tests start and kill. Without orders there is nothing to do.
#[test]
fn the_process_that_is_killed() -> Result<()> {
    process::Orders::received()?.map_or(Ok(()), process::obey)
}

fn survive(form: Form) -> Result<()> {
    let world = World::create(form, Promise::AfterCommit)?;
    let mut ledger = Ledger::default();
    for (round, kill_after) in (1..).zip(kill_points()) {
        let told = format!("{form:?}, seed {SEED}, round {round}, killed after {kill_after} acks");
        let findings = crash(&world, &mut ledger, round, kill_after).context(told.clone())?;
        ensure!(findings == Findings::default(), "{told}: {findings:?}");
    }
    let committed = ledger.committed_count();
    ensure!(committed >= ledger.acknowledged.len(), "{committed} rows for {ledger:?}");
    Ok(())
}

/// The control: the same rounds must show a loss, and only that.
fn catch(form: Form) -> Result<()> {
    let world = World::create(form, Promise::BeforeCommit)?;
    let mut ledger = Ledger::default();
    for (round, kill_after) in (1..).zip(kill_points()) {
        let told = format!("{form:?}, seed {SEED}, round {round}, killed after {kill_after} acks");
        let findings = crash(&world, &mut ledger, round, kill_after).context(told.clone())?;
        if !findings.lost.is_empty() {
            let only_lost = Findings { lost: findings.lost.clone(), ..Findings::default() };
            ensure!(findings == only_lost, "{told}: more than a loss: {findings:?}");
            return Ok(());
        }
    }
    anyhow::bail!("{ROUNDS} crashes, and no write that was acknowledged too early is missing")
}
