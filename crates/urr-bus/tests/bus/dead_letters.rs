//! Messages that no handler can take.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use urr_bus::dead_letters::{self, DeadLetterError, DeadLetterScope, RepeatedReplay};
use urr_bus::{BusMessage, BusMetrics, DeadLetter, Handler, HandlerOutcome, TopicSpec};
use urr_kernel::{DomainEvent, Uuid};
use urr_storage::{StorageError, params};

use crate::consumer::{Calls, violate_a_constraint};
use crate::fixture::{
    Fixture, assert_each_seat_in_order, effect_insert, eventually, metrics_text, paint, within,
};
use crate::on_both_engines;

on_both_engines![
    poison_becomes_a_dead_letter_and_does_not_stop_its_partition,
    a_replay_repairs_what_a_better_handler_can_take,
    a_replay_reaches_only_the_group_that_had_failed,
    a_failure_that_stays_is_tried_five_times,
    a_dead_letter_written_twice_is_listed_once,
    pages_of_dead_letters_are_listed_up_to_a_limit,
];

/// The key of all messages here: one partition, in which nothing may stand still.
const SEAT: Uuid = Uuid::from_u128(1);

pub async fn list(fixture: &Fixture) -> Vec<DeadLetter> {
    let topic = Some(fixture.topic.as_str());
    let listing =
        dead_letters::list(&fixture.bus, topic, DeadLetterScope::OpenAndReplayed, 1_000).await;
    listing.unwrap().letters
}

async fn letters_become(fixture: &Fixture, count: usize) -> Vec<DeadLetter> {
    eventually("dead letters", async || list(fixture).await.len() >= count).await;
    list(fixture).await
}

/// Bytes, a version and data that nobody can read, and an event on which the handler panics.
fn poison(fixture: &Fixture) -> Vec<(BusMessage, &'static str)> {
    let key = SEAT.to_string();
    let malformed = BusMessage::new(&fixture.topic, key.clone(), b"\xff\xfe{".to_vec());
    let mut future = fixture.event(SEAT, 100);
    future.specversion = "2.0".to_owned();
    let mut wrong = fixture.event(SEAT, 100);
    wrong.data = serde_json::json!({"seat": "red"});
    let mut panicking = fixture.event(SEAT, 100);
    panicking.source = "urr/panic".to_owned();
    vec![
        (malformed, "not a CloudEvents JSON document"),
        (fixture.message(&future), "has CloudEvents version \"2.0\""),
        (fixture.message(&wrong), "data of a SEAT_PAINTED is not what its type promises"),
        (fixture.message(&panicking), "a handler's bug"),
    ]
}

fn paint_or_panic() -> Handler {
    Arc::new(|tx, event, _| {
        assert_ne!(event.source, "urr/panic", "a handler's bug");
        effect_insert(tx, event)?;
        Ok(HandlerOutcome::Done)
    })
}

mod cases {
    use super::*;

    pub async fn poison_becomes_a_dead_letter_and_does_not_stop_its_partition(fixture: Fixture) {
        let poison = poison(&fixture);
        let mut messages = Vec::new();
        for (step, (bad, _)) in (0..).zip(&poison) {
            messages.push(bad.clone());
            messages.push(fixture.message(&fixture.event(SEAT, step)));
        }
        let positions = fixture.publish(messages).await;
        let consumer = fixture.consumer("group", paint_or_panic());
        assert_each_seat_in_order(&fixture.effects_become(4).await);
        consumer.stop().await;
        let letters = list(&fixture).await;
        assert_eq!(letters.len(), 4);
        for (index, (letter, (message, reason))) in letters.iter().zip(&poison).enumerate() {
            assert_eq!((&letter.key, &letter.body), (&message.key, &message.body));
            assert!(letter.reason.contains(reason), "{}", letter.reason);
            assert_eq!(letter.group, "group");
            assert_eq!(letter.original.as_ref(), Some(&positions[index * 2]));
            assert_eq!(letter.id.partition, positions[index * 2].partition);
            assert!(letter.failed_at.is_some() && !letter.is_replayed);
            let event = DomainEvent::from_bytes(&letter.body).ok();
            assert_eq!(letter.event_id, event.as_ref().map(|event| event.id));
            assert_eq!(letter.event_type, event.map(|event| event.event_type));
        }
    }

    pub async fn a_replay_repairs_what_a_better_handler_can_take(fixture: Fixture) {
        let poison = poison(&fixture);
        fixture.publish(poison.into_iter().map(|(message, _)| message).collect()).await;
        let consumer = fixture.consumer("group", paint_or_panic());
        let letters = letters_become(&fixture, 4).await;
        consumer.stop().await;

        // The panic is mended; the others stay as they are.
        let consumer = fixture.consumer("group", paint());
        let panicked = &letters[3];
        let now = fixture.clock.now();
        let replayed =
            dead_letters::replay(&fixture.bus, &panicked.id, RepeatedReplay::Refuse, now).await;
        let original = panicked.original.as_ref().unwrap();
        assert_eq!(replayed.unwrap().partition, original.partition);
        let effects = fixture.effects_become(1).await;
        assert_eq!(Some(effects[0].event_id), panicked.event_id);

        let open: Vec<bool> =
            list(&fixture).await.iter().map(|letter| letter.is_replayed).collect();
        assert_eq!(open, [false, false, false, true]);
        let twice =
            dead_letters::replay(&fixture.bus, &panicked.id, RepeatedReplay::Refuse, now).await;
        assert!(matches!(twice, Err(DeadLetterError::AlreadyReplayed(id)) if id == panicked.id));
        dead_letters::replay(&fixture.bus, &panicked.id, RepeatedReplay::Allow, now).await.unwrap();
        let mut unknown = panicked.id.clone();
        unknown.offset = 4_000;
        let nothing =
            dead_letters::replay(&fixture.bus, &unknown, RepeatedReplay::Refuse, now).await;
        assert!(matches!(nothing, Err(DeadLetterError::NotFound(_))));

        // What still cannot be read comes back as new letters.
        let replayed =
            dead_letters::replay_open(&fixture.bus, Some(&fixture.topic), now).await.unwrap();
        assert_eq!(replayed, 3);
        let letters = letters_become(&fixture, 7).await;
        assert_eq!(letters.iter().filter(|letter| !letter.is_replayed).count(), 3);
        consumer.stop().await;
        assert_eq!(fixture.effects().await.len(), 1, "the forced replay had no second effect");
    }

    pub async fn a_replay_reaches_only_the_group_that_had_failed(fixture: Fixture) {
        let (bad, _) = poison(&fixture).pop().unwrap();
        fixture.publish(vec![bad]).await;
        let good = fixture.consumer("good", paint());
        let failing = fixture.consumer("failing", paint_or_panic());
        let letters = letters_become(&fixture, 1).await;
        fixture.effects_become(1).await;
        failing.stop().await;
        // The good group forgets, as it does after its retention: the replay is still not its own.
        let forget = fixture.db.write(|tx| tx.execute("delete from inbox", &[]));
        let _: u64 = within(forget).await.unwrap();
        let mended = fixture.consumer("failing", paint());
        let now = fixture.clock.now();
        dead_letters::replay(&fixture.bus, &letters[0].id, RepeatedReplay::Refuse, now)
            .await
            .unwrap();
        fixture.publish_events(&[fixture.event(SEAT, 101)]).await;
        // Both groups are past the replay when they have had the event behind it.
        let effects = fixture.effects_become(4).await;
        good.stop().await;
        mended.stop().await;
        let times = |step| effects.iter().filter(|effect| effect.step == step).count();
        assert_eq!((times(100), times(101)), (2, 2));
    }

    pub async fn a_failure_that_stays_is_tried_five_times(fixture: Fixture) {
        let event = fixture.event(SEAT, 0);
        fixture.publish_events(std::slice::from_ref(&event)).await;
        let calls = Calls::default();
        let consumer = fixture.consumer("group", violate_a_constraint(&calls));
        let letters = letters_become(&fixture, 1).await;
        consumer.stop().await;
        // An attempt may run the handler twice: a commit group that is spoiled runs again.
        assert!((5..=10).contains(&calls.of(&event)));
        let reason = &letters[0].reason;
        assert!(reason.contains("guarded_step_is_positive"), "{reason}");
        assert!(reason.contains("(after 5 attempts)"), "{reason}");
    }

    pub async fn a_dead_letter_written_twice_is_listed_once(fixture: Fixture) {
        let (bad, _) = poison(&fixture).remove(0);
        fixture.publish(vec![bad]).await;
        let consumer = fixture.consumer("group", paint());
        letters_become(&fixture, 1).await;
        consumer.stop().await;
        // As a consumer leaves it that crashed between the letter and its acknowledgement.
        let written = fixture.bus.scan(&urr_bus::dead_letter_topic(&fixture.topic)).await.unwrap();
        let mut copy =
            BusMessage::new(&written[0].position.topic, SEAT.to_string(), &*written[0].body);
        copy.headers = written[0].headers.clone();
        copy.partition = Some(written[0].position.partition);
        let copies = fixture.publish(vec![copy]).await;
        assert_eq!(list(&fixture).await.len(), 1);
        let now = fixture.clock.now();
        dead_letters::replay_open(&fixture.bus, Some(&fixture.topic), now).await.unwrap();
        let letters = list(&fixture).await;
        assert_eq!((letters.len(), letters[0].is_replayed), (1, true));
        assert_ne!(letters[0].id, copies[0]);
    }

    pub async fn pages_of_dead_letters_are_listed_up_to_a_limit(fixture: Fixture) {
        let topic = urr_bus::dead_letter_topic(&fixture.topic);
        // Not of our making, and more than two pages of each partition.
        let letter = |n: i32| {
            let partition = Some(n % 3);
            BusMessage { partition, ..BusMessage::new(&topic, n.to_string(), "not an event") }
        };
        let ids = fixture.publish((0..3_600).map(letter).collect()).await;
        let now = fixture.clock.now();
        for id in [&ids[0], &ids[1_802], &ids[3_599]] {
            dead_letters::replay(&fixture.bus, id, RepeatedReplay::Refuse, now).await.unwrap();
            assert!(dead_letters::show(&fixture.bus, id).await.unwrap().is_replayed);
        }
        let list = async |which, limit| {
            let topic = Some(fixture.topic.as_str());
            let listing = dead_letters::list(&fixture.bus, topic, which, limit).await.unwrap();
            (listing.letters.len(), listing.is_cut)
        };
        assert_eq!(list(DeadLetterScope::Open, 3_596).await, (3_596, true));
        assert_eq!(list(DeadLetterScope::Open, 3_597).await, (3_597, false));
        assert_eq!(list(DeadLetterScope::OpenAndReplayed, 5_000).await, (3_600, false));
        let open = dead_letters::list(&fixture.bus, None, DeadLetterScope::Open, 1).await.unwrap();
        assert!(open.is_cut && open.letters.len() == 1);
        // The mark of the first is a message of its partition too, but no letter.
        let mut mark = ids[0].clone();
        mark.offset = 1_200;
        let shown = dead_letters::show(&fixture.bus, &mark).await;
        assert!(matches!(shown, Err(DeadLetterError::NotFound(_))), "{shown:?}");
    }
}

/// More than are known at a time. All but the last few were replayed.
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_can_be_listed_shown_and_replayed_however_many_there_are() {
    const LETTERS: i64 = 101_000;
    const OPEN: i64 = 3;
    let fixture = Fixture::embedded().await;
    let topic = urr_bus::dead_letter_topic(&fixture.topic);
    let (log, now) = (fixture.log(), fixture.clock.now());
    let fill = log.write(move |tx| {
        let sql = "insert into bus_message \
             (topic, partition, message_offset, key, body, headers, appended_at) \
             with recursive numbers (n) as \
             (select 0 union all select n + 1 from numbers where n < $2 - 1) \
             select $1, 0, n + $3, zeroblob(0), zeroblob(8), case when $3 = 0 then '{}' \
             else '{\"urr-replayed\":\"' || $1 || '/0/' || n || '\"}' end, $4 from numbers";
        tx.execute(sql, params![topic, LETTERS, 0, now])?;
        tx.execute(sql, params![topic, LETTERS - OPEN, LETTERS, now])?;
        let sql = "update bus_partition set next_offset = $2 where topic = $1 and partition = 0";
        tx.execute(sql, params![topic, 2 * LETTERS - OPEN])
    });
    assert_eq!(fill.await.unwrap_or_else(|error: StorageError| panic!("{error}")), 1);
    let open = async |limit| {
        let topic = Some(fixture.topic.as_str());
        let listing =
            dead_letters::list(&fixture.bus, topic, DeadLetterScope::Open, limit).await.unwrap();
        (listing.letters, listing.is_cut)
    };
    let (letters, is_cut) = open(2).await;
    assert!(is_cut);
    assert_eq!(letters[0].id.offset, LETTERS - OPEN);
    let shown = dead_letters::show(&fixture.bus, &letters[1].id).await.unwrap();
    assert_eq!(shown, letters[1]);
    dead_letters::replay(&fixture.bus, &letters[1].id, RepeatedReplay::Refuse, now).await.unwrap();
    let replayed = dead_letters::replay_open(&fixture.bus, None, now).await.unwrap();
    assert_eq!(replayed, 2);
    assert_eq!(open(2).await, (Vec::new(), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_dead_letter_cannot_be_written_is_not_acknowledged() {
    let fixture = Fixture::embedded().await;
    let (bad, _) = poison(&fixture).remove(0);
    fixture.publish(vec![bad]).await;
    // Without its topic a dead letter has nowhere to go.
    let log = fixture.log();
    let topic = urr_bus::dead_letter_topic(&fixture.topic);
    let remove = log
        .write(move |tx| tx.execute("delete from bus_partition where topic = $1", params![topic]));
    assert_eq!(remove.await.unwrap(), 3);
    let mut registry = Registry::default();
    let consumer = fixture.consumer_with("group", paint(), BusMetrics::register(&mut registry));
    eventually("it has tried", async || metrics_text(&registry).contains("retries_total{")).await;
    consumer.stop().await;
    let offsets = log.read(|tx| {
        tx.query("select next_offset from bus_group_offset", &[], |row| {
            row.get::<i64>("next_offset")
        })
    });
    assert_eq!(offsets.await.unwrap(), [0, 0, 0]);
    fixture.bus.ensure_topics(&[urr_bus::TopicSpec::new(&fixture.topic)]).await.unwrap();
    let consumer = fixture.consumer("group", paint());
    assert_eq!(letters_become(&fixture, 1).await.len(), 1);
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_whose_partition_is_missing_goes_to_another_and_can_be_replayed() {
    let fixture = Fixture::embedded().await;
    let (bad, _) = poison(&fixture).pop().unwrap();
    let original = BusMessage { partition: Some(2), ..bad };
    fixture.publish(vec![original]).await;
    let (log, topic) = (fixture.log(), urr_bus::dead_letter_topic(&fixture.topic));
    let remove = log.write(move |tx| {
        let sql = "delete from bus_partition where topic = $1 and partition > 0";
        tx.execute(sql, params![topic])
    });
    assert_eq!(remove.await.unwrap_or_else(|error: StorageError| panic!("{error}")), 2);
    let consumer = fixture.consumer("group", paint_or_panic());
    let letters = letters_become(&fixture, 1).await;
    consumer.stop().await;
    assert_eq!(letters[0].id.partition, 0);
    replay_and_paint(&fixture, &letters[0]).await;
}

async fn replay_and_paint(fixture: &Fixture, letter: &DeadLetter) {
    let now = fixture.clock.now();
    let replayed =
        dead_letters::replay(&fixture.bus, &letter.id, RepeatedReplay::Refuse, now).await.unwrap();
    assert_eq!(replayed.partition, letter.original.as_ref().unwrap().partition);
    let consumer = fixture.consumer("group", paint());
    fixture.effects_become(1).await;
    consumer.stop().await;
    assert!(list(fixture).await[0].is_replayed);
}

/// A topic with more partitions than its dead letters have.
async fn uneven_topics(fixture: &mut Fixture) {
    let Some(options) = fixture.kafka_options() else { panic!("it is on Kafka") };
    let mut config = ClientConfig::new();
    let admin: AdminClient<DefaultClientContext> =
        config.set("bootstrap.servers", &options.bootstrap).create().unwrap();
    fixture.topic = format!("{}-uneven", fixture.topic);
    let letters = urr_bus::dead_letter_topic(&fixture.topic);
    let new = [(&fixture.topic, 6), (&letters, 3)]
        .map(|(name, partitions)| NewTopic::new(name, partitions, TopicReplication::Fixed(1)));
    for created in admin.create_topics(&new, &AdminOptions::new()).await.unwrap() {
        created.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_kafka_a_dead_letter_whose_partition_is_missing_goes_to_another() {
    let Some(mut fixture) = Fixture::kafka().await else {
        return;
    };
    uneven_topics(&mut fixture).await;
    let (bad, _) = poison(&fixture).pop().unwrap();
    let original = BusMessage { partition: Some(5), ..bad };
    eventually("the topic is known", async || {
        fixture.bus.publish_one(original.clone()).await.is_ok()
    })
    .await;
    let consumer = fixture.consumer("group", paint_or_panic());
    let letters = letters_become(&fixture, 1).await;
    consumer.stop().await;
    assert!(letters[0].id.partition < 3, "{}", letters[0].id);
    replay_and_paint(&fixture, &letters[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_kafka_missing_partitions_are_created_for_topics_and_their_dead_letters() {
    let Some(mut fixture) = Fixture::kafka().await else {
        return;
    };
    let letters = urr_bus::dead_letter_topic(&fixture.topic);
    let mut spec = TopicSpec::new(&fixture.topic);
    spec.partitions = 4;
    // Two processes may start at once.
    let (specs, bus) = ([spec], &fixture.bus);
    let (one, two) = tokio::join!(bus.ensure_topics(&specs), bus.ensure_topics(&specs));
    one.and(two).unwrap();
    fixture.reopen_bus().await;
    for topic in [&fixture.topic, &letters] {
        let message = BusMessage { partition: Some(3), ..BusMessage::new(topic, "", "") };
        assert_eq!(fixture.publish(vec![message]).await[0].partition, 3);
    }
    // An operator gave the topic more partitions, and forgot the dead letters.
    uneven_topics(&mut fixture).await;
    let letters = urr_bus::dead_letter_topic(&fixture.topic);
    fixture.bus.ensure_topics(&[TopicSpec::new(&fixture.topic)]).await.unwrap();
    let message = BusMessage { partition: Some(5), ..BusMessage::new(letters, "", "") };
    assert_eq!(fixture.publish(vec![message]).await[0].partition, 5);
}
