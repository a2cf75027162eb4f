//! Variables of the system URR replaces that have no meaning here, and why.

use super::source::Environment;

/// A variable that is set and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredVariable {
    pub name: String,
    pub reason: &'static str,
}

const SPRING: &str = "there are no Spring profiles; what to run on is chosen by database.url, \
                      redis.* and bus.kafka_bootstrap_servers";
const VWR: &str = "the outer waiting room on AWS is part of the queue service here";
const WEB: &str = "the pages are served by the gateway and call the address they came from";
const SPOTIFY: &str = "artists are not imported from Spotify";
const IDLE: &str = "the Redis pool has one size, redis.pool_size";
const K6: &str = "load is made by `urr rush`, which takes arguments";
const SERVICE_LINK: &str =
    "Kubernetes made it for a Service; `enableServiceLinks: false` stops that";

const IGNORED: &[(&str, &str)] = &[
    ("SPRING_PROFILES_ACTIVE", SPRING),
    ("REDIS_POOL_MAX_IDLE", IDLE),
    ("REDIS_POOL_MIN_IDLE", IDLE),
    ("AWS_S3_BUCKET", "posters are kept with the catalogue's own data"),
    ("SPOTIFY_CLIENT_ID", SPOTIFY),
    ("SPOTIFY_CLIENT_SECRET", SPOTIFY),
    ("VWR_DYNAMODB_ENABLED", VWR),
    ("VWR_DYNAMODB_COUNTERS_TABLE", VWR),
    ("VWR_DYNAMODB_ENDPOINT", VWR),
    ("VWR_TOKEN_SECRET", VWR),
    ("VWR_CONFIG_BUCKET", VWR),
    ("TABLE_COUNTERS", VWR),
    ("TABLE_POSITIONS", VWR),
    ("BATCH_SIZE", VWR),
    ("CORS_ORIGIN", "it belonged to a lambda; use CORS_ALLOWED_ORIGINS"),
    ("NEXT_PUBLIC_API_URL", WEB),
    ("INTERNAL_API_URL", WEB),
    ("NEXT_PUBLIC_GOOGLE_CLIENT_ID", "the pages ask the server; use GOOGLE_CLIENT_ID"),
    ("BASE_URL", K6),
    ("TEST_EMAIL", K6),
    ("TEST_PASSWORD", K6),
    ("EVENT_ID", K6),
];

/// The variables that are set and have no effect.
pub fn ignored_variables(environment: &Environment) -> Vec<IgnoredVariable> {
    let reason = |name: &str| {
        let listed = IGNORED.iter().find(|(ignored, _)| *ignored == name);
        let ours = name.starts_with("URR_") || name.starts_with("REDIS_");
        let linked = ours && environment.is_service_link(name);
        listed.map(|(_, reason)| *reason).or(linked.then_some(SERVICE_LINK))
    };
    environment
        .names()
        .filter_map(|name| Some(IgnoredVariable { name: name.to_owned(), reason: reason(name)? }))
        .collect()
}

/// Whether Kubernetes sets such a variable to tell every container of a Service.
///
/// A Service called `redis` makes `REDIS_PORT=tcp://10.0.0.7:6379`, and one called `urr-gateway`
/// makes half a dozen names that begin with `URR_`.
pub fn is_service_link(name: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let describes_port = name
        .split_once("_PORT_")
        .is_some_and(|(_, rest)| rest.starts_with(|first: char| first.is_ascii_digit()));
    is_address
        || describes_port
        || name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_kubernetes_makes_are_recognised() {
        for (name, value) in [
            ("REDIS_PORT", "tcp://10.0.0.7:6379"),
            ("URR_GATEWAY_SERVICE_HOST", "10.0.0.8"),
            ("URR_GATEWAY_SERVICE_PORT", "3001"),
            ("URR_GATEWAY_SERVICE_PORT_HTTP", "3001"),
            ("URR_GATEWAY_PORT_3001_TCP_ADDR", "10.0.0.8"),
        ] {
            assert!(is_service_link(name, value), "{name}");
        }
        for (name, value) in [
            ("REDIS_PORT", "6379"),
            ("URR_SERVER_MANAGEMENT_PORT", "3002"),
            ("URR_SERVICES_AUTH_URL", "http://auth"),
        ] {
            assert!(!is_service_link(name, value), "{name}");
        }
    }
}
