//! `TestApp`: the whole system in this process, with data, time and ids of its own and no ports.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use tempfile::TempDir;
use tower::ServiceExt;
use urr::DataFolder;
use urr::compose::{ClockAndIds, System};
use urr::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};
use urr_auth::{BotCheckPurpose, solve_challenge};
use urr_bus::Bus;
use urr_contracts::clients::AuthClient;
use urr_contracts::internal::auth::GetAccountLink;
use urr_kernel::{CallContext, Clock, IdSource, Timestamp, Uuid};
use urr_service::token::{self, AccessClaims, EntryClaims, TokenFacts, TokenKey};
use urr_service::{Caller, Upstream, UserRole};
use urr_storage::{Db, StorageError};

use urr_test::consistency::ServiceTables;
use urr_test::eventually;
use urr_test::servers::{self, KafkaServer, PostgresServer, RedisServer, Server};

/// Tests begin on a morning in Seoul.
const START: &str = "2026-11-15T00:30:00Z";
const SEED: u64 = 20_261_115;
/// The difficulty of proofs of work in tests: low.
const WORK_BITS: &str = "4";
/// How often it is checked whether everything is finished.
const SETTLE_CHECKS_MAX: u32 = 600;
const SETTLE_STEP: Duration = Duration::from_millis(50);
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// On which engines a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// SQLite and the embedded bus, as `urr up`.
    Embedded,
    /// PostgreSQL, Kafka and Redis, as `urr serve` with every role.
    Distributed,
}

/// The running system. Its clock stands still unless the test moves it.
pub struct TestApp {
    pub clock: Clock,
    pub ids: IdSource,
    /// Signs access tokens as the accounts do.
    token_key: TokenKey,
    /// Signs entry tokens as the waiting room does.
    entry_key: TokenKey,
    config: Config,
    system: System,
    /// Kept until the end: dropping them removes the data and ends the servers.
    _folder: TempDir,
    servers: Option<(PostgresServer, Mutex<KafkaServer>, RedisServer)>,
}

impl TestApp {
    pub async fn embedded() -> TestApp {
        TestApp::start(Deployment::Embedded).await.expect("the embedded form needs nothing")
    }

    /// `None` when the servers of the form are not installed; with `CI=true` that is a failure.
    pub async fn start(form: Deployment) -> Option<TestApp> {
        let mut variables = vec![
            ("URR_AUTH_BOT_CHECK_BITS", WORK_BITS.to_owned()),
            // A hundred payments at once shall reach the payment service. The limits have tests of
            // their own in the gateway.
            ("URR_GATEWAY_RATE_LIMIT_PAY_RPM", "1000".to_owned()),
            ("URR_GATEWAY_RATE_LIMIT_PAY_TARGET_RPM", "1000".to_owned()),
        ];
        let mut own_servers = None;
        if form == Deployment::Distributed {
            for server in [Server::Postgres, Server::Kafka, Server::Redis] {
                if !servers::available(server).expect("the servers are installed") {
                    return None;
                }
            }
            // Servers of its own: logins and topics are shared by everyone on a server.
            let postgres = PostgresServer::start().expect("PostgreSQL starts");
            let kafka = KafkaServer::start().expect("Kafka starts");
            variables.push(("URR_DATABASE_URL", postgres.url().to_owned()));
            variables.push(("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap().to_owned()));
            let redis = RedisServer::start().expect("Redis starts");
            variables.push(("URR_REDIS_URL", redis.url().to_owned()));
            own_servers = Some((postgres, Mutex::new(kafka), redis));
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = configure(folder.path().join("data"), variables);
        let clock = Clock::manual(START.parse::<Timestamp>().expect("a valid time"));
        let ids = IdSource::seeded(clock.clone(), SEED);
        for role in urr::role::ProcessRole::ALL {
            urr::migrate_storage(&config, role, clock.now()).expect("the tables can be made");
        }
        Some(TestApp {
            token_key: TokenKey::new(&config.auth.jwt_key()),
            entry_key: TokenKey::new(config.gateway.entry_token_secret.expose().as_bytes()),
            system: start_system(&config, &clock, &ids).await,
            clock,
            ids,
            config,
            _folder: folder,
            servers: own_servers,
        })
    }

    /// Stops in order and starts again on the same data.
    pub async fn restart(self) -> TestApp {
        let TestApp { system, config, clock, ids, .. } = self;
        system.stop().await;
        let system = start_system(&config, &clock, &ids).await;
        TestApp { system, config, clock, ids, ..self }
    }

    /// A request as a client on the network would send it, to the gateway.
    pub fn request(&self, method: Method, path: &str) -> TestRequest<'_> {
        let (path, headers) = (path.to_owned(), HeaderMap::new());
        TestRequest { app: self, method, path, headers, body: Vec::new() }
    }

    pub fn get(&self, path: &str) -> TestRequest<'_> {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> TestRequest<'_> {
        self.request(Method::POST, path)
    }

    /// The proof of work for registering or logging in, for the header `x-proof-of-work`.
    pub async fn proof(&self, purpose: BotCheckPurpose) -> String {
        let path = format!("/api/auth/challenge?for={}", purpose.as_str());
        let task = self.get(&path).send().await.json();
        let difficulty = task["difficulty"].as_u64().and_then(|bits| u8::try_from(bits).ok());
        let challenge = task["challenge"].as_str();
        match challenge.zip(difficulty) {
            Some((challenge, difficulty)) => solve_challenge(challenge, difficulty),
            None => panic!("no work is asked for: {task}"),
        }
    }

    /// Opens an account, with the work done and the terms agreed to.
    pub async fn register(&self, email: &str, password: &str) -> TestResponse {
        let terms = self.get("/api/auth/terms").send().await.json()["terms"].take();
        let required = terms.as_array().into_iter().flatten().filter(|it| it["required"] == true);
        let agreed = required.map(|it| {
            let (kind, version) = (&it["type"], &it["version"]);
            serde_json::json!({ "type": kind, "version": version, "agreed": true })
        });
        let body = serde_json::json!({
            "email": email, "password": password, "name": "김팬", "phone": "010-1234-5678",
            "terms": agreed.collect::<Vec<_>>(),
        });
        let proof = self.proof(BotCheckPurpose::Register).await;
        let call = self.post("/api/auth/register").header("x-proof-of-work", &proof);
        call.json(&body).send().await
    }

    /// Verifies the address of the account that was opened last, by the link of its mail.
    pub async fn verify_email(&self) {
        let found = self.database("auth").read(|tx| {
            let sql = "select id from account_links where kind = 'verify_email' \
                       order by created_at desc, id desc limit 1";
            tx.query_one(sql, &[], |row| row.get::<Uuid>("id"))
        });
        let id = found.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        let auth = AuthClient::new(self.internal(Caller::Mail, "auth"));
        let context = CallContext::root(self.ids.next_id());
        let link = auth.call(GetAccountLink { id }, &context).await.expect("it is in force");
        let body = serde_json::json!({ "token": link.token });
        let verified = self.post("/api/auth/email/verify").json(&body).send().await;
        assert_eq!(verified.status, StatusCode::OK, "{}", verified.json());
    }

    /// Adds the demo data.
    pub async fn seed_demo(&self) {
        self.system.seed_demo().await.expect("the demo data can be added");
    }

    /// Admits a user through the waiting room; returns the entry token of the slot.
    pub async fn admit(&self, user_id: Uuid, event_id: Uuid) -> String {
        self.await_room(event_id).await;
        let path = format!("/api/queue/check/{event_id}");
        let told = self.post(&path).as_person(user_id, UserRole::User).send().await.json();
        let token = told["entryToken"].as_str();
        token.unwrap_or_else(|| panic!("not let in: {told}")).to_owned()
    }

    /// Waits until the queue service knows an event.
    pub async fn await_room(&self, event_id: Uuid) {
        let queue = self.system.queue().expect("the waiting rooms are here");
        eventually("the waiting room knows the event", async || {
            queue.load().await.expect("the tables can be read");
            let crowd = self.get(&format!("/api/queue/crowd/{event_id}")).send().await;
            (crowd.status == StatusCode::OK).then_some(())
        })
        .await;
    }

    /// An entry token with the key of the waiting room and any content.
    pub fn forge_entry(&self, user_id: Uuid, event_id: Uuid, slot_id: Uuid) -> String {
        let issue = TokenFacts {
            subject: event_id.to_string(),
            id: slot_id,
            issued_at: self.clock.now(),
            lifetime: Duration::from_hours(12),
        };
        self.entry_key.sign(token::ENTRY, &issue, &EntryClaims { user_id })
    }

    /// The slot that an entry token names.
    pub fn slot_of(&self, entry_token: &str) -> Uuid {
        let read = token::read_vouched::<EntryClaims>(token::ENTRY, entry_token, self.clock.now());
        read.expect("a token of the waiting room").id
    }

    /// A service as another one of ours sees it.
    pub fn internal(&self, caller: Caller, service: &'static str) -> Upstream {
        let found = self.system.services.iter().find(|known| known.name() == service);
        let found = found.expect("every service runs here");
        Upstream::local(caller, service, found, &self.system.kit)
    }

    /// What the internal listener shows at `/metrics`.
    pub fn metrics(&self) -> String {
        self.system.kit.metrics.text()
    }

    /// The bus, to read domain events and to publish wrong ones.
    pub fn bus(&self) -> &Bus {
        self.system.bus().expect("the bus is here")
    }

    /// The database of a service.
    pub fn database(&self, service: &str) -> &Db {
        self.system.database(service).expect("every service runs here")
    }

    /// The tables that have to agree in the end.
    pub fn service_tables(&self) -> ServiceTables {
        let database = |service| self.database(service).clone();
        ServiceTables {
            ticket: database("ticket"),
            payment: database("payment"),
            stats: database("stats"),
        }
    }

    /// Waits until everything is finished and all tables agree. The clock moves on meanwhile.
    pub async fn settle(&self) {
        let (tables, mut differences) = (self.service_tables(), Vec::new());
        for _ in 0..SETTLE_CHECKS_MAX {
            differences = tables.differences().await;
            if differences.is_empty() {
                return;
            }
            self.clock.advance(SETTLE_STEP);
            tokio::time::sleep(SETTLE_STEP).await;
        }
        panic!("the tables never agree: {differences:#?}");
    }

    /// The broker of the distributed form, to stop it and start it again.
    pub fn kafka(&self) -> MutexGuard<'_, KafkaServer> {
        let (_, kafka, _) = self.servers.as_ref().expect("the distributed form has one");
        kafka.lock().expect("nobody panics with it")
    }

    /// Stops in order, as a process does.
    pub async fn stop(self) {
        self.system.stop().await;
    }
}

async fn start_system(config: &Config, clock: &Clock, ids: &IdSource) -> System {
    let world = ClockAndIds { clock: clock.clone(), ids: ids.clone() };
    let data = DataFolder::lock(&config.data.dir).expect("the folder is ours");
    let system = System::start(config, &urr::role::ProcessRole::all(), world, Some(data)).await;
    system.unwrap_or_else(|error| panic!("the system does not start: {error:#}"))
}

fn configure(data_dir: PathBuf, variables: Vec<(&str, String)>) -> Config {
    let overrides =
        CommandLineOverrides { data_dir: Some(data_dir), ..CommandLineOverrides::default() };
    let args = LoadOptions { mode: LoadMode::Embedded, config_file: None, overrides };
    let variables = variables.into_iter();
    let environment = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    config::load(args, environment).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A request that is being built.
pub struct TestRequest<'a> {
    app: &'a TestApp,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl TestRequest<'_> {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a test's header name is valid");
        self.headers.append(name, HeaderValue::from_str(value).expect("and so is its value"));
        self
    }

    pub fn json(mut self, body: &serde_json::Value) -> Self {
        self.body = body.to_string().into_bytes();
        self.header(header::CONTENT_TYPE.as_str(), "application/json")
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends it as a user who is logged in.
    pub fn as_user(self, role: UserRole) -> Self {
        self.as_person(Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_00aa), role)
    }

    /// Sends it as this person, with the entry token of [`TestApp::admit`].
    pub fn as_admitted(self, user_id: Uuid, entry_token: &str) -> Self {
        self.as_person(user_id, UserRole::User).header("x-queue-entry-token", entry_token)
    }

    /// Sends it as this user, logged in.
    pub fn as_person(self, user_id: Uuid, role: UserRole) -> Self {
        let app = self.app;
        let issue = TokenFacts {
            subject: user_id.to_string(),
            id: app.ids.next_id(),
            issued_at: app.clock.now(),
            lifetime: Duration::from_mins(30),
        };
        let family_id = app.ids.next_id();
        let (email, email_verified) = ("fan@example.com".to_owned(), true);
        let claims = AccessClaims { email, role, family_id, email_verified };
        let token = app.token_key.sign(token::ACCESS, &issue, &claims);
        self.header(header::AUTHORIZATION.as_str(), &format!("Bearer {token}"))
    }

    pub fn as_admin(self) -> Self {
        self.as_user(UserRole::Admin)
    }

    pub async fn send(self) -> TestResponse {
        let TestRequest { app, method, path, headers, body } = self;
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().expect("a test's path is valid");
        *request.headers_mut() = headers;
        let public = app.system.public.clone().expect("the gateway runs here");
        let Ok(response) = public.oneshot(request).await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, ANSWER_BYTES_MAX).await.expect("the answer ends well");
        TestResponse { status: parts.status, headers: parts.headers, bytes: bytes.to_vec() }
    }
}

/// A response that was read to its end.
#[derive(Clone, Debug)]
pub struct TestResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl TestResponse {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// Status and code of a refusal, for one assertion.
    pub fn refusal(&self) -> (u16, String) {
        let code = self.json()["code"].as_str().unwrap_or_default().to_owned();
        (self.status.as_u16(), code)
    }
}
