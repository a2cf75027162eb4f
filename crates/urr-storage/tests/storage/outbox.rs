//! Outbox and inbox: an event exists if and only if its change does.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{CallContext, DomainEvent, EventData, Timestamp, Uuid};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{Db, StorageError, inbox, params};

use crate::contract;
use crate::fixture::{Place, numbers};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct NumberChosen {
    n: i64,
}

impl EventData for NumberChosen {
    const TOPIC: &'static str = "number-events";
    const TYPE: &'static str = "NUMBER_CHOSEN";
    fn aggregate_id(&self) -> String {
        Uuid::from_u128(u128::from(self.n.unsigned_abs())).to_string()
    }
}

fn metadata(n: i64) -> EventMetadata {
    EventMetadata {
        event_id: Uuid::from_u128(1_000 + u128::from(n.unsigned_abs())),
        source: "urr/test",
        time: Timestamp::UNIX_EPOCH,
        context: CallContext::root(Uuid::from_u128(77)),
    }
}

async fn choose(db: &Db, n: i64, commit: bool) -> Result<(), StorageError> {
    db.write(move |tx| {
        tx.execute("insert into numbers (n) values ($1)", params![n])?;
        outbox::append(tx, &metadata(n), &NumberChosen { n })?;
        if commit { Ok(()) } else { Err(StorageError::Aborted) }
    })
    .await
}

async fn waiting(db: &Db) -> Vec<outbox::OutboxRow> {
    let rows = db.read(|tx| outbox::unpublished(tx, 100)).await;
    rows.unwrap_or_else(|error: StorageError| panic!("{error}"))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number of seconds")
}

contract! {
    async fn many_events_at_once_are_what_each_alone_would_be(place: Place) {
        let db = place.open();
        let write = db.write(|tx| {
            outbox::append(tx, &metadata(1), &NumberChosen { n: 1 })?;
            let others: Vec<_> = (2..=200).map(|n| (metadata(n), NumberChosen { n })).collect();
            outbox::append_all(tx, &others)?;
            outbox::append_all::<NumberChosen>(tx, &[])
        });
        write.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        db.outbox_filled().await;
        let rows: Result<_, StorageError> = db.read(|tx| outbox::unpublished(tx, 500)).await;
        let rows = rows.unwrap();
        assert_eq!(rows.len(), 200);
        for (n, row) in (1..).zip(rows) {
            let event = DomainEvent::from_bytes(row.body.as_bytes()).unwrap();
            assert_eq!((event.id, row.key), (metadata(n).event_id, event.subject.clone()));
            assert_eq!(row.topic, "number-events");
            assert_eq!(event.decode::<NumberChosen>().unwrap(), NumberChosen { n });
        }
    }

    async fn an_event_is_stored_if_and_only_if_its_change_is(place: Place) {
        let db = place.open();
        choose(&db, 1, true).await.unwrap();
        choose(&db, 2, false).await.unwrap_err();
        choose(&db, 3, true).await.unwrap();
        assert_eq!(numbers(&db).await, [1, 3]);
        let rows = waiting(&db).await;
        let chosen: Vec<NumberChosen> = rows
            .iter()
            .map(|row| DomainEvent::from_bytes(row.body.as_bytes()).unwrap().decode().unwrap())
            .collect();
        assert_eq!(chosen, [NumberChosen { n: 1 }, NumberChosen { n: 3 }]);
        assert_eq!(rows[0].topic, "number-events");
        assert_eq!(rows[0].key, Uuid::from_u128(1).to_string());
    }

    async fn the_commit_wakes_the_relay(place: Place) {
        let db = place.open();
        let woken = tokio::spawn({
            let db = db.clone();
            async move { db.outbox_filled().await }
        });
        choose(&db, 1, true).await.unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(5), woken)
            .await
            .expect("the relay is woken long before its poll")
            .unwrap();
    }

    async fn a_change_without_an_event_wakes_nobody(place: Place) {
        let db = place.open();
        crate::fixture::insert_number(&db, 1).await.unwrap();
        choose(&db, 2, false).await.unwrap_err();
        let woken = tokio::time::timeout(std::time::Duration::from_millis(50), db.outbox_filled());
        assert!(woken.await.is_err());
    }

    async fn published_events_are_not_given_out_again(place: Place) {
        let db = place.open();
        for n in 0..250 {
            choose(&db, n, true).await.unwrap();
        }
        let seqs: Vec<i64> = waiting(&db).await.iter().map(|row| row.seq).collect();
        assert_eq!(seqs.len(), 100);
        db.write(move |tx| outbox::mark_published(tx, &seqs, at(5)))
            .await
            .unwrap_or_else(|error: StorageError| panic!("{error}"));
        assert_eq!(waiting(&db).await.len(), 100);
        let lag = db.read(outbox::lag).await;
        assert_eq!(lag, Ok::<_, StorageError>((150, Some(Timestamp::UNIX_EPOCH))));
        let purged = db.write(|tx| outbox::purge(tx, at(6), 60)).await;
        assert_eq!(purged, Ok::<_, StorageError>(60));
        let purged = db.write(|tx| outbox::purge(tx, at(6), 60)).await;
        assert_eq!(purged, Ok::<_, StorageError>(40));
    }

    async fn one_relay_at_a_time_has_the_lease(place: Place) {
        const LEASE: Duration = Duration::from_secs(10);
        let db = place.open();
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let take = |holder: Uuid, now: i64| {
            let db = db.clone();
            async move {
                db.write(move |tx| outbox::lease_take(tx, holder, at(now), LEASE))
                    .await
                    .unwrap_or_else(|error: StorageError| panic!("{error}"))
            }
        };
        assert!(take(one, 0).await);
        assert!(!take(two, 5).await, "it is held");
        assert!(take(one, 9).await, "the holder renews it");
        assert!(!take(two, 15).await, "it was renewed");
        assert!(take(two, 20).await, "it ran out");
        assert!(!take(one, 21).await);
        let released = db.write(move |tx| outbox::lease_release(tx, two)).await;
        assert_eq!(released, Ok::<_, StorageError>(()));
        assert!(take(one, 21).await, "it was given up");
        assert!(take(two, 32_400).await, "a clock is nine hours ahead");
        assert!(take(one, 22).await, "nobody can have it for so long");
        assert!(take(two, 33).await, "a clock is one second ahead");
        assert!(!take(one, 32).await, "that is believed");
    }

    async fn an_event_is_recorded_once_per_consumer(place: Place) {
        let db = place.open();
        let record = |consumer: &'static str, id: u128| {
            let db = db.clone();
            async move {
                db.write(move |tx| inbox::record(tx, consumer, Uuid::from_u128(id), at(1)))
                    .await
                    .unwrap_or_else(|error: StorageError| panic!("{error}"))
            }
        };
        assert!(record("stats", 1).await);
        assert!(!record("stats", 1).await);
        assert!(record("ticket", 1).await, "each group has its own effect");
        assert!(record("stats", 2).await);
        let purged = db.write(|tx| inbox::purge(tx, at(2), 2)).await;
        assert_eq!(purged, Ok::<_, StorageError>(2));
    }

    async fn several_events_are_recorded_at_once(place: Place) {
        let db = place.open();
        let record_all = async |ids: &[u128]| {
            let ids: Vec<Uuid> = ids.iter().map(|id| Uuid::from_u128(*id)).collect();
            let fresh = db.write(move |tx| inbox::record_all(tx, "stats", &ids, at(1))).await;
            let fresh = fresh.unwrap_or_else(|error: StorageError| panic!("{error}"));
            let mut fresh: Vec<u128> = fresh.iter().map(Uuid::as_u128).collect();
            fresh.sort_unstable();
            fresh
        };
        assert_eq!(record_all(&[]).await, [0; 0]);
        assert_eq!(record_all(&[3, 1, 3]).await, [1, 3], "an event twice in a batch counts once");
        assert_eq!(record_all(&[1, 2, 3, 4]).await, [2, 4]);
        let known = db.write(|tx| inbox::record(tx, "stats", Uuid::from_u128(4), at(1))).await;
        assert_eq!(known, Ok::<_, StorageError>(false));
    }

    /// Two deliveries at the same moment: the second waits for the first and finds its record.
    async fn concurrent_deliveries_have_one_effect(place: Place) {
        let db = place.open();
        let tasks: Vec<_> = (0..16).map(|n| {
            let db = db.clone();
            tokio::spawn(async move {
                db.write(move |tx| {
                    if !inbox::record(tx, "stats", Uuid::from_u128(1), at(1))? {
                        return Ok(false);
                    }
                    tx.execute("insert into numbers (n) values ($1)", params![n])?;
                    Ok::<_, StorageError>(true)
                }).await.unwrap()
            })
        }).collect();
        let mut effects = 0;
        for task in tasks {
            effects += i32::from(task.await.unwrap());
        }
        assert_eq!(effects, 1);
        assert_eq!(numbers(&db).await.len(), 1);
    }
}
