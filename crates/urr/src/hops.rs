//! The connections that a configuration makes and accepts, and how each is protected.

use std::net::{IpAddr, SocketAddr};

use urr_mail::SmtpSecurity;
use urr_storage::{PostgresProtection, postgres_protection};
use urr_tls::IdentityFiles;

use crate::config::{Config, MailSenderKind};
use crate::engines;
use crate::role::ProcessRole;

/// What is between us and whoever listens or stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopProtection {
    Plain,
    /// Encrypted, to whoever answers.
    Unverified,
    Verified,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// What is at the other end.
    pub peer: String,
    /// Its host, without login.
    pub host: String,
    pub protection: HopProtection,
    /// What to change to encrypt it.
    pub remedy: &'static str,
}

impl Hop {
    /// Whether the connection leaves this machine.
    pub fn leaves_the_machine(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = |address: IpAddr| address.is_loopback();
        host != "localhost" && !host.parse().is_ok_and(is_loopback)
    }
}

/// Every connection, in the order of the sections of the configuration.
pub fn hops(config: &Config) -> Vec<Hop> {
    let mut hops = listeners(config);
    hops.extend(databases(config));
    hops.extend(config.bus.kafka_bootstrap_servers.iter().map(|server| Hop {
        peer: format!("Kafka at {server}"),
        host: host_of(server).to_owned(),
        protection: match config.bus.kafka_tls {
            true => HopProtection::Verified,
            false => HopProtection::Plain,
        },
        remedy: "set bus.kafka_tls",
    }));
    hops.extend(redis(config));
    for role in ProcessRole::ALL {
        let remedy = "use https://, and set internal.tls_root_path";
        let urls = config.services.urls(role).iter();
        hops.extend(urls.map(|url| by_url(&format!("the {role} service"), url, remedy)));
    }
    hops.extend(mail(config));
    let https = "use an https:// address";
    let others = [
        ("the collector of traces", &config.traces.otlp_url, true),
        ("SQS", &config.sqs.queue_url, config.sqs.enabled),
        ("the endpoint of SQS", &config.sqs.endpoint, config.sqs.enabled),
    ];
    for (peer, url, _) in others.into_iter().filter(|(_, _, is_used)| *is_used) {
        hops.extend(url.iter().map(|url| by_url(peer, url, https)));
    }
    hops.extend(
        config.queue.drand_urls.iter().map(|url| by_url("the beacon of draws", url, https)),
    );
    hops
}

fn listeners(config: &Config) -> Vec<Hop> {
    let server = &config.server;
    let hop = |peer: &str, port, identity: Option<IdentityFiles>, remedy| Hop {
        peer: format!("{peer} on {}", SocketAddr::new(server.host, port)),
        host: server.host.to_string(),
        protection: match identity {
            Some(_) => HopProtection::Verified,
            None => HopProtection::Plain,
        },
        remedy,
    };
    let public = "set server.tls_certificate_path, or put a proxy with TLS in front of it";
    let internal = "set internal.tls_certificate_path";
    // Which of the two the main port is depends on the roles, which are not known here.
    let mut hops =
        vec![hop("browsers, where a gateway runs,", server.port, server.identity(), public)];
    let is_distributed = ProcessRole::SERVICES.iter().any(|role| {
        !config.services.urls(*role).is_empty() || engines::is_on_postgres(config, *role)
    });
    let ports = [(server.port, is_distributed), (server.management_port, true)];
    for (port, _) in ports.into_iter().filter(|(port, is_open)| *port != 0 && *is_open) {
        hops.push(hop("our other processes", port, config.internal.identity(), internal));
    }
    hops
}

fn databases(config: &Config) -> Vec<Hop> {
    let on_postgres =
        ProcessRole::SERVICES.into_iter().filter(|role| engines::is_on_postgres(config, *role));
    let mut urls: Vec<(String, &str)> = Vec::new();
    for role in on_postgres {
        let own = config.service_databases.of(role).and_then(|database| database.url.as_ref());
        let shared = config.database.url.as_ref().map(|url| ("database.url".to_owned(), url));
        let used = own.map(|url| (format!("database.{role}.url"), url)).or(shared);
        let used = used.map(|(key, url)| (key, url.expose()));
        urls.extend(used.filter(|used| !urls.contains(used)));
    }
    let hops = |(key, url): (String, &str)| {
        let place = url.split_once("://").map_or(url, |(_, place)| place);
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        let hosts = place.split(['/', '?']).next().unwrap_or(place);
        let hop = |host: &str| Hop {
            peer: format!("PostgreSQL at {} ({key})", host_of(host)),
            host: host_of(host).to_owned(),
            protection: match postgres_protection(url) {
                Ok(PostgresProtection::Verified) => HopProtection::Verified,
                Ok(PostgresProtection::Unverified) => HopProtection::Unverified,
                Ok(PostgresProtection::Plain) | Err(_) => HopProtection::Plain,
            },
            remedy: "add sslmode=verify-full&sslrootcert=FILE to its address",
        };
        hosts.split(',').map(hop).collect::<Vec<Hop>>()
    };
    urls.into_iter().flat_map(hops).collect()
}

fn redis(config: &Config) -> Vec<Hop> {
    let redis = &config.redis;
    let places: Vec<&str> = match (&redis.url, &redis.host) {
        (Some(url), _) => vec![url.expose().split_once("://").map_or("", |(_, rest)| rest)],
        (None, _) if !redis.cluster_nodes.is_empty() => {
            redis.cluster_nodes.iter().map(String::as_str).collect()
        }
        (None, Some(host)) => vec![host],
        (None, None) => Vec::new(),
    };
    let hop = |place: &str| Hop {
        peer: format!("Redis at {}", host_of(place)),
        host: host_of(place).to_owned(),
        protection: match redis.is_encrypted() {
            true => HopProtection::Verified,
            false => HopProtection::Plain,
        },
        remedy: "use rediss://, or set redis.tls",
    };
    places.into_iter().map(hop).collect()
}

fn mail(config: &Config) -> Option<Hop> {
    let mail = &config.mail;
    let host = mail.smtp_host.as_ref().filter(|_| mail.sender == MailSenderKind::Smtp)?;
    Some(Hop {
        peer: format!("the mail server at {host}"),
        host: host.clone(),
        protection: match mail.smtp_security {
            SmtpSecurity::None => HopProtection::Plain,
            SmtpSecurity::StartTls | SmtpSecurity::Tls => HopProtection::Verified,
        },
        remedy: "set mail.smtp_security to starttls or tls",
    })
}

fn by_url(peer: &str, url: &str, remedy: &'static str) -> Hop {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    Hop {
        peer: format!("{peer} at {}", host_of(rest)),
        host: host_of(rest).to_owned(),
        protection: match scheme {
            "https" => HopProtection::Verified,
            _ => HopProtection::Plain,
        },
        remedy,
    }
}

/// The host of what follows the scheme of an address: without login, port, path and query.
fn host_of(place: &str) -> &str {
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let place = place.split(['/', '?']).next().unwrap_or(place);
    match (place.starts_with('['), place.rfind(':')) {
        (true, _) => place.find(']').map_or(place, |end| &place[..=end]),
        (false, Some(colon)) => &place[..colon],
        (false, None) => place,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::config::{self, CommandLineOverrides, LoadMode, LoadOptions};

    fn hops_of(env: &[(&str, &str)]) -> Vec<Hop> {
        let folder = tempfile::tempdir().unwrap();
        let overrides =
            CommandLineOverrides { data_dir: Some(folder.path().into()), ..Default::default() };
        let options = LoadOptions { mode: LoadMode::Inspect, config_file: None, overrides };
        let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        hops(&config::load(options, env).unwrap())
    }

    fn with_protection(hops: &[Hop], protection: HopProtection) -> Vec<&str> {
        let found = hops.iter().filter(|hop| hop.protection == protection);
        found.map(|hop| hop.peer.as_str()).filter(|peer| !peer.contains("beacon")).collect()
    }

    const CLUSTER: [(&str, &str); 8] = [
        ("KAFKA_BOOTSTRAP_SERVERS", "k1:9092,k2:9092"),
        ("SQS_ENABLED", "true"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "key"),
        ("MANAGEMENT_PORT", "3002"),
        ("URR_MAIL_SENDER", "smtp"),
        ("URR_MAIL_FROM", "tickets@urr.example"),
        ("URR_SERVER_HOST", "0.0.0.0"),
    ];

    #[test]
    fn every_connection_without_tls_is_found() {
        let plain = [
            ("URR_DATABASE_URL", "postgres://admin:p@db:5432,standby:5432/urr"),
            ("TICKET_DB_URL", "postgres://tickets/urr?sslmode=disable"),
            ("REDIS_CLUSTER_NODES", "r1:6379,r2:6379"),
            ("AUTH_SERVICE_URL", "http://auth:3001,http://auth-2:3001"),
            ("URR_SERVICES_GATEWAY_URL", "http://gateway:3002"),
            ("SQS_QUEUE_URL", "http://sqs:9324/q.fifo"),
            ("URR_TRACES_OTLP_URL", "http://collector:4318"),
            ("URR_MAIL_SMTP_HOST", "localhost"),
            ("URR_MAIL_SMTP_SECURITY", "none"),
        ];
        let found = hops_of(&[&CLUSTER[..], &plain].concat());
        assert_eq!(
            with_protection(&found, HopProtection::Plain),
            [
                "browsers, where a gateway runs, on 0.0.0.0:3001",
                "our other processes on 0.0.0.0:3001",
                "our other processes on 0.0.0.0:3002",
                "PostgreSQL at db (database.url)",
                "PostgreSQL at standby (database.url)",
                "PostgreSQL at tickets (database.ticket.url)",
                "Kafka at k1:9092",
                "Kafka at k2:9092",
                "Redis at r1",
                "Redis at r2",
                "the gateway service at gateway",
                "the auth service at auth",
                "the auth service at auth-2",
                "the mail server at localhost",
                "the collector of traces at collector",
                "SQS at sqs",
            ]
        );
        let here: Vec<&Hop> = found.iter().filter(|hop| !hop.leaves_the_machine()).collect();
        assert_eq!(here.len(), 1, "{here:?}");
    }

    #[test]
    fn a_connection_with_tls_is_not_called_plain() {
        let encrypted = [
            ("URR_DATABASE_URL", "postgres://db/urr?sslmode=verify-full"),
            ("TICKET_DB_URL", "postgres://tickets/urr?sslmode=require"),
            ("URR_REDIS_URL", "rediss://user:p%40@r1:6379"),
            ("SQS_QUEUE_URL", "https://sqs/q.fifo"),
            ("URR_TRACES_OTLP_URL", "https://collector:4318"),
            ("URR_MAIL_SMTP_HOST", "mail.example"),
            ("AUTH_SERVICE_URL", "https://auth:3001"),
            ("URR_INTERNAL_TLS_CERTIFICATE_PATH", "/own.pem"),
            ("URR_INTERNAL_TLS_KEY_PATH", "/own.key"),
            ("URR_BUS_KAFKA_TLS", "true"),
        ];
        let found = hops_of(&[&CLUSTER[..], &encrypted].concat());
        assert_eq!(
            with_protection(&found, HopProtection::Plain),
            ["browsers, where a gateway runs, on 0.0.0.0:3001"]
        );
        let unverified = with_protection(&found, HopProtection::Unverified);
        assert_eq!(unverified, ["PostgreSQL at tickets (database.ticket.url)"]);
    }

    #[test]
    fn a_host_is_found_in_every_form_of_address() {
        for (place, host) in [
            ("u:p@db:5432/urr?x=y", "db"),
            ("db", "db"),
            ("[::1]:6379", "[::1]"),
            ("h:1,i:2/x", "h:1,i"),
        ] {
            assert_eq!(host_of(place), host);
        }
    }
}
