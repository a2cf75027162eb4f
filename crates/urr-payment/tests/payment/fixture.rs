//! A payment service on a database of its own, on either engine, with a clock that stands still.

use std::future::Future;
use std::time::Duration;

use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{CallContext, Clock, Event, IdSource, Uuid, Won};
use urr_payment::provider::{Card, Listed, Provider, ProviderPayment, Sandbox};
use urr_payment::{
    Account, Approval, ApproveError, ApproveOrder, Faults, OrderRequest, Payment, PaymentParts,
    Payments, SCHEMA, Settings, Status, consume,
};
use urr_service::{Caller, Limits, Metrics, ServiceKit, Upstream};
use urr_storage::{Db, Row, StorageError, TIME_MAX, TIME_MIN};
use urr_test::engines::{Database, Engine, block_on};

use crate::office::{Held, Office};

pub const PRICE: Won = Won::new(102_000);
pub const BOOKING_FEE: Won = Won::new(2_000);
/// Longer than any pause between two looks at a payment.
const LONG: Duration = Duration::from_secs(301);

/// A payment service with all that is around it.
pub struct World {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub sandbox: Sandbox,
    pub office: Office,
    pub payments: Payments,
    _database: Database,
}

/// Runs one case with a database of its own.
pub fn run<F: Future<Output = ()>>(engine: Engine, case: impl FnOnce(World) -> F) {
    let clock = Clock::manual("2026-12-01T12:00:00Z".parse().unwrap());
    let Some(database) = Database::open(engine, &SCHEMA, clock.now()) else { return };
    block_on(async { case(World::new(clock, database)).await });
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

impl World {
    fn new(clock: Clock, database: Database) -> World {
        let ids = IdSource::seeded(clock.clone(), 20_261_201);
        let db = database.db.clone();
        let sandbox = Sandbox::new(db.clone(), clock.clone(), ids.clone()).without_waiting();
        let office = Office::new(clock.clone());
        let payments = make(&db, &clock, &ids, &sandbox, &office, Faults::default());
        World { db, clock, ids, sandbox, office, payments, _database: database }
    }

    /// Another process on the same tables.
    pub fn instance(&self, faults: Faults) -> Payments {
        make(&self.db, &self.clock, &self.ids, &self.sandbox, &self.office, faults)
    }

    /// Somebody's hold, to be paid within five minutes.
    pub fn hold(&self) -> Held {
        let held = Held {
            id: self.ids.next_id(),
            user_id: self.ids.next_id(),
            event_id: self.ids.next_id(),
            amount: PRICE,
            booking_fee: BOOKING_FEE,
            fence: 7,
            status: "pending",
            payment_status: "unpaid",
            expires_at: self.clock.now() + Duration::from_secs(300),
            pinned_by: None,
            payment_id: None,
            refund_amount: None,
            tickets: 0,
            cancel_fee: Won::ZERO,
        };
        self.office.hold(held.clone());
        held
    }

    pub fn context(&self) -> CallContext {
        CallContext::root(self.ids.next_id())
    }

    pub async fn order(&self, held: &Held) -> Payment {
        let request = OrderRequest {
            user_id: held.user_id,
            reservation_id: held.id,
            amount: Some(held.amount),
            key: None,
        };
        self.payments.prepare(request, &self.context()).await.unwrap()
    }

    /// The order, and what the checkout gave its buyer for it.
    pub async fn approval(&self, order: &Payment, card: Card) -> ApproveOrder {
        let amount = order.amount;
        let payment_key = self.sandbox.issue_key(card, &order.order_id, amount).await.unwrap();
        let approval = Approval { user_id: order.user_id, payment_key, amount };
        ApproveOrder { order_id: order.order_id.clone(), approval, key: None }
    }

    pub async fn approve(&self, approval: &ApproveOrder) -> Result<Payment, ApproveError> {
        self.payments.approve(approval.clone(), &self.context()).await
    }

    /// Pays a new hold with a card.
    pub async fn pay(&self, card: Card) -> (Held, Payment) {
        let held = self.hold();
        let order = self.order(&held).await;
        let approval = self.approval(&order, card).await;
        let payment = self.approve(&approval).await.unwrap();
        (self.office.get(held.id), payment)
    }

    pub async fn find(&self, id: urr_payment::PaymentId) -> Payment {
        self.payments.find(id).await.unwrap().unwrap()
    }

    /// A ticket that is paid, and what is announced when it is cancelled.
    pub fn cancelled_event(&self, held: &Held) -> Event {
        let data = serde_json::json!({
            "reservationId": held.id,
            "reservationNumber": "R12345",
            "userId": held.user_id,
            "eventId": held.event_id,
            "totalAmount": held.amount,
            "quantity": 1,
            "seatIds": [],
            "reason": "CANCELLED_BY_OWNER",
            "refundAmount": held.refund_amount.unwrap_or(Won::ZERO),
            "paymentId": held.payment_id,
        });
        let context = self.context();
        serde_json::from_value(serde_json::json!({
            "specversion": "1.0",
            "id": self.ids.next_id(),
            "source": "urr/ticket",
            "type": "RESERVATION_CANCELLED",
            "subject": held.id.to_string(),
            "time": self.clock.now(),
            "datacontenttype": "application/json",
            "data": data,
            "correlationid": context.correlation_id,
        }))
        .unwrap()
    }

    /// What the consumer does with an event, without its inbox.
    pub async fn hear(&self, event: &Event) -> Result<Handled, HandleError> {
        let context = HandlerContext::new(consume::GROUP, event, self.clock.now());
        let event = event.clone();
        self.db.write(move |tx| consume::handle(tx, &event, &context)).await
    }

    /// Lets time pass and everybody do their work, until nothing is left to do.
    pub async fn settle(&self) {
        for _ in 0..60 {
            for held in self.office.take_cancelled() {
                self.hear(&self.cancelled_event(&held)).await.unwrap();
            }
            self.payments.resolve_due().await.unwrap();
            if self.open().await == 0 {
                return;
            }
            self.clock.advance(LONG);
        }
        panic!("payments never come to rest: {:?}", self.rows().await);
    }

    /// Everybody does their work until nothing is left to do, and hardly any time passes.
    pub async fn settle_now(&self) {
        for _ in 0..60 {
            self.payments.resolve_due().await.unwrap();
            if self.open().await == 0 {
                return;
            }
            self.clock.advance(Duration::from_secs(2));
        }
        panic!("payments never come to rest: {:?}", self.rows().await);
    }

    async fn open(&self) -> i64 {
        self.number("select count(*) as number from payments where step is not null").await
    }

    async fn rows(&self) -> Vec<String> {
        let sql = "select order_id, status, coalesce(step, '') as step, \
                   coalesce(failure_code, '') as code from payments";
        self.query(sql, |row| {
            let word = |name: &str| row.get::<String>(name);
            Ok(format!(
                "{} {} {} {}",
                word("order_id")?,
                word("status")?,
                word("step")?,
                word("code")?
            ))
        })
        .await
    }

    pub async fn number(&self, sql: &'static str) -> i64 {
        self.query(sql, |row| row.get("number")).await[0]
    }

    pub async fn query<T: Send + 'static>(
        &self,
        sql: &'static str,
        read: fn(&Row<'_>) -> Result<T, StorageError>,
    ) -> Vec<T> {
        let rows: Result<Vec<T>, StorageError> =
            self.db.read(move |tx| tx.query(sql, &[], read)).await;
        rows.unwrap()
    }

    /// What was announced, in order.
    pub async fn announced(&self) -> Vec<Event> {
        let bodies = self.query("select body from outbox order by seq", |row| row.get("body"));
        let bodies: Vec<String> = bodies.await;
        bodies.iter().map(|body| Event::from_bytes(body.as_bytes()).unwrap()).collect()
    }

    pub async fn provider_books(&self) -> Vec<ProviderPayment> {
        match self.sandbox.list(TIME_MIN, TIME_MAX).await {
            Listed::Payments(payments) => payments,
            Listed::Unknown { code } => panic!("the sandbox is open: {code}"),
        }
    }

    /// What must be true when everything has come to rest: every charge is a ticket or was given
    /// back, and everybody's books say the same.
    pub async fn assert_whole(&self) {
        assert_eq!(self.open().await, 0, "{:?}", self.rows().await);
        let moving = self.number(
            "select count(*) as number from payments \
             where status in ('approving', 'unknown', 'refunding')",
        );
        assert_eq!(moving.await, 0, "{:?}", self.rows().await);
        let proof = self.payments.prove().await.unwrap();
        assert!(proof.holds(), "{proof}");
        let mut at_provider = 0;
        for paid in self.provider_books().await {
            let ours = self.payments.find_order(&paid.order_id).await.unwrap().unwrap();
            assert_eq!((ours.charged, ours.refunded), (paid.amount, paid.returned), "{ours:?}");
            at_provider += paid.amount.amount() - paid.returned.amount();
        }
        assert_eq!(proof.balance(Account::Provider).amount(), at_provider, "{proof}");
        for held in self.office.all() {
            self.assert_held_whole(&held).await;
        }
        self.assert_announced_whole().await;
    }

    /// What must be true of one reservation and the payments for it.
    pub async fn assert_held_whole(&self, held: &Held) {
        assert_eq!(held.pinned_by, None, "a hold stays pinned: {held:?}");
        assert!(held.tickets <= 1, "{held:?}");
        let payments = self.payments.list_of_target(held.id).await.unwrap();
        let standing = payments.iter().filter(|payment| payment.status == Status::Confirmed);
        let standing: Vec<&Payment> = standing.collect();
        match held.status {
            "confirmed" => {
                assert_eq!(standing.len(), 1, "a ticket without its payment: {payments:?}");
                assert_eq!(held.payment_id, Some(standing[0].id.0));
            }
            "cancelled" if held.payment_id.is_some() => {
                assert_eq!(standing.len(), 0, "{payments:?}");
                assert_eq!(held.payment_status, "refunded", "{held:?}");
                let kept: i64 = payments.iter().map(|p| p.remaining().amount()).sum();
                assert_eq!(kept, held.cancel_fee.amount(), "{payments:?}");
            }
            _ => {
                assert_eq!(standing.len(), 0, "a payment without its ticket: {payments:?}");
                let kept: i64 = payments.iter().map(|p| p.remaining().amount()).sum();
                assert_eq!(kept, 0, "money for nothing: {payments:?}");
            }
        }
    }

    /// Who was told of a charge was told once, and of every return once.
    async fn assert_announced_whole(&self) {
        let announced = self.announced().await;
        let count = |kind: &str| announced.iter().filter(|e| e.event_type == kind).count();
        let told = "select count(*) as number from payments where confirmed_event_id is not null";
        assert_eq!(i64::try_from(count("PAYMENT_CONFIRMED")).unwrap(), self.number(told).await);
        let returned = "select count(*) as number from refunds as r join payments as p \
                        on p.id = r.payment_id \
                        where r.status = 'done' and p.confirmed_event_id is not null";
        assert_eq!(i64::try_from(count("PAYMENT_REFUNDED")).unwrap(), self.number(returned).await);
    }
}

fn make(
    db: &Db,
    clock: &Clock,
    ids: &IdSource,
    sandbox: &Sandbox,
    office: &Office,
    faults: Faults,
) -> Payments {
    let payments = Payments::new(PaymentParts {
        db: db.clone(),
        clock: clock.clone(),
        ids: ids.clone(),
        settings: Settings::default(),
        providers: vec![Provider::Sandbox(sandbox.clone())],
        faults,
    });
    let kit = ServiceKit {
        clock: clock.clone(),
        ids: ids.clone(),
        metrics: Metrics::new(),
        limits: Limits::default(),
    };
    let upstream = Upstream::local(Caller::Payment, "ticket", office.router(), &kit);
    payments.connect_office(upstream);
    payments
}

pub fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}
