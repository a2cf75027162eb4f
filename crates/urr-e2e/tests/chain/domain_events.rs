//! The domain events of purchases: each once, complete, under its key, with its cause.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use urr_e2e::TestApp;
use urr_kernel::{DomainEvent, Uuid};
use urr_test::eventually;

use crate::fixture::{FAR, R, Shop, VIP};
use crate::on_both_deployments;

const TOPICS: [&str; 5] =
    ["catalog-events", "inventory-events", "payment-events", "reservation-events", "user-events"];

/// What the data of each type have.
const FIELDS: [(&str, &str, &[&str]); 7] = [
    ("RESERVATION_CREATED", "reservation-events", &["expiresAt"]),
    ("RESERVATION_CHANGED", "reservation-events", &["previousSeatIds", "previousTotalAmount"]),
    ("RESERVATION_CONFIRMED", "reservation-events", &["paymentId", "paymentMethod"]),
    (
        "RESERVATION_CANCELLED",
        "reservation-events",
        &["reason", "refundAmount", "cancellationFee", "paymentId"],
    ),
    ("RESERVATION_EXPIRED", "reservation-events", &[]),
    ("PAYMENT_CONFIRMED", "payment-events", &["bookingFee", "fencingToken", "transferFee"]),
    (
        "PAYMENT_REFUNDED",
        "payment-events",
        &["refundId", "reason", "cause", "fee", "requestedAmount", "isWhole"],
    ),
];
const OF_RESERVATIONS: [&str; 9] = [
    "reservationId",
    "reservationNumber",
    "userId",
    "eventId",
    "totalAmount",
    "bookingFee",
    "quantity",
    "seatIds",
    "timestamp",
];
const OF_PAYMENTS: [&str; 10] = [
    "paymentId",
    "orderId",
    "userId",
    "reservationId",
    "referenceId",
    "paymentType",
    "eventId",
    "amount",
    "paymentMethod",
    "timestamp",
];

/// Everything that was announced.
struct BusEvents(Vec<(String, DomainEvent)>);

impl BusEvents {
    async fn read(app: &TestApp) -> BusEvents {
        let mut told = Vec::new();
        for topic in TOPICS {
            for delivery in app.bus().scan(topic).await.unwrap() {
                let event = DomainEvent::from_bytes(&delivery.body).unwrap();
                assert_eq!(delivery.key, event.subject.as_bytes(), "{event:?}");
                told.push((topic.to_owned(), event));
            }
        }
        BusEvents(told)
    }

    fn all(&self, event_type: &str) -> Vec<&DomainEvent> {
        self.0.iter().map(|(_, event)| event).filter(|e| e.event_type == event_type).collect()
    }

    /// The one of this type that says this.
    fn one(&self, event_type: &str, field: &str, value: &str) -> &DomainEvent {
        let mut found = self.all(event_type);
        found.retain(|event| event.data[field] == value);
        assert_eq!(found.len(), 1, "{event_type} of {value}: {found:#?}");
        found[0]
    }

    fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for (_, event) in &self.0 {
            *counts.entry(event.event_type.as_str()).or_default() += 1;
        }
        counts
    }
}

/// The only values that may be null here: the event has no artist and no cancellation fees of its
/// own, and a reservation is no transfer.
const NULL_FIELDS: [&str; 4] = ["artistId", "artistName", "cancelPolicy", "transferFee"];
/// Of every event.
const OF_ALL: [&str; 2] = ["type", "sagaId"];

/// Every field has a value, so that no consumer has to guess one.
fn assert_filled(event: &DomainEvent) {
    fn check(name: &str, value: &Value, event: &DomainEvent) {
        match value {
            Value::Null => assert!(NULL_FIELDS.contains(&name), "{name} is null: {event:#?}"),
            Value::String(text) => assert!(!text.is_empty(), "{name}: {event:#?}"),
            Value::Array(values) => values.iter().for_each(|value| check(name, value, event)),
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| check(name, value, event));
            }
            Value::Bool(_) | Value::Number(_) => {}
        }
    }
    check("data", &event.data, event);
    assert_eq!((event.specversion.as_str(), event.datacontenttype.as_str()), {
        ("1.0", "application/json")
    });
    assert!(event.source.starts_with("urr/"), "{event:?}");
    assert!(event.traceparent.is_some() && !event.correlation_id.is_nil(), "{event:?}");
}

/// The field that is the subject and the key.
fn assert_fields(topic: &str, event: &DomainEvent) {
    let Some((_, home, own)) = FIELDS.iter().find(|(name, ..)| *name == event.event_type) else {
        return;
    };
    assert_eq!(topic, *home);
    let (common, subject) = match *home {
        "payment-events" => (&OF_PAYMENTS[..], "orderId"),
        _ => (&OF_RESERVATIONS[..], "reservationId"),
    };
    let fields: BTreeSet<&str> = event.data.as_object().unwrap().keys().map(|k| &**k).collect();
    let due: BTreeSet<&str> = common.iter().chain(*own).chain(&OF_ALL).copied().collect();
    assert_eq!(fields, due, "{}", event.event_type);
    assert_eq!(event.data[subject], event.subject.as_str());
    let written: urr_kernel::Timestamp = event.data["timestamp"].as_str().unwrap().parse().unwrap();
    assert_eq!(written, event.time);
}

/// Each was caused by the one before, and all belong to one flow.
fn assert_chain(events: &[&DomainEvent]) {
    for pair in events.windows(2) {
        assert_eq!(pair[1].causation_id, Some(pair[0].id), "{pair:#?}");
        assert_eq!(pair[1].correlation_id, pair[0].correlation_id, "{pair:#?}");
        assert!(pair[0].time <= pair[1].time, "{pair:#?}");
    }
}

on_both_deployments! {
    /// K-2, K-3, M-15, E1, E3: also that nothing is announced twice, whichever of call and event
    /// comes first.
    async fn k_3_m_15_every_fact_is_announced_once_and_whole_under_its_key_with_its_cause(
        app: TestApp
    ) {
        let shop = Shop::open(&app, FAR).await;
        let password = "a long enough secret";
        assert_eq!(app.register("fan@example.com", password).await.status, 201);
        let bought = shop.hold(&[0]).await;
        assert_eq!(shop.change(&bought, &[1, 100]).await.status, 200);
        let paid = shop.pay(&bought, urr_payment::provider::TestCard::Approve).await;
        assert_eq!(paid.status, 200, "{paid:?}");
        assert_eq!(shop.cancel(&bought).await.status, 200);
        let (called_off, order) = shop.buy(&[2]).await;
        shop.settle().await;
        let expired = shop.hold(&[3]).await;
        eventually("the time of the hold is over", async || {
            app.clock.advance(Duration::from_secs(30));
            let held = shop.reservation(&expired).await["reservation"].take();
            let free = shop.statistics("overview").await["expiredReservations"] == 1;
            (held["status"] == "expired" && free).then_some(())
        })
        .await;
        shop.call_off().await;
        eventually("the money is back", async || {
            app.clock.advance(Duration::from_secs(2));
            let order = shop.order(&called_off, &order).await;
            (order["status"] == "refunded").then_some(())
        })
        .await;
        shop.settle().await;

        let told = BusEvents::read(&app).await;
        for (topic, event) in &told.0 {
            assert_filled(event);
            assert_fields(topic, event);
        }
        let ids: BTreeSet<Uuid> = told.0.iter().map(|(_, event)| event.id).collect();
        assert_eq!(ids.len(), told.0.len(), "every id once");
        let counts = told.counts();
        let due = [
            ("ACCOUNT_LINK_ISSUED", 1),
            ("EVENT_CANCELLED", 1),
            ("EVENT_CREATED", 1),
            ("INVENTORY_READY", 1),
            ("PAYMENT_CONFIRMED", 2),
            ("PAYMENT_REFUNDED", 2),
            ("RESERVATION_CANCELLED", 2),
            ("RESERVATION_CHANGED", 1),
            ("RESERVATION_CONFIRMED", 2),
            ("RESERVATION_CREATED", 3),
            ("RESERVATION_EXPIRED", 1),
            ("USER_REGISTERED", 1),
        ];
        for (event_type, count) in due {
            assert_eq!(counts.get(event_type), Some(&count), "{event_type}: {counts:?}");
        }

        let of = |event_type: &str, id: &str| told.one(event_type, "reservationId", id);
        let refunded = of("PAYMENT_REFUNDED", &bought.id);
        assert_chain(&[
            of("RESERVATION_CREATED", &bought.id),
            of("RESERVATION_CHANGED", &bought.id),
            of("PAYMENT_CONFIRMED", &bought.id),
            of("RESERVATION_CONFIRMED", &bought.id),
            of("RESERVATION_CANCELLED", &bought.id),
            refunded,
        ]);
        assert_eq!(refunded.data["amount"], VIP + R);
        assert_eq!(refunded.data["isWhole"], true);
        assert_chain(&[
            of("RESERVATION_CREATED", &expired.id),
            of("RESERVATION_EXPIRED", &expired.id),
        ]);
        let sold = [
            of("RESERVATION_CREATED", &called_off.id),
            of("PAYMENT_CONFIRMED", &called_off.id),
            of("RESERVATION_CONFIRMED", &called_off.id),
        ];
        assert_chain(&sold);
        let ended = [
            of("RESERVATION_CANCELLED", &called_off.id),
            of("PAYMENT_REFUNDED", &called_off.id),
        ];
        assert_chain(&ended);
        assert_eq!(ended[0].correlation_id, sold[0].correlation_id);
        let cause = told.all("EVENT_CANCELLED")[0];
        assert_eq!(ended[0].causation_id, Some(cause.id), "the event was called off");
        assert_eq!(ended[0].data["reason"], "EVENT_CANCELLED");
        let ready = told.all("INVENTORY_READY")[0];
        assert_chain(&[told.all("EVENT_CREATED")[0], ready]);
        app.stop().await;
    }
}
