//! A whole rush against a server that answers slowly.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use urr_kernel::Uuid;

use crate::accounts::FanAccount;
use crate::arrivals::Arrivals;
use crate::behaviour::Behaviour;
use crate::client::Site;
use crate::recorder::LiveFigures;
use crate::report::{RushEnding, RushReport};
use crate::run::{RushPlan, run};

const FANS: u32 = 40;
const EVENT: Uuid = Uuid::from_u128(7);

/// Answers one request after the other, and takes this long for each.
async fn slow_server(takes: Duration, answer: fn(&str) -> Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let turn = Arc::new(Mutex::new(()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_all(stream, Arc::clone(&turn), takes, answer));
        }
    });
    format!("http://{address}")
}

async fn answer_all(
    mut stream: TcpStream,
    turn: Arc<Mutex<()>>,
    takes: Duration,
    answer: fn(&str) -> Value,
) {
    let mut buffer = Vec::new();
    loop {
        let mut bytes = [0; 4_096];
        match stream.read(&mut bytes).await {
            Ok(count) if count > 0 => buffer.extend_from_slice(&bytes[..count]),
            _ => return,
        }
        // The fans of this test send no bodies.
        while let Some(end) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            buffer.drain(..end + 4);
            let body = answer(head.split(' ').nth(1).unwrap()).to_string();
            if !head.contains("/api/events/") && !head.contains("/crowd/") {
                let _turn = turn.lock().await;
                tokio::time::sleep(takes).await;
            }
            let length = body.len();
            let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
            if stream.write_all(response.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

fn answer(path: &str) -> Value {
    match path {
        path if path.starts_with("/api/events/") => json!({ "event": { "capacity": 10 } }),
        path if path.starts_with("/api/queue/check/") => json!({ "status": "ended" }),
        _ => json!({}),
    }
}

/// Everybody waits, and nothing is left.
fn sold_out_answer(path: &str) -> Value {
    match path {
        path if path.starts_with("/api/events/") => json!({ "event": { "capacity": 10 } }),
        path if path.starts_with("/api/queue/crowd/") => json!({
            "waiting": FANS, "active": 0, "threshold": 10, "admittedTotal": 0, "soldOut": true,
        }),
        _ => json!({ "status": "waiting", "nextPoll": 60, "number": 1 }),
    }
}

fn plan(url: &str) -> RushPlan {
    let account = |number| FanAccount { user_id: Uuid::from_u128(number), token: "t".to_owned() };
    RushPlan {
        site: Site::parse(url).unwrap(),
        event_id: EVENT,
        accounts: (0..u128::from(FANS)).map(account).collect(),
        arrivals: Arrivals::Burst(Duration::from_millis(10)),
        behaviour: Behaviour { programs: 0.0, transfers: 0.0, ..Behaviour::default() },
        seed: 1,
        // One at a time: a tool that counts from the sending sees `takes`, however long fans wait.
        connections: 1,
        addresses: 1,
        time_max: Duration::from_secs(60),
        until_sold_out: false,
    }
}

async fn rehearse(takes: Duration) -> RushReport {
    let url = slow_server(takes, answer).await;
    run(plan(&url), pending(), |_| {}).await.unwrap()
}

/// Nobody waits for those who wait in vain. Without the option the rush goes on.
#[tokio::test]
async fn a_rush_ends_when_it_is_sold_out_if_that_was_asked_for() {
    let url = slow_server(Duration::ZERO, sold_out_answer).await;
    let ended = async |until_sold_out| {
        let time_max = Duration::from_secs(6);
        let plan = RushPlan { time_max, until_sold_out, ..plan(&url) };
        run(plan, pending(), |_| {}).await.unwrap()
    };
    let (with, without) = tokio::join!(ended(true), ended(false));
    assert_eq!((with.ended, without.ended), (RushEnding::SoldOut, RushEnding::TimeOver));
    let fans = Some(&u64::from(FANS));
    assert_eq!(with.outcomes.get("waiting when it was sold out"), fans);
    assert_eq!(without.outcomes.get("unfinished"), fans);
}

#[tokio::test]
async fn a_rush_that_is_stopped_has_a_report() {
    let url = slow_server(Duration::ZERO, sold_out_answer).await;
    let stop = tokio::time::sleep(Duration::from_millis(500));
    let report = run(plan(&url), stop, |_| {}).await.unwrap();
    assert_eq!(report.ended, RushEnding::Interrupted);
    assert!(report.seconds_total < 5.0, "{}", report.seconds_total);
    assert!(report.operations.iter().any(|it| it.name == "check" && it.done > 0));
    assert!(report.summary().contains("Ended early: it was interrupted."));
}

/// Fans who wait for a slow server do not excuse it: their wait counts from their wish.
#[tokio::test]
async fn a_slow_server_is_seen_to_be_slow() {
    let check = |report: &RushReport| {
        let found = report.operations.iter().find(|it| it.name == "check").unwrap();
        (found.done, found.p50_ms, found.max_ms)
    };
    let takes = Duration::from_millis(25);
    let (done, p50_ms, max_ms) = check(&rehearse(takes).await);
    assert_eq!(done, u64::from(FANS));
    // The last of forty waits for all others: a second, and not 25 ms.
    let alone_ms = takes.as_secs_f64() * 1e3;
    assert!(p50_ms > 10.0 * alone_ms, "{p50_ms}");
    assert!(max_ms > 30.0 * alone_ms, "{max_ms}");
    let (_, _, fast_ms) = check(&rehearse(Duration::ZERO).await);
    assert!(fast_ms < max_ms / 2.0, "{fast_ms} is not fast");
}

/// How many connections are open, how many were at once, and how many there were in all.
#[derive(Default)]
struct OpenConnections {
    now: AtomicUsize,
    most: AtomicUsize,
    all: AtomicUsize,
}

/// A connection counts from its first request until its end is seen.
async fn count_connections(opened: Arc<OpenConnections>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let turn = Arc::new(Mutex::new(()));
        while let Ok((stream, _)) = listener.accept().await {
            let (turn, opened) = (Arc::clone(&turn), Arc::clone(&opened));
            tokio::spawn(async move {
                stream.readable().await.unwrap();
                let now = opened.now.fetch_add(1, Ordering::SeqCst) + 1;
                opened.most.fetch_max(now, Ordering::SeqCst);
                opened.all.fetch_add(1, Ordering::SeqCst);
                answer_all(stream, turn, Duration::from_millis(1), answer).await;
                opened.now.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    format!("http://{address}")
}

/// A machine has many addresses, and a limit of the connections of each would be none of all. A
/// connection that is closed for a fan of another address would be measured as a slow site.
#[tokio::test]
async fn all_fans_share_one_limit_of_connections() {
    for (connections, addresses) in [(8, 1), (8, 30)] {
        let opened = Arc::new(OpenConnections::default());
        let url = count_connections(Arc::clone(&opened)).await;
        let plan = RushPlan { connections, addresses, ..plan(&url) };
        let report = run(plan, pending(), |_| {}).await.unwrap();
        let checks = report.operations.iter().find(|it| it.name == "check").unwrap();
        assert_eq!((checks.done, checks.failed), (u64::from(FANS), 0));
        let most = opened.most.load(Ordering::SeqCst);
        assert_eq!(most, connections, "from {addresses} addresses");
        // A few more if the machine is so busy that idle ones are given up.
        let all = opened.all.load(Ordering::SeqCst);
        assert!(all < 2 * connections, "{all} were made from {addresses} addresses");
    }
}

/// Everybody waits for a second, and then it is over.
fn waiting_answer(path: &str) -> Value {
    match path {
        path if path.starts_with("/api/queue/status/") => json!({ "status": "ended" }),
        path => match sold_out_answer(path) {
            mut answer if path.starts_with("/api/queue/check/") => {
                answer["nextPoll"] = json!(1);
                answer
            }
            answer => answer,
        },
    }
}

/// A machine that is too busy to wake its fans does not make the server look quick.
#[tokio::test]
async fn a_fan_who_is_woken_too_late_wanted_to_act_earlier() {
    let poll_p50_ms = async |is_busy: bool| {
        let url = slow_server(Duration::ZERO, waiting_answer).await;
        let behaviour = Behaviour {
            programs: 0.0,
            transfers: 0.0,
            crowd_readers: 0.0,
            interruptions: 0.0,
            ..Behaviour::default()
        };
        let mut busy = false;
        // The test has one thread: nothing else runs while the screen is drawn.
        let show = |figures: &LiveFigures| {
            if is_busy && !busy && figures.arrived == u64::from(FANS) {
                busy = true;
                std::thread::sleep(Duration::from_secs(2));
            }
        };
        let report = run(RushPlan { behaviour, ..plan(&url) }, pending(), show).await.unwrap();
        let polls = report.operations.iter().find(|it| it.name == "poll").unwrap();
        assert_eq!(polls.done, u64::from(FANS));
        polls.p50_ms
    };
    let (quick, busy) = (poll_p50_ms(false).await, poll_p50_ms(true).await);
    assert!(busy > quick + 500.0, "{busy} ms and {quick} ms");
}
