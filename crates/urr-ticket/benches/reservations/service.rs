//! The ticket service under test, listening on loopback.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use urr_kernel::{Clock, IdSource, Secret, Uuid, Won};
use urr_layout::{GradeRows, Grid};
use urr_service::{InternalCredentials, Metrics, RequestLimits, ServiceKit, serve};
use urr_storage::{
    Db, PostgresOptions, ServiceRole, SqliteOptions, StorageError, migrate, provision,
};
use urr_test::servers;
use urr_ticket::inventory::store::{NewSale, SaleFacts, sale_create};
use urr_ticket::{
    Inventory, InventoryKind, SCHEMA, SeatLocks, Signer, SlotChecker, TicketParts, TicketService,
    TicketSettings,
};

use crate::{SEATS, timed};

const SEATS_PER_ROW: u16 = 250;

pub struct BenchService {
    pub db: Db,
    pub ids: IdSource,
    pub address: SocketAddr,
    pub credentials: InternalCredentials,
    /// Of the service's login; only on PostgreSQL.
    pub postgres_url: Option<String>,
}

impl BenchService {
    pub async fn on_sqlite(path: &Path, locks: SeatLocks) -> Result<BenchService> {
        migrate::migrate_sqlite(path, &SCHEMA, Clock::System.now())?;
        let options = SqliteOptions { queue_max: 4_096, ..SqliteOptions::default() };
        BenchService::open(Db::open_sqlite(path, &options)?, locks, None).await
    }

    pub async fn on_postgres(locks: SeatLocks) -> Result<BenchService> {
        let admin_url = servers::shared_postgres()?.create_database("reservations")?;
        let password = Secret::generate();
        let name = format!("bench_{}", admin_url.rsplit('/').next().context("a database")?);
        let role = ServiceRole { name, password };
        // The driver blocks, and so it may not run on a thread that drives tasks.
        let url = tokio::task::spawn_blocking(move || -> Result<String> {
            provision(&admin_url, &SCHEMA, &role, Clock::System.now())?;
            let (_, place) = admin_url.split_once('@').context("the URL names a user")?;
            Ok(format!("postgres://{}:{}@{place}", role.name, role.password.expose()))
        })
        .await??;
        let options =
            PostgresOptions { queue_max: 4_096, ..PostgresOptions::new(&url, SCHEMA.name) };
        let db = tokio::task::spawn_blocking(move || Db::open_postgres(&options)).await??;
        BenchService::open(db, locks, Some(url)).await
    }

    async fn open(db: Db, locks: SeatLocks, postgres_url: Option<String>) -> Result<BenchService> {
        let clock = Clock::System;
        let ids = IdSource::from_system_randomness(clock.clone());
        let ticket = TicketService::new(TicketParts {
            db: db.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            settings: TicketSettings::default(),
            locks,
            signer: Signer::new(&Secret::generate(), &[]),
            data_keys: urr_service::DataKeys::single(Secret::generate()),
            slots: SlotChecker::AllowAll,
            persons: urr_ticket::PersonFinder::nobody(),
            peers: None,
        });
        let kit = ServiceKit {
            clock,
            ids: ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let credentials = InternalCredentials::from_root(&Secret::generate());
        let router = ticket.service(&kit).network_router(&credentials);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(serve(listener, router, CancellationToken::new(), Duration::ZERO));
        Ok(BenchService { db, ids, address, credentials, postgres_url })
    }

    /// A new event with all its seats, and how long they took to make.
    pub async fn open_sale(&self) -> (Uuid, Duration) {
        let new = new_sale(self.ids.next_id());
        let (event_id, now) = (new.inventory.event_id, Clock::System.now());
        let making = self.db.write(move |tx| sale_create(tx, &new, now));
        let (made, took) = timed(making).await;
        assert_eq!(made, Ok::<bool, StorageError>(true));
        (event_id, took)
    }

    pub fn close(&self) {
        self.db.close();
    }
}

/// An event on sale, with as many seats as a stadium.
pub fn new_sale(event_id: Uuid) -> NewSale {
    let rows = u16::try_from(SEATS / u32::from(SEATS_PER_ROW)).expect("rows are few");
    let all = GradeRows { grade: "R".to_owned(), from_row: 1, to_row: rows };
    let grid = Grid { rows, seats_per_row: SEATS_PER_ROW, grade_mapping: vec![all] };
    let layout = grid.to_layout().expect("it is a hall");
    assert_eq!(layout.seat_count(), SEATS);
    let (now, day) = (Clock::System.now(), Duration::from_secs(86_400));
    let prices = BTreeMap::from([("R".to_owned(), Won::new(99_000))]);
    NewSale {
        inventory: Inventory { event_id, kind: InventoryKind::Seated, layout, prices },
        facts: SaleFacts {
            revision: 1,
            title: "우르르 콘서트".to_owned(),
            venue_name: "종합운동장".to_owned(),
            artist_id: None,
            starts_at: now + 30 * day,
            sale_starts_at: now - day,
            sale_ends_at: now + 29 * day,
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
