//! The processes of a run: the real services on the simulation's databases, bus and network.
//!
//! A process has its own clock, its own database handles and its own tasks. When it crashes, its
//! tasks end, its waiting transactions are never run, and what still refers to it waits for ever.

mod link;

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;
use urr_bus::relay::RelayOptions;
use urr_bus::{Bus, BusMetrics, Consumer, EventHandler, HandlerOutcome, Relay, consumer, relay};
use urr_contracts::clients::{QueueClient, TicketClient};
use urr_kernel::{Clock, IdSource, Secret};
use urr_payment::provider::{ProviderClient, Sandbox};
use urr_payment::{FaultPoints, PaymentParts, PaymentService, PaymentSettings};
use urr_queue::draw::{BeaconSource, DrawSeal};
use urr_queue::{LiveSources, Notices, QueueParts, QueueService, QueueSettings};
use urr_room::Rooms;
use urr_room::memory::MemoryRooms;
use urr_service::token::TokenKey;
use urr_service::{Caller, DataKeys, Metrics, RequestLimits, Service, ServiceKit, Upstream};
use urr_storage::{Db, StepQueue, params};
use urr_ticket::{
    PersonFinder, SeatLocks, Signer, SlotChecker, TicketParts, TicketService, TicketSettings,
};
use utoipa_axum::router::OpenApiRouter;

use self::link::Link;
use crate::databases::{DatabaseName, Databases, HOLD_TTL, THRESHOLD};
use crate::network::Network;
use crate::sabotage::Sabotage;

/// The time limit of a call to the provider.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(2);
/// Housekeeping that a run has no use for.
const NEVER: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// A part of the product that runs as a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Ticket,
    Payment,
    Queue,
    Stats,
    Catalog,
    Witness,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Ticket => "ticket",
            Role::Payment => "payment",
            Role::Queue => "queue",
            Role::Stats => "stats",
            Role::Catalog => "catalog",
            Role::Witness => "witness",
        }
    }

    pub fn database(self) -> DatabaseName {
        match self {
            Role::Ticket => DatabaseName::Ticket,
            Role::Payment => DatabaseName::Payment,
            Role::Queue => DatabaseName::Queue,
            Role::Stats => DatabaseName::Stats,
            Role::Catalog => DatabaseName::Catalog,
            Role::Witness => DatabaseName::Witness,
        }
    }
}

/// The service in a process.
#[derive(Clone)]
pub enum Instance {
    Ticket(TicketService, SlotChecker),
    Payment(PaymentService),
    Queue(QueueService),
    /// Only an outbox, only consumers, or nothing but its tables.
    Tables(Db),
}

impl Instance {
    pub fn ticket(&self) -> (&TicketService, &SlotChecker) {
        match self {
            Instance::Ticket(service, slots) => (service, slots),
            _ => unreachable!("the registry finds services by their role"),
        }
    }

    pub fn payment(&self) -> &PaymentService {
        match self {
            Instance::Payment(service) => service,
            _ => unreachable!("the registry finds services by their role"),
        }
    }

    pub fn queue(&self) -> &QueueService {
        match self {
            Instance::Queue(service) => service,
            _ => unreachable!("the registry finds services by their role"),
        }
    }

    pub fn tables(&self) -> &Db {
        match self {
            Instance::Tables(db) => db,
            _ => unreachable!("the registry finds services by their role"),
        }
    }
}

/// A live process, as others reach it.
#[derive(Clone)]
pub struct LiveProcess {
    pub number: u32,
    role: Role,
    pub instance: Instance,
    pub died: CancellationToken,
    /// For those who may call it.
    upstreams: Vec<(Caller, Upstream)>,
}

/// Who is alive. Clones share it.
#[derive(Clone, Default)]
pub struct Registry(Arc<RegistryState>);

#[derive(Default)]
struct RegistryState {
    live: Mutex<Vec<LiveProcess>>,
    turn: AtomicUsize,
}

impl Registry {
    /// A live process of the role; they take turns.
    pub fn find(&self, role: Role) -> Option<LiveProcess> {
        let live = self.live();
        let all: Vec<&LiveProcess> = live.iter().filter(|process| process.role == role).collect();
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
        (!all.is_empty()).then(|| all[turn % all.len()].clone())
    }

    /// Forgets everybody. Services know each other by way of the registry, so without this they
    /// would stay in memory for ever.
    pub fn clear(&self) {
        let live = std::mem::take(&mut *self.live());
        drop(live);
    }

    fn live(&self) -> MutexGuard<'_, Vec<LiveProcess>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all processes of a run share.
#[derive(Clone)]
pub struct Surroundings {
    pub databases: Databases,
    pub network: Network,
    pub registry: Registry,
    pub bus: Bus,
    pub provider: Sandbox,
    pub sabotage: Option<Sabotage>,
    pub seed: u64,
}

/// A process of a run.
pub struct SimulatedProcess {
    pub role: Role,
    /// Different for every process that was ever started.
    pub number: u32,
    pub clock: Arc<AtomicI64>,
    pub queues: Vec<(DatabaseName, StepQueue)>,
    tasks: Vec<AbortHandle>,
    died: CancellationToken,
}

/// How a process is started.
#[derive(Clone)]
pub struct ProcessStart {
    pub role: Role,
    pub number: u32,
    pub clock: Arc<AtomicI64>,
}

impl SimulatedProcess {
    /// Opens its databases. The service starts with [`SimulatedProcess::join`], when it is made.
    pub fn open(surroundings: &Surroundings, start: &ProcessStart) -> (SimulatedProcess, Vec<Db>) {
        let ProcessStart { role, number, clock } = start.clone();
        let mut names = vec![role.database()];
        if role == Role::Queue {
            names.push(DatabaseName::Journal);
        }
        let opened = names.iter().map(|name| surroundings.databases.get(*name).open());
        let (handles, queues): (Vec<Db>, Vec<StepQueue>) = opened.unzip();
        let queues = names.into_iter().zip(queues).collect();
        let (tasks, died) = (Vec::new(), CancellationToken::new());
        (SimulatedProcess { role, number, clock, queues, tasks, died }, handles)
    }

    /// Ends it between two steps. Its transactions stay where they are and are never run.
    pub fn crash(&mut self, registry: &Registry) {
        registry.live().retain(|process| process.number != self.number);
        for task in self.tasks.drain(..) {
            task.abort();
        }
        self.died.cancel();
    }

    fn keep(&mut self, task: &JoinHandle<()>) {
        self.tasks.push(task.abort_handle());
    }
}

/// Builds the service of a process, and starts its relay and its consumer.
pub struct ServiceStart {
    pub surroundings: Surroundings,
    pub start: ProcessStart,
    pub handles: Vec<Db>,
    pub died: CancellationToken,
}

impl ServiceStart {
    pub fn new(
        surroundings: &Surroundings,
        start: ProcessStart,
        handles: Vec<Db>,
        process: &SimulatedProcess,
    ) -> ServiceStart {
        let (surroundings, died) = (surroundings.clone(), process.died.clone());
        ServiceStart { surroundings, start, handles, died }
    }

    fn clock(&self) -> Clock {
        Clock::Manual(Arc::clone(&self.start.clock))
    }

    fn ids(&self) -> IdSource {
        let number = u64::from(self.start.number);
        let seed = self.surroundings.seed.wrapping_mul(1_000_003).wrapping_add(number);
        IdSource::seeded(self.clock(), seed)
    }

    fn kit(&self) -> ServiceKit {
        ServiceKit {
            clock: self.clock(),
            ids: self.ids(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        }
    }

    /// Makes the service. It may read its tables, so somebody must run its steps.
    pub async fn make(self) -> LiveProcess {
        let kit = self.kit();
        let (instance, upstreams) = match self.start.role {
            Role::Ticket => self.ticket(&kit),
            Role::Payment => (self.payment(&kit), Vec::new()),
            Role::Queue => self.queue(&kit).await,
            Role::Stats | Role::Catalog | Role::Witness => {
                (Instance::Tables(self.handles[0].clone()), Vec::new())
            }
        };
        let ProcessStart { role, number, .. } = self.start;
        LiveProcess { number, role, instance, died: self.died, upstreams }
    }

    fn ticket(&self, kit: &ServiceKit) -> (Instance, Vec<(Caller, Upstream)>) {
        let is_sabotaged = |sabotage| self.surroundings.sabotage == Some(sabotage);
        let queue = self.link(Caller::Ticket, Role::Queue).service(kit);
        let slots = match is_sabotaged(Sabotage::SlotCheck) {
            true => SlotChecker::AllowAll,
            false => SlotChecker::new(QueueClient::new(queue)),
        };
        let without_guard = is_sabotaged(Sabotage::SeatGuard);
        let service = TicketService::new(TicketParts {
            db: self.handles[0].clone(),
            clock: self.clock(),
            ids: self.ids(),
            settings: TicketSettings {
                hold_ttl: HOLD_TTL,
                hold_extension: HOLD_TTL / 2,
                lock_ttl: HOLD_TTL * 2,
                dangerous_without_seat_guard: without_guard,
                ..TicketSettings::default()
            },
            locks: if without_guard { SeatLocks::off() } else { SeatLocks::memory(self.clock()) },
            signer: Signer::new(
                &Secret::new("a secret that only the simulation has, not secret"),
                &[],
            ),
            data_keys: DataKeys::single(Secret::new("a data key of the simulation")),
            slots: slots.clone(),
            persons: PersonFinder::nobody(),
            peers: None,
        });
        let answering =
            Service::new("ticket", OpenApiRouter::new(), kit).with_calls(service.internal_calls());
        let upstream = Upstream::local(Caller::Payment, "ticket", &answering, kit);
        (Instance::Ticket(service, slots), vec![(Caller::Payment, upstream)])
    }

    fn payment(&self, kit: &ServiceKit) -> Instance {
        let tickets = self.link(Caller::Payment, Role::Ticket).service(kit);
        Instance::Payment(PaymentService::new(PaymentParts {
            db: self.handles[0].clone(),
            clock: self.clock(),
            ids: self.ids(),
            settings: PaymentSettings::default(),
            providers: vec![ProviderClient::Sandbox(self.surroundings.provider.clone())],
            tickets: TicketClient::new(tickets),
            faults: FaultPoints::default(),
        }))
    }

    async fn queue(&self, kit: &ServiceKit) -> (Instance, Vec<(Caller, Upstream)>) {
        let now = self.clock().now();
        let opened = MemoryRooms::open(self.handles[1].clone(), self.ids(), now).await;
        let (rooms, _) = opened.expect("nothing fails while a process starts");
        let is_sabotaged = self.surroundings.sabotage == Some(Sabotage::Threshold);
        let service = QueueService::new(QueueParts {
            db: self.handles[0].clone(),
            clock: self.clock(),
            ids: self.ids(),
            settings: QueueSettings {
                threshold: THRESHOLD + u32::from(is_sabotaged),
                slot_ttl: HOLD_TTL * 2,
                slot_max: HOLD_TTL * 8,
                ..QueueSettings::default()
            },
            rooms: Rooms::Memory(rooms),
            entry_key: TokenKey::new(b"a key that only the simulation has, not secret"),
            notices: Notices::off(),
            ticket: TicketClient::new(self.link(Caller::Queue, Role::Ticket).service(kit)),
            draw_seal: DrawSeal::new(&Secret::new(
                "a secret that only the simulation has, not secret",
            )),
            beacon: BeaconSource::Offline,
            live_sources: LiveSources { stats: None, payment: None },
        });
        service.load().await.expect("nothing fails while a process starts");
        let answering =
            Service::new("queue", OpenApiRouter::new(), kit).with_calls(service.internal_calls());
        let upstream = Upstream::local(Caller::Ticket, "queue", &answering, kit);
        (Instance::Queue(service), vec![(Caller::Ticket, upstream)])
    }

    fn link(&self, caller: Caller, to: Role) -> Link {
        let Surroundings { network, registry, sabotage, .. } = &self.surroundings;
        Link {
            caller,
            to,
            network: network.clone(),
            registry: registry.clone(),
            sabotage: *sabotage,
            caller_died: self.died.clone(),
            live_once: Arc::default(),
        }
    }
}

impl SimulatedProcess {
    /// Takes part from now on.
    pub fn join(&mut self, surroundings: &Surroundings, live: LiveProcess, handles: &[Db]) {
        let clock = Clock::Manual(Arc::clone(&self.clock));
        let db = &handles[0];
        if matches!(self.role, Role::Ticket | Role::Payment | Role::Queue | Role::Catalog) {
            let holder = urr_kernel::Uuid::from_u128(u128::from(self.number) + 1);
            let relay = Relay {
                db: db.clone(),
                bus: surroundings.bus.clone(),
                clock: clock.clone(),
                holder,
                service: self.role.name(),
                metrics: BusMetrics::default(),
                options: RelayOptions {
                    lag_interval: NEVER,
                    purge_interval: NEVER,
                    ..RelayOptions::default()
                },
            };
            let task = tokio::spawn(relay::run(relay, CancellationToken::new()));
            self.keep(&task);
        }
        if let Some(consumed) = consumed(self.role, &live.instance, surroundings.sabotage) {
            let consumer = Consumer {
                bus: surroundings.bus.clone(),
                db: db.clone(),
                group: consumed.group.to_owned(),
                topics: consumed.topics.iter().map(|topic| (*topic).to_owned()).collect(),
                types: consumed.types,
                handler: consumed.handler,
                clock,
                metrics: BusMetrics::default(),
            };
            let task = tokio::spawn(consumer::run(consumer, CancellationToken::new()));
            self.keep(&task);
        }
        surroundings.registry.live().push(live);
    }
}

struct Consumed {
    group: &'static str,
    topics: &'static [&'static str],
    types: Option<&'static [&'static str]>,
    handler: EventHandler,
}

/// As `urr` composes them.
fn consumed(role: Role, instance: &Instance, sabotage: Option<Sabotage>) -> Option<Consumed> {
    Some(match role {
        Role::Ticket => Consumed {
            group: urr_ticket::consumer::GROUP,
            topics: urr_ticket::consumer::TOPICS,
            types: Some(urr_ticket::consumer::TYPES),
            handler: instance.ticket().0.event_handler(),
        },
        Role::Payment => Consumed {
            group: urr_payment::consumer::GROUP,
            topics: urr_payment::consumer::TOPICS,
            types: Some(urr_payment::consumer::TYPES),
            handler: match sabotage == Some(Sabotage::ConsumerEffect) {
                true => EventHandler::Each(Arc::new(|_, _, _| Ok(HandlerOutcome::Done))),
                false => EventHandler::Each(Arc::new(urr_payment::consumer::handle)),
            },
        },
        Role::Queue => Consumed {
            group: urr_queue::consumer::GROUP,
            topics: urr_queue::consumer::TOPICS,
            types: Some(urr_queue::consumer::TYPES),
            handler: EventHandler::Each(Arc::new(urr_queue::consumer::handle)),
        },
        Role::Stats => Consumed {
            group: urr_stats::GROUP,
            topics: urr_stats::TOPICS,
            types: None,
            handler: EventHandler::Repeatable(Arc::new(urr_stats::handle)),
        },
        Role::Witness => Consumed {
            group: "witness-group",
            topics: urr_stats::TOPICS,
            types: None,
            handler: EventHandler::Each(Arc::new(|tx, event, _| {
                let sql = "insert into counted (event_id, times) values ($1, 1) \
                           on conflict (event_id) do update set times = counted.times + 1";
                tx.execute(sql, params![event.id])?;
                Ok(HandlerOutcome::Done)
            })),
        },
        Role::Catalog => return None,
    })
}

/// The provider, which no crash of ours touches.
pub fn provider(databases: &Databases, clock: &Arc<AtomicI64>, seed: u64) -> (Sandbox, StepQueue) {
    let (db, queue) = databases.get(DatabaseName::Provider).open();
    let clock = Clock::Manual(Arc::clone(clock));
    let ids = IdSource::seeded(clock.clone(), seed.wrapping_mul(7_919));
    (Sandbox::new(db, clock, ids).with_time_limit(PROVIDER_TIMEOUT), queue)
}
