//! A database and a bus that outlive the processes that use them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use urr_bus::relay::RelayOptions;
use urr_bus::{Bus, BusMetrics, Relay, TopicSpec};
use urr_kernel::{Clock, EventData, IdSource, Secret, Uuid};
use urr_storage::{
    Db, Migration, PostgresOptions, Schema, ServiceRole, SqliteOptions, migrate, provision,
};
use urr_test::servers;

pub const SCHEMA: Schema = Schema {
    name: "crash",
    migrations: &[Migration {
        series: "service",
        version: 1,
        name: "crash",
        sql: "create table seats (number bigint primary key);
              create table tickets (number bigint primary key, picture text not null);",
    }],
};

/// PostgreSQL commits what it was asked to commit even if the asker dies meanwhile, so an answer
/// that is ahead of its commit is exposed only for the microseconds until that question is sent. A
/// commit that takes a moment, on a server that notices when its client is gone, gives every crash
/// a chance to fall in between; for the test as for its control.
const SLOW_COMMITS: &str = "
    create function crash.linger() returns trigger language plpgsql
        as $$ begin perform pg_sleep(0.015); return null; end $$;
    create constraint trigger linger after insert on crash.seats deferrable initially deferred
        for each row execute function crash.linger();";

/// A killed relay blocks the next one for as long as its lease lasts.
const LEASE: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrashEngine {
    Sqlite,
    Postgres,
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AckTiming {
    AfterCommit,
    /// The mistake that the controls make.
    BeforeCommit,
}

/// Where everything is, in words that another process understands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CrashSite {
    pub engine: CrashEngine,
    pub ack: AckTiming,
    folder: PathBuf,
    /// Of the service's own role. Empty on SQLite.
    url: String,
}

/// A site with a migrated database, removed when dropped.
pub struct CrashFixture {
    pub site: CrashSite,
    /// Of the administrator. Empty on SQLite.
    admin_url: String,
    role: ServiceRole,
    _folder: TempDir,
}

/// What a sale announces.
#[derive(Debug, Serialize, Deserialize)]
pub struct SeatSold {
    pub number: i64,
}

impl EventData for SeatSold {
    const TOPIC: &'static str = "crash-events";
    const TYPE: &'static str = "SEAT_SOLD";

    fn aggregate_id(&self) -> String {
        event_id(self.number).to_string()
    }
}

/// The number is the id, so that an event on the bus is known without being understood.
pub fn event_id(number: i64) -> Uuid {
    Uuid::from_u128(u128::from(number.unsigned_abs()))
}

impl CrashFixture {
    pub fn create(engine: CrashEngine, ack: AckTiming) -> Result<CrashFixture> {
        let folder = tempfile::tempdir()?;
        let name = format!("crash_{}_{ack:?}", std::process::id()).to_lowercase();
        let role = ServiceRole { name: name.clone(), password: Secret::generate() };
        let (mut admin_url, mut url) = (String::new(), String::new());
        if engine == CrashEngine::Postgres {
            admin_url = servers::shared_postgres()?.create_database(&name)?;
            let (_, address) = admin_url.split_once('@').context("the URL has a user")?;
            url = format!("postgres://{}:{}@{address}", role.name, role.password.expose());
        }
        let site = CrashSite { engine, ack, folder: folder.path().to_owned(), url };
        let now = Clock::System.now();
        let fixture = CrashFixture { site, admin_url, role, _folder: folder };
        match engine {
            CrashEngine::Sqlite => {
                migrate::migrate_sqlite(&fixture.site.database_file(), &SCHEMA, now)?;
            }
            CrashEngine::Postgres => {
                provision(&fixture.admin_url, &SCHEMA, &fixture.role, now)?;
                fixture.slow_commits_down()?;
            }
        }
        Ok(fixture)
    }

    fn slow_commits_down(&self) -> Result<()> {
        let mut admin = self.connect_as_admin()?;
        admin.batch_execute(SLOW_COMMITS)?;
        let role = &self.role.name;
        let notice = format!("alter role {role} set client_connection_check_interval = 1");
        Ok(admin.batch_execute(&notice)?)
    }

    fn connect_as_admin(&self) -> Result<postgres::Client> {
        Ok(postgres::Client::connect(&self.admin_url, postgres::NoTls)?)
    }

    /// The sessions of a killed process may still be finishing what it last asked for.
    pub fn await_end_of_sessions(&self) -> Result<()> {
        if self.site.engine == CrashEngine::Sqlite {
            return Ok(());
        }
        let mut admin = self.connect_as_admin()?;
        let deadline = Instant::now() + PATIENCE;
        let count = "select count(*) from pg_stat_activity where usename = $1";
        while admin.query_one(count, &[&self.role.name])?.get::<_, i64>(0) > 0 {
            ensure!(Instant::now() < deadline, "the sessions of a killed process do not end");
        }
        Ok(())
    }
}

impl CrashSite {
    fn database_file(&self) -> PathBuf {
        self.folder.join("crash.db")
    }

    pub fn open_db(&self) -> Result<Db> {
        let dangerous_acknowledge_before_commit = self.ack == AckTiming::BeforeCommit;
        let db = match self.engine {
            CrashEngine::Sqlite => {
                let options = SqliteOptions {
                    dangerous_acknowledge_before_commit,
                    ..SqliteOptions::default()
                };
                Db::open_sqlite(&self.database_file(), &options)?
            }
            CrashEngine::Postgres => {
                let mut options = PostgresOptions::new(&self.url, SCHEMA.name);
                options.connections = 32;
                options.dangerous_acknowledge_before_commit = dangerous_acknowledge_before_commit;
                Db::open_postgres(&options)?
            }
        };
        Ok(db)
    }

    pub async fn open_bus(&self) -> Result<Bus> {
        let bus = Bus::open_embedded(&self.folder.join("bus.db"), &Clock::System)?;
        bus.ensure_topics(&[TopicSpec::new(SeatSold::TOPIC)]).await?;
        Ok(bus)
    }
}

pub fn relay(db: &Db, bus: &Bus) -> Relay {
    let poll = Duration::from_millis(20);
    Relay {
        db: db.clone(),
        bus: bus.clone(),
        clock: Clock::System,
        holder: IdSource::from_system_randomness(Clock::System).next_id(),
        service: "crash",
        metrics: BusMetrics::default(),
        options: RelayOptions { lease: LEASE, poll, ..RelayOptions::default() },
    }
}
