//! The least that a purchase has to write: the same rows in three transactions (the hold, the order
//! that may be charged, the charge with ledger, ticket and events), without the program.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::baseline::{BODY, run};

const TIME: Duration = Duration::from_secs(3);

const TABLES: &str = "\
    create table if not exists least_seats (id bigint primary key, status text, holder bigint);\
    create table if not exists least_reservations (id bigint primary key, user_id bigint, \
        status text, payment_id bigint);\
    create table if not exists least_items (reservation_id bigint primary key, seat_id bigint);\
    create table if not exists least_payments (id bigint primary key, reservation_id bigint, \
        status text, charged bigint);\
    create table if not exists least_entries (id bigint primary key, payment_id bigint, kind text);\
    create table if not exists least_lines (entry_id bigint, account text, amount bigint);\
    create table if not exists least_tickets (id bigint primary key, reservation_id bigint);\
    create table if not exists least_events (id bigint, body text);";

/// The statements of the three transactions; `:id` is the number of the purchase.
const TRANSACTIONS: [&[&str]; 3] = [
    &[
        "insert into least_seats values (:id, 'held', :id)",
        "insert into least_reservations values (:id, :id, 'pending', null)",
        "insert into least_items values (:id, :id)",
        "insert into least_events values (:id, ':body')",
    ],
    &["insert into least_payments values (:id, :id, 'approving', 0)"],
    &[
        "update least_payments set status = 'confirmed', charged = 99000 where id = :id",
        "insert into least_entries values (:id * 2, :id, 'charge')",
        "insert into least_entries values (:id * 2 + 1, :id, 'deliver')",
        "insert into least_lines values (:id * 2, 'provider', 99000), \
         (:id * 2, 'deposits', -99000), (:id * 2 + 1, 'deposits', 99000), \
         (:id * 2 + 1, 'sales', -99000)",
        "update least_reservations set status = 'confirmed', payment_id = :id where id = :id",
        "update least_seats set status = 'sold' where id = :id",
        "insert into least_tickets values (:id, :id)",
        "insert into least_events values (:id, ':body')",
        "insert into least_events values (:id, ':body')",
    ],
];

fn statement(text: &str, id: &str) -> String {
    text.replace(":body", BODY).replace(":id", id)
}

/// Purchases per second on SQLite: those of all buyers share a commit, as they may.
pub fn sqlite(buyers: usize) -> Result<f64> {
    let folder = TempDir::new()?;
    let file = Connection::open(folder.path().join("least"))?;
    file.execute_batch("pragma journal_mode = wal; pragma synchronous = full;")?;
    file.execute_batch(TABLES)?;
    let (begun, mut sold) = (Instant::now(), 0_i64);
    let group = i64::try_from(buyers)?;
    while begun.elapsed() < TIME {
        for transaction in TRANSACTIONS {
            file.execute_batch("begin immediate")?;
            for id in sold..sold + group {
                for text in transaction {
                    file.prepare_cached(&statement(text, "?1"))?.execute([id])?;
                }
            }
            file.execute_batch("commit")?;
        }
        sold += group;
    }
    Ok(sold as f64 / begun.elapsed().as_secs_f64())
}

/// Purchases per second on PostgreSQL, with a connection per buyer.
pub fn postgres(url: &str, buyers: usize) -> Result<f64> {
    let folder = TempDir::new()?;
    let (tables, script) = (folder.path().join("tables.sql"), folder.path().join("work.sql"));
    std::fs::write(&tables, format!("create sequence if not exists least_ids; {TABLES}"))?;
    std::fs::write(&script, pgbench_script())?;
    run(Command::new("psql").arg("--quiet").arg(url).arg("--file").arg(&tables))?;
    pgbench(url, &script, buyers)
}

fn pgbench_script() -> String {
    let mut lines = vec!["select nextval('least_ids') as id \\gset".to_owned()];
    for transaction in TRANSACTIONS {
        lines.push("begin;".to_owned());
        lines.extend(transaction.iter().map(|text| statement(text, ":id") + ";"));
        lines.push("end;".to_owned());
    }
    lines.join("\n")
}

fn pgbench(url: &str, script: &Path, buyers: usize) -> Result<f64> {
    let text = run(Command::new("pgbench")
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
        .arg(format!("--client={buyers}"))
        .arg(format!("--time={}", TIME.as_secs()))
        .arg(format!("--file={}", script.display()))
        .arg(url))?;
    let line = text.lines().find(|line| line.starts_with("tps = ")).context("pgbench gives tps")?;
    Ok(line.split_whitespace().nth(2).context("a figure")?.parse()?)
}
