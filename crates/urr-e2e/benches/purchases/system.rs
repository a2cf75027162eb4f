//! The whole system behind a port, with an event on sale.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use urr::DataFolder;
use urr::compose::{ClockAndIds, System};
use urr::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};
use urr::role::ProcessRole;
use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::token::{ACCESS, AccessClaims, TokenFacts, TokenKey};
use urr_service::{UserRole, serve};
use urr_test::eventually;
use urr_test::servers::{KafkaServer, PostgresServer, RedisServer};

use crate::growth::Growth;
use crate::tables::Tables;

const ROWS: u32 = 100;
const SEATS_PER_ROW: u32 = 500;
pub const SEATS: u32 = ROWS * SEATS_PER_ROW;
pub const PRICE: i64 = 99_000;
/// Longer than it takes to tell everybody of a round.
const PATIENCE: Duration = Duration::from_secs(120);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
const DAY: Duration = Duration::from_hours(24);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BenchDeployment {
    Embedded,
    Distributed,
}

impl BenchDeployment {
    pub fn name(self) -> &'static str {
        match self {
            BenchDeployment::Embedded => "Embedded: SQLite, the bus in a file, memory",
            BenchDeployment::Distributed => "PostgreSQL, Kafka, Redis",
        }
    }
}

pub struct BenchSystem {
    pub address: SocketAddr,
    pub event_id: Uuid,
    /// The first seat that was not requested yet.
    pub next_seat: Arc<AtomicU32>,
    pub tokens: Tokens,
    pub tables: Tables,
    pub growth: Growth,
    /// Of the administrator; only on PostgreSQL.
    pub postgres_url: Option<String>,
    system: System,
    /// Kept until the end: dropping them removes the data and ends the servers.
    _servers: Option<(PostgresServer, KafkaServer, RedisServer)>,
    _folder: TempDir,
}

/// What the database of a service did.
#[derive(Clone, Copy, Default)]
pub struct CommitCount {
    pub commits: u64,
    pub transactions: u64,
    pub statements: u64,
    /// Only on PostgreSQL.
    pub round_trips: u64,
}

impl CommitCount {
    fn join(self, other: CommitCount, count: impl Fn(u64, u64) -> u64) -> CommitCount {
        CommitCount {
            commits: count(self.commits, other.commits),
            transactions: count(self.transactions, other.transactions),
            statements: count(self.statements, other.statements),
            round_trips: count(self.round_trips, other.round_trips),
        }
    }

    pub fn plus(self, other: CommitCount) -> CommitCount {
        self.join(other, |one, more| one + more)
    }
}

/// By service.
pub type CommitCounts = BTreeMap<String, CommitCount>;

impl BenchSystem {
    pub fn open(runtime: &Runtime, form: BenchDeployment) -> Result<BenchSystem> {
        let folder = tempfile::tempdir()?;
        let mut variables = vec![
            // Everybody is admitted at once: waiting is not measured.
            ("URR_QUEUE_ADMISSION_BATCH_SIZE", "100000".to_owned()),
            // All buyers come from one address.
            ("URR_GATEWAY_RATE_LIMIT_USERS_PER_ADDRESS", "1000000".to_owned()),
        ];
        let (mut servers, mut postgres_url) = (None, None);
        if form == BenchDeployment::Distributed {
            let (postgres, kafka, redis) =
                (PostgresServer::start()?, KafkaServer::start()?, RedisServer::start()?);
            variables.push(("URR_DATABASE_URL", postgres.url().to_owned()));
            variables.push(("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap().to_owned()));
            variables.push(("URR_REDIS_URL", redis.url().to_owned()));
            postgres_url = Some(postgres.url().to_owned());
            servers = Some((postgres, kafka, redis));
        }
        let config = configure(folder.path().join("data"), variables);
        let data = DataFolder::lock(&config.data.dir)?;
        for role in ProcessRole::ALL {
            urr::migrate_storage(&config, role, Clock::System.now())?;
        }
        let tables = Tables::open(&config.data.dir, postgres_url.as_deref())?;
        let roles = ProcessRole::all();
        let starting = System::start(&config, &roles, ClockAndIds::system(), Some(data));
        let system = runtime.block_on(starting)?;
        let public = system.public.clone().context("the gateway runs here")?;
        let key = TokenKey::new(&config.auth.jwt_key());
        let tokens = Tokens { key, ids: IdSource::from_system_randomness(Clock::System) };
        let organiser = Organiser { public: &public, tokens: &tokens };
        let event_id = runtime.block_on(organiser.open_sale())?;
        let growing = Growth::begin(&config.data.dir, postgres_url.as_deref());
        let growth = runtime.block_on(growing)?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        runtime.spawn(serve(listener, public, CancellationToken::new(), Duration::ZERO));
        let (next_seat, _servers, _folder) = (Arc::default(), servers, folder);
        Ok(BenchSystem {
            address,
            event_id,
            next_seat,
            tokens,
            tables,
            growth,
            postgres_url,
            system,
            _servers,
            _folder,
        })
    }

    /// Waits until all events are handled, and returns how long that took.
    pub async fn settled(&self) -> Result<Duration> {
        let begun = Instant::now();
        while !self.tables.are_settled().await? {
            ensure!(begun.elapsed() < PATIENCE, "events are still on their way");
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(begun.elapsed())
    }

    /// What the databases of the services did so far, as operators see it.
    pub fn effort(&self) -> CommitCounts {
        let mut effort = CommitCounts::new();
        for line in self.system.kit.metrics.text().lines() {
            let read = |name: &str| {
                let (service, count) = line.strip_prefix(name)?.split_once("\"} ")?;
                Some((service.to_owned(), count.parse::<u64>().expect("a counter is whole")))
            };
            if let Some((service, count)) = read("urr_storage_commits_total{service=\"") {
                effort.entry(service).or_default().commits = count;
            }
            if let Some((service, count)) = read("urr_storage_committed_total{service=\"") {
                effort.entry(service).or_default().transactions = count;
            }
            if let Some((service, count)) = read("urr_storage_statements_total{service=\"") {
                effort.entry(service).or_default().statements = count;
            }
            if let Some((service, count)) = read("urr_storage_round_trips_total{service=\"") {
                effort.entry(service).or_default().round_trips = count;
            }
        }
        effort
    }

    /// Checks the sale: the tables, and the audit of the ledger.
    pub async fn check(&self, sold: usize) -> Result<()> {
        self.tables.check(i64::try_from(sold)?, PRICE).await?;
        let public = self.system.public.clone().context("the gateway runs here")?;
        let organiser = Organiser { public: &public, tokens: &self.tokens };
        let audit = organiser.ask("POST", "/api/admin/payments/audit", &Value::Null).await?;
        ensure!(audit["last"]["holds"] == true, "the books are wrong: {audit}");
        let asked = self.next_seat.load(Ordering::Relaxed).min(SEATS);
        ensure!(usize::try_from(asked)? == sold, "{asked} seats were asked for, {sold} sold");
        Ok(())
    }

    pub async fn close(self) {
        self.system.stop().await;
    }
}

pub fn difference(after: &CommitCounts, before: &CommitCounts) -> CommitCounts {
    let less = |(service, after): (&String, &CommitCount)| {
        let before = before.get(service).copied().unwrap_or_default();
        (service.clone(), after.join(before, |after, before| after - before))
    };
    after.iter().map(less).collect()
}

pub fn add(sum: &mut CommitCounts, more: &CommitCounts) {
    for (service, work) in more {
        let sum = sum.entry(service.clone()).or_default();
        *sum = sum.plus(*work);
    }
}

fn configure(data_dir: PathBuf, variables: Vec<(&str, String)>) -> Config {
    let overrides =
        CommandLineOverrides { data_dir: Some(data_dir), ..CommandLineOverrides::default() };
    let args = LoadOptions { mode: LoadMode::Embedded, config_file: None, overrides };
    let variables = variables.into_iter();
    let environment = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    config::load(args, environment).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Signs access tokens as the accounts do.
#[derive(Clone)]
pub struct Tokens {
    key: TokenKey,
    ids: IdSource,
}

impl Tokens {
    /// Of someone new.
    pub fn user(&self) -> String {
        self.sign(UserRole::User)
    }

    pub fn admin(&self) -> String {
        self.sign(UserRole::Admin)
    }

    fn sign(&self, role: UserRole) -> String {
        let issue = TokenFacts {
            subject: self.ids.next_id().to_string(),
            id: self.ids.next_id(),
            issued_at: Clock::System.now(),
            lifetime: Duration::from_mins(30),
        };
        let (email, family_id) = ("fan@example.com".to_owned(), self.ids.next_id());
        self.key.sign(
            ACCESS,
            &issue,
            &AccessClaims { email, role, family_id, email_verified: true },
        )
    }
}

/// An administrator, who needs no port.
struct Organiser<'a> {
    public: &'a Router,
    tokens: &'a Tokens,
}

impl Organiser<'_> {
    /// Makes a hall and an event in it, and waits until it can be booked.
    async fn open_sale(&self) -> Result<Uuid> {
        let venue = json!({ "name": "종합운동장", "address": "서울 올림픽로 25" });
        let venue = self.ask("POST", "/api/admin/venues", &venue).await?;
        let venue_id = venue["venue"]["id"].as_str().context("a venue")?;
        let grades = json!([{ "grade": "R", "fromRow": 1, "toRow": ROWS }]);
        let grid = json!({ "rows": ROWS, "seatsPerRow": SEATS_PER_ROW, "gradeMapping": grades });
        let halls = format!("/api/admin/venues/{venue_id}/halls");
        let hall = self.ask("POST", &halls, &json!({ "name": "주경기장", "grid": grid })).await?;
        let now = Clock::System.now();
        let event = json!({
            "title": "우르르 콘서트", "hallId": hall["hall"]["id"], "startsAt": now + 30 * DAY,
            "saleStartsAt": now - DAY, "saleEndsAt": now + 29 * DAY, "prices": { "R": PRICE },
        });
        let event = self.ask("POST", "/api/admin/events", &event).await?;
        let id = event["event"]["id"].as_str().context("an event")?.to_owned();
        for (path, is_ready) in [
            (format!("/api/events/{id}"), (|it| it["event"]["inventoryReady"] == true) as Look),
            (format!("/api/queue/crowd/{id}"), |it| it["phase"].is_string()),
        ] {
            eventually("the sale is open", async || {
                let seen = self.ask("GET", &path, &Value::Null).await;
                seen.is_ok_and(|seen| is_ready(&seen)).then_some(())
            })
            .await;
        }
        Ok(id.parse()?)
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let token = self.tokens.sign(UserRole::Admin);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {token}"))
            .body(Body::from(body))?;
        let Ok(response) = self.public.clone().oneshot(request).await;
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await?;
        let text = String::from_utf8_lossy(&body);
        ensure!(status.is_success(), "{path} answers {status}: {text}");
        Ok(serde_json::from_slice(&body)?)
    }
}

type Look = fn(&Value) -> bool;
