//! `urr cluster`: two processes of each role and their servers on this machine, restarted and killed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use serde_json::Value;
use urr_test::servers::{self, Server};

use crate::http_client::{Reply, request};
use crate::process::{CommandOutput, Installation, Process};

/// Twenty-four processes of a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(420);
const ROLES: [&str; 9] =
    ["gateway", "auth", "catalog", "queue", "ticket", "payment", "stats", "mail", "community"];

/// A cluster of this test. It ends with the test, however that ends.
struct TestCluster {
    installation: Installation,
    _supervisor: Process,
    site_port: u16,
}

fn has_servers() -> Result<bool> {
    let needed = [Server::Postgres, Server::RedisCluster, Server::Kafka, Server::Sqs];
    Ok(needed.into_iter().map(servers::available).collect::<Result<Vec<_>>>()?.iter().all(|it| *it))
}

/// A command of the cluster, with the variables that say where the servers' programs are.
fn command(installation: &Installation, program: &str, arguments: &[&str]) -> Command {
    let mut command = installation.command_of(program);
    for name in ["HOME", "XDG_CACHE_HOME", "URR_TEST_CACHE"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.args(arguments);
    command
}

fn run(installation: &Installation, arguments: &[&str]) -> Result<CommandOutput> {
    let arguments = [&["cluster"], arguments].concat();
    let command = command(installation, env!("CARGO_BIN_EXE_urr"), &arguments);
    Process::start(command)?.await_end_within(PATIENCE)
}

impl TestCluster {
    fn start(settings: &[&str]) -> Result<TestCluster> {
        let installation = Installation::new()?;
        // PostgreSQL runs as another user, who must be able to pass through.
        fs::set_permissions(installation.path("."), rights(0o755))?;
        let up = ["--pdeathsig", "TERM", "--", env!("CARGO_BIN_EXE_urr"), "cluster", "up"];
        let up = [&up[..], settings].concat();
        let mut supervisor = Process::start(command(&installation, "setpriv", &up))?;
        let ends_at = std::time::Instant::now() + PATIENCE;
        while !run(&installation, &["status"])?.status.success() {
            let is_there = supervisor.is_running()? && std::time::Instant::now() < ends_at;
            ensure!(is_there, "the cluster did not start: {}", supervisor.stderr()?);
            thread::sleep(Duration::from_millis(500));
        }
        let mut cluster = TestCluster { installation, _supervisor: supervisor, site_port: 0 };
        let status = cluster.status()?;
        let site = status["site"].as_str().context("a site")?;
        cluster.site_port = site.rsplit(':').next().context("a port")?.parse()?;
        Ok(cluster)
    }

    fn run(&self, arguments: &[&str]) -> Result<CommandOutput> {
        run(&self.installation, arguments)
    }

    fn status(&self) -> Result<Value> {
        let status = self.run(&["status", "--json"])?.succeeded()?;
        Ok(serde_json::from_str(&status.stdout)?)
    }

    /// A command of the operator of the cluster.
    fn operate(&self, arguments: &[&str]) -> Result<CommandOutput> {
        let arguments = [arguments, &["--config", "cluster/operator.toml"]].concat();
        Process::start(self.installation.command(&arguments))?.await_end_within(PATIENCE)
    }

    fn folder(&self) -> PathBuf {
        self.installation.path("cluster")
    }
}

fn rights(mode: u32) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(mode)
}

#[test]
fn a_cluster_sells_is_restarted_killed_and_ends() -> Result<()> {
    if !has_servers()? {
        return Ok(());
    }
    let cluster = TestCluster::start(&[
        "--set",
        "queue.threshold=40",
        "--set",
        "payments.timeout_seconds=2",
    ])?;
    let second = cluster.run(&["up"])?;
    second.refused_with(&["runs already"]);
    let smoke = cluster.run(&["smoke"])?.succeeded()?.stdout;
    ensure!(smoke.contains("The journey is whole."), "{smoke}");
    let unknown = cluster.run(&["kill", "ticket-3"])?;
    ensure!(unknown.stderr.contains("is no part of the cluster"), "{unknown:?}");
    check_own_secrets(&cluster)?;
    check_rolling_restart(&cluster)?;
    check_chaos(&cluster)?;
    check_end(cluster)
}

/// A role has its own secrets, and every connection but those to Kafka and SQS is encrypted.
fn check_own_secrets(cluster: &TestCluster) -> Result<()> {
    let read = |name: &str| fs::read_to_string(cluster.folder().join(format!("{name}.toml")));
    let (payment, ticket) = (read("payment")?, read("ticket")?);
    let token = |text: &str| {
        text.lines().find(|line| line.starts_with("internal.token")).map(str::to_owned)
    };
    ensure!(token(&payment).is_some() && token(&payment) != token(&ticket), "each its own");
    ensure!(!payment.contains("seats.ticket_signing_key"), "it signs no tickets");
    ensure!(!payment.contains("urr_admin"), "it is no administrator");
    for text in [&payment, &ticket] {
        ensure!(text.contains("sslmode=verify-full") && !text.contains("_url = \"http:"), "{text}");
    }
    Ok(())
}

/// Asks again and again for something of each role, until it is told to stop.
struct Load {
    is_over: Arc<AtomicBool>,
    failures: Arc<Mutex<Vec<String>>>,
    client: thread::JoinHandle<u32>,
}

impl Load {
    fn start(port: u16, token: String) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let failures = Arc::new(Mutex::new(Vec::new()));
        let (end, failed) = (Arc::clone(&is_over), Arc::clone(&failures));
        let client = thread::spawn(move || {
            let mut count = 0;
            while !end.load(Ordering::Relaxed) {
                for path in [
                    "/api/artists",
                    "/api/auth/terms",
                    "/api/transfers?limit=1",
                    "/api/payments/user/me",
                    "/api/notifications",
                    "/api/reservations",
                ] {
                    count += 1;
                    match ask(port, "GET", path, &token) {
                        Ok(reply) if reply.status < 500 => {}
                        other => failed
                            .lock()
                            .expect("nobody panics with it")
                            .push(format!("{path}: {other:?}")),
                    }
                }
            }
            count
        });
        Load { is_over, failures, client }
    }

    /// How many requests there were, and which failed.
    fn end(self) -> (u32, Vec<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        let count = self.client.join().expect("it does not panic");
        let failures = self.failures.lock().expect("nobody panics with it").clone();
        (count, failures)
    }
}

fn ask(port: u16, method: &str, path: &str, token: &str) -> Result<Reply> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse()?);
    request(port, method, path, &headers, "")
}

/// Every process is restarted in turn while fans use the site: no request fails.
fn check_rolling_restart(cluster: &TestCluster) -> Result<()> {
    cluster
        .operate(&["rush", "prepare", "--fans", "1", "--accounts", "fans.jsonl"])?
        .succeeded()?;
    let fans = fs::read_to_string(cluster.installation.path("fans.jsonl"))?;
    let fan: Value = serde_json::from_str(fans.lines().next().context("a fan")?)?;
    let token = fan["token"].as_str().context("a token")?.to_owned();
    let load = Load::start(cluster.site_port, token);
    let restarted = (|| {
        for role in ROLES {
            for number in ["1", "2"] {
                cluster.run(&["restart", &format!("{role}-{number}")])?.succeeded()?;
                await_ready(cluster)?;
            }
        }
        Ok(())
    })();
    let (count, failures) = load.end();
    restarted.and_then(|()| {
        ensure!(failures.is_empty(), "{} of {count} failed: {failures:?}", failures.len());
        ensure!(count > 100, "there was load: {count}");
        Ok(())
    })
}

/// Until the balancers know a process, the other one of its role must stay.
fn await_ready(cluster: &TestCluster) -> Result<()> {
    let ends_at = std::time::Instant::now() + PATIENCE;
    while !cluster.run(&["status"])?.status.success() {
        ensure!(
            std::time::Instant::now() < ends_at,
            "not everything is ready: {:?}",
            cluster.status()
        );
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Processes and servers are killed, stopped and cut off during a sale, and everything agrees.
fn check_chaos(cluster: &TestCluster) -> Result<()> {
    let arguments = [
        ["--cluster", "cluster"],
        ["--fans", "150"],
        ["--seats", "50"],
        ["--kills", "24"],
        ["--stops", "3"],
        ["--cuts", "4"],
        ["--within", "30"],
        ["--pauses", "0.5"],
        ["--heal-minutes", "4"],
    ];
    let arguments = [&["rush", "chaos"], &arguments.concat()[..]].concat();
    let ended = Process::start(self::command(
        &cluster.installation,
        env!("CARGO_BIN_EXE_urr"),
        &arguments,
    ))?;
    let ended = ended.await_end_within(2 * PATIENCE)?.succeeded()?;
    ensure!(ended.stdout.contains("All agrees after 31 faults."), "{ended:?}");
    ensure!(!ended.stdout.contains(" 0 seats sold"), "{ended:?}");
    Ok(())
}

/// Nothing of it runs on, and its data stays until it is removed.
fn check_end(cluster: TestCluster) -> Result<()> {
    let status = cluster.status()?;
    let members = status["members"].as_array().context("a list")?.clone();
    let pids: Vec<u64> = members.iter().filter_map(|member| member["pid"].as_u64()).collect();
    assert_eq!(pids.len(), 24, "{status}");
    cluster.run(&["down"])?.succeeded()?;
    for pid in pids {
        ensure!(!PathBuf::from(format!("/proc/{pid}")).exists(), "{pid} runs on");
    }
    ensure!(cluster.folder().join("cluster.json").exists(), "the data stays");
    let down = cluster.run(&["down", "--remove"])?.succeeded()?;
    ensure!(down.stdout.contains("nothing runs"), "{down:?}");
    ensure!(!cluster.folder().exists(), "it is removed");
    Ok(())
}
