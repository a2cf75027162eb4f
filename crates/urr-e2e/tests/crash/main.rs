//! kill -9 of a process that writes from 64 tasks, again and again on the same database.
//!
//! What was acknowledged is there, nothing is there by half, and the bus gets exactly the events
//! that were committed. The controls acknowledge before they commit, and are caught.

mod audit;
mod fixture;
mod worker_process;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use urr_bus::BusMessage;
use urr_kernel::{CallContext, Clock, DomainEvent, EventData};
use urr_storage::{StorageError, params};
use urr_test::servers::{self, Server};

use crate::audit::Findings;
use crate::fixture::{AckTiming, CrashEngine, CrashFixture, SeatSold, event_id};
use crate::worker_process::WorkerTask;

const ROUNDS: i64 = 20;
const SEED: u64 = 20_260_719;
/// A number tells its round, and no round uses the numbers of another.
const NUMBERS_PER_ROUND: i64 = 1_000_000;

#[test]
fn a_crash_on_sqlite_loses_nothing_that_was_acknowledged() -> Result<()> {
    survive(CrashEngine::Sqlite)
}

#[test]
fn a_crash_on_postgres_loses_nothing_that_was_acknowledged() -> Result<()> {
    survive(CrashEngine::Postgres)
}

#[test]
fn a_crash_on_sqlite_shows_answers_that_came_before_their_commit() -> Result<()> {
    be_caught(CrashEngine::Sqlite)
}

#[test]
fn a_crash_on_postgres_shows_answers_that_came_before_their_commit() -> Result<()> {
    be_caught(CrashEngine::Postgres)
}

#[tokio::test]
async fn the_audit_sees_every_kind_of_damage() -> Result<()> {
    let fixture = CrashFixture::create(CrashEngine::Sqlite, AckTiming::AfterCommit)?;
    let (db, bus) = (fixture.site.open_db()?, fixture.site.open_bus().await?);
    db.write(|tx| {
        (1..=3).try_for_each(|number| worker_process::seat_sell(tx, number))?;
        tx.execute("delete from tickets where number = $1", params![2])?;
        let sql = "update outbox set published_at = created_at where event_id = $1";
        tx.execute(sql, params![event_id(3)])?;
        Ok::<_, StorageError>(())
    })
    .await?;
    let (context, stray) = (CallContext::root(event_id(4)), SeatSold { number: 4 });
    let event = DomainEvent::new(event_id(4), "urr/test", Clock::System.now(), &context, &stray);
    bus.publish_one(BusMessage::new(SeatSold::TOPIC, "", event.to_bytes())).await?;

    let findings = audit::audit(&fixture, &BTreeSet::from([1, 2, 5])).await?;
    let expected = Findings {
        lost: BTreeSet::from([event_id(5)]),
        halved: BTreeSet::from([event_id(2)]),
        unannounced: BTreeSet::from([event_id(3)]),
        invented: BTreeSet::from([event_id(4)]),
    };
    assert_eq!(findings, expected);
    Ok(())
}

/// What the tests start and kill. Without a task it has nothing to do.
#[test]
fn the_process_that_is_killed() -> Result<()> {
    WorkerTask::received()?.map_or(Ok(()), worker_process::obey)
}

fn survive(engine: CrashEngine) -> Result<()> {
    crash_again_and_again(engine, AckTiming::AfterCommit, |findings| {
        ensure!(*findings == Findings::default(), "{findings:?}");
        Ok(false)
    })?;
    Ok(())
}

/// The control: the same crashes must show a loss, and nothing else.
fn be_caught(engine: CrashEngine) -> Result<()> {
    let caught = crash_again_and_again(engine, AckTiming::BeforeCommit, |findings| {
        let only_lost = Findings { lost: findings.lost.clone(), ..Findings::default() };
        ensure!(*findings == only_lost, "more than a loss: {findings:?}");
        Ok(!findings.lost.is_empty())
    })?;
    ensure!(caught, "after {ROUNDS} crashes everything that was answered too early is there");
    Ok(())
}

/// Runs a process until it is killed and audits what it left, again and again on the same data, until
/// `judge` returns true. Returns whether it did.
fn crash_again_and_again(
    engine: CrashEngine,
    ack: AckTiming,
    judge: impl Fn(&Findings) -> Result<bool>,
) -> Result<bool> {
    if engine == CrashEngine::Postgres && !servers::available(Server::Postgres)? {
        return Ok(true);
    }
    let fixture = CrashFixture::create(engine, ack)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut acknowledged = BTreeSet::new();
    for (round, kill_after) in (0..ROUNDS).zip(kill_points()) {
        let case = format!("seed {SEED}, round {round}, killed after {kill_after} answers");
        let task = WorkerTask::new(&fixture, round * NUMBERS_PER_ROUND);
        acknowledged.extend(worker_process::run_until_killed(&task, kill_after)?);
        fixture.await_end_of_sessions()?;
        let findings = runtime.block_on(audit::audit(&fixture, &acknowledged));
        if judge(&findings.context(case.clone())?).context(case)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// After how many answers each round ends: mostly under full load, at times in the very beginning.
fn kill_points() -> impl Iterator<Item = usize> {
    let mut random = StdRng::seed_from_u64(SEED);
    (0..).map(move |round| match round % 5 {
        4 => random.random_range(0..20),
        _ => random.random_range(200..1_000),
    })
}
