//! A gateway in front of services that record what reaches them and answer what a test needs.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use urr_gateway::{Gateway, GatewaySettings, RateLimiter, RateLimits, RevocationFeed};
use urr_kernel::{Clock, IdSource, Secret, Timestamp, Uuid};
use urr_service::token::{
    ACCESS, AccessClaims, ENTRY, EntryClaims, TokenFacts, TokenKey, TokenPurpose,
};
use urr_service::{
    Caller, HttpClient, Internal, InternalCredentials, MaybeUser, Metrics, RemoteService,
    RequestLimits, Service, ServiceKit, Upstream, UserRole, serve,
};
use utoipa_axum::router::OpenApiRouter;

pub const ACCESS_SECRET: &str = "the access secret of these tests, long enough";
pub const ENTRY_SECRET: &str = "the entry secret of these tests, long enough";
pub const EDGE_SECRET: &str = "the edge secret of these tests";
pub const ORIGIN: &str = "https://web.example";
pub const FAN: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_00aa);
pub const OTHER: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_00bb);
pub const EVENT: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_00ee);
pub const TIMEOUT: Duration = Duration::from_secs(20);

pub const SERVICES: [&str; 8] =
    ["auth", "catalog", "community", "mail", "payment", "queue", "stats", "ticket"];

/// A request that reached a service.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub service: &'static str,
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The user as the service understands the headers.
    pub user: Option<(Uuid, UserRole)>,
}

/// The state of all services.
pub struct FakeServices {
    received: Mutex<Vec<ReceivedRequest>>,
    /// What `/internal/auth/revoked-tokens` answers, by sequence number.
    pub revoked: Mutex<Vec<(i64, Uuid, Timestamp)>>,
    /// How often that list was read.
    pub list_reads: AtomicI64,
    /// Requests to paths that end in `slow` wait until this is true.
    gate: watch::Sender<bool>,
    pub waiting: Notify,
}

impl FakeServices {
    /// The requests since the last call.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut self.received.lock().unwrap())
    }

    pub fn open_gate(&self) {
        self.gate.send_replace(true);
    }
}

pub struct TestGateway {
    pub router: Router,
    pub services: Arc<FakeServices>,
    pub clock: Clock,
    pub kit: ServiceKit,
    pub feed: Option<RevocationFeed>,
}

impl TestGateway {
    pub fn new() -> TestGateway {
        TestGateway::with_settings(|_| {})
    }

    /// With all services in the process.
    pub fn with_settings(change: impl FnOnce(&mut GatewaySettings)) -> TestGateway {
        TestGateway::with_services(&SERVICES, change)
    }

    pub fn with_services(
        names: &[&'static str],
        change: impl FnOnce(&mut GatewaySettings),
    ) -> TestGateway {
        let kit = kit();
        let services = services();
        let upstream = |name: &&'static str| {
            let router = service(name, &services, &kit).local_router();
            Upstream::local(Caller::Gateway, name, router, &kit)
        };
        let upstreams = names.iter().map(upstream).collect();
        let gateway = TestGateway::from_upstreams(upstreams, services, kit, change);
        if let Some(feed) = &gateway.feed {
            let refreshed = feed.refresh().now_or_never();
            refreshed.expect("nothing in the process waits").unwrap();
            gateway.services.list_reads.store(0, Ordering::SeqCst);
        }
        gateway
    }

    /// With all services behind HTTP.
    pub async fn remote(change: impl FnOnce(&mut GatewaySettings)) -> TestGateway {
        let kit = kit();
        let services = services();
        let credentials = InternalCredentials::from_root(&Secret::new("root"));
        let mut upstreams = Vec::new();
        for name in SERVICES {
            let router = service(name, &services, &kit).network_router(&credentials);
            let remote = RemoteService {
                urls: format!("http://{}", listen(router).await).parse().unwrap(),
                credential: credentials.for_call(Caller::Gateway, name),
                client: HttpClient::new(),
            };
            upstreams.push(Upstream::remote(Caller::Gateway, name, remote, &kit));
        }
        let gateway = TestGateway::from_upstreams(upstreams, services, kit, change);
        gateway.feed.as_ref().unwrap().refresh().await.unwrap();
        gateway
    }

    pub fn from_upstreams(
        upstreams: Vec<Upstream>,
        services: Arc<FakeServices>,
        kit: ServiceKit,
        change: impl FnOnce(&mut GatewaySettings),
    ) -> TestGateway {
        let mut settings = settings();
        change(&mut settings);
        let limiter = RateLimiter::local(kit.clock.clone());
        TestGateway::with_limiter(limiter, upstreams, services, kit, settings)
    }

    pub fn with_limiter(
        limiter: RateLimiter,
        upstreams: Vec<Upstream>,
        services: Arc<FakeServices>,
        kit: ServiceKit,
        settings: GatewaySettings,
    ) -> TestGateway {
        let gateway = Gateway::new(upstreams, limiter, settings, &kit);
        let feed = gateway.revocation_feed();
        let own = [("content-security-policy", "default-src 'none'; style-src 'self'")];
        let pages = |api: Router| {
            Router::new()
                .route("/health", get(async || "well"))
                .route("/page", get(async || "A long page. ".repeat(500)))
                .route("/own-policy", get(async move || (own, "A page.")))
                .route(
                    "/asks-the-api",
                    any(async move |request| ask_own_profile(api, request).await),
                )
        };
        let router = gateway.router(pages, &kit);
        TestGateway { router, services, clock: kit.clock.clone(), kit, feed }
    }

    pub async fn listen(&self) -> SocketAddr {
        listen(self.router.clone()).await
    }

    pub fn request(&self, method: Method, path: &str) -> TestRequest<'_> {
        let path = path.to_owned();
        TestRequest {
            gateway: self,
            method,
            path,
            headers: HeaderMap::new(),
            body: Body::empty(),
            peer: None,
        }
    }

    pub fn get(&self, path: &str) -> TestRequest<'_> {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> TestRequest<'_> {
        self.request(Method::POST, path)
    }

    pub fn issue(&self, subject: Uuid) -> TokenFacts {
        TokenFacts {
            subject: subject.to_string(),
            id: self.kit.ids.next_id(),
            issued_at: self.clock.now(),
            lifetime: Duration::from_secs(1_800),
        }
    }

    pub fn token_of(&self, user: Uuid, role: UserRole) -> String {
        self.signed(ACCESS, &self.issue(user), role)
    }

    pub fn token(&self, role: UserRole) -> String {
        self.token_of(FAN, role)
    }

    /// An access token of a user who may not have verified the address.
    pub fn token_of_address(&self, email_verified: bool) -> String {
        let (email, role) = ("fan@example.com".to_owned(), UserRole::User);
        let claims = AccessClaims { email, role, family_id: Uuid::from_u128(3), email_verified };
        TokenKey::new(ACCESS_SECRET.as_bytes()).sign(ACCESS, &self.issue(FAN), &claims)
    }

    /// A token with the claims of an access token, for any purpose.
    pub fn signed(&self, purpose: TokenPurpose, issue: &TokenFacts, role: UserRole) -> String {
        let (email, email_verified) = ("fan@example.com".to_owned(), true);
        let claims = AccessClaims { email, role, family_id: Uuid::from_u128(3), email_verified };
        TokenKey::new(ACCESS_SECRET.as_bytes()).sign(purpose, issue, &claims)
    }

    pub fn entry_token(&self, user_id: Uuid, event: Uuid) -> String {
        let claims = EntryClaims { user_id };
        TokenKey::new(ENTRY_SECRET.as_bytes()).sign(ENTRY, &self.issue(event), &claims)
    }
}

pub struct TestRequest<'a> {
    gateway: &'a TestGateway,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Body,
    peer: Option<SocketAddr>,
}

impl TestRequest<'_> {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub fn cookie(self, token: &str) -> Self {
        self.header("cookie", &format!("access_token={token}"))
    }

    pub fn entry(self, token: &str) -> Self {
        self.header("x-queue-entry-token", token)
    }

    pub fn json(mut self, body: &Value) -> Self {
        self.body = Body::from(body.to_string());
        self.header("content-type", "application/json")
    }

    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    pub fn from(mut self, address: &str) -> Self {
        self.peer = Some(SocketAddr::new(address.parse().unwrap(), 40_000));
        self
    }

    pub async fn send(self) -> TestResponse {
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().unwrap();
        *request.headers_mut() = self.headers;
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        let Ok(response) = self.gateway.router.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 1 << 24).await.unwrap();
        TestResponse { status: parts.status, headers: parts.headers, bytes }
    }
}

#[derive(Clone, Debug)]
pub struct TestResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl TestResponse {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Status and code, for one assertion.
    pub fn outcome(&self) -> (u16, String) {
        let code = self.json()["code"].as_str().unwrap_or_default().to_owned();
        (self.status.as_u16(), code)
    }
}

pub fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

pub fn passed() -> (u16, String) {
    (200, String::new())
}

pub fn settings() -> GatewaySettings {
    let access_key = TokenKey::new(ACCESS_SECRET.as_bytes());
    let mut settings = GatewaySettings::new(access_key, TokenKey::new(ENTRY_SECRET.as_bytes()));
    settings.allowed_origins = vec![ORIGIN.to_owned()];
    let enough = 1_000_000;
    settings.rate_limits = RateLimits {
        auth: enough,
        queue: enough,
        booking: enough,
        pay: enough,
        pay_target: enough,
        general: enough,
        webhook: enough,
        users_per_address: enough,
        login_address: enough,
        login_account: enough,
        refresh_address: enough,
    };
    settings
}

pub fn kit() -> ServiceKit {
    let clock = Clock::manual("2026-11-15T00:00:00Z".parse().unwrap());
    ServiceKit {
        ids: IdSource::seeded(clock.clone(), 1),
        clock,
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    }
}

pub fn services() -> Arc<FakeServices> {
    Arc::new(FakeServices {
        received: Mutex::default(),
        revoked: Mutex::default(),
        list_reads: AtomicI64::new(0),
        gate: watch::Sender::new(false),
        waiting: Notify::new(),
    })
}

pub fn service(name: &'static str, services: &Arc<FakeServices>, kit: &ServiceKit) -> Service {
    let state = (name, Arc::clone(services));
    let routes = OpenApiRouter::new()
        .route("/internal/auth/revoked-tokens", get(list_revoked))
        .route("/{*rest}", any(echo))
        .with_state(state);
    Service::new(name, routes, kit)
}

pub async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, router, CancellationToken::new(), Duration::ZERO));
    address
}

type Shared = State<(&'static str, Arc<FakeServices>)>;

async fn echo(
    State((service, services)): Shared,
    MaybeUser(user): MaybeUser,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, 1 << 24).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let path = parts.uri.to_string();
    let is_slow = parts.uri.path().ends_with("slow");
    services.received.lock().unwrap().push(ReceivedRequest {
        service,
        method: parts.method,
        path: path.clone(),
        headers: parts.headers,
        body,
        user: user.map(|identity| (identity.user_id, identity.role)),
    });
    if is_slow {
        services.waiting.notify_one();
        services.gate.subscribe().wait_for(|open| *open).await.unwrap();
    }
    axum::Json(json!({ "service": service, "path": path })).into_response()
}

#[derive(serde::Deserialize)]
struct After {
    after: i64,
}

/// At most two entries per page, so that the reader has to continue.
async fn list_revoked(
    State((_, services)): Shared,
    _internal: Internal,
    Query(After { after }): Query<After>,
) -> Response {
    services.list_reads.fetch_add(1, Ordering::SeqCst);
    let revoked = services.revoked.lock().unwrap();
    let page: Vec<_> = revoked.iter().filter(|(seq, ..)| *seq > after).take(2).collect();
    let next = page.last().map_or(after, |(seq, ..)| *seq);
    let tokens: Vec<Value> = page
        .iter()
        .map(|(seq, jti, expires)| json!({ "seq": seq, "jti": jti, "expiresAt": expires }))
        .collect();
    axum::Json(json!({ "tokens": tokens, "next": next })).into_response()
}

/// Fails a test that waits for something that does not happen.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, work).await.expect("it happens soon")
}

/// A page that shows what the API tells its client.
async fn ask_own_profile(api: Router, mut request: Request) -> Response {
    *request.uri_mut() = "/api/auth/me".parse().unwrap();
    let Ok(response) = api.oneshot(request).await;
    response
}
