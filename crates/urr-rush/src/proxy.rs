//! A TCP proxy whose connections can be cut, as a network does that fails.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Connections pass from its address to the targets in turn; one that does not accept is passed over.
/// It ends when it is dropped.
pub struct CuttingProxy {
    address: SocketAddr,
    connections: Arc<Mutex<CancellationToken>>,
    _listener: AbortOnDropHandle<()>,
}

impl CuttingProxy {
    /// Listens on a free port of this machine.
    pub async fn start(targets: Vec<SocketAddr>) -> io::Result<CuttingProxy> {
        let listener = TcpListener::bind((IpAddr::from([127, 0, 0, 1]), 0)).await?;
        let address = listener.local_addr()?;
        let connections = Arc::new(Mutex::new(CancellationToken::new()));
        let accepting = accept(listener, targets, Arc::clone(&connections));
        let _listener = AbortOnDropHandle::new(tokio::spawn(accepting));
        Ok(CuttingProxy { address, connections, _listener })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts all present connections, whatever is on its way in them.
    pub fn cut(&self) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *connections).cancel();
    }
}

async fn accept(
    listener: TcpListener,
    mut targets: Vec<SocketAddr>,
    connections: Arc<Mutex<CancellationToken>>,
) {
    loop {
        let Ok((inner, peer)) = listener.accept().await else { continue };
        let cut = connections.lock().unwrap_or_else(PoisonError::into_inner).clone();
        targets.rotate_left(1);
        let targets = targets.clone();
        tokio::spawn(async move {
            tokio::select! {
                passed = pass(inner, peer, &targets) => drop(passed),
                () = cut.cancelled() => {}
            }
        });
    }
}

async fn pass(mut inner: TcpStream, peer: SocketAddr, targets: &[SocketAddr]) -> io::Result<()> {
    let mut outer = connect(peer, targets).await?;
    inner.set_nodelay(true)?;
    outer.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut inner, &mut outer).await?;
    Ok(())
}

/// The target sees the address of the client.
async fn connect(peer: SocketAddr, targets: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for target in targets {
        let socket = TcpSocket::new_v4()?;
        if peer.ip().is_loopback() {
            socket.bind(SocketAddr::new(peer.ip(), 0))?;
        }
        outcome = socket.connect(*target).await;
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn bytes_pass_until_the_connection_is_cut_and_others_can_come() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = server.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                tokio::spawn(async move {
                    let mut bytes = [0; 4];
                    while stream.read_exact(&mut bytes).await.is_ok() {
                        if stream.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let proxy = CuttingProxy::start(vec![dead, target]).await.unwrap();
        for _ in 0..2 {
            let mut client = TcpStream::connect(proxy.address()).await.unwrap();
            let mut bytes = [0; 4];
            client.write_all(b"ping").await.unwrap();
            client.read_exact(&mut bytes).await.unwrap();
            assert_eq!(&bytes, b"ping");
            proxy.cut();
            assert!(client.read_exact(&mut bytes).await.is_err(), "it is cut");
        }
    }
}
