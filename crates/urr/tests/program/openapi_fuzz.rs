//! The interface, tried with whatever its description allows and forbids, in every role and with
//! ids that exist.

mod shop;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::Value;
use urr_gateway::{Policy, RouteMatch, match_route};
use urr_service::UserRole;
use urr_test::servers;

use self::shop::Shop;
use crate::http_client;
use crate::process::{Installation, Process, Running, free_port};

/// What is tried of every operation.
#[derive(Clone, Copy)]
struct FuzzRun {
    phases: &'static str,
    /// Drawn inputs per operation. More find more, and take longer.
    examples: &'static str,
    seed: &'static str,
}

const EVERYTHING: &str = "examples,coverage,fuzzing";
/// Of what anybody may ask for.
const OF_ANYBODY: FuzzRun = FuzzRun { phases: EVERYTHING, examples: "20", seed: "1" };
/// Of what is refused before it is looked at: there is little to find.
const WITHOUT_LOGIN: FuzzRun = FuzzRun { phases: "fuzzing", examples: "2", seed: "1" };
/// Of each role. Only drawn inputs depend on the seed.
const OF_ROLE: [FuzzRun; 2] = [
    FuzzRun { phases: EVERYTHING, examples: "8", seed: "1" },
    FuzzRun { phases: "fuzzing", examples: "8", seed: "20261116" },
];
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";
/// It tries thousands of requests, one after the other.
const PATIENCE: Duration = Duration::from_secs(600);
/// Operations that may be refused whatever is tried, for example a login with an unknown token.
const REFUSED_MAX: usize = 9;
/// What would end the sessions it is tried with, and streams, which do not end.
const LEFT_OUT: &str =
    "logout|/password$|/stream|/live$|/auth/me$|/role$|/suspend$|/end-sessions$|/release-address$";
const HOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/openapi_fuzz_hooks.py");

/// With default settings and without a log-in.
#[test]
fn no_input_brings_an_answer_that_the_description_does_not_have() -> Result<()> {
    let Some(schemathesis) = servers::schemathesis()? else { return Ok(()) };
    let installation = unlimited()?;
    let running = installation.up(&[])?;
    for (is_public, fuzz) in [(true, OF_ANYBODY), (false, WITHOUT_LOGIN)] {
        let is_tried = |policy| (policy == Policy::Public) == is_public;
        let command = command(&installation, &running, &schemathesis, is_tried, fuzz)?;
        run_to_end(command).with_context(|| format!("public: {is_public}"))?;
    }
    running.stop("TERM")?.succeeded()?;
    Ok(())
}

/// In each role the operations that it may call, behind the check for programs, with ids that exist:
/// no 5xx, nothing undescribed, and few operations that are only ever refused.
#[test]
fn no_input_of_any_role_brings_one_either() -> Result<()> {
    let Some(schemathesis) = servers::schemathesis()? else { return Ok(()) };
    let mut installation = unlimited()?;
    installation.set("URR_AUTH_BOT_CHECK", "off");
    installation.set("FUZZ_IDS", &installation.path("ids.json").display().to_string());
    let answers = installation.path("answers.txt");
    installation.set("FUZZ_ANSWERS", &answers.display().to_string());
    installation.set("SCHEMATHESIS_HOOKS", HOOKS);
    // Nothing is left beside the hooks.
    installation.set("PYTHONDONTWRITEBYTECODE", "1");
    let running = installation.up(&[])?;
    let shop = Shop::open(&installation, &running)?;
    fs::write(installation.path("ids.json"), shop.ids.to_string())?;
    let roles = [UserRole::User, UserRole::Staff, UserRole::Organiser, UserRole::Support];
    // What an administrator does changes what the others find, so it comes last.
    let senders = [None].into_iter().chain(roles.map(Some)).chain([Some(UserRole::Admin)]);
    for role in senders {
        fs::write(&answers, "")?;
        for fuzz in OF_ROLE {
            let is_tried = |policy| is_tried(policy, role);
            let mut command = command(&installation, &running, &schemathesis, is_tried, fuzz)?;
            for header in shop.headers(role) {
                command.args(["--header", &header]);
            }
            run_to_end(command).with_context(|| format!("{role:?} with the seed {}", fuzz.seed))?;
        }
        let refused = only_refused(&fs::read_to_string(&answers)?);
        ensure!(refused.len() <= REFUSED_MAX, "{role:?} is only refused: {refused:#?}");
    }
    running.stop("TERM")?.succeeded()?;
    Ok(())
}

/// The record of answers names an operation that was only refused, and no other.
#[test]
fn an_operation_that_is_only_refused_is_found() {
    let answers = "GET /a 404\nGET /a 403\nGET /b 404\nGET /b 200\nPOST /a 400\n";
    assert_eq!(only_refused(answers), ["GET /a: 403, 404"]);
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

/// Tries the operations of some policies.
fn command(
    installation: &Installation,
    running: &Running,
    schemathesis: &Path,
    is_tried: impl Fn(Policy) -> bool,
    fuzz: FuzzRun,
) -> Result<Command> {
    let document = running.get("/docs/openapi.json")?.json()?;
    let file = installation.path("openapi.json");
    fs::write(&file, operations_of(document, is_tried).to_string())?;
    let address = format!("http://127.0.0.1:{}", running.port);
    let mut command = installation.command_of(schemathesis.to_str().context("a path in UTF-8")?);
    command.arg("run").arg(&file).args(["--url", &address]);
    command.args(["--max-examples", fuzz.examples, "--seed", fuzz.seed]);
    command.args(["--phases", fuzz.phases, "--checks", CHECKS]);
    command.args(["--suppress-health-check", "all", "--no-color"]);
    command.args(["--exclude-path-regex", LEFT_OUT]);
    Ok(command)
}

fn run_to_end(command: Command) -> Result<()> {
    let outcome = Process::start(command)?.await_end_within(PATIENCE)?;
    ensure!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
    ensure!(outcome.stdout.contains("generated"), "nothing was tried: {}", outcome.stdout);
    Ok(())
}

/// The description with the operations that are tried.
fn operations_of(mut document: Value, is_tried: impl Fn(Policy) -> bool) -> Value {
    let paths = document["paths"].as_object_mut().expect("a description has paths");
    for (path, item) in &mut *paths {
        let operations = item.as_object_mut().expect("a path has operations");
        operations.retain(|method, _| {
            let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) else {
                return false;
            };
            match match_route(&method, path) {
                RouteMatch::Route(_, route) => is_tried(route.policy),
                RouteMatch::OtherMethods(_) | RouteMatch::None => false,
            }
        });
    }
    paths.retain(|_, item| item.as_object().is_some_and(|operations| !operations.is_empty()));
    document
}

/// Whether the operations are this role's own: a user's are not tried again by door staff, whose
/// answers would be the same.
fn is_tried(policy: Policy, role: Option<UserRole>) -> bool {
    match (policy, role) {
        (Policy::Public, role) => role.is_none(),
        (Policy::User | Policy::Admitted, role) => role == Some(UserRole::User),
        (Policy::Role(_), None) => false,
        (Policy::Role(group), Some(UserRole::Admin)) => {
            UserRole::ALL.into_iter().filter(|role| group.contains(*role)).count() == 1
        }
        (Policy::Role(group), Some(role)) => group.contains(role),
    }
}

/// The operations that were answered with 401, 403 and 404 only, with the answers.
fn only_refused(answers: &str) -> Vec<String> {
    let mut statuses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (operation, status) in answers.lines().filter_map(|line| line.rsplit_once(' ')) {
        statuses.entry(operation).or_default().insert(status);
    }
    let is_refusal = |status: &&str| matches!(*status, "401" | "403" | "404");
    let refused = statuses.into_iter().filter(|(_, all)| all.iter().all(is_refusal));
    let name = |(operation, all): (&str, BTreeSet<&str>)| {
        format!("{operation}: {}", all.into_iter().collect::<Vec<_>>().join(", "))
    };
    refused.map(name).collect()
}
