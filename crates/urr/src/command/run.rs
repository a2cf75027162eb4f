//! `urr up` and `urr serve`: open the doors, run until told to stop, end in good order.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};
use urr_kernel::Clock;

use super::{block_on, say};
use crate::compose::{System, World};
use crate::config::Config;
use crate::data_folder::DataFolder;
use crate::engines;
use crate::logging;
use crate::role::{Role, Roles};

/// After the requests in flight, this is left for the last commits before we must be gone.
const CLOSING_SHARE: Duration = Duration::from_secs(2);

/// Everything in this process, on the folder that is taken for it.
pub fn up(config: Config, folder: DataFolder) -> Result<()> {
    logging::start(&config.log)?;
    block_on(async {
        let listeners = listen(&config, true).await?;
        let is_first_start = !seeded_mark(&config).exists();
        for role in Role::ALL {
            engines::migrate_storage(&config, role, Clock::System.now())?;
        }
        let system = System::start(&config, &Role::all(), World::real(), Some(folder)).await?;
        if config.demo.seed && is_first_start {
            system.seed_demo().await?;
            std::fs::write(seeded_mark(&config), "The demo data were added.\n")
                .context("the data folder")?;
        }
        greet(&config, &listeners)?;
        run_until_stopped(system, listeners, &config).await
    })
}

/// Demo data are added once: what an organiser deletes stays deleted.
fn seeded_mark(config: &Config) -> std::path::PathBuf {
    config.data.dir.join("demo-data-added")
}

pub fn serve(config: Config, roles: &Roles) -> Result<()> {
    logging::start(&config.log)?;
    require_distributed(&config, roles)?;
    block_on(async {
        let listeners = listen(&config, roles.contains(&Role::Gateway)).await?;
        let system = System::start(&config, roles, World::real(), None).await?;
        let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
        info!(roles = names.join(","), address = %listeners.main.local_addr()?, "ready");
        run_until_stopped(system, listeners, &config).await
    })
}

/// Services in several processes can only meet in servers that all of them reach.
fn require_distributed(config: &Config, roles: &Roles) -> Result<()> {
    let keeps_data = roles.iter().any(|role| role.schema().is_some());
    if keeps_data && !engines::uses_postgres(config) {
        bail!("`urr serve` needs PostgreSQL: set database.url; `urr up` runs without it");
    }
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

async fn run_until_stopped(system: System, listeners: Listeners, config: &Config) -> Result<()> {
    let grace = Duration::from_secs(config.server.shutdown_grace_seconds);
    let drain = grace.saturating_sub(CLOSING_SHARE);
    let draining = system.draining.clone();
    let doors = TaskTracker::new();
    let main = match &system.public {
        Some(public) if listeners.is_public => public.clone(),
        _ => system.private.clone(),
    };
    let private = system.private.clone();
    for (listener, router) in [(Some(listeners.main), main), (listeners.management, private)] {
        if let Some(listener) = listener {
            doors.spawn(serve_door(listener, router, draining.clone(), drain));
        }
    }
    doors.close();
    tokio::select! {
        stopped = stop_signal() => stopped?,
        () = doors.wait() => {}
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
        again = stop_signal() => {
            again?;
            warn!("told to stop again: stopping at once");
        }
    }
    info!("stopped");
    Ok(())
}

async fn serve_door(
    listener: TcpListener,
    router: Router,
    draining: CancellationToken,
    drain: Duration,
) {
    if let Err(error) = urr_service::serve(listener, router, draining.clone(), drain).await {
        warn!(%error, "a door failed");
        draining.cancel();
    }
}

async fn stop_signal() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

fn greet(config: &Config, listeners: &Listeners) -> Result<()> {
    let mut address = listeners.main.local_addr()?;
    if address.ip().is_unspecified() {
        // Every address of the machine: this one works from here.
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
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
  Stop: Ctrl-C
",
        version = env!("CARGO_PKG_VERSION"),
        folder = folder.display(),
    ))
}
