//! `urr admin` and `urr solve`: accounts from a terminal.

use anyhow::{Result, ensure};
use axum::http::HeaderMap;

use crate::http_client::{Reply, request};
use crate::process::{Installation, free_port};

const FIRST_KEY: &str = "the first key for personal data, long enough";
const SECOND_KEY: &str = "the second key for personal data, long enough";
pub const REGISTRATION: &str = r#"{"email":"fan@example.com","password":"a long enough secret",
    "name":"Buyer","terms":[{"type":"SERVICE","agreed":true,"version":"2026-11"},
                          {"type":"PRIVACY","agreed":true,"version":"2026-11"}]}"#;
pub const LOGIN: &str = r#"{"email":"fan@example.com","password":"a long enough secret"}"#;

fn post(port: u16, path: &str, body: &str, proof: &str) -> Result<Reply> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse()?);
    headers.insert("x-proof-of-work", proof.parse()?);
    request(port, "POST", path, &headers, body)
}

/// Opens an account as someone with a terminal does.
pub fn register(installation: &Installation, port: u16) -> Result<Reply> {
    let url = format!("http://127.0.0.1:{port}");
    let solved = installation.run(&["solve", "register", "--url", &url])?.succeeded()?;
    post(port, "/api/auth/register", REGISTRATION, solved.stdout.trim())
}

fn log_in(port: u16) -> Result<u16> {
    Ok(post(port, "/api/auth/login", LOGIN, "")?.status)
}

/// The program with default settings.
#[test]
fn whoever_did_the_work_registers_and_logs_in_without_more() -> Result<()> {
    let mut installation = Installation::new()?;
    let running = installation.up(&[])?;
    let refused = post(running.port, "/api/auth/register", REGISTRATION, "")?;
    assert_eq!((refused.status, &refused.json()?["code"]), (403, &"PROOF_REQUIRED".into()));
    assert_eq!(refused.json()?["task"]["difficulty"], 16);
    let registered = register(&installation, running.port)?;
    assert_eq!(registered.status, 201, "{registered:?}");
    assert_eq!(log_in(running.port)?, 200);
    // A proof for another purpose is worth nothing.
    let (port, url) = (running.port, format!("http://127.0.0.1:{}", running.port));
    // The command finds the program that runs on the data folder, whatever its port is.
    let solved = installation.run(&["solve", "login"])?.succeeded()?.stdout;
    let refused = post(port, "/api/auth/register", REGISTRATION, solved.trim())?;
    assert_eq!(refused.status, 403, "{refused:?}");
    running.stop("TERM")?.succeeded()?;
    let nobody = installation.run(&["solve", "register", "--url", &url])?;
    nobody.refused_with(&[&url, "does not answer"]);
    // Control: without a running program it asks at the configured port.
    let port = free_port().to_string();
    installation.set("PORT", &port);
    installation.run(&["solve", "register"])?.refused_with(&[&port, "does not answer"]);
    Ok(())
}

#[test]
fn an_installation_that_asks_for_no_work_gets_none() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("URR_AUTH_BOT_CHECK", "off");
    let running = installation.up(&[])?;
    let url = format!("http://127.0.0.1:{}", running.port);
    let solved = installation.run(&["solve", "register", "--url", &url])?.succeeded()?;
    assert_eq!(solved.stdout, "\n");
    assert_eq!(post(running.port, "/api/auth/register", REGISTRATION, "")?.status, 201);
    Ok(())
}

#[test]
fn the_key_of_personal_data_is_changed_while_everything_goes_on() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("URR_AUTH_DATA_KEY", FIRST_KEY);
    installation.set("URR_AUTH_BOT_CHECK_BITS", "4");
    let running = installation.up(&[])?;
    assert_eq!(register(&installation, running.port)?.status, 201);
    running.stop("TERM")?.succeeded()?;

    installation.set("URR_AUTH_DATA_KEY", SECOND_KEY);
    installation.set("URR_AUTH_DATA_KEY_VERSION", "2");
    installation.set("URR_AUTH_OTHER_DATA_KEY", FIRST_KEY);
    installation.set("URR_AUTH_OTHER_DATA_KEY_VERSION", "1");
    let running = installation.up(&[])?;
    assert_eq!(log_in(running.port)?, 200, "by the other key");
    let rotated = installation.run(&["admin", "rotate-keys"])?.succeeded()?.stdout;
    assert_eq!(rotated, "1 accounts sealed anew, 0 to go\n0 guests sealed anew, 0 to go\n");
    assert_eq!(log_in(running.port)?, 200, "beside the running system");
    running.stop("TERM")?.succeeded()?;

    installation.set("URR_AUTH_OTHER_DATA_KEY", "");
    let running = installation.up(&[])?;
    assert_eq!(log_in(running.port)?, 200, "by the new key alone");
    running.stop("TERM")?.succeeded()?;

    // Control: with the old key alone nothing can be read any more, so nothing starts.
    installation.set("URR_AUTH_DATA_KEY", FIRST_KEY);
    installation.set("URR_AUTH_DATA_KEY_VERSION", "1");
    let refused = installation.run(&["up", "--port", &free_port().to_string()])?;
    ensure!(!refused.status.success(), "the data were sealed anew");
    ensure!(refused.stderr.contains("encrypted with another auth.data_key"), "{refused:?}");
    Ok(())
}

/// Without its secrets a used folder is not started: new ones would let addresses register twice, and
/// nobody could log in.
#[test]
fn lost_secrets_are_told_and_not_replaced() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("URR_AUTH_BOT_CHECK_BITS", "4");
    let running = installation.up(&[])?;
    assert_eq!(register(&installation, running.port)?.status, 201);
    running.stop("TERM")?.succeeded()?;
    let (secrets, kept) = (installation.path("data/secrets.toml"), installation.path("kept"));
    std::fs::rename(&secrets, &kept)?;

    let port = free_port().to_string();
    let refused = installation.run(&["up", "--port", &port])?;
    ensure!(!refused.status.success(), "{refused:?}");
    for part in ["data/secrets.toml: missing", "restore it from your copy", "--data"] {
        ensure!(refused.stderr.contains(part), "{part:?} is not in {refused:?}");
    }
    ensure!(!secrets.exists(), "nothing was made");
    let doctor = installation.run(&["doctor"])?;
    ensure!(!doctor.status.success() && doctor.stdout.contains("secrets.toml: missing"));

    // Secrets of another installation do not help.
    let other = Installation::new()?;
    other.up(&[])?.stop("TERM")?.succeeded()?;
    std::fs::copy(other.path("data/secrets.toml"), &secrets)?;
    let refused = installation.run(&["up", "--port", &port])?;
    ensure!(refused.stderr.contains("encrypted with another auth.data_key"), "{refused:?}");
    let doctor = installation.run(&["doctor"])?;
    ensure!(doctor.stdout.contains("PROBLEM  the accounts were encrypted"), "{doctor:?}");

    // Control: with its own secrets everything is as before.
    std::fs::rename(&kept, &secrets)?;
    let running = installation.up(&[])?;
    assert_eq!(log_in(running.port)?, 200);
    let doctor = installation.run(&["doctor"])?.stdout;
    ensure!(doctor.contains("ok       the accounts can be read"), "{doctor}");
    Ok(())
}
