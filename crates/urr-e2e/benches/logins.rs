//! A storm of logins, and what it does to those who do not log in.
//!
//! The whole system runs in one process on SQLite: gateway, accounts with real password hashes,
//! catalogue. A thousand logins come each second, from many addresses: of every 25 one is right,
//! the others name nobody, which takes as long. They come when they are due, whether the ones
//! before were answered or not. Beside them somebody looks at the artists, before and during.
//!
//! A password takes tens of milliseconds of a processor on purpose, so most of the storm has to be
//! sent away; what counts is that everybody is answered and that the catalogue stays fast. The
//! clients share the processors with all that. Proofs of work are not asked for: they would turn
//! most of the storm away before its passwords are compared.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::Request;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use urr::DataFolder;
use urr::compose::{ClockAndIds, System};
use urr::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};
use urr_auth::solve_challenge;
use urr_service::serve;
use urr_test::figures::{BenchFigure, RatioTarget};

const LOGINS_PER_SECOND: u32 = 1_000;
const STORM: Duration = Duration::from_secs(10);
const CONNECTIONS: u32 = 512;
const LOOKS_PER_SECOND: u32 = 100;
const LOOKERS: u32 = 8;
/// Every 25th login is of an account, so each account logs in ten times: as often as it may.
const ACCOUNTS: u32 = 40;
const ACCOUNT_EVERY: u32 = 25;
const PASSWORD: &str = "seven blue umbrellas";
const ANSWER_MAX: Duration = Duration::from_secs(20);
const P99_RATIO_MAX: f64 = 3.0;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = configure(folder.path().join("data"));
    let server = Runtime::new().expect("threads can be started");
    let clients = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let clients = clients.expect("threads can be started");
    let (system, address) = server.block_on(start(&config));

    // Twice, and the first time does not count: it is when everything is read for the first time.
    clients.block_on(ask_all(address, LOOKS_PER_SECOND, LOOKERS, look));
    let before = clients.block_on(ask_all(address, LOOKS_PER_SECOND, LOOKERS, look));
    let (storm, during) = clients.block_on(async {
        let storm = ask_all(address, LOGINS_PER_SECOND, CONNECTIONS, login);
        tokio::join!(storm, ask_all(address, LOOKS_PER_SECOND, LOOKERS, look))
    });
    println!("logins            {:>8} in {} s", storm.len(), STORM.as_secs());
    let mut statuses: BTreeMap<u16, u32> = BTreeMap::new();
    for answer in &storm {
        *statuses.entry(answer.status).or_default() += 1;
    }
    for (status, count) in statuses {
        let name =
            if status == 0 { "not answered".to_owned() } else { format!("answered {status}") };
        println!("{name:<18}{count:>8}");
    }
    println!("p99 of those      {:>8.1} ms", p99_millis(&storm));
    let failed = before.iter().chain(&during).filter(|answer| answer.status != 200).count();
    println!("looks that failed {failed:>8}");
    let (before, during) = (p99_millis(&before), p99_millis(&during));
    let figure = BenchFigure {
        name: "p99 of polls during a storm of logins",
        value: during,
        unit: "ms",
        baseline: "before",
        baseline_value: before,
        target: RatioTarget::AtMost(P99_RATIO_MAX),
    };
    figure.show();
    server.block_on(system.stop());
}

fn configure(data_dir: PathBuf) -> Config {
    let overrides =
        CommandLineOverrides { data_dir: Some(data_dir), ..CommandLineOverrides::default() };
    let args = LoadOptions { mode: LoadMode::Embedded, config_file: None, overrides };
    let variables = [
        ("URR_GATEWAY_TRUSTED_PROXIES", "127.0.0.1/32"),
        ("URR_AUTH_BOT_CHECK_BITS", "4"),
        ("URR_AUTH_BOT_CHECK_LOGIN", "never"),
    ];
    let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    config::load(args, variables).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The whole system behind a port, with accounts.
async fn start(config: &Config) -> (System, SocketAddr) {
    let data = DataFolder::lock(&config.data.dir).expect("the folder is ours");
    let system =
        System::start(config, &urr::role::ProcessRole::all(), ClockAndIds::system(), Some(data))
            .await;
    let system = system.unwrap_or_else(|error| panic!("the system does not start: {error:#}"));
    let public = system.public.clone().expect("the gateway runs here");
    for number in 0..ACCOUNTS {
        register(&public, number).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(serve(listener, public, CancellationToken::new(), Duration::ZERO));
    (system, address)
}

/// Opens the account with this number, from an address of its own.
async fn register(public: &Router, number: u32) {
    let call = async |method, path: &str, proof: &str, body: String| {
        let address = SocketAddr::from((address(number).to_be_bytes(), 1_024));
        let request = Request::builder().method(method).uri(path).extension(ConnectInfo(address));
        let request = request.header("content-type", "application/json");
        let request = request.header("x-proof-of-work", proof).body(Body::from(body));
        let Ok(response) = public.clone().oneshot(request.expect("a request")).await;
        assert!(response.status().is_success(), "{path} answers {}", response.status());
        let body = to_bytes(response.into_body(), 1 << 20).await.expect("an answer to its end");
        serde_json::from_slice::<Value>(&body).expect("an answer in JSON")
    };
    let task = call("GET", "/api/auth/challenge?for=register", "", String::new()).await;
    let bits = task["difficulty"].as_u64().and_then(|bits| u8::try_from(bits).ok());
    let challenge = task["challenge"].as_str().expect("work is asked for");
    let proof = solve_challenge(challenge, bits.expect("of some difficulty"));
    let terms = call("GET", "/api/auth/terms", "", String::new()).await["terms"].take();
    let required = terms.as_array().into_iter().flatten().filter(|it| it["required"] == true);
    let agreed: Vec<Value> = required
        .map(|it| json!({ "type": it["type"], "version": it["version"], "agreed": true }))
        .collect();
    let body = json!({
        "email": email(number), "password": PASSWORD, "name": "김팬", "phone": "010-1234-5678",
        "terms": agreed,
    });
    call("POST", "/api/auth/register", &proof, body.to_string()).await;
}

fn email(number: u32) -> String {
    format!("fan{number}@example.com")
}

/// Where the request with this number comes from, in 10.0.0.0/8.
fn address(number: u32) -> u32 {
    0x0a00_0000 + number
}

/// The login with this number. An address logs in a few times at most.
fn login(number: u32) -> String {
    let who = match number % ACCOUNT_EVERY {
        0 => email(number / ACCOUNT_EVERY % ACCOUNTS),
        _ => format!("nobody{number}@example.com"),
    };
    let from = Ipv4Addr::from_bits(address(ACCOUNTS + number % 5_000));
    let body = json!({ "email": who, "password": PASSWORD }).to_string();
    let head = "POST /api/auth/login HTTP/1.1\r\nhost: localhost\r\n";
    let kind = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    format!("{head}{kind}x-forwarded-for: {from}\r\n\r\n{body}")
}

/// A look at the artists.
fn look(_number: u32) -> String {
    "GET /api/artists HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned()
}

/// An answer, and how long after it was due it came. Status 0 is none at all.
struct Answered {
    status: u16,
    took: Duration,
}

/// Sends requests at a fixed rate over several connections, for the duration of the storm.
async fn ask_all(
    address: SocketAddr,
    per_second: u32,
    connections: u32,
    request: fn(u32) -> String,
) -> Vec<Answered> {
    let begun = Instant::now();
    let next = Arc::new(AtomicU32::new(0));
    let mut all = JoinSet::new();
    for _ in 0..connections {
        let next = Arc::clone(&next);
        all.spawn(async move {
            let mut stream = TcpStream::connect(address).await.expect("the server listens");
            let mut answers = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let due = Duration::from_secs(1) * number / per_second;
                if due >= STORM {
                    return answers;
                }
                let due = begun + due;
                sleep_until(due).await;
                let asked = ask(&mut stream, request(number));
                let status = timeout(ANSWER_MAX, asked).await.unwrap_or(0);
                answers.push(Answered { status, took: due.elapsed() });
            }
        });
    }
    all.join_all().await.into_iter().flatten().collect()
}

/// Asks, reads the whole answer, and gives its status.
async fn ask(stream: &mut TcpStream, request: String) -> u16 {
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut answer = Vec::new();
    loop {
        if let Some(status) = whole_answer(&answer) {
            return status;
        }
        let read = stream.read_buf(&mut answer).await.expect("the server answers");
        if read == 0 {
            return 0;
        }
    }
}

/// The status of an answer, if it is there to its end.
fn whole_answer(bytes: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?;
    let is_whole = length.parse().is_ok_and(|length: usize| body.len() >= length);
    head.get(9..12)?.parse().ok().filter(|_| is_whole)
}

fn p99_millis(answers: &[Answered]) -> f64 {
    let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
    times.sort_unstable();
    times.get(times.len() * 99 / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}
