//! Private copies of the servers URR runs on when it outgrows one machine, for contract
//! tests and for `urr cluster`.
//!
//! Each `start` brings up a server of its own on a free loopback port, with its data in a temporary
//! folder; dropping it ends the process and removes the folder. `shared_*` starts one per test
//! process, on first use, for tests that need a server but not one they may stop: only `&mut`
//! methods stop, crash or pause, so a shared server is safe from its users.
//!
//! No server outlives the test process, however that ends (`process.rs` says how). An environment
//! variable names a server that already runs, to be used in place of a private one:
//! `URR_TEST_POSTGRES_URL`, `URR_TEST_REDIS_URL`, `URR_TEST_REDIS_CLUSTER_URLS` (separated by
//! commas), `URR_TEST_KAFKA_BOOTSTRAP`, `URR_TEST_SQS_ENDPOINT`.
//!
//! These calls block. In an async test that is fine: nothing else waits for its thread.

mod certificates;
mod folder;
mod kafka;
mod placed;
mod port;
mod postgres;
mod process;
mod program;
mod redis;
mod sqs;

use std::sync::OnceLock;

use anyhow::{Result, bail};

pub use self::certificates::ServerCertificates;
pub use self::kafka::{KafkaCluster, KafkaServer};
pub use self::placed::{ServerLogin, ServerPlace, form_redis_cluster, set_redis_full};
pub use self::port::free as free_port;
pub use self::postgres::PostgresServer;
pub use self::process::{Recipe, ServerProcess, TestServer, cpu_times, end_process, start_time_of};
pub use self::program::variable;
pub use self::redis::{RedisCluster, RedisServer};
pub use self::sqs::SqsServer;

/// A server that a contract test may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Postgres,
    Redis,
    RedisCluster,
    Kafka,
    Sqs,
}

impl Server {
    /// The variable that names a running server of this kind.
    fn variable(self) -> &'static str {
        match self {
            Server::Postgres => "URR_TEST_POSTGRES_URL",
            Server::Redis => "URR_TEST_REDIS_URL",
            Server::RedisCluster => "URR_TEST_REDIS_CLUSTER_URLS",
            Server::Kafka => "URR_TEST_KAFKA_BOOTSTRAP",
            Server::Sqs => "URR_TEST_SQS_ENDPOINT",
        }
    }

    /// The address of the running server that the environment names, if it names one.
    fn external(self) -> Option<String> {
        program::variable(self.variable())
    }

    /// Fails with what is missing, if this server cannot be started here.
    fn find_programs(self) -> Result<()> {
        match self {
            Server::Postgres => postgres::find_programs(),
            Server::Redis | Server::RedisCluster => redis::find_programs(),
            Server::Kafka => kafka::find_programs(),
            Server::Sqs => sqs::find_programs(),
        }
    }
}

/// Whether tests on this server can run here. If not, says on standard error that they are skipped
/// and why; with `CI=true` nothing may be skipped, so that is an error.
pub fn available(server: Server) -> Result<bool> {
    if server.external().is_some() {
        return Ok(true);
    }
    Ok(or_skip(&format!("{server:?}"), server.find_programs())?.is_some())
}

/// Fails with what is missing here to start one of each.
pub fn require_programs() -> Result<()> {
    [Server::Postgres, Server::RedisCluster, Server::Kafka, Server::Sqs]
        .into_iter()
        .try_for_each(Server::find_programs)
}

/// The program `schemathesis`, under the same rule.
pub fn schemathesis() -> Result<Option<std::path::PathBuf>> {
    or_skip("Schemathesis", program::find_schemathesis())
}

#[expect(clippy::print_stderr, reason = "who runs the tests must see what was skipped")]
fn or_skip<T>(what: &str, found: Result<T>) -> Result<Option<T>> {
    let missing = match found {
        Ok(found) => return Ok(Some(found)),
        Err(missing) => missing,
    };
    if program::variable("CI").as_deref() == Some("true") {
        bail!("tests on {what} may not be skipped with CI=true: {missing:#}");
    }
    eprintln!("skipped: tests on {what}: {missing:#}");
    Ok(None)
}

/// The PostgreSQL of this test process. Ask it for a database of your own.
pub fn shared_postgres() -> Result<&'static PostgresServer> {
    static SHARED: Shared<PostgresServer> = OnceLock::new();
    share(&SHARED, PostgresServer::start)
}

/// The Redis of this test process. Tests share its keys: give yours a prefix of their own.
pub fn shared_redis() -> Result<&'static RedisServer> {
    static SHARED: Shared<RedisServer> = OnceLock::new();
    share(&SHARED, RedisServer::start)
}

/// The Redis Cluster of this test process. Tests share its keys: give yours a prefix of their own.
pub fn shared_redis_cluster() -> Result<&'static RedisCluster> {
    static SHARED: Shared<RedisCluster> = OnceLock::new();
    share(&SHARED, RedisCluster::start)
}

/// The Kafka of this test process. Tests share its topics: give yours names of their own.
pub fn shared_kafka() -> Result<&'static KafkaServer> {
    static SHARED: Shared<KafkaServer> = OnceLock::new();
    share(&SHARED, KafkaServer::start)
}

/// The SQS of this test process. Tests share its queues: give yours names of their own.
pub fn shared_sqs() -> Result<&'static SqsServer> {
    static SHARED: Shared<SqsServer> = OnceLock::new();
    share(&SHARED, SqsServer::start)
}

/// Started once; a failure is kept too, so that every test reports it and none tries again.
type Shared<T> = OnceLock<Result<T, String>>;

fn share<T>(shared: &'static Shared<T>, start: fn() -> Result<T>) -> Result<&'static T> {
    match shared.get_or_init(|| start().map_err(|error| format!("{error:#}"))) {
        Ok(server) => Ok(server),
        Err(error) => bail!("{error}"),
    }
}
