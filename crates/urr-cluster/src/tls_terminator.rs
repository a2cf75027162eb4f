//! Speaks TLS for a server on this machine that does not: ElasticMQ.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// Connections with TLS become plain ones to the target. It ends when it is dropped.
pub struct TlsTerminator {
    address: SocketAddr,
    _listener: AbortOnDropHandle<()>,
}

impl TlsTerminator {
    /// Listens on a port of this machine; 0 means a free one.
    pub async fn start(
        port: u16,
        target: SocketAddr,
        tls: ServerConfig,
    ) -> io::Result<TlsTerminator> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let tls = TlsAcceptor::from(Arc::new(tls));
        let _listener = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let tls = tls.clone();
                // Whoever is at the ends notices that a connection has broken.
                tokio::spawn(async move { drop(pass(stream, target, tls).await) });
            }
        }));
        Ok(TlsTerminator { address, _listener })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn pass(stream: TcpStream, target: SocketAddr, tls: TlsAcceptor) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut outer = tls.accept(stream).await?;
    let mut inner = TcpStream::connect(target).await?;
    inner.set_nodelay(true)?;
    copy_bidirectional(&mut outer, &mut inner).await.map(drop)
}
