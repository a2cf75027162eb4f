//! The same work without the program: bare `rusqlite`, and pgbench.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, OptionalExtension, params};
use urr_kernel::{Clock, IdSource, Uuid};
use urr_storage::{Db, SqliteOptions, migrate};
use urr_ticket::SCHEMA;
use urr_ticket::inventory::store::sale_create;

use crate::crowd::Measured;
use crate::service::{BenchService, new_sale};
use crate::{ROUND, SEATS};

const BODY: &str = r#"{"specversion":"1.0","id":"01938d2c-8a00-7000-8000-000000000001","source":"urr/ticket","type":"RESERVATION_CREATED","subject":"01938d2c-8a00-7000-8000-000000000002","time":"2026-12-01T12:00:00Z","datacontenttype":"application/json","data":{"eventId":"01938d2c-8a00-7000-8000-000000000003","expiresAt":"2026-12-01T12:05:00Z","quantity":1,"reservationId":"01938d2c-8a00-7000-8000-000000000002","reservationNumber":"R-0000-0000-0000","seatIds":[12],"totalAmount":99000,"userId":"01938d2c-8a00-7000-8000-000000000004"},"correlationid":"01938d2c-8a00-7000-8000-000000000005","traceparent":"00-01938d2c8a0070008000000000000005-8000000000000005-01"}"#;

const LOCK: &str = "select fence, status, is_complete, artist_id, sale_starts_at, sale_ends_at, \
    has_presale, seats_per_user_max from sales where event_id = ?1";
const NUMBER: &str = "update sales set fence = ?2 where event_id = ?1";
const SEAT: &str = "select status from seats where event_id = ?1 and seat_id = ?2";
const BUYER: &str = "select id, status, quantity from reservations where event_id = ?1 \
    and user_id = ?2 and status in ('pending', 'confirmed')";
const HOLD: &str = "update seats set status = 'held', reservation_id = ?3, fence = ?4 \
    where event_id = ?1 and seat_id = ?2 and status = 'available'";
const RESERVATION: &str = "insert into reservations (id, number, user_id, event_id, status, \
    payment_status, total_amount, booking_fee, quantity, fence, expires_at, cancel_policy, \
    agreed_starts_at, announced_starts_at, created_at, updated_at) values (?1, ?2, ?3, ?4, \
    'pending', 'unpaid', 99000, 0, 1, ?5, ?6, '{}', ?6, ?6, ?6, ?6)";
const ITEM: &str = "insert into reservation_items (reservation_id, position, event_id, seat_id, \
    quantity, unit_price, is_live) values (?1, 0, ?2, ?3, 1, 99000, 1)";
const OUTBOX: &str = "insert into outbox (event_id, topic, key, body, created_at) \
    values (?1, 'reservation-events', ?2, ?3, ?4)";

/// A file with the same tables, and nothing before it.
pub struct BareSqlite {
    connection: Connection,
    ids: IdSource,
    event_id: Uuid,
    next_seat: u32,
    fence: i64,
    path: std::path::PathBuf,
}

impl BareSqlite {
    pub fn open(path: &Path) -> Result<BareSqlite> {
        migrate::migrate_sqlite(path, &SCHEMA, Clock::System.now())?;
        let connection = Connection::open(path)?;
        connection.execute_batch("pragma journal_mode = wal; pragma synchronous = full;")?;
        connection.execute_batch("pragma foreign_keys = on; pragma temp_store = memory;")?;
        connection.set_prepared_statement_cache_capacity(64);
        let ids = IdSource::from_system_randomness(Clock::System);
        let (event_id, path) = (Uuid::nil(), path.to_owned());
        Ok(BareSqlite { connection, ids, event_id, next_seat: SEATS, fence: 0, path })
    }

    /// The service's statements in a loop on one thread, committed in groups of the same size.
    pub fn run(&mut self, group: usize, measured: &mut Measured) -> Result<()> {
        self.open_sale()?;
        let mut count = 0;
        let started = Instant::now();
        while started.elapsed() < ROUND && self.next_seat < SEATS {
            self.connection.execute_batch("begin immediate")?;
            let event_id = self.event_id.as_bytes();
            self.connection.prepare_cached(LOCK)?.query_row([event_id], |_| Ok(()))?;
            for _ in 0..group {
                if self.next_seat == SEATS {
                    break;
                }
                self.reserve()?;
                count += 1;
            }
            let event_id = self.event_id.as_bytes();
            self.connection.prepare_cached(NUMBER)?.execute(params![event_id, self.fence])?;
            self.connection.execute_batch("commit")?;
        }
        let time = started.elapsed();
        print!("  bare ");
        measured.add(Measured { count, time, latencies: Vec::new() });
        Ok(())
    }

    fn reserve(&mut self) -> Result<()> {
        let (seat_id, event_id) = (self.next_seat, self.event_id.as_bytes());
        self.next_seat += 1;
        self.fence += 1;
        let (id, user_id, announcement_id) =
            (self.ids.next_id(), self.ids.next_id(), self.ids.next_id());
        let now = Clock::System.now().as_microsecond();
        let connection = &self.connection;
        let _status: String = connection
            .prepare_cached(SEAT)?
            .query_row(params![event_id, seat_id], |row| row.get(0))?;
        let _buyer: Option<String> = connection
            .prepare_cached(BUYER)?
            .query_row(params![event_id, user_id.as_bytes()], |row| row.get(1))
            .optional()?;
        connection.prepare_cached(HOLD)?.execute(params![
            event_id,
            seat_id,
            id.as_bytes(),
            self.fence
        ])?;
        connection.prepare_cached(RESERVATION)?.execute(params![
            id.as_bytes(),
            format!("R-{}", &id.simple().to_string()[20..]),
            user_id.as_bytes(),
            event_id,
            self.fence,
            now
        ])?;
        connection.prepare_cached(ITEM)?.execute(params![id.as_bytes(), event_id, seat_id])?;
        connection.prepare_cached(OUTBOX)?.execute(params![
            announcement_id.as_bytes(),
            id.to_string(),
            BODY,
            now
        ])?;
        Ok(())
    }

    fn open_sale(&mut self) -> Result<()> {
        self.event_id = self.ids.next_id();
        (self.next_seat, self.fence) = (0, 0);
        let (new, now) = (new_sale(self.event_id), Clock::System.now());
        let db = Db::open_sqlite(&self.path, &SqliteOptions::default())?;
        let making = db.write(move |tx| sale_create(tx, &new, now));
        tokio::runtime::Builder::new_current_thread().build()?.block_on(making)?;
        db.close();
        Ok(())
    }
}

/// Reservations per second by pgbench, of an event of its own.
pub fn pgbench(service: &BenchService) -> Result<f64> {
    let url = service.postgres_url.as_deref().context("the service is on PostgreSQL")?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (event_id, _) = runtime.block_on(service.open_sale());
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("reserve.sql");
    std::fs::write(&script, pgbench_script(event_id))?;
    let output = Command::new("pgbench")
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=2", "--client=32"])
        .arg(format!("--time={}", ROUND.as_secs()))
        .arg(format!("--file={}", script.display()))
        .env("PGOPTIONS", format!("-c search_path={}", SCHEMA.name))
        .arg(url)
        .output()
        .context("pgbench comes with PostgreSQL's client programs")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find(|line| line.starts_with("tps = ")).context("pgbench gives tps")?;
    let rate: f64 = line.split_whitespace().nth(2).context("a figure")?.parse()?;
    println!("  pgbench {rate:.0}/s");
    Ok(rate)
}

/// Ids are made by pgbench itself, without another round trip. A seat that comes up twice costs the
/// same work and no error.
fn pgbench_script(event_id: Uuid) -> String {
    let (event, id) = (format!("'{event_id}'"), "lpad(to_hex(:id::bigint), 32, '0')");
    let user = "lpad(to_hex(:user::bigint), 32, '0')::uuid";
    [
        format!("\\set seat random(0, {})", SEATS - 1),
        format!("\\set id random(1, {})", i64::MAX),
        format!("\\set user random(1, {})", i64::MAX),
        "begin;".to_owned(),
        format!("select status from seats where event_id = {event} and seat_id = :seat;"),
        format!(
            "select id, status, quantity from reservations where event_id = {event} \
             and user_id = {user} and status in ('pending', 'confirmed');"
        ),
        format!(
            "update seats set status = 'held', reservation_id = {id}::uuid, fence = fence + 1 \
             where event_id = {event} and seat_id = :seat;"
        ),
        format!(
            "insert into reservations (id, number, user_id, event_id, status, payment_status, \
             total_amount, booking_fee, quantity, fence, expires_at, cancel_policy, agreed_starts_at, \
             announced_starts_at, created_at, updated_at) values ({id}::uuid, {id}, {user}, {event}, \
             'pending', 'unpaid', 99000, 0, 1, 1, now(), '{{}}', now(), now(), now(), now());"
        ),
        format!(
            "insert into reservation_items (reservation_id, position, event_id, seat_id, \
             quantity, unit_price, is_live) values ({id}::uuid, 0, {event}, :seat, 1, 99000, true) \
             on conflict do nothing;"
        ),
        format!(
            "insert into outbox (event_id, topic, key, body, created_at) values ({id}::uuid, \
             'reservation-events', {id}, '{BODY}', now());"
        ),
        "end;".to_owned(),
    ]
    .join("\n")
}
