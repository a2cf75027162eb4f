//! The interface, tried with whatever its description allows and forbids.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use urr_test::servers;

use crate::http::request;
use crate::program::{Installation, Process, Running};

/// Tries each operation with so many inputs. More find more, and take longer.
const EXAMPLES: &str = "20";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";
const PASSWORD: &str = "a long enough secret";

#[test]
fn no_input_brings_an_answer_that_the_description_does_not_have() -> Result<()> {
    let Some(schemathesis) = servers::schemathesis()? else { return Ok(()) };
    let mut installation = Installation::new()?;
    for class in ["AUTH", "QUEUE", "BOOKING", "GENERAL"] {
        installation.set(&format!("RATE_LIMIT_{class}_RPM"), "1000000");
    }
    let running = installation.up(&[])?;
    let token = admin_token(&installation, &running)?;
    let schemathesis = schemathesis.to_str().context("a path in UTF-8")?;
    let description = format!("http://127.0.0.1:{}/docs/openapi.json", running.port);
    for authorization in [None, Some(format!("Authorization: Bearer {token}"))] {
        let mut command = installation.command_of(schemathesis);
        command.args(["run", &description, "--max-examples", EXAMPLES, "--seed", "1"]);
        command.args(["--phases", "examples,coverage,fuzzing", "--checks", CHECKS]);
        command.args(["--suppress-health-check", "all", "--no-color"]);
        // It would end the very session that it tries the others with.
        command.args(["--exclude-path-regex", "logout|/password$"]);
        if let Some(header) = &authorization {
            command.args(["--header", header]);
        }
        let outcome = Process::start(command)?.await_end()?;
        ensure!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
        ensure!(outcome.stdout.contains("generated"), "nothing was tried: {}", outcome.stdout);
    }
    running.stop("TERM")?.succeeded()?;
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
