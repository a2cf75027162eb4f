//! How far the statistics are behind at 1,000 and at 5,000 events a second, on SQLite and on
//! PostgreSQL.
//!
//! Reservations that are made, charged and confirmed are published for ten seconds, whatever the
//! statistics do meanwhile, and the consumer that the program runs counts them. Printed: how long
//! after its publication an event was counted, and how long the rest took after the last one. The
//! baseline is the same without statistics: a consumer that only notes what it has seen.

#![expect(clippy::print_stdout, reason = "a benchmark prints its counters")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use urr_bus::{
    Bus, BusMessage, BusMetrics, Consumer, EventHandler, HandleError, HandledEvent, HandlerOutcome,
    TopicSpec, consumer,
};
use urr_kernel::{Clock, DomainEvent, IdSource, Timestamp, Uuid};
use urr_stats::{GROUP, SCHEMA, TOPICS};
use urr_storage::Tx;
use urr_test::engines::{Database, Engine};
use urr_test::figures::{BenchFigure, RatioTarget};

const RATES: [u32; 2] = [1_000, 5_000];
const SECONDS: u32 = 10;
const TICK: Duration = Duration::from_millis(10);

type Handle = fn(&mut Tx<'_>, &[HandledEvent<'_>]) -> Result<Vec<HandlerOutcome>, HandleError>;

fn main() {
    let machine = Runtime::new().expect("threads can be started");
    for per_second in RATES {
        println!("{per_second} events a second for {SECONDS} seconds");
        for engine in [Engine::Sqlite, Engine::Postgres] {
            compare(&machine, engine, per_second);
        }
    }
}

/// Prints how far the statistics are behind, and how far they are if they only note.
fn compare(machine: &Runtime, engine: Engine, per_second: u32) {
    let mut p99_ms = Vec::new();
    for (name, handle) in [("counted", urr_stats::handle as Handle), ("only noted", note)] {
        let Some(database) = Database::open(engine, &SCHEMA, Clock::System.now()) else {
            println!("{engine:?} is not installed");
            return;
        };
        let (lags, p99) = machine.block_on(run(&database, handle, per_second));
        println!("{engine:?}, {name}: {lags}");
        p99_ms.push(f64::from(u32::try_from(p99.max(1)).unwrap_or(u32::MAX)));
    }
    let figure = BenchFigure {
        name: &format!("statistics behind at {per_second} events/s, {engine:?}, p99"),
        value: p99_ms[0],
        unit: "ms",
        baseline: "only noted",
        baseline_value: p99_ms[1],
        target: RatioTarget::None,
    };
    figure.show();
}

fn note(_: &mut Tx<'_>, events: &[HandledEvent<'_>]) -> Result<Vec<HandlerOutcome>, HandleError> {
    Ok(vec![HandlerOutcome::Done; events.len()])
}

/// The lags in words, and the 99th percentile in milliseconds.
async fn run(database: &Database, handle: Handle, per_second: u32) -> (String, i64) {
    let folder = tempfile::tempdir().expect("a folder for the bus");
    let clock = Clock::System;
    let bus = Bus::open_embedded(&folder.path().join("bus.db"), &clock).expect("a bus");
    let topics: Vec<TopicSpec> = TOPICS.iter().map(|topic| TopicSpec::new(*topic)).collect();
    bus.ensure_topics(&topics).await.expect("topics");
    let lags = Arc::new(Mutex::new(Vec::new()));
    let (noted, now) = (Arc::clone(&lags), clock.clone());
    let consumer = Consumer {
        bus: bus.clone(),
        db: database.db.clone(),
        group: GROUP.to_owned(),
        topics: TOPICS.iter().map(|topic| (*topic).to_owned()).collect(),
        types: None,
        handler: EventHandler::Repeatable(Arc::new(move |tx, events| {
            let outcomes = handle(tx, events)?;
            let now = now.now().as_millisecond();
            let lags = events.iter().map(|(event, _)| now - event.time.as_millisecond());
            noted.lock().unwrap_or_else(PoisonError::into_inner).extend(lags);
            Ok(outcomes)
        })),
        clock: clock.clone(),
        metrics: BusMetrics::default(),
    };
    let stop = CancellationToken::new();
    let consuming = tokio::spawn(consumer::run(consumer, stop.clone()));
    let published = publish(&bus, &clock, per_second).await;
    let ended = Instant::now();
    let count = || lags.lock().unwrap_or_else(PoisonError::into_inner).len();
    while count() < published {
        tokio::time::sleep(TICK).await;
    }
    let rest = ended.elapsed();
    stop.cancel();
    consuming.await.expect("it ends");
    bus.close().await;
    let mut lags = std::mem::take(&mut *lags.lock().unwrap_or_else(PoisonError::into_inner));
    lags.sort_unstable();
    let at = |hundredths: usize| lags[(lags.len() - 1) * hundredths / 100];
    let (p50, p99, last) = (at(50), at(99), at(100));
    let rest = rest.as_millis();
    let text = format!("p50 {p50} ms, p99 {p99} ms, at most {last} ms; the rest took {rest} ms");
    (text, p99)
}

/// Publishes at its pace, and says how many.
async fn publish(bus: &Bus, clock: &Clock, per_second: u32) -> usize {
    let ids = IdSource::seeded(clock.clone(), 6);
    let mut tick = tokio::time::interval(TICK);
    let per_tick = per_second / 100;
    let events: Vec<Uuid> = (0..20).map(|_| ids.next_id()).collect();
    let mut pending: Vec<(&'static str, &'static str, Uuid, Value)> = Vec::new();
    let mut published = 0;
    for number in 0..SECONDS * 100 {
        tick.tick().await;
        let mut messages = Vec::new();
        for _ in 0..per_tick {
            if pending.is_empty() {
                let event_id = events[number as usize % events.len()];
                pending = sale(&ids, event_id, clock.now());
            }
            let (topic, kind, subject, data) = pending.remove(0);
            let event = event(&ids, kind, subject, clock.now(), &data);
            messages.push(BusMessage::new(topic, subject.to_string(), event.to_bytes()));
        }
        published += messages.len();
        for sent in bus.publish(messages).await {
            sent.expect("the bus takes it");
        }
    }
    published
}

/// What is told of a reservation that is paid.
fn sale(
    ids: &IdSource,
    event_id: Uuid,
    now: Timestamp,
) -> Vec<(&'static str, &'static str, Uuid, Value)> {
    let (id, user_id, payment_id) = (ids.next_id(), ids.next_id(), ids.next_id());
    let reservation = json!({
        "reservationId": id, "reservationNumber": "R1", "userId": user_id, "eventId": event_id,
        "totalAmount": 100_000, "quantity": 1, "seatIds": [1], "items": [],
        "expiresAt": (now + Duration::from_secs(300)).to_string(), "paymentId": payment_id,
        "confirmedAt": now.to_string(), "timestamp": now.to_string(),
    });
    let payment = json!({
        "paymentId": payment_id, "orderId": "O", "userId": user_id,
        "paymentType": "reservation", "referenceId": id, "reservationId": id,
        "eventId": event_id, "paymentMethod": "card", "timestamp": now.to_string(),
        "amount": 100_000, "bookingFee": 0,
    });
    vec![
        ("reservation-events", "RESERVATION_CREATED", id, reservation.clone()),
        ("payment-events", "PAYMENT_CONFIRMED", payment_id, payment),
        ("reservation-events", "RESERVATION_CONFIRMED", id, reservation),
    ]
}

fn event(ids: &IdSource, kind: &str, subject: Uuid, now: Timestamp, data: &Value) -> DomainEvent {
    let event = json!({
        "specversion": "1.0", "id": ids.next_id(), "source": "urr/bench", "type": kind,
        "subject": subject.to_string(), "time": now, "datacontenttype": "application/json",
        "data": data, "correlationid": subject,
    });
    serde_json::from_value(event).expect("it is an event")
}
