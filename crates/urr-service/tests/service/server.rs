//! Listening and ending: drains, graces, slow clients and clients that leave.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use urr_service::{Health, Readiness, ServerStop, serve, serve_until};

use crate::fixture::{PATIENT, TestService, raw, soon};

const GATE: &str = "GET /gate HTTP/1.1\r\nhost: x\r\n\r\n";
const WAIT: &str = "GET /wait HTTP/1.1\r\nhost: x\r\n\r\n";

struct Listening {
    address: SocketAddr,
    shutdown: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
}

async fn listen(fixture: &TestService, grace: Duration) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listen_on(listener, fixture, grace)
}

fn listen_on(listener: TcpListener, fixture: &TestService, grace: Duration) -> Listening {
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let router = fixture.service.network_router(&fixture.credentials);
    let server = tokio::spawn(serve(listener, router, shutdown.clone(), grace));
    Listening { address, shutdown, server }
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_and_takes_nothing_new() {
    let fixture = TestService::open();
    let Listening { address, shutdown, server } = listen(&fixture, PATIENT).await;
    let idle = TcpStream::connect(address).await.unwrap();
    let begun = Instant::now();
    let in_flight = tokio::spawn(raw(address, GATE));
    soon(fixture.state.waiting.notified()).await;
    shutdown.cancel();
    soon(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    assert!(!server.is_finished(), "it waits for the request in flight");
    fixture.state.open_gate.notify_one();
    let answer = soon(in_flight).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("through the gate"), "{answer}");
    assert!(soon(server).await.unwrap().is_ok());
    // An idle connection, and the one that was in flight, are closed at once: without that they
    // would live until the server stops waiting for their next headers.
    assert!(begun.elapsed() < Duration::from_secs(10));
    drop(idle);
}

/// Clients keep connections, and a balancer that hears of the trouble moves only new ones.
#[tokio::test]
async fn a_process_that_cannot_work_ends_its_connections_with_their_answers() {
    for (outcome, expected) in [(Err("gone".to_owned()), true), (Ok(()), false)] {
        let readiness = Readiness::default();
        let health = Health::new("queue", readiness.clone()).check("storage", move || {
            let outcome = outcome.clone();
            async { outcome }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = ServerStop { readiness, ..ServerStop::default() };
        tokio::spawn(serve_until(listener, health.router(), stop, Duration::ZERO));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = vec![0; 4_096];
        let count = soon(stream.read(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]).to_lowercase();
        assert_eq!(answer.contains("connection: close"), expected, "{answer}");
    }
}

#[tokio::test]
async fn what_outlasts_the_grace_is_cut_off() {
    let fixture = TestService::open();
    let grace = Duration::from_millis(20);
    let Listening { address, shutdown, server } = listen(&fixture, grace).await;
    let in_flight = tokio::spawn(raw(address, WAIT));
    soon(fixture.state.waiting.notified()).await;
    shutdown.cancel();
    assert!(soon(server).await.unwrap().is_ok());
    soon(fixture.state.dropped.notified()).await;
    assert_eq!(soon(in_flight).await.unwrap(), "", "no half answer");
}

#[tokio::test]
async fn a_client_that_disconnects_ends_the_work() {
    let fixture = TestService::open();
    let Listening { address, .. } = listen(&fixture, PATIENT).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(WAIT.as_bytes()).await.unwrap();
    soon(fixture.state.waiting.notified()).await;
    drop(client);
    soon(fixture.state.dropped.notified()).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_ends_its_headers_is_dropped() {
    let fixture = TestService::open();
    let Listening { address, .. } = listen(&fixture, PATIENT).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET /scripted HTTP/1.1\r\nx-slow: ").await.unwrap();
    let begun = Instant::now();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 15);
    let answer = String::from_utf8(answer).unwrap();
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(fixture.state.hits(), 0);
}

#[tokio::test]
async fn bytes_that_are_not_http_do_not_trouble_the_server() {
    let fixture = TestService::open();
    let Listening { address, .. } = listen(&fixture, PATIENT).await;
    let answer = raw(address, "\u{16}\u{3}\u{1} this is TLS\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let answer =
        raw(address, "GET /scripted HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_client_that_sends_too_much_gets_to_read_why() {
    let fixture = TestService::open();
    // Small buffers: the client is still sending when the server has read enough to refuse.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(8).unwrap();
    let Listening { address, .. } = listen_on(listener, &fixture, PATIENT);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(4_096).unwrap();
    let mut client = socket.connect(address).await.unwrap();
    let head = "POST /holds HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 399000";
    let sent = format!("{head}\r\n\r\n{}", " ".repeat(399_000));
    soon(client.write_all(sent.as_bytes())).await.unwrap();
    let mut answer = String::new();
    soon(client.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("BODY_TOO_LARGE"), "{answer}");
}
