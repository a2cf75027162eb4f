//! A mail service on a database of its own, on either engine, with a clock that stands still.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use urr_bus::{HandleError, HandlerContext, HandlerOutcome};
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_kernel::{Clock, DomainEvent, IdSource, Uuid};
use urr_mail::{
    GROUP, Mail, MailFilter, MailKind, MailParts, MailService, MailSettings, MailTransport, SCHEMA,
    SmtpSecurity, SmtpSettings, SmtpTransport, handle,
};
use urr_service::{Caller, Metrics, Page, RequestLimits, ServiceKit, Upstream};
use urr_storage::Db;
use urr_test::engines::{Database, Engine, block_on};

use crate::peers::Peers;
use crate::smtp_server::SmtpServer;

pub const PUBLIC_URL: &str = "https://urr.example";
pub const FROM: &str = "URR <tickets@urr.example>";

/// Longer than a mail is in anybody's hands.
pub const LEASE_OVER: Duration = Duration::from_secs(181);

/// A mail service with all that is around it.
pub struct World {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub peers: Peers,
    pub metrics: Metrics,
    pub service: MailService,
    database: Database,
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
        let (peers, metrics) = (Peers::default(), Metrics::new());
        let kit = kit(&clock, &ids, metrics.clone());
        let service = make(&db, &kit, &peers, MailTransport::Log);
        World { db, clock, ids, peers, metrics, service, database }
    }

    /// Another process on the same tables.
    pub fn instance(&self, transport: MailTransport) -> MailService {
        let kit = kit(&self.clock, &self.ids, self.metrics.clone());
        make(&self.db, &kit, &self.peers, transport)
    }

    /// A process that sends by this server.
    pub fn service_over(&self, server: &SmtpServer) -> MailService {
        self.instance(smtp(plain(server)))
    }

    /// Everything that is stored: the bytes of the file, or the rows as text.
    pub fn stored_bytes(&self) -> Vec<u8> {
        self.database.stored_bytes()
    }

    /// Somebody with an address.
    pub fn register_user(&self, address: &str) -> Uuid {
        let id = self.ids.next_id();
        self.peers.register(id, address, "ko");
        id
    }

    pub fn event(&self, event_type: &str, data: Value) -> DomainEvent {
        serde_json::from_value(json!({
            "specversion": "1.0",
            "id": self.ids.next_id(),
            "source": "urr/test",
            "type": event_type,
            "subject": "subject",
            "time": self.clock.now(),
            "datacontenttype": "application/json",
            "data": data,
            "correlationid": self.ids.next_id(),
        }))
        .unwrap()
    }

    /// A purchase that the ticket server knows.
    pub fn confirmed(&self, user_id: Uuid) -> DomainEvent {
        let (reservation_id, event_id) = (self.ids.next_id(), self.ids.next_id());
        self.peers.book(reservation_id, event_id);
        self.event(
            "RESERVATION_CONFIRMED",
            json!({
                "reservationId": reservation_id, "reservationNumber": "R-7ZQ0-M4KD-91XA",
                "userId": user_id, "eventId": event_id, "totalAmount": 198_000,
                "bookingFee": 0, "quantity": 2, "seatIds": [7, 8],
                "paymentId": self.ids.next_id(), "paymentMethod": "card",
                "timestamp": self.clock.now(),
            }),
        )
    }

    pub fn admission_near(&self, user_id: Uuid) -> DomainEvent {
        self.event(
            "ADMISSION_NEAR",
            json!({
                "eventId": self.ids.next_id(), "userId": user_id, "eventTitle": "한강의 밤",
                "position": 120, "estimatedWaitSeconds": 170,
            }),
        )
    }

    /// What the consumer does with an event, without its inbox.
    pub async fn consume(&self, event: &DomainEvent) -> Result<HandlerOutcome, HandleError> {
        let context = HandlerContext::new(GROUP, event, self.clock.now());
        let event = event.clone();
        self.db.write(move |tx| handle(tx, &event, &context)).await
    }

    /// A mail to somebody, about a purchase.
    pub async fn purchase(&self) -> Mail {
        let event = self.confirmed(self.register_user("mina@example.com"));
        self.consume(&event).await.unwrap();
        let all = self.all().await;
        let subject = &event.data["reservationId"];
        all.into_iter().find(|mail| json!(mail.subject_id) == *subject).unwrap()
    }

    /// Every mail, the newest first.
    pub async fn all(&self) -> Vec<Mail> {
        self.service.list_mails(MailFilter::default(), Page::new(1, 100)).await.unwrap().0
    }

    pub async fn of_kind(&self, kind: MailKind) -> Vec<Mail> {
        let filter = MailFilter { kind: Some(kind), ..MailFilter::default() };
        self.service.list_mails(filter, Page::new(1, 100)).await.unwrap().0
    }

    /// The mail as it is now.
    pub async fn reload(&self, mail: &Mail) -> Mail {
        self.service.find_mail(mail.id).await.unwrap().unwrap()
    }

    /// The value of a metric.
    pub fn metric(&self, line: &str) -> Option<String> {
        let text = self.metrics.text();
        let found = text.lines().find_map(|found| found.strip_prefix(&format!("{line} ")));
        found.map(str::to_owned)
    }
}

/// Sends what is due.
pub async fn send(mails: &MailService) -> usize {
    mails.send_due(&CancellationToken::new()).await.unwrap()
}

pub fn smtp(settings: SmtpSettings) -> MailTransport {
    MailTransport::Smtp(Arc::new(SmtpTransport::new(settings).unwrap()))
}

pub fn plain(server: &SmtpServer) -> SmtpSettings {
    let settings = SmtpSettings::new("127.0.0.1", server.port, FROM);
    SmtpSettings { security: SmtpSecurity::None, ..settings }
}

pub fn kit(clock: &Clock, ids: &IdSource, metrics: Metrics) -> ServiceKit {
    let (clock, ids) = (clock.clone(), ids.clone());
    ServiceKit { clock, ids, metrics, limits: RequestLimits::default() }
}

fn make(db: &Db, kit: &ServiceKit, peers: &Peers, transport: MailTransport) -> MailService {
    let upstream = |name| Upstream::local(Caller::Mail, name, peers.router(), kit);
    MailService::new(MailParts {
        db: db.clone(),
        clock: kit.clock.clone(),
        ids: kit.ids.clone(),
        settings: MailSettings { public_url: PUBLIC_URL.to_owned() },
        transport,
        auth: AuthClient::new(upstream("auth")),
        ticket: TicketClient::new(upstream("ticket")),
    })
}
