//! `urr up` and `urr serve`: start, listen, run until a signal, shut down in order.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::task::TaskTracker;
use tracing::{info, warn};
use urr_kernel::{Clock, Secret};
use urr_service::{HttpListener, ServerStop};
use urr_tls::IdentityFiles;

use super::{block_on, print_line};
use crate::compose::{ClockAndIds, System};
use crate::config::{Config, FIRST_START_MARK};
use crate::data_folder::{self, DataFolder, write_private};
use crate::engines;
use crate::logging;
use crate::role::{ProcessRole, ProcessRoles};
use crate::traces::{self, SpanExporter};

/// The part of the grace period that is kept for the last commits, after requests in flight.
const CLOSING_SHARE: Duration = Duration::from_secs(2);

/// Everything in this process, on a data folder that is already locked.
pub fn up(config: Config, folder: DataFolder) -> Result<()> {
    require_unmoved(&config, &folder)?;
    start_and_serve(&config, async {
        let listeners = listen(&config, true).await?.with_internal_listener(&config).await?;
        for role in ProcessRole::ALL {
            engines::await_server(&config, role).await?;
            engines::migrate_storage(&config, role, Clock::System.now())?;
        }
        let (internal, public) = (listeners.internal_url()?, listeners.main_url()?);
        folder.write_urls(&internal, &public).context("the data folder")?;
        let (roles, sources) = (ProcessRole::all(), ClockAndIds::system());
        let system = System::start(&config, &roles, sources, Some(folder)).await?;
        seed_once(&system, &config).await?;
        let invite = system.admin_invite().await?;
        print_welcome(&config, &listeners, invite.as_ref())?;
        Ok((system, listeners))
    })
}

/// A shop that was moved sells on PostgreSQL: the same seats must not be sold here too.
fn require_unmoved(config: &Config, folder: &DataFolder) -> Result<()> {
    let on_files =
        ProcessRole::SERVICES.into_iter().any(|role| engines::is_on_sqlite(config, role));
    match data_folder::moved_to(folder.path()).context("the data folder")? {
        Some(place) if on_files => bail!(
            "the shop in {} was moved to {place}; set database.url to it. If the move failed, run \
             it again, or delete the file `moved-to` if nothing is there",
            folder.path().display()
        ),
        _ => Ok(()),
    }
}

/// Only the first start adds demo data: what an organiser deletes stays deleted, and an installation
/// that began without them does not get them later.
async fn seed_once(system: &System, config: &Config) -> Result<()> {
    let mark = config.data.dir.join(FIRST_START_MARK);
    if mark.exists() {
        return Ok(());
    }
    if config.demo.seed {
        system.seed_demo().await?;
    }
    write_private(&mark, "URR has been started here before.\n").context("the data folder")
}

pub fn serve(config: Config, roles: &ProcessRoles) -> Result<()> {
    start_and_serve(&config, async {
        require_distributed(&config, roles)?;
        let listeners = listen(&config, roles.contains(&ProcessRole::Gateway)).await?;
        let folder = lock_folder(&config, roles)?;
        for role in roles {
            engines::await_server(&config, *role).await?;
        }
        let system = System::start(&config, roles, ClockAndIds::system(), folder).await?;
        let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
        info!(roles = names.join(","), address = %listeners.main.local_addr()?, "ready");
        Ok((system, listeners))
    })
}

/// Starts, unless a stop signal comes first, and serves until one comes.
fn start_and_serve(
    config: &Config,
    start: impl Future<Output = Result<(System, Listeners)>>,
) -> Result<()> {
    let (spans, exporter) = traces::open(&config.traces)?.unzip();
    let _log = logging::start(&config.log, spans)?;
    config.dangers().iter().for_each(|danger| warn!("{danger}"));
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let exporter = exporter.map(SpanExporter::start);
        tokio::select! {
            started = start => {
                let (system, listeners) = started?;
                if let Some(exporter) = &exporter {
                    exporter.register(&system.kit.metrics);
                }
                let ended = run(system, listeners, config, signals).await;
                if let Some(exporter) = exporter {
                    exporter.stop().await;
                }
                ended
            }
            () = signals.next() => {
                info!("stop signal during the start");
                Ok(())
            }
        }
    })
}

/// Waiting rooms without Redis keep their journal in the data folder.
fn lock_folder(config: &Config, roles: &ProcessRoles) -> Result<Option<DataFolder>> {
    let needs_folder = roles.contains(&ProcessRole::Queue) && engines::has_rooms_in_process(config);
    Ok(needs_folder.then(|| DataFolder::lock(&config.data.dir)).transpose()?)
}

/// Services in several processes need servers that all of them reach.
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

/// The open ports of this process.
struct Listeners {
    /// For the public if the gateway runs here, else internal.
    main: HttpListener,
    is_public: bool,
    /// The internal listener beside a public one, if it has a port.
    internal: Option<HttpListener>,
}

impl Listeners {
    /// Commands such as `urr queue` need the internal listener: if no port is set, it gets a free one
    /// that only this machine can reach.
    async fn with_internal_listener(mut self, config: &Config) -> Result<Listeners> {
        if self.internal.is_none() {
            let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
            let internal = bind(address, "MANAGEMENT_PORT").await?;
            self.internal = Some(with_tls(internal, config.internal.identity())?);
        }
        Ok(self)
    }

    fn internal_url(&self) -> Result<String> {
        url_of(self.internal.as_ref().context("there is no internal listener")?)
    }

    fn main_url(&self) -> Result<String> {
        url_of(&self.main)
    }
}

fn url_of(listener: &HttpListener) -> Result<String> {
    Ok(format!("{}://{}", listener.scheme(), from_here(listener.local_addr()?)))
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
    let identity = if is_public { server.identity() } else { config.internal.identity() };
    let main = with_tls(main, identity)?;
    Ok(Listeners { main, is_public, internal: listen_internally(config).await? })
}

/// The internal listener, if it has a port.
pub(super) async fn listen_internally(config: &Config) -> Result<Option<HttpListener>> {
    let server = &config.server;
    if server.management_port == 0 {
        return Ok(None);
    }
    let address = SocketAddr::new(server.host, server.management_port);
    let internal = bind(address, "MANAGEMENT_PORT").await?;
    with_tls(internal, config.internal.identity()).map(Some)
}

/// With TLS if there is a certificate. One that cannot be used is told at the start.
fn with_tls(tcp: TcpListener, identity: Option<IdentityFiles>) -> Result<HttpListener> {
    let Some(files) = identity else { return Ok(tcp.into()) };
    let config = urr_tls::server_config(&files).context("the certificate of a listener")?;
    Ok(HttpListener::with_tls(tcp, config))
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

/// Serves until a stop signal, or until a background task fails.
async fn run(
    system: System,
    listeners: Listeners,
    config: &Config,
    mut signals: StopSignals,
) -> Result<()> {
    let grace = Duration::from_secs(config.server.shutdown_grace_seconds);
    let drain = grace.saturating_sub(CLOSING_SHARE);
    let (draining, supervisor) = (system.draining.clone(), system.supervisor.clone());
    let readiness = system.readiness.clone();
    let stop = ServerStop { readiness: readiness.clone(), shutdown: draining.clone() };
    let main = match &system.public {
        Some(public) if listeners.is_public => public.clone(),
        _ => system.internal.clone(),
    };
    let internal = system.internal.clone();
    let servers = TaskTracker::new();
    for (listener, router) in [(Some(listeners.main), main), (listeners.internal, internal)] {
        if let Some(listener) = listener {
            let server = urr_service::serve_until(listener, router, stop.clone(), drain).map(drop);
            servers.spawn(supervisor.supervise("an HTTP server", draining.clone(), server));
        }
    }
    servers.close();
    tokio::select! {
        () = signals.next() => {}
        () = draining.cancelled() => {}
    }
    readiness.leave();
    let serve_on = Duration::from_secs(config.server.not_ready_seconds);
    if !serve_on.is_zero() && !draining.is_cancelled() {
        info!(seconds = serve_on.as_secs(), "stopping: not ready, and serving on for a while");
    }
    let ended = async {
        tokio::select! {
            () = tokio::time::sleep(serve_on) => {}
            () = draining.cancelled() => {}
        }
        info!("stopping: finishing requests and jobs in progress");
        draining.cancel();
        let ended = async {
            servers.wait().await;
            system.stop().await;
        };
        tokio::time::timeout(grace, ended).await
    };
    tokio::select! {
        ended = ended => {
            if ended.is_err() {
                warn!("not everything ended in time; what was acknowledged is stored");
            }
        }
        () = signals.next() => warn!("second stop signal: stopping at once"),
    }
    if supervisor.has_failed() {
        bail!("a background task ended by itself, so the process stopped; the log says which");
    }
    info!("stopped");
    Ok(())
}

/// Ctrl-C and SIGTERM, from the first moment on: the first process of a container ignores signals
/// that it does not handle.
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
}

fn print_welcome(config: &Config, listeners: &Listeners, invite: Option<&Secret>) -> Result<()> {
    let site = listeners.main_url()?;
    let folder = std::path::absolute(&config.data.dir)?;
    print_line(&format!(
        "
  URR 우르르 {version} is running.

    Open           {site}
    API reference  {site}/docs
    Data folder    {folder}

  Try:  curl {site}/api/artists
        urr config     shows every setting and where it came from
        urr doctor     looks for problems
{first_admin}  Stop: Ctrl-C
",
        version = env!("CARGO_PKG_VERSION"),
        folder = folder.display(),
        first_admin = first_admin(invite),
    ))
}

/// How to create the first administrator; empty if there is one.
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
