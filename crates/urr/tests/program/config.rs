//! `urr config`: what is in force, where it came from, and never a secret.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{Installation, free_port};

/// In every secret that a test gives: it must appear nowhere.
const CANARY: &str = "CANARY0123456789";

fn installation_with_secrets() -> Result<Installation> {
    let mut installation = Installation::new()?;
    let nowhere = free_port();
    for (name, value) in [
        ("JWT_SECRET", format!("{CANARY} for the log-ins of users")),
        ("INTERNAL_API_TOKEN", format!("{CANARY} for calls between services")),
        ("QUEUE_ENTRY_TOKEN_SECRET", format!("{CANARY} for the waiting room")),
        ("URR_DATABASE_ROLE_SECRET", format!("{CANARY} for the database roles")),
        ("URR_AUTH_DATA_KEY", format!("{CANARY} for the data of users")),
        ("URR_SEATS_TICKET_SIGNING_KEY", format!("{CANARY} for the tickets of users")),
        ("CATALOG_DB_PASSWORD", format!("{CANARY} for the catalogue")),
        ("URR_DATABASE_URL", format!("postgres://urr:{CANARY}@127.0.0.1:{nowhere}/urr")),
        ("REDIS_PASSWORD", format!("{CANARY} for Redis")),
        ("TOSS_SECRET_KEY", format!("{CANARY} for payments")),
        ("CLOUDFRONT_SECRET", format!("{CANARY} for the edge")),
        ("AWS_SECRET_ACCESS_KEY", format!("{CANARY} for AWS")),
    ] {
        installation.set(name, &value);
    }
    Ok(installation)
}

#[test]
fn settings_are_shown_with_their_origins() -> Result<()> {
    let mut installation = Installation::new()?;
    fs::create_dir(installation.path("data"))?;
    fs::write(installation.path("data/urr.toml"), "[queue]\nthreshold = 77\n")?;
    installation.set("PORT", "4000");
    let shown = installation.run(&["config", "--log-format", "json"])?.succeeded()?.stdout;
    for (key, value, origin) in [
        ("server.host", "127.0.0.1", "default"),
        ("queue.threshold", "77", "./data/urr.toml, line 2"),
        ("server.port", "4000", "environment variable PORT"),
        ("log.format", "json", "command line"),
    ] {
        let line = shown.lines().find(|line| line.split(' ').next() == Some(key));
        let line = line.with_context(|| format!("{key} is not in {shown}"))?;
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.starts_with(&format!("{key} {value} {origin} URR_")), "{line}");
    }

    let json: Value = serde_json::from_str(&installation.run(&["config", "--json"])?.stdout)?;
    let settings = json["settings"].as_array().context("a list")?;
    let port = settings.iter().find(|setting| setting["key"] == "server.port");
    assert_eq!(port.context("the port is listed")?["value"], "4000");
    assert!(!installation.path("data/secrets.toml").exists(), "looking changes nothing");
    Ok(())
}

#[test]
fn the_default_file_is_toml_and_changes_nothing() -> Result<()> {
    let installation = Installation::new()?;
    let defaults = installation.run(&["config", "--defaults"])?.succeeded()?.stdout;
    let table: toml::Table = defaults.parse()?;
    assert!(table.contains_key("server"));
    let before = values(&installation.run(&["config", "--json"])?.succeeded()?.stdout)?;
    assert!(before.len() > 50, "{before:?}");
    fs::write(installation.path("mine.toml"), defaults)?;
    let with_file = installation.run(&["config", "--json", "--config", "mine.toml"])?;
    assert_eq!(values(&with_file.succeeded()?.stdout)?, before);
    Ok(())
}

/// Keys and values, as `urr config --json` prints them.
fn values(json: &str) -> Result<Vec<(Value, Value)>> {
    let json: Value = serde_json::from_str(json)?;
    let settings = json["settings"].as_array().context("a list")?.iter();
    Ok(settings.map(|setting| (setting["key"].clone(), setting["value"].clone())).collect())
}

/// As in `urr config | head -1`.
#[test]
fn a_reader_who_leaves_is_no_failure() -> Result<()> {
    let installation = Installation::new()?;
    for arguments in [vec!["config"], vec!["config", "--defaults"], vec!["doctor"]] {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let output = installation.command(&arguments).stdout(writer).output()?;
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert_eq!(output.stderr, b"", "{arguments:?}");
    }
    Ok(())
}

#[test]
fn secrets_appear_nowhere() -> Result<()> {
    let mut installation = installation_with_secrets()?;
    // Nobody is at the address of the database.
    installation.set("URR_DATABASE_START_WAIT_SECONDS", "0");
    let port = free_port().to_string();
    for arguments in [
        vec!["config"],
        vec!["config", "--json"],
        vec!["doctor"],
        vec!["migrate"],
        vec!["serve", "--roles", "catalog", "--port", &port],
        vec!["up", "--port", &port],
        vec!["dlq", "list"],
    ] {
        let outcome = installation.run(&arguments)?;
        let said = [outcome.stdout, outcome.stderr].concat();
        assert!(!said.is_empty(), "{arguments:?}");
        assert!(!said.contains(CANARY), "{arguments:?}: {said}");
    }
    Ok(())
}

#[test]
fn a_secret_that_is_refused_is_not_repeated() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("JWT_SECRET", "CANARY");
    installation.set("URR_DATABASE_URL", "mysql://urr:CANARY@db/urr");
    installation.set("INTERNAL_API_TOKEN", "CANARY");
    for command in [vec!["config"], vec!["up"], vec!["doctor"]] {
        let outcome = installation.run(&command)?;
        assert!(!outcome.status.success());
        let said = [outcome.stdout, outcome.stderr].concat();
        for name in ["JWT_SECRET", "URR_DATABASE_URL", "INTERNAL_API_TOKEN"] {
            assert!(said.contains(name), "{name} is not in {said}");
        }
        assert!(!said.contains("CANARY"), "{said}");
    }
    Ok(())
}
