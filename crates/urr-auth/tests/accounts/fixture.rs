//! Accounts on a database of their own, on either engine, with a clock that stands still.

use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use urr_auth::{
    Agreement, Auth, AuthParts, Credentials, DataKeys, Email, LoginError, Name, Origin, Password,
    PasswordCost, Person, Phone, RegisterError, Registration, SCHEMA, Session, Settings, Terms,
    TermsKind,
};
use urr_kernel::{CallContext, Clock, IdSource, Secret};
use urr_service::token::TokenKey;
use urr_storage::{
    Db, PostgresOptions, Row, ServiceRole, SqliteOptions, StorageError, migrate, provision,
};
use urr_test::servers;

pub const PASSWORD: &str = "달무리 뜨는 밤에";
pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Sqlite,
    Postgres,
}

/// A migrated database with its accounts.
pub struct World {
    pub form: Form,
    folder: TempDir,
    pub admin_url: String,
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub auth: Auth,
}

impl World {
    /// `None` when PostgreSQL is not installed; with `CI=true` that is a failure.
    pub fn new(form: Form) -> Option<World> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::SeqCst);
        let clock = Clock::manual("2026-11-15T00:30:00Z".parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("user_service.db");
        let (db, admin_url) = match form {
            Form::Sqlite => {
                migrate::migrate_sqlite(&path, &SCHEMA, clock.now()).unwrap();
                let options = SqliteOptions::default();
                (Db::open_sqlite(&path, &options).unwrap(), String::new())
            }
            Form::Postgres => {
                if !servers::available(servers::Server::Postgres).unwrap() {
                    return None;
                }
                let server = servers::shared_postgres().unwrap();
                let admin_url = server.create_database("accounts").unwrap();
                let name = format!("user_svc_{}_{number}", std::process::id());
                let role = ServiceRole { name, password: Secret::generate() };
                provision(&admin_url, &SCHEMA, &role, clock.now()).unwrap();
                let (_, place) = admin_url.split_once('@').unwrap();
                let url = format!("postgres://{}:{}@{place}", role.name, role.password.expose());
                let options =
                    PostgresOptions { connections: 6, ..PostgresOptions::new(url, SCHEMA.name) };
                (Db::open_postgres(&options).unwrap(), admin_url)
            }
        };
        let ids = IdSource::seeded(clock.clone(), 20_261_115);
        let auth = make_auth(&db, &clock, &ids, data_keys(), cheap_settings());
        Some(World { form, folder, admin_url, db, clock, ids, auth })
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("user_service.db")
    }

    /// The same accounts, seen by a process that is set up otherwise.
    pub fn auth_with(&self, data_keys: DataKeys, settings: Settings) -> Auth {
        make_auth(&self.db, &self.clock, &self.ids, data_keys, settings)
    }

    pub fn context(&self) -> CallContext {
        CallContext::root(self.ids.next_id())
    }

    pub async fn register(&self, email: &str) -> Session {
        self.try_register(&self.auth, email).await.unwrap()
    }

    pub async fn try_register(&self, auth: &Auth, email: &str) -> Result<Session, RegisterError> {
        auth.register(registration(email), Origin::default(), self.context()).await
    }

    pub async fn login(&self, email: &str, password: &str) -> Result<Session, LoginError> {
        login(&self.auth, email, password).await
    }

    pub async fn login_or_register(&self, email: &str) -> Session {
        match self.login(email, PASSWORD).await {
            Ok(session) => session,
            Err(_) => self.register(email).await,
        }
    }

    /// Whether an access token is in force.
    pub async fn accepts(&self, access_token: &str) -> bool {
        self.auth.verify_token(access_token).await.is_ok()
    }

    /// The rows of a query, each turned into text by the caller.
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
}

fn make_auth(
    db: &Db,
    clock: &Clock,
    ids: &IdSource,
    data_keys: DataKeys,
    settings: Settings,
) -> Auth {
    let (db, clock, ids) = (db.clone(), clock.clone(), ids.clone());
    Auth::new(AuthParts { db, clock, ids, token_key: token_key(), data_keys, settings })
}

pub fn token_key() -> TokenKey {
    TokenKey::new(&[7; 32])
}

pub fn data_keys() -> DataKeys {
    DataKeys::single(Secret::new("the first data key of these tests"))
}

/// Hashes that cost nothing: these tests are not about guessing.
pub fn cheap_settings() -> Settings {
    Settings { password_cost: CHEAP, ..Settings::default() }
}

pub const CHEAP: PasswordCost = PasswordCost { memory_kib: 8, passes: 1, lanes: 1 };

pub fn registration(email: &str) -> Registration {
    let email = Email::parse(email).unwrap();
    let agreed = |kind| Agreement { kind, version: "2026-11".to_owned(), agreed: true };
    Registration {
        password: Password::parse(PASSWORD, &email).unwrap(),
        person: Person {
            email,
            name: Name::parse("김민아").unwrap(),
            phone: Some(Phone::parse("010-1234-5678").unwrap()),
        },
        terms: Terms::parse(vec![agreed(TermsKind::Service), agreed(TermsKind::Privacy)]).unwrap(),
    }
}

pub async fn login(auth: &Auth, email: &str, password: &str) -> Result<Session, LoginError> {
    let (email, password) = (Email::parse(email).unwrap(), Secret::new(password));
    auth.login(Credentials { email, password }, Origin::default()).await
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
        $($(#[$meta])* async fn $name($world: $crate::fixture::World) $body)*
        mod sqlite {
            $(#[test]
            fn $name() {
                $crate::fixture::run($crate::fixture::Form::Sqlite, super::$name);
            })*
        }
        mod postgres {
            $(#[test]
            fn $name() {
                $crate::fixture::run($crate::fixture::Form::Postgres, super::$name);
            })*
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
