//! What is said about wrong and contradicting settings.

use std::os::unix::ffi::OsStringExt;

use super::super::*;
use super::{Folder, SQS_KEY, inspect, problems_of};
use crate::role::ProcessRole;

#[test]
fn everything_wrong_is_reported_at_once_with_key_value_origin_and_fix() {
    let folder = Folder::with_file("[queue]\nthreshold = \"many\"\n\n[log]\nformat = [\"json\"]\n");
    let env = [("PORT", "70000"), ("REDIS_PORT", "0"), ("COOKIE_SECURE", "perhaps")];
    assert_eq!(
        folder.problems(LoadMode::Inspect, &env),
        [
            "server.port = \"70000\" (from environment variable PORT): not a port; use a number \
             from 1 to 65535",
            "log.format = \"json\" (from DATA/urr.toml, line 5): not a known choice; use one of \
             text, json",
            "redis.port = \"0\" (from environment variable REDIS_PORT): not a port; use a number from \
             1 to 65535",
            "auth.cookie_secure = \"perhaps\" (from environment variable COOKIE_SECURE): not a \
             known choice; use one of auto, true, false",
            "queue.threshold = \"many\" (from DATA/urr.toml, line 2): not a number in range; use a \
             number from 1 to 100000000",
        ]
    );
}

#[test]
fn a_service_has_one_address_or_several_and_a_wrong_one_is_reported_with_its_key() {
    let config = inspect(&[("TICKET_SERVICE_URL", "http://a:1, https://b:2/")]);
    assert_eq!(config.services.urls(ProcessRole::Ticket), ["http://a:1", "https://b:2"]);
    assert_eq!(config.services.urls(ProcessRole::Auth), [] as [String; 0]);
    for wrong in ["http://a:1,b:2", "http://a:1;http://b:2", "http://a:1,http://b:2/api"] {
        let problems = problems_of(&[("TICKET_SERVICE_URL", wrong)]);
        let expected = format!("services.ticket_url = {wrong:?} (from environment variable");
        assert!(problems.len() == 1 && problems[0].starts_with(&expected), "{problems:?}");
    }
}

#[test]
fn unknown_keys_are_reported_with_their_line_and_the_nearest_name() {
    let folder = Folder::with_file("[sever]\nport = 1\n\n[queue]\ntreshold = 2\ncolour = 3\n");
    assert_eq!(
        folder.problems(LoadMode::Inspect, &[("URR_SERVER_PROT", "1"), ("URR_TEST_CHROMIUM", "1")]),
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
    let problems = folder.problems(
        LoadMode::Distributed(ProcessRole::all()),
        &[("PORT", "x"), ("SEAT_LOCK_TTL_SECONDS", "9")],
    );
    assert!(problems[0].starts_with("DATA/urr.toml, line 1, column 8: not valid TOML"));
    assert!(problems[1].starts_with("server.port = \"x\""));
    // Neither the missing secrets nor the short lock: the file may have settled both.
    assert_eq!(problems.len(), 2);
}

#[test]
fn a_variable_that_is_not_utf8_is_an_error() {
    let env = [("PORT".into(), OsString::from_vec(vec![0xff]))];
    let error = load(Folder::new().args(LoadMode::Inspect), env).unwrap_err();
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
        (vec![("URR_ALERTS_EXCLUSIVE_SECONDS", "179")], "alerts.exclusive_seconds = \"179\""),
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
            vec![
                ("URR_PAYMENTS_PROVIDER", "toss"),
                ("TOSS_CLIENT_KEY", "test_ck"),
                ("TOSS_SECRET_KEY", " test_sk_1"),
            ],
            "payments.toss_secret_key",
        ),
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
