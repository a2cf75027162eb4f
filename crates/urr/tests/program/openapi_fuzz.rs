//! The interface, tried with whatever its description allows and forbids.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use urr_test::servers;

use crate::http_client::{self, request};
use crate::process::{Installation, Process, Running, free_port};

/// Inputs per operation. More find more, and take longer.
const EXAMPLES: &str = "20";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";
/// It tries thousands of requests, one after the other.
const PATIENCE: Duration = Duration::from_secs(600);
const PASSWORD: &str = "a long enough secret";

/// With default settings and without a log-in.
#[test]
fn no_input_brings_an_answer_that_the_description_does_not_have() -> Result<()> {
    let Some(schemathesis) = servers::schemathesis()? else { return Ok(()) };
    let installation = unlimited()?;
    let running = installation.up(&[])?;
    try_everything(&installation, &running, &schemathesis, None)?;
    running.stop("TERM")?.succeeded()?;
    Ok(())
}

/// Behind the check for programs, which would keep this one out, and as an administrator.
#[test]
fn no_input_of_an_administrator_brings_one_either() -> Result<()> {
    let Some(schemathesis) = servers::schemathesis()? else { return Ok(()) };
    let mut installation = unlimited()?;
    installation.set("URR_AUTH_BOT_CHECK", "off");
    let running = installation.up(&[])?;
    let token = admin_token(&installation, &running)?;
    let header = format!("Authorization: Bearer {token}");
    try_everything(&installation, &running, &schemathesis, Some(&header))?;
    running.stop("TERM")?.succeeded()?;
    Ok(())
}

/// Metrics and the state of the parts are for operators, not for everybody who can reach the listener
/// or a proxy before it.
#[test]
fn d_17_the_public_listener_shows_no_metrics_and_no_addresses() -> Result<()> {
    for host in ["0.0.0.0", "127.0.0.1"] {
        let mut installation = Installation::new()?;
        let management_port = free_port();
        if host == "127.0.0.1" {
            installation.set("MANAGEMENT_PORT", &management_port.to_string());
        }
        let running = installation.up(&["--host", host])?;
        for path in ["/metrics", "/actuator", "/actuator/health", "/actuator/env"] {
            assert_eq!(running.get(path)?.status, 404, "{host} {path}");
        }
        let health = running.get("/health")?.json()?;
        let parts = health["dependencies"].as_object().context("the parts")?;
        ensure!(parts.values().all(|state| state == "ok"), "a word each: {health}");
        // Control: on the internal listener they are there.
        if host == "127.0.0.1" {
            assert_eq!(http_client::get(management_port, "/metrics")?.status, 200);
        }
        running.stop("TERM")?.succeeded()?;
    }
    Ok(())
}

fn unlimited() -> Result<Installation> {
    let mut installation = Installation::new()?;
    for class in ["AUTH", "QUEUE", "BOOKING", "PAY", "PAY_TARGET", "GENERAL"] {
        installation.set(&format!("URR_GATEWAY_RATE_LIMIT_{class}_RPM"), "1000000");
    }
    Ok(installation)
}

fn try_everything(
    installation: &Installation,
    running: &Running,
    schemathesis: &Path,
    header: Option<&str>,
) -> Result<()> {
    let description = format!("http://127.0.0.1:{}/docs/openapi.json", running.port);
    let mut command = installation.command_of(schemathesis.to_str().context("a path in UTF-8")?);
    command.args(["run", &description, "--max-examples", EXAMPLES, "--seed", "1"]);
    command.args(["--phases", "examples,coverage,fuzzing", "--checks", CHECKS]);
    command.args(["--suppress-health-check", "all", "--no-color"]);
    // It would end the very session that it tries the others with.
    command.args(["--exclude-path-regex", "logout|/password$"]);
    if let Some(header) = header {
        command.args(["--header", header]);
    }
    let outcome = Process::start(command)?.await_end_within(PATIENCE)?;
    ensure!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
    ensure!(outcome.stdout.contains("generated"), "nothing was tried: {}", outcome.stdout);
    Ok(())
}

/// Makes an administrator on the command line and logs in.
fn admin_token(installation: &Installation, running: &Running) -> Result<String> {
    let mut create = installation.command(&["admin", "create", "--email", "boss@example.com"]);
    let mut create = create.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut stdin = create.stdin.take().context("its input is ours")?;
    std::io::Write::write_all(&mut stdin, format!("{PASSWORD}\n").as_bytes())?;
    drop(stdin);
    ensure!(create.wait()?.success(), "the administrator could not be made");
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse()?);
    let body = format!(r#"{{"email":"boss@example.com","password":"{PASSWORD}"}}"#);
    let reply = request(running.port, "POST", "/api/auth/login", &headers, &body)?;
    ensure!(reply.status == 200, "{reply:?}");
    Ok(reply.json()?["token"].as_str().context("a token")?.to_owned())
}
