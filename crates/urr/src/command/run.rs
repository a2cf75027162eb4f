//! `urr up` and `urr serve`: open the doors, run until told to stop, end in good order.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::task::TaskTracker;
use tracing::{info, warn};
use urr_kernel::{Clock, Secret};

use super::{block_on, say};
use crate::compose::{System, World};
use crate::config::Config;
use crate::data_folder::DataFolder;
use crate::engines;
use crate::logging;
use crate::role::{ProcessRole, ProcessRoles};

/// After the requests in flight, this is left for the last commits before we must be gone.
const CLOSING_SHARE: Duration = Duration::from_secs(2);

/// Everything in this process, on the folder that is taken for it.
pub fn up(config: Config, folder: DataFolder) -> Result<()> {
    let _log = logging::start(&config.log)?;
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let start = async {
            let listeners = listen(&config, true).await?.with_private_door().await?;
            for role in ProcessRole::ALL {
                engines::migrate_storage(&config, role, Clock::System.now())?;
            }
            folder.announce_door(&listeners.private_url()?).context("the data folder")?;
            let system =
                System::start(&config, &ProcessRole::all(), World::real(), Some(folder)).await?;
            seed_once(&system, &config).await?;
            let invite = system.admin_invite().await?;
            greet(&config, &listeners, invite.as_ref())?;
            Ok((system, listeners))
        };
        match signals.unless_stopped(start).await? {
            Some((system, listeners)) => run(system, listeners, &config, signals).await,
            None => Ok(()),
        }
    })
}

/// Demo data are for the first start: what an organiser deletes stays deleted, and a shop that
/// began without them never gets them.
async fn seed_once(system: &System, config: &Config) -> Result<()> {
    let mark = config.data.dir.join("first-start-done");
    if mark.exists() {
        return Ok(());
    }
    if config.demo.seed {
        system.seed_demo().await?;
    }
    std::fs::write(mark, "URR has been started here before.\n").context("the data folder")
}

pub fn serve(config: Config, roles: &ProcessRoles) -> Result<()> {
    let _log = logging::start(&config.log)?;
    require_distributed(&config, roles)?;
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let start = async {
            let listeners = listen(&config, roles.contains(&ProcessRole::Gateway)).await?;
            let folder = take_folder(&config, roles)?;
            let system = System::start(&config, roles, World::real(), folder).await?;
            let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
            info!(roles = names.join(","), address = %listeners.main.local_addr()?, "ready");
            Ok((system, listeners))
        };
        match signals.unless_stopped(start).await? {
            Some((system, listeners)) => run(system, listeners, &config, signals).await,
            None => Ok(()),
        }
    })
}

/// Waiting rooms without Redis have their journal in the folder, and it has one process.
fn take_folder(config: &Config, roles: &ProcessRoles) -> Result<Option<DataFolder>> {
    let needs_folder = roles.contains(&ProcessRole::Queue) && engines::is_line_here(config);
    Ok(needs_folder.then(|| DataFolder::take(&config.data.dir)).transpose()?)
}

/// Services in several processes can only meet in servers that all of them reach.
fn require_distributed(config: &Config, roles: &ProcessRoles) -> Result<()> {
    if let Some(role) = roles.iter().find(|role| engines::is_on_sqlite(config, **role)) {
        bail!(
            "`urr serve` needs PostgreSQL for the {role} service: set database.url; `urr up` runs \
             without it"
        );
    }
    let keeps_data = roles.iter().any(|role| role.schema().is_some());
    if keeps_data && config.bus.kafka_bootstrap_servers.is_empty() {
        bail!("`urr serve` needs Kafka: set KAFKA_BOOTSTRAP_SERVERS; `urr up` runs without it");
    }
    Ok(())
}

/// The open doors of this process.
struct Listeners {
    /// The public door if the gateway runs here, else the private one.
    main: TcpListener,
    is_public: bool,
    /// The private door beside a public one, if it has a port.
    management: Option<TcpListener>,
}

impl Listeners {
    /// Commands such as `urr queue` need a way in: if no port is set, any free one will do, and
    /// only this machine can reach it.
    async fn with_private_door(mut self) -> Result<Listeners> {
        if self.management.is_none() {
            let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
            self.management = Some(bind(address, "MANAGEMENT_PORT").await?);
        }
        Ok(self)
    }

    fn private_url(&self) -> Result<String> {
        let private = self.management.as_ref().context("there is no private door")?;
        Ok(format!("http://{}", from_here(private.local_addr()?)))
    }
}

/// The address as this machine reaches it.
fn from_here(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
}

async fn listen(config: &Config, is_public: bool) -> Result<Listeners> {
    let server = &config.server;
    let main = bind(SocketAddr::new(server.host, server.port), "--port").await?;
    let management = match server.management_port {
        0 => None,
        port => Some(bind(SocketAddr::new(server.host, port), "MANAGEMENT_PORT").await?),
    };
    Ok(Listeners { main, is_public, management })
}

async fn bind(address: SocketAddr, setting: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {} of {} is taken by another program; stop it, or choose another port with \
             {setting}",
            address.port(),
            address.ip()
        ),
        _ => anyhow::anyhow!("cannot listen on {address}: {error}; change it with {setting}"),
    })
}

/// Serves until told to stop, or until a part fails without which the rest is worth nothing.
async fn run(
    system: System,
    listeners: Listeners,
    config: &Config,
    mut signals: StopSignals,
) -> Result<()> {
    let grace = Duration::from_secs(config.server.shutdown_grace_seconds);
    let drain = grace.saturating_sub(CLOSING_SHARE);
    let (draining, watch) = (system.draining.clone(), system.watch.clone());
    let main = match &system.public {
        Some(public) if listeners.is_public => public.clone(),
        _ => system.private.clone(),
    };
    let private = system.private.clone();
    let doors = TaskTracker::new();
    for (listener, router) in [(Some(listeners.main), main), (listeners.management, private)] {
        if let Some(listener) = listener {
            let door = urr_service::serve(listener, router, draining.clone(), drain);
            doors.spawn(watch.guard("a door", draining.clone(), door.map(drop)));
        }
    }
    doors.close();
    tokio::select! {
        () = signals.next() => {}
        () = draining.cancelled() => {}
    }
    info!("stopping: finishing what is under way");
    draining.cancel();
    let ended = async {
        doors.wait().await;
        system.stop().await;
    };
    tokio::select! {
        ended = tokio::time::timeout(grace, ended) => {
            if ended.is_err() {
                warn!("not everything ended in time; what was acknowledged is stored");
            }
        }
        () = signals.next() => warn!("told to stop again: stopping at once"),
    }
    if watch.has_failed() {
        bail!("a part of URR ended by itself, so all of it was stopped; the log says which");
    }
    info!("stopped");
    Ok(())
}

/// Ctrl-C and SIGTERM, from the first moment on: as the first process of a container we would
/// otherwise not be stopped by them while we start.
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    pub(super) fn listen() -> Result<StopSignals> {
        let interrupt = signal(SignalKind::interrupt()).context("Ctrl-C")?;
        let terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
        Ok(StopSignals { interrupt, terminate })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// What `start` comes to, or nothing if we are told to stop before.
    async fn unless_stopped<T>(
        &mut self,
        start: impl Future<Output = Result<T>>,
    ) -> Result<Option<T>> {
        tokio::select! {
            started = start => started.map(Some),
            () = self.next() => {
                info!("told to stop during the start");
                Ok(None)
            }
        }
    }
}

fn greet(config: &Config, listeners: &Listeners, invite: Option<&Secret>) -> Result<()> {
    let address = from_here(listeners.main.local_addr()?);
    let folder = std::path::absolute(&config.data.dir)?;
    say(&format!(
        "
  URR 우르르 {version} is running.

    Open           http://{address}
    API reference  http://{address}/docs
    Data folder    {folder}

  Try:  curl http://{address}/api/artists
        urr config     shows every setting and where it came from
        urr doctor     looks for problems
{first_admin}  Stop: Ctrl-C
",
        version = env!("CARGO_PKG_VERSION"),
        folder = folder.display(),
        first_admin = first_admin(invite),
    ))
}

/// How the first administrator gets in; a shop that has one needs no advice.
fn first_admin(invite: Option<&Secret>) -> String {
    let Some(invite) = invite else { return String::new() };
    format!(
        "        urr admin create --email you@example.com     makes the first administrator;
        or send this once, within a day, to /api/auth/admin-invite:
        {}
",
        invite.expose()
    )
}
