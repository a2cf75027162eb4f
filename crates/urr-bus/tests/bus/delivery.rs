//! Publishing and subscribing.

use std::time::Duration;

use urr_bus::{BusError, BusMessage, KafkaOptions, MessagePosition, Subscription};
use urr_kernel::Timestamp;
use urr_storage::{StorageError, params};
use urr_test::servers::{self, Server};

use crate::fixture::{Fixture, within};
use crate::logs::Logs;
use crate::on_both_engines;

on_both_engines![
    messages_of_one_key_arrive_in_the_order_they_were_published,
    key_body_and_headers_arrive_as_they_were_sent,
    every_group_gets_every_message,
    a_restarted_group_goes_on_where_it_acknowledged,
    an_unacknowledged_batch_comes_again,
    a_waiting_subscription_is_woken_by_a_message,
    a_message_for_an_unknown_topic_fails_and_the_others_do_not,
    the_lag_is_what_was_not_acknowledged,
];

mod cases {
    use super::*;

    fn numbered(fixture: &Fixture, count: usize) -> Vec<BusMessage> {
        let message = |number: usize| {
            BusMessage::new(&fixture.topic, format!("key {}", number % 20), number.to_string())
        };
        (0..count).map(message).collect()
    }

    fn number(body: &[u8]) -> usize {
        String::from_utf8(body.to_vec()).unwrap().parse().unwrap()
    }

    pub async fn messages_of_one_key_arrive_in_the_order_they_were_published(fixture: Fixture) {
        let positions = fixture.publish(numbered(&fixture, 600)).await;
        let partitions: std::collections::BTreeSet<_> =
            positions.iter().map(|position| position.partition).collect();
        assert_eq!(partitions.len(), 3, "the keys are spread");
        let deliveries = fixture.read("group", 600).await;
        let mut last_of_key = std::collections::HashMap::new();
        let mut next_of_partition = std::collections::HashMap::new();
        for delivery in &deliveries {
            let number = number(&delivery.body);
            if let Some(last) = last_of_key.insert(delivery.key.clone(), number) {
                assert_eq!(number, last + 20);
            }
            assert_eq!(positions[number], delivery.position);
            let next = next_of_partition.entry(delivery.position.partition).or_insert(0);
            assert_eq!(delivery.position.offset, *next);
            *next += 1;
        }
        assert_eq!(deliveries.len(), 600);
    }

    pub async fn key_body_and_headers_arrive_as_they_were_sent(fixture: Fixture) {
        let mut message =
            BusMessage::new(&fixture.topic, b"\xff\x00key".to_vec(), b"\x00\xfe".to_vec());
        message.headers.insert("name".to_owned(), "wert/값".to_owned());
        message.partition = Some(2);
        let no_key = BusMessage::new(&fixture.topic, "", "");
        fixture.publish(vec![message.clone(), no_key]).await;
        let mut deliveries = fixture.read("group", 2).await;
        deliveries.sort_by_key(|delivery| delivery.key.is_empty());
        let delivery = &deliveries[0];
        assert_eq!((&delivery.key, &delivery.body), (&message.key, &message.body));
        assert_eq!((&delivery.headers, delivery.position.partition), (&message.headers, 2));
        assert_eq!((deliveries[1].key.len(), deliveries[1].body.len()), (0, 0));
    }

    pub async fn every_group_gets_every_message(fixture: Fixture) {
        fixture.publish(numbered(&fixture, 50)).await;
        let (ticket, stats) = tokio::join!(fixture.read("ticket", 50), fixture.read("stats", 50));
        let numbers = |deliveries: Vec<urr_bus::Delivery>| {
            let mut numbers: Vec<_> = deliveries.iter().map(|d| number(&d.body)).collect();
            numbers.sort_unstable();
            numbers
        };
        let all: Vec<usize> = (0..50).collect();
        assert_eq!(numbers(ticket), all);
        assert_eq!(numbers(stats), all);
    }

    pub async fn a_restarted_group_goes_on_where_it_acknowledged(mut fixture: Fixture) {
        let messages = numbered(&fixture, 30);
        fixture.publish(messages[..20].to_vec()).await;
        fixture.read("group", 20).await;
        fixture.reopen_bus().await;
        fixture.publish(messages[20..].to_vec()).await;
        let mut numbers: Vec<usize> =
            fixture.read("group", 10).await.iter().map(|d| number(&d.body)).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (20..30).collect::<Vec<_>>());
    }

    pub async fn an_unacknowledged_batch_comes_again(mut fixture: Fixture) {
        fixture.publish(numbered(&fixture, 1)).await;
        let topics = [fixture.topic.clone()];
        let mut subscription = fixture.bus.subscribe("group", &topics).await.unwrap();
        let first = within(subscription.next_batch()).await.unwrap();
        subscription.close().await;
        fixture.reopen_bus().await;
        let mut subscription = fixture.bus.subscribe("group", &topics).await.unwrap();
        let second = within(subscription.next_batch()).await.unwrap();
        assert_eq!(first, second);
        subscription.close().await;
    }

    pub async fn a_waiting_subscription_is_woken_by_a_message(fixture: Fixture) {
        let topics = [fixture.topic.clone()];
        let mut subscription = fixture.bus.subscribe("group", &topics).await.unwrap();
        // A batch before this one shows that the subscription is in place.
        fixture.publish(numbered(&fixture, 1)).await;
        let batch = within(subscription.next_batch()).await.unwrap();
        subscription.acknowledge(&batch).await.unwrap();
        let (batch, positions) =
            tokio::join!(within(subscription.next_batch()), fixture.publish(numbered(&fixture, 1)));
        assert_eq!(batch.unwrap().deliveries[0].position, positions[0]);
        subscription.close().await;
    }

    pub async fn a_message_for_an_unknown_topic_fails_and_the_others_do_not(fixture: Fixture) {
        let mut messages = numbered(&fixture, 3);
        messages[1].topic = format!("{}-unknown", fixture.topic);
        let results = within(fixture.bus.publish(messages)).await;
        assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
        // Kafka's client may say that it waited in vain for the topic to appear.
        let unknown =
            matches!(&results[1], Err(BusError::UnknownTopic(_) | BusError::Kafka { .. }));
        assert!(unknown, "{:?}", results[1]);
        assert_eq!(fixture.read("group", 2).await.len(), 2);
    }

    pub async fn the_lag_is_what_was_not_acknowledged(fixture: Fixture) {
        fixture.publish(numbered(&fixture, 40)).await;
        let topics = [fixture.topic.clone()];
        let mut subscription = fixture.bus.subscribe("group", &topics).await.unwrap();
        let mut read = 0;
        let mut batches = Vec::new();
        while read < 40 {
            let batch = within(subscription.next_batch()).await.unwrap();
            read += batch.deliveries.len();
            batches.push(batch);
        }
        let reader = subscription.lag_reader();
        let total = async || {
            let lags = reader.lag().await.unwrap();
            lags.iter().map(|lag| lag.messages).sum::<i64>()
        };
        assert_eq!(total().await, 40);
        for batch in &batches {
            subscription.acknowledge(batch).await.unwrap();
        }
        assert_eq!(total().await, 0);
        subscription.close().await;
    }
}

#[tokio::test]
async fn on_the_embedded_bus_a_second_consumer_of_a_group_is_refused_until_the_first_leaves() {
    let fixture = Fixture::embedded().await;
    let topics = [fixture.topic.clone()];
    let first = fixture.bus.subscribe("group", &topics).await.unwrap();
    let second = fixture.bus.subscribe("group", &topics).await;
    assert!(matches!(second, Err(BusError::GroupBusy { .. })));
    assert!(fixture.bus.subscribe("another group", &topics).await.is_ok());
    first.close().await;
    assert!(fixture.bus.subscribe("group", &topics).await.is_ok());
}

#[tokio::test]
async fn the_embedded_bus_forgets_old_messages_that_every_group_has_read() {
    let fixture = Fixture::embedded().await;
    let topics = [fixture.topic.clone()];
    fixture
        .publish((0..9).map(|n| BusMessage::new(&fixture.topic, "key", n.to_string())).collect())
        .await;
    let later = fixture.clock.now() + Duration::from_hours(24 * 8);
    // A group that has subscribed but read nothing holds everything back.
    let slow = fixture.bus.subscribe("slow", &topics).await.unwrap();
    fixture.read("quick", 9).await;
    assert_eq!(fixture.bus.trim(later, 100).await.unwrap(), 0);
    drop(slow);
    fixture.read("slow", 9).await;
    assert_eq!(fixture.bus.trim(fixture.clock.now(), 100).await.unwrap(), 0, "it is not old yet");
    assert_eq!(fixture.bus.trim(later, 4).await.unwrap(), 4);
    assert_eq!(fixture.bus.trim(later, 100).await.unwrap(), 5);
    // Offsets go on where they were.
    let positions = fixture.publish(vec![BusMessage::new(&fixture.topic, "key", "9")]).await;
    assert_eq!(positions[0].offset, 9);
}

/// The log of a week is long, and trimming it is done by its only writer.
#[tokio::test]
async fn the_embedded_bus_looks_at_no_more_messages_than_it_may_forget() {
    let fixture = Fixture::embedded().await;
    fixture
        .publish((0..9).map(|n| BusMessage::new(&fixture.topic, "key", n.to_string())).collect())
        .await;
    // One that is old, behind more young ones than a look may take in.
    let log = fixture.log();
    let age = log.write(|tx| {
        let sql = "update bus_message set appended_at = $1 where message_offset = 8";
        tx.execute(sql, params![Timestamp::UNIX_EPOCH])
    });
    assert_eq!(age.await.unwrap_or_else(|error: StorageError| panic!("{error}")), 1);
    let now = fixture.clock.now();
    assert_eq!(fixture.bus.trim(now, 8).await.unwrap(), 0);
    assert_eq!(fixture.bus.trim(now, 9).await.unwrap(), 1);
}

#[tokio::test]
async fn the_embedded_bus_waits_for_a_group_that_reads_nothing_no_longer_than_four_retentions() {
    let (logs, _guard) = Logs::collect();
    let fixture = Fixture::embedded().await;
    let topics = [fixture.topic.clone()];
    drop(fixture.bus.subscribe("abandoned", &topics).await.unwrap());
    fixture
        .publish((0..9).map(|n| BusMessage::new(&fixture.topic, "key", n.to_string())).collect())
        .await;
    fixture.read("quick", 9).await;
    let later = |days: u64| fixture.clock.now() + Duration::from_hours(24 * days);
    assert_eq!(fixture.bus.trim(later(27), 100).await.unwrap(), 0);
    let told = || logs.lines_with("messages were deleted that these groups never read");
    assert!(told().is_empty());
    assert_eq!(fixture.bus.trim(later(29), 4).await.unwrap(), 4);
    assert_eq!(told().len(), 1);
    assert!(told()[0].starts_with("ERROR") && told()[0].contains("unread=4"), "{:?}", told());
    assert!(told()[0].contains("abandoned") && !told()[0].contains("quick"), "{:?}", told());
    // It goes on with what is left.
    let bodies = fixture.read("abandoned", 5).await.into_iter().map(|delivery| delivery.body);
    assert_eq!(bodies.collect::<Vec<_>>(), [b"4", b"5", b"6", b"7", b"8"]);
    assert_eq!(fixture.bus.trim(later(29), 2).await.unwrap(), 2);
    assert_eq!(fixture.bus.trim(later(29), 100).await.unwrap(), 3);
    assert_eq!(told().len(), 1, "these were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_kafka_a_partition_that_was_paused_lost_and_regained_is_read_again() {
    if !servers::available(Server::Kafka).unwrap() {
        return;
    }
    let mut options = KafkaOptions::new(servers::shared_kafka().unwrap().bootstrap());
    options.session_timeout = Duration::from_secs(6);
    options.poll_interval_max = Duration::from_secs(6);
    let pause_after = options.poll_interval_max / 10;
    let fixture = Fixture::on_kafka(options).await;
    let publish_to_each = async || {
        let mut messages = vec![BusMessage::new(&fixture.topic, "", ""); 3];
        (0..).zip(&mut messages).for_each(|(number, message)| message.partition = Some(number));
        fixture.publish(messages).await
    };
    let topics = [fixture.topic.clone()];
    let mut first = fixture.bus.subscribe("group", &topics).await.unwrap();
    read_all(&mut first, publish_to_each().await).await;

    // The first is busy for long and has paused when the second takes a partition from it.
    let busy = tokio::time::timeout(pause_after * 2, first.keep_alive()).await;
    assert!(busy.is_err());
    let mut second = fixture.bus.subscribe("group", &topics).await.unwrap();
    let mut positions = publish_to_each().await;
    let batch = tokio::select! {
        batch = within(second.next_batch()) => batch.unwrap(),
        never = first.keep_alive() => match never {},
    };
    second.acknowledge(&batch).await.unwrap();
    positions.retain(|position| batch.deliveries.iter().all(|d| d.position != *position));
    assert!((1..3).contains(&positions.len()), "each has some: {positions:?}");
    read_all(&mut first, positions).await;

    second.close().await;
    read_all(&mut first, publish_to_each().await).await;
    first.close().await;
}

/// Reads until all of these have come.
async fn read_all(subscription: &mut Subscription, mut positions: Vec<MessagePosition>) {
    while !positions.is_empty() {
        let batch = within(subscription.next_batch()).await.unwrap();
        subscription.acknowledge(&batch).await.unwrap();
        positions.retain(|position| batch.deliveries.iter().all(|d| d.position != *position));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_kafka_two_consumers_of_a_group_share_the_messages() {
    let Some(fixture) = Fixture::kafka().await else {
        return;
    };
    let topics = [fixture.topic.clone()];
    let mut one = fixture.bus.subscribe("group", &topics).await.unwrap();
    let mut two = fixture.bus.subscribe("group", &topics).await.unwrap();
    // Messages are published until both have got some: the second joins while the first reads.
    let (mut of_one, mut of_two) = (0, 0);
    while of_one == 0 || of_two == 0 {
        let key = |n: u8| BusMessage::new(&fixture.topic, vec![n], "body");
        fixture.publish((0..30).map(key).collect()).await;
        tokio::select! {
            batch = within(one.next_batch()) => {
                let batch = batch.unwrap();
                one.acknowledge(&batch).await.unwrap();
                of_one += batch.deliveries.len();
            }
            batch = within(two.next_batch()) => {
                let batch = batch.unwrap();
                two.acknowledge(&batch).await.unwrap();
                of_two += batch.deliveries.len();
            }
        }
    }
    one.close().await;
    two.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_the_same_partition_on_both_engines() {
    let Some(kafka) = Fixture::kafka().await else {
        return;
    };
    let embedded = Fixture::embedded().await;
    let partitions = async |fixture: Fixture| {
        let message = |n: u32| BusMessage::new(&fixture.topic, format!("key {n}"), "");
        let positions = fixture.publish((0..200).map(message).collect()).await;
        positions.iter().map(|position| position.partition).collect::<Vec<_>>()
    };
    assert_eq!(partitions(kafka).await, partitions(embedded).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_kafka_a_message_that_fails_holds_back_those_of_its_key_behind_it() {
    let Some(fixture) = Fixture::kafka().await else {
        return;
    };
    // More than the client takes.
    let large = vec![0; 2_000_000];
    let messages = vec![
        BusMessage::new(&fixture.topic, "key", "before"),
        BusMessage::new(&fixture.topic, "key", large),
        BusMessage::new(&fixture.topic, "key", "behind"),
        BusMessage::new(&fixture.topic, "key", "far behind"),
        BusMessage::new(&fixture.topic, "another key", "beside"),
    ];
    let results = within(fixture.bus.publish(messages)).await;
    assert!(results[0].is_ok() && results[4].is_ok(), "{results:?}");
    assert!(matches!(results[1], Err(BusError::Kafka { .. })), "{results:?}");
    assert!(matches!(results[2], Err(BusError::HeldBack)), "{results:?}");
    assert!(matches!(results[3], Err(BusError::HeldBack)), "{results:?}");
    assert_eq!(fixture.bus.scan(&fixture.topic).await.unwrap().len(), 2);
}
