//! What a killed process has left, seen by the next one.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio_util::sync::CancellationToken;
use urr_bus::{Bus, relay};
use urr_kernel::{DomainEvent, EventData, Uuid};
use urr_storage::{Db, StorageError, outbox};

use crate::fixture::{self, CrashFixture, SeatSold, event_id};

const PATIENCE: Duration = Duration::from_secs(30);

/// What must not be. Empty is good.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Acknowledged, and not in the database.
    pub lost: BTreeSet<Uuid>,
    /// In one table and not in another.
    pub halved: BTreeSet<Uuid>,
    /// Committed, and not on the bus.
    pub unannounced: BTreeSet<Uuid>,
    /// On the bus, and not committed.
    pub invented: BTreeSet<Uuid>,
}

/// Opens the database as the next process would, lets a relay finish, and compares.
pub async fn audit(fixture: &CrashFixture, acknowledged: &BTreeSet<i64>) -> Result<Findings> {
    let (db, bus) = (fixture.site.open_db()?, fixture.site.open_bus().await?);
    let seats = ids_of_numbers(&db, "select number from seats").await?;
    let tickets = ids_of_numbers(&db, "select number from tickets").await?;
    let outbox = ids_of_events(&db).await?;
    finish_relay(&db, &bus).await?;
    let announced = ids_on_bus(&bus).await?;
    bus.close().await;
    tokio::task::spawn_blocking(move || db.close()).await?;

    let acknowledged: BTreeSet<Uuid> = acknowledged.iter().copied().map(event_id).collect();
    let halves = [&seats ^ &tickets, &tickets ^ &outbox];
    Ok(Findings {
        lost: &acknowledged - &seats,
        halved: halves.into_iter().flatten().collect(),
        unannounced: &outbox - &announced,
        invented: &announced - &outbox,
    })
}

async fn ids_of_numbers(db: &Db, sql: &'static str) -> Result<BTreeSet<Uuid>, StorageError> {
    let numbers = db.read(move |tx| tx.query(sql, &[], |row| row.get::<i64>("number"))).await?;
    Ok(numbers.into_iter().map(event_id).collect())
}

/// Its unique index keeps the outbox from holding an event twice.
async fn ids_of_events(db: &Db) -> Result<BTreeSet<Uuid>, StorageError> {
    let sql = "select event_id from outbox";
    let ids = db.read(move |tx| tx.query(sql, &[], |row| row.get("event_id"))).await?;
    Ok(ids.into_iter().collect())
}

async fn finish_relay(db: &Db, bus: &Bus) -> Result<()> {
    let cancel = CancellationToken::new();
    let relaying = tokio::spawn(relay::run(fixture::relay(db, bus), cancel.clone()));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (waiting, _) = db.read(outbox::lag).await?;
        if waiting == 0 {
            break;
        }
        ensure!(Instant::now() < deadline, "the relay leaves {waiting} events in the outbox");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cancel.cancel();
    relaying.await?;
    Ok(())
}

/// An event may be there several times, for the relay delivers at least once.
async fn ids_on_bus(bus: &Bus) -> Result<BTreeSet<Uuid>> {
    let deliveries = bus.scan(SeatSold::TOPIC).await?;
    let ids = deliveries.iter().map(|delivery| Ok(DomainEvent::from_bytes(&delivery.body)?.id));
    ids.collect()
}
