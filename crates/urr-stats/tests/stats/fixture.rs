//! Statistics on a database of their own, on either engine, and messages as services publish them.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_bus::HandleError;
use urr_kernel::{CallContext, Clock, DomainEvent, IdSource, Timestamp, Uuid};
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};
use urr_stats::{SCHEMA, StatsParts, StatsService};
use urr_storage::{Db, StorageError};
use urr_test::engines::{Database, Engine, block_on};

pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(60 * 60);
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Noon in Korea, on a Sunday.
pub fn now() -> Timestamp {
    "2026-11-15T03:00:00Z".parse().unwrap()
}

pub struct World {
    database: Database,
    pub db: Db,
    pub clock: Clock,
    pub stats: StatsService,
    router: Router,
}

impl World {
    fn new(engine: Engine) -> Option<World> {
        let clock = Clock::manual(now());
        let database = Database::open(engine, &SCHEMA, clock.now())?;
        let db = database.db.clone();
        let stats = StatsService::new(StatsParts { db: db.clone(), clock: clock.clone() });
        let kit = ServiceKit {
            clock: clock.clone(),
            ids: IdSource::seeded(clock.clone(), 20_261_115),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let router = stats.service(&kit).local_router();
        Some(World { database, db, clock, stats, router })
    }

    pub fn engine(&self) -> Engine {
        self.database.engine
    }

    /// As the consumer does it, which does not know whether it was handled before.
    pub async fn consume(&self, event: &DomainEvent) {
        self.consume_together(std::slice::from_ref(event)).await;
    }

    pub async fn consume_all(&self, events: &[DomainEvent]) {
        for event in events {
            self.consume(event).await;
        }
    }

    /// As the consumer handles the events of one transaction.
    pub async fn consume_together(&self, events: &[DomainEvent]) {
        let events = events.to_vec();
        let done: Result<(), HandleError> = self
            .db
            .write(move |tx| urr_stats::handle_all(tx, &events.iter().collect::<Vec<_>>()))
            .await;
        done.unwrap();
    }

    /// Runs statements without parameters.
    pub async fn run(&self, statements: &[&'static str]) {
        let statements = statements.to_vec();
        let done: Result<(), StorageError> = self
            .db
            .write(move |tx| statements.iter().try_for_each(|sql| tx.execute(sql, &[]).map(|_| ())))
            .await;
        done.unwrap();
    }

    pub async fn delete_everything(&self) {
        let tables = [COUNTER_TABLES, FACT_TABLES].concat();
        let statements: Vec<String> =
            tables.iter().map(|table| format!("delete from {table}")).collect();
        let done: Result<(), StorageError> = self
            .db
            .write(move |tx| statements.iter().try_for_each(|sql| tx.execute(sql, &[]).map(|_| ())))
            .await;
        done.unwrap();
    }

    /// Every row of every table of counters, as text: whatever is stored, and nothing else.
    pub async fn counters(&self) -> Vec<String> {
        let rows: Result<Vec<String>, StorageError> = self
            .db
            .read(|tx| {
                let mut rows = Vec::new();
                for table in COUNTER_TABLES {
                    let columns = columns_of(table);
                    let select = columns.join(", ");
                    let read = tx.query(&format!("select {select} from {table}"), &[], |row| {
                        let mut text = (*table).to_owned();
                        for column in &columns {
                            let value = row
                                .get::<i64>(column)
                                .map(|value| value.to_string())
                                .or_else(|_| row.get::<String>(column))
                                .or_else(|_| row.get::<Uuid>(column).map(|id| id.to_string()));
                            text.push_str(&format!(" {column}={}", value?));
                        }
                        Ok(text)
                    })?;
                    rows.extend(read);
                }
                rows.sort();
                Ok(rows)
            })
            .await;
        rows.unwrap()
    }

    pub async fn get_as(&self, role: Option<UserRole>, path: &str) -> (StatusCode, Value) {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = format!("/api/stats/{path}").parse().unwrap();
        request.extensions_mut().insert(Caller::Gateway);
        if let Some(role) = role {
            let identity = Identity { user_id: Uuid::from_u128(7), email: None, role };
            identity.write(request.headers_mut());
        }
        let Ok(response) = self.router.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// The text of a file.
    pub async fn file(&self, role: UserRole, path: &str) -> String {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = format!("/api/stats/{path}").parse().unwrap();
        request.extensions_mut().insert(Caller::Gateway);
        let identity = Identity { user_id: Uuid::from_u128(7), email: None, role };
        identity.write(request.headers_mut());
        let Ok(response) = self.router.clone().oneshot(request).await;
        assert_eq!(response.headers()["content-type"], "text/csv; charset=utf-8", "{path}");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// The answer to the queue service.
    pub async fn call(&self, path: &str) -> Value {
        let request = Request::get(path).extension(Caller::Queue).body(Body::empty()).unwrap();
        let Ok(response) = self.router.clone().oneshot(request).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The data of an answer that is one.
    pub async fn data(&self, path: &str) -> Value {
        let (status, body) = self.get_as(Some(UserRole::Admin), path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        assert_eq!(body["success"], json!(true), "{path}");
        body["data"].clone()
    }

    /// The day's counters, or null.
    pub async fn day(&self, date: &str) -> Value {
        let days = self.data("daily?days=365").await;
        let found = days.as_array().unwrap().iter().find(|day| day["date"] == date);
        found.cloned().unwrap_or(Value::Null)
    }

    pub async fn event(&self, event: u128) -> Value {
        let id = Uuid::from_u128(event);
        self.data(&format!("events/{id}")).await["overview"].clone()
    }
}

const COUNTER_TABLES: &[&str] =
    &["activity", "hour_counters", "event_counters", "method_totals", "sold_seats"];

const FACT_TABLES: &[&str] = &[
    "counted_messages",
    "users",
    "reservations",
    "transactions",
    "events",
    "ticket_types",
    "rebuild",
    "inbox",
];

/// The columns of a table as its definition names them.
fn columns_of(table: &str) -> Vec<&'static str> {
    let start = format!("create table {table} (");
    let sql = SCHEMA.migrations.iter().map(|migration| migration.sql);
    let definition = sql.filter_map(|sql| sql.split_once(&start)).map(|(_, rest)| rest).next();
    let (definition, _) = definition.unwrap().split_once(");").unwrap();
    let first = |line: &'static str| line.trim().split_once(' ').map(|(word, _)| word);
    let lines = definition.lines().filter_map(first);
    lines.filter(|word| !["--", "primary", "constraint"].contains(word)).collect()
}

pub fn run<F: Future<Output = ()>>(engine: Engine, case: impl FnOnce(World) -> F) {
    if let Some(world) = World::new(engine) {
        block_on(case(world));
    }
}

/// Declares cases that run on both engines: `contract! { async fn name(world: World) { … } }`.
#[macro_export]
macro_rules! contract {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            sqlite = urr_test::engines::Engine::Sqlite,
            postgres = urr_test::engines::Engine::Postgres;
            $($(#[$meta])* async fn $name($world: $crate::fixture::World) $body)*
        }
    };
}

/// A message with an id of its own.
pub fn message(event_type: &str, at: Timestamp, data: Value) -> DomainEvent {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = Uuid::from_u128(u128::from(NEXT.fetch_add(1, Ordering::SeqCst)) << 8);
    let context = CallContext::root(id);
    DomainEvent {
        specversion: "1.0".to_owned(),
        id,
        source: "urr/test".to_owned(),
        event_type: event_type.to_owned(),
        subject: Uuid::nil().to_string(),
        time: at,
        datacontenttype: "application/json".to_owned(),
        data,
        correlation_id: context.correlation_id,
        causation_id: None,
        traceparent: None,
    }
}

/// The same fact published again: another id, another time.
pub fn copy_of(event: &DomainEvent, later: Duration) -> DomainEvent {
    message(&event.event_type, event.time + later, event.data.clone())
}

fn id(number: u128) -> String {
    Uuid::from_u128(number).to_string()
}

/// A reservation as the ticket service announces it.
#[derive(Clone, Debug)]
pub struct Booking {
    pub id: u128,
    pub event: u128,
    pub user: u128,
    pub amount: i64,
    pub seats: Vec<u32>,
}

impl Booking {
    pub fn new(id: u128, event: u128) -> Booking {
        Booking { id, event, user: 1, amount: 100_000, seats: vec![0, 1] }
    }

    fn facts(&self, more: Value) -> Value {
        let mut data = json!({
            "reservationId": id(self.id),
            "reservationNumber": format!("R{}", self.id),
            "userId": id(self.user),
            "eventId": id(self.event),
            "totalAmount": self.amount,
            "bookingFee": 0,
            "quantity": self.seats.len(),
            "seatIds": self.seats,
            "timestamp": now().to_string(),
        });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        data
    }

    pub fn created(&self, at: Timestamp) -> DomainEvent {
        let expires_at = (at + 5 * MINUTE).to_string();
        message("RESERVATION_CREATED", at, self.facts(json!({ "expiresAt": expires_at })))
    }

    pub fn changed(&self, at: Timestamp) -> DomainEvent {
        let more = json!({ "previousSeatIds": [], "previousTotalAmount": 0 });
        message("RESERVATION_CHANGED", at, self.facts(more))
    }

    pub fn confirmed(&self, at: Timestamp) -> DomainEvent {
        let more = json!({ "paymentId": id(self.id + 1_000), "paymentMethod": "card" });
        message("RESERVATION_CONFIRMED", at, self.facts(more))
    }

    pub fn sold_at_box_office(&self, at: Timestamp) -> DomainEvent {
        let more = json!({
            "paymentId": id(self.id + 1_000), "fencingToken": 1,
            "paymentMethod": "box_office_cash",
        });
        message("BOX_OFFICE_SOLD", at, self.facts(more))
    }

    pub fn given_away(&self, at: Timestamp) -> DomainEvent {
        message("COMPLIMENTARY_ISSUED", at, self.facts(json!({})))
    }

    pub fn cancelled(&self, at: Timestamp, refund: i64) -> DomainEvent {
        let more = json!({ "reason": "changed my mind", "refundAmount": refund });
        message("RESERVATION_CANCELLED", at, self.facts(more))
    }

    /// Some of its tickets were cancelled; it is as it is now.
    pub fn partly_cancelled(&self, at: Timestamp, refund: i64) -> DomainEvent {
        let more = json!({
            "cancellationId": id(self.id * 100 + self.seats.len() as u128 + 5_000_000),
            "cancelledSeatIds": [], "cancelledQuantity": 1, "cancelledAmount": refund,
            "refundAmount": refund, "cancellationFee": 0, "reason": "changed my mind",
            "paymentId": id(self.id + 1_000),
        });
        message("RESERVATION_PARTLY_CANCELLED", at, self.facts(more))
    }

    pub fn expired(&self, at: Timestamp) -> DomainEvent {
        message("RESERVATION_EXPIRED", at, self.facts(json!({})))
    }

    pub fn charged(&self, at: Timestamp, method: &str) -> DomainEvent {
        let mut data = self.payment(method, at);
        data["amount"] = json!(self.amount);
        data["bookingFee"] = json!(0);
        message("PAYMENT_CONFIRMED", at, data)
    }

    pub fn refunded(&self, at: Timestamp, method: &str, amount: i64, cause: &str) -> DomainEvent {
        let mut data = self.payment(method, at);
        let more = json!({
            "refundId": id(self.id + 2_000), "amount": amount, "fee": self.amount - amount,
            "cause": cause, "reason": "", "isWhole": amount == self.amount,
        });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message("PAYMENT_REFUNDED", at, data)
    }

    fn payment(&self, method: &str, at: Timestamp) -> Value {
        json!({
            "paymentId": id(self.id + 1_000),
            "orderId": format!("O{}", self.id),
            "userId": id(self.user),
            "paymentType": "reservation",
            "referenceId": id(self.id),
            "reservationId": id(self.id),
            "eventId": id(self.event),
            "paymentMethod": method,
            "timestamp": at.to_string(),
        })
    }

    /// Reserved, charged and confirmed, a minute after each other.
    pub fn sold(&self, at: Timestamp) -> Vec<DomainEvent> {
        vec![self.created(at), self.charged(at + MINUTE, "card"), self.confirmed(at + 2 * MINUTE)]
    }
}

/// A payment for a membership or a ticket that is passed on.
pub fn other_payment(payment: u128, kind: &str, amount: i64, at: Timestamp) -> DomainEvent {
    let data = json!({
        "paymentId": id(payment), "orderId": format!("O{payment}"), "userId": id(1),
        "paymentType": kind, "referenceId": id(payment + 1), "paymentMethod": "transfer",
        "timestamp": at.to_string(), "amount": amount, "bookingFee": 0,
    });
    message("PAYMENT_CONFIRMED", at, data)
}

pub fn membership_activated(membership: u128, payment: u128, at: Timestamp) -> DomainEvent {
    let data = json!({
        "membershipId": id(membership), "userId": id(1), "artistId": id(5),
        "paymentId": id(payment), "tier": "silver", "expiresAt": (at + 365 * DAY).to_string(),
        "amount": 30_000, "isRenewal": false,
    });
    message("MEMBERSHIP_ACTIVATED", at, data)
}

pub fn transfer_completed(transfer: u128, price: i64, at: Timestamp) -> DomainEvent {
    let data = json!({
        "transferId": id(transfer), "reservationId": id(1), "eventId": id(3), "sellerId": id(1),
        "buyerId": id(2), "originalPrice": price, "fee": 0, "totalPrice": price,
        "paymentId": id(transfer + 1), "sellerPaymentId": id(2), "sellerPayout": price,
    });
    message("TRANSFER_COMPLETED", at, data)
}

pub fn user_registered(user: u128, at: Timestamp) -> DomainEvent {
    message("USER_REGISTERED", at, json!({ "userId": id(user) }))
}

pub fn user_role_changed(user: u128, role: &str, at: Timestamp) -> DomainEvent {
    message("USER_ROLE_CHANGED", at, json!({ "userId": id(user), "role": role }))
}

pub fn user_deleted(user: u128, at: Timestamp) -> DomainEvent {
    message("USER_DELETED", at, json!({ "userId": id(user) }))
}

/// Two sections: A with two rows of two at 160,000 won, B with one row of four at 40,000 won.
pub fn event_created(event: u128, title: &str) -> DomainEvent {
    let mut data = event_data(event, title, 1);
    data["layout"] = json!({ "sections": [
        { "name": "A", "grade": "VIP", "rows": [
            { "label": "1", "seats": 2 }, { "label": "2", "seats": 2 },
        ]},
        { "name": "B", "grade": "S", "rows": [{ "label": "1", "seats": 4 }]},
    ]});
    message("EVENT_CREATED", now() - 20 * DAY, data)
}

pub fn standing_event_created(event: u128, title: &str) -> DomainEvent {
    let mut data = event_data(event, title, 1);
    data["kind"] = json!("standing");
    data["ticketTypes"] = json!([
        { "id": id(71), "name": "앞", "description": "", "price": 90_000, "total": 10 },
        { "id": id(72), "name": "뒤", "description": "", "price": 60_000, "total": 20 },
    ]);
    message("EVENT_CREATED", now() - 20 * DAY, data)
}

pub fn event_updated(event: u128, title: &str, revision: i64) -> DomainEvent {
    message("EVENT_UPDATED", now() - 10 * DAY, event_data(event, title, revision))
}

fn event_data(event: u128, title: &str, revision: i64) -> Value {
    json!({
        "eventId": id(event), "revision": revision, "title": title, "kind": "seated",
        "status": "on_sale", "venueId": id(9), "venueName": "강변 극장", "address": "서울",
        "startsAt": (now() + 30 * DAY).to_string(),
        "saleStartsAt": (now() - 10 * DAY).to_string(),
        "saleEndsAt": (now() + 20 * DAY).to_string(),
        "hasPresale": false, "seatsPerUserMax": 4, "prices": { "VIP": 160_000, "S": 40_000 },
    })
}

pub fn event_cancelled(event: u128, revision: i64) -> DomainEvent {
    message("EVENT_CANCELLED", now(), json!({ "eventId": id(event), "revision": revision }))
}

pub fn house_seats_changed(event: u128, blocked: u32, fence: i64) -> DomainEvent {
    let data = json!({ "eventId": id(event), "blocked": blocked, "fence": fence });
    message("HOUSE_SEATS_CHANGED", now(), data)
}

pub fn ticket_type_changed(event: u128, total: u32, fence: i64) -> DomainEvent {
    let data = json!({
        "eventId": id(event), "ticketTypeId": id(72), "name": "뒤", "description": "",
        "price": 60_000, "total": total, "fence": fence,
    });
    message("TICKET_TYPE_CHANGED", now(), data)
}
