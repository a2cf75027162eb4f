//! `urr cluster`: two processes of each role and their servers on this machine, restarted, harmed and
//! killed during a sale.

mod failure_table;
mod failures;
mod rolling_restart;
mod shop;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::runtime::Runtime;
use urr_test::servers::{self, Server};

use self::failures::{FailureRun, tell};
use self::shop::ClusterShop;
use crate::process::{CommandOutput, Installation, Process, eventually_within};

/// Twenty-four processes of a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(420);

/// A cluster of this test. It ends with the test, however that ends.
struct TestCluster {
    // Fields are dropped in their order: the machine is free when the processes have ended.
    _supervisor: Process,
    installation: Installation,
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
    /// With balancers before the servers, the settings of all of these tests and those of one.
    fn start(own_settings: &[&str]) -> Result<TestCluster> {
        let installation = Installation::alone()?;
        let begun = Instant::now();
        // PostgreSQL runs as another user, who must be able to pass through.
        fs::set_permissions(installation.path("."), rights(0o755))?;
        let urr = env!("CARGO_BIN_EXE_urr");
        let up = ["--pdeathsig", "TERM", "--", urr, "cluster", "up", "--fault-lines"];
        let settings = SETTINGS.iter().chain(own_settings);
        let settings = settings.flat_map(|setting| ["--set", *setting]);
        let up: Vec<&str> = up.into_iter().chain(settings).collect();
        let mut supervisor = Process::start(command(&installation, "setpriv", &up))?;
        let ends_at = Instant::now() + PATIENCE;
        while !run(&installation, &["status"])?.status.success() {
            let is_there = supervisor.is_running()? && Instant::now() < ends_at;
            ensure!(is_there, "the cluster did not start: {}", supervisor.stderr()?);
            thread::sleep(Duration::from_millis(500));
        }
        tell(&format!("the cluster started in {:.1?}", begun.elapsed()));
        Ok(TestCluster { _supervisor: supervisor, installation })
    }

    fn run(&self, arguments: &[&str]) -> Result<CommandOutput> {
        run(&self.installation, arguments)
    }

    fn status(&self) -> Result<Value> {
        let status = self.run(&["status", "--json"])?.succeeded()?;
        Ok(serde_json::from_str(&status.stdout)?)
    }

    fn folder(&self) -> PathBuf {
        self.installation.path("cluster")
    }

    fn members(&self) -> Result<Vec<Value>> {
        Ok(self.status()?["members"].as_array().context("a list")?.clone())
    }

    fn await_ready(&self, patience: Duration) -> Result<()> {
        let ends_at = Instant::now() + patience;
        while !self.run(&["status"])?.status.success() {
            ensure!(Instant::now() < ends_at, "not everything is ready: {:?}", self.status()?);
        }
        Ok(())
    }

    /// Whether every partition of every topic has a leader.
    fn can_read_topics(&self) -> Result<bool> {
        let list = ["dlq", "list", "--config", "cluster/operator.toml"];
        let command = command(&self.installation, env!("CARGO_BIN_EXE_urr"), &list);
        Ok(Process::start(command)?.await_end_within(PATIENCE)?.status.success())
    }

    /// Everything agrees, when what is under way has come to its end.
    fn check_audit(&self) -> Result<()> {
        let audit = ["audit", "--config", "cluster/operator.toml"];
        let mut last = None;
        let clean = eventually_within(PATIENCE, "the audit is clean", || {
            let command = command(&self.installation, env!("CARGO_BIN_EXE_urr"), &audit);
            let audited = Process::start(command)?.await_end_within(PATIENCE)?;
            let is_clean = audited.status.success();
            last = Some(audited);
            Ok(is_clean)
        });
        clean.with_context(|| format!("{last:?}"))
    }
}

fn rights(mode: u32) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(mode)
}

/// The settings of the cluster: quick to give up, patient with one who asks much.
const SETTINGS: [&str; 15] = [
    // Nobody collects spans there.
    "traces.otlp_url=https://127.0.0.1:1",
    // Some of those who fail cannot give their turn back.
    "queue.threshold=100",
    "payments.timeout_seconds=4",
    "database.statement_timeout_ms=4000",
    // Nobody is refused because twenty-four processes share two cores.
    "redis.timeout_ms=1000",
    "gateway.timeout_seconds=8",
    "gateway.payment_timeout_seconds=10",
    "gateway.queue_timeout_seconds=6",
    "auth.bot_check_bits=4",
    "gateway.rate_limit_auth_rpm=100000",
    "gateway.rate_limit_general_rpm=100000",
    "gateway.rate_limit_queue_rpm=100000",
    "gateway.rate_limit_booking_rpm=100000",
    "gateway.rate_limit_login_account_rpm=100000",
    "gateway.rate_limit_login_address_rpm=100000",
];

#[test]
fn a_cluster_sells_and_nobody_notices_its_restart() -> Result<()> {
    if !has_servers()? {
        return Ok(());
    }
    let runtime = Runtime::new()?;
    let cluster = TestCluster::start(&[])?;
    let second = cluster.run(&["up"])?;
    second.refused_with(&["runs already"]);
    let smoke = cluster.run(&["smoke"])?.succeeded()?.stdout;
    ensure!(smoke.contains("The journey is whole."), "{smoke}");
    check_own_secrets(&cluster)?;
    let shop = Arc::new(runtime.block_on(ClusterShop::open(&cluster))?);
    rolling_restart::check(&cluster, &runtime, &shop)?;
    cluster.check_audit()
}

#[test]
fn whatever_fails_fans_are_answered_as_documented() -> Result<()> {
    if !has_servers()? {
        return Ok(());
    }
    let runtime = Runtime::new()?;
    // Nobody's seat expires before the last row.
    let own_settings = ["seats.hold_ttl_seconds=1500", "seats.lock_ttl_seconds=1600"];
    let cluster = TestCluster::start(&own_settings)?;
    let shop = runtime.block_on(ClusterShop::open(&cluster))?;
    FailureRun { cluster: &cluster, runtime: &runtime, shop: &shop }.check()?;
    cluster.check_audit()
}

#[test]
fn a_cluster_is_killed_and_cut_off_and_ends() -> Result<()> {
    if !has_servers()? {
        return Ok(());
    }
    let cluster = TestCluster::start(&[])?;
    let unknown = cluster.run(&["kill", "ticket-3"])?;
    ensure!(unknown.stderr.contains("is no part of the cluster"), "{unknown:?}");
    check_chaos(&cluster)?;
    check_end(cluster)
}

/// A role has its own secrets, and every connection is encrypted.
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
    let members = cluster.members()?;
    let pids: Vec<u64> = members.iter().filter_map(|member| member["pid"].as_u64()).collect();
    assert_eq!(pids.len(), 24, "{members:?}");
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
