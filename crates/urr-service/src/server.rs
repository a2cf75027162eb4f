//! The HTTP server with a graceful shutdown: it takes no new connections, finishes requests in
//! flight, and cuts off the rest when the grace period is over.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, header};
use futures_util::TryFutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::Readiness;

/// A client that sends its headers slower than this, or is silent between two requests for as
/// long, loses its connection. It is longer than our own client keeps a silent connection.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);
/// A client that does not take its answer for this long loses its connection.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The gateway adds some headers to those of its clients, which the service behind must still take.
const HEADERS_MAX: usize = 128;
/// A client that has not finished the TLS handshake after this time loses its connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Above this, further clients wait in the queue of the operating system.
const CONNECTIONS_MAX: usize = 16_384;
/// The pause after an error of `accept`, which is most often too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// How a server is stopped. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ServerStop {
    /// While it is not ready, answers end their connections, so that clients with a pool of them go
    /// elsewhere: before the listener closes, and while the process cannot do its work.
    pub readiness: Readiness,
    /// No new connections, and the request in flight is the last one of its connection.
    pub shutdown: CancellationToken,
}

/// Where clients come in, with TLS or without.
pub struct HttpListener {
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl From<TcpListener> for HttpListener {
    fn from(tcp: TcpListener) -> HttpListener {
        HttpListener { tcp, tls: None }
    }
}

impl HttpListener {
    /// Clients without TLS are refused.
    pub fn with_tls(tcp: TcpListener, config: ServerConfig) -> HttpListener {
        HttpListener { tcp, tls: Some(TlsAcceptor::from(Arc::new(config))) }
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// How its addresses begin.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Serves until `shutdown`, then for at most `grace` longer.
pub async fn serve(
    listener: impl Into<HttpListener>,
    router: Router,
    shutdown: CancellationToken,
    grace: Duration,
) -> io::Result<()> {
    let stop = ServerStop { shutdown, ..ServerStop::default() };
    serve_until(listener, router, stop, grace).await
}

/// Serves until it is stopped, then for at most `grace` longer.
pub async fn serve_until(
    listener: impl Into<HttpListener>,
    router: Router,
    stop: ServerStop,
    grace: Duration,
) -> io::Result<()> {
    let HttpListener { tcp: listener, tls } = listener.into();
    let address = listener.local_addr()?;
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // With its state given, a router makes its routes now and not for every request.
    let router = router.with_state(());
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.shutdown.cancelled() => break,
            Some(ended) = connections.join_next() => log_ended(ended),
            (stream, peer, slot) = accept(&listener, &slots) => {
                let (tls, router, stop) = (tls.clone(), router.clone(), stop.clone());
                connections.spawn(async move {
                    accepted(stream, tls, peer, router, stop).await;
                    drop(slot);
                });
            }
        }
    }
    drop(listener);
    tracing::info!(%address, open = connections.len(), "draining");
    let drained = async {
        while let Some(ended) = connections.join_next().await {
            log_ended(ended);
        }
    };
    if tokio::time::timeout(grace, drained).await.is_err() {
        let open = connections.len();
        tracing::warn!(%address, open, "the grace is over; open connections are cut off");
        connections.shutdown().await;
    }
    Ok(())
}

/// Waits for a free slot, then for a client. It may be dropped at any point without losing one.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    let slot = Arc::clone(slots).acquire_owned().await;
    let slot = slot.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, slot),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, after the handshake if there is TLS.
async fn accepted(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: SocketAddr,
    router: Router,
    stop: ServerStop,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %peer, "TCP_NODELAY could not be set");
    }
    let Some(tls) = tls else { return connection(stream, peer, router, stop).await };
    let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream));
    let handshake = stop.shutdown.run_until_cancelled(handshake).await;
    match handshake {
        Some(Ok(Ok(stream))) => connection(stream, peer, router, stop).await,
        Some(Ok(Err(error))) => tracing::debug!(%error, %peer, "a TLS handshake failed"),
        Some(Err(_)) => tracing::debug!(%peer, "a TLS handshake took too long"),
        None => {}
    }
}

/// Serves one connection. At shutdown the request in flight, if any, is the last one.
async fn connection<S>(stream: S, peer: SocketAddr, router: Router, stop: ServerStop)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let readiness = stop.readiness;
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        // A router is always ready.
        let (answer, readiness) = (router.clone().call(request), readiness.clone());
        answer.map_ok(move |mut response| {
            if !readiness.is_ready() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            response
        })
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(write_limited(stream)), service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stop.shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, %peer, "a connection ended in disorder");
    }
}

/// A stream whose writes fail when they have waited too long for the peer. Without it, clients that
/// read nothing could occupy every connection of the server.
fn write_limited<S: AsyncRead + AsyncWrite>(stream: S) -> Pin<Box<TimeoutStream<S>>> {
    let mut limited = TimeoutStream::new(stream);
    limited.set_write_timeout(Some(WRITE_TIMEOUT));
    Box::pin(limited)
}

fn log_ended(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_reads_loses_its_connection() {
        let (ours, _theirs) = duplex(64);
        let mut ours = write_limited(ours);
        let begun = Instant::now();
        let error = ours.write_all(&[0; 1_000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), WRITE_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_that_reads_keeps_it() {
        let (ours, mut theirs) = duplex(64);
        let mut ours = write_limited(ours);
        let reader = tokio::spawn(async move {
            let mut buffer = [0; 50];
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                theirs.read_exact(&mut buffer).await.unwrap();
            }
        });
        ours.write_all(&[0; 1_000]).await.unwrap();
        reader.await.unwrap();
    }
}
