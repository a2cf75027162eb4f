//! A community on a database of its own, on either engine, with a clock that stands still, and with
//! the auth and ticket services as far as it calls them. They fail on demand.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_bus::{HandlerContext, HandlerOutcome};
use urr_community::{
    CommunityParts, CommunityService, CommunitySettings, GROUP, SCHEMA, WritingLimit,
};
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_contracts::events::catalog::{
    ArtistCreated, CatalogEventStatus, EventCreated, EventKind, EventSnapshot,
};
use urr_contracts::internal::auth::ListUsers;
use urr_contracts::internal::ticket::{AwardPoints, ReturnPoints};
use urr_kernel::{CallContext, Clock, DomainEvent, EventData, IdSource, Uuid, Won};
use urr_service::{
    Caller, Identity, InternalCall, Metrics, RequestLimits, ServiceKit, Upstream, UserRole,
};
use urr_storage::{Db, StorageError, outbox};
use urr_test::engines::{self, Database, Engine};

pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(60 * 60);

pub const BAND: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0a01);
pub const OTHER_BAND: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0a02);
pub const MINA: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0f01);
pub const JUNHO: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0f02);
pub const ORGANISER: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0f03);
pub const OTHER_ORGANISER: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0f04);
pub const ADMIN: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0f05);

pub struct World {
    /// Kept until the end: dropping it removes the data.
    _database: Option<Database>,
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub peers: Peers,
    pub community: CommunityService,
    router: Router,
}

impl World {
    pub fn new(engine: Engine) -> Option<World> {
        let clock = Clock::manual("2026-11-15T00:30:00Z".parse().unwrap());
        let database = Database::open(engine, &SCHEMA, clock.now())?;
        let (db, ids) = (database.db.clone(), IdSource::seeded(clock.clone(), 20_261_115));
        let peers = Peers::default();
        let community = make(&db, &clock, &ids, &peers, CommunitySettings::default());
        let router = community.service(&kit(&clock, &ids)).local_router();
        Some(World { _database: Some(database), db, clock, ids, peers, community, router })
    }

    /// The same community with other limits, as another process would run it.
    pub fn with_limits(&self, per_hour_max: u32) -> World {
        let limit = WritingLimit { per_hour_max };
        let settings = CommunitySettings {
            posts: limit,
            comments: limit,
            reports: limit,
            ..CommunitySettings::default()
        };
        let community = make(&self.db, &self.clock, &self.ids, &self.peers, settings);
        let router = community.service(&kit(&self.clock, &self.ids)).local_router();
        let (db, clock, ids) = (self.db.clone(), self.clock.clone(), self.ids.clone());
        World { _database: None, db, clock, ids, peers: self.peers.clone(), community, router }
    }

    pub fn call(&self, method: Method, path: &str) -> Call {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        request.extensions_mut().insert(Caller::Gateway);
        Call { request, router: self.router.clone() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path).send().await
    }

    pub async fn send(&self, who: Uuid, method: Method, path: &str, body: &Value) -> Answer {
        self.call(method, path).by(who, UserRole::User).json(body).send().await
    }

    /// The catalogue announces both artists.
    pub async fn announce_artists(&self) {
        for (artist_id, name) in [(BAND, "한강 밴드"), (OTHER_BAND, "새벽 밴드")] {
            let (name, membership_price) = (name.to_owned(), Won::new(30_000));
            self.handle(&ArtistCreated { artist_id, name, membership_price }).await;
        }
    }

    /// The organiser has an event of the artist.
    pub async fn organise(&self, artist_id: Uuid, organiser_id: Uuid) -> EventSnapshot {
        let event = self.snapshot(artist_id, organiser_id);
        self.handle(&EventCreated(event.clone())).await;
        event
    }

    fn snapshot(&self, artist_id: Uuid, organiser_id: Uuid) -> EventSnapshot {
        EventSnapshot {
            event_id: self.ids.next_id(),
            revision: 1,
            title: "한강의 밤".to_owned(),
            kind: EventKind::Standing,
            status: CatalogEventStatus::Upcoming,
            artist_id: Some(artist_id),
            artist_name: None,
            venue_id: self.ids.next_id(),
            venue_name: "강변 홀".to_owned(),
            address: "서울".to_owned(),
            starts_at: self.clock.now() + 100 * HOUR,
            sale_starts_at: self.clock.now() + HOUR,
            sale_ends_at: self.clock.now() + 90 * HOUR,
            has_presale: false,
            seats_per_user_max: 4,
            organiser_id: Some(organiser_id),
            requires_identity: false,
            allows_reentry: false,
            cancel_policy: None,
            layout: None,
            prices: std::collections::BTreeMap::new(),
            ticket_types: Vec::new(),
        }
    }

    pub fn event<D: EventData>(&self, data: &D) -> DomainEvent {
        let context = CallContext::root(self.ids.next_id());
        DomainEvent::new(self.ids.next_id(), "urr/test", self.clock.now(), &context, data)
    }

    pub async fn handle<D: EventData>(&self, data: &D) {
        self.deliver(self.event(data)).await;
    }

    pub async fn deliver(&self, event: DomainEvent) {
        let context = HandlerContext::new(GROUP, &event, self.clock.now());
        let handled = self.db.write(move |tx| urr_community::handle(tx, &event, &context)).await;
        assert_eq!(handled, Ok(HandlerOutcome::Done));
    }

    pub async fn post(&self, who: Uuid, title: &str) -> String {
        let body = json!({ "artistId": BAND, "title": title, "content": "내용" });
        self.send(who, Method::POST, "/api/community/posts", &body).await.id("post")
    }

    pub async fn comment(&self, who: Uuid, post: &str, content: &str) -> String {
        let path = format!("/api/community/posts/{post}/comments");
        self.send(who, Method::POST, &path, &json!({ "content": content })).await.id("comment")
    }

    /// The types of the domain events that were announced, in order.
    pub async fn announced(&self) -> Vec<DomainEvent> {
        let rows = self.db.read(|tx| outbox::unpublished(tx, 10_000)).await;
        let rows = rows.unwrap_or_else(|error: StorageError| panic!("{error}"));
        rows.iter().map(|row| DomainEvent::from_bytes(row.body.as_bytes()).unwrap()).collect()
    }

    /// The one number that a query gives as `n`.
    pub async fn number(&self, sql: &'static str) -> i64 {
        let row = self.db.read(move |tx| tx.query_one(sql, &[], |row| row.get("n"))).await;
        row.unwrap_or_else(|error: StorageError| panic!("{error}"))
    }
}

fn kit(clock: &Clock, ids: &IdSource) -> ServiceKit {
    ServiceKit {
        clock: clock.clone(),
        ids: ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    }
}

fn make(
    db: &Db,
    clock: &Clock,
    ids: &IdSource,
    peers: &Peers,
    settings: CommunitySettings,
) -> CommunityService {
    let kit = kit(clock, ids);
    let upstream = |name| Upstream::local(Caller::Community, name, peers.router(), &kit);
    CommunityService::new(CommunityParts {
        db: db.clone(),
        clock: clock.clone(),
        ids: ids.clone(),
        settings,
        auth: AuthClient::new(upstream("auth")),
        ticket: TicketClient::new(upstream("ticket")),
    })
}

/// A request as the gateway hands it on.
pub struct Call {
    request: Request<Body>,
    router: Router,
}

impl Call {
    pub fn header(mut self, name: HeaderName, value: &str) -> Call {
        self.request.headers_mut().append(name, value.parse().unwrap());
        self
    }

    pub fn by(mut self, user_id: Uuid, role: UserRole) -> Call {
        let identity = Identity { user_id, email: Some("mina@example.com".to_owned()), role };
        identity.write(self.request.headers_mut());
        self
    }

    /// As one of our own programs asks.
    pub fn by_program(mut self, caller: Caller) -> Call {
        self.request.extensions_mut().insert(caller);
        self
    }

    pub fn json(mut self, body: &Value) -> Call {
        *self.request.body_mut() = Body::from(body.to_string());
        self.header(CONTENT_TYPE, "application/json")
    }

    pub async fn send(self) -> Answer {
        let Ok(response) = self.router.oneshot(self.request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The body, if it is JSON.
    pub body: Value,
}

impl Answer {
    pub fn refusal(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["code"].as_str().unwrap_or_default())
    }

    /// The id of what was created.
    #[track_caller]
    pub fn id(&self, what: &str) -> String {
        assert_eq!(self.status, StatusCode::CREATED, "{}", self.body);
        self.body[what]["id"].as_str().unwrap().to_owned()
    }

    /// One field of every item of a list.
    pub fn texts(&self, list: &str, field: &str) -> Vec<String> {
        assert_eq!(self.status, StatusCode::OK, "{}", self.body);
        let items = self.body[list].as_array().unwrap().iter();
        items.map(|item| item[field].as_str().unwrap().to_owned()).collect()
    }
}

/// Clones share them.
#[derive(Clone, Default)]
pub struct Peers(Arc<Mutex<PeerState>>);

#[derive(Default)]
struct PeerState {
    names: HashMap<Uuid, String>,
    auth_is_unavailable: bool,
    ticket_is_unavailable: bool,
    /// Makes the award, and then fails to answer.
    ticket_loses_answers: bool,
    awarded: HashMap<Uuid, String>,
    returned: HashSet<Uuid>,
    /// Every call that reached the ticket service.
    calls: Vec<String>,
}

impl Peers {
    pub fn register(&self, id: Uuid, name: &str) {
        self.0.lock().unwrap().names.insert(id, name.to_owned());
    }

    pub fn auth_unavailable(&self, away: bool) {
        self.0.lock().unwrap().auth_is_unavailable = away;
    }

    pub fn ticket_unavailable(&self, away: bool) {
        self.0.lock().unwrap().ticket_is_unavailable = away;
    }

    pub fn ticket_loses_answers(&self, loses: bool) {
        self.0.lock().unwrap().ticket_loses_answers = loses;
    }

    /// What points are held for: awards that were not returned.
    pub fn held(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        let held = state.awarded.iter().filter(|(id, _)| !state.returned.contains(*id));
        let mut held: Vec<String> = held.map(|(_, action)| action.clone()).collect();
        held.sort();
        held
    }

    pub fn calls(&self) -> Vec<String> {
        self.0.lock().unwrap().calls.clone()
    }

    fn router(&self) -> Router {
        Router::new()
            .route(ListUsers::SPEC.path, post(users))
            .route(AwardPoints::SPEC.path, post(award))
            .route(ReturnPoints::SPEC.path, post(give_back))
            .with_state(self.clone())
    }
}

async fn users(State(peers): State<Peers>, Json(body): Json<Value>) -> Response {
    let state = peers.0.lock().unwrap();
    if state.auth_is_unavailable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let ids: Vec<Uuid> = serde_json::from_value(body["userIds"].clone()).unwrap();
    let known = ids.iter().filter_map(|id| state.names.get(id).map(|name| (id, name)));
    let users: Vec<Value> = known
        .map(|(id, name)| {
            json!({
                "id": id, "email": "secret@example.com", "name": name, "role": "user",
                "language": "ko", "emailVerified": true,
            })
        })
        .collect();
    Json(json!({ "users": users })).into_response()
}

async fn award(State(peers): State<Peers>, Json(body): Json<Value>) -> Response {
    let mut state = peers.0.lock().unwrap();
    if state.ticket_is_unavailable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let id: Uuid = serde_json::from_value(body["referenceId"].clone()).unwrap();
    assert_eq!(body["artistId"], json!(BAND));
    let action = body["actionType"].as_str().unwrap().to_owned();
    state.calls.push(format!("award {action}"));
    state.awarded.insert(id, action);
    if state.ticket_loses_answers {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    Json(json!({ "points": 30, "memberships": 1 })).into_response()
}

async fn give_back(State(peers): State<Peers>, Json(body): Json<Value>) -> Response {
    let mut state = peers.0.lock().unwrap();
    if state.ticket_is_unavailable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let id: Uuid = serde_json::from_value(body["referenceId"].clone()).unwrap();
    let action = body["actionType"].as_str().unwrap().to_owned();
    state.calls.push(format!("return {action}"));
    state.returned.insert(id);
    Json(json!({ "ok": true })).into_response()
}

/// Runs one case of the contract on its own database. The catalogue has announced its artists.
pub fn run<F: Future<Output = ()>>(engine: Engine, case: impl FnOnce(World) -> F) {
    let Some(world) = World::new(engine) else { return };
    engines::block_on(async {
        world.announce_artists().await;
        case(world).await;
    });
}

/// Declares cases that run on both engines: `contract! { async fn name(world: World) { … } }`.
#[macro_export]
macro_rules! contract {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            sqlite = urr_test::engines::Engine::Sqlite,
            postgres = urr_test::engines::Engine::Postgres;
            $($(#[$meta])* async fn $name($world: $crate::fixture::World) $body)*
        }
    };
}
