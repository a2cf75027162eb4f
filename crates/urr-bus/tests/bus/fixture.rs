//! A bus, a database and a topic of one test's own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use urr_bus::relay::{self, RelayOptions};
use urr_bus::{
    Bus, BusMessage, BusMetrics, Consumer, Delivery, DeliveryBatch, EventHandler, HandleError,
    Handler, HandlerOutcome, KafkaOptions, MessagePosition, Relay, TopicSpec, consumer,
};
use urr_kernel::{CallContext, Clock, DomainEvent, EventData, IdSource, Uuid};
use urr_storage::{Db, Schema, SqliteOptions, StorageError, Tx, migrate, params};
use urr_test::servers::{self, Server};

pub const SCHEMA: Schema =
    Schema { name: "bus_test", migrations: urr_storage::migrations![1 "effects" => "effects.sql"] };

/// Nothing here takes this long unless it is broken; Kafka shares two cores with all other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A fact for these tests: step by step a seat is painted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeatPainted {
    pub seat_id: Uuid,
    pub step: i64,
}

impl EventData for SeatPainted {
    const TOPIC: &'static str = "paint-events";
    const TYPE: &'static str = "SEAT_PAINTED";
    fn aggregate_id(&self) -> String {
        self.seat_id.to_string()
    }
}

enum Form {
    Embedded(PathBuf),
    Kafka(Box<KafkaOptions>),
}

pub struct Fixture {
    form: Form,
    pub bus: Bus,
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    /// A name that no other test uses, not even on a broker that outlives this run.
    pub topic: String,
    _folder: TempDir,
}

impl Fixture {
    pub async fn embedded() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus.sqlite");
        Fixture::new(folder, Form::Embedded(path)).await
    }

    /// None where Kafka cannot be started, which has been said.
    pub async fn kafka() -> Option<Fixture> {
        if !servers::available(Server::Kafka).unwrap() {
            return None;
        }
        let kafka = servers::shared_kafka().unwrap();
        Some(Fixture::on_kafka(KafkaOptions::new(kafka.bootstrap())).await)
    }

    pub async fn on_kafka(options: KafkaOptions) -> Fixture {
        Fixture::new(tempfile::tempdir().unwrap(), Form::Kafka(Box::new(options))).await
    }

    async fn new(folder: TempDir, form: Form) -> Fixture {
        let clock = Clock::System;
        let ids = IdSource::from_system_randomness(clock.clone());
        let path = folder.path().join("service.sqlite");
        migrate::migrate_sqlite(&path, &SCHEMA, clock.now()).unwrap();
        let db = Db::open_sqlite(&path, &SqliteOptions::default()).unwrap();
        let topic = format!("paint-{}", ids.next_id().simple());
        let bus = open(&form, &clock);
        bus.ensure_topics(&[TopicSpec::new(&topic)]).await.unwrap();
        Fixture { form, bus, db, clock, ids, topic, _folder: folder }
    }

    /// The bus as another start of the program sees it.
    pub async fn reopen_bus(&mut self) {
        self.bus.close().await;
        self.bus = open(&self.form, &self.clock);
    }

    pub fn kafka_options(&self) -> Option<&KafkaOptions> {
        match &self.form {
            Form::Embedded(_) => None,
            Form::Kafka(options) => Some(options),
        }
    }

    /// The tables of the embedded bus.
    pub fn log(&self) -> Db {
        let Form::Embedded(path) = &self.form else {
            panic!("only the embedded bus has a log of its own");
        };
        Db::open_sqlite(path, &SqliteOptions::default()).unwrap()
    }

    pub fn event(&self, seat_id: Uuid, step: i64) -> DomainEvent {
        let id = self.ids.next_id();
        let data = SeatPainted { seat_id, step };
        DomainEvent::new(id, "urr/test", self.clock.now(), &CallContext::root(id), &data)
    }

    pub fn message(&self, event: &DomainEvent) -> BusMessage {
        BusMessage::new(self.topic.clone(), event.subject.clone(), event.to_bytes())
    }

    pub async fn publish(&self, messages: Vec<BusMessage>) -> Vec<MessagePosition> {
        let results = self.bus.publish(messages).await;
        results.into_iter().map(Result::unwrap).collect()
    }

    pub async fn publish_events(&self, events: &[DomainEvent]) -> Vec<MessagePosition> {
        self.publish(events.iter().map(|event| self.message(event)).collect()).await
    }

    /// Reads as a group until so many messages came, and acknowledges them.
    pub async fn read(&self, group: &str, count: usize) -> Vec<Delivery> {
        let topics = [self.topic.clone()];
        let mut subscription = self.bus.subscribe(group, &topics).await.unwrap();
        let mut deliveries = Vec::new();
        while deliveries.len() < count {
            let batch: DeliveryBatch = within(subscription.next_batch()).await.unwrap();
            subscription.acknowledge(&batch).await.unwrap();
            deliveries.extend(batch.deliveries);
        }
        subscription.close().await;
        deliveries
    }

    pub fn consumer(&self, group: &str, handler: impl Into<EventHandler>) -> Running {
        Fixture::start(self.consumer_parts(group, handler))
    }

    pub fn consumer_with(&self, group: &str, handler: Handler, metrics: BusMetrics) -> Running {
        Fixture::start(Consumer { metrics, ..self.consumer_parts(group, handler) })
    }

    pub fn consumer_of(
        &self,
        group: &str,
        types: Option<&'static [&'static str]>,
        handler: Handler,
    ) -> Running {
        Fixture::start(Consumer { types, ..self.consumer_parts(group, handler) })
    }

    fn consumer_parts(&self, group: &str, handler: impl Into<EventHandler>) -> Consumer {
        Consumer {
            bus: self.bus.clone(),
            db: self.db.clone(),
            group: group.to_owned(),
            topics: vec![self.topic.clone()],
            types: None,
            handler: handler.into(),
            clock: self.clock.clone(),
            metrics: BusMetrics::default(),
        }
    }

    fn start(consumer: Consumer) -> Running {
        Running::start(|cancel| tokio::spawn(consumer::run(consumer, cancel)))
    }

    /// How many messages of the topic a group has not acknowledged.
    pub async fn lags(&self, group: &str) -> i64 {
        let subscription = self.bus.subscribe(group, std::slice::from_ref(&self.topic)).await;
        let subscription = subscription.unwrap();
        let lags = subscription.lag_reader().lag().await.unwrap();
        subscription.close().await;
        lags.iter().map(|lag| lag.messages).sum()
    }

    pub fn relay(&self) -> Running {
        self.relay_on(&self.db)
    }

    /// Events of these tests are written without the signal that wakes a relay: it polls quickly.
    pub fn relay_on(&self, db: &Db) -> Running {
        let poll = Duration::from_millis(20);
        self.relay_with(db, RelayOptions { poll, ..RelayOptions::default() })
    }

    pub fn relay_with(&self, db: &Db, options: RelayOptions) -> Running {
        let relay = Relay {
            db: db.clone(),
            bus: self.bus.clone(),
            clock: self.clock.clone(),
            holder: self.ids.next_id(),
            service: "test",
            metrics: BusMetrics::default(),
            options,
        };
        Running::start(|cancel| tokio::spawn(relay::run(relay, cancel)))
    }

    /// Puts events into the outbox, for the topic of this test and not for that of their type.
    pub async fn outbox_append(&self, events: &[DomainEvent]) {
        let (events, topic) = (events.to_vec(), self.topic.clone());
        self.db.write(move |tx| outbox_insert(tx, &topic, &events)).await.unwrap();
    }

    pub async fn effects(&self) -> Vec<Effect> {
        self.db.read(effects).await.unwrap()
    }

    /// Waits until there are so many effects, and gives them.
    pub async fn effects_become(&self, count: usize) -> Vec<Effect> {
        eventually("the effects", async || self.effects().await.len() >= count).await;
        self.effects().await
    }

    pub async fn outbox_waiting(&self) -> u64 {
        self.db.read(urr_storage::outbox::lag).await.unwrap().0
    }
}

fn open(form: &Form, clock: &Clock) -> Bus {
    match form {
        Form::Embedded(path) => Bus::open_embedded(path, clock).unwrap(),
        Form::Kafka(options) => Bus::connect_kafka((**options).clone()).unwrap(),
    }
}

pub fn outbox_insert(
    tx: &mut Tx<'_>,
    topic: &str,
    events: &[DomainEvent],
) -> Result<(), StorageError> {
    for event in events {
        let body = String::from_utf8(event.to_bytes()).unwrap();
        tx.execute(
            "insert into outbox (event_id, topic, key, body, created_at) \
             values ($1, $2, $3, $4, $5)",
            params![event.id, topic, event.subject, body, event.time],
        )?;
    }
    Ok(())
}

/// A relay or a consumer at work.
pub struct Running {
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(spawn: impl FnOnce(CancellationToken) -> JoinHandle<()>) -> Running {
        let cancel = CancellationToken::new();
        let task = spawn(cancel.clone());
        Running { cancel, task }
    }

    pub async fn stop(self) {
        self.cancel.cancel();
        within(self.task).await.unwrap();
    }

    /// Waits until it ends by itself.
    pub async fn ended(self) {
        self.task.await.unwrap();
    }

    /// Ends it as a crash does: in the middle of whatever it does.
    pub async fn crash(self) {
        self.task.abort();
        assert!(within(self.task).await.unwrap_err().is_cancelled());
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub event_id: Uuid,
    pub seat_id: Uuid,
    pub step: i64,
}

fn effects(tx: &mut Tx<'_>) -> Result<Vec<Effect>, StorageError> {
    let sql = "select event_id, seat_id, step from effect order by number";
    tx.query(sql, &[], |row| {
        Ok(Effect {
            event_id: row.get("event_id")?,
            seat_id: row.get("seat_id")?,
            step: row.get("step")?,
        })
    })
}

pub fn effect_insert(tx: &mut Tx<'_>, event: &DomainEvent) -> Result<(), HandleError> {
    let data: SeatPainted = event.decode()?;
    tx.execute(
        "insert into effect (event_id, seat_id, step) values ($1, $2, $3)",
        params![event.id, data.seat_id, data.step],
    )?;
    Ok(())
}

/// A handler that notes each event.
pub fn paint() -> Handler {
    Arc::new(|tx, event, _| {
        effect_insert(tx, event)?;
        Ok(HandlerOutcome::Done)
    })
}

/// Whether the steps of every seat are 0, 1, 2, …: in order, none missing, none twice.
pub fn assert_each_seat_in_order(effects: &[Effect]) {
    let mut next = std::collections::HashMap::new();
    for effect in effects {
        let expected = next.entry(effect.seat_id).or_insert(0);
        assert_eq!(effect.step, *expected, "seat {}", effect.seat_id);
        *expected += 1;
    }
}

/// Events of several seats, dealt out in turn.
pub fn steps(fixture: &Fixture, seats: usize, steps: i64) -> Vec<DomainEvent> {
    let seats: Vec<Uuid> = (0..seats).map(|_| fixture.ids.next_id()).collect();
    (0..steps).flat_map(|step| seats.iter().map(move |seat| fixture.event(*seat, step))).collect()
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.expect("it should not take this long")
}

/// The metrics in the words of Prometheus.
pub fn metrics_text(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

/// Asks again and again until it is so.
pub async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}: not so after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
