//! Composition: which engines are opened, which services run here, which calls are local.
//!
//! This is the only place that knows the difference between one process and many.

mod auth;
mod builder;
mod catalog;
mod community;
mod consumers;
mod gateway;
mod mail;
mod notices;
mod payment;
mod queue;
mod ticket;

use anyhow::{Context, Result, bail};
use axum::Router;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use urr_auth::AuthService;
use urr_bus::Bus;
use urr_catalog::CatalogService;
use urr_kernel::{Clock, IdSource, Secret};
use urr_queue::QueueService;
use urr_service::{Caller, Readiness, Service, ServiceKit};
use urr_storage::Db;

use self::builder::{Builder, RolePairs};
use crate::call_graph::callers_of;
use crate::config::Config;
use crate::data_folder::DataFolder;
use crate::internal_router::internal_router;
use crate::role::{ProcessRole, ProcessRoles};
use crate::supervisor::TaskSupervisor;

pub use auth::{auth_parts, terms_texts};
pub use builder::own_client;
pub use community::seed_demo as seed_demo_posts;
pub use notices::sqs_queue;
pub use payment::payment_service;
pub use ticket::ticket_service_alone;

/// The sources of time and ids; tests give their own.
#[derive(Clone, Debug)]
pub struct ClockAndIds {
    pub clock: Clock,
    pub ids: IdSource,
}

impl ClockAndIds {
    pub fn system() -> ClockAndIds {
        let ids = IdSource::from_system_randomness(Clock::System);
        ClockAndIds { clock: Clock::System, ids }
    }
}

/// The running services of one process. It opens no ports: that is left to its user.
pub struct System {
    /// For everybody: the gateway, if it runs here.
    pub public: Option<Router>,
    /// For our own processes and for operators: services, health, metrics.
    pub internal: Router,
    /// The services that run here, for callers in this process.
    pub services: Vec<Service>,
    pub kit: ServiceKit,
    /// Left first: health says that this process is not ready, and it serves on.
    pub readiness: Readiness,
    /// Cancelled second: no new requests.
    pub draining: CancellationToken,
    pub supervisor: TaskSupervisor,
    auth: Option<AuthService>,
    catalog: Option<CatalogService>,
    queue: Option<QueueService>,
    /// Cancelled third: relays, consumers and jobs finish their current step.
    stopping: CancellationToken,
    tasks: TaskTracker,
    databases: Vec<Db>,
    bus: Option<Bus>,
    rooms: Option<queue::OpenRooms>,
    calls: RolePairs,
    _folder: Option<DataFolder>,
}

/// With a list of accepted credentials, a caller that is not in it would be refused call by call, and
/// one that calls nothing here would have got in for nothing.
fn check_accepted(config: &Config, roles: &ProcessRoles) -> Result<()> {
    let accepted = &config.internal.accepted;
    if accepted.is_empty() {
        return Ok(());
    }
    let is_called_by = |caller| roles.iter().any(|role| callers_of(*role).contains(&caller));
    if let Some(entry) = accepted.iter().find(|entry| !is_called_by(entry.caller)) {
        bail!(
            "internal.accepted has a credential of {}, which calls no service of this process; \
             remove it",
            entry.caller
        );
    }
    for role in roles {
        let runs_here = |caller: &Caller| roles.iter().any(|one| one.name() == caller.as_str());
        let is_known = |caller: &Caller| {
            *caller == Caller::Operator || accepted.iter().any(|entry| entry.caller == *caller)
        };
        let mut others = callers_of(*role).into_iter().filter(|caller| !runs_here(caller));
        if let Some(caller) = others.find(|caller| !is_known(caller)) {
            bail!(
                "{caller} calls the {role} service, and internal.accepted has no credential of it; \
                 `urr credentials {caller} --to {role}` makes one from the secret of {caller}"
            );
        }
    }
    Ok(())
}

impl System {
    /// Starts the services of `roles`. The folder is given when anything is stored in it.
    pub async fn start(
        config: &Config,
        roles: &ProcessRoles,
        sources: ClockAndIds,
        folder: Option<DataFolder>,
    ) -> Result<System> {
        if let Some(missing) = config.missing_secrets(roles).first() {
            bail!("{missing}");
        }
        check_accepted(config, roles)?;
        let kit = builder::service_kit(config, sources);
        let mut builder = Builder::new(config, roles, &kit).await?;
        builder.start_services().await?;
        let public = match roles.contains(&ProcessRole::Gateway) {
            true => Some(gateway::public_router(&builder).await?),
            false => None,
        };
        let credentials = config.internal.credentials();
        let health = builder.health("urr");
        let internal = internal_router(&builder.services, &credentials, health, &kit);
        Ok(System {
            public,
            internal,
            calls: builder.calls(),
            services: builder.services,
            readiness: builder.readiness,
            draining: builder.draining,
            supervisor: builder.supervisor,
            auth: builder.auth,
            catalog: builder.catalog,
            queue: builder.queue,
            stopping: builder.stopping,
            tasks: builder.tasks,
            databases: builder.databases,
            bus: builder.bus,
            rooms: builder.rooms,
            kit,
            _folder: folder,
        })
    }

    /// Adds the demo data of the services that run here. Running it again adds nothing.
    pub async fn seed_demo(&self) -> Result<()> {
        if let Some(catalog) = &self.catalog {
            catalog.seed_demo().await.context("the demo data")?;
            if let Some(db) = self.database(ProcessRole::Community.name()) {
                community::seed_demo(catalog, db, &self.kit.clock, &self.kit.ids).await?;
            }
        }
        Ok(())
    }

    /// Who calls whom, as far as it was set up in this process.
    pub fn calls(&self) -> &RolePairs {
        &self.calls
    }

    /// The catalog service, if it runs here.
    pub fn catalog(&self) -> Option<&CatalogService> {
        self.catalog.as_ref()
    }

    /// The queue service, if it runs here.
    pub fn queue(&self) -> Option<&QueueService> {
        self.queue.as_ref()
    }

    /// The bus, if a service runs here.
    pub fn bus(&self) -> Option<&Bus> {
        self.bus.as_ref()
    }

    /// The database of a service that runs here.
    pub fn database(&self, service: &str) -> Option<&Db> {
        let mut databases = self.services.iter().zip(&self.databases);
        databases.find(|(owner, _)| owner.name() == service).map(|(_, db)| db)
    }

    /// A token to create the first administrator with, as long as there is none.
    pub async fn admin_invite(&self) -> Result<Option<Secret>> {
        match &self.auth {
            Some(auth) => auth.issue_admin_invite().await.context("the administrators"),
            None => Ok(None),
        }
    }

    /// Stops in order, after the listeners: background tasks finish their current step, then the
    /// last transactions are committed.
    pub async fn stop(self) {
        self.readiness.leave();
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
        if let Some(rooms) = self.rooms {
            rooms.close().await;
        }
    }
}
