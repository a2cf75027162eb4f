//! `urr audit`: everything agrees, or what does not is named with its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use urr_storage::Schema;

use crate::audit::{change, sell_a_ticket};
use crate::many_purchases::copy_purchase;
use crate::process::{
    CommandOutput, Installation, Process, Running, eventually, eventually_within,
};

/// A hand in the tables of each service, and the kinds of differences that must be named.
const DAMAGES: [(&Schema, &str, &str, &[&str]); 17] = [
    (
        &urr_ticket::SCHEMA,
        "update seats set status = 'held' where status = 'sold'",
        "seats",
        &["seatStatus"],
    ),
    (
        &urr_ticket::SCHEMA,
        "update sales set seats_total = seats_total + 1",
        "sales",
        &["seatCount"],
    ),
    (
        &urr_ticket::SCHEMA,
        "update tickets set position = 9 where is_valid",
        "tickets",
        &["ticketWithoutItem"],
    ),
    (
        &urr_ticket::SCHEMA,
        "update reservations set total_amount = total_amount + 1 where status = 'confirmed'",
        "reservations",
        &["amount", "unpaid"],
    ),
    (
        &urr_ticket::SCHEMA,
        "insert into memberships (id, user_id, artist_id, tier, status, expires_at, points) \
         select id, user_id, id, 'silver', 'active', created_at, 7 from reservations limit 1",
        "memberships",
        &["points"],
    ),
    (
        &urr_ticket::SCHEMA,
        "insert into membership_terms (membership_id, number, payment_status, amount, payment_id, \
         starts_at, ends_at, created_at, updated_at) select id, 1, 'paid', 5, id, created_at, \
         created_at, created_at, created_at from reservations limit 1",
        "membership_terms",
        &["membership"],
    ),
    (
        &urr_ticket::SCHEMA,
        "insert into transfers (id, reservation_id, number, event_id, seller_id, \
         seller_payment_id, original_price, fee_percent, fee, status, created_at, updated_at) \
         select id, id, 1, event_id, event_id, payment_id, total_amount, 10, 0, 'listed', \
         created_at, created_at from reservations where status = 'confirmed'",
        "reservations",
        &["transfer"],
    ),
    (
        &urr_payment::SCHEMA,
        "update ledger_lines set amount = amount + 1 where account = 'sales'",
        "payments",
        &["books"],
    ),
    (
        &urr_payment::SCHEMA,
        "update sandbox_payments set charged = charged + 1",
        "sandbox_payments",
        &["sandbox"],
    ),
    (
        &urr_payment::SCHEMA,
        "update sandbox_movements set amount = amount + 5",
        "sandbox_payments",
        &["sandbox"],
    ),
    (
        &urr_stats::SCHEMA,
        "update hour_counters set confirmed = confirmed + 1",
        "hour_counters",
        &["counters"],
    ),
    (&urr_stats::SCHEMA, "update sold_seats set sold = sold + 1", "sold_seats", &["counters"]),
    (
        &urr_stats::SCHEMA,
        "update reservations set quantity = quantity + 1",
        "statistics",
        &["statistics"],
    ),
    (
        &urr_stats::SCHEMA,
        "delete from transactions where kind = 'charge'",
        "payments",
        &["statistics"],
    ),
    (
        &urr_payment::SCHEMA,
        "insert into outbox (event_id, topic, key, body, created_at) select id, \
         'payment-events', 'k', 'b', created_at - 3600000000 from payments limit 1",
        "outbox",
        &["outbox"],
    ),
    (
        &urr_room::JOURNAL,
        "update slot_log set inside_max = 0, number = 5, last_number = 9 where change = 'admitted'",
        "slot_log",
        &["threshold"],
    ),
    (&urr_room::JOURNAL, "delete from slot_log where change = 'ended'", "slot_log", &["roomLog"]),
];

fn audit(installation: &Installation, arguments: &[&str]) -> Result<CommandOutput> {
    installation.run(&[&["audit"], arguments].concat())
}

/// A system in which tickets were sold, wherever it runs.
pub fn check_whole_audit(installation: &Installation) -> Result<()> {
    let mut text = String::new();
    // What was just sold is on its way to the statistics.
    eventually("everything agrees", || {
        let outcome = audit(installation, &[])?;
        text = format!("{}{}", outcome.stdout, outcome.stderr);
        Ok(outcome.status.code() == Some(0))
    })
    .with_context(|| text.clone())?;
    for part in ["seats, holds", "payments and books", "the provider", "statistics", "messages"] {
        assert!(text.contains(&format!("ok        {part}")), "{part} is not in {text}");
    }
    let rooms = text.lines().find(|line| line.contains("waiting rooms:"));
    assert!(rooms.is_some_and(|line| !line.contains(" 0 admissions")), "{text}");
    Ok(())
}

#[test]
fn everything_agrees_and_every_kind_of_damage_is_named_with_its_rows() -> Result<()> {
    let mut installation = Installation::new()?;
    let nothing = audit(&installation, &[])?;
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("there is no system in"), "{nothing:?}");
    assert!(!installation.path("data").exists(), "looking makes nothing");

    installation.share_secrets();
    let urr = installation.up(&[])?;
    drop(sell_a_ticket(&installation, urr.port)?);
    check_whole_audit(&installation)?;
    // Beside a running system what differs is looked at again.
    let moved = "update seats set fence = fence, status = 'held' where status = 'sold'";
    change(&installation, &urr_ticket::SCHEMA, moved)?;
    let wrong = audit(&installation, &[])?;
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("1 difference"), "{wrong:?}");
    let back = "update seats set status = 'sold' where status = 'held'";
    change(&installation, &urr_ticket::SCHEMA, back)?;
    urr.stop("TERM")?.succeeded()?;
    check_whole_audit(&installation)?;

    for (schema, sql, _, _) in DAMAGES {
        change(&installation, schema, sql).with_context(|| sql.to_owned())?;
    }
    let wrong = audit(&installation, &["--json"])?;
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    let report: Value = serde_json::from_str(&wrong.stdout)?;
    let parts = report["parts"].as_array().context("a list")?;
    let found = parts.iter().flat_map(|part| part["differences"].as_array().into_iter().flatten());
    let found: Vec<&Value> = found.collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kinds: BTreeSet<String> = found.iter().map(|it| text(&it["kind"])).collect();
    let rows = found.iter().flat_map(|it| it["rows"].as_array().into_iter().flatten());
    let table = |row: &Value| text(row).split(' ').next().unwrap_or_default().to_owned();
    let tables: BTreeSet<String> = rows.map(table).collect();
    for (_, sql, table, expected) in DAMAGES {
        for kind in expected {
            ensure!(kinds.contains(*kind), "{kind} is not found after {sql}: {report}");
        }
        ensure!(tables.contains(table), "no row of {table} after {sql}: {report}");
    }
    Ok(())
}

/// A folder in which one ticket was sold, and the system that runs on it.
fn sold(installation: &mut Installation) -> Result<Running> {
    installation.share_secrets();
    let urr = installation.up(&[])?;
    drop(sell_a_ticket(installation, urr.port)?);
    check_whole_audit(installation)?;
    Ok(urr)
}

/// The bytes of every file in the data folder. The shared memory of SQLite is no data: who reads
/// beside others says so in it.
fn files(installation: &Installation) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(installation.path("data"))? {
        let file = file?;
        let (path, name) = (file.path(), file.file_name().to_string_lossy().into_owned());
        if path.is_file() && !name.ends_with("-shm") {
            found.insert(name, fs::read(path)?);
        }
    }
    Ok(found)
}

fn assert_unchanged(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) {
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(before), names(after));
    for (name, bytes) in before {
        assert!(after.get(name) == Some(bytes), "{name} was changed");
    }
}

#[test]
fn an_audit_only_looks() -> Result<()> {
    let mut installation = Installation::new()?;
    let urr = sold(&mut installation)?;
    urr.stop("KILL")?;
    // The process had no time to fold its logs into its files.
    let before = files(&installation)?;
    assert!(before.keys().any(|name| name.ends_with("-wal")), "{:?}", before.keys());
    audit(&installation, &[])?.succeeded()?;
    audit(&installation, &["money"])?.succeeded()?;
    assert_unchanged(&before, &files(&installation)?);

    installation.up(&[])?.stop("TERM")?.succeeded()?;
    let before = files(&installation)?;
    assert!(!before.keys().any(|name| name.ends_with("-wal")), "{:?}", before.keys());
    let set_rights = |rights| fs::set_permissions(installation.path("data"), rights);
    set_rights(Permissions::from_mode(0o500))?;
    audit(&installation, &[])?.succeeded()?;
    audit(&installation, &["money"])?.succeeded()?;
    set_rights(Permissions::from_mode(0o700))?;
    assert_unchanged(&before, &files(&installation)?);

    // A charge that we gave up: the reconciliation would resume it.
    let abandoned = "update payments set status = 'failed', charged_amount = 0, step = null";
    change(&installation, &urr_payment::SCHEMA, abandoned)?;
    let before = files(&installation)?;
    assert_eq!(audit(&installation, &[])?.status.code(), Some(1));
    assert_eq!(audit(&installation, &["money"])?.status.code(), Some(1));
    assert_unchanged(&before, &files(&installation)?);

    // As an older program leaves it.
    let older = "delete from schema_migrations where series = 'kit' and version = 4";
    change(&installation, &urr_payment::SCHEMA, older)?;
    let before = files(&installation)?;
    let refused = audit(&installation, &[])?;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("lacks migrations (kit 4 (whole audits))"), "{refused:?}");
    assert_unchanged(&before, &files(&installation)?);
    Ok(())
}

/// Enough that the tables do not fit into the caches of an audit.
const FEW: u64 = 10_000;
const MANY: u64 = 10 * FEW;
/// An audit of many payments takes a while on a busy machine.
const AUDIT_PATIENCE: Duration = Duration::from_secs(180);
/// An audit that keeps less than this of each payment is not noticed: an id and the name of an order
/// take more.
const PAYMENT_BYTES_MIN: u64 = 64;
/// Memory that is not needed any more is given back at once, so that what is measured is what is held.
const GIVE_BACK: [(&str, &str); 2] = [("MIMALLOC_PURGE_DELAY", "0"), ("MALLOC_ARENA_MAX", "1")];

/// The most memory that an audit of so many payments had.
fn audit_memory(installation: &Installation, payments: u64) -> Result<u64> {
    let mut process = Process::start(installation.command(&["audit"]))?;
    let mut peak = 0;
    eventually_within(AUDIT_PATIENCE, "the audit ends", || {
        peak = peak.max(process.memory_bytes().unwrap_or(0));
        Ok(!process.is_running()?)
    })?;
    let said = process.await_end()?.succeeded()?.stdout;
    let compared = format!("{payments} payments beside the sandbox");
    ensure!(said.contains(&compared), "{compared:?} is not in {said}");
    Ok(peak)
}

#[test]
fn an_audit_of_ten_times_as_many_payments_needs_no_more_memory() -> Result<()> {
    let mut installation = Installation::new()?;
    sold(&mut installation)?.stop("TERM")?.succeeded()?;
    GIVE_BACK.iter().for_each(|(name, value)| installation.set(name, value));
    copy_purchase(&installation, 1, FEW - 1)?;
    let few = audit_memory(&installation, FEW)?;
    copy_purchase(&installation, FEW, MANY - 1)?;
    let many = audit_memory(&installation, MANY)?;
    let more_max = (MANY - FEW) * PAYMENT_BYTES_MIN;
    ensure!(many < few + more_max, "{few} bytes for {FEW} payments, {many} for {MANY}");
    Ok(())
}
