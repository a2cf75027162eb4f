//! A catalogue on a database of its own, on either engine, with a clock that stands still.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use urr_catalog::{CacheSettings, CatalogParts, CatalogService, CatalogSettings, SCHEMA};
use urr_kernel::{Clock, DomainEvent, IdSource, Secret, Uuid};
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};
use urr_storage::{
    Db, PostgresOptions, Row, ServiceRole, SqliteOptions, StorageError, migrate, outbox, provision,
};
use urr_test::servers;

pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(60 * 60);
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Sqlite,
    Postgres,
}

/// A migrated database with its catalogue.
pub struct World {
    pub form: Form,
    _folder: TempDir,
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub catalog: CatalogService,
    router: Router,
}

impl World {
    /// `None` when PostgreSQL is not installed; with `CI=true` that is a failure.
    pub fn new(form: Form) -> Option<World> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::SeqCst);
        let clock = Clock::manual("2026-11-15T00:30:00Z".parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let db = match form {
            Form::Sqlite => {
                let path = folder.path().join("event_service.db");
                migrate::migrate_sqlite(&path, &SCHEMA, clock.now()).unwrap();
                Db::open_sqlite(&path, &SqliteOptions::default()).unwrap()
            }
            Form::Postgres => {
                if !servers::available(servers::Server::Postgres).unwrap() {
                    return None;
                }
                let server = servers::shared_postgres().unwrap();
                let admin_url = server.create_database("catalog").unwrap();
                let name = format!("event_svc_{}_{number}", std::process::id());
                let role = ServiceRole { name, password: Secret::generate() };
                provision(&admin_url, &SCHEMA, &role, clock.now()).unwrap();
                let (_, place) = admin_url.split_once('@').unwrap();
                let url = format!("postgres://{}:{}@{place}", role.name, role.password.expose());
                let options =
                    PostgresOptions { connections: 6, ..PostgresOptions::new(url, SCHEMA.name) };
                Db::open_postgres(&options).unwrap()
            }
        };
        let ids = IdSource::seeded(clock.clone(), 20_261_115);
        let catalog = CatalogService::new(CatalogParts {
            db: db.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            settings: CatalogSettings::default(),
            peers: None,
        });
        let router = router(&catalog, &clock, &ids);
        Some(World { form, _folder: folder, db, clock, ids, catalog, router })
    }

    /// The same catalogue as another process sees it.
    pub fn replica(&self, cache: CacheSettings) -> CatalogService {
        let settings = CatalogSettings { cache, ..CatalogSettings::default() };
        CatalogService::new(CatalogParts {
            db: self.db.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            settings,
            peers: None,
        })
    }

    /// So far from now, as it is written in a body.
    pub fn after(&self, distance: Duration) -> String {
        (self.clock.now() + distance).to_string()
    }

    pub fn call(&self, method: Method, path: &str) -> Call {
        Call::new(&self.router, method, path)
    }

    pub fn call_on(&self, catalog: &CatalogService, method: Method, path: &str) -> Call {
        Call::new(&self.router(catalog), method, path)
    }

    pub fn router(&self, catalog: &CatalogService) -> Router {
        router(catalog, &self.clock, &self.ids)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path).send().await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path).by_admin().json(body).send().await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PUT, path).by_admin().json(body).send().await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path).by_admin().send().await
    }

    pub async fn artist(&self, name: &str) -> String {
        let answer = self.post("/api/admin/artists", &json!({ "name": name })).await;
        answer.id("artist")
    }

    pub async fn venue(&self, name: &str) -> String {
        let body = json!({ "name": name, "address": "서울 마포구 강변로 7" });
        self.post("/api/admin/venues", &body).await.id("venue")
    }

    /// Two rows of VIP and three of R, four seats each.
    pub async fn hall(&self, venue: &str) -> String {
        let grid = json!({ "rows": 5, "seatsPerRow": 4, "gradeMapping": [
            { "grade": "VIP", "fromRow": 1, "toRow": 2 },
            { "grade": "R", "fromRow": 3, "toRow": 5 },
        ]});
        let body = json!({ "name": "소극장", "grid": grid });
        self.post(&format!("/api/admin/venues/{venue}/halls"), &body).await.id("hall")
    }

    /// A body that creates a seated event which opens in a day.
    pub fn seated(&self, hall: &str) -> Value {
        json!({
            "title": "한강의 밤",
            "hallId": hall,
            "startsAt": self.after(30 * DAY),
            "saleStartsAt": self.after(DAY),
            "saleEndsAt": self.after(20 * DAY),
            "prices": { "VIP": 150_000, "R": 90_000 },
        })
    }

    /// A body that creates a standing event which opens in a day.
    pub fn standing(&self, venue: &str) -> Value {
        json!({
            "title": "클럽 나이트",
            "venueId": venue,
            "startsAt": self.after(30 * DAY),
            "saleStartsAt": self.after(DAY),
            "saleEndsAt": self.after(20 * DAY),
            "ticketTypes": [
                { "name": "A", "price": 70_000, "total": 100 },
                { "name": "B", "price": 50_000, "total": 200 },
            ],
        })
    }

    pub async fn create_event(&self, body: &Value) -> String {
        self.post("/api/admin/events", body).await.id("event")
    }

    /// A venue with a hall and a seated event in it.
    pub async fn some_event(&self) -> String {
        let venue = self.venue("강변 극장").await;
        let hall = self.hall(&venue).await;
        self.create_event(&self.seated(&hall)).await
    }

    /// What was announced, in order.
    pub async fn announced(&self) -> Vec<DomainEvent> {
        let rows = self.db.read(|tx| outbox::unpublished(tx, 10_000)).await;
        let rows = rows.unwrap_or_else(|error: StorageError| panic!("{error}"));
        rows.iter().map(|row| DomainEvent::from_bytes(row.body.as_bytes()).unwrap()).collect()
    }

    pub async fn announced_types(&self) -> Vec<String> {
        self.announced().await.into_iter().map(|event| event.event_type).collect()
    }

    /// The rows of a query, each turned into a value by the caller.
    pub async fn rows<T: Send + 'static>(
        &self,
        sql: &'static str,
        read: fn(&Row<'_>) -> Result<T, StorageError>,
    ) -> Vec<T> {
        let rows = self.db.read(move |tx| tx.query(sql, &[], read)).await;
        rows.unwrap_or_else(|error: StorageError| panic!("{error}"))
    }

    /// The one number that a query gives as `n`.
    pub async fn number(&self, sql: &'static str) -> i64 {
        self.rows(sql, |row| row.get("n")).await[0]
    }

    pub async fn titles(&self, query: &str) -> Vec<String> {
        let list = self.get(&format!("/api/events{query}")).await;
        assert_eq!(list.status, StatusCode::OK, "{:?}", list.body);
        let events = list.body["events"].as_array().unwrap().iter();
        events.map(|event| event["title"].as_str().unwrap().to_owned()).collect()
    }
}

pub fn admin_id() -> Uuid {
    Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_00aa)
}

fn router(catalog: &CatalogService, clock: &Clock, ids: &IdSource) -> Router {
    let kit = ServiceKit {
        clock: clock.clone(),
        ids: ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    catalog.service(&kit).local_router()
}

/// A request as the gateway hands it on.
pub struct Call {
    request: Request<Body>,
    router: Router,
}

impl Call {
    pub fn new(router: &Router, method: Method, path: &str) -> Call {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        request.extensions_mut().insert(Caller::Gateway);
        Call { request, router: router.clone() }
    }

    pub fn header(mut self, name: impl axum::http::header::IntoHeaderName, value: &str) -> Call {
        self.request.headers_mut().append(name, value.parse().unwrap());
        self
    }

    /// As one of our own programs asks.
    pub fn caller(mut self, caller: Caller) -> Call {
        self.request.extensions_mut().insert(caller);
        self
    }

    /// As somebody asks who is none of our programs.
    pub fn no_caller(mut self) -> Call {
        self.request.extensions_mut().remove::<Caller>();
        self
    }

    pub fn by_user(self, role: UserRole) -> Call {
        self.by_person(admin_id(), role)
    }

    pub fn by_person(mut self, user_id: Uuid, role: UserRole) -> Call {
        let identity = Identity { user_id, email: None, role };
        identity.write(self.request.headers_mut());
        self
    }

    pub fn by_admin(self) -> Call {
        self.by_user(UserRole::Admin)
    }

    pub fn json(mut self, body: &Value) -> Call {
        *self.request.body_mut() = Body::from(body.to_string());
        self.header(CONTENT_TYPE, "application/json")
    }

    pub fn bytes(mut self, content_type: &str, body: Vec<u8>) -> Call {
        *self.request.body_mut() = Body::from(body);
        self.header(CONTENT_TYPE, content_type)
    }

    pub async fn send(self) -> Answer {
        let Ok(response) = self.router.oneshot(self.request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status: parts.status, headers: parts.headers, bytes, body }
    }
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
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

    pub fn header(&self, name: HeaderName) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// Runs one case of the contract on its own database.
pub fn run<F: Future<Output = ()>>(form: Form, case: impl FnOnce(World) -> F) {
    let Some(world) = World::new(form) else {
        return;
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(case(world));
}

/// Declares cases that run on both engines: `contract! { async fn name(world: World) { … } }`.
#[macro_export]
macro_rules! contract {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            sqlite = $crate::fixture::Form::Sqlite,
            postgres = $crate::fixture::Form::Postgres;
            $($(#[$meta])* async fn $name($world: $crate::fixture::World) $body)*
        }
    };
}

/// Runs futures at the same time, on several threads, and gives their results in order.
pub async fn all<T, F>(futures: impl IntoIterator<Item = F>) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let tasks: Vec<_> = futures.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

impl World {
    /// Another event in another venue.
    pub async fn some_other_event(&self) -> String {
        let venue = self.venue("다른 극장").await;
        let hall = self.hall(&venue).await;
        self.create_event(&self.seated(&hall)).await
    }
}
