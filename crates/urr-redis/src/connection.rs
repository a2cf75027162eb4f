//! The connection: one for all callers, made when needed and again when it broke.
//!
//! The connection manager of the client library is not used. It keeps a failed attempt for ever if
//! the failure was an answer (as while Redis loads its data), makes callers wait through its own
//! repetitions, and leaves open whether a call was sent.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, ClientTlsConfig, Cmd, ConnectionAddr, IntoConnectionInfo,
    TlsCertificates, Value,
};
use tokio::time::timeout;
use urr_kernel::Secret;
use urr_tls::TrustFiles;

use crate::error::CommandFailure;
use crate::{RedisError, RedisOptions, RedisTopology};

/// The connection is broken if bytes stay unacknowledged for this long. Without it, a server that
/// vanished from the network would block calls until the operating system gives up after 15 minutes.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(3);
/// A Cluster's redirections need some attempts. They also repeat calls whose connection broke.
const CLUSTER_ATTEMPTS_MORE: u32 = 3;
const CLUSTER_RETRY_WAIT_MS_MIN: u64 = 5;
const CLUSTER_RETRY_WAIT_MS_MAX: u64 = 50;
/// A connection of a Cluster that fails is replaced no sooner than this after it was made.
const CLUSTER_CONNECTION_AGE_MIN: Duration = Duration::from_secs(3);

/// Makes connections and keeps the one in use.
pub(crate) struct ConnectionSource {
    topology: RedisTopology,
    options: RedisOptions,
    current: Mutex<Current>,
    /// Held while a connection is made, so that others wait for it.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Current {
    live: Option<SharedConnection>,
    made: u64,
}

/// A connection in use. All callers share it; answers come in the order of the calls.
#[derive(Clone)]
pub(crate) struct SharedConnection {
    number: u64,
    made_at: Instant,
    connection: RedisConnection,
}

#[derive(Clone)]
enum RedisConnection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

enum RedisClient {
    Single(redis::Client, AsyncConnectionConfig),
    Cluster(ClusterClient),
}

impl ConnectionSource {
    pub fn new(
        topology: &RedisTopology,
        options: &RedisOptions,
    ) -> Result<ConnectionSource, RedisError> {
        RedisClient::new(topology, options)
            .map_err(|error| RedisError::Rejected(format!("the address of Redis: {error}")))?;
        Ok(ConnectionSource {
            topology: topology.clone(),
            options: options.clone(),
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        })
    }

    /// The connection, made now if there is none.
    pub async fn live(&self) -> Result<SharedConnection, CommandFailure> {
        if let Some(live) = self.current().live.clone() {
            return Ok(live);
        }
        let too_long = |_| CommandFailure::to_connect("no connection in time");
        let turn = timeout(self.options.connection_timeout, self.connecting.lock()).await;
        let _turn = turn.map_err(too_long)?;
        if let Some(live) = self.current().live.clone() {
            return Ok(live);
        }
        self.make().await
    }

    /// Makes a connection, which replaces the one in use, if there is any.
    async fn make(&self) -> Result<SharedConnection, CommandFailure> {
        // Made anew for each connection: certificates may have been replaced.
        let client = RedisClient::new(&self.topology, &self.options);
        let client = client.map_err(CommandFailure::to_connect)?;
        let connection = timeout(self.options.connection_timeout, client.connect()).await;
        let too_long = |_| CommandFailure::to_connect("no connection in time");
        let connection = connection.map_err(too_long)?.map_err(CommandFailure::to_connect)?;
        let mut current = self.current();
        current.made += 1;
        let live = SharedConnection { number: current.made, made_at: Instant::now(), connection };
        current.live = Some(live.clone());
        Ok(live)
    }

    /// Replaces the connection of a Cluster that has been failing. Usually it recovers by itself, but
    /// after nodes died and came back under load one was seen that never did. Others use the old
    /// one meanwhile: only one of its nodes may be gone.
    pub async fn replace_failing(&self) {
        if matches!(self.topology, RedisTopology::Single(_)) {
            return;
        }
        let Ok(_turn) = self.connecting.try_lock() else { return };
        let is_old = |live: &SharedConnection| live.made_at.elapsed() >= CLUSTER_CONNECTION_AGE_MIN;
        if !self.current().live.as_ref().is_some_and(is_old) {
            return;
        }
        match self.make().await {
            Ok(_) => {
                tracing::info!("a new connection to the Redis Cluster replaces one that fails")
            }
            Err(failure) => tracing::debug!(error = failure.cause, "no new connection to Redis"),
        }
    }

    /// Drops a broken connection, unless another has replaced it. That of a Cluster stays: only one of
    /// its nodes may be gone.
    pub fn drop_broken(&self, broken: &SharedConnection) {
        let mut current = self.current();
        let in_use = current.live.as_ref().is_some_and(|live| live.number == broken.number);
        if in_use && matches!(broken.connection, RedisConnection::Single(_)) {
            current.live = None;
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().expect("nothing panics while it holds this lock")
    }
}

impl SharedConnection {
    pub async fn send(&self, command: &Cmd) -> redis::RedisResult<Value> {
        match self.connection.clone() {
            RedisConnection::Single(mut connection) => command.query_async(&mut connection).await,
            RedisConnection::Cluster(mut connection) => command.query_async(&mut connection).await,
        }
    }
}

impl RedisClient {
    fn new(topology: &RedisTopology, options: &RedisOptions) -> redis::RedisResult<RedisClient> {
        // Without a delay a call need not wait for the answer to the one before it. That costs a fifth
        // of the calls per second that one connection can take, which are more than we need.
        let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(UNACKNOWLEDGED_MAX);
        match topology {
            RedisTopology::Single(url) => {
                let info = url.expose().into_connection_info()?.set_tcp_settings(tcp);
                let is_encrypted = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(options.connection_timeout))
                    .set_response_timeout(Some(options.response_timeout));
                let client = match is_encrypted {
                    true => redis::Client::build_with_tls(info, certificates(options)?)?,
                    false => redis::Client::open(info)?,
                };
                Ok(RedisClient::Single(client, config))
            }
            RedisTopology::Cluster(nodes) => {
                let builder = ClusterClientBuilder::new(nodes.iter().map(Secret::expose));
                let is_encrypted = nodes.iter().any(|node| node.expose().starts_with("rediss:"));
                let builder = match is_encrypted {
                    true => builder.certs(certificates(options)?),
                    false => builder,
                };
                let client = builder
                    .connection_timeout(options.connection_timeout)
                    .response_timeout(options.response_timeout)
                    .retries(CLUSTER_ATTEMPTS_MORE)
                    .min_retry_wait(CLUSTER_RETRY_WAIT_MS_MIN)
                    .max_retry_wait(CLUSTER_RETRY_WAIT_MS_MAX)
                    .tcp_settings(tcp)
                    .build()?;
                Ok(RedisClient::Cluster(client))
            }
        }
    }

    async fn connect(&self) -> redis::RedisResult<RedisConnection> {
        match self {
            RedisClient::Single(client, config) => {
                let connection =
                    client.get_multiplexed_async_connection_with_config(config).await?;
                Ok(RedisConnection::Single(connection))
            }
            RedisClient::Cluster(client) => {
                Ok(RedisConnection::Cluster(client.get_async_connection().await?))
            }
        }
    }
}

/// The certificates of a client, read now. Without authorities of our own, those of the web count.
fn certificates(options: &RedisOptions) -> io::Result<TlsCertificates> {
    let root_cert = match &options.trust {
        TrustFiles::WebRoots => None,
        TrustFiles::File(path) => Some(read(path)?),
    };
    let client_tls = match &options.identity {
        None => None,
        Some(files) => Some(ClientTlsConfig {
            client_cert: read(&files.certificate)?,
            client_key: read(&files.key)?,
        }),
    };
    Ok(TlsCertificates { client_tls, root_cert })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| {
        io::Error::new(error.kind(), format!("{} cannot be read: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use urr_test::servers::{self, Server};

    use super::*;

    /// The number of the connection in use.
    fn number(source: &ConnectionSource) -> u64 {
        source.current().live.as_ref().expect("there is one").number
    }

    fn age(source: &ConnectionSource) {
        let mut current = source.current();
        let live = current.live.as_mut().expect("there is one");
        live.made_at = live.made_at.checked_sub(CLUSTER_CONNECTION_AGE_MIN).expect("in the past");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_failing_connection_to_a_cluster_is_replaced_once_it_is_old_and_another_is_there() {
        if !servers::available(Server::RedisCluster).unwrap() {
            return;
        }
        let servers = servers::RedisCluster::start().unwrap();
        let nodes = servers.urls().iter().map(Secret::new).collect();
        let topology = RedisTopology::Cluster(nodes);
        let source = ConnectionSource::new(&topology, &RedisOptions::default()).unwrap();
        let first = source.live().await.unwrap();
        source.replace_failing().await;
        assert_eq!(number(&source), first.number, "it is young");

        age(&source);
        source.replace_failing().await;
        assert_eq!(number(&source), first.number + 1);
        let live = source.live().await.unwrap();
        live.send(&redis::cmd("PING")).await.unwrap();
        first.send(&redis::cmd("PING")).await.expect("calls under way end as they would");

        age(&source);
        drop(servers);
        source.replace_failing().await;
        assert_eq!(number(&source), first.number + 1, "without another, the old one stays");
    }
}
