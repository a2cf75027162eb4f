//! Composition: which engines are opened, which services run here, which calls are local.
//!
//! This is the only place that knows the difference between one process and many.

mod accounts;
mod catalogue;
mod mail;
mod notices;
mod payments;
mod queue;
mod tickets;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;
use urr_auth::AuthService;
use urr_bus::relay::RelayOptions;
use urr_bus::{Bus, Consumer, Relay, consumer, relay};
use urr_catalog::CatalogService;
use urr_gateway::{Gateway, GatewaySettings, RateLimiter, RateLimits, RevocationFeed, Timeouts};
use urr_kernel::{Clock, IdSource, Secret, Uuid};
use urr_queue::Queue;
use urr_redis::Redis;
use urr_service::token::TokenKey;
use urr_service::{
    Caller, Health, HttpClient, InternalCredentials, Limits, Metrics, Remote, Service, ServiceKit,
    Upstream, docs_router,
};
use urr_stats::Stats;
use urr_storage::{Db, StorageError};
use urr_ticket::SlotChecker;

use crate::config::Config;
use crate::data_folder::DataFolder;
use crate::internal_router::internal_router;
use crate::role::{ProcessRole, ProcessRoles};
use crate::supervisor::TaskSupervisor;
use crate::{engines, openapi};

pub use accounts::auth_parts;
pub use notices::queue as notice_queue;
pub use payments::payments;
pub use tickets::ticket_service_to_read;

/// The sources of time and ids; tests give their own.
#[derive(Clone, Debug)]
pub struct ClockAndIds {
    pub clock: Clock,
    pub ids: IdSource,
}

type World = ClockAndIds;

impl ClockAndIds {
    pub fn system() -> ClockAndIds {
        let ids = IdSource::from_system_randomness(Clock::System);
        ClockAndIds { clock: Clock::System, ids }
    }
}

/// The running services of one process. It has no ports: whoever starts it opens the doors.
pub struct System {
    /// For everybody: the gateway, if it runs here.
    pub public: Option<Router>,
    /// For our own processes and for operators: services, health, metrics.
    pub internal: Router,
    /// The services that run here, for callers in this process.
    pub services: Vec<Service>,
    pub kit: ServiceKit,
    /// Cancelled first: no new requests.
    pub draining: CancellationToken,
    pub supervisor: TaskSupervisor,
    auth: Option<AuthService>,
    catalog: Option<CatalogService>,
    queue: Option<Queue>,
    /// Cancelled second: relays and consumers finish what they are at.
    stopping: CancellationToken,
    tasks: TaskTracker,
    databases: Vec<Db>,
    bus: Option<Bus>,
    line: Option<queue::Line>,
    _folder: Option<DataFolder>,
}

impl System {
    /// Starts the services of `roles`. The folder is given when anything is stored in it.
    pub async fn start(
        config: &Config,
        roles: &ProcessRoles,
        world: World,
        folder: Option<DataFolder>,
    ) -> Result<System> {
        let metrics = Metrics::new();
        let bus_metrics = metrics.with_registry(urr_bus::Metrics::register);
        let limits = limits(config);
        let kit =
            ServiceKit { clock: world.clock.clone(), ids: world.ids.clone(), metrics, limits };
        let draining = CancellationToken::new();
        let mut builder = Builder {
            config,
            kit: &kit,
            bus_metrics,
            stopping: CancellationToken::new(),
            supervisor: TaskSupervisor::new(draining.clone()),
            draining,
            tasks: TaskTracker::new(),
            services: Vec::new(),
            databases: Vec::new(),
            bus: None,
            redis: engines::open_redis(config).await?,
            line: None,
            client: HttpClient::new(),
        };
        let has_storage = roles.iter().any(|role| role.schema().is_some());
        if has_storage {
            warn_of_split_memory(config, roles);
            builder.bus = Some(engines::open_bus(config, &world.clock).await?);
        }
        let Started { auth, catalog, queue } = builder.start_services(roles, &world).await?;
        let names = builder.services.iter().map(Service::name);
        kit.metrics.observe_storages(names.zip(builder.databases.iter().cloned()).collect());
        let public = match roles.contains(&ProcessRole::Gateway) {
            true => Some(builder.public_door(roles).await?),
            false => None,
        };
        let credentials = InternalCredentials::from_root(&config.internal.token);
        let internal =
            internal_router(&builder.services, &credentials, builder.health("urr"), &kit);
        Ok(System {
            public,
            internal,
            services: builder.services,
            draining: builder.draining,
            supervisor: builder.supervisor,
            auth,
            catalog,
            queue,
            stopping: builder.stopping,
            tasks: builder.tasks,
            databases: builder.databases,
            bus: builder.bus,
            line: builder.line,
            kit,
            _folder: folder,
        })
    }

    /// Adds the demo data of the services that run here. Running it again adds nothing.
    pub async fn seed_demo(&self) -> Result<()> {
        if let Some(catalog) = &self.catalog {
            catalog.seed_demo().await.context("the demo data")?;
        }
        Ok(())
    }

    /// The catalogue, if it runs here.
    pub fn catalog(&self) -> Option<&CatalogService> {
        self.catalog.as_ref()
    }

    /// The keeper of the waiting rooms, if it runs here.
    pub fn queue(&self) -> Option<&Queue> {
        self.queue.as_ref()
    }

    /// The bus, if anything is stored here.
    pub fn bus(&self) -> Option<&Bus> {
        self.bus.as_ref()
    }

    /// The tables of a service that runs here.
    pub fn database(&self, service: &str) -> Option<&Db> {
        let mut databases = self.services.iter().zip(&self.databases);
        databases.find(|(owner, _)| owner.name() == service).map(|(_, db)| db)
    }

    /// A key to the first administrator's account, as long as there is none.
    pub async fn admin_invite(&self) -> Result<Option<Secret>> {
        match &self.auth {
            Some(auth) => auth.issue_admin_invite().await.context("the administrators"),
            None => Ok(None),
        }
    }

    /// Ends in good order: the doors are closed already; background work finishes what it is at,
    /// then the last transactions are committed.
    pub async fn stop(self) {
        self.draining.cancel();
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(bus) = &self.bus {
            bus.close().await;
        }
        let databases = self.databases;
        let closed = tokio::task::spawn_blocking(move || databases.iter().for_each(Db::close));
        closed.await.expect("closing does not panic");
        if let Some(line) = self.line {
            line.close().await;
        }
    }
}

/// What is at hand while the services are put together.
struct Builder<'a> {
    config: &'a Config,
    kit: &'a ServiceKit,
    bus_metrics: urr_bus::Metrics,
    draining: CancellationToken,
    stopping: CancellationToken,
    supervisor: TaskSupervisor,
    tasks: TaskTracker,
    services: Vec<Service>,
    databases: Vec<Db>,
    bus: Option<Bus>,
    redis: Option<Redis>,
    line: Option<queue::Line>,
    client: HttpClient,
}

/// Services that are asked for more than their answers.
struct Started {
    auth: Option<AuthService>,
    catalog: Option<CatalogService>,
    queue: Option<Queue>,
}

impl Builder<'_> {
    /// Starts the services of `roles`, each with what runs beside it.
    async fn start_services(&mut self, roles: &ProcessRoles, world: &World) -> Result<Started> {
        let (kit, mut auth, mut catalog, mut queue) = (self.kit, None, None, None);
        if let Some(db) = self.open(roles, ProcessRole::Auth).await? {
            let service = accounts::start(self, db, world)?;
            self.services.push(service.service(kit));
            auth = Some(service);
        }
        if let Some(db) = self.open(roles, ProcessRole::Catalog).await? {
            let service = catalogue::start(self, db, world);
            self.services.push(service.service(kit));
            catalog = Some(service);
        }
        if let Some(db) = self.open(roles, ProcessRole::Queue).await? {
            let service = queue::start(self, db, world).await?;
            self.services.push(service.service(kit));
            queue = Some(service);
        }
        if let Some(db) = self.open(roles, ProcessRole::Ticket).await? {
            let slots =
                SlotChecker::queue(self.upstream(Caller::Ticket, ProcessRole::Queue, roles)?);
            let service = tickets::start(self, db, world, slots);
            self.services.push(service);
        }
        if let Some(queue) = &queue {
            queue::connect(self, queue, roles)?;
        }
        if let Some(db) = self.open(roles, ProcessRole::Payment).await? {
            let office = self.upstream(Caller::Payment, ProcessRole::Ticket, roles)?;
            let service = payments::start(self, db, world, office)?;
            self.services.push(service);
        }
        if let Some(db) = self.open(roles, ProcessRole::Stats).await? {
            self.consume(&db, urr_stats::GROUP, urr_stats::TOPICS, urr_stats::handle);
            self.services.push(Stats::new(db, world.clock.clone()).service(kit));
        }
        if let Some(db) = self.open(roles, ProcessRole::Mail).await? {
            let neighbours = mail::Neighbours {
                accounts: self.upstream(Caller::Mail, ProcessRole::Auth, roles)?,
                office: self.upstream(Caller::Mail, ProcessRole::Ticket, roles)?,
            };
            let service = mail::start(self, db, world, neighbours)?;
            self.services.push(service);
        }
        Ok(Started { auth, catalog, queue })
    }

    /// A service as one of its callers sees it: in this process, or at the address that is known.
    fn upstream(
        &self,
        caller: Caller,
        role: ProcessRole,
        roles: &ProcessRoles,
    ) -> Result<Upstream> {
        let here = self.services.iter().find(|service| service.name() == role.name());
        if let Some(service) = here {
            return Ok(Upstream::local(caller, role.name(), service.local_router(), self.kit));
        }
        let credentials = InternalCredentials::from_root(&self.config.internal.token);
        let remote = Remote {
            url: remote_url(self.config, role, roles)?,
            credential: credentials.for_caller(caller),
            client: self.client.clone(),
        };
        Ok(Upstream::remote(caller, role.name(), remote, self.kit))
    }

    /// The storage of a role that runs here, with the relay of its outbox.
    async fn open(&mut self, roles: &ProcessRoles, role: ProcessRole) -> Result<Option<Db>> {
        if !roles.contains(&role) {
            return Ok(None);
        }
        let Some(db) = engines::open_storage(self.config, role, &self.kit.clock).await? else {
            return Ok(None);
        };
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
        Ok(Some(db))
    }

    /// Who the relay is among those of its outbox. On SQLite it is always the same one, because the
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
            // Longer than the bus keeps events: a forgotten one would have its effect again.
            inbox_retention: 4 * engines::bus_retention(self.config),
            purge_interval: Duration::from_millis(bus.inbox_cleanup_interval_ms),
            ..RelayOptions::default()
        }
    }

    fn bus(&self) -> &Bus {
        self.bus.as_ref().expect("the bus is opened before any storage")
    }

    fn consume(
        &self,
        db: &Db,
        group: &str,
        topics: &[&str],
        handler: fn(
            &mut urr_storage::Tx<'_>,
            &urr_kernel::Event,
            &urr_bus::HandlerContext,
        ) -> Result<urr_bus::Handled, urr_bus::HandleError>,
    ) {
        let consumer = Consumer {
            bus: self.bus().clone(),
            db: db.clone(),
            group: group.to_owned(),
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            handler: std::sync::Arc::new(handler),
            clock: self.kit.clock.clone(),
            metrics: self.bus_metrics.clone(),
        };
        self.spawn("a consumer", consumer::run(consumer, self.stopping.clone()));
    }

    /// Runs something until we stop.
    fn spawn(&self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.supervisor.supervise(name, self.stopping.clone(), part));
    }

    fn health(&self, name: &'static str) -> Health {
        let mut health = Health::new(name, self.draining.clone());
        for (db, service) in self.databases.iter().zip(&self.services) {
            let db = db.clone();
            health = health.check(service.name(), move || {
                let db = db.clone();
                async move {
                    // Through the writers: they are what a sale needs.
                    let answer = db.write(|tx| tx.query_one("select 1 as one", &[], |_| Ok(())));
                    answer.await.map_err(|error: StorageError| {
                        // Everybody may ask for health: addresses and logins stay in the log.
                        warn!(%error, "a storage does not answer");
                        "the storage does not answer".to_owned()
                    })
                }
            });
        }
        match &self.line {
            Some(line) => line.watched_by(health),
            None => health,
        }
    }

    async fn public_door(&self, roles: &ProcessRoles) -> Result<Router> {
        let roles_behind =
            ProcessRole::ALL.into_iter().filter(|role| *role != ProcessRole::Gateway);
        let upstreams = roles_behind.map(|role| self.upstream(Caller::Gateway, role, roles));
        let upstreams = upstreams.collect::<Result<Vec<Upstream>>>()?;
        let openapi = openapi::document()?;
        let limiter = match &self.redis {
            Some(redis) => RateLimiter::shared(redis.clone(), self.kit.clock.clone()),
            None => RateLimiter::local(self.kit.clock.clone()),
        };
        let settings = gateway_settings(self.config);
        let gateway = Gateway::new(upstreams, limiter, settings, self.kit);
        let mut health = self.health("gateway");
        if let Some(feed) = gateway.revocation_feed() {
            health = self.follow_revocations(feed, health).await;
        }
        let mut pages = health.router().merge(docs_router(&openapi));
        if self.config.server.host.is_loopback() {
            // Figures are for operators: a door that others can reach does not show them.
            pages = pages.merge(self.kit.metrics.router());
        }
        Ok(gateway.router(pages, self.kit))
    }

    /// Reads the revoked tokens and goes on reading. Before it has read them once, the gateway knows
    /// nobody, so it is not ready.
    async fn follow_revocations(&self, feed: RevocationFeed, health: Health) -> Health {
        if let Err(error) = feed.refresh().await {
            warn!(%error, "the revoked tokens are not known yet; they are asked for every second");
        }
        let known = feed.clone();
        self.spawn("the feed of revoked tokens", feed.run(self.stopping.clone()));
        health.check("revoked-tokens", move || {
            let is_known = known.is_complete();
            async move { is_known.then_some(()).ok_or_else(|| "not known yet".to_owned()) }
        })
    }
}

fn gateway_settings(config: &Config) -> GatewaySettings {
    let gateway = &config.gateway;
    let access_key = TokenKey::new(&config.auth.jwt_key());
    let entry_key = queue::entry_key(config);
    GatewaySettings {
        trusted_edge_secret: gateway.trusted_edge_secret.clone(),
        trusted_proxies: gateway.trusted_proxies.clone(),
        allowed_origins: gateway.cors_allowed_origins.clone(),
        rate_limits: RateLimits {
            auth: gateway.rate_limit_auth_rpm,
            queue: gateway.rate_limit_queue_rpm,
            booking: gateway.rate_limit_booking_rpm,
            general: gateway.rate_limit_general_rpm,
            login_account: gateway.rate_limit_login_account_rpm,
            login_address: gateway.rate_limit_login_address_rpm,
            refresh_address: gateway.rate_limit_refresh_address_rpm,
        },
        timeouts: Timeouts {
            general: Duration::from_secs(gateway.timeout_seconds),
            payment: Duration::from_secs(gateway.payment_timeout_seconds),
            queue: Duration::from_secs(gateway.queue_timeout_seconds),
        },
        header_bytes_max: gateway.header_bytes_max,
        auth_body_bytes_max: gateway.auth_body_bytes_max,
        is_loopback: config.server.host.is_loopback(),
        ..GatewaySettings::new(access_key, entry_key)
    }
}

/// Events that are marked in PostgreSQL as published but exist only in a local folder are lost with
/// that folder.
fn warn_of_split_memory(config: &Config, roles: &ProcessRoles) {
    if roles.contains(&ProcessRole::Queue)
        && *roles != ProcessRole::all()
        && engines::has_rooms_in_process(config)
    {
        let folder = config.data.dir.display();
        warn!(
            %folder,
            "the waiting rooms are in this process, their journal in this folder: run one queue \
             process only, or set redis.url"
        );
    }
    let is_on_postgres = roles.iter().any(|role| engines::is_on_postgres(config, *role));
    if is_on_postgres && config.bus.kafka_bootstrap_servers.is_empty() {
        let folder = config.data.dir.display();
        warn!(%folder, "tables are on PostgreSQL, but the bus is in this folder: keep both");
    }
}

/// The gateway decides per route how long a request may take; a service stops at the longest.
fn limits(config: &Config) -> Limits {
    let gateway = &config.gateway;
    let longest = gateway.timeout_seconds.max(gateway.payment_timeout_seconds);
    Limits {
        body_bytes_max: gateway.body_bytes_max,
        deadline_max: Duration::from_secs(longest.max(gateway.queue_timeout_seconds)),
    }
}

fn remote_url(
    config: &Config,
    role: ProcessRole,
    roles: &ProcessRoles,
) -> Result<urr_service::ServiceUrl> {
    let Some(url) = config.services.url(role) else {
        let here: Vec<&str> = roles.iter().map(|role| role.name()).collect();
        bail!(
            "the {role} service does not run here ({}) and its address is not known; \
             set services.{role}_url, or add {role} to --roles",
            here.join(", ")
        );
    };
    url.parse().with_context(|| format!("services.{role}_url"))
}
