//! Starts the members of a cluster, watches them, and ends them in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use axum::http::HeaderMap;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use urr_cluster::servers::{ServerPlace, cpu_times, require_programs};
use urr_cluster::{Balancer, MailServer, TlsTerminator};
use urr_kernel::Clock;
use urr_outbound::Outbound;
use urr_tls::{ClientTls, ServerCheck};

use super::control::{self, ClusterMemberStatus, ControlAction, ControlAnswer};
use super::member::ClusterMember;
use super::settings::ClusterSettings;
use super::state::{
    ClusterFolder, ClusterOptions, ClusterState, KnownProcess, MAIL_SERVER, SQS_TLS, replica_names,
    server_names,
};
use crate::engines;
use crate::role::ProcessRole;

/// What a process of ours logs when it serves.
const READY_LINE: &str = "run: ready";
const PROBE_INTERVAL: Duration = Duration::from_millis(300);
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// A process that has started is ready within this time, if what it needs is there.
const READY_WITHIN: Duration = Duration::from_mins(1);

pub struct Supervisor {
    folder: ClusterFolder,
    state: ClusterState,
    members: Vec<Arc<ClusterMember>>,
    /// By role, and by server if the lines before servers can be harmed.
    balancers: BTreeMap<String, Balancer>,
    _own_servers: OwnServers,
    client: Outbound,
    is_up: AtomicBool,
    /// The servers that store nothing more.
    full: Mutex<BTreeSet<String>>,
    /// Somebody asked for the end.
    pub ending: CancellationToken,
}

/// A cluster that runs. Dropping it ends every process at once.
pub struct RunningCluster {
    supervisor: Arc<Supervisor>,
    _control: AbortOnDropHandle<()>,
    _watch: AbortOnDropHandle<()>,
}

impl Supervisor {
    /// Starts everything. `say` is told what is being done.
    pub async fn start(
        folder: &ClusterFolder,
        options: ClusterOptions,
        mut say: impl FnMut(&str),
    ) -> Result<RunningCluster> {
        require_programs()?;
        let (socket, state) = (folder.socket()?, folder.open_state(options)?);
        let settings = ClusterSettings::new(folder, &state)?;
        settings.write()?;
        say("making the servers' folders");
        let mut members = Vec::new();
        for name in server_names() {
            let process = settings.server(&name).with_context(|| name.clone())?;
            members.push(Arc::new(ClusterMember::new(&name, None, process)));
        }
        for role in ProcessRole::ALL {
            for name in replica_names(role, state.options.replicas) {
                members.push(Arc::new(role_member(folder, &state, role, &name)?));
            }
        }
        let own_servers = OwnServers::start(folder, &state, &settings).await?;
        let supervisor = Arc::new(Supervisor {
            balancers: start_balancers(&state, &members, &own_servers).await?,
            _own_servers: own_servers,
            folder: folder.clone(),
            state: state.clone(),
            members,
            client: client()?,
            is_up: AtomicBool::new(false),
            full: Mutex::default(),
            ending: CancellationToken::new(),
        });
        let _control = control::serve(&socket, &supervisor)?;
        say("starting PostgreSQL, Redis, Kafka and SQS");
        supervisor.start_members(|member| member.role.is_none()).await?;
        settings.form_redis_cluster()?;
        say("creating the tables");
        supervisor.migrate().await?;
        say("starting the services");
        let is_service =
            |member: &ClusterMember| member.role.is_some_and(|role| role != ProcessRole::Gateway);
        supervisor.start_members(is_service).await?;
        supervisor.start_members(|member| member.role.is_some()).await?;
        supervisor.write_state()?;
        supervisor.is_up.store(true, Ordering::Relaxed);
        let _watch = AbortOnDropHandle::new(tokio::spawn(watch(Arc::clone(&supervisor))));
        Ok(RunningCluster { supervisor, _control, _watch })
    }

    async fn migrate(&self) -> Result<()> {
        let config = self.folder.operator_config()?;
        let migrate = move || {
            ProcessRole::ALL.into_iter().try_for_each(|role| {
                engines::migrate_storage(&config, role, Clock::System.now()).map(drop)
            })
        };
        spawn_blocking(migrate).await?
    }

    /// Starts some members at the same time, and waits for all of them.
    async fn start_members(&self, which: impl Fn(&ClusterMember) -> bool) -> Result<()> {
        let members = self.members.iter().filter(|member| which(member)).cloned();
        all_of(members, ClusterMember::start).await
    }

    fn write_state(&self) -> Result<()> {
        let mut state = self.state.clone();
        let pids = self.members.iter().filter_map(|member| {
            Some((member.name.clone(), KnownProcess::of(member.view().pid?)?))
        });
        state.processes = pids.collect();
        let own = KnownProcess::of(std::process::id());
        state.processes.extend(own.map(|own| ("supervisor".to_owned(), own)));
        self.folder.write_state(&state)
    }

    pub fn status(&self) -> ControlAnswer {
        // Without them the rest is worth telling.
        let times = cpu_times().unwrap_or_default();
        let status = |member: &Arc<ClusterMember>| {
            let view = member.view();
            let time = view.pid.and_then(|pid| times.get(&pid));
            let cpu_ms = time.and_then(|time| u64::try_from(time.as_millis()).ok());
            ClusterMemberStatus { cpu_ms, ..view }
        };
        ControlAnswer {
            error: None,
            is_up: self.is_up.load(Ordering::Relaxed),
            site: self.state.site(),
            members: self.members.iter().map(status).collect(),
        }
    }

    /// Does what a command asks for.
    pub async fn perform(&self, action: ControlAction, name: &str) -> Result<()> {
        match action {
            ControlAction::Status => return Ok(()),
            ControlAction::Down => {
                self.ending.cancel();
                return Ok(());
            }
            ControlAction::Cut => {
                self.balancer(name)?.cut();
                return Ok(());
            }
            _ => {}
        }
        if action == ControlAction::Fill {
            return self.set_full(name, true).await;
        }
        if action == ControlAction::Heal && self.full().contains(name) {
            self.set_full(name, false).await?;
        }
        if let Some(fault) = action.line_fault() {
            self.balancer(name)?.set_fault(fault);
            return Ok(());
        }
        let found = self.members.iter().find(|member| member.name == name);
        let member = Arc::clone(found.with_context(|| self.unknown(name))?);
        let changed = Arc::clone(&member);
        let done = spawn_blocking(move || match action {
            ControlAction::Start => changed.start(),
            ControlAction::Stop => changed.stop(),
            ControlAction::Restart => changed.restart(),
            ControlAction::Kill => changed.kill(),
            ControlAction::Pause => changed.pause(),
            _ => changed.resume(),
        });
        done.await?.with_context(|| name.to_owned())?;
        if action == ControlAction::Restart {
            self.await_ready(&member).await?;
        }
        self.write_state()
    }

    /// Waits until a process says that it is ready, and so until its balancer knows.
    async fn await_ready(&self, member: &ClusterMember) -> Result<()> {
        let ends_at = Instant::now() + READY_WITHIN;
        self.probe(member).await;
        while member.role.is_some() && !member.is_ready() {
            ensure!(
                Instant::now() < ends_at,
                "{} is not ready after {READY_WITHIN:?}",
                member.name
            );
            sleep(PROBE_INTERVAL).await;
            self.probe(member).await;
        }
        Ok(())
    }

    fn full(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node of Redis gets no more memory. PostgreSQL and Kafka can write to no file, and end; they
    /// serve again when they are healed.
    async fn set_full(&self, name: &str, is_full: bool) -> Result<()> {
        let servers: Vec<&str> = ["postgres", "kafka", "redis-1", "redis-2", "redis-3"].into();
        ensure!(
            servers.contains(&name),
            "{name:?} cannot be filled; there are {}",
            servers.join(", ")
        );
        let member = self.members.iter().find(|member| member.name == name);
        let member = Arc::clone(member.with_context(|| self.unknown(name))?);
        let (folder, state) = (self.folder.clone(), self.state.clone());
        let change = move || match member.name.starts_with("redis") {
            true => ClusterSettings::new(&folder, &state)?.set_redis_full(&member.name, is_full),
            false => member.set_full(is_full),
        };
        spawn_blocking(change).await??;
        match is_full {
            true => self.full().insert(name.to_owned()),
            false => self.full().remove(name),
        };
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.members.iter().map(|member| &*member.name).collect();
        format!("{name:?} is no part of the cluster; there are {}", names.join(", "))
    }

    fn balancer(&self, name: &str) -> Result<&Balancer> {
        self.balancers.get(name).with_context(|| {
            let names: Vec<&str> = self.balancers.keys().map(String::as_str).collect();
            format!(
                "there is no balancer before {name:?}; there are {}; `--fault-lines` puts one \
                 before each server",
                names.join(", ")
            )
        })
    }

    /// Asks a process whether it is ready, and tells the balancer. Nothing else tells it: as with any
    /// balancer, a process that stops has to be found out.
    async fn probe(&self, member: &ClusterMember) {
        let Some(role) = member.role else { return };
        let url = match role {
            ProcessRole::Gateway => self.state.public_url(&member.name),
            _ => format!("https://{}", member.address()),
        };
        let url = format!("{url}/health/ready");
        let answer = self.client.get_json(&url, HeaderMap::new(), PROBE_TIMEOUT).await;
        let is_ready = answer.is_ok_and(|answer| answer.status.is_success());
        member.set_ready(is_ready);
        if let Some(balancer) = self.balancers.get(role.name()) {
            balancer.set_ready(member.address(), is_ready);
        }
    }

    async fn end(&self) -> Result<()> {
        let of = |is_wanted: fn(Option<ProcessRole>) -> bool| {
            self.members.iter().filter(move |member| is_wanted(member.role)).cloned()
        };
        let gateways = of(|role| role == Some(ProcessRole::Gateway));
        let services = of(|role| role.is_some_and(|role| role != ProcessRole::Gateway));
        // Whatever does not stop is ended when it is dropped; the others stop in order all the same.
        let ended = [
            all_of(gateways, ClusterMember::stop).await,
            all_of(services, ClusterMember::stop).await,
            all_of(of(|role| role.is_none()), ClusterMember::stop).await,
        ];
        self.folder
            .write_state(&ClusterState { processes: BTreeMap::new(), ..self.state.clone() })?;
        std::fs::remove_file(self.folder.socket()?)?;
        ended.into_iter().collect()
    }
}

impl RunningCluster {
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Ends gateways, then services, then servers; each may finish its work.
    pub async fn end(self) -> Result<()> {
        drop(self._watch);
        self.supervisor.end().await
    }
}

/// Does something with members at the same time, and reports every failure.
async fn all_of(
    members: impl Iterator<Item = Arc<ClusterMember>>,
    act: fn(&ClusterMember) -> Result<()>,
) -> Result<()> {
    let mut tasks = JoinSet::new();
    for member in members {
        tasks.spawn_blocking(move || act(&member).with_context(|| member.name.clone()));
    }
    let mut failures = Vec::new();
    while let Some(done) = tasks.join_next().await {
        failures.extend(done?.err().map(|error| format!("{error:#}")));
    }
    if failures.is_empty() { Ok(()) } else { Err(anyhow!("{}", failures.join("; "))) }
}

/// Starts again what ended by itself, and asks everyone whether they are ready.
async fn watch(supervisor: Arc<Supervisor>) {
    let mut tick = interval(PROBE_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let mut asked = JoinSet::new();
        for member in &supervisor.members {
            let (supervisor, member) = (Arc::clone(&supervisor), member.clone());
            asked.spawn(async move { supervisor.probe(&member).await });
        }
        while asked.join_next().await.is_some() {}
        for member in &supervisor.members {
            let (supervisor, member) = (Arc::clone(&supervisor), member.clone());
            // Not waited for: a server may take seconds.
            drop(spawn_blocking(move || revive(&supervisor, &member)));
        }
    }
}

fn revive(supervisor: &Supervisor, member: &ClusterMember) {
    let Some((how, started)) = member.revive() else { return };
    let outcome = match started {
        Ok(()) => "started again".to_owned(),
        Err(error) => format!("could not be started again: {error:#}"),
    };
    say(&format!("{} {how}; {outcome}", member.name));
    if let Err(error) = supervisor.write_state() {
        say(&format!("cluster.json: {error:#}"));
    }
}

#[expect(clippy::print_stderr, reason = "the log of the supervisor")]
fn say(line: &str) {
    eprintln!("{line}");
}

fn role_member(
    folder: &ClusterFolder,
    state: &ClusterState,
    role: ProcessRole,
    name: &str,
) -> Result<ClusterMember> {
    let (own, port) = (folder.member(name), state.port(name));
    let program = std::env::current_exe().context("our own program")?;
    let port_text = port.to_string();
    let arguments = ["serve", "--roles", role.name(), "--port", &port_text, "--config"];
    let mut command = vec![OsString::from(program)];
    command.extend(arguments.map(OsString::from));
    command.push(folder.settings_path(role.name()).into());
    command.push("--data".into());
    command.push(own.join("data").into());
    let place = ServerPlace { folder: &own, port, announced_port: port };
    Ok(ClusterMember::new(name, Some(role), place.program(name, command, READY_LINE)?))
}

/// What the supervisor itself listens with.
struct OwnServers {
    mail: MailServer,
    sqs_tls: TlsTerminator,
}

impl OwnServers {
    async fn start(
        folder: &ClusterFolder,
        state: &ClusterState,
        settings: &ClusterSettings<'_>,
    ) -> Result<OwnServers> {
        let tls = |name| anyhow::Ok(urr_tls::server_config(&settings.own_identity(name)?)?);
        let at = |name: &str| format!("{name} on port {}", state.port(name));
        let (mails, port) = (folder.mails(), state.port(MAIL_SERVER));
        let mail = MailServer::start(port, &mails, tls(MAIL_SERVER)?).await;
        let (target, port) = ((Ipv4Addr::LOCALHOST, state.port("sqs")).into(), state.port(SQS_TLS));
        let sqs_tls = TlsTerminator::start(port, target, tls(SQS_TLS)?).await;
        Ok(OwnServers {
            mail: mail.with_context(|| at(MAIL_SERVER))?,
            sqs_tls: sqs_tls.with_context(|| at(SQS_TLS))?,
        })
    }
}

async fn start_balancers(
    state: &ClusterState,
    members: &[Arc<ClusterMember>],
    own: &OwnServers,
) -> Result<BTreeMap<String, Balancer>> {
    let mut balancers = BTreeMap::new();
    for role in ProcessRole::ALL {
        let targets = members.iter().filter(|member| member.role == Some(role));
        let targets: Vec<SocketAddr> = targets.map(|member| member.address()).collect();
        let balancer = Balancer::start(state.port(role.name()), &targets).await;
        balancers
            .insert(role.name().to_owned(), balancer.with_context(|| taken(state, role.name()))?);
    }
    let servers = members.iter().filter(|member| member.role.is_none());
    let servers = servers.map(|member| match member.name.as_str() {
        "sqs" => ("sqs", own.sqs_tls.address()),
        name => (name, member.address()),
    });
    for (name, address) in servers.chain([(MAIL_SERVER, own.mail.address())]) {
        let port = state.client_port(name);
        if port != address.port() {
            let balancer = Balancer::start(port, &[address]).await;
            balancers.insert(name.to_owned(), balancer.with_context(|| taken(state, name))?);
        }
    }
    Ok(balancers)
}

fn taken(state: &ClusterState, name: &str) -> String {
    format!("the balancer before {name} on port {}", state.port(name))
}

/// Nothing is sent, and the answers come from this machine: names need not be verified.
fn client() -> Result<Outbound> {
    let web = ClientTls::trusting(urr_tls::TrustFiles::WebRoots);
    let tls = ClientTls { check: ServerCheck::Nothing, ..web };
    Ok(Outbound::to_own_processes(urr_tls::client_config(&tls)?))
}
