//! Runs a batch of closures in one transaction.
//!
//! Most closures either succeed or refuse before they write, so a batch first runs without
//! savepoints. If a closure fails after it has written, the batch is undone and run again with a
//! savepoint for each, so that only that closure is undone. So is a batch whose set has failed.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use tracing::warn;

use super::{
    ATTEMPTS_MAX, ATTEMPTS_WITHOUT_CONNECTION_MAX, PostgresConnection, WorkerConnection,
    count_round_trips, run_job,
};
use crate::batches::Batch;
use crate::engine::{Access, EngineShared};
use crate::job::{Job, SetRun, TxDecision};
use crate::tx::TxConnection;
use crate::{DbResult, StorageError, Tx};

/// Runs a batch, and those that follow it if they cannot be queued.
pub(super) fn run_batches(
    worker: &mut WorkerConnection,
    access: Access,
    first: Batch,
    shared: &EngineShared,
) {
    let mut next = Some(first);
    while let Some(mut batch) = next {
        run_members(worker, access, batch.take_members(), shared);
        next = batch.follow();
    }
}

/// Runs closures until they are decided, and answers their callers.
fn run_members(
    worker: &mut WorkerConnection,
    access: Access,
    mut members: Vec<Box<dyn Job>>,
    shared: &EngineShared,
) {
    if members.len() == 1 || shared.dangerous_acknowledge_before_commit {
        return run_apart(worker, access, members, shared);
    }
    // They came at the same moment, so that any order is right: those of one kind form larger sets.
    members.sort_by_key(|member| member.kind());
    let (mut attempt, mut is_careful) = (0, false);
    loop {
        let tried = match worker.connection() {
            Ok(connection) => {
                let tried = try_members(connection, access, &mut members, is_careful, shared);
                count_round_trips(connection, shared);
                tried
            }
            Err(error) => return finish(members, &Err(error)),
        };
        match tried {
            Ok(tally) => {
                if access == Access::Write {
                    shared.count_group(tally.committed, tally.rolled_back);
                }
                finish(members, &Ok(()));
                if tally.has_outbox_rows {
                    shared.outbox_signal.notify_one();
                }
                return;
            }
            Err(BatchFailure::Member) => {
                shared.count(|stats| stats.groups_lost += 1);
                is_careful = true;
            }
            Err(BatchFailure::Final(error)) => {
                let lost = u64::try_from(members.len()).unwrap_or(u64::MAX);
                shared.count(|stats| stats.rolled_back += lost);
                return finish(members, &Err(error));
            }
            Err(BatchFailure::Again(error)) => {
                attempt += 1;
                shared.count(|stats| stats.retries += 1);
                if matches!(error, StorageError::Unavailable(_)) {
                    if attempt >= ATTEMPTS_WITHOUT_CONNECTION_MAX {
                        return finish(members, &Err(error));
                    }
                    warn!(%error, "lost the connection to PostgreSQL before a commit; trying again");
                    worker.connection = None;
                } else if attempt >= ATTEMPTS_MAX {
                    return run_apart(worker, access, members, shared);
                }
                // The other side of a collision, or the server, needs a moment.
                thread::sleep(Duration::from_millis(u64::from(attempt) * 2));
            }
        }
    }
}

/// Each closure in a transaction of its own.
fn run_apart(
    worker: &mut WorkerConnection,
    access: Access,
    members: Vec<Box<dyn Job>>,
    shared: &EngineShared,
) {
    for member in members {
        run_job(worker, access, member, shared);
    }
}

fn finish(members: Vec<Box<dyn Job>>, outcome: &DbResult<()>) {
    for member in members {
        member.finish(outcome.clone());
    }
}

/// What a batch has done.
#[derive(Default)]
struct BatchTally {
    committed: u64,
    rolled_back: u64,
    has_outbox_rows: bool,
}

/// Why a batch was not committed.
enum BatchFailure {
    /// A member failed after it had written, or one that cannot be told failed.
    Member,
    /// Another attempt may succeed.
    Again(StorageError),
    Final(StorageError),
}

fn try_members(
    connection: &mut PostgresConnection,
    access: Access,
    members: &mut [Box<dyn Job>],
    is_careful: bool,
    shared: &EngineShared,
) -> Result<BatchTally, BatchFailure> {
    connection.begin(access == Access::Read);
    let mut tally = BatchTally::default();
    let run = match is_careful {
        true => members.iter_mut().try_for_each(|member| {
            run_member(connection, member.as_mut(), true, &mut tally, shared)
        }),
        false => run_in_sets(connection, members, &mut tally, shared),
    };
    let checked = run
        .and_then(|()| connection.flush_checked().map_err(|error| failure_of(error, is_careful)));
    if let Err(failure) = checked {
        drop(connection.roll_back());
        return Err(failure);
    }
    if access == Access::Read && !connection.has_statements_ahead() {
        connection.end_read();
        return Ok(tally);
    }
    connection.commit().map_err(|error| match error {
        StorageError::Unavailable(reason) if access == Access::Write => {
            BatchFailure::Final(StorageError::OutcomeUnknown(reason))
        }
        error => failure_of(error, is_careful),
    })?;
    Ok(tally)
}

/// What a failure means that is no member's own.
fn failure_of(error: StorageError, is_careful: bool) -> BatchFailure {
    match error {
        StorageError::Contention | StorageError::Unavailable(_) => BatchFailure::Again(error),
        error if is_careful => BatchFailure::Final(error),
        _ => BatchFailure::Member,
    }
}

/// Runs members in their order: those that form a set at once, others one by one.
fn run_in_sets(
    connection: &mut PostgresConnection,
    mut members: &mut [Box<dyn Job>],
    tally: &mut BatchTally,
    shared: &EngineShared,
) -> Result<(), BatchFailure> {
    while !members.is_empty() {
        let (set, others) = members.split_at_mut(set_length(members));
        match set {
            [member] => run_member(connection, member.as_mut(), false, tally, shared)?,
            set => run_set(connection, set, tally, shared)?,
        }
        members = others;
    }
    Ok(())
}

/// How many of the first members can be done at once: they are of one kind, and no two of them are
/// about the same.
fn set_length(members: &[Box<dyn Job>]) -> usize {
    let Some(kind) = members.first().and_then(|first| first.kind()) else { return 1 };
    let mut subjects = HashSet::new();
    let of_kind = members.iter().take_while(|member| member.kind() == Some(kind));
    of_kind.take_while(|member| member.subject().is_none_or(|it| subjects.insert(it))).count()
}

fn run_set(
    connection: &mut PostgresConnection,
    set: &mut [Box<dyn Job>],
    tally: &mut BatchTally,
    shared: &EngineShared,
) -> Result<(), BatchFailure> {
    let (first, others) = set.split_first_mut().expect("a set has members");
    let mut tx = Tx::new(TxConnection::Postgres(connection));
    let run = first.run_set(others, &mut tx);
    shared.count(|stats| stats.statements += tx.statements());
    if run == SetRun::Failed {
        return Err(match tx.failure() {
            Some(error @ (StorageError::Contention | StorageError::Unavailable(_))) => {
                BatchFailure::Again(error.clone())
            }
            _ => BatchFailure::Member,
        });
    }
    tally.has_outbox_rows |= tx.has_outbox_rows();
    for member in set {
        match member.decision() {
            TxDecision::Commit => tally.committed += 1,
            TxDecision::RollBack => tally.rolled_back += 1,
        }
    }
    Ok(())
}

fn run_member(
    connection: &mut PostgresConnection,
    member: &mut dyn Job,
    is_careful: bool,
    tally: &mut BatchTally,
    shared: &EngineShared,
) -> Result<(), BatchFailure> {
    if is_careful {
        connection.savepoint();
    }
    let mut tx = Tx::new(TxConnection::Postgres(connection));
    let mut decision = member.run(&mut tx);
    shared.count(|stats| stats.statements += tx.statements());
    let (mut failure, has_written) = (tx.failure().cloned(), tx.has_written());
    let has_outbox_rows = tx.has_outbox_rows();
    if is_careful && decision == TxDecision::Commit {
        // Statements that nobody has waited for may have failed: this member's, and no other's.
        if let Err(error) = connection.flush() {
            member.fail(error.clone());
            (failure, decision) = (Some(error), TxDecision::RollBack);
        }
    }
    match (decision, failure) {
        (TxDecision::Commit, _) => {
            if is_careful {
                connection.release_savepoint();
            }
            tally.committed += 1;
            tally.has_outbox_rows |= has_outbox_rows;
            return Ok(());
        }
        (_, Some(error @ (StorageError::Contention | StorageError::Unavailable(_)))) => {
            return Err(BatchFailure::Again(error));
        }
        (_, _) if is_careful => connection.roll_back_to_savepoint(),
        (_, None) if !has_written => {}
        (_, _) => return Err(BatchFailure::Member),
    }
    tally.rolled_back += 1;
    Ok(())
}
