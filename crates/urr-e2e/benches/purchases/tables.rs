//! What the services have written down, read from their tables beside them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use urr::role::ProcessRole;
use urr_kernel::Timestamp;
use urr_storage::{Db, PostgresOptions, SqliteOptions, StorageError, params};

/// The tables of the services that a purchase goes through. Nothing is written to them here.
pub struct Tables {
    ticket: Db,
    payment: Db,
    stats: Db,
}

/// Opens the database of a role: a file in the folder, or a schema of PostgreSQL.
pub fn open_database(role: ProcessRole, folder: &Path, postgres_url: Option<&str>) -> Result<Db> {
    let schema = role.schema().context("the role has tables")?;
    Ok(match postgres_url {
        None => {
            let path = folder.join(schema.name).with_extension("db");
            Db::open_sqlite(&path, &SqliteOptions::default())?
        }
        Some(url) => {
            let options = PostgresOptions::new(url, schema.name);
            Db::open_postgres(&PostgresOptions { connections: 1, ..options })?
        }
    })
}

impl Tables {
    pub fn open(folder: &Path, postgres_url: Option<&str>) -> Result<Tables> {
        let open = |role| open_database(role, folder, postgres_url);
        Ok(Tables {
            ticket: open(ProcessRole::Ticket)?,
            payment: open(ProcessRole::Payment)?,
            stats: open(ProcessRole::Stats)?,
        })
    }

    /// Whether every event is published and the statistics have it.
    pub async fn are_settled(&self) -> Result<bool> {
        let mut told = 0;
        for db in [&self.ticket, &self.payment] {
            if number(db, "select count(*) as n from outbox where published_at is null").await? > 0
            {
                return Ok(false);
            }
            told += number(db, OF_PURCHASES).await?;
        }
        let heard = "select count(*) as n from counted_messages where event_type in \
                     ('RESERVATION_CREATED', 'RESERVATION_CONFIRMED', 'PAYMENT_CONFIRMED')";
        Ok(number(&self.stats, heard).await? >= told)
    }

    /// How long it took to publish the events since then, from the moment that they tell of: that of
    /// the decision, a little before its commit.
    pub async fn publishing_delays(&self, since: Timestamp) -> Result<Vec<Duration>> {
        let mut delays = Vec::new();
        for db in [&self.ticket, &self.payment] {
            let read = db.read(move |tx| {
                let sql = "select created_at, published_at from outbox \
                           where created_at >= $1 and topic <> 'inventory-events'";
                tx.query(sql, params![since], |row| {
                    Ok((row.get("created_at")?, row.get("published_at")?))
                })
            });
            let rows: Result<Vec<(Timestamp, Timestamp)>, StorageError> = read.await;
            let delay = |(created_at, published_at): (Timestamp, Timestamp)| {
                published_at.duration_since(created_at).unsigned_abs()
            };
            delays.extend(rows?.into_iter().map(delay));
        }
        Ok(delays)
    }

    /// Whether so many purchases are in all tables, and nothing else is.
    pub async fn check(&self, sold: i64, price: i64) -> Result<()> {
        let taken = sold * price;
        for (db, what, sql, expected) in [
            (&self.ticket, "confirmed reservations", CONFIRMED, sold),
            (&self.ticket, "reservations", "select count(*) as n from reservations", sold),
            (
                &self.ticket,
                "sold seats",
                "select count(*) as n from seats where status = 'sold'",
                sold,
            ),
            (&self.ticket, "seats of live items", LIVE_SEATS, sold),
            (&self.ticket, "tickets", "select count(*) as n from tickets", sold),
            (&self.payment, "payments", "select count(*) as n from payments", sold),
            (&self.payment, "confirmed payments", PAID, sold),
            (&self.payment, "charged", CHARGED, taken),
            (&self.payment, "taken by the sandbox", TAKEN, taken),
            (&self.stats, "counted sales", COUNTED, sold),
            (&self.stats, "counted revenue", REVENUE, taken),
        ] {
            let found = number(db, sql).await?;
            ensure!(found == expected, "{what}: {found} instead of {expected}");
        }
        Ok(())
    }
}

const OF_PURCHASES: &str =
    "select count(*) as n from outbox where topic in ('reservation-events', 'payment-events')";
const CONFIRMED: &str = "select count(*) as n from reservations \
                         where status = 'confirmed' and payment_status = 'paid'";
const LIVE_SEATS: &str = "select count(distinct seat_id) as n from reservation_items where is_live";
const PAID: &str = "select count(distinct payable_id) as n from payments \
                    where status = 'confirmed' and step is null";
const CHARGED: &str =
    "select cast(sum(charged_amount - refunded_amount) as bigint) as n from payments";
const TAKEN: &str = "select cast(sum(amount) as bigint) as n from sandbox_movements";
const COUNTED: &str = "select cast(sum(confirmed) as bigint) as n from hour_counters";
const REVENUE: &str = "select cast(sum(charged - refunded) as bigint) as n from hour_counters";

async fn number(db: &Db, sql: &'static str) -> Result<i64> {
    let read = db.read(move |tx| tx.query_one(sql, &[], |row| row.get("n")));
    let number: Result<i64, StorageError> = read.await;
    Ok(number?)
}
