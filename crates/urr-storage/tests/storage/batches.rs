//! What a batch promises: writes share a transaction, and each has an outcome of its own.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use urr_storage::{BatchKey, Db, PostgresOptions, StorageError, Tx, params};

use crate::contract;
use crate::fixture::{Form, Place, SCHEMA, insert_number, numbers, run};

pub const KEY: BatchKey = BatchKey::named("numbers");

#[derive(Debug, PartialEq)]
pub enum BatchRefusal {
    NotWanted,
    Storage(StorageError),
}

impl From<StorageError> for BatchRefusal {
    fn from(error: StorageError) -> BatchRefusal {
        BatchRefusal::Storage(error)
    }
}

pub type Outcome = Result<(), BatchRefusal>;
type Member = Box<dyn Fn(&mut Tx<'_>) -> Outcome + Send>;

fn insert(tx: &mut Tx<'_>, n: i64) -> Result<(), StorageError> {
    tx.execute("insert into numbers (n) values ($1)", params![n]).map(drop)
}

fn insert_later(tx: &mut Tx<'_>, n: i64) -> Result<(), StorageError> {
    tx.execute_later("insert into numbers (n) values ($1)", params![n])
}

/// Submits a write that runs until the gate is opened.
pub async fn close_gate(db: &Db, key: BatchKey) -> (Sender<()>, tokio::task::JoinHandle<()>) {
    let (open, gate) = channel::<()>();
    let (running, mut is_running) = tokio::sync::mpsc::unbounded_channel();
    let (db, gate) = (db.clone(), Mutex::new(gate));
    let blocked = tokio::spawn(async move {
        let waited: Result<(), StorageError> = db
            .write_batched(key, move |_| {
                // If it runs again, nobody waits for it any more.
                if running.send(()).is_ok() {
                    assert!(gate.lock().unwrap().recv().is_err(), "nothing is sent");
                }
                Ok(())
            })
            .await;
        waited.unwrap();
    });
    is_running.recv().await.expect("it runs");
    (open, blocked)
}

/// Polled once, a write is submitted. It has to wait.
pub async fn submit<T>(mut write: Pin<&mut impl Future<Output = T>>) {
    let is_pending = poll_fn(|context| Poll::Ready(write.as_mut().poll(context).is_pending()));
    assert!(is_pending.await);
}

/// Runs writes in one batch, and returns their outcomes.
async fn together(db: &Db, members: Vec<Member>) -> Vec<Outcome> {
    let (open, blocked) = close_gate(db, KEY).await;
    let mut waiting = Vec::new();
    for member in members {
        let member = Mutex::new(member);
        let mut write = Box::pin(db.write_batched(KEY, move |tx| (member.lock().unwrap())(tx)));
        submit(write.as_mut()).await;
        waiting.push(write);
    }
    drop(open);
    let mut outcomes = Vec::new();
    for write in waiting {
        outcomes.push(write.await);
    }
    blocked.await.unwrap();
    outcomes
}

fn member(run: impl Fn(&mut Tx<'_>) -> Outcome + Send + 'static) -> Member {
    Box::new(run)
}

fn good(n: i64) -> Member {
    member(move |tx| Ok(insert(tx, n)?))
}

pub fn is_clash(outcome: &Outcome) -> bool {
    matches!(outcome, Err(BatchRefusal::Storage(error)) if error.violates("numbers_pkey"))
}

fn is_wrong_statement(outcome: &Outcome) -> bool {
    matches!(outcome, Err(BatchRefusal::Storage(StorageError::Statement { .. })))
}

contract! {
    async fn writes_that_wait_together_share_a_commit(place: Place) {
        let db = place.open();
        let before = db.stats();
        let outcomes = together(&db, (1..=50).map(good).collect()).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(numbers(&db).await, (1..=50).collect::<Vec<i64>>());
        let commits = db.stats().groups - before.groups;
        assert!(commits <= 2, "{commits} commits");
    }

    async fn a_member_that_fails_harms_no_other(place: Place) {
        let db = place.open();
        insert_number(&db, 0).await.unwrap();
        let outcomes = together(&db, vec![
            good(1),
            member(|_| Err(BatchRefusal::NotWanted)),
            good(2),
            member(|tx| {
                insert(tx, 100)?;
                Err(BatchRefusal::NotWanted)
            }),
            good(3),
            member(|tx| {
                insert(tx, 101)?;
                Ok(insert(tx, 0)?)
            }),
            good(4),
            member(|tx| {
                insert(tx, 102)?;
                panic!("a closure that panics")
            }),
            good(5),
        ]).await;
        for good in [0, 2, 4, 6, 8] {
            assert_eq!(outcomes[good], Ok(()), "{outcomes:?}");
        }
        assert_eq!(outcomes[1], Err(BatchRefusal::NotWanted));
        assert_eq!(outcomes[3], Err(BatchRefusal::NotWanted));
        assert!(is_clash(&outcomes[5]), "{:?}", outcomes[5]);
        let is_panic =
            matches!(&outcomes[7], Err(BatchRefusal::Storage(StorageError::Panicked(_))));
        assert!(is_panic, "{:?}", outcomes[7]);
        assert_eq!(numbers(&db).await, [0, 1, 2, 3, 4, 5]);
    }

    async fn a_member_whose_later_statement_fails_harms_no_other(place: Place) {
        let db = place.open();
        insert_number(&db, 0).await.unwrap();
        let outcomes = together(&db, vec![
            member(|tx| Ok(insert_later(tx, 1)?)),
            member(|tx| {
                insert_later(tx, 100)?;
                Ok(insert_later(tx, 0)?)
            }),
            good(2),
            member(|tx| {
                insert_later(tx, 101)?;
                let sql = "update numbers set n = 200 where n = 999";
                Ok(tx.change_later(sql, &[], 1)?)
            }),
            member(|tx| Ok(insert_later(tx, 3)?)),
            member(|tx| Ok(insert_later(tx, 0)?)),
        ]).await;
        for good in [0, 2, 4] {
            assert_eq!(outcomes[good], Ok(()), "{outcomes:?}");
        }
        assert!(is_clash(&outcomes[1]), "{:?}", outcomes[1]);
        assert!(is_wrong_statement(&outcomes[3]), "{:?}", outcomes[3]);
        assert!(is_clash(&outcomes[5]), "{:?}", outcomes[5]);
        assert_eq!(numbers(&db).await, [0, 1, 2, 3]);
    }

    async fn a_member_sees_what_earlier_ones_wrote_and_its_refusal_is_told_after_the_commit(
        place: Place
    ) {
        let db = place.open();
        let is_taken = |tx: &mut Tx<'_>| -> Outcome {
            let sql = "select count(*) as n from numbers";
            match tx.query_one(sql, &[], |row| row.get::<i64>("n"))? {
                0 => Ok(insert(tx, 1)?),
                _ => Err(BatchRefusal::NotWanted),
            }
        };
        let outcomes = together(&db, vec![member(is_taken), member(is_taken)]).await;
        assert_eq!(outcomes, [Ok(()), Err(BatchRefusal::NotWanted)]);
        assert_eq!(numbers(&db).await, [1]);
    }

    async fn a_later_statement_that_fails_undoes_its_transaction(place: Place) {
        let db = place.open();
        insert_number(&db, 0).await.unwrap();
        let clash: Outcome = db.write(|tx| {
            insert_later(tx, 1)?;
            Ok(insert_later(tx, 0)?)
        }).await;
        assert!(is_clash(&clash), "{clash:?}");
        let missed: Outcome = db.write(|tx| {
            insert_later(tx, 1)?;
            Ok(tx.change_later("update numbers set n = 5 where n = 999", &[], 1)?)
        }).await;
        assert!(is_wrong_statement(&missed), "{missed:?}");
        // A parameter that does not fit is not even sent: the commit must not be either.
        let unfit: Outcome = db.write(|tx| {
            insert_later(tx, 1)?;
            Ok(tx.execute_later("insert into numbers (n) values ($1)", params!["one"])?)
        }).await;
        assert!(is_wrong_statement(&unfit), "{unfit:?}");
        assert_eq!(numbers(&db).await, [0]);
        let fine: Outcome = db.write(|tx| Ok(insert_later(tx, 1)?)).await;
        assert_eq!(fine, Ok(()));
        assert_eq!(numbers(&db).await, [0, 1]);
    }

    async fn closing_finishes_what_waits_for_a_batch(place: Place) {
        let db = place.open();
        let (open, blocked) = close_gate(&db, KEY).await;
        let mut waiting = Vec::new();
        for n in 1..=300 {
            let mut write = Box::pin(db.write_batched(KEY, move |tx| insert(tx, n)));
            submit(write.as_mut()).await;
            waiting.push(write);
        }
        let closing = db.clone();
        let closed = tokio::task::spawn_blocking(move || closing.close());
        drop(open);
        for write in waiting {
            assert_eq!(write.await, Ok(()));
        }
        blocked.await.unwrap();
        closed.await.unwrap();
        let late = db.write_batched(KEY, |tx| insert(tx, 0)).await;
        assert_eq!(late, Err(StorageError::Closed));
        assert_eq!(numbers(&place.open()).await, (1..=300).collect::<Vec<i64>>());
    }
}

#[test]
fn batches_of_other_keys_do_not_wait() {
    run(Form::Postgres, |place| async move {
        let db = place.open();
        let (open, blocked) = close_gate(&db, KEY).await;
        let other = BatchKey::named("others");
        let done: Result<(), StorageError> = db.write_batched(other, |tx| insert(tx, 1)).await;
        assert_eq!(done, Ok(()));
        drop(open);
        blocked.await.unwrap();
    });
}

/// The control of the test above that counts commits.
#[test]
fn without_batches_every_write_has_its_own_commit() {
    run(Form::Postgres, |place| async move {
        let mut options = PostgresOptions::new(place.service_url(), SCHEMA.name);
        options.batch_max = 1;
        let db = Db::open_postgres(&options).unwrap();
        let before = db.stats();
        let outcomes = together(&db, (1..=50).map(good).collect()).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let commits = db.stats().groups - before.groups;
        assert!(commits >= 50, "{commits} commits");
    });
}

#[test]
fn statements_that_nobody_waits_for_cost_no_round_trip() {
    run(Form::Postgres, |place| async move {
        let mut options = PostgresOptions::new(place.service_url(), SCHEMA.name);
        options.connections = 1;
        let db = Db::open_postgres(&options).unwrap();
        let next = Arc::new(Mutex::new(0));
        let trips = async |are_later: bool| {
            let before = db.stats().round_trips;
            let next = Arc::clone(&next);
            let done: Result<(), StorageError> = db
                .write(move |tx| {
                    let sql = "select count(*) as n from numbers";
                    tx.query_one(sql, &[], |row| row.get::<i64>("n"))?;
                    let mut next = next.lock().unwrap();
                    for _ in 0..10 {
                        *next += 1;
                        match are_later {
                            true => insert_later(tx, *next)?,
                            false => insert(tx, *next)?,
                        }
                    }
                    Ok(())
                })
                .await;
            done.unwrap();
            db.stats().round_trips - before
        };
        // The first time, statements are prepared.
        trips(false).await;
        assert_eq!(trips(false).await, 12);
        assert_eq!(trips(true).await, 2);
        assert_eq!(numbers(&db).await.len(), 30);
    });
}
