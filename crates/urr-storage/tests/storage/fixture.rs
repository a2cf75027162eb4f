//! A database of its own for each test, on either engine.

use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use urr_kernel::{Secret, Timestamp};
use urr_storage::{
    Db, PostgresOptions, Schema, ServiceRole, SqliteOptions, StorageError, Value, migrate,
    migrations, params, provision,
};
use urr_test::servers;

pub const SCHEMA: Schema =
    Schema { name: "contract", migrations: migrations![1 "contract" => "schema.sql"] };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Sqlite,
    Postgres,
}

/// A migrated database. It can be opened several times with different options.
pub struct Place {
    pub form: Form,
    folder: TempDir,
    pub admin_url: String,
    pub role: ServiceRole,
}

impl Place {
    /// `None` when PostgreSQL is not installed; with `CI=true` that is a failure.
    pub fn new(form: Form) -> Option<Place> {
        let place = Place::empty(form)?;
        place.migrate(&SCHEMA).expect("the contract's schema is valid");
        Some(place)
    }

    pub fn empty(form: Form) -> Option<Place> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::SeqCst);
        let mut admin_url = String::new();
        if form == Form::Postgres {
            if !servers::available(servers::Server::Postgres).expect("PostgreSQL is installed") {
                return None;
            }
            let server = servers::shared_postgres().expect("PostgreSQL starts");
            let name = format!("storage_{}_{number}", std::process::id());
            admin_url = server.create_database(&name).expect("a database can be created");
        }
        let role = ServiceRole {
            name: format!("contract_{}_{number}", std::process::id()),
            password: Secret::generate(),
        };
        Some(Place {
            form,
            folder: tempfile::tempdir().expect("a temporary folder"),
            admin_url,
            role,
        })
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("contract.db")
    }

    pub fn migrate(&self, schema: &Schema) -> Result<Vec<String>, StorageError> {
        let now = Timestamp::UNIX_EPOCH;
        match self.form {
            Form::Sqlite => migrate::migrate_sqlite(&self.path(), schema, now),
            Form::Postgres => provision(&self.admin_url, schema, &self.role, now),
        }
    }

    pub fn service_url(&self) -> String {
        url_as(&self.admin_url, &self.role)
    }

    pub fn open(&self) -> Db {
        self.open_with(1024, Duration::from_secs(5), 8)
    }

    pub fn open_with(
        &self,
        queue_max: usize,
        statement_timeout: Duration,
        connections: usize,
    ) -> Db {
        match self.form {
            Form::Sqlite => {
                let options =
                    SqliteOptions { queue_max, statement_timeout, ..SqliteOptions::default() };
                Db::open_sqlite(&self.path(), &options).expect("the file opens")
            }
            Form::Postgres => {
                let mut options = PostgresOptions::new(self.service_url(), SCHEMA.name);
                options.queue_max = queue_max;
                options.statement_timeout = statement_timeout;
                options.connections = connections;
                Db::open_postgres(&options).expect("the service's role can connect")
            }
        }
    }
}

/// The same server and database with another login.
pub fn url_as(admin_url: &str, role: &ServiceRole) -> String {
    let (_, place) = admin_url.split_once('@').expect("the admin URL has a user");
    format!("postgres://{}:{}@{place}", role.name, role.password.expose())
}

/// Runs one case of the contract on its own database.
pub fn run<F: Future<Output = ()>>(form: Form, case: impl FnOnce(Place) -> F) {
    if let Some(place) = Place::new(form) {
        urr_test::engines::block_on(case(place));
    }
}

/// Declares cases that run on both engines: `contract! { async fn name(place: Place) { … } }`.
#[macro_export]
macro_rules! contract {
    ($($cases:tt)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            sqlite = $crate::fixture::Form::Sqlite,
            postgres = $crate::fixture::Form::Postgres;
            $($cases)*
        }
    };
}

pub async fn insert_number(db: &Db, n: i64) -> Result<(), StorageError> {
    db.write(move |tx| tx.execute("insert into numbers (n) values ($1)", params![n]).map(drop))
        .await
}

pub async fn numbers(db: &Db) -> Vec<i64> {
    let sql = "select n from numbers order by n";
    db.read(move |tx| tx.query(sql, &[], |row| row.get("n")))
        .await
        .unwrap_or_else(|error: StorageError| panic!("{error}"))
}

pub async fn execute(db: &Db, sql: &'static str) -> Result<u64, StorageError> {
    let none: &[Value<'_>] = &[];
    db.write(move |tx| tx.execute(sql, none)).await
}
