//! The engines: databases, the bus and Redis.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use urr_bus::{KafkaEncryption, KafkaLogin, KafkaOptions, SaslMechanism};
use urr_kernel::{Secret, percent};
use urr_redis::{RedisOptions, RedisTopology};
use urr_tls::{IdentityFiles, TrustFiles};

use super::reader::SettingReader;
use super::rule::{
    OWN_SECRET_BYTES_MIN, ValueRule, choice, connection_url, file, flag, host, host_and_port, list,
    millis, number, optional, password, port, secret, text,
};
use super::section::section;
use crate::role::ProcessRole;

const POSTGRES: &[&str] = &["postgres", "postgresql"];
const REDIS: &[&str] = &["redis", "rediss"];

fn threads() -> ValueRule<usize> {
    number(1..=1000)
}

section! {
    DatabaseConfig = "database" {
        /// The administrator's connection. None: embedded SQLite.
        url: Option<Secret> = value(optional(connection_url(POSTGRES)));
        role_secret: Secret = own_secret(secret(OWN_SECRET_BYTES_MIN));
        connections_per_service: usize = value(threads());
        sqlite_readers: usize = value(threads());
        statement_timeout_ms: u64 = value(millis());
        queue_max: usize = value(number(1..=1_000_000));
        start_wait_seconds: u64 = value(number(0..=86_400));
    }
}

/// What is set for single services. The gateway has no database.
#[derive(Debug, Clone)]
pub struct ServiceDatabases(BTreeMap<ProcessRole, ServiceDatabase>);

/// Where one service's schema is, as far as it differs from what follows from `database.url`.
#[derive(Debug, Clone)]
pub struct ServiceDatabase {
    pub url: Option<Secret>,
    pub username: Option<String>,
    pub password: Option<Secret>,
}

impl ServiceDatabases {
    pub(super) fn read(read: &mut SettingReader) -> ServiceDatabases {
        let services = ProcessRole::SERVICES.into_iter();
        ServiceDatabases(
            services.map(|role| (role, ServiceDatabase::read(read, role.name()))).collect(),
        )
    }

    pub fn of(&self, role: ProcessRole) -> Option<&ServiceDatabase> {
        self.0.get(&role)
    }
}

impl ServiceDatabase {
    fn read(read: &mut SettingReader, service: &str) -> ServiceDatabase {
        let key = |name: &str| format!("database.{service}.{name}");
        let alias = |name: &str| format!("{}_DB_{name}", service.to_ascii_uppercase());
        let url = optional(connection_url(POSTGRES));
        ServiceDatabase {
            url: read.value(&key("url"), &[&alias("URL")], url),
            username: read.value(&key("username"), &[&alias("USERNAME")], optional(text())),
            password: read.value(&key("password"), &[&alias("PASSWORD")], optional(password())),
        }
    }
}

const SASL_MECHANISMS: &[(&str, SaslMechanism)] = &[
    ("scram-sha-512", SaslMechanism::ScramSha512),
    ("scram-sha-256", SaslMechanism::ScramSha256),
    ("plain", SaslMechanism::Plain),
];

section! {
    BusConfig = "bus" {
        /// Empty: the embedded log.
        kafka_bootstrap_servers: Vec<String> =
            value(list(host_and_port())), "KAFKA_BOOTSTRAP_SERVERS";
        /// Whether connections are encrypted and the brokers verified.
        kafka_tls: bool = value(flag());
        /// None: the authorities that the system knows.
        kafka_tls_root_path: Option<PathBuf> = value(optional(file()));
        kafka_tls_certificate_path: Option<PathBuf> = value(optional(file()));
        kafka_tls_key_path: Option<PathBuf> = value(optional(file()));
        kafka_sasl_mechanism: SaslMechanism = value(choice(SASL_MECHANISMS));
        kafka_username: Option<String> = value(optional(text()));
        kafka_password: Option<Secret> = value(optional(password()));
        topic_partitions: u16 = value(number(1..=1000));
        topic_replication_factor: u16 =
            value(number(1..=100)), "KAFKA_TOPIC_REPLICATION_FACTOR";
        outbox_poll_ms: u64 = value(millis());
        retention_days: u16 = value(number(1..=3650));
        inbox_cleanup_interval_ms: u64 = value(millis()), "STATS_DEDUP_CLEANUP_INTERVAL_MS";
    }
}

impl BusConfig {
    /// How to reach Kafka, if it is used.
    pub fn kafka(&self) -> Option<KafkaOptions> {
        if self.kafka_bootstrap_servers.is_empty() {
            return None;
        }
        let login = self.kafka_username.as_ref().zip(self.kafka_password.as_ref());
        Some(KafkaOptions {
            encryption: self.kafka_tls.then(|| KafkaEncryption {
                root_path: self.kafka_tls_root_path.clone(),
                identity: identity(
                    self.kafka_tls_certificate_path.as_ref(),
                    self.kafka_tls_key_path.as_ref(),
                ),
            }),
            login: login.map(|(username, password)| KafkaLogin {
                mechanism: self.kafka_sasl_mechanism,
                username: username.clone(),
                password: password.clone(),
            }),
            replication_factor: i32::from(self.topic_replication_factor),
            ..KafkaOptions::new(self.kafka_bootstrap_servers.join(","))
        })
    }
}

section! {
    RedisConfig = "redis" {
        url: Option<Secret> = value(optional(connection_url(REDIS)));
        host: Option<String> = value(optional(host())), "REDIS_HOST";
        port: u16 = value(port()), "REDIS_PORT";
        username: Option<String> = value(optional(text()));
        password: Option<Secret> = value(optional(password())), "REDIS_PASSWORD";
        /// With `host` or `cluster_nodes`; a URL says it by its scheme.
        tls: bool = value(flag());
        /// None: the authorities of the web.
        tls_root_path: Option<PathBuf> = value(optional(file()));
        tls_certificate_path: Option<PathBuf> = value(optional(file()));
        tls_key_path: Option<PathBuf> = value(optional(file()));
        cluster_nodes: Vec<String> = value(list(host_and_port())), "REDIS_CLUSTER_NODES";
        timeout_ms: u64 = value(millis());
    }
}

impl RedisConfig {
    /// Where Redis is, made from whichever keys are set. None: its work is done in this process.
    pub fn place(&self) -> Option<RedisTopology> {
        match (&self.url, &self.host) {
            (Some(url), _) => Some(RedisTopology::Single(url.clone())),
            (None, _) if !self.cluster_nodes.is_empty() => {
                let nodes = self.cluster_nodes.iter().map(|node| self.address(node));
                Some(RedisTopology::Cluster(nodes.collect()))
            }
            (None, Some(host)) => {
                Some(RedisTopology::Single(self.address(&format!("{host}:{}", self.port))))
            }
            (None, None) => None,
        }
    }

    fn address(&self, host_and_port: &str) -> Secret {
        let password = self.password.as_ref().map(|password| percent::encode(password.expose()));
        let user = self.username.as_deref().map(percent::encode).unwrap_or_default();
        let login = password.map_or(String::new(), |password| format!("{user}:{password}@"));
        let scheme = if self.tls { "rediss" } else { "redis" };
        Secret::new(format!("{scheme}://{login}{host_and_port}"))
    }

    /// Whether the connection is encrypted, and so verified.
    pub fn is_encrypted(&self) -> bool {
        self.url.as_ref().map_or(self.tls, |url| url.expose().starts_with("rediss:"))
    }

    /// The timeout, and the certificates.
    pub fn options(&self) -> RedisOptions {
        RedisOptions {
            response_timeout: Duration::from_millis(self.timeout_ms),
            trust: trust(self.tls_root_path.as_ref()),
            identity: identity(self.tls_certificate_path.as_ref(), self.tls_key_path.as_ref()),
            ..RedisOptions::default()
        }
    }
}

/// Without a file, the authorities of the web.
pub fn trust(path: Option<&PathBuf>) -> TrustFiles {
    path.cloned().map_or(TrustFiles::WebRoots, TrustFiles::File)
}

/// A certificate with its key, if both are given.
pub fn identity(certificate: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<IdentityFiles> {
    Some(IdentityFiles { certificate: certificate?.clone(), key: key?.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redis(host: Option<&str>, nodes: &[&str]) -> RedisConfig {
        RedisConfig {
            url: None,
            host: host.map(str::to_owned),
            port: 6379,
            username: None,
            password: Some(Secret::new("p@ss/word")),
            tls: false,
            tls_root_path: None,
            tls_certificate_path: None,
            tls_key_path: None,
            cluster_nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            timeout_ms: 500,
        }
    }

    #[test]
    fn the_redis_address_carries_the_password_encoded() {
        let Some(RedisTopology::Single(address)) = redis(Some("cache"), &[]).place() else {
            panic!()
        };
        assert_eq!(address.expose(), "redis://:p%40ss%2Fword@cache:6379");
    }

    #[test]
    fn a_user_and_tls_are_part_of_the_address() {
        let user = Some("sh:op".to_owned());
        let config = RedisConfig { username: user, tls: true, ..redis(Some("cache"), &[]) };
        let Some(RedisTopology::Single(address)) = config.place() else { panic!() };
        assert_eq!(address.expose(), "rediss://sh%3Aop:p%40ss%2Fword@cache:6379");
    }

    #[test]
    fn cluster_nodes_are_used_instead_of_the_host() {
        let Some(RedisTopology::Cluster(nodes)) = redis(Some("cache"), &["a:1", "b:2"]).place()
        else {
            panic!()
        };
        let nodes: Vec<_> = nodes.iter().map(Secret::expose).collect();
        assert_eq!(nodes, ["redis://:p%40ss%2Fword@a:1", "redis://:p%40ss%2Fword@b:2"]);
    }

    #[test]
    fn without_any_address_redis_is_not_used() {
        assert!(redis(None, &[]).place().is_none());
    }
}
