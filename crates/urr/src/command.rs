//! The command line.

mod admin;
mod audit;
mod backup;
mod certificates;
mod cluster;
mod credentials;
mod dlq;
mod doctor;
mod health;
mod migrate;
mod operator;
mod queue;
mod relocate;
mod return_charges;
mod run;
mod rush;
mod seed;
mod solve;
mod stats;
mod top;
mod worker;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use urr_kernel::Clock;
use urr_storage::Db;

pub use self::audit::{SinceTime, WholeReport, audit_everything};
use crate::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};
use crate::data_folder::DataFolder;
use crate::engines;
use crate::role::{ProcessRole, ProcessRoles};

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
    Up(ListenArgs),
    /// Run some of the services, on PostgreSQL and Kafka.
    Serve {
        /// Which services run here: gateway, auth, catalog, queue, ticket, payment, stats, mail,
        /// community
        #[arg(long, value_name = "A,B", value_delimiter = ',', required = true)]
        #[arg(value_parser = ProcessRole::parse)]
        roles: Vec<ProcessRole>,
        #[command(flatten)]
        listen: ListenArgs,
    },
    /// Read the notices of admissions from the SQS queue and log them.
    Worker,
    /// Create or update the tables; on PostgreSQL also schemas, roles and grants.
    Migrate,
    /// Add demo data: venues, artists and events in every state. A second run adds nothing.
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
    /// Make an authority and certificates for the processes of one installation.
    Certificates(certificates::CertificatesArgs),
    /// Print what others must accept from this process, for their internal.accepted.
    Credentials(credentials::CredentialsArgs),
    /// Check whether URR can run here, and say what to change.
    Doctor,
    /// Ask the process of this configuration whether it is ready; the exit code says it to scripts.
    Health,
    /// Watch a running system: requests, lines, sales, money, bus, storages; once a second.
    Top(top::TopArgs),
    /// Copy the data folder while it is used: all databases as they are at one moment.
    Backup(backup::BackupArgs),
    /// Put a backup back, into a data folder that does not exist yet.
    Restore(backup::RestoreArgs),
    /// Move a shop from its data folder to PostgreSQL, and its lines and messages to Redis and Kafka.
    ///
    /// The shop must be stopped, and the database empty. Everything is compared before it counts.
    Move(relocate::MoveArgs),
    /// After a restore, refund what was charged for orders that the backup does not have.
    ///
    /// Not if another shop uses the same account at the provider: its orders are unknown here too.
    ReturnCharges(return_charges::ReturnChargesArgs),
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
        /// What the proof is for
        #[arg(value_parser = ["register", "login"])]
        purpose: String,
        /// The site to ask [default: the `urr up` that runs on the data folder, or the configured port]
        #[arg(long)]
        url: Option<String>,
    },
    /// Show and change the waiting rooms of a running system; verify draws.
    Queue(queue::QueueArgs),
    /// Dead letters: list them, show them, send them again.
    Dlq {
        #[command(subcommand)]
        command: dlq::DlqCommand,
    },
    /// Prove that states and sums agree; the exit code says it to scripts.
    ///
    /// Without a command: everything, read from the tables of a running or stopped system. Exit code
    /// 0: all agrees. 1: something does not, and is named with its rows. 2: not all could be looked
    /// at.
    Audit(audit::AuditArgs),
    /// The statistics.
    Stats {
        #[command(subcommand)]
        command: stats::StatsCommand,
    },
    /// Run everything on this machine as several processes, with private servers of its own.
    ///
    /// PostgreSQL, a Redis Cluster, Kafka, an SQS server, and two processes of each role behind
    /// balancers, with TLS and a secret for each caller. For trying out and for rehearsals.
    Cluster(cluster::ClusterArgs),
    /// Rehearse a sale: virtual fans come all at once, and a report says what happened to them.
    Rush {
        #[command(subcommand)]
        command: rush::RushCommand,
    },
}

#[derive(Clone, Debug, clap::Args)]
struct ListenArgs {
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
            print_error(&error);
            match error.is::<CommandNotRun>() {
                true => ExitCode::from(2),
                false => ExitCode::FAILURE,
            }
        }
    }
}

/// A command could not do its work. It exits with 2, so that scripts can tell that from a result
/// that is bad news, which exits with 1.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
struct CommandNotRun(anyhow::Error);

impl CommandNotRun {
    fn wrap(error: anyhow::Error) -> anyhow::Error {
        anyhow::Error::new(CommandNotRun(error))
    }
}

#[expect(clippy::print_stderr, reason = "the result of a command")]
fn print_error(error: &anyhow::Error) {
    eprintln!("urr: {error:#}");
}

fn run_command(cli: Cli) -> Result<()> {
    let shared = cli.shared;
    match cli.command {
        Command::Up(listen) => {
            // The folder is locked before secrets are made in it: its errors are clearer.
            let inspected = load(LoadMode::Inspect, shared.clone(), Some(listen.clone()))?;
            let folder = DataFolder::lock(&inspected.data.dir)?;
            run::up(load(LoadMode::Embedded, shared, Some(listen))?, folder)
        }
        Command::Serve { roles, listen } => {
            let roles: ProcessRoles = roles.into_iter().collect();
            let mode = LoadMode::Distributed(roles.clone());
            run::serve(load(mode, shared, Some(listen))?, &roles)
        }
        Command::Worker => worker::run(&load_for_inspection(shared)?),
        Command::Migrate => migrate::migrate(&load_for_inspection(shared)?),
        Command::Seed => seed_command(shared),
        Command::Config { json, defaults } => show_config(shared, json, defaults),
        Command::Certificates(args) => certificates::run(&args),
        Command::Credentials(args) => credentials::run(&load_for_inspection(shared)?, &args),
        Command::Doctor => doctor::doctor(load_for_inspection(shared)),
        Command::Health => health::run(&load_for_inspection(shared)?),
        Command::Top(args) => top::run(&load_for_inspection(shared)?, &args),
        Command::Backup(args) => backup::back_up(&load_for_inspection(shared)?, &args),
        Command::ReturnCharges(args) => {
            return_charges::run(&load_for_inspection(shared).map_err(CommandNotRun::wrap)?, args)
        }
        Command::Move(args) => relocate::run(&load_for_inspection(shared)?, &args),
        Command::Restore(args) => backup::restore_into(&load_for_inspection(shared)?, &args),
        Command::Admin { command } => admin::run(&load_for_inspection(shared)?, command),
        Command::Solve { purpose, url } => solve::run(&load_for_inspection(shared)?, &purpose, url),
        Command::Queue(args) => queue::run(&load_for_inspection(shared)?, args),
        Command::Dlq { command } => dlq::run(&load_for_inspection(shared)?, command),
        Command::Audit(args) => {
            audit::run(&load_for_inspection(shared).map_err(CommandNotRun::wrap)?, args)
        }
        Command::Stats { command } => {
            stats::run(&load_for_inspection(shared).map_err(CommandNotRun::wrap)?, command)
        }
        Command::Cluster(args) => cluster::run(args),
        Command::Rush { command } => {
            rush::run(&load_for_inspection(shared).map_err(CommandNotRun::wrap)?, command)
        }
    }
}

/// Locks the data folder as `urr up` does, if the catalog is in it.
fn seed_command(shared: SharedArgs) -> Result<()> {
    let inspected = load(LoadMode::Inspect, shared.clone(), None)?;
    if !engines::is_on_sqlite(&inspected, ProcessRole::Catalog) {
        return seed::seed(&inspected, None);
    }
    let folder = DataFolder::lock(&inspected.data.dir)?;
    seed::seed(&load(LoadMode::Embedded, shared, None)?, Some(folder))
}

/// For a command that does not run services: secrets may be absent, and none are made.
fn load_for_inspection(shared: SharedArgs) -> Result<Config> {
    load(LoadMode::Inspect, shared, None)
}

fn load(mode: LoadMode, shared: SharedArgs, listen: Option<ListenArgs>) -> Result<Config> {
    let listen = listen.unwrap_or(ListenArgs { port: None, host: None });
    let overrides = CommandLineOverrides {
        data_dir: shared.data,
        host: listen.host,
        port: listen.port,
        log_format: shared.log_format,
    };
    let args = LoadOptions { mode, config_file: shared.config, overrides };
    Ok(config::load_for_process(args)?)
}

fn show_config(shared: SharedArgs, json: bool, defaults: bool) -> Result<()> {
    if defaults {
        return print_line(config::DEFAULT_TOML.trim_end());
    }
    let config = load(LoadMode::Inspect, shared, None)?;
    print_line(&if json { config.render_json() } else { config.render_text() })
}

/// Prints a line to standard output. A closed pipe, as in `urr config | head`, is no error.
fn print_line(line: &str) -> Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Opens the tables of a role for some work, and closes them after it.
async fn with_storage<T>(
    config: &Config,
    role: ProcessRole,
    work: impl AsyncFnOnce(Db) -> Result<T>,
) -> Result<T> {
    let db = engines::open_storage(config, role, &Clock::System).await?;
    let done = work(db.clone()).await;
    tokio::task::spawn_blocking(move || db.close()).await?;
    done
}

/// Runs async work on a new runtime, and lets blocking leftovers go after a moment.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome
}
