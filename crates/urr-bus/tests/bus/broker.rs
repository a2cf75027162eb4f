//! Kafka goes away and comes back.

use urr_bus::KafkaOptions;
use urr_test::servers::{self, KafkaServer, Server};

use crate::fixture::{Fixture, assert_each_seat_in_order, eventually, paint, steps};

const SEATS: usize = 250;
const STEPS: i64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_restarts_and_crashes_loses_and_repeats_nothing() {
    if !servers::available(Server::Kafka).unwrap() {
        return;
    }
    // One of its own: it is stopped.
    let mut kafka = tokio::task::spawn_blocking(|| KafkaServer::start().unwrap()).await.unwrap();
    let fixture = Fixture::on_kafka(KafkaOptions::new(kafka.bootstrap())).await;
    let (relay, consumer) = (fixture.relay(), fixture.consumer("group", paint()));
    let events = steps(&fixture, SEATS, STEPS);
    let mut parts = events.chunks(events.len() / 5);
    let mut append = async || {
        for chunk in parts.next().unwrap().chunks(50) {
            fixture.outbox_append(chunk).await;
        }
    };
    append().await;
    fixture.effects_become(100).await;

    // In order, while events are on their way both to and from it.
    let restarting = tokio::task::spawn_blocking(move || {
        kafka.restart().unwrap();
        kafka
    });
    append().await;
    let mut kafka = restarting.await.unwrap();
    append().await;
    fixture.effects_become(events.len() * 3 / 5).await;

    append().await;
    let crashing = tokio::task::spawn_blocking(move || {
        kafka.kill().unwrap();
        kafka.start_again().unwrap();
        kafka
    });
    append().await;
    let kafka = crashing.await.unwrap();
    let effects = fixture.effects_become(events.len()).await;
    assert_each_seat_in_order(&effects);
    eventually("all are marked", async || fixture.outbox_waiting().await == 0).await;
    relay.stop().await;
    consumer.stop().await;
    assert_eq!(fixture.effects().await.len(), events.len());
    assert_eq!(events.len(), 5_000);
    drop(kafka);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_and_a_consumer_stop_in_time_while_the_broker_is_away() {
    if !servers::available(Server::Kafka).unwrap() {
        return;
    }
    let mut kafka = tokio::task::spawn_blocking(|| KafkaServer::start().unwrap()).await.unwrap();
    let fixture = Fixture::on_kafka(KafkaOptions::new(kafka.bootstrap())).await;
    let (relay, consumer) = (fixture.relay(), fixture.consumer("group", paint()));
    fixture.outbox_append(&steps(&fixture, 10, 1)).await;
    fixture.effects_become(10).await;
    let kafka = tokio::task::spawn_blocking(move || {
        kafka.kill().unwrap();
        kafka
    });
    let kafka = kafka.await.unwrap();
    fixture.outbox_append(&steps(&fixture, 10, 1)).await;
    relay.stop().await;
    consumer.stop().await;
    fixture.bus.close().await;
    assert_eq!(fixture.outbox_waiting().await, 10, "they wait for the next start");
    drop(kafka);
}
