//! Free loopback ports.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};

/// Ports below those from which the kernel takes the near end of outgoing connections (32768 and
/// up). A port from there, as binding port 0 gives, is lost when any client takes it while the
/// server restarts; a client that keeps reconnecting to it can even end up connected to itself.
const PORT_MIN: u16 = 20_000;
const PORT_COUNT: u16 = 12_000;

/// A port that nothing listens on. Someone else may take it before the server does.
pub fn free() -> Result<u16> {
    // A random start keeps test processes apart, counting on keeps the threads of one apart.
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU64::new(random() >> 1));
    for _ in 0..PORT_COUNT {
        let offset = next.fetch_add(1, Ordering::Relaxed) % u64::from(PORT_COUNT);
        let port = PORT_MIN + u16::try_from(offset).expect("the count of ports fits");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port is free between {PORT_MIN} and {}", PORT_MIN + PORT_COUNT)
}

/// Whether something accepts connections on this port.
pub(super) fn accepts(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Random enough for names and for passwords of private servers, without a dependency.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
