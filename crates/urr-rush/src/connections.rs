//! The connections of all fans: one limit, however many fans there are and from however many
//! addresses they come.
//!
//! Each address has an equal share. A fan who finds all connections of their address in use waits
//! for one of them. Nobody waits for a connection of another address: it would have to be closed for
//! them, and once fans wait, almost every request would make a connection, which costs more than
//! answering it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response, Uri};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::ServiceExt;

/// Shorter than a process that stops is not ready: a browser would repeat a request whose connection
/// was closed meanwhile, and a fan does not.
const IDLE_MAX: Duration = Duration::from_secs(2);
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The connections to one site. Clones share them.
#[derive(Clone)]
pub struct ConnectionPool {
    site: Uri,
    tls: ClientConfig,
    addresses: Arc<[AddressConnections]>,
}

/// The connections from one address.
struct AddressConnections {
    /// None: the address of this machine. Otherwise one of 127.77.0.0/16.
    local: Option<IpAddr>,
    /// One for each connection that may be open.
    permits: Arc<Semaphore>,
    /// Those that nobody uses, the newest last.
    idle: Mutex<Vec<IdleConnection>>,
}

struct IdleConnection {
    since: Instant,
    connection: Connection,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Reads and writes the socket, and closes it when it ends.
    task: JoinHandle<()>,
}

/// The right to use a connection. The connection is closed when this is dropped, unless it was kept.
pub struct PooledConnection {
    pool: ConnectionPool,
    address: usize,
    connection: Option<Connection>,
    _permit: OwnedSemaphorePermit,
}

/// Why a request has no answer.
pub enum SendFailure {
    /// It never left: the connection was closed while it was idle.
    Unsent(Box<Request<Full<Bytes>>>),
    Broken,
}

impl AddressConnections {
    fn new(local: Option<IpAddr>, open_max: usize) -> AddressConnections {
        let permits = Arc::new(Semaphore::new(open_max));
        AddressConnections { local, permits, idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest idle connection that still lives. Those that do not are closed.
    async fn take(&self) -> Option<Connection> {
        loop {
            let newest = self.idle().pop();
            let IdleConnection { since, connection } = newest?;
            if since.elapsed() < IDLE_MAX && !connection.sender.is_closed() {
                return Some(connection);
            }
            connection.task.abort();
            // The socket is closed when the task has ended, and an end by force is no failure.
            drop(connection.task.await);
        }
    }
}

impl Drop for AddressConnections {
    fn drop(&mut self) {
        self.idle().iter().for_each(|idle| idle.connection.task.abort());
    }
}

impl ConnectionPool {
    /// At most `open_max` connections from this machine's address, or from as many loopback
    /// addresses.
    pub fn new(
        site: Uri,
        tls: ClientConfig,
        open_max: usize,
        loopback_addresses: Option<u16>,
    ) -> ConnectionPool {
        assert!(open_max > 0, "without connections nothing is sent");
        let addresses = match loopback_addresses {
            None => vec![AddressConnections::new(None, open_max)],
            Some(count) => {
                // Fewer addresses than asked for, if there are not enough connections.
                let count = open_max.min(usize::from(count.max(1)));
                let numbers = (1..=u16::MAX).take(count);
                let of_one =
                    |number| AddressConnections::new(Some(loopback(number)), open_max / count);
                numbers.map(of_one).collect()
            }
        };
        ConnectionPool { site, tls, addresses: addresses.into() }
    }

    /// A connection for the fan with this number. It waits if all of the fan's address are in use.
    pub async fn connection(&self, fan: usize) -> Result<PooledConnection> {
        let address = fan % self.addresses.len();
        let connections = &self.addresses[address];
        let permit = Arc::clone(&connections.permits).acquire_owned().await?;
        let connection = match connections.take().await {
            Some(connection) => connection,
            None => self.connect(connections.local).await?,
        };
        let (pool, connection) = (self.clone(), Some(connection));
        Ok(PooledConnection { pool, address, connection, _permit: permit })
    }

    async fn connect(&self, local: Option<IpAddr>) -> Result<Connection> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_local_address(local);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        let https = https.https_or_http().enable_http1().wrap_connector(tcp);
        let stream = https.oneshot(self.site.clone()).await.map_err(anyhow::Error::from_boxed)?;
        let (sender, connection) = handshake(stream).await?;
        // Whoever waits for an answer learns of the failure.
        let task = tokio::spawn(async { drop(connection.await) });
        Ok(Connection { sender, task })
    }
}

/// 127.77.0.1 and so on: a machine owns all of 127.0.0.0/8.
fn loopback(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, 77, high, low))
}

impl PooledConnection {
    /// Sends a request. If it never left, it is returned.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendFailure> {
        let connection = self.connection.as_mut().expect("it is there until it is returned");
        if connection.sender.ready().await.is_err() {
            return Err(SendFailure::Unsent(Box::new(request)));
        }
        let sent = connection.sender.try_send_request(request).await;
        sent.map_err(|mut error| match error.take_message() {
            Some(request) => SendFailure::Unsent(Box::new(request)),
            None => SendFailure::Broken,
        })
    }

    /// Keeps the connection for the next fan of the address. The answer was read to its end.
    pub fn keep(mut self) {
        if let Some(connection) = self.connection.take() {
            let idle = IdleConnection { since: Instant::now(), connection };
            self.pool.addresses[self.address].idle().push(idle);
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.task.abort();
        }
    }
}
