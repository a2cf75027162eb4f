//! The configuration as a whole: sources, origins, errors, secrets.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::source::Origin;
use super::*;

/// A folder of one test, removed at its end. It does not exist until something creates it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("urr-config-test-{}-{count}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    fn with_file(text: &str) -> Folder {
        let folder = Folder::new();
        fs::create_dir(&folder.0).unwrap();
        fs::write(folder.0.join("urr.toml"), text).unwrap();
        folder
    }

    fn secrets(&self) -> PathBuf {
        self.0.join("secrets.toml")
    }

    fn load(&self, mode: Mode, env: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        load(self.args(mode), env)
    }

    fn args(&self, mode: Mode) -> LoadArgs {
        let overrides = Overrides { data_dir: Some(self.0.clone()), ..Overrides::default() };
        LoadArgs { mode, config_file: None, overrides }
    }

    /// The problems, with the folder's own path shortened to `DATA`.
    fn problems(&self, mode: Mode, env: &[(&str, &str)]) -> Vec<String> {
        let problems = self.load(mode, env).expect_err("the configuration is wrong").problems;
        let path = self.0.display().to_string();
        problems.iter().map(|problem| problem.replace(&path, "DATA")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.0.exists() {
            fs::remove_dir_all(&self.0).expect("a test's own folder can be removed");
        }
    }
}

/// What is in force with only these variables set.
fn inspect(env: &[(&str, &str)]) -> Config {
    Folder::new().load(Mode::Inspect, env).unwrap()
}

fn problems_of(env: &[(&str, &str)]) -> Vec<String> {
    Folder::new().problems(Mode::Inspect, env)
}

fn setting<'a>(config: &'a Config, key: &str) -> &'a Setting {
    config.describe().iter().find(|setting| setting.key == key).expect("a known key")
}

// Defaults and their file.

#[test]
fn the_defaults_are_those_of_the_mission() {
    let config = inspect(&[]);
    assert_eq!((config.server.host.to_string().as_str(), config.server.port), ("127.0.0.1", 3001));
    assert_eq!((config.seats.hold_ttl_seconds, config.seats.lock_ttl_seconds), (300, 420));
    assert_eq!((config.queue.threshold, config.queue.active_seconds_max), (1000, 1800));
    assert_eq!(config.queue.gathering_seconds, 3600);
    assert_eq!(config.gateway.rate_limit_booking_rpm, 30);
    assert_eq!(config.payments.provider, PaymentProvider::Sandbox);
    assert_eq!(config.auth.bot_check, BotCheckKind::ProofOfWork);
    assert_eq!(config.auth.bot_check_login, BotCheckLogin::AfterFailures);
    assert!(config.database.url.is_none() && config.bus.kafka_bootstrap_servers.is_empty());
    assert!(matches!(config.redis.place(), RedisPlace::InMemory));
}

#[test]
fn every_setting_is_in_the_default_file_and_every_key_of_that_file_is_a_setting() {
    let written = parse_toml(DEFAULT_TOML, Path::new("config/default.toml")).ok().unwrap();
    let written: BTreeSet<&str> = written.keys().map(String::as_str).collect();
    let config = inspect(&[]);
    let read: BTreeSet<&str> = config.describe().iter().map(|s| s.key.as_str()).collect();
    assert_eq!(written, read);
}

#[test]
fn the_default_file_explains_every_key_and_names_its_variables() {
    let config = inspect(&[]);
    let (mut written, mut section, mut names) = (Vec::new(), "", "");
    for line in DEFAULT_TOML.lines() {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = header;
        } else if let Some(rest) = line.strip_prefix("# env: ") {
            names = rest;
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            written.push(format!("{section}.{key}: {}", std::mem::take(&mut names)));
        }
    }
    let line = |setting: &Setting| format!("{}: {}", setting.key, setting.env_names.join(", "));
    let read: Vec<String> = config.describe().iter().map(line).collect();
    assert_eq!(written, read);
    for Setting { key, comment, .. } in config.describe() {
        assert!(comment.ends_with('.'), "{key} has no explanation");
    }
}

#[test]
fn no_environment_variable_sets_two_things() {
    let config = inspect(&[]);
    let mut seen = BTreeSet::new();
    for name in reader::env_names(config.describe()) {
        assert!(seen.insert(name), "{name} is used twice");
    }
}

// Precedence and origins.

#[test]
fn the_command_line_wins_over_the_environment_over_the_file_over_the_default() {
    let folder = Folder::with_file("[server]\nport = 1111\n[queue]\nthreshold = 5\n");
    let config = folder.load(Mode::Inspect, &[]).unwrap();
    assert_eq!((config.server.port, config.queue.threshold), (1111, 5));
    let origin = setting(&config, "queue.threshold").origin.clone();
    assert_eq!(origin, Origin::File { path: folder.0.join("urr.toml"), line: 4 });
    assert_eq!(setting(&config, "seats.hold_ttl_seconds").origin, Origin::Default);

    let config = folder.load(Mode::Inspect, &[("PORT", "2222")]).unwrap();
    assert_eq!(config.server.port, 2222);
    assert_eq!(setting(&config, "server.port").origin, Origin::Environment("PORT".to_owned()));

    let mut args = folder.args(Mode::Inspect);
    args.overrides.port = Some(3333);
    let config = load(args, [("PORT".into(), "2222".into())]).unwrap();
    assert_eq!(config.server.port, 3333);
    assert_eq!(setting(&config, "server.port").origin, Origin::CommandLine);
}

#[test]
fn a_file_given_by_name_is_read_instead_of_the_one_in_the_data_folder() {
    let named = Folder::with_file("[queue]\nthreshold = 7\n[data]\ndir = \"/nowhere/urr\"\n");
    let folder = Folder::with_file("[server]\nport = 1111\n");
    let config_file = Some(named.0.join("urr.toml"));
    let config =
        load(LoadArgs { config_file: config_file.clone(), ..folder.args(Mode::Inspect) }, []);
    let config = config.unwrap();
    assert_eq!((config.queue.threshold, config.server.port), (7, 3001));
    assert_eq!(config.data.dir, folder.0);

    let args = LoadArgs { mode: Mode::Inspect, config_file, overrides: Overrides::default() };
    assert_eq!(load(args, []).unwrap().data.dir, Path::new("/nowhere/urr"));
}

#[test]
fn a_file_given_by_name_must_exist() {
    let folder = Folder::new();
    let config_file = Some(folder.0.join("absent.toml"));
    let error = load(LoadArgs { config_file, ..folder.args(Mode::Inspect) }, []).unwrap_err();
    assert!(error.problems[0].contains("absent.toml: cannot be read: No such file"), "{error}");
    assert_eq!(error.problems.len(), 1);
}

#[test]
fn the_data_folder_cannot_be_named_by_the_file_inside_it() {
    let folder = Folder::with_file("[data]\ndir = \"elsewhere\"\n");
    let problems = folder.problems(Mode::Inspect, &[]);
    assert!(
        problems[0].starts_with("data.dir (DATA/urr.toml, line 2): the file is in that folder")
    );
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let config = inspect(&[("MANAGEMENT_PORT", ""), ("CORS_ALLOWED_ORIGINS", " ")]);
    assert_eq!(config.gateway.cors_allowed_origins, ["http://localhost:3000"]);
    assert_eq!(setting(&config, "server.management_port").origin, Origin::Default);
}

// The variables of the system URR replaces.

/// Variable, key, value to set. `[set]` stands for a secret made by the test.
const VARIABLES: &str = "
    PORT server.port 4001
    MANAGEMENT_PORT server.management_port 4002
    TRACING_SAMPLING_PROBABILITY tracing.sampling_probability 0.5
    ZIPKIN_ENDPOINT tracing.endpoint http://localhost:9411/api/v2/spans
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
    REDIS_POOL_MAX_ACTIVE redis.pool_size 8
    AUTH_SERVICE_URL services.auth_url http://elsewhere:1
    TICKET_SERVICE_URL services.ticket_url http://elsewhere:1
    PAYMENT_SERVICE_URL services.payment_url http://elsewhere:1
    STATS_SERVICE_URL services.stats_url http://elsewhere:1
    QUEUE_SERVICE_URL services.queue_url http://elsewhere:1
    COMMUNITY_SERVICE_URL services.community_url http://elsewhere:1
    CATALOG_SERVICE_URL services.catalog_url http://elsewhere:1
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
    STATS_DB_REPLICA_URL database.stats.replica_url jdbc:postgresql://db:5432/x
    COMMUNITY_DB_URL database.community.url jdbc:postgresql://db:5432/x
    COMMUNITY_DB_USERNAME database.community.username someone
    COMMUNITY_DB_PASSWORD database.community.password [set]
    COMMUNITY_DB_REPLICA_URL database.community.replica_url jdbc:postgresql://db:5432/x
    CATALOG_DB_URL database.catalog.url jdbc:postgresql://db:5432/x
    CATALOG_DB_USERNAME database.catalog.username someone
    CATALOG_DB_PASSWORD database.catalog.password [set]
    CATALOG_DB_REPLICA_URL database.catalog.replica_url jdbc:postgresql://db:5432/x
    KAFKA_BOOTSTRAP_SERVERS bus.kafka_bootstrap_servers localhost:9092
    KAFKA_TOPIC_REPLICATION_FACTOR bus.topic_replication_factor 3
    SEAT_LOCK_TTL_SECONDS seats.lock_ttl_seconds 500
    RESERVATION_CLEANUP_INTERVAL_MS reservations.cleanup_interval_ms 10000
    RESERVATION_RECONCILIATION_INTERVAL_MS reservations.reconciliation_interval_ms 60000
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
    "AUTH_DB_REPLICA_URL",
    "QUEUE_DB_URL",
    "QUEUE_DB_USERNAME",
    "QUEUE_DB_PASSWORD",
    "QUEUE_DB_REPLICA_URL",
    "TICKET_DB_REPLICA_URL",
    "PAYMENT_DB_REPLICA_URL",
    "MAIL_DB_URL",
    "MAIL_DB_USERNAME",
    "MAIL_DB_PASSWORD",
    "MAIL_DB_REPLICA_URL",
    "MAIL_SERVICE_URL",
    "TOSS_SECRET_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
];

/// Notices are not sent without it.
const SQS_KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key")];

#[test]
fn every_variable_of_the_reference_works_under_its_own_name() {
    let value = |name: &str, value: &str| match value {
        "[set]" => format!("{name} is a secret of this test, long enough"),
        value => value.to_owned(),
    };
    let given = variables().map(|(name, _, text)| (name.into(), value(name, text).into()));
    let key = SQS_KEY.map(|(name, value)| (name.into(), value.into()));
    let env: Vec<_> = given.chain(key).collect();
    let config = load(Folder::new().args(Mode::Inspect), env).unwrap();
    for (name, key, value) in variables() {
        let Setting { value_shown, origin, .. } = setting(&config, key);
        assert_eq!((origin, value_shown.as_str()), (&Origin::Environment(name.to_owned()), value));
    }
    assert_eq!(config.server.port, 4001);
    assert_eq!(config.gateway.cors_allowed_origins, ["https://a.kr", "https://b.kr"]);
    assert_eq!(config.auth.cookie_secure, CookieSecure::Always);
    let auth_url = config.database.auth.url.unwrap();
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
fn variables_without_meaning_are_listed_with_the_reason() {
    let config = inspect(&[("SPRING_PROFILES_ACTIVE", "prod"), ("HOME", "/root")]);
    let text = config.render_text();
    assert!(text.contains("set, but without effect:\nSPRING_PROFILES_ACTIVE: there are no Spring"));
    assert!(!text.contains("HOME"));
    assert!(config.render_json().contains("\"name\": \"SPRING_PROFILES_ACTIVE\""));
}

#[test]
fn what_kubernetes_says_of_a_service_is_not_taken_for_a_setting() {
    let env = [("REDIS_PORT", "tcp://10.0.0.7:6379"), ("URR_GATEWAY_SERVICE_HOST", "10.0.0.8")];
    let config = inspect(&env);
    assert_eq!(config.redis.port, 6379);
    assert_eq!(config.ignored.len(), 2);
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

// Errors.

#[test]
fn everything_wrong_is_reported_at_once_with_key_value_origin_and_fix() {
    let folder = Folder::with_file("[queue]\nthreshold = \"many\"\n\n[log]\nformat = [\"json\"]\n");
    let env = [("PORT", "70000"), ("REDIS_POOL_MAX_ACTIVE", "0"), ("COOKIE_SECURE", "perhaps")];
    assert_eq!(
        folder.problems(Mode::Inspect, &env),
        [
            "server.port = \"70000\" (from environment variable PORT): not a port; use a number \
             from 1 to 65535",
            "log.format = \"json\" (from DATA/urr.toml, line 5): not a known choice; use one of \
             text, json",
            "redis.pool_size = \"0\" (from environment variable REDIS_POOL_MAX_ACTIVE): not a \
             number in range; use a number from 1 to 10000",
            "auth.cookie_secure = \"perhaps\" (from environment variable COOKIE_SECURE): not a \
             known choice; use one of auto, true, false",
            "queue.threshold = \"many\" (from DATA/urr.toml, line 2): not a number in range; use a \
             number from 1 to 100000000",
        ]
    );
}

#[test]
fn unknown_keys_are_reported_with_their_line_and_the_nearest_name() {
    let folder = Folder::with_file("[sever]\nport = 1\n\n[queue]\ntreshold = 2\ncolour = 3\n");
    assert_eq!(
        folder.problems(Mode::Inspect, &[("URR_SERVER_PROT", "1"), ("URR_TEST_CHROMIUM", "1")]),
        [
            "queue.colour (DATA/urr.toml, line 6): unknown key; remove it",
            "queue.treshold (DATA/urr.toml, line 5): unknown key; did you mean queue.threshold?",
            "sever.port (DATA/urr.toml, line 2): unknown key; did you mean server.port?",
            "environment variable URR_SERVER_PROT: unknown; did you mean URR_SERVER_PORT?",
        ]
    );
}

#[test]
fn wrong_toml_is_reported_together_with_what_the_environment_has_wrong() {
    let folder = Folder::with_file("[server\nport = 1\n");
    let problems =
        folder.problems(Mode::Distributed, &[("PORT", "x"), ("SEAT_LOCK_TTL_SECONDS", "9")]);
    assert!(problems[0].starts_with("DATA/urr.toml, line 1, column 8: not valid TOML"));
    assert!(problems[1].starts_with("server.port = \"x\""));
    // Neither the missing secrets nor the short lock: the file may have settled both.
    assert_eq!(problems.len(), 2);
}

#[test]
fn a_variable_that_is_not_utf8_is_an_error() {
    let env = [("PORT".into(), OsString::from_vec(vec![0xff]))];
    let error = load(Folder::new().args(Mode::Inspect), env).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the configuration is not usable:\n- environment variable PORT: its value is not UTF-8; \
         set it to plain text"
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused_with_the_reason() {
    for (env, problem) in [
        (
            vec![("SEAT_LOCK_TTL_SECONDS", "300")],
            "seats.lock_ttl_seconds = \"300\" (from environment variable SEAT_LOCK_TTL_SECONDS) and \
             seats.hold_ttl_seconds = \"300\" (the default): a lock that ends",
        ),
        (vec![("QUEUE_SEEN_TTL_SECONDS", "179")], "queue.seen_ttl_seconds = \"179\""),
        (vec![("QUEUE_STALE_CLEANUP_INTERVAL_MS", "60001")], "queue.stale_cleanup_interval_ms"),
        (vec![("QUEUE_ACTIVE_TTL_SECONDS", "29")], "queue.active_ttl_seconds = \"29\""),
        (vec![("QUEUE_ACTIVE_TTL_SECONDS", "1801")], "queue.active_seconds_max = \"1800\""),
        (vec![("JWT_EXPIRATION_SECONDS", "604800")], "auth.jwt_refresh_expiration_seconds"),
        (vec![("MANAGEMENT_PORT", "3001")], "server.management_port = \"3001\""),
        (vec![("URR_REDIS_URL", "redis://a"), ("REDIS_HOST", "b")], "redis.url = \"redis://a\""),
        (vec![("URR_REDIS_URL", "redis://a"), ("REDIS_CLUSTER_NODES", "b:1")], "redis.url"),
        ([&SQS_KEY[..], &[("SQS_ENABLED", "true")]].concat(), "sqs.enabled = \"true\""),
        (
            vec![("SQS_ENABLED", "true"), ("SQS_QUEUE_URL", "http://elsewhere:1")],
            "sqs.enabled = \"true\"",
        ),
        (vec![("URR_PAYMENTS_PROVIDER", "toss"), ("TOSS_CLIENT_KEY", "k")], "payments.provider"),
        (
            vec![("URR_MAIL_SENDER", "smtp"), ("URR_MAIL_FROM", "tickets@urr.example")],
            "mail.sender = \"smtp\"",
        ),
        (
            vec![("URR_MAIL_SENDER", "smtp"), ("URR_MAIL_SMTP_HOST", "post.example")],
            "mail.sender = \"smtp\"",
        ),
        (vec![("URR_MAIL_SMTP_USERNAME", "urr")], "mail.smtp_username = \"urr\""),
        (
            vec![("URR_MAIL_SMTP_SECURITY", "none"), ("URR_MAIL_SMTP_HOST", "post.example")],
            "mail.smtp_security = \"none\"",
        ),
        (vec![("URR_AUTH_BOT_CHECK", "turnstile")], "auth.bot_check = \"turnstile\""),
        (vec![("URR_AUTH_KAKAO_CLIENT_SECRET", "hush")], "auth.public_url = \"\""),
        (vec![("URR_AUTH_IDENTITY_PROVIDER", "portone")], "auth.identity_provider = \"portone\""),
    ] {
        let problems = problems_of(&env);
        assert!(problems.len() == 1 && problems[0].starts_with(problem), "{problems:?}");
    }
    inspect(&[("SEAT_LOCK_TTL_SECONDS", "301"), ("QUEUE_ACTIVE_TTL_SECONDS", "1800")]);
}

#[test]
fn a_value_that_cannot_be_read_is_not_also_blamed_for_contradicting_another() {
    let env = [("SEAT_LOCK_TTL_SECONDS", "long"), ("URR_SEATS_HOLD_TTL_SECONDS", "1000")];
    let problems = problems_of(&env);
    assert!(problems.len() == 1 && problems[0].contains("\"long\""), "{problems:?}");
}

// Secrets.

const SECRET: &str = "hunter2-hunter2-hunter2-hunter2-hunter2";

#[test]
fn d_18_a_short_secret_is_refused_and_not_repeated() {
    let env = [("JWT_SECRET", "hunter2"), ("QUEUE_ENTRY_TOKEN_SECRET", "hunter3")];
    let problems = problems_of(&env);
    assert_eq!(problems.len(), 2);
    assert!(problems[0].starts_with(
        "auth.jwt_secret = \"[set]\" (from environment variable JWT_SECRET): not long enough; use \
         Base64 of at least 32 bytes"
    ));
    assert!(problems[1].contains("at least 32 bytes"));
    assert!(!problems.concat().contains("hunter"), "{problems:?}");
}

#[test]
fn d_7_one_secret_for_two_purposes_is_refused() {
    let problems = problems_of(&[("JWT_SECRET", SECRET), ("QUEUE_ENTRY_TOKEN_SECRET", SECRET)]);
    assert!(problems[0].ends_with("the same secret for two purposes; give each its own"));
    assert!(problems[0].contains("JWT_SECRET") && problems[0].contains("QUEUE_ENTRY_TOKEN_SECRET"));
    // Databases may share a password: it is not ours to choose.
    inspect(&[("AUTH_DB_PASSWORD", SECRET), ("TICKET_DB_PASSWORD", SECRET)]);
}

#[test]
fn secrets_are_never_shown() {
    let config = inspect(&[
        ("JWT_SECRET", SECRET),
        ("REDIS_PASSWORD", "hunter2"),
        ("URR_DATABASE_URL", "postgres://admin:hunter2@db/urr"),
        ("AUTH_DB_URL", "jdbc:postgresql://db/auth?user=a&password=hunter2"),
        ("TOSS_SECRET_KEY", "hunter2-toss"),
    ]);
    for shown in [format!("{config:?}"), config.render_text(), config.render_json()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    assert_eq!(setting(&config, "auth.jwt_secret").value_shown, "[set]");
    assert_eq!(setting(&config, "internal.token").value_shown, "[empty]");
    assert_eq!(setting(&config, "database.url").value_shown, "postgres://[hidden]@db/urr");
    let problems = problems_of(&[
        ("URR_DATABASE_URL", "mysql://u:hunter2@db"),
        ("AUTH_SERVICE_URL", "u:hunter2@a"),
    ]);
    assert!(problems.len() == 2 && !problems.concat().contains("hunter2"), "{problems:?}");
}

#[test]
fn the_first_start_makes_the_missing_secrets_and_later_starts_keep_them() {
    let folder = Folder::new();
    let first = folder.load(Mode::Embedded, &[("JWT_SECRET", SECRET)]).unwrap();
    let second = folder.load(Mode::Embedded, &[("JWT_SECRET", SECRET)]).unwrap();
    assert!(first.internal.token.matches(second.internal.token.expose()));
    assert!(first.auth.data_key.matches(second.auth.data_key.expose()));
    assert!(!first.internal.token.matches(first.auth.data_key.expose()));
    assert_eq!(first.internal.token.expose().len(), 64);
    assert_eq!(setting(&second, "internal.token").value_shown, "[generated]");
    assert_eq!(setting(&second, "internal.token").origin, Origin::Generated(folder.secrets()));
    assert!(!fs::read_to_string(folder.secrets()).unwrap().contains("jwt_secret"));

    // Without the variable the one secret that is still missing is added, the others stay.
    let third = folder.load(Mode::Embedded, &[]).unwrap();
    assert!(third.internal.token.matches(first.internal.token.expose()));
    assert_eq!(third.auth.jwt_key().len(), 48);
}

#[test]
fn only_the_owner_can_read_what_was_made() {
    let folder = Folder::new();
    folder.load(Mode::Embedded, &[]).unwrap();
    let rights = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((rights(&folder.0), rights(&folder.secrets())), (0o700, 0o600));
    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["secrets.toml"]);

    fs::set_permissions(folder.secrets(), fs::Permissions::from_mode(0o640)).unwrap();
    let problems = folder.problems(Mode::Embedded, &[]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains("run `chmod 600 DATA/secrets.toml`"), "{problems:?}");
}

#[test]
fn nothing_is_written_when_the_configuration_is_wrong_or_only_looked_at() {
    let folder = Folder::new();
    folder.problems(Mode::Embedded, &[("PORT", "x")]);
    folder.load(Mode::Inspect, &[]).unwrap();
    assert!(!folder.0.exists());
}

#[test]
fn an_empty_secret_in_the_file_does_not_hide_the_one_that_was_made() {
    let folder = Folder::with_file("[internal]\ntoken = \"\"\n");
    let first = folder.load(Mode::Embedded, &[]).unwrap();
    let second = folder.load(Mode::Embedded, &[]).unwrap();
    assert_eq!(first.internal.token.expose().len(), 64);
    assert!(first.internal.token.matches(second.internal.token.expose()));
}

#[test]
fn secrets_of_a_newer_version_are_kept() {
    let folder = Folder::new();
    folder.load(Mode::Embedded, &[("JWT_SECRET", SECRET)]).unwrap();
    let text = fs::read_to_string(folder.secrets()).unwrap() + "future.secret = \"kept\"";
    fs::write(folder.secrets(), text).unwrap();
    folder.load(Mode::Embedded, &[]).unwrap();
    let text = fs::read_to_string(folder.secrets()).unwrap();
    assert!(text.contains("future.secret = \"kept\"\n") && text.contains("auth.jwt_secret = "));
}

#[test]
fn first_starts_at_the_same_time_agree_on_the_secrets() {
    let folder = Folder::new();
    let start = || folder.load(Mode::Embedded, &[]).unwrap().internal.token;
    let tokens: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(tokens.iter().all(|token| token.matches(tokens[0].expose())));
}

#[test]
fn distributed_processes_refuse_to_start_without_secrets_and_name_them_all() {
    let folder = Folder::new();
    folder.load(Mode::Embedded, &[]).unwrap();
    let problems = folder.problems(Mode::Distributed, &[("JWT_SECRET", SECRET)]);
    let keys: Vec<_> = problems.iter().map(|p| p.split(':').next().unwrap()).collect();
    assert_eq!(
        keys,
        [
            "database.role_secret",
            "internal.token",
            "auth.data_key",
            "gateway.entry_token_secret",
            "seats.ticket_signing_key"
        ]
    );
    assert!(problems[1].contains("set URR_INTERNAL_TOKEN or INTERNAL_API_TOKEN"), "{problems:?}");
}

#[test]
fn distributed_processes_start_with_secrets_from_the_environment() {
    let names = [
        "INTERNAL_API_TOKEN",
        "QUEUE_ENTRY_TOKEN_SECRET",
        "JWT_SECRET",
        "URR_AUTH_DATA_KEY",
        "URR_DATABASE_ROLE_SECRET",
        "URR_SEATS_TICKET_SIGNING_KEY",
    ];
    let secrets = names.map(|name| (OsString::from(name), format!("{name}-{SECRET}").into()));
    let folder = Folder::new();
    let config = load(folder.args(Mode::Distributed), secrets).unwrap();
    assert!(config.internal.token.expose().starts_with("INTERNAL_API_TOKEN-"));
    assert!(!folder.0.exists());
}
