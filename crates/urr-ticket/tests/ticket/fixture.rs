//! A ticket service on a database of its own, on either engine, with a clock that stands still.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use urr_kernel::{CallContext, Clock, IdSource, Secret, Uuid, Won};
use urr_layout::{GradeRows, Grid, Layout};
use urr_service::DataKeys;
use urr_storage::{
    Db, PostgresOptions, Row, ServiceRole, SqliteOptions, StorageError, migrate, provision,
};
use urr_test::{engines, servers};
use urr_ticket::inventory::store::{self, NewSale, NewTicketType, SaleFacts};
use urr_ticket::{
    AuditDifference, DoorName, Inventory, InventoryKind, PersonFinder, SCHEMA, ScanDirection,
    ScannedTicket, SeatLocks, Signer, SlotChecker, TicketCode, TicketParts, TicketPeers,
    TicketService, TicketSettings,
};

const SQLITE_FILE: &str = "reservation_service.db";

pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Sqlite,
    Postgres,
}

/// A migrated database with its ticket service.
pub struct World {
    folder: TempDir,
    /// How to reach its PostgreSQL, if that is its engine.
    postgres: Option<PostgresOptions>,
    /// With the rights of the server's owner. Empty on SQLite.
    admin_url: String,
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    /// The locks of `ticket`.
    pub locks: SeatLocks,
    pub ticket: TicketService,
}

impl World {
    /// `None` when PostgreSQL is not installed; with `CI=true` that is a failure.
    pub fn new(form: Form) -> Option<World> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::SeqCst);
        let clock = Clock::manual("2026-12-01T12:00:00Z".parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let (db, postgres, admin_url) = match form {
            Form::Sqlite => {
                let path = folder.path().join(SQLITE_FILE);
                migrate::migrate_sqlite(&path, &SCHEMA, clock.now()).unwrap();
                let options = SqliteOptions { queue_max: 8_192, ..SqliteOptions::default() };
                (Db::open_sqlite(&path, &options).unwrap(), None, String::new())
            }
            Form::Postgres => {
                if !servers::available(servers::Server::Postgres).unwrap() {
                    return None;
                }
                let server = servers::shared_postgres().unwrap();
                let admin_url = server.create_database("tickets").unwrap();
                let name = format!("reservation_svc_{}_{number}", std::process::id());
                let role = ServiceRole { name, password: Secret::generate() };
                provision(&admin_url, &SCHEMA, &role, clock.now()).unwrap();
                let (_, place) = admin_url.split_once('@').unwrap();
                let url = format!("postgres://{}:{}@{place}", role.name, role.password.expose());
                let options = PostgresOptions {
                    connections: 6,
                    queue_max: 8_192,
                    ..PostgresOptions::new(url, SCHEMA.name)
                };
                (Db::open_postgres(&options).unwrap(), Some(options), admin_url)
            }
        };
        let ids = IdSource::seeded(clock.clone(), 20_261_201);
        let locks = SeatLocks::memory(clock.clone());
        let ticket = make_ticket(&db, &clock, &ids, &locks, TicketSettings::default());
        Some(World { folder, postgres, admin_url, db, clock, ids, locks, ticket })
    }

    /// The same tables, seen by a process that is set up otherwise.
    pub fn ticket_with(&self, settings: TicketSettings) -> TicketService {
        self.ticket_with_locks(settings, &SeatLocks::memory(self.clock.clone()))
    }

    pub fn ticket_with_locks(&self, settings: TicketSettings, locks: &SeatLocks) -> TicketService {
        make_ticket(&self.db, &self.clock, &self.ids, locks, settings)
    }

    /// The same tables, seen by a process that asks whose turn it is.
    pub fn ticket_with_slots(&self, slots: SlotChecker) -> TicketService {
        let settings = TicketSettings::default();
        let parts = ticket_parts(&self.db, &self.clock, &self.ids, &self.locks, settings);
        TicketService::new(TicketParts { slots, ..parts })
    }

    /// The same tables, seen by a process that knows the persons behind accounts.
    pub fn ticket_with_persons(&self, persons: PersonFinder) -> TicketService {
        let settings = TicketSettings::default();
        let parts = ticket_parts(&self.db, &self.clock, &self.ids, &self.locks, settings);
        TicketService::new(TicketParts { persons, ..parts })
    }

    /// The same tables, seen by a process that asks other services.
    pub fn ticket_with_peers(&self, peers: TicketPeers) -> TicketService {
        let settings = TicketSettings::default();
        let parts = ticket_parts(&self.db, &self.clock, &self.ids, &self.locks, settings);
        TicketService::new(TicketParts { peers: Some(peers), ..parts })
    }

    /// The same tables, seen by a process whose statements may take only so long.
    pub fn ticket_in_a_hurry(&self, statement_timeout: Duration) -> TicketService {
        self.ticket_on(&self.db_in_a_hurry(statement_timeout))
    }

    /// The ticket service of a process that sees the tables through this.
    pub fn ticket_on(&self, db: &Db) -> TicketService {
        make_ticket(db, &self.clock, &self.ids, &self.locks, TicketSettings::default())
    }

    pub fn db_in_a_hurry(&self, statement_timeout: Duration) -> Db {
        let open = || match &self.postgres {
            None => {
                let options = SqliteOptions { statement_timeout, ..SqliteOptions::default() };
                Db::open_sqlite(&self.folder().join(SQLITE_FILE), &options).unwrap()
            }
            Some(options) => {
                let options = PostgresOptions { statement_timeout, ..options.clone() };
                Db::open_postgres(&options).unwrap()
            }
        };
        // Opening blocks, which the threads of the runtime must not.
        std::thread::scope(|scope| scope.spawn(open).join().unwrap())
    }

    /// The same world with another ticket service.
    pub fn with_ticket(self, ticket: TicketService) -> World {
        World { ticket, ..self }
    }

    /// The same tables, seen by a process with other data keys.
    pub fn ticket_with_data_keys(&self, data_keys: DataKeys) -> TicketService {
        let settings = TicketSettings::default();
        let parts = ticket_parts(&self.db, &self.clock, &self.ids, &self.locks, settings);
        TicketService::new(TicketParts { data_keys, ..parts })
    }

    /// Everything that is stored: the bytes of the file, or the rows as text.
    pub fn stored_bytes(&self) -> Vec<u8> {
        match &self.postgres {
            None => engines::stored_in_file(&self.folder().join(SQLITE_FILE)),
            Some(_) => engines::stored_in_postgres(&self.admin_url, SCHEMA.name),
        }
    }

    pub fn is_postgres(&self) -> bool {
        self.postgres.is_some()
    }

    pub fn context(&self) -> CallContext {
        CallContext::root(self.ids.next_id())
    }

    /// A new event on sale with these seats; everything costs 100,000 won.
    pub async fn open_sale(&self, layout: Layout) -> Uuid {
        let event_id = self.ids.next_id();
        assert!(self.sale_create(event_id, layout).await);
        event_id
    }

    /// `false`: the event was on sale before.
    pub async fn sale_create(&self, event_id: Uuid, layout: Layout) -> bool {
        self.sale_insert(new_sale(event_id, layout, &self.clock)).await
    }

    pub async fn sale_insert(&self, new: NewSale) -> bool {
        let now = self.clock.now();
        let made = self.db.write(move |tx| store::sale_create(tx, &new, now)).await;
        made.unwrap_or_else(|error: StorageError| panic!("{error}"))
    }

    /// A new standing event on sale with a type of this many tickets: event and type.
    pub async fn open_standing(&self, total: u32) -> (Uuid, Uuid) {
        let (event_id, type_id) = (self.ids.next_id(), self.ids.next_id());
        let mut new = new_sale(event_id, Layout { sections: Vec::new() }, &self.clock);
        new.inventory.kind = InventoryKind::Standing;
        new.inventory.prices.clear();
        new.ticket_types.push(NewTicketType {
            id: type_id,
            name: "스탠딩".to_owned(),
            description: String::new(),
            price: Won::new(88_000),
            total,
        });
        assert!(self.sale_insert(new).await);
        (event_id, type_id)
    }

    /// The scan of a ticket at a door of its event.
    pub fn scan(&self, payload: String, event_id: Uuid) -> ScannedTicket {
        ScannedTicket {
            scan_id: self.ids.next_id(),
            code: TicketCode::Payload(payload),
            event_id,
            direction: ScanDirection::Entry,
            door: DoorName::parse("A").unwrap(),
            staff_id: self.ids.next_id(),
        }
    }

    /// The rows of a query.
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

    /// Runs a statement that no operation has.
    pub async fn execute(&self, sql: &'static str) -> u64 {
        let done = self.db.write(move |tx| tx.execute(sql, &[])).await;
        done.unwrap_or_else(|error: StorageError| panic!("{error}"))
    }

    /// A bug, planted: from now on updates of these rows do not happen, and nobody is told.
    pub async fn skip_updates(&self, table: &str, rows: &str) {
        if !self.is_postgres() {
            let sql = format!(
                "create trigger skip before update on {table} when {rows} \
                 begin select raise(ignore); end"
            );
            let done = self.db.write(move |tx| tx.execute(&sql, &[])).await;
            done.unwrap_or_else(|error: StorageError| panic!("{error}"));
            return;
        }
        let function = "create function skip() returns trigger language plpgsql \
                        as 'begin return null; end'";
        let trigger = format!(
            "create trigger skip before update on {table} for each row when ({rows}) \
             execute function skip()"
        );
        // The service itself has no right to that.
        let options = PostgresOptions::new(self.admin_url.clone(), SCHEMA.name);
        let open = || Db::open_postgres(&options).unwrap();
        let owner = std::thread::scope(|scope| scope.spawn(open).join().unwrap());
        let done = owner.write(move |tx| {
            tx.execute(function, &[])?;
            tx.execute(&trigger, &[])
        });
        done.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
    }

    /// The folder of the SQLite file.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

fn make_ticket(
    db: &Db,
    clock: &Clock,
    ids: &IdSource,
    locks: &SeatLocks,
    settings: TicketSettings,
) -> TicketService {
    TicketService::new(ticket_parts(db, clock, ids, locks, settings))
}

fn ticket_parts(
    db: &Db,
    clock: &Clock,
    ids: &IdSource,
    locks: &SeatLocks,
    settings: TicketSettings,
) -> TicketParts {
    let (db, clock, ids) = (db.clone(), clock.clone(), ids.clone());
    let locks = locks.clone();
    let signer = Signer::new(&Secret::new("of these tests"), &[]);
    let slots = SlotChecker::AllowAll;
    let persons = PersonFinder::nobody();
    let data_keys = DataKeys::single(Secret::new("the data key of these tests"));
    let peers = None;
    TicketParts { db, clock, ids, settings, locks, signer, data_keys, slots, persons, peers }
}

/// A sale that is open for everybody from an hour ago until in ten days.
pub fn new_sale(event_id: Uuid, layout: Layout, clock: &Clock) -> NewSale {
    let now = clock.now();
    let price = |grade: &str| (grade.to_owned(), Won::new(100_000));
    let prices: BTreeMap<String, Won> = layout.grades().into_iter().map(price).collect();
    NewSale {
        inventory: Inventory { event_id, kind: InventoryKind::Seated, layout, prices },
        facts: SaleFacts {
            revision: 1,
            title: "한강의 밤".to_owned(),
            venue_name: "강변 홀".to_owned(),
            artist_id: None,
            starts_at: now + 480 * 60 * MINUTE,
            sale_starts_at: now - 60 * MINUTE,
            sale_ends_at: now + 240 * 60 * MINUTE,
            has_presale: false,
            seats_per_user_max: 4,
            requires_identity: false,
            allows_reentry: false,
            organiser_id: None,
            cancel_policy: None,
        },
        ticket_types: Vec::new(),
    }
}

/// Equal rows of one grade.
pub fn hall(rows: u16, seats_per_row: u16) -> Layout {
    let all = GradeRows { grade: "R".to_owned(), from_row: 1, to_row: rows };
    Grid { rows, seats_per_row, grade_mapping: vec![all] }.to_layout().unwrap()
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

/// A kind of difference as the audit's answer names it.
pub fn kind_name(difference: &AuditDifference) -> String {
    let kind = serde_json::to_value(difference.kind).unwrap();
    kind.as_str().unwrap().to_owned()
}
