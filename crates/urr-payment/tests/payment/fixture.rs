//! A payment service on a database of its own, on either engine, with a clock that stands still.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::sync::Notify;
use urr_bus::{HandleError, HandlerContext, HandlerOutcome};
use urr_contracts::clients::{PayableRef, TicketClient};
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{CallContext, Clock, DomainEvent, IdSource, Uuid, Won};
use urr_payment::provider::{ProviderClient, ProviderPayment, Sandbox, TestCard};
use urr_payment::{
    Approval, ApproveError, ApproveOrder, FaultMoment, FaultPoint, FaultPoints, LedgerAccount,
    OrderRequest, Payment, PaymentId, PaymentParts, PaymentService, PaymentSettings, PaymentStatus,
    PrepareError, SCHEMA, consumer,
};
use urr_service::{Caller, Metrics, RequestLimits, Service, ServiceKit, Upstream};
use urr_storage::{Db, Row, StorageError, TIME_MAX, TIME_MIN};
use urr_test::engines::{Database, Engine, block_on};
use utoipa_axum::router::OpenApiRouter;

use crate::fake_ticket_service::{CompletedTransfer, FakePayable, FakeTicketService};

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
    pub tickets: FakeTicketService,
    pub payments: PaymentService,
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
        let tickets = FakeTicketService::new(clock.clone());
        let parts = (&db, &clock, &ids, &sandbox);
        let payments = make(parts, &tickets, FaultPoints::default(), settings());
        World { db, clock, ids, sandbox, tickets, payments, _database: database }
    }

    /// Another process on the same tables.
    pub fn instance(&self, faults: FaultPoints) -> PaymentService {
        self.instance_with(faults, settings())
    }

    pub fn instance_with(&self, faults: FaultPoints, settings: PaymentSettings) -> PaymentService {
        let parts = (&self.db, &self.clock, &self.ids, &self.sandbox);
        make(parts, &self.tickets, faults, settings)
    }

    /// A process that sells by another provider, and knows the sandbox as well.
    pub fn instance_of(&self, provider: ProviderClient) -> PaymentService {
        let parts = PaymentParts {
            db: self.db.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            settings: PaymentSettings::default(),
            providers: vec![provider, ProviderClient::Sandbox(self.sandbox.clone())],
            tickets: ticket_client(&self.tickets, &self.clock, &self.ids),
            faults: FaultPoints::default(),
        };
        PaymentService::new(parts)
    }

    /// Somebody's hold, to be paid within five minutes.
    pub fn hold(&self) -> FakePayable {
        let held = FakePayable {
            id: self.ids.next_id(),
            kind: "reservation",
            reservation_id: None,
            is_taken_over: false,
            buyer_id: None,
            user_id: self.ids.next_id(),
            event_id: self.ids.next_id(),
            amount: PRICE,
            booking_fee: BOOKING_FEE,
            fence: 7,
            status: "pending",
            payment_status: "unpaid",
            expires_at: self.clock.now() + Duration::from_secs(300),
            pinned_by: None,
            ended: BTreeMap::new(),
            payment_id: None,
            refund_amount: None,
            updated_at: self.clock.now(),
            tickets: 0,
            cancel_fee: Won::ZERO,
        };
        self.tickets.hold(held.clone());
        held
    }

    /// A membership that somebody wants, for a term.
    pub fn membership(&self, term: i64) -> FakePayable {
        let held =
            FakePayable { kind: "membership", booking_fee: Won::ZERO, fence: term, ..self.hold() };
        self.tickets.hold(held.clone());
        held
    }

    /// A ticket that its owner has offered: anybody else can buy it for its price and a fee.
    pub fn listing(&self, reservation: &FakePayable) -> FakePayable {
        let fee = Won::new(reservation.amount.amount() / 10);
        let listing = FakePayable {
            kind: "transfer",
            user_id: reservation.user_id,
            event_id: reservation.event_id,
            reservation_id: Some(reservation.id),
            amount: reservation.amount.plus(fee).unwrap(),
            booking_fee: fee,
            expires_at: TIME_MAX,
            ..self.hold()
        };
        self.tickets.hold(listing.clone());
        listing
    }

    /// An order for something of any kind, by anybody.
    pub async fn order_of(
        &self,
        held: &FakePayable,
        user_id: Uuid,
    ) -> Result<Payment, PrepareError> {
        let kind = held.kind.parse().unwrap();
        let request = OrderRequest {
            user_id,
            payable: PayableRef { kind, id: held.id },
            amount: Some(held.amount),
            key: None,
        };
        self.payments.prepare_order(request, &self.context()).await
    }

    pub fn context(&self) -> CallContext {
        CallContext::root(self.ids.next_id())
    }

    pub async fn order(&self, held: &FakePayable) -> Payment {
        let request = OrderRequest {
            user_id: held.user_id,
            payable: PayableRef { kind: PayableKind::Reservation, id: held.id },
            amount: Some(held.amount),
            key: None,
        };
        self.payments.prepare_order(request, &self.context()).await.unwrap()
    }

    /// The order, and what the checkout gave its buyer for it.
    pub async fn approval(&self, order: &Payment, card: TestCard) -> ApproveOrder {
        let amount = order.amount;
        let payment_key = self.sandbox.issue_key(card, &order.order_id, amount).await.unwrap();
        let approval = Approval { user_id: order.user_id, payment_key, amount };
        ApproveOrder { order_id: order.order_id.clone(), approval, key: None, claim: None }
    }

    pub async fn approve(&self, approval: &ApproveOrder) -> Result<Payment, ApproveError> {
        self.payments.approve(approval.clone(), &self.context()).await
    }

    /// Pays a new hold with a card.
    pub async fn pay(&self, card: TestCard) -> (FakePayable, Payment) {
        let held = self.hold();
        let order = self.order(&held).await;
        let approval = self.approval(&order, card).await;
        let payment = self.approve(&approval).await.unwrap();
        (self.tickets.get(held.id), payment)
    }

    pub async fn find(&self, id: PaymentId) -> Payment {
        self.payments.find(id).await.unwrap().unwrap()
    }

    /// A ticket that is paid, and what is announced when it is cancelled.
    pub fn cancelled_event(&self, held: &FakePayable) -> DomainEvent {
        let data = json!({
            "reservationId": held.id,
            "reservationNumber": "R12345",
            "userId": held.user_id,
            "eventId": held.event_id,
            "totalAmount": held.amount,
            "quantity": 1,
            "seatIds": [],
            "timestamp": self.clock.now(),
            "reason": "CANCELLED_BY_OWNER",
            "refundAmount": held.refund_amount.unwrap_or(Won::ZERO),
            "paymentId": held.payment_id,
        });
        self.event("RESERVATION_CANCELLED", held.id, &data)
    }

    /// What is announced when some tickets are cancelled: their price, and what of it goes back.
    pub fn partly_cancelled_event(
        &self,
        held: &FakePayable,
        (price, refund): (i64, i64),
        cancellation_id: Uuid,
    ) -> DomainEvent {
        let data = json!({
            "reservationId": held.id,
            "reservationNumber": "R12345",
            "userId": held.user_id,
            "eventId": held.event_id,
            "totalAmount": held.amount.amount() - price,
            "quantity": 1,
            "seatIds": [],
            "timestamp": self.clock.now(),
            "cancellationId": cancellation_id,
            "cancelledSeatIds": [],
            "cancelledQuantity": 1,
            "cancelledAmount": price,
            "refundAmount": refund,
            "cancellationFee": price - refund,
            "reason": "CANCELLED_BY_OWNER",
            "paymentId": held.payment_id,
        });
        self.event("RESERVATION_PARTLY_CANCELLED", held.id, &data)
    }

    /// What is announced when a ticket has another owner.
    pub fn transfer_completed_event(&self, handed_over: &CompletedTransfer) -> DomainEvent {
        let CompletedTransfer { transfer, seller_id, seller_payment_id, seller_payout } =
            handed_over;
        let data = json!({
            "transferId": transfer.id,
            "reservationId": transfer.reservation_id,
            "eventId": transfer.event_id,
            "sellerId": seller_id,
            "buyerId": transfer.user_id,
            "originalPrice": seller_payout,
            "fee": transfer.booking_fee,
            "totalPrice": transfer.amount,
            "paymentId": transfer.payment_id,
            "sellerPaymentId": seller_payment_id,
            "sellerPayout": seller_payout,
        });
        self.event("TRANSFER_COMPLETED", transfer.id, &data)
    }

    pub fn event(&self, kind: &str, subject: Uuid, data: &Value) -> DomainEvent {
        let context = self.context();
        serde_json::from_value(json!({
            "specversion": "1.0",
            "id": self.ids.next_id(),
            "source": "urr/ticket",
            "type": kind,
            "subject": subject.to_string(),
            "time": self.clock.now(),
            "datacontenttype": "application/json",
            "data": data,
            "correlationid": context.correlation_id,
        }))
        .unwrap()
    }

    /// What the consumer does with an event, without its inbox.
    pub async fn consume(&self, event: &DomainEvent) -> Result<HandlerOutcome, HandleError> {
        let context = HandlerContext::new(consumer::GROUP, event, self.clock.now());
        let event = event.clone();
        self.db.write(move |tx| consumer::handle(tx, &event, &context)).await
    }

    /// Lets time pass and everybody do their work, until nothing is left to do.
    pub async fn settle(&self) {
        for _ in 0..60 {
            for held in self.tickets.take_cancelled() {
                self.consume(&self.cancelled_event(&held)).await.unwrap();
            }
            for handed_over in self.tickets.take_completed_transfers() {
                self.consume(&self.transfer_completed_event(&handed_over)).await.unwrap();
            }
            self.payments.resolve_due().await.unwrap();
            if self.open().await == 0 && !self.tickets.has_announcements() {
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
    pub async fn announced(&self) -> Vec<DomainEvent> {
        let bodies = self.query("select body from outbox order by seq", |row| row.get("body"));
        let bodies: Vec<String> = bodies.await;
        bodies.iter().map(|body| DomainEvent::from_bytes(body.as_bytes()).unwrap()).collect()
    }

    pub async fn provider_books(&self) -> Vec<ProviderPayment> {
        match self.sandbox.list(TIME_MIN, TIME_MAX).await {
            Ok(payments) => payments,
            Err(code) => panic!("the sandbox is open: {code}"),
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
        let proof = self.payments.prove_ledger().await.unwrap();
        assert!(proof.is_balanced(), "{proof}");
        let mut at_provider = 0;
        for paid in self.provider_books().await {
            let ours = self.payments.find_order(&paid.order_id).await.unwrap().unwrap();
            assert_eq!((ours.charged, ours.refunded), (paid.amount, paid.refunded), "{ours:?}");
            at_provider += paid.amount.amount() - paid.refunded.amount();
        }
        assert_eq!(proof.balance(LedgerAccount::Provider).amount(), at_provider, "{proof}");
        for held in self.tickets.all() {
            self.assert_held_whole(&held).await;
        }
        self.assert_announced_whole().await;
    }

    /// What must be true of one reservation and the payments for it.
    pub async fn assert_held_whole(&self, held: &FakePayable) {
        assert_eq!(held.pinned_by, None, "a hold stays pinned: {held:?}");
        assert!(held.tickets <= 1, "{held:?}");
        let payments = self.payments.list_by_payable(held.id).await.unwrap();
        let standing = payments.iter().filter(|payment| payment.status == PaymentStatus::Confirmed);
        let standing: Vec<&Payment> = standing.collect();
        let kept: i64 = payments.iter().map(|p| p.remaining().amount()).sum();
        if held.is_taken_over {
            assert_eq!((standing.len(), kept), (0, 0), "the seller has the money: {payments:?}");
            let paid_by = PaymentId(held.payment_id.unwrap());
            let stands = self.find(paid_by).await.status == PaymentStatus::Confirmed;
            assert_eq!(stands, held.status == "confirmed", "{held:?}");
            return;
        }
        match held.status {
            // Whether it is still paid for is told by what it has handed over.
            "confirmed" if held.kind == "transfer" => {}
            "confirmed" => {
                assert_eq!(standing.len(), 1, "a ticket without its payment: {payments:?}");
                assert_eq!(held.payment_id, Some(standing[0].id.0));
            }
            "cancelled" if held.payment_id.is_some() => {
                assert_eq!(standing.len(), 0, "{payments:?}");
                assert_eq!(held.payment_status, "refunded", "{held:?}");
                assert_eq!(kept, held.cancel_fee.amount(), "{payments:?}");
            }
            _ => {
                assert_eq!(standing.len(), 0, "a payment without its ticket: {payments:?}");
                assert_eq!(kept, 0, "money for nothing: {payments:?}");
            }
        }
    }

    /// Every charge and every refund was announced once.
    async fn assert_announced_whole(&self) {
        let announced = self.announced().await;
        let count = |kind: &str| announced.iter().filter(|e| e.event_type == kind).count();
        let told = "select count(*) as number from payments where confirmed_event_id is not null";
        assert_eq!(i64::try_from(count("PAYMENT_CONFIRMED")).unwrap(), self.number(told).await);
        let refunded = "select count(*) as number from refunds as r join payments as p \
                        on p.id = r.payment_id \
                        where r.status in ('done', 'closed') and p.confirmed_event_id is not null";
        assert_eq!(i64::try_from(count("PAYMENT_REFUNDED")).unwrap(), self.number(refunded).await);
        let reversed = "select count(*) as number from refunds as r join payments as p \
                        on p.id = r.payment_id \
                        where r.status in ('done', 'closed') and p.confirmed_event_id is null";
        assert_eq!(i64::try_from(count("CHARGE_REVERSED")).unwrap(), self.number(reversed).await);
    }
}

/// Nobody waits.
pub fn settings() -> PaymentSettings {
    PaymentSettings { recheck_after: Duration::ZERO, ..PaymentSettings::default() }
}

fn make(
    (db, clock, ids, sandbox): (&Db, &Clock, &IdSource, &Sandbox),
    tickets: &FakeTicketService,
    faults: FaultPoints,
    settings: PaymentSettings,
) -> PaymentService {
    let parts = PaymentParts {
        db: db.clone(),
        clock: clock.clone(),
        ids: ids.clone(),
        settings,
        providers: vec![ProviderClient::Sandbox(sandbox.clone())],
        tickets: ticket_client(tickets, clock, ids),
        faults,
    };
    PaymentService::new(parts)
}

pub fn ticket_client(tickets: &FakeTicketService, clock: &Clock, ids: &IdSource) -> TicketClient {
    let kit = ServiceKit {
        clock: clock.clone(),
        ids: ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    let service = Service::new("ticket", OpenApiRouter::new(), &kit);
    let service = service.with_calls(tickets.internal_calls());
    TicketClient::new(Upstream::local(Caller::Payment, "ticket", &service, &kit))
}

pub fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Keeps a saga after a call until it is told to go on.
pub struct Pause {
    reached: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Pause {
    pub fn at(name: &'static str) -> (FaultPoints, Pause) {
        let pause = Pause { reached: Arc::default(), go_on: Arc::default() };
        let (reached, go_on) = (Arc::clone(&pause.reached), Arc::clone(&pause.go_on));
        let faults = FaultPoints::listening(move |point| {
            let (reached, go_on) = (Arc::clone(&reached), Arc::clone(&go_on));
            let is_here = point == FaultPoint { moment: FaultMoment::After, name };
            async move {
                if is_here {
                    reached.notify_one();
                    go_on.notified().await;
                }
            }
            .boxed()
        });
        (faults, pause)
    }

    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    pub fn end(&self) {
        self.go_on.notify_one();
    }
}
