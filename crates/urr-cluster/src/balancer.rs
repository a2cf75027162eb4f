//! A TCP balancer over several processes, whose connections can be cut, slowed and garbled, as a
//! network does that fails.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

const BUFFER_BYTES: usize = 64 * 1024;
/// Added to every byte of a garbled answer.
const GARBLED_BY: u8 = 0x55;

/// Connections pass from its address to the targets in turn, to those that are ready before others;
/// one that does not accept is passed over. It ends when it is dropped.
pub struct Balancer {
    address: SocketAddr,
    shared: Arc<SharedBalancer>,
    _listener: AbortOnDropHandle<()>,
}

/// What happens to everything that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFault {
    None,
    /// Every piece of an answer comes later by this, or when the fault ends.
    Slow(Duration),
    /// Nothing passes, and connections stay open.
    Silent,
    /// Answers have other bytes than the target sent.
    Garbled,
    /// Connections are ended at once.
    Closed,
}

struct SharedBalancer {
    targets: Mutex<Vec<BalancerTarget>>,
    connections: Mutex<CancellationToken>,
    fault: watch::Sender<LineFault>,
}

#[derive(Clone, Copy)]
struct BalancerTarget {
    address: SocketAddr,
    is_ready: bool,
}

impl Balancer {
    /// Listens on a port of this machine; 0 means a free one.
    pub async fn start(port: u16, targets: &[SocketAddr]) -> io::Result<Balancer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let target = |address: &SocketAddr| BalancerTarget { address: *address, is_ready: true };
        let shared = Arc::new(SharedBalancer {
            targets: Mutex::new(targets.iter().map(target).collect()),
            connections: Mutex::new(CancellationToken::new()),
            fault: watch::Sender::new(LineFault::None),
        });
        let _listener = AbortOnDropHandle::new(tokio::spawn(accept(listener, Arc::clone(&shared))));
        Ok(Balancer { address, shared, _listener })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts all present connections, whatever is on its way in them.
    pub fn cut(&self) {
        let connections = &self.shared.connections;
        let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *connections).cancel();
    }

    /// Whether new connections go to this target. If none is ready, they go to all.
    pub fn set_ready(&self, address: SocketAddr, is_ready: bool) {
        let mut targets = self.shared.targets.lock().unwrap_or_else(PoisonError::into_inner);
        for target in targets.iter_mut().filter(|target| target.address == address) {
            target.is_ready = is_ready;
        }
    }

    /// What happens from now on to all connections, also to those that are there.
    pub fn set_fault(&self, fault: LineFault) {
        self.shared.fault.send_replace(fault);
        if fault == LineFault::Closed {
            self.cut();
        }
    }
}

impl SharedBalancer {
    /// The targets in the order in which the next connection tries them.
    fn next_targets(&self) -> Vec<SocketAddr> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if !targets.is_empty() {
            targets.rotate_left(1);
        }
        let of = |is_ready: bool| targets.iter().filter(move |it| it.is_ready == is_ready);
        of(true).chain(of(false)).map(|target| target.address).collect()
    }
}

async fn accept(listener: TcpListener, shared: Arc<SharedBalancer>) {
    loop {
        let Ok((inner, peer)) = listener.accept().await else { continue };
        let fault = shared.fault.subscribe();
        if *fault.borrow() == LineFault::Closed {
            continue;
        }
        let cut = shared.connections.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let targets = shared.next_targets();
        tokio::spawn(async move {
            tokio::select! {
                passed = pass(inner, peer, &targets, fault) => drop(passed),
                () = cut.cancelled() => {}
            }
        });
    }
}

async fn pass(
    inner: TcpStream,
    peer: SocketAddr,
    targets: &[SocketAddr],
    fault: watch::Receiver<LineFault>,
) -> io::Result<()> {
    let outer = connect(peer, targets).await?;
    inner.set_nodelay(true)?;
    outer.set_nodelay(true)?;
    let (from_client, to_client) = inner.into_split();
    let (from_target, to_target) = outer.into_split();
    tokio::try_join!(
        copy(from_client, to_target, fault.clone(), false),
        copy(from_target, to_client, fault, true)
    )?;
    Ok(())
}

/// Passes bytes on until there are no more; answers as the fault has them.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut fault: watch::Receiver<LineFault>,
    is_answer: bool,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        let now = *fault.borrow_and_update();
        match now {
            LineFault::Slow(delay) if is_answer => {
                tokio::time::timeout(delay, fault.changed()).await.ok();
            }
            LineFault::Garbled if is_answer => {
                buffer[..count].iter_mut().for_each(|byte| *byte = byte.wrapping_add(GARBLED_BY));
            }
            LineFault::Silent => {
                let passes = fault.wait_for(|fault| *fault != LineFault::Silent).await;
                passes.map_err(|_| io::ErrorKind::ConnectionAborted)?;
            }
            _ => {}
        }
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
    }
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
    use super::*;

    /// Answers every four bytes with its own letter.
    async fn echo(letter: u8) -> SocketAddr {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                tokio::spawn(async move {
                    let mut bytes = [0; 4];
                    while stream.read_exact(&mut bytes).await.is_ok() {
                        if stream.write_all(&[letter; 4]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }

    async fn ask(client: &mut TcpStream) -> io::Result<u8> {
        let mut bytes = [0; 4];
        client.write_all(b"ping").await?;
        client.read_exact(&mut bytes).await?;
        Ok(bytes[0])
    }

    async fn dead() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
    }

    #[tokio::test]
    async fn bytes_pass_until_the_connection_is_cut_and_others_can_come() {
        let balancer = Balancer::start(0, &[dead().await, echo(b'a').await]).await.unwrap();
        for _ in 0..2 {
            let mut client = TcpStream::connect(balancer.address()).await.unwrap();
            assert_eq!(ask(&mut client).await.unwrap(), b'a');
            balancer.cut();
            assert!(ask(&mut client).await.is_err(), "it is cut");
        }
    }

    #[tokio::test]
    async fn connections_go_to_those_that_are_ready() {
        let targets = [echo(b'a').await, echo(b'b').await];
        let balancer = Balancer::start(0, &targets).await.unwrap();
        let answers = async || {
            let mut answers = Vec::new();
            for _ in 0..4 {
                let mut client = TcpStream::connect(balancer.address()).await.unwrap();
                answers.push(ask(&mut client).await.unwrap());
            }
            answers.sort_unstable();
            String::from_utf8(answers).unwrap()
        };
        assert_eq!(answers().await, "aabb");
        balancer.set_ready(targets[0], false);
        assert_eq!(answers().await, "bbbb");
        balancer.set_ready(targets[1], false);
        assert_eq!(answers().await, "aabb", "some may still serve");
    }

    #[tokio::test]
    async fn a_fault_meets_connections_that_are_there_and_ends() {
        let balancer = Balancer::start(0, &[echo(b'a').await]).await.unwrap();
        let mut client = TcpStream::connect(balancer.address()).await.unwrap();
        assert_eq!(ask(&mut client).await.unwrap(), b'a');
        balancer.set_fault(LineFault::Garbled);
        assert_eq!(ask(&mut client).await.unwrap(), b'a'.wrapping_add(GARBLED_BY));
        balancer.set_fault(LineFault::Silent);
        let silent = tokio::time::timeout(Duration::from_millis(100), ask(&mut client)).await;
        assert!(silent.is_err(), "nothing comes");
        balancer.set_fault(LineFault::None);
        let mut late = [0; 4];
        client.read_exact(&mut late).await.unwrap();
        assert_eq!(late, *b"aaaa", "it comes after all");
        balancer.set_fault(LineFault::Slow(Duration::from_millis(50)));
        let begun = tokio::time::Instant::now();
        assert_eq!(ask(&mut client).await.unwrap(), b'a');
        assert!(begun.elapsed() >= Duration::from_millis(50));
        balancer.set_fault(LineFault::Slow(Duration::from_hours(1)));
        let slow = tokio::time::timeout(Duration::from_millis(100), ask(&mut client)).await;
        assert!(slow.is_err(), "it is under way");
        balancer.set_fault(LineFault::None);
        client.read_exact(&mut late).await.unwrap();
        assert_eq!(late, *b"aaaa", "it comes when the line is healed");
        balancer.set_fault(LineFault::Closed);
        assert!(ask(&mut client).await.is_err());
    }
}
