//! Opening the engines: the embedded form by default, the distributed one when its address is set.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tracing::warn;
use urr_bus::{Bus, TopicSpec};
use urr_contracts::events::TOPICS;
use urr_kernel::{Clock, Secret, Timestamp, percent};
use urr_redis::Redis;
use urr_storage::{
    Db, PostgresOptions, Schema, ServiceRole, SqliteOptions, migrate, provision, reach_postgres,
};

use crate::config::Config;
use crate::role::ProcessRole;

/// The pause between two tries to reach a server that is absent.
const SERVER_PAUSE: Duration = Duration::from_secs(1);

/// The file of a role's tables in the data folder.
pub fn sqlite_path(folder: &Path, schema: &Schema) -> PathBuf {
    folder.join(format!("{}.db", schema.name))
}

/// The file of the embedded bus in the data folder.
pub fn bus_path(folder: &Path) -> PathBuf {
    folder.join("bus.db")
}

/// The role's tables on SQLite, brought up to date, or on PostgreSQL, checked to be so.
pub async fn open_storage(config: &Config, role: ProcessRole, clock: &Clock) -> Result<Db> {
    let schema = role.schema().context("the gateway has no tables")?;
    match service_url(config, role)? {
        Some(url) => open_postgres(config, role, &schema, &url).await,
        None => open_sqlite(config, &schema, clock),
    }
}

/// The role's tables for a command that only looks: nothing is created, migrated or written.
pub async fn open_storage_read_only(config: &Config, role: ProcessRole) -> Result<Db> {
    let schema = role.schema().context("the gateway has no tables")?;
    match service_url(config, role)? {
        // It only looks if its transactions only read; each says so to PostgreSQL.
        Some(url) => open_postgres(config, role, &schema, &url).await,
        None => open_sqlite_read_only(config, &schema).await,
    }
}

async fn open_postgres(
    config: &Config,
    role: ProcessRole,
    schema: &Schema,
    url: &Secret,
) -> Result<Db> {
    let mut options = PostgresOptions::new(url.expose(), schema.name);
    options.connections = config.database.connections_per_service;
    options.queue_max = config.database.queue_max;
    options.statement_timeout = Duration::from_millis(config.database.statement_timeout_ms);
    let db = Db::open_postgres(&options).with_context(|| match reach_postgres(url.expose()) {
        Ok(()) => format!("the {role} service; has `urr migrate` been run?"),
        Err(_) => format!("the database of the {role} service does not answer"),
    })?;
    let schema = *schema;
    let missing = db.read(move |tx| migrate::missing(tx, &schema)).await.with_context(|| {
        format!("the schema {} has no migrations; run `urr migrate`", schema.name)
    })?;
    if !missing.is_empty() {
        let missing = missing.join(", ");
        bail!("the schema {} lacks migrations ({missing}); run `urr migrate`", schema.name);
    }
    Ok(db)
}

/// One reader: a command that only looks asks one thing after another.
async fn open_sqlite_read_only(config: &Config, schema: &Schema) -> Result<Db> {
    let path = sqlite_path(&config.data.dir, schema);
    let options = SqliteOptions {
        readers: 1,
        statement_timeout: Duration::from_millis(config.database.statement_timeout_ms),
        ..SqliteOptions::default()
    };
    let schema = *schema;
    let opened = Db::open_sqlite_read_only(&path, &options);
    let db = opened.with_context(|| format!("the database file {}", path.display()))?;
    let missing = db.read(move |tx| migrate::missing(tx, &schema)).await;
    let missing =
        missing.with_context(|| format!("the database file {} is not ours", path.display()))?;
    if !missing.is_empty() {
        bail!(
            "the database file {} is of an older program: it lacks migrations ({}); run `urr \
             migrate`, or start `urr up`",
            path.display(),
            missing.join(", ")
        );
    }
    Ok(db)
}

fn open_sqlite(config: &Config, schema: &Schema, clock: &Clock) -> Result<Db> {
    let path = sqlite_path(&config.data.dir, schema);
    let options = SqliteOptions {
        readers: config.database.sqlite_readers,
        queue_max: config.database.queue_max,
        statement_timeout: Duration::from_millis(config.database.statement_timeout_ms),
        ..SqliteOptions::default()
    };
    let opened = migrate::migrate_sqlite(&path, schema, clock.now())
        .and_then(|_| Db::open_sqlite(&path, &options));
    opened.with_context(|| format!("the database file {}", path.display()))
}

/// Waits until the PostgreSQL of a role answers, as long as the configuration allows: in a cluster it
/// often starts beside us.
pub async fn await_server(config: &Config, role: ProcessRole) -> Result<()> {
    if !is_on_postgres(config, role) {
        return Ok(());
    }
    let Some(url) = service_url(config, role)? else { return Ok(()) };
    let wait_max = Duration::from_secs(config.database.start_wait_seconds);
    let begun = Instant::now();
    loop {
        let url = url.clone();
        let reached = tokio::task::spawn_blocking(move || reach_postgres(url.expose())).await;
        let Err(absent) = reached.context("reaching PostgreSQL")? else { return Ok(()) };
        if begun.elapsed() + SERVER_PAUSE > wait_max {
            bail!(
                "the database of the {role} service does not answer: {absent}; start it, or \
                 correct database.url; we waited for {} s (database.start_wait_seconds)",
                wait_max.as_secs()
            );
        }
        warn!(%absent, "the database of the {role} service does not answer yet; trying again");
        tokio::time::sleep(SERVER_PAUSE).await;
    }
}

/// Whether the role's tables exist, for commands that must not create them.
pub fn has_tables(config: &Config, role: ProcessRole) -> bool {
    let file = role.schema().map(|schema| sqlite_path(&config.data.dir, &schema));
    !is_on_sqlite(config, role) || file.is_some_and(|file| file.exists())
}

/// Whether there is a bus, for commands that must not create one.
pub fn has_bus(config: &Config) -> bool {
    !config.bus.kafka_bootstrap_servers.is_empty() || bus_path(&config.data.dir).exists()
}

/// Whether waiting rooms are in the memory of the queue process, and not in Redis.
pub fn has_rooms_in_process(config: &Config) -> bool {
    config.redis.place().is_none()
}

/// The journal of waiting rooms in this process: always a file in the data folder.
pub fn open_room_journal(config: &Config, clock: &Clock) -> Result<Db> {
    open_sqlite(config, &urr_room::JOURNAL, clock).context("the journal of the waiting rooms")
}

/// The same for a command that only looks.
pub async fn open_room_journal_read_only(config: &Config) -> Result<Db> {
    let opened = open_sqlite_read_only(config, &urr_room::JOURNAL).await;
    opened.context("the journal of the waiting rooms")
}

/// Whether there is such a journal, for commands that must not create one.
pub fn has_room_journal(config: &Config) -> bool {
    sqlite_path(&config.data.dir, &urr_room::JOURNAL).exists()
}

/// Brings the role's tables up to date. Returns what was applied now.
pub fn migrate_storage(config: &Config, role: ProcessRole, now: Timestamp) -> Result<Vec<String>> {
    let Some(schema) = role.schema() else {
        return Ok(Vec::new());
    };
    let applied = match admin_url(config, role) {
        None => migrate::migrate_sqlite(&sqlite_path(&config.data.dir, &schema), &schema, now),
        Some(url) => provision(url.expose(), &schema, &service_role(config, role)?, now),
    };
    applied.with_context(|| format!("the tables of the {role} service"))
}

/// The database of a role: its own, or the one that all share.
fn admin_url(config: &Config, role: ProcessRole) -> Option<&Secret> {
    let own = config.service_databases.of(role).and_then(|database| database.url.as_ref());
    own.or(config.database.url.as_ref())
}

/// Whether the role keeps tables in a file of the data folder.
pub fn is_on_sqlite(config: &Config, role: ProcessRole) -> bool {
    role.schema().is_some() && admin_url(config, role).is_none()
}

/// Whether the role keeps tables on PostgreSQL.
pub fn is_on_postgres(config: &Config, role: ProcessRole) -> bool {
    role.schema().is_some() && admin_url(config, role).is_some()
}

/// The role's login: as configured, or a password that follows from a secret of the installation.
fn service_role(config: &Config, role: ProcessRole) -> Result<ServiceRole> {
    let own = config.service_databases.of(role);
    let name = own.and_then(|database| database.username.clone());
    let name = name.unwrap_or_else(|| role.database_user().to_owned());
    let password = own.and_then(|database| database.password.clone());
    let secret = &config.database.role_secret;
    let password = match password {
        Some(password) => password,
        // A password derived from an empty secret could be computed by anybody.
        None if secret.expose().is_empty() => bail!(
            "the {role} service has no password for PostgreSQL; set database.role_secret, or \
             database.{role}.password"
        ),
        None => secret.derive(&format!("urr-database-role:{name}")),
    };
    Ok(ServiceRole { name, password })
}

/// The password with which a role logs in.
pub fn database_password(config: &Config, role: ProcessRole) -> Result<Secret> {
    Ok(service_role(config, role)?.password)
}

fn service_url(config: &Config, role: ProcessRole) -> Result<Option<Secret>> {
    let Some(url) = admin_url(config, role) else { return Ok(None) };
    Ok(Some(with_login(url, &service_role(config, role)?)))
}

/// The same database with another login.
fn with_login(url: &Secret, role: &ServiceRole) -> Secret {
    let (scheme, rest) = url.expose().split_once("://").unwrap_or(("postgres", url.expose()));
    // The login ends at the last `@` before the path: a password may hold one, a host may not.
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let host_start = rest[..authority_end].rfind('@').map_or(0, |at| at + 1);
    let (user, password) = (percent::encode(&role.name), percent::encode(role.password.expose()));
    let (place, query) = rest[host_start..].split_once('?').unwrap_or((&rest[host_start..], ""));
    // A login in the query would win over ours.
    let is_login = |pair: &&str| ["user=", "password="].iter().any(|name| pair.starts_with(name));
    let query: Vec<&str> =
        query.split('&').filter(|pair| !pair.is_empty() && !is_login(pair)).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    Secret::new(format!("{scheme}://{user}:{password}@{place}{mark}{}", query.join("&")))
}

/// Host and name of a database, without the login.
pub fn place_of(url: &Secret) -> String {
    let rest = url.expose().split_once("://").map_or(url.expose(), |(_, rest)| rest);
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let host_start = rest[..authority_end].rfind('@').map_or(0, |at| at + 1);
    let place = &rest[host_start..];
    place.split_once('?').map_or(place, |(place, _)| place).to_owned()
}

/// Redis, if it is configured. It need not answer yet.
pub async fn open_redis(config: &Config) -> Result<Option<Redis>> {
    match config.redis.place() {
        Some(place) => {
            let connected = Redis::connect_with(&place, config.redis.options()).await;
            Ok(Some(connected.context("redis")?))
        }
        None => Ok(None),
    }
}

/// The bus, with every topic present.
pub async fn open_bus(config: &Config, clock: &Clock) -> Result<Bus> {
    let bus = connect_bus(config, clock)?;
    let topic = |name: &&str| TopicSpec {
        name: (*name).to_owned(),
        partitions: i32::from(config.bus.topic_partitions),
        retention: bus_retention(config),
    };
    let topics: Vec<TopicSpec> = TOPICS.iter().map(topic).collect();
    bus.ensure_topics(&topics).await.context("the topics of the bus")?;
    Ok(bus)
}

/// How long the bus keeps events.
pub fn bus_retention(config: &Config) -> Duration {
    Duration::from_hours(24 * u64::from(config.bus.retention_days))
}

/// The bus as it is.
pub fn connect_bus(config: &Config, clock: &Clock) -> Result<Bus> {
    if let Some(options) = config.bus.kafka() {
        return Bus::connect_kafka(options).context("Kafka");
    }
    let path = bus_path(&config.data.dir);
    let opened = Bus::open_embedded(&path, clock);
    opened.with_context(|| format!("the bus in {}", path.display()))
}

/// The bus for a command that only looks.
pub fn connect_bus_read_only(config: &Config, clock: &Clock) -> Result<Bus> {
    if let Some(options) = config.bus.kafka() {
        return Bus::connect_kafka(options).context("Kafka");
    }
    let path = bus_path(&config.data.dir);
    let opened = Bus::open_embedded_read_only(&path, clock);
    opened.with_context(|| format!("the bus in {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_database_has_no_login() {
        let place = |url: &str| place_of(&Secret::new(url));
        assert_eq!(place("postgres://admin:a@b@host:5432/urr?password=x"), "host:5432/urr");
        assert_eq!(place("postgres://host/urr"), "host/urr");
    }

    #[test]
    fn a_login_replaces_another_and_keeps_the_place() {
        let role = ServiceRole { name: "svc".to_owned(), password: Secret::new("p@ss/w:rd") };
        let check = |url: &str, expected: &str| {
            assert_eq!(with_login(&Secret::new(url), &role).expose(), expected);
        };
        check(
            "postgres://admin:a@b@host:5432/urr?sslmode=disable",
            "postgres://svc:p%40ss%2Fw%3Ard@host:5432/urr?sslmode=disable",
        );
        check(
            "postgresql://host/urr?user=admin&password=x&connect_timeout=3",
            "postgresql://svc:p%40ss%2Fw%3Ard@host/urr?connect_timeout=3",
        );
        check("postgresql://host/urr?user=admin", "postgresql://svc:p%40ss%2Fw%3Ard@host/urr");
        check("postgresql://host/urr", "postgresql://svc:p%40ss%2Fw%3Ard@host/urr");
        check(
            "postgres://admin:x@a:1,b:2/urr?target_session_attrs=read-write",
            "postgres://svc:p%40ss%2Fw%3Ard@a:1,b:2/urr?target_session_attrs=read-write",
        );
        check("postgres://host", "postgres://svc:p%40ss%2Fw%3Ard@host");
    }
}
