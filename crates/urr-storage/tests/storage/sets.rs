//! What a set promises: its members are written by the same statements, and each has an outcome of
//! its own.

use urr_storage::{Db, DbResult, SetRead, SetWrite, StorageError, Tx, params};

use crate::batches::{BatchRefusal, KEY, Outcome, close_gate, is_clash, submit};
use crate::contract;
use crate::fixture::{Form, Place, insert_number, numbers};

/// A number to insert, once per number.
#[derive(Clone, Debug)]
enum NumberWrite {
    Insert { n: i64, subject: &'static str },
    Refused,
    Panicking,
}

fn insert(n: i64) -> NumberWrite {
    NumberWrite::Insert { n, subject: "" }
}

impl SetWrite for NumberWrite {
    type Answer = ();
    type Error = BatchRefusal;

    fn subject(&self) -> Option<String> {
        let subject = match self {
            NumberWrite::Insert { n, subject: "" } => n.to_string(),
            NumberWrite::Insert { subject, .. } => (*subject).to_owned(),
            NumberWrite::Refused | NumberWrite::Panicking => format!("{self:?}"),
        };
        Some(subject)
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<Outcome>> {
        let sql = "select count(*) as total from numbers";
        let total: i64 = tx.query_one(sql, &[], |row| row.get("total"))?;
        let wanted: Vec<i64> = set.iter().filter_map(|one| one.number()).collect();
        match tx.is_postgres() {
            true => tx.execute_later(
                "insert into numbers (n) select n::bigint from jsonb_array_elements_text($1) as n",
                params![serde_json::Value::from(wanted)],
            )?,
            false => wanted.iter().try_for_each(|n| {
                tx.execute_later("insert into numbers (n) values ($1)", params![*n])
            })?,
        }
        assert!(!set.iter().any(|one| matches!(one, NumberWrite::Panicking)), "it panics");
        let outcome = |one: &&NumberWrite| match one {
            NumberWrite::Insert { subject: "only once", .. } if total > 0 => {
                panic!("the second of two about the same sees the first")
            }
            NumberWrite::Insert { .. } => Ok(()),
            NumberWrite::Refused | NumberWrite::Panicking => Err(BatchRefusal::NotWanted),
        };
        Ok(set.iter().map(outcome).collect())
    }
}

impl NumberWrite {
    fn number(&self) -> Option<i64> {
        match self {
            NumberWrite::Insert { n, .. } => Some(*n),
            NumberWrite::Refused | NumberWrite::Panicking => None,
        }
    }
}

/// Runs writes in one batch, and returns their outcomes.
async fn together(db: &Db, members: Vec<NumberWrite>) -> Vec<Outcome> {
    let (open, blocked) = close_gate(db, KEY).await;
    let mut waiting = Vec::new();
    for member in members {
        let mut write = Box::pin(db.write_in_set(KEY, member));
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

/// Asks whether a number is there. Some ask for what cannot be read.
#[derive(Clone, Copy, Debug)]
enum NumberRead {
    Of(i64),
    Failing,
}

impl SetRead for NumberRead {
    type Answer = bool;
    type Error = StorageError;

    fn read(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<DbResult<bool>>> {
        if set.iter().any(|one| matches!(one, NumberRead::Failing)) {
            tx.query_one("select n from nowhere", &[], |row| row.get::<i64>("n"))?;
        }
        let all: Vec<i64> = tx.query("select n from numbers", &[], |row| row.get("n"))?;
        let is_there = |one: &&NumberRead| matches!(one, NumberRead::Of(n) if all.contains(n));
        Ok(set.iter().map(|one| Ok(is_there(one))).collect())
    }
}

/// Runs reads that wait at the same moment, and returns their answers.
async fn read_together(db: &Db, members: &[NumberRead]) -> Vec<DbResult<bool>> {
    let read = |member: &NumberRead| {
        let (db, member) = (db.clone(), *member);
        tokio::spawn(async move { db.read_in_set(KEY, member).await })
    };
    let reads: Vec<_> = members.iter().map(read).collect();
    let mut answers = Vec::new();
    for read in reads {
        answers.push(read.await.unwrap());
    }
    answers
}

contract! {
    async fn reads_of_a_set_share_their_statements_and_each_has_its_answer(place: Place) {
        let db = place.open();
        insert_number(&db, 1).await.unwrap();
        let before = db.stats();
        let members: Vec<NumberRead> = (0..100).map(|n| NumberRead::Of(n % 2)).collect();
        let answers = read_together(&db, &members).await;
        let expected: Vec<DbResult<bool>> = (0..100).map(|n| Ok(n % 2 == 1)).collect();
        assert_eq!(answers, expected);
        let after = db.stats();
        assert_eq!(after.groups, before.groups, "nothing was committed");
        if place.form == Form::Postgres {
            assert!(after.statements - before.statements < 50, "{after:?}");
        }
    }

    async fn a_read_that_fails_harms_no_other_of_its_set(place: Place) {
        let db = place.open();
        insert_number(&db, 1).await.unwrap();
        let mut members = vec![NumberRead::Of(1); 20];
        members[10] = NumberRead::Failing;
        let answers = read_together(&db, &members).await;
        for (number, answer) in answers.iter().enumerate() {
            match number {
                10 => assert!(answer.is_err(), "{answer:?}"),
                _ => assert_eq!(*answer, Ok(true), "read {number}"),
            }
        }
        assert_eq!(numbers(&db).await, [1], "the connection still works");
    }

    async fn a_read_in_a_set_cannot_write(place: Place) {
        struct Writing;
        impl SetRead for Writing {
            type Answer = ();
            type Error = StorageError;
            fn read(tx: &mut Tx<'_>, _: &[&Self]) -> DbResult<Vec<DbResult<()>>> {
                tx.execute("insert into numbers (n) values (1)", &[])?;
                Ok(vec![Ok(())])
            }
        }
        let db = place.open();
        assert!(db.read_in_set(KEY, Writing).await.is_err());
        assert!(numbers(&db).await.is_empty());
    }

    async fn a_set_is_written_by_few_statements_in_one_commit(place: Place) {
        let db = place.open();
        let before = db.stats();
        let outcomes = together(&db, (1..=50).map(insert).collect()).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(numbers(&db).await, (1..=50).collect::<Vec<i64>>());
        let after = db.stats();
        assert!(after.groups - before.groups <= 2, "{after:?}");
        assert_eq!(after.committed - before.committed, 51);
        if place.form == Form::Postgres {
            assert!(after.statements - before.statements <= 4, "{after:?}");
        }
    }

    async fn a_member_of_a_set_that_fails_harms_no_other(place: Place) {
        let db = place.open();
        insert_number(&db, 0).await.unwrap();
        let members = vec![
            insert(1),
            NumberWrite::Refused,
            insert(0),
            insert(2),
            NumberWrite::Panicking,
            insert(3),
        ];
        let outcomes = together(&db, members).await;
        for good in [0, 3, 5] {
            assert_eq!(outcomes[good], Ok(()), "{outcomes:?}");
        }
        assert_eq!(outcomes[1], Err(BatchRefusal::NotWanted));
        assert!(is_clash(&outcomes[2]), "{:?}", outcomes[2]);
        let is_panic =
            matches!(&outcomes[4], Err(BatchRefusal::Storage(StorageError::Panicked(_))));
        assert!(is_panic, "{:?}", outcomes[4]);
        assert_eq!(numbers(&db).await, [0, 1, 2, 3]);
    }

    async fn a_refused_member_of_a_set_does_not_undo_the_others(place: Place) {
        let db = place.open();
        let outcomes = together(&db, vec![insert(1), NumberWrite::Refused, insert(2)]).await;
        assert_eq!(outcomes, [Ok(()), Err(BatchRefusal::NotWanted), Ok(())]);
        assert_eq!(numbers(&db).await, [1, 2]);
        assert_eq!(db.stats().groups_lost, 0);
    }

    async fn writes_about_the_same_are_not_in_one_set(place: Place) {
        let db = place.open();
        let once = |n| NumberWrite::Insert { n, subject: "only once" };
        let outcomes = together(&db, vec![once(1), once(2)]).await;
        assert_eq!(outcomes[0], Ok(()));
        let is_panic =
            matches!(&outcomes[1], Err(BatchRefusal::Storage(StorageError::Panicked(_))));
        assert!(is_panic, "{:?}", outcomes[1]);
        assert_eq!(numbers(&db).await, [1]);
    }
}
