//! `urr cluster`: several processes of each role on this machine, with private servers.

mod smoke;

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Subcommand;
use urr_rush::Site;

use super::run::StopSignals;
use super::{CommandNotRun, block_on, print_line};
use crate::cluster::{
    ClusterFolder, ClusterOptions, Control, ControlAction, ControlAnswer, RunningCluster,
    Supervisor,
};
use crate::config::Config;
use crate::role::ProcessRole;

const UP_WITHIN: Duration = Duration::from_mins(10);
const DOWN_WITHIN: Duration = Duration::from_mins(5);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub struct ClusterArgs {
    /// The folder of the cluster: data, settings, logs
    #[arg(long, value_name = "FOLDER", default_value = "./cluster", global = true)]
    folder: PathBuf,
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Start everything; Ctrl-C ends it. Data of an earlier start is used again
    Up(UpArgs),
    /// Register, queue, reserve, pay, and prove that everything agrees; the exit code says it
    Smoke,
    /// Show every process with its port and whether it is ready
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End what `up` started: gateways, then services, then servers
    Down {
        /// Remove the data, too
        #[arg(long)]
        remove: bool,
    },
    /// Start a process that was stopped or killed
    Start { name: String },
    /// Let a process finish its work and end
    Stop { name: String },
    /// Stop a process and start it again
    Restart { name: String },
    /// Kill a process with -9; it stays down until it is started
    Kill { name: String },
    /// Freeze a process: it keeps its connections and answers nothing
    Pause { name: String },
    /// Let a frozen process go on
    Resume { name: String },
    /// Cut all connections to a role, or to a server with --fault-lines
    Cut { name: String },
    /// Harm or heal all connections to a role, or to a server with --fault-lines
    Line {
        name: String,
        /// heal, silence, garble, close, slow with --ms, or fill the disk of a server
        #[arg(value_parser = ["heal", "slow", "silence", "garble", "close", "fill"])]
        fault: String,
        /// By how much every piece of an answer is late
        #[arg(long, default_value_t = 200)]
        ms: u64,
    },
}

#[derive(Debug, clap::Args)]
struct UpArgs {
    /// Return when everything runs; `down` ends it
    #[arg(long)]
    detach: bool,
    /// TLS at the public listeners, too, by the cluster's own authority
    #[arg(long)]
    tls: bool,
    /// How many processes each role has
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    replicas: u8,
    /// Put a balancer before each server, so that the connections to it can be harmed
    #[arg(long)]
    fault_lines: bool,
    /// A setting of all processes, such as queue.threshold=50; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.filter(|(key, _)| key.contains('.')).ok_or_else(|| "write section.key=value".to_owned())
}

pub fn run(args: ClusterArgs) -> Result<()> {
    let folder = ClusterFolder::new(&args.folder)?;
    let control = Control::new(&folder);
    let ask = |action, name: &str| {
        control.ask(action, name).map_err(CommandNotRun::wrap)?;
        print_line(&format!("{name}: done"))
    };
    match args.command {
        ClusterCommand::Up(up) if up.detach => up_detached(&folder, &up),
        ClusterCommand::Up(up) => block_on(up_here(&folder, up.options())),
        ClusterCommand::Smoke => smoke::run(&folder),
        ClusterCommand::Status { json } => show_status(&control, json),
        ClusterCommand::Down { remove } => down(&folder, &control, remove),
        ClusterCommand::Start { name } => ask(ControlAction::Start, &name),
        ClusterCommand::Stop { name } => ask(ControlAction::Stop, &name),
        ClusterCommand::Restart { name } => ask(ControlAction::Restart, &name),
        ClusterCommand::Kill { name } => ask(ControlAction::Kill, &name),
        ClusterCommand::Pause { name } => ask(ControlAction::Pause, &name),
        ClusterCommand::Resume { name } => ask(ControlAction::Resume, &name),
        ClusterCommand::Cut { name } => ask(ControlAction::Cut, &name),
        ClusterCommand::Line { name, fault, ms } => {
            let action = match fault.as_str() {
                "slow" => ControlAction::Slow { ms },
                "silence" => ControlAction::Silence,
                "garble" => ControlAction::Garble,
                "close" => ControlAction::Close,
                "fill" => ControlAction::Fill,
                _ => ControlAction::Heal,
            };
            ask(action, &name)
        }
    }
}

impl UpArgs {
    fn options(&self) -> ClusterOptions {
        ClusterOptions {
            replicas: self.replicas,
            tls: self.tls,
            fault_lines: self.fault_lines,
            settings: self.settings.iter().cloned().collect(),
        }
    }
}

/// Starts everything in this process and waits for its end.
async fn up_here(folder: &ClusterFolder, options: ClusterOptions) -> Result<()> {
    let mut signals = StopSignals::listen()?;
    let _lock = folder.lock()?;
    let starting = Supervisor::start(folder, options, say);
    let cluster = tokio::select! {
        started = starting => started?,
        () = signals.next() => bail!("the start was interrupted; nothing runs on"),
    };
    print_line(&welcome(folder, &cluster))?;
    tokio::select! {
        () = signals.next() => {}
        () = cluster.supervisor().ending.cancelled() => {}
    }
    say("ending gateways, services and servers");
    cluster.end().await
}

#[expect(clippy::print_stderr, reason = "what happens meanwhile is no result")]
fn say(line: &str) {
    eprintln!("{line}");
}

fn welcome(folder: &ClusterFolder, cluster: &RunningCluster) -> String {
    let status = cluster.supervisor().status();
    addresses(folder, &status)
}

fn addresses(folder: &ClusterFolder, status: &ControlAnswer) -> String {
    let scheme = status.site.split("://").next().unwrap_or("http");
    let is_gateway = |name: &str| name.starts_with(ProcessRole::Gateway.name());
    let gateways = status.members.iter().filter(|member| is_gateway(&member.name));
    let gateways: String = gateways
        .map(|member| format!("    {:<11}{scheme}://127.0.0.1:{}\n", member.name, member.port))
        .collect();
    let path = folder.path().display();
    format!(
        "
  The cluster runs: {count} processes.

    Open       {site}
{gateways}    Logs       {path}/members/NAME/log
    Mails      {path}/mails
    Settings   {path}/operator.toml

  Try:  urr cluster smoke --folder {path}
        urr cluster status --folder {path}
        urr audit --config {path}/operator.toml
  Stop: Ctrl-C, or urr cluster down --folder {path}
",
        count = status.members.len(),
        site = status.site,
    )
}

/// Starts a supervisor that outlives this command.
fn up_detached(folder: &ClusterFolder, args: &UpArgs) -> Result<()> {
    drop(folder.lock()?);
    let log = folder.supervisor_log();
    let file = File::create(&log).with_context(|| format!("{}", log.display()))?;
    let mut command = Command::new(std::env::current_exe().context("our own program")?);
    command.args(["cluster", "up", "--folder"]).arg(folder.path());
    command.args(["--replicas", &args.replicas.to_string()]);
    if args.tls {
        command.arg("--tls");
    }
    if args.fault_lines {
        command.arg("--fault-lines");
    }
    for (key, value) in &args.settings {
        command.args(["--set", &format!("{key}={value}")]);
    }
    // Its own group: Ctrl-C here is not for it.
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
    let mut child = command.spawn().context("starting the supervisor")?;
    let status = await_up(folder, &mut child)?;
    print_line(&addresses(folder, &status))
}

fn await_up(folder: &ClusterFolder, child: &mut Child) -> Result<ControlAnswer> {
    let ends_at = Instant::now() + UP_WITHIN;
    let control = Control::new(folder);
    loop {
        if let Some(status) = child.try_wait()? {
            let log = fs::read_to_string(folder.supervisor_log()).unwrap_or_default();
            bail!("it ended with {status}:\n{}", log.trim_end());
        }
        if let Ok(answer) = control.status()
            && answer.is_up
        {
            return Ok(answer);
        }
        ensure!(Instant::now() < ends_at, "it is not up after {UP_WITHIN:?}");
        thread::sleep(POLL_INTERVAL);
    }
}

fn show_status(control: &Control, json: bool) -> Result<()> {
    let status = control.status()?;
    if json {
        return print_line(&serde_json::to_string_pretty(&status)?);
    }
    print_line(&format!("site {}", status.site))?;
    for member in &status.members {
        let pid = member.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let ready = if member.is_ready { "ready" } else { "not ready" };
        let (name, port, state) = (&member.name, member.port, &member.state);
        let cpu_seconds = member.cpu_ms.map_or_else(String::new, |ms| format!("{} s", ms / 1_000));
        print_line(&format!(
            "{name:<13}port {port:<7}pid {pid:<9}{state:<9}{ready:<11}{cpu_seconds}"
        ))?;
    }
    let is_whole = status.is_up && status.members.iter().all(|member| member.is_ready);
    ensure!(is_whole, "not everything is ready");
    Ok(())
}

/// Ends only what this cluster started.
fn down(folder: &ClusterFolder, control: &Control, remove: bool) -> Result<()> {
    folder.read_state()?;
    if control.ask(ControlAction::Down, "").is_ok() {
        let ends_at = Instant::now() + DOWN_WITHIN;
        while folder.lock().is_err() {
            ensure!(Instant::now() < ends_at, "it does not end; see {:?}", folder.supervisor_log());
            thread::sleep(POLL_INTERVAL);
        }
        print_line("the cluster has ended")?;
    } else {
        let _lock = folder.lock()?;
        match folder.end_leftovers()? {
            0 => print_line("nothing runs")?,
            count => {
                print_line(&format!("ended {count} processes of a supervisor that was killed"))?
            }
        }
    }
    if remove {
        folder.remove()?;
        print_line(&format!("removed {}", folder.path().display()))?;
    }
    Ok(())
}

/// The site of a cluster, as fans reach it.
pub(super) fn site_of(config: &Config, url: &str) -> Result<Site> {
    let tls = urr_tls::client_config(&config.internal.client_tls())?;
    Ok(Site::parse(url)?.trusting(tls))
}
