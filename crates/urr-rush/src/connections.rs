//! The connections of all fans: one limit, however many fans there are and from however many
//! addresses they come.
//!
//! A fan who finds all connections in use waits. A connection that nobody uses is kept for the next
//! fan of the same address; if a fan of another address needs its place, the one that was idle for
//! longest is closed.

use std::collections::{BTreeMap, HashMap};
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

/// The number of a loopback address, or 0 for the address of this machine.
pub type AddressNumber = u16;

/// The connections to one site. Clones share them.
#[derive(Clone)]
pub struct ConnectionPool {
    site: Uri,
    tls: ClientConfig,
    /// One for each connection that may be in use.
    permits: Arc<Semaphore>,
    state: Arc<Mutex<PoolState>>,
}

struct PoolState {
    open_max: usize,
    /// Those in use, those being made and those that are idle.
    open: usize,
    /// By the moment since when they are idle.
    idle: BTreeMap<u64, IdleConnection>,
    idle_of_address: HashMap<AddressNumber, Vec<u64>>,
    next: u64,
}

struct IdleConnection {
    address: AddressNumber,
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
    address: AddressNumber,
    /// Whether it counts as open: it is there or being made.
    is_open: bool,
    connection: Option<Connection>,
    _permit: OwnedSemaphorePermit,
}

/// Why a request has no answer.
pub enum SendFailure {
    /// It never left: the connection was closed while it was idle.
    Unsent(Box<Request<Full<Bytes>>>),
    Broken,
}

impl PoolState {
    /// The newest idle connection of an address that still lives.
    fn take(&mut self, address: AddressNumber) -> Option<Connection> {
        while let Some(number) = self.idle_of_address.get_mut(&address).and_then(Vec::pop) {
            let found = self.idle.remove(&number).expect("both maps have the same");
            if found.since.elapsed() < IDLE_MAX && !found.connection.sender.is_closed() {
                return Some(found.connection);
            }
            found.connection.task.abort();
            self.open -= 1;
        }
        None
    }

    /// Makes room for a connection. Returns the one that has to be closed for it.
    fn reserve(&mut self) -> Option<Connection> {
        let oldest = if self.open < self.open_max { None } else { self.idle.pop_first() };
        self.open += 1;
        let (number, oldest) = oldest?;
        self.open -= 1;
        if let Some(numbers) = self.idle_of_address.get_mut(&oldest.address) {
            numbers.retain(|it| *it != number);
        }
        Some(oldest.connection)
    }

    fn keep(&mut self, address: AddressNumber, connection: Connection) {
        let number = self.next;
        self.next += 1;
        self.idle.insert(number, IdleConnection { address, since: Instant::now(), connection });
        self.idle_of_address.entry(address).or_default().push(number);
    }
}

impl Drop for PoolState {
    fn drop(&mut self) {
        self.idle.values().for_each(|idle| idle.connection.task.abort());
    }
}

impl ConnectionPool {
    pub fn new(site: Uri, tls: ClientConfig, open_max: usize) -> ConnectionPool {
        assert!(open_max > 0, "without connections nothing is sent");
        let state = PoolState {
            open_max,
            open: 0,
            idle: BTreeMap::new(),
            idle_of_address: HashMap::new(),
            next: 0,
        };
        let permits = Arc::new(Semaphore::new(open_max));
        ConnectionPool { site, tls, permits, state: Arc::new(Mutex::new(state)) }
    }

    /// A connection from an address. It waits if all are in use.
    pub async fn connection(&self, address: AddressNumber) -> Result<PooledConnection> {
        let permit = Arc::clone(&self.permits).acquire_owned().await?;
        let idle = self.state().take(address);
        let mut pooled = PooledConnection {
            pool: self.clone(),
            address,
            is_open: idle.is_some(),
            connection: idle,
            _permit: permit,
        };
        if pooled.connection.is_none() {
            let oldest = self.state().reserve();
            pooled.is_open = true;
            if let Some(oldest) = oldest {
                oldest.task.abort();
                // The socket is closed when the task has ended, and an end by force is no failure.
                drop(oldest.task.await);
            }
            pooled.connection = Some(self.connect(address).await?);
        }
        Ok(pooled)
    }

    async fn connect(&self, address: AddressNumber) -> Result<Connection> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_local_address(loopback(address));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        let https = https.https_or_http().enable_http1().wrap_connector(tcp);
        let stream = https.oneshot(self.site.clone()).await.map_err(anyhow::Error::from_boxed)?;
        let (sender, connection) = handshake(stream).await?;
        // Whoever waits for an answer learns of the failure.
        let task = tokio::spawn(async { drop(connection.await) });
        Ok(Connection { sender, task })
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 127.77.0.1 and so on: a machine owns all of 127.0.0.0/8.
fn loopback(address: AddressNumber) -> Option<IpAddr> {
    let [high, low] = address.to_be_bytes();
    (address > 0).then(|| IpAddr::V4(Ipv4Addr::new(127, 77, high, low)))
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
            self.is_open = false;
            self.pool.state().keep(self.address, connection);
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.task.abort();
        }
        if self.is_open {
            self.pool.state().open -= 1;
        }
    }
}
