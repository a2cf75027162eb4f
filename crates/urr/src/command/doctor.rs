//! `urr doctor`: checks whether URR can run here, and says what to change if not.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Result, bail};
use urr_auth::AuthService;
use urr_contracts::events::TOPICS;
use urr_kernel::Clock;
use urr_storage::StorageError;

use super::{block_on, print_line, with_storage};
use crate::compose::{ClockAndIds, auth_parts, terms_texts};
use crate::config::{Config, PaymentProviderKind, lost_secrets};
use crate::data_folder::{DataFolder, FolderError};
use crate::engines;
use crate::hops::{HopProtection, hops};
use crate::role::ProcessRole;

/// The result of one check.
enum CheckResult {
    Good(String),
    /// Worth knowing, but no problem.
    Note(String),
    Problem(String),
}

pub fn doctor(loaded: Result<Config>) -> Result<()> {
    let results = match &loaded {
        Ok(config) => check_all(config),
        Err(error) => vec![CheckResult::Problem(error.to_string())],
    };
    let mut problems = 0;
    for result in results {
        match result {
            CheckResult::Good(text) => print_line(&format!("ok       {text}"))?,
            CheckResult::Note(text) => print_line(&format!("note     {text}"))?,
            CheckResult::Problem(text) => {
                print_line(&format!("PROBLEM  {text}"))?;
                problems += 1;
            }
        }
    }
    match problems {
        0 => Ok(()),
        1 => bail!("1 problem was found"),
        count => bail!("{count} problems were found"),
    }
}

fn check_all(config: &Config) -> Vec<CheckResult> {
    let mut results =
        vec![CheckResult::Good("the configuration is complete and consistent".into())];
    results.push(check_folder(config));
    results.extend(lost_secrets(config).map(CheckResult::Problem));
    results.extend(check_data_key(config));
    results.push(check_port(config));
    results.extend(check_storage(config));
    results.extend(check_standbys(config));
    results.push(check_bus(config));
    results.push(check_redis(config));
    results.extend(check_rooms(config));
    results.push(check_terms(config));
    results.extend(check_payments(config));
    results.extend(check_hops(config));
    results
}

/// Names every connection that somebody could read, or answer in another's name.
fn check_hops(config: &Config) -> Vec<CheckResult> {
    let weak = hops(config).into_iter().filter_map(|hop| {
        let lack = match hop.protection {
            HopProtection::Verified => return None,
            HopProtection::Unverified => "encrypted, but the server is not verified",
            HopProtection::Plain if hop.leaves_the_machine() => "not encrypted",
            HopProtection::Plain => "not encrypted, but on this machine",
        };
        Some(CheckResult::Note(format!("{lack}: {}; {}", hop.peer, hop.remedy)))
    });
    weak.collect()
}

fn check_folder(config: &Config) -> CheckResult {
    let folder = &config.data.dir;
    if let Some(file) = folder.ancestors().find(|part| part.is_file()) {
        let (folder, file) = (folder.display(), file.display());
        return CheckResult::Problem(format!(
            "the data folder {folder} cannot be made: {file} is a file; choose another folder with \
             --data"
        ));
    }
    if !folder.exists() {
        return not_made_yet(folder);
    }
    match DataFolder::lock(folder) {
        Ok(_) => CheckResult::Good(format!("the data folder {} can be used", folder.display())),
        Err(error @ FolderError::InUse { .. }) => CheckResult::Note(error.to_string()),
        Err(error) => CheckResult::Problem(error.to_string()),
    }
}

fn not_made_yet(path: &Path) -> CheckResult {
    CheckResult::Note(format!("{} does not exist yet; it will be made", path.display()))
}

fn check_port(config: &Config) -> CheckResult {
    let address = SocketAddr::new(config.server.host, config.server.port);
    match TcpListener::bind(address) {
        Ok(_) => CheckResult::Good(format!("{address} is free")),
        Err(error) => CheckResult::Note(format!(
            "{address} cannot be listened on now ({error}); fine if URR is running"
        )),
    }
}

fn check_storage(config: &Config) -> Vec<CheckResult> {
    let on_sqlite =
        ProcessRole::ALL.into_iter().filter(|role| engines::is_on_sqlite(config, *role));
    let files = on_sqlite.filter_map(ProcessRole::schema);
    let files = files.map(|schema| engines::sqlite_path(&config.data.dir, &schema));
    let mut results: Vec<CheckResult> = files.map(|file| check_file(&file)).collect();
    for role in ProcessRole::ALL.into_iter().filter(|role| engines::is_on_postgres(config, *role)) {
        let opened = block_on(with_storage(config, role, async |_| Ok(())));
        results.push(match opened {
            Ok(()) => CheckResult::Good(format!("PostgreSQL: the tables of {role} are up to date")),
            Err(error) => CheckResult::Problem(format!("{error:#}")),
        });
    }
    results
}

/// Of several servers: whether a standby has everything that was sold when it is promoted.
fn check_standbys(config: &Config) -> Option<CheckResult> {
    let url = config.database.url.as_ref()?;
    let on_postgres = |role: &ProcessRole| engines::is_on_postgres(config, *role);
    let role = ProcessRole::ALL.into_iter().find(on_postgres)?;
    if !engines::place_of(url).contains(',') {
        return None;
    }
    let sql = "select current_setting('synchronous_standby_names') as names";
    let names = block_on(with_storage(config, role, async |db| {
        let names: Result<String, StorageError> =
            db.read(move |tx| tx.query_one(sql, &[], |row| row.get("names"))).await;
        Ok(names?)
    }));
    match names {
        Ok(names) if names.is_empty() => Some(CheckResult::Note(
            "PostgreSQL waits for no standby, which may lack the last sales when it takes over; \
             set synchronous_standby_names"
                .into(),
        )),
        Ok(_) => Some(CheckResult::Good("PostgreSQL: a standby has every sale".into())),
        // The check of the storage tells why it cannot be opened.
        Err(_) => None,
    }
}

/// Whether the accounts can be read with the configured key.
fn check_data_key(config: &Config) -> Option<CheckResult> {
    let has_key = !config.auth.data_key.expose().is_empty();
    if !has_key || !engines::has_tables(config, ProcessRole::Auth) {
        return None;
    }
    let checked = block_on(with_storage(config, ProcessRole::Auth, async |db| {
        let auth = AuthService::new(auth_parts(config, db, &ClockAndIds::system())?);
        Ok(auth.check_data_keys().await)
    }));
    match checked {
        Ok(Ok(())) => Some(CheckResult::Good("the accounts can be read".into())),
        Ok(Err(error)) => Some(CheckResult::Problem(error.to_string())),
        // The check of the storage tells why it cannot be opened.
        Err(_) => None,
    }
}

/// Whether the terms can be read. That they are examples is told with the other dangers.
fn check_terms(config: &Config) -> CheckResult {
    match (terms_texts(config), &config.auth.terms_dir) {
        (Ok(_), Some(folder)) => {
            CheckResult::Good(format!("the terms are in {}", folder.display()))
        }
        (Ok(_), None) => CheckResult::Good("the terms are the program's examples".into()),
        (Err(error), _) => CheckResult::Problem(format!("{error:#}")),
    }
}

/// A database file may be absent, but not damaged.
fn check_file(path: &Path) -> CheckResult {
    if !path.exists() {
        return not_made_yet(path);
    }
    match urr_storage::check_sqlite(path) {
        Ok(()) => CheckResult::Good(format!("{} is sound", path.display())),
        Err(error) => CheckResult::Problem(format!(
            "{} is damaged or not a database: {error}; restore it from a backup",
            path.display()
        )),
    }
}

fn check_bus(config: &Config) -> CheckResult {
    if config.bus.kafka_bootstrap_servers.is_empty() {
        return check_file(&engines::bus_path(&config.data.dir));
    }
    let asked = block_on(async {
        let bus = engines::connect_bus(config, &Clock::System)?;
        let topics = bus.topics().await?;
        bus.close().await;
        Ok(topics)
    });
    let servers = config.bus.kafka_bootstrap_servers.join(",");
    match asked {
        Ok(topics) => {
            let missing: Vec<&&str> =
                TOPICS.iter().filter(|topic| !topics.iter().any(|t| t == *topic)).collect();
            match missing.as_slice() {
                [] => CheckResult::Good(format!("Kafka at {servers} has every topic")),
                _ => CheckResult::Note(format!(
                    "Kafka at {servers} lacks {missing:?}; made at start"
                )),
            }
        }
        Err(error) => {
            CheckResult::Problem(format!("Kafka at {servers} does not answer: {error:#}"))
        }
    }
}

/// The journal of waiting rooms without Redis.
fn check_rooms(config: &Config) -> Vec<CheckResult> {
    if !engines::has_rooms_in_process(config) {
        return Vec::new();
    }
    let path = engines::sqlite_path(&config.data.dir, &urr_room::JOURNAL);
    let mut results = vec![check_file(&path)];
    if engines::is_on_postgres(config, ProcessRole::Queue) {
        results.push(CheckResult::Note(
            "without Redis the waiting rooms are in the memory of the queue process: run one queue \
             process only, or set redis.url"
                .into(),
        ));
    }
    results
}

/// The payment provider. One without its keys is an error of the configuration, found before this.
fn check_payments(config: &Config) -> Vec<CheckResult> {
    let mut results = vec![match config.payments.provider {
        PaymentProviderKind::Toss => CheckResult::Good("payments go through Toss".into()),
        PaymentProviderKind::PortOne => CheckResult::Good("payments go through PortOne".into()),
        PaymentProviderKind::Sandbox if config.server.host.is_loopback() => {
            CheckResult::Good("payments go through the sandbox: nobody pays".into())
        }
        PaymentProviderKind::Sandbox => CheckResult::Note(format!(
            "payments go through the sandbox, and others can reach {}: whoever buys there gets \
             tickets and pays nothing; set payments.provider to toss or portone before a real sale",
            config.server.host
        )),
    }];
    results.extend(config.dangers().into_iter().map(|danger| CheckResult::Note(danger.into())));
    results.extend(config.payments.half_configured().into_iter().map(|(provider, missing)| {
        CheckResult::Note(format!(
            "{provider} has some of its keys but not {missing}: what was paid through it cannot be \
             asked for or given back; set it, or take the others away"
        ))
    }));
    results
}

fn check_redis(config: &Config) -> CheckResult {
    let asked = block_on(async {
        match engines::open_redis(config).await? {
            Some(redis) => Ok(Some(redis.reach().await.map_err(anyhow::Error::msg)?)),
            None => Ok(None),
        }
    });
    match asked {
        Ok(None) => CheckResult::Good("locks, limits and caches are in memory".into()),
        Ok(Some(())) => CheckResult::Good("Redis answers".into()),
        Err(error) => CheckResult::Problem(format!("Redis does not answer: {error:#}")),
    }
}
