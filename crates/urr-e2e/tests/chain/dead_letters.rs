//! Messages that no service can handle, among those of real purchases.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use urr_bus::dead_letters::{self, DeadLetterScope, RepeatedReplay};
use urr_bus::{BusMessage, BusMetrics, Consumer, DeadLetter, Handler, HandlerOutcome, consumer};
use urr_e2e::TestApp;
use urr_kernel::{DomainEvent, Uuid};
use urr_storage::{StorageError, params};
use urr_test::eventually;

use crate::fixture::{FAR, HeldSeats, Order, Shop, VIP};
use crate::on_both_deployments;

const GROUPS: [&str; 5] = [
    "payment-service-group",
    "queue-service-group",
    "stats-service-group",
    "ticket-service-group",
    LISTENER,
];

async fn open_letters(app: &TestApp) -> Vec<DeadLetter> {
    dead_letters::list(app.bus(), None, DeadLetterScope::Open, 1_000).await.unwrap().letters
}

/// The number of dead letters of ticket, payment and statistics. Other consumers may have more.
async fn await_letters(app: &TestApp, count: usize) -> Vec<DeadLetter> {
    let letters = eventually("the dead letters are there", async || {
        let mut letters = open_letters(app).await;
        letters.retain(|letter| GROUPS.contains(&letter.group.as_str()));
        (letters.len() >= count).then_some(letters)
    })
    .await;
    assert_eq!(letters.len(), count, "{letters:#?}");
    letters
}

/// A domain event of one of our services.
async fn announced(app: &TestApp, topic: &str, event_type: &str) -> DomainEvent {
    eventually("it was announced", async || {
        let deliveries = app.bus().scan(topic).await.unwrap();
        let events = deliveries.iter().filter_map(|it| DomainEvent::from_bytes(&it.body).ok());
        events.into_iter().find(|event| event.event_type == event_type)
    })
    .await
}

/// The same as another fact.
fn copy(app: &TestApp, event: &DomainEvent, change: impl FnOnce(&mut DomainEvent)) -> DomainEvent {
    let mut copy = DomainEvent { id: app.ids.next_id(), ..event.clone() };
    change(&mut copy);
    copy
}

/// Behind what was said before under the same key.
async fn say(app: &TestApp, topic: &str, key: &str, body: Vec<u8>) {
    app.bus().publish_one(BusMessage::new(topic, key.to_owned(), body)).await.unwrap();
}

async fn assert_bought_and_back(shop: &Shop<'_>, (held, order): &(HeldSeats, Order)) {
    let state = shop.state(held, order).await;
    let (status, payment_status, tickets, payment, refunded) = state;
    assert_eq!((&*status, &*payment_status, tickets), ("cancelled", "refunded", 0));
    assert_eq!((&*payment, refunded), ("refunded", VIP));
}

/// Publishes everything that is wrong with a payment and gives the reasons, by group.
async fn poison_payment(app: &TestApp, paid: &DomainEvent) -> Vec<(&'static str, &'static str)> {
    let without = |field: &str| {
        copy(app, paid, |event| {
            event.data.as_object_mut().unwrap().remove(field);
        })
    };
    let future = copy(app, paid, |event| event.specversion = "2.0".to_owned());
    let wrong = copy(app, paid, |event| event.data = json!("paid, believe me"));
    let forged = copy(app, paid, |event| event.data["referenceId"] = json!(Uuid::nil()));
    let key = paid.subject.as_str();
    say(app, "payment-events", key, b"\xff\xfe{\"type\":\"PAYMENT_CONFIRMED\"".to_vec()).await;
    for event in [future, wrong, without("amount"), without("fencingToken"), forged] {
        say(app, "payment-events", key, event.to_bytes()).await;
    }
    vec![
        ("stats-service-group", "not a CloudEvents JSON document"),
        ("ticket-service-group", "not a CloudEvents JSON document"),
        ("stats-service-group", "has CloudEvents version \"2.0\""),
        ("ticket-service-group", "has CloudEvents version \"2.0\""),
        ("stats-service-group", "is not what its type promises"),
        ("ticket-service-group", "is not what its type promises"),
        ("stats-service-group", "amount"),
        ("ticket-service-group", "amount"),
        ("ticket-service-group", "names no fencing token"),
        ("ticket-service-group", "names two reservations"),
    ]
}

/// The same with a cancellation.
async fn poison_cancellation(
    app: &TestApp,
    told: &DomainEvent,
) -> Vec<(&'static str, &'static str)> {
    let future = copy(app, told, |event| event.specversion = "1.1".to_owned());
    let below_zero = copy(app, told, |event| {
        event.event_type = "RESERVATION_CANCELLED".to_owned();
        event.data["refundAmount"] = json!(-1);
        event.data["paymentId"] = json!(Uuid::nil());
        event.data["reason"] = json!("?");
        // Of a reservation that nobody counts.
        event.data["reservationId"] = json!(Uuid::max());
    });
    let key = told.subject.as_str();
    say(app, "reservation-events", key, b"not an event".to_vec()).await;
    for event in [future, below_zero] {
        say(app, "reservation-events", key, event.to_bytes()).await;
    }
    vec![
        ("payment-service-group", "not a CloudEvents JSON document"),
        ("queue-service-group", "not a CloudEvents JSON document"),
        ("stats-service-group", "not a CloudEvents JSON document"),
        ("payment-service-group", "has CloudEvents version \"1.1\""),
        ("queue-service-group", "has CloudEvents version \"1.1\""),
        ("stats-service-group", "has CloudEvents version \"1.1\""),
        ("payment-service-group", "a refund below zero"),
    ]
}

on_both_deployments! {
    /// K-6, K-9: each becomes a dead letter of those who cannot take it, and what comes behind it
    /// under the same key is taken as ever.
    async fn k_6_poison_becomes_dead_letters_and_the_purchase_goes_on_behind_it(app: TestApp) {
        let shop = Shop::open(&app, FAR).await;
        let bought = shop.buy(&[0]).await;
        let other = shop.buy(&[1]).await;
        shop.settle().await;
        let paid = announced(&app, "payment-events", "PAYMENT_CONFIRMED").await;
        let sold = announced(&app, "reservation-events", "RESERVATION_CONFIRMED").await;
        let mut due = poison_payment(&app, &paid).await;
        due.extend(poison_cancellation(&app, &sold).await);

        let letters = await_letters(&app, due.len()).await;
        for (group, reason) in due {
            let is_it = |it: &&DeadLetter| it.group == group && it.reason.contains(reason);
            assert!(letters.iter().any(|it| is_it(&it)), "{group}: {reason} in {letters:#?}");
        }
        for held in [&bought.0, &other.0] {
            assert_eq!(shop.cancel(held).await.status, 200);
        }
        eventually("both have their money back", async || {
            app.clock.advance(std::time::Duration::from_millis(500));
            let one = shop.order(&bought.0, &bought.1).await["status"] == "refunded";
            let both = one && shop.order(&other.0, &other.1).await["status"] == "refunded";
            both.then_some(())
        })
        .await;
        eventually("the ticket office knows", async || {
            let reservation = shop.reservation(&bought.0).await["reservation"].take();
            (reservation["paymentStatus"] == "refunded").then_some(())
        })
        .await;
        assert_bought_and_back(&shop, &bought).await;
        // What was forged has moved no money and no seat.
        let proof = shop.audit("payments").await;
        assert_eq!((&proof["holds"], &proof["refunded"]), (&json!(true), &json!(2 * VIP)));
        app.stop().await;
    }

    /// K-7: what could not be taken waits, is seen, and is taken once when its cause is mended.
    async fn k_7_a_refund_that_became_a_dead_letter_is_repaired_by_its_replay(app: TestApp) {
        let shop = Shop::open(&app, FAR).await;
        let bought = shop.buy(&[0]).await;
        shop.settle().await;
        // A hand in the tables: the payment is said to be for something else.
        let id: Uuid = bought.1.payment_id.parse().unwrap();
        set_target(&app, id, Uuid::nil()).await;
        assert_eq!(shop.cancel(&bought.0).await.status, 200);
        let letters = await_letters(&app, 1).await;
        assert_eq!(letters[0].event_type.as_deref(), Some("RESERVATION_CANCELLED"));
        assert_eq!(letters[0].group, "payment-service-group");
        assert_eq!(shop.order(&bought.0, &bought.1).await["status"], "confirmed");

        set_target(&app, id, bought.0.id.parse().unwrap()).await;
        let now = app.clock.now();
        for again in [RepeatedReplay::Refuse, RepeatedReplay::Allow] {
            dead_letters::replay(app.bus(), &letters[0].id, again, now).await.unwrap();
        }
        shop.settle().await;
        assert_bought_and_back(&shop, &bought).await;
        assert_eq!(open_letters(&app).await, [], "and there is nothing left to look at");
        let refunds = announced_all(&app, "PAYMENT_REFUNDED").await;
        assert_eq!(refunds.len(), 1, "sent again twice, given back once");
        app.stop().await;
    }

    /// K-6: a handler with a bug among the real topics.
    async fn k_6_a_handler_that_panics_loses_nothing_and_stops_nobody(app: TestApp) {
        let shop = Shop::open(&app, FAR).await;
        let bought = [shop.buy(&[0]).await, shop.buy(&[1]).await, shop.buy(&[2]).await];
        shop.settle().await;
        let unlucky = bought[1].1.payment_id.clone();
        let panicking: Handler = Arc::new(move |tx, event, _| {
            assert_ne!(event.data["paymentId"], unlucky, "a handler's bug");
            note(tx, event)
        });
        let cancel = CancellationToken::new();
        let running = tokio::spawn(consumer::run(listener(&app, panicking), cancel.clone()));
        let letters = await_letters(&app, 1).await;
        assert!(letters[0].reason.contains("a handler's bug"), "{letters:#?}");
        await_heard(&app, 2).await;
        cancel.cancel();
        running.await.unwrap();
        // The bug is mended, and the message is sent again: to this group alone.
        let cancel = CancellationToken::new();
        let running = tokio::spawn(consumer::run(listener(&app, Arc::new(|tx, event, _| {
            note(tx, event)
        })), cancel.clone()));
        let now = app.clock.now();
        dead_letters::replay(app.bus(), &letters[0].id, RepeatedReplay::Refuse, now).await.unwrap();
        await_heard(&app, 3).await;
        cancel.cancel();
        running.await.unwrap();
        shop.settle().await;
        app.stop().await;
    }
}

async fn announced_all(app: &TestApp, event_type: &str) -> Vec<DomainEvent> {
    let deliveries = app.bus().scan("payment-events").await.unwrap();
    let events = deliveries.iter().filter_map(|it| DomainEvent::from_bytes(&it.body).ok());
    events.filter(|event| event.event_type == event_type).collect()
}

async fn set_target(app: &TestApp, id: Uuid, target: Uuid) {
    let sql = "update payments set payable_id = $2 where id = $1";
    let written: Result<u64, StorageError> =
        app.database("payment").write(move |tx| tx.execute(sql, params![id, target])).await;
    assert_eq!(written.unwrap(), 1);
}

const LISTENER: &str = "listener-of-a-test";

/// Somebody else who listens to payments, with an inbox among the statistics.
fn listener(app: &TestApp, handler: Handler) -> Consumer {
    Consumer {
        bus: app.bus().clone(),
        db: app.database("stats").clone(),
        group: LISTENER.to_owned(),
        topics: vec!["payment-events".to_owned()],
        types: None,
        handler: handler.into(),
        clock: app.clock.clone(),
        metrics: BusMetrics::default(),
    }
}

/// Its effect is that it was heard.
fn note(
    _tx: &mut urr_storage::Tx<'_>,
    event: &DomainEvent,
) -> Result<HandlerOutcome, urr_bus::HandleError> {
    let Value::Object(_) = event.data else { panic!("a fact has fields") };
    Ok(HandlerOutcome::Done)
}

async fn await_heard(app: &TestApp, count: i64) {
    eventually("the others were heard", async || {
        let sql = "select count(*) as heard from inbox where consumer = $1";
        let heard: Result<i64, StorageError> = app
            .database("stats")
            .read(move |tx| tx.query_one(sql, params![LISTENER], |row| row.get("heard")))
            .await;
        (heard.unwrap() == count).then_some(())
    })
    .await;
}
