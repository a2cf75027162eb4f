//! What a transaction promises: types, atomicity, isolation, names of the guards.

use serde_json::json;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{ConstraintKind, StorageError, params};

use crate::contract;
use crate::fixture::{Place, execute, insert_number, numbers};

#[derive(Debug, PartialEq)]
enum Refusal {
    NotWanted,
    Storage(StorageError),
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Refusal {
        Refusal::Storage(error)
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    id: Uuid,
    amount: Option<i64>,
    small: Option<i32>,
    flag: Option<bool>,
    label: Option<String>,
    document: Option<serde_json::Value>,
    payload: Option<Vec<u8>>,
    made_at: Option<Timestamp>,
}

fn constraint(kind: ConstraintKind, name: &str) -> Result<u64, StorageError> {
    Err(StorageError::Constraint { kind, name: name.to_owned() })
}

contract! {
    async fn every_type_survives_storing(place: Place) {
        let db = place.open();
        let full = Sample {
            id: Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0001),
            amount: Some(i64::MIN),
            small: Some(i32::MAX),
            flag: Some(true),
            label: Some("우르르 'quoted' \u{1F3AB}".to_owned()),
            document: Some(json!({"rows": [1, 2], "text": "안녕", "null": null})),
            payload: Some(vec![0, 255, 1]),
            made_at: Some(Timestamp::from_microsecond(1_234_567_890_123_456).unwrap()),
        };
        let empty = Sample {
            id: Uuid::from_u128(2),
            amount: None, small: None, flag: None, label: None,
            document: None, payload: None, made_at: None,
        };
        for sample in [full, empty] {
            let given = sample.clone();
            let read: Result<Sample, StorageError> = db.write(move |tx| {
                let s = &given;
                tx.execute(
                    "insert into samples \
                     (id, amount, small, flag, label, document, payload, made_at) \
                     values ($1, $2, $3, $4, $5, $6, $7, $8)",
                    params![s.id, s.amount, s.small, s.flag, s.label, s.document, s.payload, s.made_at],
                )?;
                tx.query_one(
                    "select id, amount, small, flag, label, document, payload, made_at \
                     from samples where id = $1",
                    params![s.id],
                    |row| Ok(Sample {
                        id: row.get("id")?,
                        amount: row.get("amount")?,
                        small: row.get("small")?,
                        flag: row.get("flag")?,
                        label: row.get("label")?,
                        document: row.get("document")?,
                        payload: row.get("payload")?,
                        made_at: row.get("made_at")?,
                    }),
                )
            }).await;
            assert_eq!(read, Ok(sample));
        }
    }

    async fn a_json_document_of_another_shape_is_an_error_and_not_a_panic(place: Place) {
        let db = place.open();
        let read = async |sql: &'static str| -> Result<Option<Vec<u32>>, StorageError> {
            db.read(move |tx| tx.query_one(sql, &[], |row| row.get_json("document"))).await
        };
        assert_eq!(read("select '[1, 2]' as document").await, Ok(Some(vec![1, 2])));
        assert_eq!(read("select null as document").await, Ok(None));
        let wrong = read("select '{\"a\": 1}' as document").await;
        assert!(matches!(wrong, Err(StorageError::Decode { .. })), "{wrong:?}");
        let broken = read("select '[1,' as document").await;
        assert!(matches!(broken, Err(StorageError::Decode { .. })), "{broken:?}");
    }

    async fn a_parameter_of_the_wrong_type_is_an_error_and_not_a_guess(place: Place) {
        let db = place.open();
        let outcome: Result<u64, StorageError> = db.write(|tx| {
            tx.execute("insert into numbers (n) values ($1)", params!["one"])
        }).await;
        assert!(matches!(outcome, Err(StorageError::Statement { .. })), "{outcome:?}");
        let outcome: Result<i64, StorageError> = db.read(|tx| {
            tx.query_one("select label from (select 'x' as label) t", &[], |row| row.get("label"))
        }).await;
        assert!(matches!(outcome, Err(StorageError::Decode { .. })), "{outcome:?}");
    }

    async fn a_text_with_the_character_nul_is_refused_on_both_engines(place: Place) {
        let db = place.open();
        let outcome: Result<u64, StorageError> = db.write(|tx| {
            tx.execute("insert into events (id, title) values (1, $1)", params!["a\0b"])
        }).await;
        assert!(matches!(outcome, Err(StorageError::Statement { .. })), "{outcome:?}");
    }

    async fn a_refused_closure_leaves_no_trace(place: Place) {
        let db = place.open();
        let outcome: Result<(), Refusal> = db.write(|tx| {
            tx.execute("insert into numbers (n) values (1)", &[])?;
            Err(Refusal::NotWanted)
        }).await;
        assert_eq!(outcome, Err(Refusal::NotWanted));
        assert_eq!(numbers(&db).await, [0; 0]);
    }

    async fn violated_guards_are_told_by_name(place: Place) {
        let db = place.open();
        execute(&db, "insert into events (id, title) values (1, 'A')").await.unwrap();
        execute(&db, "insert into seats (id, event_id, number) values (1, 1, 7)").await.unwrap();
        execute(&db, "insert into holds (id, seat_id, status) values (1, 1, 'live')").await.unwrap();
        let unique = ConstraintKind::Unique;
        for (sql, expected) in [
            (
                "insert into seats (id, event_id, number) values (2, 1, 7)",
                constraint(unique, "seats_number"),
            ),
            (
                "insert into seats (id, event_id, number) values (1, 1, 8)",
                constraint(unique, "seats_pkey"),
            ),
            (
                "insert into holds (id, seat_id, status) values (2, 1, 'live')",
                constraint(unique, "holds_one_live_per_seat"),
            ),
            (
                "update seats set available = -1",
                constraint(ConstraintKind::Check, "seats_available_range"),
            ),
            (
                "insert into seats (id, event_id, number) values (3, 99, 1)",
                constraint(ConstraintKind::ForeignKey, "foreign key"),
            ),
            (
                "insert into events (id, title) values (2, null)",
                constraint(ConstraintKind::NotNull, "events.title"),
            ),
        ] {
            assert_eq!(execute(&db, sql).await, expected, "{sql}");
        }
        // The partial index allows any number of ended holds.
        let ended = "insert into holds (id, seat_id, status) values (3, 1, 'ended'), (4, 1, 'ended')";
        assert_eq!(execute(&db, ended).await, Ok(2));
    }

    async fn after_a_failed_statement_nothing_more_is_done_whatever_the_closure_says(place: Place) {
        let db = place.open();
        insert_number(&db, 1).await.unwrap();
        let outcome: Result<(), StorageError> = db.write(|tx| {
            tx.execute("insert into numbers (n) values (2)", &[])?;
            let clash = tx.execute("insert into numbers (n) values (1)", &[]);
            assert!(clash.is_err());
            assert_eq!(
                tx.execute("insert into numbers (n) values (3)", &[]),
                Err(StorageError::Aborted)
            );
            Ok(())
        }).await;
        assert_eq!(outcome, Err(StorageError::Aborted));
        assert_eq!(numbers(&db).await, [1]);
    }

    async fn an_expected_conflict_is_a_number_of_rows(place: Place) {
        let db = place.open();
        let sql = "insert into numbers (n) values (1) on conflict (n) do nothing";
        assert_eq!(execute(&db, sql).await, Ok(1));
        assert_eq!(execute(&db, sql).await, Ok(0));
    }

    async fn returning_gives_rows_to_query_and_their_number_to_execute(place: Place) {
        let db = place.open();
        for n in 1..=3 {
            insert_number(&db, n).await.unwrap();
        }
        let changed = db.write(|tx| tx.query(
            "update numbers set n = n + $1 where n > $2 returning n", params![10_i64, 1_i64],
            |row| row.get::<i64>("n"),
        )).await;
        let mut changed = changed.unwrap_or_else(|error: StorageError| panic!("{error}"));
        changed.sort_unstable();
        assert_eq!(changed, [12, 13]);
        assert_eq!(execute(&db, "delete from numbers where n > 1 returning n").await, Ok(2));
    }

    async fn a_reader_sees_one_moment_and_cannot_write(place: Place) {
        let db = place.open();
        insert_number(&db, 1).await.unwrap();
        let (started, is_started) = std::sync::mpsc::channel();
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let count = "select count(*) as n from numbers";
        let reading = tokio::spawn({
            let db = db.clone();
            async move {
                db.read(move |tx| {
                    let before = tx.query_one(count, &[], |row| row.get::<i64>("n"))?;
                    started.send(()).unwrap();
                    wait.lock().unwrap().recv().unwrap();
                    let after = tx.query_one(count, &[], |row| row.get::<i64>("n"))?;
                    Ok::<_, StorageError>((before, after))
                }).await
            }
        });
        tokio::task::spawn_blocking(move || is_started.recv().unwrap()).await.unwrap();
        insert_number(&db, 2).await.unwrap();
        go_on.send(()).unwrap();
        assert_eq!(reading.await.unwrap(), Ok((1, 1)));
        assert_eq!(numbers(&db).await, [1, 2]);
        let write_by_reader: Result<u64, StorageError> =
            db.read(|tx| tx.execute("insert into numbers (n) values (3)", &[])).await;
        assert!(matches!(write_by_reader, Err(StorageError::Statement { .. })));
    }

    async fn concurrent_read_modify_write_under_a_row_lock_loses_nothing(place: Place) {
        let db = place.open();
        execute(&db, "insert into events (id, title) values (1, 'A')").await.unwrap();
        execute(&db, "insert into seats (id, event_id, number) values (1, 1, 1)").await.unwrap();
        let tasks: Vec<_> = (0..64).map(|_| {
            let db = db.clone();
            tokio::spawn(async move {
                db.write(|tx| {
                    let version: i64 = tx.query_one(
                        "select version from seats where id = $1 for update", params![1_i64],
                        |row| row.get("version"),
                    )?;
                    tx.execute(
                        "update seats set version = $2 where id = $1", params![1_i64, version + 1],
                    )
                }).await.unwrap_or_else(|error: StorageError| panic!("{error}"));
            })
        }).collect();
        for task in tasks {
            task.await.unwrap();
        }
        let version = db.read(|tx| tx.query_one(
            "select version from seats", &[], |row| row.get::<i64>("version"))).await;
        assert_eq!(version, Ok::<_, StorageError>(64));
    }
}
