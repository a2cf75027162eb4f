//! Starts the services of a process one after the other, each with its storage, relay, consumer and
//! jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;
use urr_auth::AuthService;
use urr_bus::relay::RelayOptions;
use urr_bus::{Bus, Consumer, EventHandler, Relay, consumer, relay};
use urr_catalog::CatalogService;
use urr_kernel::Uuid;
use urr_queue::QueueService;
use urr_redis::Redis;
use urr_service::{
    Caller, Health, HttpClient, LocalService, Metrics, Readiness, RemoteService, RequestLimits,
    Service, ServiceKit, ServiceUrls, Upstream,
};
use urr_stats::{StatsParts, StatsService};
use urr_storage::{Db, StorageError};

use super::consumers::{self, EventConsumer};
use super::{ClockAndIds, auth, catalog, community, mail, payment, queue, ticket};
use crate::call_graph::{ServerKind, connections_of};
use crate::config::Config;
use crate::engines;
use crate::role::{ProcessRole, ProcessRoles};
use crate::supervisor::TaskSupervisor;

type BackgroundTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The parts of a [`super::System`] while it is being put together.
pub struct Builder<'a> {
    pub config: &'a Config,
    pub kit: &'a ServiceKit,
    pub redis: Option<Redis>,
    pub readiness: Readiness,
    pub draining: CancellationToken,
    pub stopping: CancellationToken,
    pub supervisor: TaskSupervisor,
    pub tasks: TaskTracker,
    pub bus: Option<Bus>,
    pub services: Vec<Service>,
    /// In the order of `services`.
    pub databases: Vec<Db>,
    pub auth: Option<AuthService>,
    pub catalog: Option<CatalogService>,
    pub queue: Option<QueueService>,
    pub rooms: Option<queue::OpenRooms>,
    roles: &'a ProcessRoles,
    bus_metrics: urr_bus::BusMetrics,
    client: HttpClient,
    /// The services of this process, which call each other before all of them have started.
    local: BTreeMap<ProcessRole, LocalService>,
    /// Spawned when all services have started, because jobs call other services.
    jobs: Vec<(&'static str, BackgroundTask)>,
    /// Who calls whom, as far as it was set up here.
    calls: Mutex<RolePairs>,
}

/// Pairs of a caller and whom it calls.
pub type RolePairs = BTreeSet<(ProcessRole, ProcessRole)>;

/// What every service of this process shares.
pub fn service_kit(config: &Config, sources: ClockAndIds) -> ServiceKit {
    let ClockAndIds { clock, ids } = sources;
    let metrics = Metrics::new().with_traces(config.traces.exported_percent());
    ServiceKit { clock, ids, metrics, limits: limits(config) }
}

impl<'a> Builder<'a> {
    pub async fn new(
        config: &'a Config,
        roles: &'a ProcessRoles,
        kit: &'a ServiceKit,
    ) -> Result<Builder<'a>> {
        let has_storage = roles.iter().any(|role| role.schema().is_some());
        let bus = match has_storage {
            true => Some(engines::open_bus(config, &kit.clock).await?),
            false => None,
        };
        if has_storage {
            warn_of_local_state(config, roles);
        }
        let needs_redis =
            |role: &ProcessRole| connections_of(*role).servers.contains(&ServerKind::Redis);
        let redis = match roles.iter().any(needs_redis) {
            true => engines::open_redis(config).await?,
            false => None,
        };
        let draining = CancellationToken::new();
        Ok(Builder {
            config,
            kit,
            redis,
            supervisor: TaskSupervisor::new(draining.clone()),
            // A process that drains is not ready either.
            readiness: Readiness::default(),
            draining,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            bus,
            services: Vec::new(),
            databases: Vec::new(),
            auth: None,
            catalog: None,
            queue: None,
            rooms: None,
            roles,
            bus_metrics: kit.metrics.with_registry(urr_bus::BusMetrics::register),
            client: own_client(config)?,
            local: roles.iter().map(|role| (*role, LocalService::default())).collect(),
            jobs: Vec::new(),
            calls: Mutex::default(),
        })
    }

    pub fn sources(&self) -> ClockAndIds {
        ClockAndIds { clock: self.kit.clock.clone(), ids: self.kit.ids.clone() }
    }

    pub async fn start_services(&mut self) -> Result<()> {
        let roles = self.roles;
        for role in ProcessRole::SERVICES.into_iter().filter(|role| roles.contains(role)) {
            let db = self.open_storage(role).await?;
            let service = match role {
                ProcessRole::Gateway => unreachable!("the gateway is no service"),
                ProcessRole::Auth => auth::start(self, db).await?,
                ProcessRole::Catalog => catalog::start(self, db)?,
                ProcessRole::Queue => queue::start(self, db).await?,
                ProcessRole::Ticket => ticket::start(self, db)?,
                ProcessRole::Payment => payment::start(self, db)?,
                ProcessRole::Stats => self.start_stats(db),
                ProcessRole::Mail => mail::start(self, db)?,
                ProcessRole::Community => community::start(self, db)?,
            };
            self.local[&role].set(&service);
            self.services.push(service);
        }
        for (name, jobs) in std::mem::take(&mut self.jobs) {
            self.spawn(name, jobs);
        }
        let names = self.services.iter().map(Service::name);
        let databases = names.zip(self.databases.iter().cloned()).collect();
        self.kit.metrics.observe_storages(databases);
        Ok(())
    }

    fn start_stats(&mut self, db: Db) -> Service {
        self.consume(&db, &consumers::STATS);
        StatsService::new(StatsParts { db, clock: self.kit.clock.clone() }).service(self.kit)
    }

    /// A service as one of its callers reaches it: in this process, or at its address.
    pub fn upstream(&self, caller: Caller, role: ProcessRole) -> Result<Upstream> {
        self.note_call(caller, role);
        if let Some(service) = self.local.get(&role) {
            return Ok(Upstream::local(caller, role.name(), service.clone(), self.kit));
        }
        let credentials = self.config.internal.credentials();
        let remote = RemoteService {
            urls: self.remote_urls(role)?,
            credential: credentials.for_call(caller, role.name()),
            client: self.client.clone(),
        };
        Ok(Upstream::remote(caller, role.name(), remote, self.kit))
    }

    /// Network policies follow the table of calls: what is not in it would work only in tests.
    fn note_call(&self, caller: Caller, role: ProcessRole) {
        let caller = ProcessRole::parse(caller.as_str()).expect("a role makes the call");
        assert!(
            connections_of(caller).calls.contains(&role),
            "{caller} calls {role}, and call_graph.rs does not have it"
        );
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert((caller, role));
    }

    /// Who calls whom.
    pub fn calls(&self) -> RolePairs {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remote_urls(&self, role: ProcessRole) -> Result<ServiceUrls> {
        let Some(urls) = self.config.services.joined_urls(role) else {
            let here: Vec<&str> = self.roles.iter().map(|role| role.name()).collect();
            bail!(
                "the {role} service does not run here ({}) and its address is not known; \
                 set services.{role}_url, or add {role} to --roles",
                here.join(", ")
            );
        };
        urls.parse().with_context(|| format!("services.{role}_url"))
    }

    /// Opens the storage of a role and starts the relay of its outbox.
    async fn open_storage(&mut self, role: ProcessRole) -> Result<Db> {
        let db = engines::open_storage(self.config, role, &self.kit.clock).await?;
        let relay = Relay {
            db: db.clone(),
            bus: self.bus().clone(),
            clock: self.kit.clock.clone(),
            holder: self.relay_holder(role),
            service: role.name(),
            metrics: self.bus_metrics.clone(),
            options: self.relay_options(),
        };
        self.spawn("a relay", relay::run(relay, self.stopping.clone()));
        self.databases.push(db.clone());
        Ok(db)
    }

    /// The id by which relays of one outbox exclude each other. On SQLite it is constant, because the
    /// data folder has one process: after a crash it need not wait for its own lease to end.
    fn relay_holder(&self, role: ProcessRole) -> Uuid {
        match engines::is_on_postgres(self.config, role) {
            true => self.kit.ids.next_id(),
            false => Uuid::max(),
        }
    }

    fn relay_options(&self) -> RelayOptions {
        let bus = &self.config.bus;
        RelayOptions {
            poll: Duration::from_millis(bus.outbox_poll_ms),
            // Longer than the bus keeps events: without its mark an event would be handled again.
            inbox_retention: 4 * engines::bus_retention(self.config),
            purge_interval: Duration::from_millis(bus.inbox_cleanup_interval_ms),
            ..RelayOptions::default()
        }
    }

    fn bus(&self) -> &Bus {
        self.bus.as_ref().expect("the bus is opened before any storage")
    }

    /// Starts a consumer of domain events.
    pub fn consume(&self, db: &Db, consumer: &EventConsumer) {
        self.consume_with(db, consumer, consumer.handle.into());
    }

    /// The same with a handler that knows the service.
    pub fn consume_with(&self, db: &Db, consumer: &EventConsumer, handler: EventHandler) {
        let EventConsumer { group, topics, types, .. } = *consumer;
        let consumer = Consumer {
            bus: self.bus().clone(),
            db: db.clone(),
            group: group.to_owned(),
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            types,
            handler,
            clock: self.kit.clock.clone(),
            metrics: self.bus_metrics.clone(),
        };
        self.spawn("a consumer", consumer::run(consumer, self.stopping.clone()));
    }

    /// Runs a supervised task until the process stops.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.supervisor.supervise(name, self.stopping.clone(), task));
    }

    /// Runs the jobs of a service as soon as all services have started.
    pub fn add_jobs(
        &mut self,
        name: &'static str,
        jobs: impl Future<Output = ()> + Send + 'static,
    ) {
        self.jobs.push((name, Box::pin(jobs)));
    }

    /// Closes streams when the process begins to stop: they would outlast the grace period.
    pub fn close_on_drain(&self, close: impl FnOnce() + Send + 'static) {
        let draining = self.draining.clone();
        self.tasks.spawn(async move {
            draining.cancelled().await;
            close();
        });
    }

    /// The health of everything in this process.
    pub fn health(&self, name: &'static str) -> Health {
        let mut health = Health::new(name, self.readiness.clone());
        for (db, service) in self.databases.iter().zip(&self.services) {
            let db = db.clone();
            health = health.check(service.name(), move || {
                let db = db.clone();
                async move {
                    // Through the writers, because a sale needs them.
                    let answer = db.write(|tx| tx.query_one("select 1 as one", &[], |_| Ok(())));
                    answer.await.map_err(|error: StorageError| {
                        // Health is public: addresses and logins stay in the log.
                        warn!(%error, "a storage does not answer");
                        "the storage does not answer".to_owned()
                    })
                }
            });
        }
        match &self.rooms {
            Some(rooms) => rooms.add_check(health),
            None => health,
        }
    }
}

/// The client for our own processes.
pub fn own_client(config: &Config) -> Result<HttpClient> {
    let tls = urr_tls::client_config(&config.internal.client_tls());
    Ok(HttpClient::with_tls(tls.context("internal.tls_root_path")?))
}

/// Warns of state in the data folder of a process that is not alone.
fn warn_of_local_state(config: &Config, roles: &ProcessRoles) {
    let folder = config.data.dir.display();
    let is_everything = *roles == ProcessRole::all();
    if roles.contains(&ProcessRole::Queue)
        && !is_everything
        && engines::has_rooms_in_process(config)
    {
        warn!(
            %folder,
            "the waiting rooms are in this process, their journal in this folder: run one queue \
             process only, or set redis.url"
        );
    }
    let is_on_postgres = roles.iter().any(|role| engines::is_on_postgres(config, *role));
    if is_on_postgres && config.bus.kafka_bootstrap_servers.is_empty() {
        // Events that are marked as published but exist only in the folder are lost with it.
        warn!(%folder, "tables are on PostgreSQL, but the bus is in this folder: keep both");
    }
}

/// The gateway decides per route how long a request may take; a service stops at the longest.
fn limits(config: &Config) -> RequestLimits {
    let gateway = &config.gateway;
    let longest = gateway.timeout_seconds.max(gateway.payment_timeout_seconds);
    RequestLimits {
        body_bytes_max: gateway.body_bytes_max,
        deadline_max: Duration::from_secs(longest.max(gateway.queue_timeout_seconds)),
    }
}
