//! The settings, section by section. Those of selling are in `selling.rs`.
//!
//! To add one: a field, the line that reads it, and its commented default in `config/default.toml`.
//! Everything else follows from those: its environment variable is `URR_<SECTION>_<KEY>`, `urr
//! config` shows it, and a test fails when one of the three is missing.

use std::net::IpAddr;
use std::path::PathBuf;

use urr_auth::{PROOF_DIFFICULTY_MAX, TermsVersion};
use urr_kernel::Secret;

use super::reader::Reader;
use super::rule::{
    AddressRange, address_range, choice, connection_url, flag, host, host_and_port, http_url,
    ip_address, jwt_secret, list, log_filter, millis, number, optional, password, path, port,
    seconds, secret, service_url, signing_key, terms_version, text, web_origin,
};

pub(super) const OWN_SECRET_BYTES_MIN: usize = 32;
const POSTGRES: &[&str] = &["postgres", "postgresql"];
const REDIS: &[&str] = &["redis", "rediss"];

#[derive(Debug, Clone)]
pub struct DataConfig {
    pub dir: PathBuf,
}

impl DataConfig {
    pub fn read(read: &mut Reader) -> DataConfig {
        DataConfig { dir: read.value("data.dir", &[], path()) }
    }
}

#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub host: IpAddr,
    pub port: u16,
    /// 0: health and metrics are on `port`.
    pub management_port: u16,
    pub shutdown_grace_seconds: u64,
}

impl ServerConfig {
    pub fn read(read: &mut Reader) -> ServerConfig {
        let any_port = number(0..=u16::MAX);
        ServerConfig {
            host: read.value("server.host", &[], ip_address()),
            port: read.value("server.port", &["PORT"], port()),
            management_port: read.value("server.management_port", &["MANAGEMENT_PORT"], any_port),
            shutdown_grace_seconds: read.value(
                "server.shutdown_grace_seconds",
                &[],
                number(0..=600),
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone)]
pub struct LogConfig {
    /// Levels in the syntax of `tracing_subscriber::EnvFilter`.
    pub level: String,
    pub format: LogFormat,
}

impl LogConfig {
    pub fn read(read: &mut Reader) -> LogConfig {
        let formats = choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)]);
        LogConfig {
            level: read.value("log.level", &[], log_filter()),
            format: read.value("log.format", &[], formats),
        }
    }
}

#[derive(Debug, Clone)]
pub struct TracingConfig {
    pub sampling_probability: f64,
    pub endpoint: Option<String>,
}

impl TracingConfig {
    pub fn read(read: &mut Reader) -> TracingConfig {
        let (sampling, endpoint) = ("tracing.sampling_probability", "tracing.endpoint");
        TracingConfig {
            sampling_probability: read.value(
                sampling,
                &["TRACING_SAMPLING_PROBABILITY"],
                number(0.0..=1.0),
            ),
            endpoint: read.value(endpoint, &["ZIPKIN_ENDPOINT"], optional(http_url())),
        }
    }
}

#[derive(Debug, Clone)]
pub struct DemoConfig {
    pub seed: bool,
}

impl DemoConfig {
    pub fn read(read: &mut Reader) -> DemoConfig {
        DemoConfig { seed: read.value("demo.seed", &[], flag()) }
    }
}

#[derive(Debug, Clone)]
pub struct DatabaseConfig {
    /// The administrator's connection. None: embedded SQLite.
    pub url: Option<Secret>,
    pub role_secret: Secret,
    pub connections_per_service: usize,
    pub sqlite_readers: usize,
    pub statement_timeout_ms: u64,
    pub queue_max: usize,
    pub auth: ServiceDatabase,
    pub catalog: ServiceDatabase,
    pub queue: ServiceDatabase,
    pub ticket: ServiceDatabase,
    pub payment: ServiceDatabase,
    pub stats: ServiceDatabase,
    pub mail: ServiceDatabase,
    pub community: ServiceDatabase,
}

/// Where one service's schema is, as far as it differs from what follows from `database.url`.
#[derive(Debug, Clone)]
pub struct ServiceDatabase {
    pub url: Option<Secret>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub replica_url: Option<Secret>,
}

impl DatabaseConfig {
    pub fn read(read: &mut Reader) -> DatabaseConfig {
        let own_secret = secret(OWN_SECRET_BYTES_MIN);
        let threads = || number(1..=1000);
        DatabaseConfig {
            url: read.value("database.url", &[], optional(connection_url(POSTGRES))),
            role_secret: read.own_secret("database.role_secret", &[], own_secret),
            connections_per_service: read.value("database.connections_per_service", &[], threads()),
            sqlite_readers: read.value("database.sqlite_readers", &[], threads()),
            statement_timeout_ms: read.value("database.statement_timeout_ms", &[], millis()),
            queue_max: read.value("database.queue_max", &[], number(1..=1_000_000)),
            auth: ServiceDatabase::read(read, "auth"),
            catalog: ServiceDatabase::read(read, "catalog"),
            queue: ServiceDatabase::read(read, "queue"),
            ticket: ServiceDatabase::read(read, "ticket"),
            payment: ServiceDatabase::read(read, "payment"),
            stats: ServiceDatabase::read(read, "stats"),
            mail: ServiceDatabase::read(read, "mail"),
            community: ServiceDatabase::read(read, "community"),
        }
    }
}

impl ServiceDatabase {
    fn read(read: &mut Reader, service: &str) -> ServiceDatabase {
        let key = |name: &str| format!("database.{service}.{name}");
        let alias = |name: &str| format!("{}_DB_{name}", service.to_ascii_uppercase());
        let url = || optional(connection_url(POSTGRES));
        ServiceDatabase {
            url: read.value(&key("url"), &[&alias("URL")], url()),
            username: read.value(&key("username"), &[&alias("USERNAME")], optional(text())),
            password: read.value(&key("password"), &[&alias("PASSWORD")], optional(password())),
            replica_url: read.value(&key("replica_url"), &[&alias("REPLICA_URL")], url()),
        }
    }
}

#[derive(Debug, Clone)]
pub struct BusConfig {
    /// Empty: the embedded log.
    pub kafka_bootstrap_servers: Vec<String>,
    pub topic_partitions: u16,
    pub topic_replication_factor: u16,
    pub outbox_poll_ms: u64,
    pub retention_days: u16,
    pub inbox_cleanup_interval_ms: u64,
}

impl BusConfig {
    pub fn read(read: &mut Reader) -> BusConfig {
        BusConfig {
            kafka_bootstrap_servers: read.value(
                "bus.kafka_bootstrap_servers",
                &["KAFKA_BOOTSTRAP_SERVERS"],
                list(host_and_port()),
            ),
            topic_partitions: read.value("bus.topic_partitions", &[], number(1..=1000)),
            topic_replication_factor: read.value(
                "bus.topic_replication_factor",
                &["KAFKA_TOPIC_REPLICATION_FACTOR"],
                number(1..=100),
            ),
            outbox_poll_ms: read.value("bus.outbox_poll_ms", &[], millis()),
            retention_days: read.value("bus.retention_days", &[], number(1..=3650)),
            inbox_cleanup_interval_ms: read.value(
                "bus.inbox_cleanup_interval_ms",
                &["STATS_DEDUP_CLEANUP_INTERVAL_MS"],
                millis(),
            ),
        }
    }
}

#[derive(Debug, Clone)]
pub struct RedisConfig {
    pub url: Option<Secret>,
    pub host: Option<String>,
    pub port: u16,
    pub password: Option<Secret>,
    pub cluster_nodes: Vec<String>,
    pub tls: bool,
    pub pool_size: usize,
}

/// Where Redis is.
#[derive(Debug, Clone)]
pub enum RedisPlace {
    /// There is none: everything is kept in this process.
    InMemory,
    Single(Secret),
    Cluster(Vec<Secret>),
}

impl RedisConfig {
    pub fn read(read: &mut Reader) -> RedisConfig {
        let nodes = list(host_and_port());
        RedisConfig {
            url: read.value("redis.url", &[], optional(connection_url(REDIS))),
            host: read.value("redis.host", &["REDIS_HOST"], optional(host())),
            port: read.value("redis.port", &["REDIS_PORT"], port()),
            password: read.value("redis.password", &["REDIS_PASSWORD"], optional(password())),
            cluster_nodes: read.value("redis.cluster_nodes", &["REDIS_CLUSTER_NODES"], nodes),
            tls: read.value("redis.tls", &[], flag()),
            pool_size: read.value(
                "redis.pool_size",
                &["REDIS_POOL_MAX_ACTIVE"],
                number(1..=10_000),
            ),
        }
    }

    /// The addresses to connect to, made from whichever keys are set.
    pub fn place(&self) -> RedisPlace {
        match (&self.url, &self.host) {
            (Some(url), _) => RedisPlace::Single(url.clone()),
            (None, _) if !self.cluster_nodes.is_empty() => RedisPlace::Cluster(
                self.cluster_nodes.iter().map(|node| self.address(node)).collect(),
            ),
            (None, Some(host)) => {
                RedisPlace::Single(self.address(&format!("{host}:{}", self.port)))
            }
            (None, None) => RedisPlace::InMemory,
        }
    }

    fn address(&self, host_and_port: &str) -> Secret {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let login = self
            .password
            .as_ref()
            .map_or(String::new(), |password| format!(":{}@", percent_encode(password.expose())));
        Secret::new(format!("{scheme}://{login}{host_and_port}"))
    }
}

fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[derive(Debug, Clone)]
pub struct ServicesConfig {
    pub auth_url: Option<String>,
    pub catalog_url: Option<String>,
    pub queue_url: Option<String>,
    pub ticket_url: Option<String>,
    pub payment_url: Option<String>,
    pub stats_url: Option<String>,
    pub mail_url: Option<String>,
    pub community_url: Option<String>,
}

impl ServicesConfig {
    pub fn read(read: &mut Reader) -> ServicesConfig {
        let mut url = |service: &str| {
            let alias = format!("{}_SERVICE_URL", service.to_ascii_uppercase());
            read.value(&format!("services.{service}_url"), &[&alias], optional(service_url()))
        };
        ServicesConfig {
            auth_url: url("auth"),
            catalog_url: url("catalog"),
            queue_url: url("queue"),
            ticket_url: url("ticket"),
            payment_url: url("payment"),
            stats_url: url("stats"),
            mail_url: url("mail"),
            community_url: url("community"),
        }
    }
}

#[derive(Debug, Clone)]
pub struct InternalConfig {
    pub token: Secret,
}

impl InternalConfig {
    pub fn read(read: &mut Reader) -> InternalConfig {
        let rule = secret(OWN_SECRET_BYTES_MIN);
        InternalConfig { token: read.own_secret("internal.token", &["INTERNAL_API_TOKEN"], rule) }
    }
}

/// Whether cookies travel over HTTPS only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieSecure {
    /// When the request came by HTTPS.
    Auto,
    Always,
    Never,
}

const COOKIE_SECURE: &[(&str, CookieSecure)] =
    &[("auto", CookieSecure::Auto), ("true", CookieSecure::Always), ("false", CookieSecure::Never)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotCheckKind {
    Off,
    ProofOfWork,
    RecaptchaV2,
    RecaptchaV3,
    Turnstile,
}

const BOT_CHECK: &[(&str, BotCheckKind)] = &[
    ("off", BotCheckKind::Off),
    ("proof-of-work", BotCheckKind::ProofOfWork),
    ("recaptcha-v2", BotCheckKind::RecaptchaV2),
    ("recaptcha-v3", BotCheckKind::RecaptchaV3),
    ("turnstile", BotCheckKind::Turnstile),
];

/// When a log-in is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotCheckLogin {
    Never,
    AfterFailures,
    Always,
}

const BOT_CHECK_LOGIN: &[(&str, BotCheckLogin)] = &[
    ("never", BotCheckLogin::Never),
    ("after-failures", BotCheckLogin::AfterFailures),
    ("always", BotCheckLogin::Always),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityProviderKind {
    Off,
    Sandbox,
    PortOne,
}

const IDENTITY_PROVIDER: &[(&str, IdentityProviderKind)] = &[
    ("off", IdentityProviderKind::Off),
    ("sandbox", IdentityProviderKind::Sandbox),
    ("portone", IdentityProviderKind::PortOne),
];

#[derive(Debug, Clone)]
pub struct AuthConfig {
    pub jwt_secret: Secret,
    pub jwt_expiration_seconds: u64,
    pub jwt_refresh_expiration_seconds: u64,
    pub cookie_secure: CookieSecure,
    pub service_terms_version: TermsVersion,
    pub privacy_terms_version: TermsVersion,
    pub marketing_terms_version: TermsVersion,
    /// Where browsers find this site.
    pub public_url: Option<String>,
    pub google_client_id: Option<String>,
    pub google_client_secret: Option<Secret>,
    pub kakao_client_id: Option<String>,
    pub kakao_client_secret: Option<Secret>,
    pub naver_client_id: Option<String>,
    pub naver_client_secret: Option<Secret>,
    pub bot_check: BotCheckKind,
    pub bot_check_login: BotCheckLogin,
    pub bot_check_bits: u8,
    pub bot_check_site_key: Option<String>,
    pub bot_check_secret: Option<Secret>,
    pub identity_provider: IdentityProviderKind,
    pub identity_kept_days: u16,
    pub portone_channel_key: Option<String>,
    pub data_key: Secret,
    pub data_key_version: u16,
    /// Another key that stored data may need, and its version.
    pub other_data_key: Option<Secret>,
    pub other_data_key_version: u16,
}

impl AuthConfig {
    pub fn read(read: &mut Reader) -> AuthConfig {
        AuthConfig {
            jwt_secret: read.own_secret("auth.jwt_secret", &["JWT_SECRET"], jwt_secret()),
            jwt_expiration_seconds: read.value(
                "auth.jwt_expiration_seconds",
                &["JWT_EXPIRATION_SECONDS"],
                seconds(),
            ),
            jwt_refresh_expiration_seconds: read.value(
                "auth.jwt_refresh_expiration_seconds",
                &["JWT_REFRESH_EXPIRATION_SECONDS"],
                seconds(),
            ),
            cookie_secure: read.value(
                "auth.cookie_secure",
                &["COOKIE_SECURE"],
                choice(COOKIE_SECURE),
            ),
            service_terms_version: read.value("auth.service_terms_version", &[], terms_version()),
            privacy_terms_version: read.value("auth.privacy_terms_version", &[], terms_version()),
            marketing_terms_version: read.value(
                "auth.marketing_terms_version",
                &[],
                terms_version(),
            ),
            public_url: read.value("auth.public_url", &[], optional(web_origin())),
            google_client_id: read.value(
                "auth.google_client_id",
                &["GOOGLE_CLIENT_ID"],
                optional(text()),
            ),
            google_client_secret: read.secret("auth.google_client_secret", &[], password()),
            kakao_client_id: read.value("auth.kakao_client_id", &[], optional(text())),
            kakao_client_secret: read.secret("auth.kakao_client_secret", &[], password()),
            naver_client_id: read.value("auth.naver_client_id", &[], optional(text())),
            naver_client_secret: read.secret("auth.naver_client_secret", &[], password()),
            bot_check: read.value("auth.bot_check", &[], choice(BOT_CHECK)),
            bot_check_login: read.value("auth.bot_check_login", &[], choice(BOT_CHECK_LOGIN)),
            bot_check_bits: read.value(
                "auth.bot_check_bits",
                &[],
                number(1..=PROOF_DIFFICULTY_MAX),
            ),
            bot_check_site_key: read.value("auth.bot_check_site_key", &[], optional(text())),
            bot_check_secret: read.secret("auth.bot_check_secret", &[], password()),
            identity_provider: read.value("auth.identity_provider", &[], choice(IDENTITY_PROVIDER)),
            identity_kept_days: read.value("auth.identity_kept_days", &[], number(0..=365)),
            portone_channel_key: read.value("auth.portone_channel_key", &[], optional(text())),
            data_key: read.own_secret("auth.data_key", &[], secret(OWN_SECRET_BYTES_MIN)),
            data_key_version: read.value("auth.data_key_version", &[], number(1..=u16::MAX)),
            other_data_key: read.secret("auth.other_data_key", &[], secret(OWN_SECRET_BYTES_MIN)),
            other_data_key_version: read.value(
                "auth.other_data_key_version",
                &[],
                number(1..=u16::MAX),
            ),
        }
    }

    /// The bytes that sign and verify log-ins, the same for every service that does either.
    pub fn jwt_key(&self) -> Vec<u8> {
        signing_key(self.jwt_secret.expose())
    }
}

#[derive(Debug, Clone)]
pub struct GatewayConfig {
    pub entry_token_secret: Secret,
    pub trusted_edge_secret: Option<Secret>,
    pub trusted_proxies: Vec<AddressRange>,
    pub cors_allowed_origins: Vec<String>,
    pub rate_limit_auth_rpm: u32,
    pub rate_limit_queue_rpm: u32,
    pub rate_limit_booking_rpm: u32,
    pub rate_limit_general_rpm: u32,
    pub rate_limit_login_account_rpm: u32,
    pub rate_limit_login_address_rpm: u32,
    pub rate_limit_refresh_address_rpm: u32,
    pub timeout_seconds: u64,
    pub payment_timeout_seconds: u64,
    pub queue_timeout_seconds: u64,
    pub body_bytes_max: usize,
    pub auth_body_bytes_max: usize,
    pub header_bytes_max: usize,
}

impl GatewayConfig {
    pub fn read(read: &mut Reader) -> GatewayConfig {
        let rpm = || number(1..=1_000_000);
        let timeout = || number(1..=600);
        let bytes = || number(1024..=1_073_741_824);
        GatewayConfig {
            entry_token_secret: read.own_secret(
                "gateway.entry_token_secret",
                &["QUEUE_ENTRY_TOKEN_SECRET"],
                secret(OWN_SECRET_BYTES_MIN),
            ),
            trusted_edge_secret: read.secret(
                "gateway.trusted_edge_secret",
                &["CLOUDFRONT_SECRET"],
                secret(16),
            ),
            trusted_proxies: read.value("gateway.trusted_proxies", &[], list(address_range())),
            cors_allowed_origins: read.value(
                "gateway.cors_allowed_origins",
                &["CORS_ALLOWED_ORIGINS"],
                list(web_origin()),
            ),
            rate_limit_auth_rpm: read.value(
                "gateway.rate_limit_auth_rpm",
                &["RATE_LIMIT_AUTH_RPM"],
                rpm(),
            ),
            rate_limit_queue_rpm: read.value(
                "gateway.rate_limit_queue_rpm",
                &["RATE_LIMIT_QUEUE_RPM"],
                rpm(),
            ),
            rate_limit_booking_rpm: read.value(
                "gateway.rate_limit_booking_rpm",
                &["RATE_LIMIT_BOOKING_RPM"],
                rpm(),
            ),
            rate_limit_general_rpm: read.value(
                "gateway.rate_limit_general_rpm",
                &["RATE_LIMIT_GENERAL_RPM"],
                rpm(),
            ),
            rate_limit_login_account_rpm: read.value(
                "gateway.rate_limit_login_account_rpm",
                &[],
                rpm(),
            ),
            rate_limit_login_address_rpm: read.value(
                "gateway.rate_limit_login_address_rpm",
                &[],
                rpm(),
            ),
            rate_limit_refresh_address_rpm: read.value(
                "gateway.rate_limit_refresh_address_rpm",
                &[],
                rpm(),
            ),
            timeout_seconds: read.value("gateway.timeout_seconds", &[], timeout()),
            payment_timeout_seconds: read.value("gateway.payment_timeout_seconds", &[], timeout()),
            queue_timeout_seconds: read.value("gateway.queue_timeout_seconds", &[], timeout()),
            body_bytes_max: read.value("gateway.body_bytes_max", &[], bytes()),
            auth_body_bytes_max: read.value("gateway.auth_body_bytes_max", &[], bytes()),
            header_bytes_max: read.value("gateway.header_bytes_max", &[], bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redis(host: Option<&str>, nodes: &[&str]) -> RedisConfig {
        RedisConfig {
            url: None,
            host: host.map(str::to_owned),
            port: 6379,
            password: Some(Secret::new("p@ss/word")),
            cluster_nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            tls: true,
            pool_size: 1,
        }
    }

    #[test]
    fn the_redis_address_carries_the_password_encoded() {
        let RedisPlace::Single(address) = redis(Some("cache"), &[]).place() else { panic!() };
        assert_eq!(address.expose(), "rediss://:p%40ss%2Fword@cache:6379");
    }

    #[test]
    fn cluster_nodes_are_used_instead_of_the_host() {
        let RedisPlace::Cluster(nodes) = redis(Some("cache"), &["a:1", "b:2"]).place() else {
            panic!()
        };
        let nodes: Vec<_> = nodes.iter().map(Secret::expose).collect();
        assert_eq!(nodes, ["rediss://:p%40ss%2Fword@a:1", "rediss://:p%40ss%2Fword@b:2"]);
    }

    #[test]
    fn without_any_address_redis_is_not_used() {
        assert!(matches!(redis(None, &[]).place(), RedisPlace::InMemory));
    }
}
