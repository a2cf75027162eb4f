//! A process that is told to stop. `cluster/rolling_restart.rs` restarts all processes under load.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Result, ensure};

use crate::process::{Installation, eventually};

/// Asks on a connection that stays open, and returns the head of the answer in lower case.
fn ask(connection: &mut TcpStream) -> Result<String> {
    connection.write_all(b"GET /health/live HTTP/1.1\r\nhost: urr\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut buffer = [0; 1_024];
    while !answer.ends_with(b"}") {
        let count = connection.read(&mut buffer)?;
        ensure!(count > 0, "the connection ended");
        answer.extend_from_slice(&buffer[..count]);
    }
    Ok(String::from_utf8(answer)?.to_lowercase())
}

/// Clients with a pool of connections do not look at health: they are told by their answers.
#[test]
fn a_process_that_is_not_ready_serves_on_and_ends_connections_with_their_answers() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("URR_SERVER_NOT_READY_SECONDS", "600");
    let urr = installation.up(&[])?;
    let mut pooled = TcpStream::connect(("127.0.0.1", urr.port))?;
    assert!(!ask(&mut pooled)?.contains("connection: close"));
    urr.signal("TERM")?;
    eventually("it says that it is not ready", || {
        let reply = urr.get("/health/ready")?;
        Ok(reply.status == 503 && reply.json()?["status"] == "draining")
    })?;
    assert_eq!(urr.get("/api/artists")?.status, 200, "it serves on");
    let last = ask(&mut pooled)?;
    assert!(last.starts_with("http/1.1 200") && last.contains("connection: close"), "{last}");
    assert_eq!(pooled.read(&mut [0; 1])?, 0, "it is closed after the answer");
    // The second signal does not wait for the rest of the time.
    urr.signal("TERM")?;
    let ended = urr.await_end()?.succeeded()?;
    assert!(ended.stderr.contains("second stop signal"), "{}", ended.stderr);
    Ok(())
}
