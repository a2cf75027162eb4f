//! Closures that fail, panic or take too long; callers that go away; queues that are full.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use urr_storage::{Db, StorageError, params};

use crate::contract;
use crate::fixture::{Form, Place, insert_number, numbers};

/// Occupies a writer until the returned sender is used or dropped.
async fn occupy(db: &Db) -> (Sender<()>, JoinHandle<Result<(), StorageError>>) {
    let (release, wait) = channel::<()>();
    let (started, is_started) = channel();
    let wait = Mutex::new(wait);
    let db = db.clone();
    let occupant = tokio::spawn(async move {
        db.write(move |_tx| {
            // When the group runs again, nobody listens or releases any more.
            let is_first_run = started.send(()).is_ok();
            let released = wait.lock().expect("nobody panics holding it").recv();
            assert!(!is_first_run || released.is_err(), "it is released by dropping the sender");
            Ok(())
        })
        .await
    });
    tokio::task::spawn_blocking(move || is_started.recv().expect("the closure starts"))
        .await
        .expect("the helper thread lives");
    (release, occupant)
}

fn submit(db: &Db, n: i64) -> JoinHandle<Result<(), StorageError>> {
    let db = db.clone();
    tokio::spawn(async move { insert_number(&db, n).await })
}

/// Lets the tasks that were just spawned reach the queue of the storage.
async fn until_queued(db: &Db, count: u64) {
    while db.stats().queue_length < count {
        tokio::task::yield_now().await;
    }
}

/// Puts good closures before and after a bad one into one group, and returns the bad one's answer.
///
/// It does so twice: on SQLite the first group begins without savepoints, the second with them.
async fn in_a_group_with<F>(place: &Place, timeout: Duration, bad: F) -> StorageError
where
    F: Fn(&mut urr_storage::Tx<'_>) -> Result<(), StorageError> + Send + Sync + 'static,
{
    // One connection: PostgreSQL has no groups, but the order is the same.
    let db = place.open_with(64, timeout, 1);
    let bad = Arc::new(bad);
    let first = run_group_with(&db, 0, Arc::clone(&bad)).await;
    let second = run_group_with(&db, 20, bad).await;
    assert_eq!(first, second);
    assert_eq!(numbers(&db).await, (0..40).collect::<Vec<i64>>());
    if place.form == Form::Sqlite {
        assert!(db.stats().groups < 42, "they really shared commits: {:?}", db.stats());
    }
    second
}

async fn run_group_with<F>(db: &Db, start: i64, bad: Arc<F>) -> StorageError
where
    F: Fn(&mut urr_storage::Tx<'_>) -> Result<(), StorageError> + Send + Sync + 'static,
{
    let (release, occupant) = occupy(db).await;
    let mut good = Vec::new();
    for n in 0..10 {
        good.push(submit(db, start + n));
    }
    until_queued(db, 10).await;
    let bad_task = tokio::spawn({
        let db = db.clone();
        async move { db.write(move |tx| bad(tx)).await }
    });
    until_queued(db, 11).await;
    for n in 10..20 {
        good.push(submit(db, start + n));
    }
    until_queued(db, 21).await;
    drop(release);
    assert_eq!(occupant.await.expect("the task lives"), Ok(()));
    for task in good {
        assert_eq!(task.await.expect("the task lives"), Ok(()));
    }
    bad_task.await.expect("the task lives").expect_err("the bad one fails")
}

contract! {
    async fn a_failing_closure_leaves_the_others_of_its_group_untouched(place: Place) {
        let error = in_a_group_with(&place, Duration::from_secs(5), |tx| {
            tx.execute("insert into numbers (n) values (1000)", &[])?;
            tx.execute("insert into numbers (n) values (3)", &[]).map(drop)
        }).await;
        assert!(error.violates("numbers_pkey"), "{error}");
    }

    async fn a_panicking_closure_leaves_the_others_of_its_group_untouched(place: Place) {
        let error = in_a_group_with(&place, Duration::from_secs(5), |tx| {
            tx.execute("insert into numbers (n) values (1000)", &[])?;
            panic!("a bug in a closure");
        }).await;
        assert_eq!(error, StorageError::Panicked("a bug in a closure".to_owned()));
    }

    async fn a_closure_that_takes_too_long_in_a_read_is_stopped_alone(place: Place) {
        let error = in_a_group_with(&place, Duration::from_millis(300), |tx| {
            tx.execute("insert into numbers (n) values (1000)", &[])?;
            tx.query_opt(
                "with recursive c (n) as (select 1 union all select n + 1 from c) \
                 select n from c where n < 0", &[], |row| row.get::<i64>("n"),
            ).map(drop)
        }).await;
        assert_eq!(error, StorageError::Timeout);
    }

    /// In SQLite an interrupted write ends the whole transaction: the group runs again without it.
    async fn a_closure_that_takes_too_long_in_a_write_is_stopped_alone(place: Place) {
        let error = in_a_group_with(&place, Duration::from_millis(300), |tx| {
            tx.execute(
                "insert into numbers (n) \
                 with recursive c (n) as (select 1 union all select n + 1 from c) \
                 select n from c where n < 0", &[],
            ).map(drop)
        }).await;
        assert_eq!(error, StorageError::Timeout);
    }

    async fn a_full_queue_is_refused_at_once_and_clearly(place: Place) {
        let db = place.open_with(4, Duration::from_secs(5), 1);
        let (release, occupant) = occupy(&db).await;
        let queued: Vec<_> = (0..4).map(|n| submit(&db, n)).collect();
        until_queued(&db, 4).await;
        assert_eq!(insert_number(&db, 99).await, Err(StorageError::Overloaded));
        assert_eq!(db.stats().refused, 1);
        drop(release);
        assert_eq!(occupant.await.unwrap(), Ok(()));
        for task in queued {
            assert_eq!(task.await.unwrap(), Ok(()));
        }
        assert_eq!(insert_number(&db, 4).await, Ok(()));
        assert_eq!(numbers(&db).await, [0, 1, 2, 3, 4]);
    }

    async fn readers_that_take_their_time_do_not_stop_the_writers(place: Place) {
        let db = place.open_with(64, Duration::from_secs(5), 3);
        let (release, wait) = channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let reads: Vec<_> = (0..16).map(|_| {
            let (db, wait) = (db.clone(), Arc::clone(&wait));
            tokio::spawn(async move {
                db.read(move |tx| {
                    tx.query_one("select 1 as one", &[], |row| row.get::<i64>("one"))?;
                    let released = wait.lock().expect("nobody panics holding it").recv();
                    assert!(released.is_err(), "it is released by dropping the sender");
                    Ok::<_, StorageError>(())
                }).await
            })
        }).collect();
        for n in 0..10 {
            let written = tokio::time::timeout(Duration::from_secs(4), insert_number(&db, n)).await;
            assert_eq!(written.expect("no reader is in the way"), Ok(()));
        }
        drop(release);
        for read in reads {
            assert_eq!(read.await.unwrap(), Ok(()));
        }
    }

    async fn a_closure_runs_to_its_end_when_its_caller_has_gone(place: Place) {
        let db = place.open_with(64, Duration::from_secs(5), 1);
        let (release, occupant) = occupy(&db).await;
        let leaving = submit(&db, 7);
        until_queued(&db, 1).await;
        leaving.abort();
        assert!(leaving.await.unwrap_err().is_cancelled());
        drop(release);
        occupant.await.unwrap().unwrap();
        insert_number(&db, 8).await.unwrap();
        assert_eq!(numbers(&db).await, [7, 8]);
    }

    async fn closing_finishes_what_is_queued_and_refuses_the_rest(place: Place) {
        let db = place.open_with(64, Duration::from_secs(5), 1);
        let (release, occupant) = occupy(&db).await;
        let queued: Vec<_> = (0..10).map(|n| submit(&db, n)).collect();
        until_queued(&db, 10).await;
        let closing = tokio::task::spawn_blocking({
            let db = db.clone();
            move || db.close()
        });
        drop(release);
        closing.await.unwrap();
        assert_eq!(occupant.await.unwrap(), Ok(()));
        for task in queued {
            assert_eq!(task.await.unwrap(), Ok(()));
        }
        assert_eq!(insert_number(&db, 99).await, Err(StorageError::Closed));
        assert_eq!(numbers(&place.open()).await, (0..10).collect::<Vec<i64>>());
    }

    async fn the_writer_lives_on_after_a_panic(place: Place) {
        let db = place.open();
        for round in 0..20_i64 {
            let outcome: Result<(), StorageError> = db.write(move |tx| {
                tx.execute("insert into numbers (n) values ($1)", params![round])?;
                panic!("round {round}");
            }).await;
            assert_eq!(outcome, Err(StorageError::Panicked(format!("round {round}"))));
        }
        assert_eq!(numbers(&db).await, [0; 0]);
        insert_number(&db, 1).await.unwrap();
    }
}
