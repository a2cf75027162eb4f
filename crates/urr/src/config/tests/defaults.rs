//! The defaults, and the file that explains them.

use std::collections::BTreeSet;

use super::super::*;
use super::inspect;

#[test]
fn the_defaults_are_those_of_the_mission() {
    let config = inspect(&[]);
    assert_eq!((config.server.host.to_string().as_str(), config.server.port), ("127.0.0.1", 3001));
    assert_eq!((config.seats.hold_ttl_seconds, config.seats.lock_ttl_seconds), (300, 420));
    assert_eq!((config.queue.threshold, config.queue.active_seconds_max), (1000, 1800));
    assert_eq!(config.queue.gathering_seconds, 3600);
    assert_eq!(config.gateway.rate_limit_booking_rpm, 30);
    assert_eq!(config.payments.provider, PaymentProviderKind::Sandbox);
    assert_eq!(config.auth.bot_check, BotCheckKind::ProofOfWork);
    assert_eq!(config.auth.bot_check_login, urr_auth::LoginCheck::AfterFailures(3));
    assert!(config.database.url.is_none() && config.bus.kafka_bootstrap_servers.is_empty());
    assert!(config.redis.place().is_none());
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
