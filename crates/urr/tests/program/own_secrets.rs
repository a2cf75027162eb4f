//! A secret for each role: a process has its own, and accepts the callers of the table of calls.

use anyhow::{Context, Result};
use urr_kernel::Secret;
use urr_service::{Caller, InternalCredentials};
use urr_test::servers::{self, Server};

use crate::http_client::{Reply, identity_headers, request};
use crate::process::{INTERNAL_TOKEN, Installation, free_port};
use crate::queue::private_port;

const GATEWAY: &str = "the secret of the gateways, of this test";
const NEW_GATEWAY: &str = "the next secret of the gateways, of this test";
const QUEUE: &str = "the secret of the queue processes, of this test";
const STATS: &str = "the secret of the stats processes, of this test";

/// What `urr credentials` prints in a process with this secret: `caller=credential`.
fn credential(secret: &str, caller: &str) -> Result<String> {
    let mut installation = Installation::new()?;
    installation.set("URR_INTERNAL_TOKEN", secret);
    let printed = installation.run(&["credentials", caller, "--to", "stats"])?.succeeded()?;
    Ok(printed.stdout.trim().to_owned())
}

/// A process of the statistics with its own secrets and nobody else's.
fn installation(accepted: &[&String]) -> Result<Installation> {
    let url = servers::shared_postgres()?.create_database("own_secrets")?;
    let mut migration = Installation::new()?;
    migration.set("URR_DATABASE_URL", &url);
    migration.set("URR_DATABASE_ROLE_SECRET", "the secret of the logins, of this test");
    migration.run(&["migrate"])?.succeeded()?;
    let password = migration.run(&["credentials", "--database", "stats"])?.succeeded()?.stdout;
    let mut installation = Installation::new()?;
    installation.set("URR_DATABASE_URL", &url);
    installation.set("URR_DATABASE_STATS_PASSWORD", password.trim());
    installation.set("KAFKA_BOOTSTRAP_SERVERS", servers::shared_kafka()?.bootstrap());
    let accepted: Vec<&str> = accepted.iter().map(|entry| entry.as_str()).collect();
    let file = installation.path("accepted");
    std::fs::write(&file, accepted.join(",\n"))?;
    let file = file.to_str().context("a path")?;
    installation.set("URR_INTERNAL_ACCEPTED_FILE", file);
    installation.set("URR_INTERNAL_TOKEN", STATS);
    Ok(installation)
}

fn ask_as(port: u16, entry: &str) -> Result<Reply> {
    let (caller, credential) = entry.split_once('=').context("caller=credential")?;
    let mut headers = identity_headers();
    headers.insert("x-urr-caller", caller.parse()?);
    headers.insert("x-urr-credential", credential.parse()?);
    request(port, "GET", "/api/stats/activity", &headers, "")
}

#[test]
fn a_process_accepts_its_callers_by_their_own_secrets() -> Result<()> {
    if !servers::available(Server::Postgres)? || !servers::available(Server::Kafka)? {
        return Ok(());
    }
    let (gateway, queue) = (credential(GATEWAY, "gateway")?, credential(QUEUE, "queue")?);
    let new_gateway = credential(NEW_GATEWAY, "gateway")?;
    let installation = installation(&[&gateway, &queue])?;
    let stats = installation.serve(free_port(), "stats")?;
    assert_eq!(ask_as(stats.port, &gateway)?.status, 200);
    // Whoever has the secret of the statistics, or of the queue, does not speak for the gateway.
    for forged in [
        credential(STATS, "gateway")?,
        credential(QUEUE, "gateway")?,
        queue.replace("queue=", "gateway="),
        new_gateway.clone(),
    ] {
        let refused = ask_as(stats.port, &forged)?;
        assert_eq!(refused.status, 403, "{refused:?}");
        assert_eq!(refused.json()?["code"], "INVALID_CREDENTIAL");
    }
    stats.stop("TERM")?.succeeded()?;

    // While the secret of the gateways is being changed, both are good.
    std::fs::write(installation.path("accepted"), [&*gateway, &new_gateway, &queue].join(","))?;
    let stats = installation.serve(free_port(), "stats")?;
    for both in [&gateway, &new_gateway] {
        assert_eq!(ask_as(stats.port, both)?.status, 200);
    }
    stats.stop("TERM")?.succeeded()?;

    std::fs::write(installation.path("accepted"), [&*new_gateway, &queue].join(","))?;
    let stats = installation.serve(free_port(), "stats")?;
    assert_eq!(ask_as(stats.port, &new_gateway)?.status, 200);
    assert_eq!(ask_as(stats.port, &gateway)?.json()?["code"], "INVALID_CREDENTIAL");
    stats.stop("TERM")?.succeeded()?;
    Ok(())
}

#[test]
fn a_list_that_lacks_a_caller_or_has_a_stranger_is_refused_at_the_start() -> Result<()> {
    if !servers::available(Server::Postgres)? || !servers::available(Server::Kafka)? {
        return Ok(());
    }
    let (gateway, queue) = (credential(GATEWAY, "gateway")?, credential(QUEUE, "queue")?);
    let installation = installation(&[&gateway])?;
    let serve = ["serve", "--roles", "stats", "--port", &free_port().to_string()];
    let lacking = installation.run(&serve)?;
    lacking.refused_with(&["queue calls the stats service", "urr credentials queue --to stats"]);
    let mail = queue.replace("queue=", "mail=");
    std::fs::write(installation.path("accepted"), [&*gateway, &queue, &mail].join(","))?;
    let strange = installation.run(&serve)?;
    strange.refused_with(&["a credential of mail, which calls no service of this process"]);
    Ok(())
}

#[test]
fn the_password_of_a_role_follows_from_a_secret_that_its_processes_need_not_have() -> Result<()> {
    let mut installation = Installation::new()?;
    let password = |installation: &Installation, role: &str| {
        installation.run(&["credentials", "--database", role])
    };
    password(&installation, "stats")?.refused_with(&["database.role_secret"]);
    installation.set("URR_DATABASE_ROLE_SECRET", "the secret of the logins, of this test");
    let derived = password(&installation, "stats")?.succeeded()?.stdout;
    assert_ne!(derived, password(&installation, "mail")?.succeeded()?.stdout);
    installation.set("URR_DATABASE_STATS_PASSWORD", "a password of one's own");
    let own = password(&installation, "stats")?.succeeded()?.stdout;
    assert_eq!(own.trim(), "a password of one's own");
    for wrong in [vec!["--database", "gateway"], vec!["--database", "stats", "mail"], vec![]] {
        let refused = installation.run(&[&["credentials"], wrong.as_slice()].concat())?;
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {refused:?}");
    }
    Ok(())
}

/// The three steps of OPERATIONS: which of the two secrets is accepted after each.
#[test]
fn a_shared_secret_is_changed_by_way_of_the_other_one() -> Result<()> {
    const OLD: &str = INTERNAL_TOKEN;
    const NEW: &str = "the next secret of all processes, of this test";
    let mut installation = Installation::new()?;
    installation.set("URR_DEMO_SEED", "false");
    for (token, other, accepted) in [
        (OLD, "", [200, 403]),
        (OLD, NEW, [200, 200]),
        (NEW, OLD, [200, 200]),
        (NEW, "", [403, 200]),
    ] {
        installation.set("INTERNAL_API_TOKEN", token);
        installation.set("URR_INTERNAL_OTHER_TOKEN", other);
        let running = installation.up(&[])?;
        let port = private_port(&installation)?;
        for (secret, status) in [OLD, NEW].into_iter().zip(accepted) {
            let caller = InternalCredentials::from_root(&Secret::new(secret));
            let credential = caller.for_call(Caller::Gateway, "stats");
            let reply = ask_as(port, &format!("gateway={}", credential.expose()))?;
            assert_eq!(reply.status, status, "{secret}, with {token} and {other:?}: {reply:?}");
        }
        running.stop("TERM")?.succeeded()?;
    }
    Ok(())
}

#[test]
fn with_one_secret_for_all_a_service_still_knows_its_callers_only() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("INTERNAL_API_TOKEN", INTERNAL_TOKEN);
    installation.set("URR_DEMO_SEED", "false");
    let running = installation.up(&[])?;
    let port = private_port(&installation)?;
    let credentials = InternalCredentials::from_root(&Secret::new(INTERNAL_TOKEN));
    let ask = |caller: Caller| {
        let credential = credentials.for_call(caller, "stats");
        ask_as(port, &format!("{caller}={}", credential.expose()))
    };
    assert_eq!(ask(Caller::Gateway)?.status, 200);
    assert_eq!(ask(Caller::Mail)?.json()?["code"], "INVALID_CREDENTIAL");
    // The queue calls the statistics, but does not speak for users.
    assert_eq!(ask(Caller::Queue)?.json()?["code"], "UNTRUSTED_IDENTITY");
    running.stop("TERM")?.succeeded()?;
    Ok(())
}
