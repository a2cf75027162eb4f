//! The configuration: read once at start, checked as a whole, and passed down as values.
//!
//! In rising priority: `config/default.toml`, built into the program; the secrets `urr up` made;
//! `urr.toml` in the data folder or the file given by `--config`; the environment; the command
//! line. Everything wrong is reported at once.

mod auth;
mod check;
mod describe;
mod gateway;
mod mail;
mod payments;
mod queue;
mod reader;
mod rule;
mod seats;
mod secrets;
mod section;
mod server;
mod source;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use auth::*;
pub use describe::Setting;
pub use gateway::*;
pub use mail::*;
pub use payments::*;
pub use queue::*;
pub use seats::*;
pub use secrets::{FIRST_START_MARK, secrets_path, variables as secret_variables};
pub use server::*;
pub use source::DEFAULT_TOML;
pub use storage::*;

use crate::own_secrets::OWN_SECRETS;
use crate::role::ProcessRoles;
use reader::{ConfigSources, SettingReader};
use source::{Environment, TomlEntries, parse_toml};

/// Declares the sections of the configuration and reads them in this order.
macro_rules! config {
    ($($section:ident: $type:ident),+ $(,)?) => {
        /// Everything that can be set. A section's fields are explained in `config/default.toml`.
        #[derive(Debug, Clone)]
        pub struct Config {
            $(pub $section: $type,)+
            settings: Vec<Setting>,
            /// Secrets of our own that are not set.
            missing_secrets: Vec<String>,
        }

        impl Config {
            fn read(read: &mut SettingReader) -> Config {
                Config {
                    $($section: $type::read(read),)+
                    settings: Vec::new(),
                    missing_secrets: Vec::new(),
                }
            }
        }
    };
}

config! {
    data: DataConfig,
    server: ServerConfig,
    log: LogConfig,
    traces: TracesConfig,
    demo: DemoConfig,
    database: DatabaseConfig,
    service_databases: ServiceDatabases,
    bus: BusConfig,
    redis: RedisConfig,
    services: ServicesConfig,
    internal: InternalConfig,
    auth: AuthConfig,
    gateway: GatewayConfig,
    queue: QueueConfig,
    seats: SeatsConfig,
    reservations: ReservationsConfig,
    alerts: AlertsConfig,
    catalog: CatalogConfig,
    payments: PaymentsConfig,
    mail: MailConfig,
    community: CommunityConfig,
    sqs: SqsConfig,
}

impl Config {
    /// What is allowed here that no shop may allow, a sentence each.
    pub fn dangers(&self) -> Vec<&'static str> {
        let mut dangers = Vec::new();
        if self.payments.dangerous_test_payments {
            dangers.push(
                "payments.dangerous_test_payments is on: test keys and test channels move no \
                 money, and whoever pays so gets real tickets; switch it off before a real sale",
            );
        }
        if self.auth.dangerous_test_identities {
            dangers.push(
                "auth.dangerous_test_identities is on: a test channel verifies anybody as anybody; \
                 switch it off before a real sale",
            );
        }
        if self.auth.terms_dir.is_none() && self.is_for_others() {
            dangers.push(
                "auth.terms_dir is not set: users agree to terms that are the program's examples; \
                 write your own and give them new versions before a real sale",
            );
        }
        dangers
    }

    /// The secrets that processes of these roles need and that are not set, a sentence each.
    pub fn missing_secrets(&self, roles: &ProcessRoles) -> Vec<String> {
        let missing = self.missing_secrets.iter().filter(|key| is_needed(key, roles, self));
        missing.map(|key| explain_missing(key, self)).collect()
    }

    /// Whether money is real, or others than this machine can come.
    fn is_for_others(&self) -> bool {
        self.payments.provider != PaymentProviderKind::Sandbox || !self.server.host.is_loopback()
    }
}

/// What the configuration is read for. It decides what happens to secrets that are not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadMode {
    /// `urr up`: they are generated and stored in the data folder.
    Embedded,
    /// `urr serve`: those that these roles need are an error. Made ones would differ from replica to
    /// replica, so the file of an earlier `urr up` is not read either.
    Distributed(ProcessRoles),
    /// `urr config`: they stay empty and nothing is written. Never run a service on this.
    Inspect,
}

/// What the command line says about the configuration.
#[derive(Debug)]
pub struct LoadOptions {
    pub mode: LoadMode,
    /// `--config`: read instead of `urr.toml` in the data folder.
    pub config_file: Option<PathBuf>,
    pub overrides: CommandLineOverrides,
}

/// Settings given on the command line; they win over everything else.
#[derive(Debug, Default)]
pub struct CommandLineOverrides {
    pub data_dir: Option<PathBuf>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub log_format: Option<String>,
}

/// Everything that is wrong with the configuration, a sentence each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    pub problems: Vec<String>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is not usable:")?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
    }
}

/// Reads the configuration of this process. The only place that reads its environment.
pub fn load_for_process(args: LoadOptions) -> Result<Config, ConfigErrors> {
    load(args, std::env::vars_os())
}

/// Reads the configuration from files, `env` and the command line.
pub fn load(
    args: LoadOptions,
    env: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Config, ConfigErrors> {
    let mut problems = Vec::new();
    let mut sources = gather(&args, Environment::new(env), &mut problems);
    let (config, mut read) = read_all(&sources);
    problems.append(&mut read.problems);
    // A file that could not be read may have held them.
    if let LoadMode::Distributed(roles) = &args.mode
        && sources.file.is_some()
    {
        problems.extend(config.missing_secrets(roles));
    }
    if !problems.is_empty() {
        return Err(ConfigErrors { problems });
    }
    if args.mode != LoadMode::Embedded || config.missing_secrets.is_empty() {
        return Ok(config);
    }
    if let Some(problem) = lost_secrets(&config) {
        return Err(ConfigErrors { problems: vec![problem] });
    }
    let entries = secrets::create(&config.data.dir, &config.missing_secrets)
        .map_err(|problems| ConfigErrors { problems })?;
    sources.generated = Some((secrets::secrets_path(&config.data.dir), entries));
    let (config, read) = read_all(&sources);
    if read.problems.is_empty() {
        Ok(config)
    } else {
        Err(ConfigErrors { problems: read.problems })
    }
}

/// What to say if secrets without which stored data is worthless are neither set nor in the data
/// folder any more.
pub fn lost_secrets(config: &Config) -> Option<String> {
    let needed = [&config.auth.data_key, &config.seats.ticket_signing_key];
    let is_missing = needed.iter().any(|secret| secret.expose().is_empty());
    if is_missing { secrets::lost(&config.data.dir) } else { None }
}

/// Whether a process of these roles needs a secret of our own.
fn is_needed(key: &str, roles: &ProcessRoles, config: &Config) -> bool {
    if key == "database.role_secret" {
        return roles.iter().any(|role| {
            let own = config.service_databases.of(*role);
            own.is_some_and(|database| database.password.is_none())
        });
    }
    let listed = OWN_SECRETS.iter().find(|secret| secret.key == key);
    listed.is_none_or(|secret| roles.iter().any(|role| secret.holders.contains(role)))
}

fn explain_missing(key: &str, config: &Config) -> String {
    let setting = config.settings.iter().find(|setting| setting.key == key);
    let names = setting.map(|setting| setting.env_names.join(" or ")).unwrap_or_default();
    format!(
        "{key}: missing; set {names} to the same value in every process that needs it (`openssl \
         rand -hex 32` makes one)"
    )
}

/// Collects all sources. A file that cannot be read is reported and left out.
fn gather(
    args: &LoadOptions,
    environment: Environment,
    problems: &mut Vec<String>,
) -> ConfigSources {
    let mut sources = ConfigSources {
        defaults: parse_toml(DEFAULT_TOML, Path::new("config/default.toml"))
            .expect("the built-in defaults are valid TOML: a test loads them"),
        generated: None,
        file: None,
        environment,
        command_line: command_line(&args.overrides, problems),
    };
    if let Some(path) = &args.config_file {
        sources.file = read_file(path, problems).map(|entries| (path.clone(), entries));
    }
    let data_dir = DataConfig::read(&mut SettingReader::new(&sources)).dir;
    if args.config_file.is_none() {
        sources.file = read_data_file(&data_dir, problems);
    }
    let secrets_path = secrets::secrets_path(&data_dir);
    if !matches!(args.mode, LoadMode::Distributed(_)) {
        match secrets::read(&secrets_path) {
            Ok(entries) => sources.generated = Some((secrets_path, entries)),
            Err(mut wrong) => problems.append(&mut wrong),
        }
    }
    sources
}

fn command_line(
    overrides: &CommandLineOverrides,
    problems: &mut Vec<String>,
) -> BTreeMap<&'static str, String> {
    let data_dir = overrides.data_dir.as_ref().and_then(|dir| {
        let text = dir.to_str().map(str::to_owned);
        if text.is_none() {
            problems.push(format!("data.dir = {dir:?} (from command line): not UTF-8; rename it"));
        }
        text
    });
    let given = [
        ("data.dir", data_dir),
        ("server.host", overrides.host.clone()),
        ("server.port", overrides.port.map(|port| port.to_string())),
        ("log.format", overrides.log_format.clone()),
    ];
    given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// `urr.toml` of the data folder, which may be absent. The folder cannot be named from inside it.
fn read_data_file(data_dir: &Path, problems: &mut Vec<String>) -> Option<(PathBuf, TomlEntries)> {
    let path = data_dir.join("urr.toml");
    if matches!(fs::metadata(&path), Err(error) if is_absent(&error)) {
        return Some((path, TomlEntries::new()));
    }
    let mut entries = read_file(&path, problems)?;
    if let Some(entry) = entries.remove("data.dir") {
        problems.push(format!(
            "data.dir ({}, line {}): the file is in that folder already; use URR_DATA_DIR, the \
             command line, or a file given by --config",
            path.display(),
            entry.line
        ));
    }
    Some((path, entries))
}

/// Also when a file is in place of the folder: the error of locking the folder is clearer.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read_file(path: &Path, problems: &mut Vec<String>) -> Option<TomlEntries> {
    match fs::read_to_string(path) {
        Ok(text) => parse_toml(&text, path).map_err(|mut wrong| problems.append(&mut wrong)).ok(),
        Err(error) => {
            problems.push(format!("{}: cannot be read: {error}", path.display()));
            None
        }
    }
}

fn read_all(sources: &ConfigSources) -> (Config, SettingReader<'_>) {
    let mut read = SettingReader::new(sources);
    let mut config = Config::read(&mut read);
    read.refuse_unknown();
    // Without its file the settings are not those in force: do not check them against each other.
    if sources.file.is_some() {
        check::check(&config, &mut read);
    }
    config.settings = read.settings.clone();
    config.missing_secrets = read.missing_secrets.clone();
    (config, read)
}
