//! `urr backup` and `urr restore`: a sale is copied while it runs, and every copy comes back whole.
//! The drill: what was sold after the backup is lost, but not what was paid for it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use urr_storage::{Db, SqliteOptions, StorageError};

use crate::process::{CommandOutput, Installation, Process, Running, eventually};
use crate::rush::event_on_sale;

/// Fans are quick, so that the test is.
pub const RUSH: [&str; 10] =
    ["rush", "run", "--fans", "150", "--choosing", "0.2", "--paying", "0.2", "--max-minutes", "3"];

/// The names of the backups, the oldest first.
fn backups(installation: &Installation) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(installation.path("backups"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("urr-") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// What the audit of a running or stopped folder says, when everything is explained.
pub fn explained(installation: &Installation, folder: &str) -> Result<Value> {
    let arguments = ["audit", "money", "--json", "--data", folder];
    let mut report = Value::Null;
    eventually("every won is explained", || {
        let outcome = installation.run(&arguments)?;
        report = serde_json::from_str(&outcome.stdout).with_context(|| format!("{outcome:?}"))?;
        Ok(outcome.status.success())
    })?;
    Ok(report)
}

fn restore(installation: &Installation, name: &str, folder: &str) -> Result<Running> {
    let from = format!("backups/{name}");
    let secrets = "data/secrets.toml";
    let arguments = ["restore", "--from", &from, "--secrets", secrets, "--data", folder];
    let told = installation.run(&arguments)?.succeeded()?.stdout;
    ensure!(told.contains("urr audit money --since "), "{told}");
    installation.up(&["--data", folder])
}

#[test]
fn a_sale_is_backed_up_while_it_runs_and_every_backup_comes_back_whole() -> Result<()> {
    let installation = Installation::new()?;
    let urr = installation.up(&[])?;
    let event = event_on_sale(&installation)?;
    installation.run(&["rush", "prepare", "--fans", "150"])?.succeeded()?;
    let mut rush =
        Process::start(installation.command(&[&RUSH[..], &["--event", &event]].concat()))?;
    let mut made = 0;
    while rush.is_running()? {
        let said = installation.run(&["backup", "--to", "backups", "--keep", "3"])?;
        ensure!(said.status.success(), "{said:?}");
        ensure!(said.stdout.contains("secrets.toml is not in it"), "{said:?}");
        made += 1;
    }
    rush.await_end()?.succeeded()?;
    ensure!(made > 3, "the sale was over after {made} backups");
    let names = backups(&installation)?;
    assert_eq!(names.len(), 3, "older ones are removed: {names:?}");
    urr.stop("TERM")?.succeeded()?;
    let everything = explained(&installation, "data")?;

    for (number, name) in names.iter().enumerate() {
        let folder = format!("restored-{number}");
        let urr = restore(&installation, name, &folder)?;
        let report = explained(&installation, &folder)?;
        assert_eq!(report["explained"], true, "{report}");
        let sold = |report: &Value| report["ledger"]["charged"].as_i64();
        ensure!(sold(&report) <= sold(&everything), "{report} {everything}");
        urr.stop("TERM")?.succeeded()?;
    }
    Ok(())
}

#[test]
fn what_cannot_be_backed_up_or_restored_is_refused() -> Result<()> {
    let mut installation = Installation::new()?;
    let nothing = installation.run(&["backup", "--to", "backups"])?;
    nothing.refused_with(&["user_service.db does not exist"]);
    assert!(!installation.path("backups").exists() && !installation.path("data").exists());
    installation.up(&[])?.stop("TERM")?.succeeded()?;
    // As a backup leaves it that was killed.
    let partial = installation.path("backups/urr-20260101T000000.000Z.partial");
    fs::create_dir_all(&partial)?;
    installation.run(&["backup", "--to", "backups"])?.succeeded()?;
    assert!(!partial.exists());
    let name = backups(&installation)?.pop().context("one was made")?;
    let from = format!("backups/{name}");
    installation.run(&["restore", "--from", &from])?.refused_with(&["data is not empty"]);
    let elsewhere = ["restore", "--from", &from, "--data", "elsewhere"];
    installation.run(&elsewhere)?.refused_with(&["--secrets"]);
    let damaged = installation.path(&from).join("bus.db");
    let mut bytes = fs::read(&damaged)?;
    bytes[5_000] ^= 1;
    fs::write(&damaged, bytes)?;
    let whole = [&elsewhere[..], &["--secrets", "data/secrets.toml"]].concat();
    installation.run(&whole)?.refused_with(&["bus.db of", "is not what was backed up"]);
    assert!(!installation.path("elsewhere").exists());
    installation.set("URR_DATABASE_URL", "postgres://127.0.0.1:1/urr");
    installation.run(&["backup", "--to", "backups"])?.refused_with(&["are on PostgreSQL"]);
    Ok(())
}

/// The memory of the sandbox, which a real provider keeps elsewhere: it survives the loss of ours.
struct ProviderMemory {
    payments: Vec<String>,
    movements: Vec<String>,
}

/// Columns of text, as the two tables have them.
const SANDBOX_PAYMENTS: &str = "payment_key, order_id, amount, attempts, charged, refunded, refusal, \
                                created_at, approved_at";
const SANDBOX_MOVEMENTS: &str = "idempotency_key, payment_key, amount, moved_at";

fn books(installation: &Installation, folder: &str) -> PathBuf {
    installation.path(folder).join(format!("{}.db", urr_payment::SCHEMA.name))
}

/// Runs some work on the books of a folder that nobody uses.
fn with_books<T: Send + 'static>(
    path: PathBuf,
    work: impl Fn(&mut urr_storage::Tx<'_>) -> Result<T, StorageError> + Send + 'static,
) -> Result<T> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let db = Db::open_sqlite(&path, &SqliteOptions::default())?;
        let done = db.write(work).await?;
        tokio::task::spawn_blocking(move || db.close()).await?;
        Ok(done)
    })
}

impl ProviderMemory {
    /// The rows as SQL values.
    fn read(path: PathBuf) -> Result<ProviderMemory> {
        with_books(path, |tx| {
            let mut rows = |table: &str, columns: &str| {
                let quoted: Vec<String> =
                    columns.split(", ").map(|column| format!("quote({column})")).collect();
                let row = quoted.join(" || ', ' || ");
                let sql = format!("select {row} as row from {table}");
                tx.query(&sql, &[], |row| row.get::<String>("row"))
            };
            let payments = rows("sandbox_payments", SANDBOX_PAYMENTS)?;
            let movements = rows("sandbox_movements", SANDBOX_MOVEMENTS)?;
            Ok(ProviderMemory { payments, movements })
        })
    }

    fn write(self, path: PathBuf) -> Result<()> {
        with_books(path, move |tx| {
            tx.execute("delete from sandbox_movements", &[])?;
            tx.execute("delete from sandbox_payments", &[])?;
            for row in &self.payments {
                let sql =
                    format!("insert into sandbox_payments ({SANDBOX_PAYMENTS}) values ({row})");
                tx.execute(&sql, &[])?;
            }
            for row in &self.movements {
                let sql =
                    format!("insert into sandbox_movements ({SANDBOX_MOVEMENTS}) values ({row})");
                tx.execute(&sql, &[])?;
            }
            Ok(())
        })
    }
}

pub fn sell(installation: &Installation, event: &str, seed: &str) -> Result<CommandOutput> {
    let more = ["--event", event, "--seed", seed, "--fans", "20", "--expect", "bought>=3"];
    installation.run(&[&RUSH[..2], &RUSH[4..], &more].concat())?.succeeded()
}

#[test]
fn after_a_restore_what_was_paid_for_lost_orders_goes_back() -> Result<()> {
    let installation = Installation::new()?;
    let urr = installation.up(&[])?;
    let event = event_on_sale(&installation)?;
    installation.run(&["rush", "prepare", "--fans", "40"])?.succeeded()?;
    sell(&installation, &event, "1")?;
    installation.run(&["backup", "--to", "backups"])?.succeeded()?;
    sell(&installation, &event, "2")?;
    urr.stop("TERM")?.succeeded()?;
    let sold_before_the_loss = explained(&installation, "data")?["ledger"]["charged"].clone();

    let memory = ProviderMemory::read(books(&installation, "data"))?;
    fs::rename(installation.path("data/secrets.toml"), installation.path("secrets.toml"))?;
    fs::remove_dir_all(installation.path("data"))?;
    let name = backups(&installation)?.pop().context("one was made")?;
    let from = format!("backups/{name}");
    let restore = ["restore", "--from", &from, "--secrets", "secrets.toml"];
    let told = installation.run(&restore)?.succeeded()?.stdout;
    let since = told.trim().rsplit(' ').next().context("a time")?.to_owned();
    memory.write(books(&installation, "data"))?;

    let urr = installation.up(&[])?;
    let named = installation.run(&["audit", "money", "--since", &since])?;
    assert_eq!(named.status.code(), Some(1), "{named:?}");
    assert!(named.stdout.contains("and we never created it"), "{named:?}");
    let settle = ["return-charges", "--since", &since];
    let returned = installation.run(&settle)?.succeeded()?.stdout;
    assert!(returned.contains(" were returned\n"), "{returned}");
    let again = installation.run(&settle)?.succeeded()?.stdout;
    assert_eq!(again.trim(), "0 charges were returned", "each is returned once");
    let report = explained(&installation, "data")?;
    assert_eq!(report["findings"], json!(0), "{report}");
    let sold = report["ledger"]["charged"].as_i64();
    ensure!(sold > Some(0) && sold < sold_before_the_loss.as_i64(), "{report}");
    urr.stop("TERM")?.succeeded()?;
    let nobody = installation.run(&settle)?;
    assert_eq!(nobody.status.code(), Some(2), "{nobody:?}");
    Ok(())
}
