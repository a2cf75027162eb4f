//! Environment variables, ours and those of the system that URR replaces.

use super::super::source::SettingSource;
use super::super::*;
use super::{Folder, SQS_KEY, inspect, problems_of, setting};
use crate::role::ProcessRole;

/// Variable, key, value to set. `[set]` stands for a secret made by the test.
const VARIABLES: &str = "
    PORT server.port 4001
    MANAGEMENT_PORT server.management_port 4002
    JWT_SECRET auth.jwt_secret [set]
    JWT_EXPIRATION_SECONDS auth.jwt_expiration_seconds 900
    JWT_REFRESH_EXPIRATION_SECONDS auth.jwt_refresh_expiration_seconds 86400
    COOKIE_SECURE auth.cookie_secure true
    GOOGLE_CLIENT_ID auth.google_client_id google
    INTERNAL_API_TOKEN internal.token [set]
    QUEUE_ENTRY_TOKEN_SECRET gateway.entry_token_secret [set]
    QUEUE_ENTRY_TOKEN_TTL_SECONDS queue.entry_token_ttl_seconds 300
    CLOUDFRONT_SECRET gateway.trusted_edge_secret [set]
    CORS_ALLOWED_ORIGINS gateway.cors_allowed_origins https://a.kr, https://b.kr
    RATE_LIMIT_AUTH_RPM gateway.rate_limit_auth_rpm 61
    RATE_LIMIT_QUEUE_RPM gateway.rate_limit_queue_rpm 121
    RATE_LIMIT_BOOKING_RPM gateway.rate_limit_booking_rpm 31
    RATE_LIMIT_GENERAL_RPM gateway.rate_limit_general_rpm 3001
    REDIS_HOST redis.host cache
    REDIS_PORT redis.port 6380
    REDIS_PASSWORD redis.password [set]
    REDIS_CLUSTER_NODES redis.cluster_nodes a:6379,b:6379
    AUTH_SERVICE_URL services.auth_url http://elsewhere:1
    TICKET_SERVICE_URL services.ticket_url http://elsewhere:1
    PAYMENT_SERVICE_URL services.payment_url http://elsewhere:1
    STATS_SERVICE_URL services.stats_url http://elsewhere:1
    QUEUE_SERVICE_URL services.queue_url http://elsewhere:1
    CATALOG_SERVICE_URL services.catalog_url http://elsewhere:1
    COMMUNITY_SERVICE_URL services.community_url http://elsewhere:1
    AUTH_DB_URL database.auth.url jdbc:postgresql://db:5432/x
    AUTH_DB_USERNAME database.auth.username someone
    AUTH_DB_PASSWORD database.auth.password [set]
    TICKET_DB_URL database.ticket.url jdbc:postgresql://db:5432/x
    TICKET_DB_USERNAME database.ticket.username someone
    TICKET_DB_PASSWORD database.ticket.password [set]
    PAYMENT_DB_URL database.payment.url jdbc:postgresql://db:5432/x
    PAYMENT_DB_USERNAME database.payment.username someone
    PAYMENT_DB_PASSWORD database.payment.password [set]
    STATS_DB_URL database.stats.url jdbc:postgresql://db:5432/x
    STATS_DB_USERNAME database.stats.username someone
    STATS_DB_PASSWORD database.stats.password [set]
    COMMUNITY_DB_URL database.community.url jdbc:postgresql://db:5432/x
    COMMUNITY_DB_USERNAME database.community.username someone
    COMMUNITY_DB_PASSWORD database.community.password [set]
    CATALOG_DB_URL database.catalog.url jdbc:postgresql://db:5432/x
    CATALOG_DB_USERNAME database.catalog.username someone
    CATALOG_DB_PASSWORD database.catalog.password [set]
    KAFKA_BOOTSTRAP_SERVERS bus.kafka_bootstrap_servers localhost:9092
    KAFKA_TOPIC_REPLICATION_FACTOR bus.topic_replication_factor 3
    SEAT_LOCK_TTL_SECONDS seats.lock_ttl_seconds 500
    RESERVATION_CLEANUP_INTERVAL_MS reservations.cleanup_interval_ms 10000
    RESERVATION_RECONCILIATION_INTERVAL_MS payments.reconciliation_interval_ms 60000
    EVENT_STATUS_INTERVAL_MS catalog.event_status_interval_ms 30000
    QUEUE_THRESHOLD queue.threshold 2
    QUEUE_ACTIVE_TTL_SECONDS queue.active_ttl_seconds 700
    QUEUE_SEEN_TTL_SECONDS queue.seen_ttl_seconds 240
    QUEUE_ADMISSION_INTERVAL_MS queue.admission_interval_ms 500
    QUEUE_ADMISSION_BATCH_SIZE queue.admission_batch_size 50
    QUEUE_STALE_CLEANUP_INTERVAL_MS queue.stale_cleanup_interval_ms 5000
    SQS_ENABLED sqs.enabled true
    SQS_QUEUE_URL sqs.queue_url http://elsewhere:1
    AWS_SQS_ENDPOINT sqs.endpoint http://elsewhere:1
    AWS_REGION sqs.region eu-west-1
    TOSS_CLIENT_KEY payments.toss_client_key test_ck_1
    STATS_DEDUP_CLEANUP_INTERVAL_MS bus.inbox_cleanup_interval_ms 60000
";

fn variables() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    VARIABLES.trim().lines().map(|line| {
        let mut words = line.trim().splitn(3, ' ');
        let mut word = || words.next().expect("a line has three words");
        (word(), word(), word())
    })
}

/// Names of ours, or of AWS and Toss, that the system URR replaces did not have.
const ADDED_ALIASES: &[&str] = &[
    "QUEUE_DB_URL",
    "QUEUE_DB_USERNAME",
    "QUEUE_DB_PASSWORD",
    "MAIL_DB_URL",
    "MAIL_DB_USERNAME",
    "MAIL_DB_PASSWORD",
    "MAIL_SERVICE_URL",
    "TOSS_SECRET_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
];

#[test]
fn every_variable_of_the_reference_works_under_its_own_name() {
    let value = |name: &str, value: &str| match value {
        "[set]" => format!("{name} is a secret of this test, long enough"),
        value => value.to_owned(),
    };
    let given = variables().map(|(name, _, text)| (name.into(), value(name, text).into()));
    let key = SQS_KEY.map(|(name, value)| (name.into(), value.into()));
    let env: Vec<_> = given.chain(key).collect();
    let config = load(Folder::new().args(LoadMode::Inspect), env).unwrap();
    for (name, key, value) in variables() {
        let Setting { display_value, source, .. } = setting(&config, key);
        assert_eq!(
            (source, display_value.as_str()),
            (&SettingSource::Environment(name.to_owned()), value)
        );
    }
    assert_eq!(config.server.port, 4001);
    assert_eq!(config.gateway.cors_allowed_origins, ["https://a.kr", "https://b.kr"]);
    assert_eq!(config.auth.cookie_secure, urr_auth::CookieSecurity::Always);
    let auth_url =
        config.service_databases.of(ProcessRole::Auth).and_then(|auth| auth.url.clone()).unwrap();
    assert_eq!(auth_url.expose(), "postgresql://db:5432/x");
}

#[test]
fn every_alias_is_one_of_the_reference_or_listed_as_added() {
    let config = inspect(&[]);
    let known: Vec<&str> = variables().map(|(name, ..)| name).collect();
    for name in reader::env_names(config.describe()).filter(|name| !name.starts_with("URR_")) {
        assert!(known.contains(&name) || ADDED_ALIASES.contains(&name), "{name} has no test");
    }
}

#[test]
fn variables_of_other_programs_are_nobody_s_business() {
    let config = inspect(&[("SPRING_PROFILES_ACTIVE", "prod"), ("HOME", "/root")]);
    assert!(!config.render_text().contains("SPRING") && !config.render_text().contains("/root"));
}

#[test]
fn what_kubernetes_says_of_a_service_is_not_taken_for_a_setting() {
    let env = [("REDIS_PORT", "tcp://10.0.0.7:6379"), ("URR_GATEWAY_SERVICE_HOST", "10.0.0.8")];
    let config = inspect(&env);
    assert_eq!(config.redis.port, 6379);
}

#[test]
fn an_alias_and_our_own_name_may_agree_but_not_differ() {
    assert_eq!(inspect(&[("PORT", "4000"), ("URR_SERVER_PORT", "4000")]).server.port, 4000);
    assert_eq!(
        problems_of(&[("PORT", "4000"), ("URR_SERVER_PORT", "4001")]),
        ["server.port: environment variables URR_SERVER_PORT and PORT both set it, differently; \
          keep one"]
    );
}

#[test]
fn a_file_holds_the_value_of_a_variable() {
    let folder = Folder::with_file("");
    let file = folder.0.join("token");
    let path = file.to_str().unwrap();
    fs::write(&file, "  a secret of this test, for the calls\n").unwrap();
    let config = inspect(&[("INTERNAL_API_TOKEN_FILE", path)]);
    assert!(config.internal.token.matches("a secret of this test, for the calls"));
    let source = &setting(&config, "internal.token").source;
    assert_eq!(*source, SettingSource::Environment("INTERNAL_API_TOKEN".to_owned()));
    assert_eq!(inspect(&[("URR_INTERNAL_TOKEN_FILE", "")]).internal.token.expose(), "");
}

#[test]
fn a_file_that_gives_no_value_is_named_and_its_content_is_not() {
    let folder = Folder::with_file("");
    let file = folder.0.join("token");
    let path = file.to_str().unwrap();
    let wrong = |env: &[(&str, &str)], part: &str| {
        let problems = problems_of(env).concat();
        assert!(problems.contains(part), "{part:?} is not in {problems}");
        assert!(!problems.contains("hunter2"), "{problems}");
    };
    wrong(&[("URR_INTERNAL_TOKEN_FILE", path)], "token cannot be read");
    fs::write(&file, "\n").unwrap();
    wrong(&[("URR_INTERNAL_TOKEN_FILE", path)], "token is empty");
    fs::write(&file, "hunter2".repeat(10_000)).unwrap();
    wrong(&[("URR_INTERNAL_TOKEN_FILE", path)], "token is too long");
    fs::write(&file, "hunter2").unwrap();
    wrong(&[("URR_INTERNAL_TOKEN_FILE", path)], "internal.token");
    let both = [("URR_INTERNAL_TOKEN_FILE", path), ("URR_INTERNAL_TOKEN", "hunter2")];
    wrong(&both, "keep one of them");
    wrong(&[("URR_INTERNAL_TOKNE_FILE", path)], "URR_INTERNAL_TOKNE_FILE: unknown");
}
