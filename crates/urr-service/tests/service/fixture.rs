//! A small service to test with, reachable in both forms, whose answers a test can script.

use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use urr_kernel::{CallContext, Clock, IdSource, Secret, Uuid};
use urr_service::{
    Admin, ApiError, CallKind, CallPolicy, CallSpec, Caller, Context, HttpClient, Internal,
    InternalCall, InternalCredentials, Json, Metrics, Path, RemoteService, RequestLimits, Service,
    ServiceKit, Upstream, UpstreamError, User, serve,
};
use utoipa_axum::router::OpenApiRouter;

pub const TRANSPORTS: [Transport; 2] = [Transport::Local, Transport::RemoteService];
pub const PATIENT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Local,
    RemoteService,
}

pub struct TestService {
    pub kit: ServiceKit,
    pub credentials: InternalCredentials,
    pub service: Service,
    pub state: Arc<TestServiceState>,
}

#[derive(Default)]
pub struct TestServiceState {
    /// How many calls have reached a handler of `/scripted` or `/wait`.
    pub hits: AtomicU32,
    /// What `/scripted` answers next; 200 if nothing is left.
    pub script: Mutex<VecDeque<u16>>,
    pub waiting: Notify,
    pub dropped: Notify,
    pub open_gate: Notify,
}

impl TestServiceState {
    pub fn script(&self, statuses: impl IntoIterator<Item = u16>) {
        self.script.lock().unwrap().extend(statuses);
    }

    pub fn hits(&self) -> u32 {
        self.hits.load(Ordering::SeqCst)
    }
}

#[derive(Clone, Deserialize, Serialize)]
pub struct HoldBody {
    pub seat: u32,
}

#[derive(Clone, Deserialize, Serialize)]
pub struct FollowScript {}

#[derive(Clone, Deserialize, Serialize)]
pub struct MisreadScript {}

#[derive(Clone, Deserialize, Serialize)]
pub struct Ping {}

#[derive(Clone, Deserialize, Serialize)]
pub struct ShowContext {}

macro_rules! calls {
    ($($call:ident -> $answer:ty = $kind:ident $path:literal;)*) => {
        $(impl InternalCall for $call {
            type Service = ();
            type Answer = $answer;
            const SPEC: CallSpec = CallSpec {
                name: stringify!($call),
                kind: CallKind::$kind,
                path: $path,
                callers: &Caller::ALL,
                deadline: Duration::from_secs(5),
            };
        })*
    };
}

calls! {
    HoldBody -> Value = PostOnce "/holds";
    FollowScript -> Value = Post "/scripted";
    MisreadScript -> u32 = Get "/scripted";
    Ping -> Value = Get "/internal/ping";
    ShowContext -> Value = Get "/context";
}

impl TestService {
    pub fn open() -> TestService {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let kit = ServiceKit {
            ids: IdSource::seeded(clock.clone(), 1),
            clock,
            metrics: Metrics::new(),
            limits: RequestLimits { body_bytes_max: 100_000, ..RequestLimits::default() },
        };
        let state = Arc::new(TestServiceState::default());
        let service = Service::new("fixture", routes(Arc::clone(&state)), &kit);
        let credentials = InternalCredentials::from_root(&Secret::new("root"));
        TestService { kit, credentials, service, state }
    }

    pub async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = self.service.network_router(&self.credentials);
        tokio::spawn(serve(listener, router, CancellationToken::new(), PATIENT));
        address
    }

    pub async fn upstream(&self, transport: Transport, caller: Caller) -> Upstream {
        match transport {
            Transport::Local => {
                Upstream::local(caller, "fixture", self.service.local_router(), &self.kit)
            }
            Transport::RemoteService => {
                let credential = self.credentials.for_call(caller, "fixture");
                self.upstream_at(self.listen().await, caller, credential)
            }
        }
    }

    pub fn upstream_at(&self, address: SocketAddr, caller: Caller, secret: Secret) -> Upstream {
        let urls = format!("http://{address}").parse().unwrap();
        let remote = RemoteService { urls, credential: secret, client: HttpClient::new() };
        Upstream::remote(caller, "fixture", remote, &self.kit)
    }
}

fn routes(state: Arc<TestServiceState>) -> OpenApiRouter {
    OpenApiRouter::new()
        .route("/seats/{id}", get(get_seat))
        .route("/holds", post(reserve_seat))
        .route("/me", get(get_me))
        .route("/admin", get(get_admin))
        .route("/internal/ping", get(ping))
        .route("/context", get(get_context))
        .route("/broken", get(break_down))
        .route("/busy", get(send_away))
        .route("/panic", get(panic))
        .route("/scripted", get(answer_as_scripted).post(answer_as_scripted))
        .route("/wait", get(wait))
        .route("/gate", get(wait_at_gate))
        .with_state(state)
}

async fn get_seat(Path(id): Path<Uuid>) -> Json<Value> {
    Json(json!({"seat": id}))
}

async fn reserve_seat(Json(body): Json<HoldBody>) -> impl IntoResponse {
    (StatusCode::CREATED, Json(json!({"held": body.seat})))
}

async fn get_me(User(identity): User) -> Json<Value> {
    Json(json!({"id": identity.user_id, "email": identity.email}))
}

async fn get_admin(Admin(identity): Admin) -> Json<Value> {
    Json(json!({"id": identity.user_id}))
}

async fn ping(internal: Internal) -> Json<Value> {
    Json(json!({"caller": internal.caller().as_str()}))
}

async fn get_context(Context(context): Context, request: Request) -> Json<Value> {
    let names: Vec<&str> = request.headers().keys().map(|name| name.as_str()).collect();
    Json(json!({
        "correlationId": context.correlation_id,
        "causationId": context.causation_id,
        "traceId": context.trace.trace_id(),
        "headers": names,
    }))
}

async fn break_down() -> ApiError {
    ApiError::internal("disk 7 is on fire")
}

async fn send_away() -> ApiError {
    ApiError::unavailable("BUSY", "Please come back.", Duration::from_secs(1))
}

async fn panic() -> &'static str {
    panic!("the secret of the panic");
}

async fn answer_as_scripted(State(state): State<Arc<TestServiceState>>, _body: String) -> Response {
    state.hits.fetch_add(1, Ordering::SeqCst);
    let status = state.script.lock().unwrap().pop_front().unwrap_or(200);
    let status = StatusCode::from_u16(status).unwrap();
    match status.is_success() {
        true => Json(json!({"fine": true})).into_response(),
        false => ApiError::new(status, "SCRIPTED", "As scripted.").into_response(),
    }
}

struct TellDropped(Arc<TestServiceState>);

impl Drop for TellDropped {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

/// Never answers; tells when it begins to wait and when it is given up.
async fn wait(State(state): State<Arc<TestServiceState>>) -> Response {
    state.hits.fetch_add(1, Ordering::SeqCst);
    let _tell = TellDropped(Arc::clone(&state));
    state.waiting.notify_one();
    pending().await
}

/// Answers when the test opens the gate.
async fn wait_at_gate(State(state): State<Arc<TestServiceState>>) -> &'static str {
    state.waiting.notify_one();
    state.open_gate.notified().await;
    "through the gate"
}

pub fn context() -> CallContext {
    CallContext::root(Uuid::from_u128(0xabc))
}

pub fn once() -> CallPolicy {
    CallPolicy::once(PATIENT)
}

pub fn idempotent() -> CallPolicy {
    CallPolicy::idempotent(PATIENT)
}

pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Request {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

pub fn get_request(path: &str) -> Request {
    request("GET", path, &[], Body::empty())
}

/// The status and the JSON of an answer, or of the error a client would be told.
pub async fn status_and_body(answer: Result<Response, UpstreamError>) -> (u16, Value) {
    let response = answer.unwrap_or_else(|error| ApiError::from(error).into_response());
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// Sends bytes as they are and reads until the server closes.
pub async fn raw(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Awaits what must happen soon; a test that would hang fails instead.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENT, work).await.expect("it happens soon")
}
