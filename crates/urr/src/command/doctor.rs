//! `urr doctor`: looks for what would keep URR from running here, and says how to mend it.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Result, bail};
use urr_contracts::events::TOPICS;
use urr_kernel::Clock;

use super::{block_on, say};
use crate::config::{Config, PaymentProviderKind};
use crate::data_folder::{DataFolder, FolderError};
use crate::engines;
use crate::role::ProcessRole;

/// What a look at one thing came to.
enum Finding {
    Good(String),
    /// Worth knowing, no obstacle.
    Note(String),
    Bad(String),
}

pub fn doctor(loaded: Result<Config>) -> Result<()> {
    let findings = match &loaded {
        Ok(config) => examine(config),
        Err(error) => vec![Finding::Bad(error.to_string())],
    };
    let mut obstacles = 0;
    for finding in findings {
        match finding {
            Finding::Good(text) => say(&format!("ok       {text}"))?,
            Finding::Note(text) => say(&format!("note     {text}"))?,
            Finding::Bad(text) => {
                say(&format!("PROBLEM  {text}"))?;
                obstacles += 1;
            }
        }
    }
    match obstacles {
        0 => Ok(()),
        1 => bail!("1 problem was found"),
        count => bail!("{count} problems were found"),
    }
}

fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = vec![Finding::Good("the configuration is complete and consistent".into())];
    findings.push(examine_folder(config));
    findings.push(examine_port(config));
    findings.extend(examine_storage(config));
    findings.push(examine_bus(config));
    findings.push(examine_redis(config));
    findings.extend(examine_line(config));
    findings.extend(examine_payments(config));
    findings
}

fn examine_folder(config: &Config) -> Finding {
    let folder = &config.data.dir;
    if let Some(file) = folder.ancestors().find(|part| part.is_file()) {
        let (folder, file) = (folder.display(), file.display());
        return Finding::Bad(format!(
            "the data folder {folder} cannot be made: {file} is a file; choose another folder with \
             --data"
        ));
    }
    if !folder.exists() {
        return Finding::Note(format!("{} does not exist yet; it will be made", folder.display()));
    }
    match DataFolder::take(folder) {
        Ok(_) => Finding::Good(format!("the data folder {} can be used", folder.display())),
        Err(error @ FolderError::InUse { .. }) => Finding::Note(error.to_string()),
        Err(error) => Finding::Bad(error.to_string()),
    }
}

fn examine_port(config: &Config) -> Finding {
    let address = SocketAddr::new(config.server.host, config.server.port);
    match TcpListener::bind(address) {
        Ok(_) => Finding::Good(format!("{address} is free")),
        Err(error) => Finding::Note(format!(
            "{address} cannot be listened on now ({error}); fine if URR is running"
        )),
    }
}

fn examine_storage(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for schema in ProcessRole::ALL
        .into_iter()
        .filter(|r| engines::is_on_sqlite(config, *r))
        .filter_map(ProcessRole::schema)
    {
        findings.push(examine_file(&engines::sqlite_path(&config.data.dir, &schema)));
    }
    for role in ProcessRole::ALL.into_iter().filter(|role| engines::is_on_postgres(config, *role)) {
        let opened = block_on(async {
            let db = engines::open_storage(config, role, &Clock::System).await?;
            if let Some(db) = db {
                tokio::task::spawn_blocking(move || db.close()).await?;
            }
            Ok(())
        });
        findings.push(match opened {
            Ok(()) => Finding::Good(format!("PostgreSQL: the tables of {role} are up to date")),
            Err(error) => Finding::Bad(format!("{error:#}")),
        });
    }
    findings
}

/// A database file may be absent, but not damaged.
fn examine_file(path: &Path) -> Finding {
    if !path.exists() {
        return Finding::Note(format!("{} does not exist yet; it will be made", path.display()));
    }
    match urr_storage::check_sqlite(path) {
        Ok(()) => Finding::Good(format!("{} is sound", path.display())),
        Err(error) => Finding::Bad(format!(
            "{} is damaged or not a database: {error}; restore it from a backup",
            path.display()
        )),
    }
}

fn examine_bus(config: &Config) -> Finding {
    if config.bus.kafka_bootstrap_servers.is_empty() {
        return examine_file(&engines::bus_path(&config.data.dir));
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
                [] => Finding::Good(format!("Kafka at {servers} has every topic")),
                _ => Finding::Note(format!("Kafka at {servers} lacks {missing:?}; made at start")),
            }
        }
        Err(error) => Finding::Bad(format!("Kafka at {servers} does not answer: {error:#}")),
    }
}

/// Waiting rooms without Redis.
fn examine_line(config: &Config) -> Vec<Finding> {
    if !engines::is_line_here(config) {
        return Vec::new();
    }
    let path = engines::sqlite_path(&config.data.dir, &urr_room::JOURNAL);
    let mut findings = vec![examine_file(&path)];
    if engines::is_on_postgres(config, ProcessRole::Queue) {
        findings.push(Finding::Note(
            "without Redis the waiting rooms are in the process that keeps them: run one queue \
             process only, or set redis.url"
                .into(),
        ));
    }
    findings
}

/// Who takes the money. A provider without its keys is a mistake of the configuration, and is found
/// before this.
fn examine_payments(config: &Config) -> Vec<Finding> {
    let mut findings = vec![match config.payments.provider {
        PaymentProviderKind::Toss => Finding::Good("payments go through Toss".into()),
        PaymentProviderKind::PortOne => Finding::Good("payments go through PortOne".into()),
        PaymentProviderKind::Sandbox if config.server.host.is_loopback() => {
            Finding::Good("payments go through the sandbox: nobody pays".into())
        }
        PaymentProviderKind::Sandbox => Finding::Note(format!(
            "payments go through the sandbox, and others can reach {}: whoever buys there gets \
             tickets and pays nothing; set payments.provider to toss or portone before a real sale",
            config.server.host
        )),
    }];
    findings.extend(config.payments.half_configured().into_iter().map(|(provider, missing)| {
        Finding::Note(format!(
            "{provider} has some of its keys but not {missing}: what was paid through it cannot be \
             asked for or given back; set it, or take the others away"
        ))
    }));
    findings
}

fn examine_redis(config: &Config) -> Finding {
    let asked = block_on(async {
        match engines::open_redis(config).await? {
            Some(redis) => Ok(Some(redis.ping().await?)),
            None => Ok(None),
        }
    });
    match asked {
        Ok(None) => Finding::Good("locks, limits and caches are in memory".into()),
        Ok(Some(())) => Finding::Good("Redis answers".into()),
        Err(error) => Finding::Bad(format!("Redis does not answer: {error:#}")),
    }
}
