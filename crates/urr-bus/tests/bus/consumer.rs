//! From a message to its effect, once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use urr_bus::{BusMetrics, EventHandler, HandleError, Handler, HandlerOutcome, KafkaOptions};
use urr_kernel::{DomainEvent, Uuid};
use urr_storage::{StorageError, params};
use urr_test::servers::{self, Server};

use crate::dead_letters::list;
use crate::fixture::{
    Fixture, assert_each_seat_in_order, effect_insert, eventually, metrics_text, paint, steps,
    within,
};
use crate::logs::Logs;
use crate::on_both_engines;

on_both_engines![
    each_event_has_its_effect_and_keys_keep_their_order,
    a_message_delivered_twice_has_one_effect,
    without_an_inbox_a_message_delivered_twice_has_two_effects,
    a_repeatable_handler_gets_a_repeated_message_and_has_no_inbox,
    two_groups_have_their_own_effects,
    a_consumer_that_crashes_again_and_again_loses_and_repeats_nothing,
    a_business_rejection_is_kept_and_never_tried_again,
    an_outage_is_waited_for_while_other_keys_go_on,
    an_unknown_outcome_is_tried_again,
    what_is_to_be_done_after_the_commit_is_done_once_and_never_without_it,
    what_is_not_for_us_is_ignored,
    the_events_of_a_batch_share_transactions,
    a_type_that_is_not_consumed_costs_no_transaction,
    an_event_that_cannot_be_handled_harms_no_other_of_its_batch,
];

/// How often the handler was called for each event.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<HashMap<Uuid, u32>>>);

impl Calls {
    pub fn count(&self, event: &DomainEvent) -> u32 {
        let mut calls = self.0.lock().unwrap();
        let count = calls.entry(event.id).or_insert(0);
        *count += 1;
        *count
    }

    pub fn of(&self, event: &DomainEvent) -> u32 {
        self.0.lock().unwrap().get(&event.id).copied().unwrap_or(0)
    }
}

mod cases {
    use super::*;

    pub async fn each_event_has_its_effect_and_keys_keep_their_order(fixture: Fixture) {
        fixture.publish_events(&steps(&fixture, 25, 40)).await;
        let consumer = fixture.consumer("group", paint());
        assert_each_seat_in_order(&fixture.effects_become(1_000).await);
        consumer.stop().await;
        assert_eq!(fixture.effects().await.len(), 1_000);
    }

    pub async fn a_message_delivered_twice_has_one_effect(fixture: Fixture) {
        let (twice, after) =
            (fixture.event(Uuid::from_u128(1), 0), fixture.event(Uuid::from_u128(1), 1));
        fixture.publish_events(&[twice.clone(), twice, after]).await;
        let consumer = fixture.consumer("group", paint());
        // The last message of the key comes behind both copies.
        assert_each_seat_in_order(&fixture.effects_become(2).await);
        consumer.stop().await;
        assert_eq!(fixture.effects().await.len(), 2);
    }

    /// The control of the case above: it is the inbox that makes it one.
    pub async fn without_an_inbox_a_message_delivered_twice_has_two_effects(fixture: Fixture) {
        let twice = fixture.event(Uuid::from_u128(1), 0);
        fixture.publish_events(&[twice.clone(), twice]).await;
        for delivery in fixture.read("group", 2).await {
            let event = DomainEvent::from_bytes(&delivery.body).unwrap();
            let effect = fixture.db.write(move |tx| effect_insert(tx, &event));
            effect.await.unwrap();
        }
        assert_eq!(fixture.effects().await.len(), 2);
    }

    pub async fn a_repeatable_handler_gets_a_repeated_message_and_has_no_inbox(fixture: Fixture) {
        let seat = Uuid::from_u128(1);
        let (twice, last) = (fixture.event(seat, 0), fixture.event(seat, 1));
        let calls = Calls::default();
        let counted = calls.clone();
        let handler = EventHandler::Repeatable(Arc::new(move |tx, events| {
            for (event, _) in events {
                counted.count(event);
                effect_insert(tx, event)?;
            }
            Ok(vec![HandlerOutcome::Done; events.len()])
        }));
        fixture.publish_events(std::slice::from_ref(&twice)).await;
        let consumer = fixture.consumer("group", handler);
        fixture.effects_become(1).await;
        fixture.publish_events(&[twice.clone(), last]).await;
        fixture.effects_become(3).await;
        consumer.stop().await;
        assert_eq!(calls.of(&twice), 2);
        let rows = fixture.db.read(|tx| {
            tx.query_one("select count(*) as rows from inbox", &[], |row| row.get("rows"))
        });
        assert_eq!(rows.await, Ok::<u64, StorageError>(0));
    }

    pub async fn two_groups_have_their_own_effects(fixture: Fixture) {
        fixture.publish_events(&steps(&fixture, 5, 4)).await;
        let (ticket, stats) =
            (fixture.consumer("ticket", paint()), fixture.consumer("stats", paint()));
        let effects = fixture.effects_become(40).await;
        let mut times = HashMap::new();
        for effect in effects {
            *times.entry(effect.event_id).or_insert(0) += 1;
        }
        assert_eq!(times.len(), 20);
        assert!(times.values().all(|count| *count == 2), "{times:?}");
        ticket.stop().await;
        stats.stop().await;
    }

    pub async fn a_consumer_that_crashes_again_and_again_loses_and_repeats_nothing(
        fixture: Fixture,
    ) {
        fixture.publish_events(&steps(&fixture, 20, 60)).await;
        for wanted in [100, 400, 800] {
            let consumer = fixture.consumer("group", paint());
            fixture.effects_become(wanted).await;
            consumer.crash().await;
        }
        let consumer = fixture.consumer("group", paint());
        assert_each_seat_in_order(&fixture.effects_become(1_200).await);
        consumer.stop().await;
        assert_eq!(fixture.effects().await.len(), 1_200);
    }

    pub async fn a_business_rejection_is_kept_and_never_tried_again(fixture: Fixture) {
        let seat = Uuid::from_u128(1);
        let events = [fixture.event(seat, 0), fixture.event(seat, 1)];
        fixture.publish_events(&events).await;
        let calls = Calls::default();
        let handler: Handler = {
            let calls = calls.clone();
            Arc::new(move |tx, event, _| {
                calls.count(event);
                // The compensation of a rejection is written with it.
                effect_insert(tx, event)?;
                let reason = "the paint is sold out".to_owned();
                Ok(HandlerOutcome::Rejected { reason })
            })
        };
        let mut registry = Registry::default();
        let metrics = BusMetrics::register(&mut registry);
        let consumer = fixture.consumer_with("group", handler, metrics);
        assert_each_seat_in_order(&fixture.effects_become(2).await);
        consumer.stop().await;
        let text = metrics_text(&registry);
        assert!(text.contains("outcome=\"rejected\"} 2"), "{text}");
        assert!(!text.contains("urr_bus_dead_letters_total{"), "{text}");
        assert_eq!((calls.of(&events[0]), calls.of(&events[1])), (1, 1));
        assert_eq!(list(&fixture).await, []);
    }

    pub async fn an_outage_is_waited_for_while_other_keys_go_on(fixture: Fixture) {
        let (down, up) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let events: Vec<DomainEvent> =
            [down, up].iter().flat_map(|seat| (0..3).map(|n| fixture.event(*seat, n))).collect();
        fixture.publish_events(&events).await;
        let is_down = Arc::new(AtomicBool::new(true));
        let calls = Calls::default();
        let handler: Handler = {
            let (is_down, calls) = (Arc::clone(&is_down), calls.clone());
            Arc::new(move |tx, event, _| {
                calls.count(event);
                if event.subject == down.to_string() && is_down.load(Ordering::SeqCst) {
                    let reason = "the server is away".to_owned();
                    return Err(StorageError::Unavailable(reason).into());
                }
                effect_insert(tx, event)?;
                Ok(HandlerOutcome::Done)
            })
        };
        let consumer = fixture.consumer("group", handler);
        let effects = fixture.effects_become(3).await;
        assert!(effects.iter().all(|effect| effect.seat_id == up), "{effects:?}");
        // More attempts than a failure that is not an outage would get.
        eventually("attempts", async || calls.of(&events[0]) > 6).await;
        assert_eq!(calls.of(&events[1]), 0, "the next of the key waits");
        assert_eq!(fixture.effects().await.len(), 3);
        is_down.store(false, Ordering::SeqCst);
        assert_each_seat_in_order(&fixture.effects_become(6).await);
        consumer.stop().await;
        assert_eq!(list(&fixture).await, []);
    }

    pub async fn an_unknown_outcome_is_tried_again(fixture: Fixture) {
        let event = fixture.event(Uuid::from_u128(1), 0);
        fixture.publish_events(std::slice::from_ref(&event)).await;
        let calls = Calls::default();
        let handler: Handler = {
            let calls = calls.clone();
            Arc::new(move |tx, event, _| {
                if calls.count(event) < 7 {
                    let reason = "the connection broke".to_owned();
                    return Err(StorageError::OutcomeUnknown(reason).into());
                }
                effect_insert(tx, event)?;
                Ok(HandlerOutcome::Done)
            })
        };
        let consumer = fixture.consumer("group", handler);
        fixture.effects_become(1).await;
        consumer.stop().await;
        assert_eq!(calls.of(&event), 7);
    }

    pub async fn what_is_to_be_done_after_the_commit_is_done_once_and_never_without_it(
        fixture: Fixture,
    ) {
        let events = steps(&fixture, 1, 3);
        fixture.publish_events(&events).await;
        let poison = events[1].id;
        let (calls, done) = (Calls::default(), Calls::default());
        let handler: Handler = {
            let (calls, done) = (calls.clone(), done.clone());
            Arc::new(move |tx, event, context| {
                let (noted, done) = (event.clone(), done.clone());
                context.after_commit(move || {
                    done.count(&noted);
                });
                if event.id == poison {
                    return Err(HandleError::Poison("it can never be handled".to_owned()));
                }
                // Undone twice, with all that it asked for.
                if calls.count(event) < 3 {
                    let reason = "the connection broke".to_owned();
                    return Err(StorageError::OutcomeUnknown(reason).into());
                }
                effect_insert(tx, event)?;
                Ok(HandlerOutcome::Done)
            })
        };
        let consumer = fixture.consumer("group", handler);
        fixture.effects_become(2).await;
        consumer.stop().await;
        assert_eq!([0, 1, 2].map(|index| done.of(&events[index])), [1, 0, 1]);
        assert!(calls.of(&events[0]) >= 3, "the control: it ran more than once");
    }

    pub async fn what_is_not_for_us_is_ignored(fixture: Fixture) {
        let seat = Uuid::from_u128(1);
        let mut foreign = fixture.event(seat, 7);
        foreign.event_type = "SEAT_SOLD".to_owned();
        fixture.publish_events(&[foreign, fixture.event(seat, 0)]).await;
        let handler: Handler = Arc::new(|tx, event, _| match event.event_type.as_str() {
            "SEAT_PAINTED" => {
                effect_insert(tx, event)?;
                Ok(HandlerOutcome::Done)
            }
            _ => Ok(HandlerOutcome::Ignored),
        });
        let consumer = fixture.consumer("group", handler);
        assert_each_seat_in_order(&fixture.effects_become(1).await);
        consumer.stop().await;
        assert_eq!(list(&fixture).await, []);
    }

    pub async fn the_events_of_a_batch_share_transactions(fixture: Fixture) {
        fixture.publish_events(&steps(&fixture, 25, 20)).await;
        let consumer = fixture.consumer("group", paint());
        assert_each_seat_in_order(&fixture.effects_become(500).await);
        consumer.stop().await;
        // Kafka may hand them over in many small batches.
        let committed = fixture.db.stats().committed;
        assert!(committed < 250, "500 events took {committed} transactions");
    }

    pub async fn a_type_that_is_not_consumed_costs_no_transaction(fixture: Fixture) {
        let seat = Uuid::from_u128(1);
        let mut foreign: Vec<_> = (0..20).map(|step| fixture.event(seat, step)).collect();
        for event in &mut foreign {
            event.event_type = "SEAT_SOLD".to_owned();
        }
        fixture.publish_events(&foreign).await;
        fixture.publish_events(&[fixture.event(seat, 0)]).await;
        let calls = Calls::default();
        let handler: Handler = {
            let calls = calls.clone();
            Arc::new(move |tx, event, _| {
                calls.count(event);
                let painted =
                    DomainEvent { event_type: "SEAT_PAINTED".to_owned(), ..event.clone() };
                effect_insert(tx, &painted)?;
                Ok(HandlerOutcome::Done)
            })
        };
        let consumer = fixture.consumer_of("group", Some(&["SEAT_PAINTED"]), handler);
        fixture.effects_become(1).await;
        consumer.stop().await;
        assert_eq!(fixture.lags("group").await, 0, "the others are acknowledged");
        assert_eq!(fixture.effects().await.len(), 1, "the event of the consumed type");
        assert_eq!(fixture.db.stats().committed, 1);
        assert!(foreign.iter().all(|event| calls.of(event) == 0));
        assert_eq!(list(&fixture).await, []);
    }

    pub async fn an_event_that_cannot_be_handled_harms_no_other_of_its_batch(fixture: Fixture) {
        let events = steps(&fixture, 25, 8);
        let (poison, broken) = (events[37].id, events[120].id);
        fixture.publish_events(&events).await;
        let calls = Calls::default();
        let handler: Handler = {
            let calls = calls.clone();
            Arc::new(move |tx, event, _| {
                calls.count(event);
                effect_insert(tx, event)?;
                if event.id == poison {
                    return Err(HandleError::Poison("it can never be handled".to_owned()));
                }
                if event.id == broken {
                    tx.execute("insert into guarded (step) values ($1)", params![-1_i64])?;
                }
                Ok(HandlerOutcome::Done)
            })
        };
        let consumer = fixture.consumer("group", handler);
        let effects = fixture.effects_become(198).await;
        eventually("dead letters", async || list(&fixture).await.len() == 2).await;
        consumer.stop().await;
        assert_eq!(effects.len(), 198);
        assert!(effects.iter().all(|effect| ![poison, broken].contains(&effect.event_id)));
        // Each seat in order; the two seats miss one step.
        let mut last = HashMap::new();
        for effect in effects {
            let before = last.insert(effect.seat_id, effect.step);
            assert!(before.is_none_or(|before| before < effect.step), "{effect:?}");
        }
        // Halving tries an innocent event a few times, not once for every other.
        assert!(events.iter().all(|event| calls.of(event) <= 20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_finishes_and_acknowledges_what_is_under_way() {
    let fixture = Fixture::embedded().await;
    fixture.publish_events(&steps(&fixture, 10, 10)).await;
    let (entered, was_entered) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let first = AtomicBool::new(true);
    let handler: Handler = Arc::new(move |tx, event, _| {
        if first.swap(false, Ordering::SeqCst) {
            entered.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
        }
        effect_insert(tx, event)?;
        Ok(HandlerOutcome::Done)
    });
    let consumer = fixture.consumer("group", handler);
    let mut was_entered = was_entered;
    within(was_entered.recv()).await.unwrap();
    let stopping = tokio::spawn(consumer.stop());
    release.send(()).unwrap();
    within(stopping).await.unwrap();
    assert_eq!(fixture.effects().await.len(), 100);
    assert_eq!(fixture.lags("group").await, 0);
}

#[tokio::test]
async fn a_consumer_whose_storage_is_closed_ends_loudly_and_without_dead_letters() {
    let (logs, _guard) = Logs::collect();
    let fixture = Fixture::embedded().await;
    fixture.db.close();
    fixture.publish_events(&[fixture.event(Uuid::from_u128(1), 0)]).await;
    let consumer = fixture.consumer("group", paint());
    within(consumer.ended()).await;
    assert_eq!(list(&fixture).await, []);
    let lines = logs.lines_with("the storage was closed under the consumer");
    assert!(lines.len() == 1 && lines[0].starts_with("ERROR"), "{lines:?}");
    assert_eq!(fixture.read("group", 1).await.len(), 1, "it was not acknowledged");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_kafka_a_batch_that_takes_long_keeps_its_place_in_the_group() {
    if !servers::available(Server::Kafka).unwrap() {
        return;
    }
    let mut options = KafkaOptions::new(servers::shared_kafka().unwrap().bootstrap());
    options.session_timeout = Duration::from_secs(6);
    options.poll_interval_max = Duration::from_secs(6);
    let fixture = Fixture::on_kafka(options).await;
    // More than a batch, so that messages are on their way to us while the first one stalls.
    fixture.publish_events(&steps(&fixture, 50, 20)).await;
    let resumed_at = Instant::now() + Duration::from_secs(15);
    let handler: Handler = Arc::new(move |tx, event, _| {
        if Instant::now() < resumed_at {
            return Err(StorageError::Unavailable("it takes long".to_owned()).into());
        }
        effect_insert(tx, event)?;
        Ok(HandlerOutcome::Done)
    });
    let mut registry = Registry::default();
    let consumer = fixture.consumer_with("group", handler, BusMetrics::register(&mut registry));
    assert_each_seat_in_order(&fixture.effects_become(1_000).await);
    consumer.stop().await;
    // A consumer that loses its offset gets the messages a second time.
    let text = metrics_text(&registry);
    assert!(text.contains("outcome=\"done\"} 1000"), "{text}");
    assert!(!text.contains("outcome=\"duplicate\""), "{text}");
}

/// A handler that keeps violating a guard of the schema.
pub fn violate_a_constraint(calls: &Calls) -> Handler {
    let calls = calls.clone();
    Arc::new(move |tx, event, _| {
        calls.count(event);
        tx.execute("insert into guarded (step) values ($1)", params![-1_i64])?;
        Err(HandleError::Poison("the constraint did not hold".to_owned()))
    })
}
