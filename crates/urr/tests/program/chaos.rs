//! Sales while processes and servers are killed, stopped and cut off: afterwards everything agrees.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use urr_rush::CuttingProxy;
use urr_test::servers::{self, KafkaServer, PostgresServer, RedisServer, Server};

use crate::audit::change;
use crate::process::{Installation, Process, Running, free_port};
use crate::rush::event_on_sale;

const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn killed_stopped_and_cut_off_the_program_keeps_everything() -> Result<()> {
    let installation = Installation::new()?;
    let arguments = [
        ["--fans", "300"],
        ["--seats", "400"],
        ["--threshold", "30"],
        ["--kills", "3"],
        ["--stops", "1"],
        ["--cuts", "2"],
        ["--slow-disks", "1"],
        ["--within", "12"],
        ["--pauses", "1"],
        ["--heal-minutes", "2"],
        ["--folder", "."],
    ];
    let refused = installation.run(&[&["rush", "chaos"], &arguments.concat()[..]].concat())?;
    assert_eq!(refused.status.code(), Some(2), "a folder that exists is not touched: {refused:?}");
    let mut arguments = arguments.concat();
    *arguments.last_mut().context("there are some")? = "chaos";
    let until = ["rush", "chaos", "--until-sold-out", "--expect", "bought>=100"];
    let run = installation.command(&[&until, &arguments[..]].concat());
    let ended = Process::start(run)?.await_end_within(PATIENCE)?;
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stdout.contains("All agrees after 7 faults."), "{ended:?}");
    assert!(ended.stdout.contains("ok        waiting rooms: "), "{ended:?}");
    for figure in [
        "Sold out after ",
        "kills: 3, answered again after ",
        "slow disks: 1, a sync took ",
        " MiB of memory at most",
    ] {
        assert!(ended.stdout.contains(figure), "{figure}: {ended:?}");
    }
    assert!(!ended.stdout.contains(" 0 seats sold"), "{ended:?}");

    // The control: the audit that was clean sees what is damaged in the same folder.
    std::fs::rename(installation.path("chaos/data"), installation.path("data"))?;
    installation.run(&["audit"])?.succeeded()?;
    let sql = "update seats set status = 'held' where status = 'sold'";
    change(&installation, &urr_ticket::SCHEMA, sql)?;
    assert_eq!(installation.run(&["audit"])?.status.code(), Some(1));
    Ok(())
}

/// A process that is started again after it was killed.
struct Replica {
    roles: &'static str,
    port: u16,
    running: Option<Running>,
}

impl Replica {
    fn start(installation: &Installation, roles: &'static str, port: u16) -> Result<Replica> {
        Ok(Replica { roles, port, running: Some(installation.serve(port, roles)?) })
    }

    fn kill(&mut self) -> Result<()> {
        if let Some(running) = self.running.take() {
            running.stop("KILL")?;
        }
        Ok(())
    }

    fn start_again(&mut self, installation: &Installation) -> Result<()> {
        self.running = Some(installation.serve(self.port, self.roles)?);
        Ok(())
    }
}

/// Two processes of a role behind one address.
fn proxy(runtime: &tokio::runtime::Runtime, ports: [u16; 2]) -> Result<CuttingProxy> {
    let targets = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    Ok(runtime.block_on(CuttingProxy::start(targets.to_vec()))?)
}

/// The servers that URR runs on, each with the right to be harmed.
struct ChaosServers {
    postgres: PostgresServer,
    redis: RedisServer,
    kafka: KafkaServer,
}

#[test]
fn replicas_and_servers_are_killed_during_a_sale_and_everything_agrees() -> Result<()> {
    for server in [Server::Postgres, Server::Kafka, Server::Redis] {
        if !servers::available(server)? {
            return Ok(());
        }
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let mut servers = ChaosServers {
        postgres: PostgresServer::start()?,
        redis: RedisServer::start()?,
        kafka: KafkaServer::start()?,
    };
    let mut installation = Installation::new()?;
    installation.share_secrets();
    installation.set("URR_DATABASE_URL", &servers.postgres.create_database("chaos")?);
    installation.set("KAFKA_BOOTSTRAP_SERVERS", servers.kafka.bootstrap());
    let redis: &str = servers.redis.url();
    installation.set("URR_REDIS_URL", redis);
    installation.set("URR_PAYMENTS_TIMEOUT_SECONDS", "2");
    installation.set("URR_QUEUE_THRESHOLD", "40");
    installation.run(&["migrate"])?.succeeded()?;
    let ports: [[u16; 2]; 4] = std::array::from_fn(|_| [free_port(), free_port()]);
    let [queue, ticket, payment, gateway] = ports;
    let proxies = [queue, ticket, payment, gateway].map(|ports| proxy(&runtime, ports));
    let proxies = proxies.into_iter().collect::<Result<Vec<_>>>()?;
    let rest = free_port();
    for (name, proxy) in ["QUEUE", "TICKET", "PAYMENT"].iter().zip(&proxies) {
        installation.set(&format!("{name}_SERVICE_URL"), &format!("http://{}", proxy.address()));
    }
    for name in ["AUTH", "CATALOG", "MAIL", "STATS", "COMMUNITY"] {
        installation.set(&format!("{name}_SERVICE_URL"), &format!("http://127.0.0.1:{rest}"));
    }
    installation.run(&["seed"])?.succeeded()?;
    let mut replicas =
        vec![Replica::start(&installation, "auth,catalog,mail,stats,community", rest)?];
    let roles = [("queue", queue), ("ticket", ticket), ("payment", payment), ("gateway", gateway)];
    for (role, ports) in roles {
        for port in ports {
            replicas.push(Replica::start(&installation, role, port)?);
        }
    }
    let event = event_on_sale(&installation)?;
    installation.run(&["rush", "prepare", "--fans", "200"])?.succeeded()?;
    let site = format!("http://{}", proxies[3].address());
    let rush = installation.command(&[
        "rush",
        "run",
        "--event",
        &event,
        "--fans",
        "200",
        "--url",
        &site,
        "--choosing",
        "0.5",
        "--paying",
        "0.5",
        "--tries",
        "60",
        "--max-minutes",
        "2",
    ]);
    let rush = Process::start(rush)?;
    harm(&installation, &mut replicas, &mut servers, &proxies)?;
    let ended = rush.await_end_within(PATIENCE)?;
    ensure!(ended.stdout.contains("seats sold"), "{ended:?}");
    ensure!(!ended.stdout.contains(" 0 seats sold"), "{ended:?}");
    await_agreement(&installation)
}

/// Harms everything in turn and heals it.
fn harm(
    installation: &Installation,
    replicas: &mut [Replica],
    servers: &mut ChaosServers,
    proxies: &[CuttingProxy],
) -> Result<()> {
    let pause = || thread::sleep(Duration::from_millis(700));
    pause();
    // Of the two processes of a role one goes on.
    for index in [3, 5, 1, 7, 0] {
        replicas[index].kill()?;
        pause();
        replicas[index].start_again(installation)?;
    }
    proxies.iter().for_each(CuttingProxy::cut);
    servers.redis.kill()?;
    pause();
    servers.redis.start_again()?;
    servers.kafka.pause()?;
    servers.postgres.pause()?;
    pause();
    servers.postgres.resume()?;
    servers.kafka.resume()?;
    servers.postgres.kill()?;
    pause();
    servers.postgres.start_again()?;
    for index in [4, 6, 2, 8] {
        replicas[index].kill()?;
        replicas[index].start_again(installation)?;
    }
    Ok(())
}

fn await_agreement(installation: &Installation) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let audit = installation.command(&["audit", "--json"]);
        let audit = Process::start(audit)?.await_end_within(PATIENCE)?;
        let report: Value = serde_json::from_str(&audit.stdout).unwrap_or_default();
        let is_quiet = report["messagesWaiting"] == 0 && report["paymentsUnderWay"] == 0;
        if audit.status.success() && is_quiet {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "it never agrees: {audit:?}");
        thread::sleep(Duration::from_secs(1));
    }
}
