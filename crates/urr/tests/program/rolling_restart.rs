//! A process that is stopped behind a load balancer: nobody notices.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::http_client::get;
use crate::process::{Installation, Running, eventually};

/// How often the balancer asks whether a process is ready.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
const CLIENTS: usize = 4;

/// Passes each connection on to the next process that said it is ready when it was last asked.
struct Balancer {
    port: u16,
    processes: Arc<Mutex<Vec<u16>>>,
    is_over: Arc<AtomicBool>,
}

impl Balancer {
    fn start(processes: Vec<u16>) -> Result<Balancer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let ready = Arc::new(Mutex::new(processes.clone()));
        let processes = Arc::new(Mutex::new(processes));
        let is_over = Arc::new(AtomicBool::new(false));
        let (asked, known, end) =
            (Arc::clone(&processes), Arc::clone(&ready), Arc::clone(&is_over));
        thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let ports = asked.lock().expect("nobody panics with it").clone();
                let is_ready =
                    |port: &u16| get(*port, "/health/ready").is_ok_and(|reply| reply.status == 200);
                *known.lock().expect("nobody panics with it") =
                    ports.into_iter().filter(is_ready).collect();
                thread::sleep(PROBE_INTERVAL);
            }
        });
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let ports = ready.lock().expect("nobody panics with it").clone();
                let port = ports.get(number % ports.len().max(1)).copied();
                if let (Ok(client), Some(port)) = (client, port) {
                    thread::spawn(move || pass_on(client, port));
                }
            }
        });
        Ok(Balancer { port, processes, is_over })
    }

    fn replace(&self, old: u16, new: u16) {
        for port in self
            .processes
            .lock()
            .expect("nobody panics with it")
            .iter_mut()
            .filter(|port| **port == old)
        {
            *port = new;
        }
    }
}

fn pass_on(client: TcpStream, port: u16) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        // The client waits for its answer with an open connection.
        io::copy(&mut from_client, &mut to_server).ok();
    });
    io::copy(&mut &server, &mut &client)?;
    client.shutdown(Shutdown::Both)
}

/// Restarts two processes one after the other under load. Returns how many requests failed, and how
/// many there were.
fn restart_both(not_ready_seconds: &str) -> Result<(u32, u32)> {
    let mut installations = [Installation::new()?, Installation::new()?];
    for installation in &mut installations {
        installation.set("URR_SERVER_NOT_READY_SECONDS", not_ready_seconds);
        // All requests come from one address.
        installation.set("URR_GATEWAY_RATE_LIMIT_GENERAL_RPM", "1000000");
    }
    let mut running: Vec<Running> =
        installations.iter().map(|one| one.up(&[])).collect::<Result<_>>()?;
    let balancer = Balancer::start(running.iter().map(|process| process.port).collect())?;
    let (failed, asked) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !balancer.is_over.load(Ordering::Relaxed) {
                    let is_ok = get(balancer.port, "/api/artists").is_ok_and(|r| r.status == 200);
                    asked.fetch_add(1, Ordering::Relaxed);
                    failed.fetch_add(u32::from(!is_ok), Ordering::Relaxed);
                }
            });
        }
        let restarted = (|| -> Result<()> {
            for installation in &installations {
                let process = running.remove(0);
                let old = process.port;
                process.stop("TERM")?.succeeded()?;
                let started = installation.up(&[])?;
                balancer.replace(old, started.port);
                let before = asked.load(Ordering::Relaxed);
                eventually("requests go on", || Ok(asked.load(Ordering::Relaxed) > before + 100))?;
                // Until the balancer knows the new one, the other one must stay.
                thread::sleep(3 * PROBE_INTERVAL);
                running.push(started);
            }
            Ok(())
        })();
        balancer.is_over.store(true, Ordering::Relaxed);
        restarted
    })?;
    Ok((failed.into_inner(), asked.into_inner()))
}

#[test]
fn processes_behind_a_balancer_are_restarted_without_a_failed_request() -> Result<()> {
    let (failed, asked) = restart_both("1")?;
    assert_eq!(failed, 0, "of {asked}");
    Ok(())
}

/// The control: without the warning the balancer sends requests to a listener that is closed.
#[test]
fn processes_that_stop_without_a_warning_fail_some_requests() -> Result<()> {
    let (failed, asked) = restart_both("0")?;
    assert!(failed > 0, "of {asked}");
    Ok(())
}

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
