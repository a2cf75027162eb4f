//! A database of one service on either engine, and cases that run on both.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use postgres::{Client, NoTls};
use tempfile::TempDir;
use urr_kernel::{Secret, Timestamp};
use urr_storage::{
    Db, PostgresOptions, Schema, ServiceRole, SqliteOptions, StorageError, Tx, migrate, provision,
};

use crate::servers::{self, Server};

/// Enough for concurrency, and few enough not to use up the server.
const CONNECTIONS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// A migrated database. It is removed when dropped; a database of PostgreSQL with its server.
pub struct Database {
    pub engine: Engine,
    pub db: Db,
    /// With the rights of the server's owner. Empty on SQLite.
    pub admin_url: String,
    folder: TempDir,
    name: &'static str,
}

impl Database {
    /// `None` when PostgreSQL is not installed; with `CI=true` that is a failure.
    pub fn open(engine: Engine, schema: &Schema, now: Timestamp) -> Option<Database> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (db, admin_url) = match engine {
            Engine::Sqlite => {
                let path = folder.path().join(schema.name).with_extension("db");
                migrate::migrate_sqlite(&path, schema, now).expect("the tables can be made");
                let db = Db::open_sqlite(&path, &SqliteOptions::default());
                (db.expect("the database opens"), String::new())
            }
            Engine::Postgres if !servers::available(Server::Postgres).expect("it is installed") => {
                return None;
            }
            Engine::Postgres => open_postgres(schema, now),
        };
        Some(Database { engine, db, admin_url, folder, name: schema.name })
    }

    /// The file on SQLite.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(self.name).with_extension("db")
    }

    /// Everything that is stored: the bytes of the file, or the rows as text.
    pub fn stored_bytes(&self) -> Vec<u8> {
        match self.engine {
            Engine::Sqlite => stored_in_file(&self.path()),
            Engine::Postgres => stored_in_postgres(&self.admin_url, self.name),
        }
    }
}

/// The bytes of an SQLite file and of its log.
pub fn stored_in_file(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).expect("the file is there");
    bytes.extend(std::fs::read(path.with_extension("db-wal")).unwrap_or_default());
    bytes
}

/// The rows of all tables of a schema, as text.
pub fn stored_in_postgres(admin_url: &str, schema: &str) -> Vec<u8> {
    let read = || {
        let mut client = Client::connect(admin_url, NoTls).expect("the server answers");
        let tables = "select tablename::text from pg_tables where schemaname = $1";
        let mut bytes = Vec::new();
        for table in client.query(tables, &[&schema]).expect("it has tables") {
            let table: String = table.get(0);
            let rows = format!("select t::text from {schema}.{table} t");
            for row in client.query(&rows, &[]).expect("the owner may read all rows") {
                bytes.extend(row.get::<_, String>(0).into_bytes());
            }
        }
        bytes
    };
    // The client blocks, and may not do so on the threads of the tests.
    std::thread::scope(|scope| scope.spawn(read).join().expect("it does not panic"))
}

/// Whether stored bytes have a text, as it is or in hexadecimal.
pub fn contains(stored: &[u8], text: &str) -> bool {
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let holds = |needle: &[u8]| stored.windows(needle.len()).any(|window| window == needle);
    holds(text.as_bytes()) || holds(hex.as_bytes())
}

/// Logins are shared by all databases of a server, so each has a name of its own.
fn open_postgres(schema: &Schema, now: Timestamp) -> (Db, String) {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let number = COUNTER.fetch_add(1, Ordering::SeqCst);
    let server = servers::shared_postgres().expect("PostgreSQL starts");
    let admin_url = server.create_database(schema.name).expect("a new database");
    let name = format!("{}_{}_{number}", schema.name, std::process::id());
    let role = ServiceRole { name, password: Secret::generate() };
    provision(&admin_url, schema, &role, now).expect("the tables can be made");
    let (_, place) = admin_url.split_once('@').expect("an address with a login");
    let url = format!("postgres://{}:{}@{place}", role.name, role.password.expose());
    let options =
        PostgresOptions { connections: CONNECTIONS, ..PostgresOptions::new(url, schema.name) };
    (Db::open_postgres(&options).expect("the database opens"), admin_url)
}

/// A fingerprint that changes with every write, also one that was rolled back: the number of writing
/// transactions and, on PostgreSQL, the versions of all rows.
pub async fn writings(db: &Db) -> Vec<String> {
    let stats = db.stats();
    let transactions =
        format!("{} committed in {}, {} not", stats.committed, stats.groups, stats.rolled_back);
    let versions: Result<Vec<String>, StorageError> = db
        .read(|tx| match tx.is_postgres() {
            true => row_versions(tx),
            false => Ok(Vec::new()),
        })
        .await;
    let mut writings = versions.expect("the tables can be read");
    writings.push(transactions);
    writings
}

fn row_versions(tx: &mut Tx<'_>) -> Result<Vec<String>, StorageError> {
    let tables = "select quote_ident(table_name) as name from information_schema.tables \
                  where table_schema = current_schema() order by table_name";
    let tables: Vec<String> = tx.query(tables, &[], |row| row.get("name"))?;
    let versions = |table: String| {
        let sql = format!(
            "select coalesce(string_agg(ctid::text || xmin::text, ' ' order by ctid), '') \
             as versions from {table}"
        );
        let versions: String = tx.query_one(&sql, &[], |row| row.get("versions"))?;
        Ok(format!("{table}: {versions}"))
    };
    tables.into_iter().map(versions).collect()
}

/// Runs one case on a runtime of its own.
pub fn block_on(case: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(case);
}

/// Declares cases that run once on each of two forms, as tests in two modules:
///
/// ```ignore
/// on_both! {
///     run = crate::fixture::run, sqlite = Engine::Sqlite, postgres = Engine::Postgres;
///     async fn a_seat_is_sold_once(world: World) { … }
/// }
/// ```
///
/// `run` takes a form and the case. Test crates wrap it in a macro that names the three.
#[macro_export]
macro_rules! on_both {
    (
        run = $run:path, $first:ident = $first_form:expr, $second:ident = $second_form:expr;
        $($(#[$meta:meta])* async fn $name:ident($fixture:ident: $type:ty) $body:block)*
    ) => {
        $($(#[$meta])* async fn $name($fixture: $type) $body)*
        mod $first {
            $(#[test]
            fn $name() {
                $run($first_form, super::$name);
            })*
        }
        mod $second {
            $(#[test]
            fn $name() {
                $run($second_form, super::$name);
            })*
        }
    };
}
