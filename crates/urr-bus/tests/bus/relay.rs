//! From the outbox to the bus.

use std::time::Duration;

use urr_bus::relay::RelayOptions;
use urr_bus::{BusMessage, TopicSpec};
use urr_kernel::{CallContext, DomainEvent, Secret, Timestamp, Uuid};
use urr_storage::outbox::{self, EventMetadata, OutboxRow};
use urr_storage::{Db, PostgresOptions, ServiceRole, StorageError, Tx, inbox, params, provision};
use urr_test::servers::{self, Server};

use crate::fixture::{
    Fixture, SCHEMA, SeatPainted, assert_each_seat_in_order, eventually, outbox_insert, paint,
    steps, within,
};
use crate::logs::Logs;
use crate::on_both_engines;

on_both_engines![
    what_is_in_the_outbox_has_its_effect_in_order,
    a_relay_that_crashed_before_marking_repeats_without_a_second_effect,
    two_relays_take_turns_and_keep_the_order,
    an_event_without_a_topic_does_not_hold_up_others,
    pages_of_events_that_cannot_be_published_do_not_hold_up_those_behind_them,
];

mod cases {
    use super::*;

    pub async fn what_is_in_the_outbox_has_its_effect_in_order(fixture: Fixture) {
        let (relay, consumer) = (fixture.relay(), fixture.consumer("group", paint()));
        let events = steps(&fixture, 40, 30);
        for chunk in events.chunks(100) {
            fixture.outbox_append(chunk).await;
        }
        assert_each_seat_in_order(&fixture.effects_become(1_200).await);
        eventually("all are marked", async || fixture.outbox_waiting().await == 0).await;
        relay.stop().await;
        consumer.stop().await;
        assert_eq!(fixture.effects().await.len(), 1_200);
    }

    pub async fn a_relay_that_crashed_before_marking_repeats_without_a_second_effect(
        fixture: Fixture,
    ) {
        fixture.outbox_append(&steps(&fixture, 5, 4)).await;
        // What a relay does, up to the crash.
        let rows = unpublished(&fixture.db).await;
        fixture.publish(rows.iter().map(message).collect()).await;
        let relay = fixture.relay();
        eventually("all are marked", async || fixture.outbox_waiting().await == 0).await;
        relay.stop().await;
        assert_eq!(
            fixture.bus.scan(&fixture.topic).await.unwrap().len(),
            40,
            "each is there twice"
        );
        let consumer = fixture.consumer("group", paint());
        assert_each_seat_in_order(&fixture.effects_become(20).await);
        eventually("the copies are read", async || lag_is_zero(&fixture).await).await;
        consumer.stop().await;
        assert_eq!(fixture.effects().await.len(), 20);
    }

    pub async fn two_relays_take_turns_and_keep_the_order(fixture: Fixture) {
        let events = steps(&fixture, 10, 60);
        let (one, two) = (fixture.relay(), fixture.relay());
        for chunk in events[..300].chunks(10) {
            fixture.outbox_append(chunk).await;
        }
        eventually("half", async || fixture.outbox_waiting().await == 0).await;
        // The lease passes to the one that is left.
        one.stop().await;
        for chunk in events[300..].chunks(10) {
            fixture.outbox_append(chunk).await;
        }
        eventually("all", async || fixture.outbox_waiting().await == 0).await;
        two.stop().await;
        let on_the_bus = fixture.bus.scan(&fixture.topic).await.unwrap();
        assert_eq!(on_the_bus.len(), 600, "none is there twice");
        assert!(is_in_order(&on_the_bus));
    }

    pub async fn an_event_without_a_topic_does_not_hold_up_others(fixture: Fixture) {
        let lost = fixture.event(Uuid::from_u128(9), 0);
        let insert = fixture
            .db
            .write(move |tx| outbox_insert(tx, "no-such-topic", std::slice::from_ref(&lost)));
        insert.await.unwrap();
        fixture.outbox_append(&steps(&fixture, 3, 3)).await;
        let (relay, consumer) = (fixture.relay(), fixture.consumer("group", paint()));
        assert_each_seat_in_order(&fixture.effects_become(9).await);
        eventually("only one is left", async || fixture.outbox_waiting().await == 1).await;
        relay.stop().await;
        consumer.stop().await;
    }

    pub async fn pages_of_events_that_cannot_be_published_do_not_hold_up_those_behind_them(
        fixture: Fixture,
    ) {
        // More than two pages, with the second event of each seat on another page than the first.
        let late_topic = format!("{}-late", fixture.topic);
        let (topic, lost) = (late_topic.clone(), steps(&fixture, 600, 2));
        fixture.db.write(move |tx| outbox_insert(tx, &topic, &lost)).await.unwrap();
        fixture.outbox_append(&steps(&fixture, 3, 3)).await;
        let (relay, consumer) = (fixture.relay(), fixture.consumer("group", paint()));
        assert_each_seat_in_order(&fixture.effects_become(9).await);
        eventually("the others wait", async || fixture.outbox_waiting().await == 1_200).await;
        fixture.bus.ensure_topics(&[TopicSpec::new(&late_topic)]).await.unwrap();
        eventually("they had to wait only", async || fixture.outbox_waiting().await == 0).await;
        relay.stop().await;
        consumer.stop().await;
        let on_the_bus = fixture.bus.scan(&late_topic).await.unwrap();
        assert_eq!(on_the_bus.len(), 1_200, "none is there twice");
        assert!(is_in_order(&on_the_bus));
    }
}

async fn unpublished(db: &Db) -> Vec<OutboxRow> {
    db.read(|tx| outbox::unpublished(tx, 500)).await.unwrap()
}

fn message(row: &OutboxRow) -> BusMessage {
    BusMessage::new(row.topic.clone(), row.key.clone(), row.body.clone())
}

async fn lag_is_zero(fixture: &Fixture) -> bool {
    let records = fixture.bus.scan(&fixture.topic).await.unwrap().len();
    let handled = fixture.db.read(|tx| {
        tx.query_one("select count(*) as handled from inbox", &[], |row| row.get("handled"))
    });
    let handled: u64 = handled.await.unwrap();
    handled * 2 == u64::try_from(records).unwrap()
}

/// Whether each seat's steps only go up.
fn is_in_order(deliveries: &[urr_bus::Delivery]) -> bool {
    let mut last = std::collections::HashMap::new();
    deliveries.iter().all(|delivery| {
        let data: SeatPainted = DomainEvent::from_bytes(&delivery.body).unwrap().decode().unwrap();
        let before = last.insert(data.seat_id, data.step);
        before.is_none_or(|before| before < data.step)
    })
}

/// The control of the lease: two who publish without it.
#[tokio::test(flavor = "multi_thread")]
async fn two_relays_without_a_lease_repeat_and_reorder() {
    let fixture = Fixture::embedded().await;
    let seat = Uuid::from_u128(1);
    fixture.outbox_append(&[fixture.event(seat, 0)]).await;
    let slow = unpublished(&fixture.db).await;
    fixture.outbox_append(&[fixture.event(seat, 1)]).await;
    let quick = unpublished(&fixture.db).await;
    fixture.publish(quick.iter().map(message).collect()).await;
    fixture.publish(slow.iter().map(message).collect()).await;
    let on_the_bus = fixture.bus.scan(&fixture.topic).await.unwrap();
    assert_eq!(on_the_bus.len(), 3);
    assert!(!is_in_order(&on_the_bus));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_wakes_the_relay() {
    let fixture = Fixture::embedded().await;
    fixture.bus.ensure_topics(&[TopicSpec::new("paint-events")]).await.unwrap();
    // It would never look by itself while this test runs.
    let poll = Duration::from_hours(1);
    let relay = fixture.relay_with(&fixture.db, RelayOptions { poll, ..RelayOptions::default() });
    for step in 0..3 {
        let id = fixture.ids.next_id();
        let stamp = EventMetadata {
            event_id: id,
            source: "urr/test",
            time: fixture.clock.now(),
            context: CallContext::root(id),
        };
        let seat_id = Uuid::from_u128(1);
        let append =
            fixture.db.write(move |tx| outbox::append(tx, &stamp, &SeatPainted { seat_id, step }));
        append.await.unwrap();
        eventually("it is published", async || fixture.outbox_waiting().await == 0).await;
    }
    relay.stop().await;
    assert_eq!(fixture.bus.scan("paint-events").await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_died_is_replaced_when_its_lease_ends() {
    let fixture = Fixture::embedded().await;
    let lease = Duration::from_millis(300);
    let poll = Duration::from_millis(20);
    let options = RelayOptions { lease, poll, ..RelayOptions::default() };
    let dying = fixture.relay_with(&fixture.db, options.clone());
    fixture.outbox_append(&steps(&fixture, 1, 1)).await;
    eventually("the first works", async || fixture.outbox_waiting().await == 0).await;
    dying.crash().await;
    let heir = fixture.relay_with(&fixture.db, options);
    fixture.outbox_append(&steps(&fixture, 1, 1)).await;
    eventually("the second takes over", async || fixture.outbox_waiting().await == 0).await;
    heir.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_from_a_clock_far_ahead_is_not_waited_for() {
    let fixture = Fixture::embedded().await;
    let ahead = fixture.clock.now() + Duration::from_hours(9);
    let (holder, lease) = (Uuid::from_u128(1), Duration::from_secs(10));
    let take = fixture.db.write(move |tx| outbox::lease_take(tx, holder, ahead, lease));
    assert!(take.await.unwrap_or_else(|error: StorageError| panic!("{error}")));
    fixture.outbox_append(&steps(&fixture, 1, 1)).await;
    let relay = fixture.relay();
    eventually("it is published", async || fixture.outbox_waiting().await == 0).await;
    relay.stop().await;
}

#[tokio::test]
async fn a_relay_that_waits_for_another_says_so_once_if_there_is_work() {
    let (logs, _guard) = Logs::collect();
    let fixture = Fixture::embedded().await;
    let (holder, now) = (Uuid::from_u128(1), fixture.clock.now());
    let lease = Duration::from_hours(1);
    let take = fixture.db.write(move |tx| outbox::lease_take(tx, holder, now, lease));
    assert!(take.await.unwrap_or_else(|error: StorageError| panic!("{error}")));
    let (poll, lag_interval) = (Duration::from_millis(5), Duration::from_millis(5));
    let options = RelayOptions { lease, poll, lag_interval, ..RelayOptions::default() };
    let relay = fixture.relay_with(&fixture.db, options);
    fixture.outbox_append(&steps(&fixture, 1, 1)).await;
    let told = || logs.lines_with("another relay has the lease");
    eventually("it is told", async || !told().is_empty()).await;
    let release = fixture.db.write(move |tx| outbox::lease_release(tx, holder));
    release.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
    eventually("it is published", async || fixture.outbox_waiting().await == 0).await;
    relay.stop().await;
    assert!(told().len() == 1 && told()[0].starts_with("INFO"), "{:?}", told());
}

#[tokio::test]
async fn a_relay_whose_storage_is_closed_ends_loudly() {
    let (logs, _guard) = Logs::collect();
    let fixture = Fixture::embedded().await;
    fixture.db.close();
    within(fixture.relay().ended()).await;
    let lines = logs.lines_with("the storage was closed under the relay");
    assert!(lines.len() == 1 && lines[0].starts_with("ERROR"), "{lines:?}");
}

/// A relay that reads past stuck events must notice one of a lower number that was committed since.
#[tokio::test]
async fn a_late_event_is_noticed_behind_which_another_would_be_read() {
    let fixture = Fixture::embedded().await;
    fixture.outbox_append(&steps(&fixture, 4, 1)).await;
    let behind = async |seq, passed| {
        let read = fixture.db.read(move |tx| outbox::unpublished_behind(tx, seq, passed, 500));
        let rows: Option<Vec<OutboxRow>> =
            read.await.unwrap_or_else(|e: StorageError| panic!("{e}"));
        rows.map(|rows| rows.iter().map(|row| row.seq).collect::<Vec<_>>())
    };
    assert_eq!(behind(3, 3).await, Some(vec![4]));
    assert_eq!(behind(3, 2).await, None, "one of the three was not there before");
    // What another relay published in the meantime is no reason to begin anew.
    assert_eq!(behind(3, 4).await, Some(vec![4]));
}

async fn execute(db: &Db, sql: &'static str) {
    let rows: Result<u64, StorageError> = db.write(move |tx| tx.execute(sql, &[])).await;
    rows.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_that_is_refused_is_made_later_and_nothing_is_published_twice() {
    let fixture = Fixture::embedded().await;
    fixture.outbox_append(&steps(&fixture, 20, 1)).await;
    let refuse = "create trigger refuse before update on outbox \
                  begin select raise(abort, 'not now'); end";
    execute(&fixture.db, refuse).await;
    let (lease, poll) = (Duration::from_millis(300), Duration::from_millis(20));
    let options = RelayOptions { lease, poll, ..RelayOptions::default() };
    let relay = fixture.relay_with(&fixture.db, options);
    let on_the_bus = async || fixture.bus.scan(&fixture.topic).await.unwrap().len();
    eventually("they are published", async || on_the_bus().await == 20).await;
    let held_until = async || {
        let sql = "select held_until from outbox_lease";
        let read = fixture.db.read(move |tx| tx.query_one(sql, &[], |row| row.get("held_until")));
        let held_until: Result<Timestamp, StorageError> = read.await;
        held_until.unwrap()
    };
    // A renewed lease shows that it went on, and nobody else can take over.
    for _ in 0..3 {
        let before = held_until().await;
        eventually("the lease is renewed", async || held_until().await > before).await;
    }
    assert_eq!(fixture.outbox_waiting().await, 20);
    execute(&fixture.db, "drop trigger refuse").await;
    eventually("they are marked", async || fixture.outbox_waiting().await == 0).await;
    relay.stop().await;
    assert_eq!(on_the_bus().await, 20);
}

/// Each look at the log takes the bus's only writer.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_of_the_outbox_does_not_trim_the_bus_again_and_again() {
    let fixture = Fixture::embedded().await;
    let mut spec = TopicSpec::new(&fixture.topic);
    spec.retention = Duration::ZERO;
    fixture.bus.ensure_topics(&[spec]).await.unwrap();
    fixture.publish_events(&steps(&fixture, 1, 1)).await;
    fixture.outbox_append(&steps(&fixture, 1, 300)).await;
    execute(&fixture.db, "update outbox set published_at = created_at").await;
    let options = RelayOptions {
        poll: Duration::from_millis(20),
        outbox_retention: Duration::ZERO,
        purge_interval: Duration::from_hours(1),
        purge_max: 2,
        ..RelayOptions::default()
    };
    let relay = fixture.relay_with(&fixture.db, options);
    let on_the_bus = async || fixture.bus.scan(&fixture.topic).await.unwrap().len();
    eventually("the bus was trimmed", async || on_the_bus().await == 0).await;
    let rows = async || {
        let sql = "select count(*) as rows from outbox";
        let read = fixture.db.read(move |tx| tx.query_one(sql, &[], |row| row.get("rows")));
        let rows: Result<u64, StorageError> = read.await;
        rows.unwrap()
    };
    fixture.publish_events(&steps(&fixture, 1, 1)).await;
    assert!(rows().await > 100, "there is a backlog");
    eventually("the backlog is gone", async || rows().await == 0).await;
    relay.stop().await;
    assert_eq!(on_the_bus().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_old_is_forgotten() {
    let fixture = Fixture::embedded().await;
    fixture.outbox_append(&steps(&fixture, 1, 5)).await;
    let now = fixture.clock.now();
    let note = fixture.db.write(move |tx| inbox::record(tx, "group", Uuid::from_u128(1), now));
    note.await.unwrap();
    let options = RelayOptions {
        poll: Duration::from_millis(20),
        outbox_retention: Duration::ZERO,
        inbox_retention: Duration::ZERO,
        lag_interval: Duration::from_millis(20),
        purge_interval: Duration::from_millis(20),
        ..RelayOptions::default()
    };
    let relay = fixture.relay_with(&fixture.db, options);
    eventually("nothing is left", async || {
        let rows = fixture.db.read(|tx| {
            let sql = "select (select count(*) from outbox) + (select count(*) from inbox) as rows";
            tx.query_one(sql, &[], |row| row.get("rows"))
        });
        let rows: u64 = rows.await.unwrap();
        rows == 0
    })
    .await;
    relay.stop().await;
    assert_eq!(fixture.bus.scan(&fixture.topic).await.unwrap().len(), 5);
}

/// A database on PostgreSQL, where transactions run side by side. None where it cannot be started.
fn postgres(fixture: &Fixture) -> Option<Db> {
    if !servers::available(Server::Postgres).unwrap() {
        return None;
    }
    let admin_url = servers::shared_postgres().unwrap().create_database("bus").unwrap();
    let role = format!("bus_test_{}", fixture.ids.next_id().simple());
    let password = Secret::new("a password for a test");
    let role = ServiceRole { name: role, password };
    provision(&admin_url, &SCHEMA, &role, fixture.clock.now()).unwrap();
    let (_, address) = admin_url.split_once('@').unwrap();
    let password = role.password.expose().replace(' ', "%20");
    let url = format!("postgres://{}:{password}@{address}", role.name);
    Some(Db::open_postgres(&PostgresOptions::new(url, SCHEMA.name)).unwrap())
}

/// What not to do: asks for rows beyond the highest number seen.
fn read_beyond(tx: &mut Tx<'_>, seen: i64) -> Result<Vec<i64>, StorageError> {
    let sql = "select seq from outbox where seq > $1 order by seq";
    tx.query(sql, params![seen], |row| row.get("seq"))
}

#[test]
fn an_event_whose_transaction_commits_late_is_not_skipped() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(Fixture::embedded());
    // Opening PostgreSQL blocks, so it is done outside the runtime.
    let Some(db) = postgres(&fixture) else { return };
    runtime.block_on(async {
        let seats = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let (late, early) = (fixture.event(seats[0], 0), fixture.event(seats[1], 0));
        let (written, mut is_written) = tokio::sync::mpsc::unbounded_channel();
        let (commit, may_commit) = std::sync::mpsc::channel::<()>();
        let late_write = {
            let (db, topic, late) = (db.clone(), fixture.topic.clone(), late.clone());
            tokio::spawn(async move {
                let write = db.write(move |tx| {
                    outbox_insert(tx, &topic, std::slice::from_ref(&late))?;
                    written.send(()).unwrap();
                    may_commit.recv().unwrap();
                    Ok::<(), StorageError>(())
                });
                write.await.unwrap();
            })
        };
        is_written.recv().await.unwrap();
        let topic = fixture.topic.clone();
        let early_event = early.clone();
        let write =
            db.write(move |tx| outbox_insert(tx, &topic, std::slice::from_ref(&early_event)));
        write.await.unwrap();

        let relay = fixture.relay_on(&db);
        let on_the_bus = async || fixture.bus.scan(&fixture.topic).await.unwrap();
        eventually("the early one", async || on_the_bus().await.len() == 1).await;
        let seen = db.read(|tx| read_beyond(tx, 0)).await.unwrap();
        assert_eq!(seen, [2], "the later number is committed first");

        commit.send(()).unwrap();
        late_write.await.unwrap();
        let beyond = db.read(|tx| read_beyond(tx, 2)).await.unwrap();
        assert!(beyond.is_empty(), "who remembers the highest number never sees it");
        eventually("the late one", async || on_the_bus().await.len() == 2).await;
        relay.stop().await;
        let ids: std::collections::BTreeSet<Uuid> = on_the_bus()
            .await
            .iter()
            .map(|delivery| DomainEvent::from_bytes(&delivery.body).unwrap().id)
            .collect();
        assert_eq!(ids, [late.id, early.id].into());
    });
    db.close();
}
