//! The command line.

mod admin;
mod audit;
mod dlq;
mod doctor;
mod migrate;
mod operator;
mod queue;
mod run;
mod seed;
mod solve;
mod stats;
mod worker;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};
use crate::data_folder::DataFolder;
use crate::engines;
use crate::role::ProcessRole;

/// URR (우르르): fair ticket sales for a crowd.
#[derive(Debug, Parser)]
#[command(name = "urr", version, about, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    shared: SharedArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Args)]
struct SharedArgs {
    /// The folder for all data [default: ./data]
    #[arg(long, value_name = "FOLDER", global = true)]
    data: Option<PathBuf>,
    /// A configuration file [default: urr.toml in the data folder]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Logs as text for people or as JSON for machines [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"], global = true)]
    log_format: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything in this process. Nothing else is needed.
    Up(DoorArgs),
    /// Run some of the services, on PostgreSQL and Kafka.
    Serve {
        /// Which services run here: gateway, auth, catalog, queue, ticket, payment, stats, mail
        #[arg(long, value_name = "A,B", value_delimiter = ',', required = true)]
        roles: Vec<ProcessRole>,
        #[command(flatten)]
        door: DoorArgs,
    },
    /// Read the notices of admissions from the SQS queue and log them.
    Worker,
    /// Create or update the tables; on PostgreSQL also schemas, roles and grants.
    Migrate,
    /// Add demo data: venues, artists and events in every state. Again, it adds nothing.
    Seed,
    /// Show the settings in force and where each of them came from.
    Config {
        /// As JSON
        #[arg(long, conflicts_with = "defaults")]
        json: bool,
        /// The commented file with all defaults, to start an urr.toml from
        #[arg(long)]
        defaults: bool,
    },
    /// Look for what would keep URR from running here.
    Doctor,
    /// Administrators' accounts.
    Admin {
        #[command(subcommand)]
        command: admin::AdminCommand,
    },
    /// Do the work that registering or logging in asks for, and print its proof.
    ///
    /// Use it as `curl … -H "x-proof-of-work: $(urr solve register)"`. A proof counts once, within
    /// two minutes.
    Solve {
        /// What the proof will be shown for
        door: solve::Door,
        /// The site to ask [default: the one of this installation]
        #[arg(long)]
        url: Option<String>,
    },
    /// Waiting rooms of a running system: figures, threshold and rate, pause, message; and draws.
    Queue(queue::QueueArgs),
    /// Events that could not be handled: look at them, send them again.
    Dlq {
        #[command(subcommand)]
        command: dlq::DlqCommand,
    },
    /// Proofs that nothing was lost, for a script as well.
    Audit {
        #[command(subcommand)]
        command: audit::AuditCommand,
    },
    /// The statistics.
    Stats {
        #[command(subcommand)]
        command: stats::StatsCommand,
    },
}

#[derive(Clone, Debug, clap::Args)]
struct DoorArgs {
    /// The port to listen on [default: 3001]
    #[arg(long)]
    port: Option<u16>,
    /// The address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
}

/// Runs the program and says in one sentence why, if it fails.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match run_command(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            match error.is::<NotDone>() {
                true => ExitCode::from(2),
                false => ExitCode::FAILURE,
            }
        }
    }
}

/// A command whose failure says something to a script could not even begin: this is another code.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
struct NotDone(anyhow::Error);

impl NotDone {
    fn because(error: anyhow::Error) -> anyhow::Error {
        anyhow::Error::new(NotDone(error))
    }
}

#[expect(clippy::print_stderr, reason = "the answer to whoever typed the command")]
fn complain(error: &anyhow::Error) {
    eprintln!("urr: {error:#}");
}

fn run_command(cli: Cli) -> Result<()> {
    let shared = cli.shared;
    match cli.command {
        Command::Up(door) => {
            // The folder is taken before secrets are made in it: it explains itself better.
            let seen = load(LoadMode::Inspect, shared.clone(), Some(door.clone()))?;
            let folder = DataFolder::take(&seen.data.dir)?;
            run::up(load(LoadMode::Embedded, shared, Some(door))?, folder)
        }
        Command::Serve { roles, door } => {
            let roles = roles.into_iter().collect();
            run::serve(load(LoadMode::Distributed, shared, Some(door))?, &roles)
        }
        Command::Worker => worker::run(&load_for_visit(shared)?),
        Command::Migrate => migrate::migrate(&load_for_visit(shared)?),
        Command::Seed => seed_command(shared),
        Command::Config { json, defaults } => show_config(shared, json, defaults),
        Command::Doctor => doctor::doctor(load_for_visit(shared)),
        Command::Admin { command } => admin::run(&load_for_visit(shared)?, command),
        Command::Solve { door, url } => solve::run(&load_for_visit(shared)?, door, url),
        Command::Queue(args) => queue::run(&load_for_visit(shared)?, args),
        Command::Dlq { command } => dlq::run(&load_for_visit(shared)?, command),
        Command::Audit { command } => {
            audit::run(&load_for_visit(shared).map_err(NotDone::because)?, command)
        }
        Command::Stats { command } => {
            stats::run(&load_for_visit(shared).map_err(NotDone::because)?, command)
        }
    }
}

/// A data folder is taken as `urr up` does it; on servers nothing of the folder is needed.
fn seed_command(shared: SharedArgs) -> Result<()> {
    let seen = load(LoadMode::Inspect, shared.clone(), None)?;
    if !engines::is_on_sqlite(&seen, ProcessRole::Catalog) {
        return seed::seed(&seen, None);
    }
    let folder = DataFolder::take(&seen.data.dir)?;
    seed::seed(&load(LoadMode::Embedded, shared, None)?, Some(folder))
}

/// For a command that looks at an installation without running it: secrets that it does not need
/// may be absent, and none are made.
fn load_for_visit(shared: SharedArgs) -> Result<Config> {
    load(LoadMode::Inspect, shared, None)
}

fn load(mode: LoadMode, shared: SharedArgs, door: Option<DoorArgs>) -> Result<Config> {
    let door = door.unwrap_or(DoorArgs { port: None, host: None });
    let overrides = CommandLineOverrides {
        data_dir: shared.data,
        host: door.host,
        port: door.port,
        log_format: shared.log_format,
    };
    let args = LoadOptions { mode, config_file: shared.config, overrides };
    Ok(config::load_for_process(args)?)
}

fn show_config(shared: SharedArgs, json: bool, defaults: bool) -> Result<()> {
    if defaults {
        return say(config::DEFAULT_TOML.trim_end());
    }
    let config = load(LoadMode::Inspect, shared, None)?;
    let text = if json { config.render_json() } else { config.render_text() };
    say(text.trim_end())
}

/// Answers whoever typed the command. One who no longer listens, as in `urr config | head`, has
/// heard enough.
fn say(line: &str) -> Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Runs async work on a new runtime, and lets blocking leftovers go after a moment.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome
}
