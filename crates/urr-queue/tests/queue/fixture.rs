//! A queue service on either pair of engines, with a manual clock and a stub of the ticket service.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt;
use urr_bus::{HandleError, HandlerContext, HandlerOutcome};
use urr_contracts::clients::{PaymentClient, StatsClient, TicketClient};
use urr_contracts::internal::payment::GetPaymentFigures;
use urr_contracts::internal::stats::{GetSaleHistory, GetSaleTotals};
use urr_contracts::internal::ticket::{GetSaleBoard, GetSalesHealth, GetTier};
use urr_kernel::{CallContext, Clock, DomainEvent, IdSource, Secret, Timestamp, Uuid};
use urr_queue::draw::{BeaconSource, DrawSeal};
use urr_queue::{LiveSources, Notices, QueueParts, QueueService, QueueSettings, SCHEMA, consumer};
use urr_redis::{Redis, RedisTopology};
use urr_room::Rooms;
use urr_room::memory::MemoryRooms;
use urr_room::redis::{RedisRooms, RoomTime};
use urr_service::token::{ENTRY, EntryClaims, TokenKey, VerifiedToken};
use urr_service::{
    Caller, Identity, InternalCall, LocalService, Metrics, RequestLimits, ServiceKit, Upstream,
    UserRole,
};
use urr_storage::{Db, StorageError, params};
use urr_test::engines::{Database, Engine, block_on};
use urr_test::servers::{self, Server};

pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(60 * 60);

const ENTRY_KEY: [u8; 32] = [9; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Tables on SQLite, rooms in the process.
    Embedded,
    /// Tables on PostgreSQL, rooms in Redis.
    Shared,
}

/// A queue service with its engines and its stub of the ticket service.
pub struct World {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub rooms: Rooms,
    pub queue: QueueService,
    pub metrics: Metrics,
    pub ticket: TicketStub,
    pub money: MoneyStub,
    pub router: Router,
    _databases: Databases,
}

struct Databases {
    tables: Database,
    journal: Database,
}

impl Databases {
    /// `None` when a server is not installed; with `CI=true` that is a failure.
    fn open(form: Form, now: Timestamp) -> Option<Databases> {
        let engine = match form {
            Form::Embedded => Engine::Sqlite,
            Form::Shared if !servers::available(Server::Redis).unwrap() => return None,
            Form::Shared => Engine::Postgres,
        };
        let tables = Database::open(engine, &SCHEMA, now)?;
        let journal = Database::open(Engine::Sqlite, &urr_room::JOURNAL, now)?;
        Some(Databases { tables, journal })
    }
}

/// Runs one case with rooms of its own.
pub fn run<F: Future<Output = ()>>(form: Form, case: impl FnOnce(World) -> F) {
    let clock = Clock::manual("2026-12-01T12:00:00Z".parse().unwrap());
    let Some(databases) = Databases::open(form, clock.now()) else { return };
    block_on(async { case(World::new(form, clock, databases).await).await });
}

/// Declares cases that run on both pairs of engines: `contract! { async fn name(world: World) { … } }`.
#[macro_export]
macro_rules! contract {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            embedded = $crate::fixture::Form::Embedded,
            shared = $crate::fixture::Form::Shared;
            $($(#[$meta])* async fn $name($world: $crate::fixture::World) $body)*
        }
    };
}

/// Encrypts the secrets of draws.
pub fn draw_seal() -> DrawSeal {
    DrawSeal::new(&Secret::new("the root of these tests"))
}

impl World {
    async fn new(form: Form, clock: Clock, databases: Databases) -> World {
        static SEED: AtomicU64 = AtomicU64::new(1);
        // The rooms of all cases are in one Redis: no two may have the same ids.
        let seed = SEED.fetch_add(1, Ordering::SeqCst);
        let ids = IdSource::seeded(clock.clone(), seed);
        let rooms = match form {
            Form::Embedded => {
                let journal = databases.journal.db.clone();
                let opened = MemoryRooms::open(journal, ids.clone(), clock.now()).await;
                Rooms::Memory(opened.unwrap().0)
            }
            Form::Shared => {
                let url = servers::shared_redis().unwrap().url().to_owned();
                let redis = Redis::connect(&RedisTopology::Single(Secret::new(url))).await.unwrap();
                Rooms::Redis(RedisRooms::new(redis, ids.clone(), RoomTime::Caller))
            }
        };
        let db = databases.tables.db.clone();
        let metrics = Metrics::new();
        let kit = kit(&clock, &ids, &metrics);
        let (ticket, money) = (TicketStub::default(), MoneyStub::default());
        let queue = QueueService::new(QueueParts {
            db: db.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            settings: QueueSettings::default(),
            rooms: rooms.clone(),
            entry_key: TokenKey::new(&ENTRY_KEY),
            notices: Notices::off(),
            ticket: TicketClient::new(ticket.upstream(&kit)),
            draw_seal: draw_seal(),
            beacon: BeaconSource::Offline,
            live_sources: money.sources(&kit),
        });
        queue.load().await.unwrap();
        let router = queue.service(&kit).local_router();
        let _databases = databases;
        World { db, clock, ids, rooms, queue, metrics, ticket, money, router, _databases }
    }

    /// Another process with the same rooms and tables and other settings. It cannot reach the ticket
    /// service and has loaded nothing yet.
    pub fn another(&self, settings: QueueSettings) -> QueueService {
        self.make_another(&self.ids, settings, BeaconSource::Offline)
    }

    /// The same, with another source of ids.
    pub fn another_with_ids(&self, ids: &IdSource) -> QueueService {
        self.make_another(ids, QueueSettings::default(), BeaconSource::Offline)
    }

    /// The same, with another beacon.
    pub fn another_with_beacon(&self, beacon: BeaconSource) -> QueueService {
        self.make_another(&self.ids, QueueSettings::default(), beacon)
    }

    fn make_another(
        &self,
        ids: &IdSource,
        settings: QueueSettings,
        beacon: BeaconSource,
    ) -> QueueService {
        let kit = kit(&self.clock, ids, &Metrics::new());
        let unreachable = Upstream::local(Caller::Queue, "ticket", LocalService::default(), &kit);
        QueueService::new(QueueParts {
            db: self.db.clone(),
            clock: self.clock.clone(),
            ids: ids.clone(),
            settings,
            rooms: self.rooms.clone(),
            entry_key: TokenKey::new(&ENTRY_KEY),
            notices: Notices::off(),
            ticket: TicketClient::new(unreachable),
            draw_seal: draw_seal(),
            beacon,
            live_sources: self.money.sources(&kit),
        })
    }

    /// Someone who has an account.
    pub fn fan(&self) -> Fan {
        Fan { id: self.ids.next_id(), router: self.router.clone() }
    }

    /// The same person at another process.
    pub fn at(&self, queue: &QueueService, fan: &Fan) -> Fan {
        let kit = kit(&self.clock, &self.ids, &Metrics::new());
        Fan { id: fan.id, router: queue.service(&kit).local_router() }
    }

    /// An event whose sale runs from an hour ago until in ten days.
    pub async fn open_event(&self) -> Uuid {
        self.event_with(json!({})).await
    }

    /// The same, with some of its facts changed.
    pub async fn event_with(&self, facts: Value) -> Uuid {
        let event_id = self.ids.next_id();
        let mut data = self.facts(event_id, 1);
        let facts = facts.as_object().unwrap().clone();
        data.as_object_mut().unwrap().extend(facts);
        self.hear("EVENT_CREATED", data).await;
        event_id
    }

    /// What the catalogue says of an event.
    pub fn facts(&self, event_id: Uuid, revision: i64) -> Value {
        let now = self.clock.now();
        json!({
            "eventId": event_id, "revision": revision, "title": "한강의 밤", "kind": "seated",
            "status": "upcoming", "artistId": Uuid::from_u128(5), "artistName": "물결",
            "venueId": Uuid::from_u128(7), "venueName": "강변 홀", "address": "서울",
            "startsAt": now + 480 * HOUR, "saleStartsAt": now - HOUR,
            "saleEndsAt": now + 240 * HOUR, "hasPresale": false, "seatsPerUserMax": 4,
            "prices": {"R": 90_000},
        })
    }

    /// The data of a `RESERVATION_CONFIRMED`.
    pub fn purchase(&self, event_id: Uuid, user_id: Uuid) -> Value {
        json!({
            "reservationId": self.ids.next_id(), "reservationNumber": "R-1", "userId": user_id,
            "eventId": event_id, "totalAmount": 90_000, "bookingFee": 0, "quantity": 1,
            "seatIds": [3], "timestamp": self.clock.now(), "paymentId": self.ids.next_id(),
            "paymentMethod": "card",
        })
    }

    /// Something is published, heard and known.
    pub async fn hear(&self, event_type: &str, data: Value) {
        assert_eq!(self.deliver(event_type, data).await, Ok(HandlerOutcome::Done), "{event_type}");
        self.queue.load().await.unwrap();
    }

    /// Handles an event as the consumer does.
    pub async fn deliver(
        &self,
        event_type: &str,
        data: Value,
    ) -> Result<HandlerOutcome, HandleError> {
        let id = self.ids.next_id();
        let event = DomainEvent {
            specversion: "1.0".to_owned(),
            id,
            source: "urr/test".to_owned(),
            event_type: event_type.to_owned(),
            subject: id.to_string(),
            time: self.clock.now(),
            datacontenttype: "application/json".to_owned(),
            data,
            correlation_id: id,
            causation_id: None,
            traceparent: Some(CallContext::root(id).trace.to_string()),
        };
        let context = HandlerContext::new(consumer::GROUP, &event, self.clock.now());
        self.db.write(move |tx| consumer::handle(tx, &event, &context)).await
    }

    /// Room settings as SQL: `threshold = 1`.
    pub async fn set_room(&self, event_id: Uuid, room_settings: &str) {
        let room = format!("update rooms set {room_settings} where event_id = $1");
        let change = move |tx: &mut urr_storage::Tx<'_>| {
            assert_eq!(tx.execute(&room, params![event_id])?, 1, "it is known");
            tx.execute("update rooms_revision set revision = revision + 1", &[])
        };
        self.db.write(change).await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        self.queue.load().await.unwrap();
    }

    /// This many more people join, one after the other.
    pub async fn come(&self, event_id: Uuid, count: usize) -> Vec<Fan> {
        let mut fans = Vec::with_capacity(count);
        for _ in 0..count {
            let fan = self.fan();
            fan.check(event_id).await.ok();
            fans.push(fan);
        }
        fans
    }

    /// From now on no statement can be executed.
    pub async fn close_database(&self) {
        let db = self.db.clone();
        tokio::task::spawn_blocking(move || db.close()).await.unwrap();
    }

    /// What an entry token says, if it is good now.
    #[track_caller]
    pub fn read_token(&self, answer: &Value) -> VerifiedToken<EntryClaims> {
        let token = answer["entryToken"].as_str().unwrap_or_else(|| panic!("{answer}"));
        TokenKey::new(&ENTRY_KEY).verify(ENTRY, token, self.clock.now()).unwrap()
    }

    /// One of our own programs calls.
    pub async fn call(&self, caller: Caller, path: &str, body: &Value) -> Answer {
        call(&self.router, caller, path, body).await
    }

    /// Whether a slot is live, as the ticket service asks.
    pub async fn is_live(&self, event_id: Uuid, user_id: Uuid, slot_id: Uuid) -> bool {
        let request = json!({"eventId": event_id, "userId": user_id, "slotId": slot_id});
        let path = "/internal/queue/slots";
        let answer = self.call(Caller::Ticket, path, &json!({ "checks": [request] })).await.ok();
        answer["live"][0].as_bool().unwrap()
    }
}

fn kit(clock: &Clock, ids: &IdSource, metrics: &Metrics) -> ServiceKit {
    let (clock, ids, metrics) = (clock.clone(), ids.clone(), metrics.clone());
    ServiceKit { clock, ids, metrics, limits: RequestLimits::default() }
}

pub async fn call(router: &Router, caller: Caller, path: &str, body: &Value) -> Answer {
    let request = Request::post(path).header("content-type", "application/json");
    let mut request = request.body(Body::from(body.to_string())).unwrap();
    request.extensions_mut().insert(caller);
    Answer::of(router.clone().oneshot(request).await.unwrap()).await
}

/// Someone at their browser, behind the gateway.
#[derive(Clone)]
pub struct Fan {
    pub id: Uuid,
    pub router: Router,
}

impl Fan {
    pub async fn check(&self, event_id: Uuid) -> Answer {
        self.post(&format!("/api/queue/check/{event_id}")).await
    }

    pub async fn status(&self, event_id: Uuid) -> Answer {
        self.get(&format!("/api/queue/status/{event_id}"), &[]).await
    }

    /// Polls with the entity tag of an earlier answer.
    pub async fn poll(&self, event_id: Uuid, known: &Answer) -> Answer {
        let tag = known.headers["etag"].to_str().unwrap();
        self.get(&format!("/api/queue/status/{event_id}"), &[("if-none-match", tag)]).await
    }

    pub async fn leave(&self, event_id: Uuid) -> Answer {
        self.post(&format!("/api/queue/leave/{event_id}")).await
    }

    pub async fn post(&self, path: &str) -> Answer {
        self.send(Request::post(path).body(Body::empty()).unwrap()).await
    }

    pub async fn get(&self, path: &str, headers: &[(&'static str, &str)]) -> Answer {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// The events of a stream as they come.
    pub async fn follow(&self, event_id: Uuid, query: &str) -> Places {
        let path = format!("/api/queue/stream/{event_id}{query}");
        let response = self.response(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Places { stream: response.into_body().into_data_stream(), read: String::new() }
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        Answer::of(self.response(request).await).await
    }

    pub async fn response(&self, mut request: Request<Body>) -> Response {
        request.extensions_mut().insert(Caller::Gateway);
        let identity = Identity { user_id: self.id, email: None, role: UserRole::User };
        identity.write(request.headers_mut());
        self.router.clone().oneshot(request).await.unwrap()
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    pub async fn of(response: Response) -> Answer {
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = within_reason(axum::body::to_bytes(response.into_body(), 10_000_000)).await;
        Answer { status, headers, bytes: bytes.unwrap().to_vec() }
    }

    /// The body of a success.
    #[track_caller]
    pub fn ok(&self) -> Value {
        let body = self.json();
        assert_eq!(self.status, StatusCode::OK, "{body}");
        body
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_slice(&self.bytes).unwrap()
    }

    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
        body
    }

    #[track_caller]
    pub fn is_unchanged(&self) {
        assert_eq!(self.status, StatusCode::NOT_MODIFIED, "{:?}", self.bytes);
        assert!(self.bytes.is_empty());
    }
}

/// What never ends is a failure, not a test that hangs.
async fn within_reason<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(30 * SECOND, work).await.expect("it comes within half a minute")
}

/// Someone's place as it comes over a stream.
pub struct Places {
    stream: BodyDataStream,
    read: String,
}

impl Places {
    /// None: the stream has ended.
    pub async fn next(&mut self) -> Option<Value> {
        within_reason(self.read_next()).await
    }

    async fn read_next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                // A line that begins with a colon is only a sign of life.
                let place = data.map(|data| serde_json::from_str(data.trim()).unwrap());
                self.read = rest.to_owned();
                if place.is_some() {
                    return place;
                }
                continue;
            }
            let bytes = self.stream.next().await?.unwrap();
            self.read.push_str(str::from_utf8(&bytes).unwrap());
        }
    }
}

/// A stub of the ticket service.
#[derive(Clone, Default)]
pub struct TicketStub(Arc<TicketStubState>);

#[derive(Default)]
struct TicketStubState {
    tiers: Mutex<HashMap<Uuid, &'static str>>,
    left: Mutex<HashMap<Uuid, Value>>,
    booking: Mutex<Option<Value>>,
    is_failing: AtomicBool,
    /// Without a permit no tier is answered.
    tier_gate: Mutex<Option<Arc<Semaphore>>>,
    tier_calls: AtomicU32,
    health_calls: AtomicU32,
    board_calls: AtomicU32,
    /// How often it was asked about each event.
    asked: Mutex<HashMap<Uuid, u32>>,
}

impl TicketStub {
    pub fn set_tier(&self, user_id: Uuid, tier: &'static str) {
        self.0.tiers.lock().unwrap().insert(user_id, tier);
    }

    /// From now on a tier is answered only with a permit.
    pub fn hold_tiers(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *self.0.tier_gate.lock().unwrap() = Some(Arc::clone(&gate));
        gate
    }

    pub fn set_left(&self, event_id: Uuid, available: u64, held: u64) {
        let left = json!({"available": available, "held": held, "total": 1_000});
        self.0.left.lock().unwrap().insert(event_id, left);
    }

    pub fn set_booking(&self, booking: Value) {
        *self.0.booking.lock().unwrap() = Some(booking);
    }

    pub fn fail(&self, is_failing: bool) {
        self.0.is_failing.store(is_failing, Ordering::SeqCst);
    }

    /// The number of calls: for a tier, and for the sales health.
    pub fn calls(&self) -> (u32, u32) {
        let TicketStubState { tier_calls, health_calls, .. } = &*self.0;
        (tier_calls.load(Ordering::SeqCst), health_calls.load(Ordering::SeqCst))
    }

    /// How often it was asked for the live board.
    pub fn board_calls(&self) -> u32 {
        self.0.board_calls.load(Ordering::SeqCst)
    }

    /// How often it was asked about an event.
    pub fn asked_for(&self, event_id: Uuid) -> u32 {
        self.0.asked.lock().unwrap().get(&event_id).copied().unwrap_or(0)
    }

    fn upstream(&self, kit: &ServiceKit) -> Upstream {
        let router = Router::new()
            .route(GetTier::SPEC.path, get(get_tier))
            .route(GetSalesHealth::SPEC.path, post(get_sales_health))
            .route(GetSaleBoard::SPEC.path, get(get_sale_board))
            .with_state(self.clone());
        Upstream::local(Caller::Queue, "ticket", router, kit)
    }

    fn answer(&self, answer: &Value) -> Response {
        match self.0.is_failing.load(Ordering::SeqCst) {
            true => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            false => ([("content-type", "application/json")], answer.to_string()).into_response(),
        }
    }
}

async fn get_tier(
    State(ticket): State<TicketStub>,
    Path((_, user)): Path<(Uuid, Uuid)>,
) -> Response {
    ticket.0.tier_calls.fetch_add(1, Ordering::SeqCst);
    let gate = ticket.0.tier_gate.lock().unwrap().clone();
    if let Some(gate) = gate {
        gate.acquire().await.unwrap().forget();
    }
    let tier = ticket.0.tiers.lock().unwrap().get(&user).copied();
    ticket.answer(&json!({ "tier": tier }))
}

async fn get_sales_health(State(ticket): State<TicketStub>, body: axum::Json<Value>) -> Response {
    ticket.0.health_calls.fetch_add(1, Ordering::SeqCst);
    let asked: Vec<Uuid> = serde_json::from_value(body["eventIds"].clone()).unwrap();
    assert!(asked.len() <= 1_000, "the ticket service accepts no more");
    for event_id in &asked {
        *ticket.0.asked.lock().unwrap().entry(*event_id).or_default() += 1;
    }
    let left = ticket.0.left.lock().unwrap();
    let events: HashMap<_, _> =
        asked.iter().filter_map(|id| left.get(id).map(|left| (id.to_string(), left))).collect();
    let booking = ticket.0.booking.lock().unwrap().clone();
    let booking = booking.unwrap_or_else(|| json!({"answered": 0, "failed": 0, "p95Micros": 0}));
    ticket.answer(&json!({ "events": events, "booking": booking }))
}

async fn get_sale_board(State(ticket): State<TicketStub>) -> Response {
    ticket.0.board_calls.fetch_add(1, Ordering::SeqCst);
    ticket.answer(&json!({
        "availability": {"available": 90, "held": 4, "total": 100},
        "booking": {"answered": 50, "failed": 1, "p95Micros": 9_000},
        "grades": [{"name": "R", "price": 90_000, "total": 100, "available": 90, "held": 4}],
    }))
}

/// A stub of the statistics and of the payment service: a charge of 1,000 won with every question.
#[derive(Clone, Default)]
pub struct MoneyStub(Arc<MoneyStubState>);

#[derive(Default)]
struct MoneyStubState {
    totals_calls: AtomicU32,
    history_calls: AtomicU32,
    figures_calls: AtomicU32,
    history: Mutex<Option<Value>>,
    is_failing: AtomicBool,
}

impl MoneyStub {
    /// How often it was asked: for totals, for the past, and for declined payments.
    pub fn calls(&self) -> [u32; 3] {
        let MoneyStubState { totals_calls, history_calls, figures_calls, .. } = &*self.0;
        [totals_calls, history_calls, figures_calls].map(|calls| calls.load(Ordering::SeqCst))
    }

    pub fn set_history(&self, history: Value) {
        *self.0.history.lock().unwrap() = Some(history);
    }

    pub fn fail(&self, is_failing: bool) {
        self.0.is_failing.store(is_failing, Ordering::SeqCst);
    }

    fn sources(&self, kit: &ServiceKit) -> LiveSources {
        let stats = Router::new()
            .route(GetSaleTotals::SPEC.path, get(get_sale_totals))
            .route(GetSaleHistory::SPEC.path, get(get_sale_history))
            .with_state(self.clone());
        let payment = Router::new()
            .route(GetPaymentFigures::SPEC.path, get(get_payment_figures))
            .with_state(self.clone());
        let upstream = |name, router: Router| Upstream::local(Caller::Queue, name, router, kit);
        LiveSources {
            stats: Some(StatsClient::new(upstream("stats", stats))),
            payment: Some(PaymentClient::new(upstream("payment", payment))),
        }
    }

    fn answer(&self, calls: &AtomicU32, answer: impl FnOnce(u32) -> Value) -> Response {
        let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
        match self.0.is_failing.load(Ordering::SeqCst) {
            true => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            false => axum::Json(answer(number)).into_response(),
        }
    }
}

async fn get_sale_totals(State(money): State<MoneyStub>) -> Response {
    money.answer(
        &money.0.totals_calls,
        |number| json!({"charges": number, "charged": number * 1_000, "refunds": 0, "refunded": 0}),
    )
}

async fn get_sale_history(State(money): State<MoneyStub>) -> Response {
    let nothing = json!({"charges": 0, "charged": 0, "refunds": 0, "refunded": 0});
    let history = money.0.history.lock().unwrap().clone();
    let empty = || json!({"totals": nothing, "seconds": [], "minutes": []});
    money.answer(&money.0.history_calls, |_| history.unwrap_or_else(empty))
}

async fn get_payment_figures(State(money): State<MoneyStub>) -> Response {
    money.answer(&money.0.figures_calls, |number| json!({"declined": number, "unclear": 2}))
}
