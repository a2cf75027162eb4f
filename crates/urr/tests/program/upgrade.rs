//! Upgrades: migrations that were released never change, data of the first version is sold from, and a
//! new migration is applied while the program before it sells.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use postgres::{Client, NoTls};
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use urr_kernel::{Clock, Secret, hex};
use urr_storage::{Migration, Schema, ServiceRole, migrate, provision};
use urr_test::servers::{self, PostgresServer, Server};
use urr_test::snapshot::assert_fresh;

use crate::audit::change;
use crate::http_client::{Reply, request};
use crate::process::{Installation, Process, SHARED_SECRETS, eventually};
use crate::rush::event_on_sale;
use crate::whole_audit::check_whole_audit;

/// The hash of every migration. A line that changes or disappears is a released migration that was
/// edited or removed: write a new one instead. `URR_TEST_UPDATE=1` adds the lines of new ones.
const FROZEN: &str = "crates/urr-storage/migrations/frozen.txt";

/// Every migration of the repository, by its path.
fn migrations() -> Result<BTreeMap<String, Vec<u8>>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crates")?;
    let mut found = BTreeMap::new();
    for folder in fs::read_dir(crates)? {
        let folder = folder?.path().join("migrations");
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "sql") {
                let name = path.strip_prefix(crates)?.display().to_string();
                found.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

fn fingerprints(migrations: &BTreeMap<String, Vec<u8>>) -> String {
    let line = |(name, text): (&String, &Vec<u8>)| {
        format!("{} {name}\n", hex::encode(Sha256::digest(text)))
    };
    migrations.iter().map(line).collect()
}

#[test]
fn migrations_are_frozen() -> Result<()> {
    let mut migrations = migrations()?;
    ensure!(migrations.len() > 20, "{migrations:?}");
    let frozen = fingerprints(&migrations);
    assert_fresh(FROZEN, &frozen);
    // The control: an edited one and a removed one are seen.
    migrations.values_mut().next().context("there are some")?.push(b' ');
    assert_ne!(fingerprints(&migrations), frozen);
    migrations.pop_first();
    assert!(!frozen.lines().eq(fingerprints(&migrations).lines()));
    Ok(())
}

/// What version 0.1.0 left in its data folder, and in PostgreSQL beside it. CONTRIBUTING says how it
/// was made.
const OF_FILES: &str = "0.1.0-files.tar.gz";
const OF_POSTGRES: &str = "0.1.0-postgres.tar.gz";

/// An installation with the files of a version. Gives the SQL of its PostgreSQL, if it had one.
fn restore(name: &str) -> Result<(Installation, String)> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/upgrade").join(name);
    let unpacked = tempfile::tempdir()?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&archive).arg("-C").arg(unpacked.path());
    ensure!(unpack.status()?.success(), "{} cannot be unpacked", archive.display());
    let data = installation.path("data");
    fs::create_dir(&data)?;
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
    let mut of_postgres = String::new();
    for file in fs::read_dir(unpacked.path())? {
        let path = file?.path();
        let (name, sql) = (path.file_stem().context("a name")?, fs::read_to_string(&path)?);
        if name == "postgres" {
            of_postgres = sql;
            continue;
        }
        let file = data.join(name).with_extension("db");
        // A table may refer to a later one.
        Connection::open(&file)?.execute_batch(&format!("pragma foreign_keys = off;\n{sql}"))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    }
    Ok((installation, of_postgres))
}

fn send(port: u16, token: &str, method: &str, path: &str, body: &str) -> Result<Reply> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse()?);
    if !token.is_empty() {
        headers.insert("authorization", format!("Bearer {token}").parse()?);
    }
    request(port, method, path, &headers, body)
}

/// Somebody who bought from version 0.1.0 logs in, has the tickets, and gives them back.
fn check_old_fan(port: u16, email: &str) -> Result<()> {
    let login = json!({ "email": email, "password": "a long enough secret" }).to_string();
    let session = send(port, "", "POST", "/api/auth/login", &login)?.json()?;
    let token = session["token"].as_str().with_context(|| session.to_string())?;
    let mine = send(port, token, "GET", "/api/reservations/my", "")?.json()?;
    let bought = &mine["reservations"][0];
    ensure!(bought["status"] == "confirmed", "{mine}");
    let path = format!("/api/reservations/{}", bought["id"].as_str().context("an id")?);
    let tickets = send(port, token, "GET", &path, "")?.json()?;
    ensure!(tickets["reservation"]["tickets"].as_array().map(Vec::len) == Some(2), "{tickets}");
    let cancelled = send(port, token, "POST", &format!("{path}/cancel"), "")?;
    ensure!(cancelled.status == 200, "{cancelled:?}");
    eventually("the money goes back", || {
        let seen = send(port, token, "GET", &path, "")?.json()?;
        Ok(seen["reservation"]["paymentStatus"] == "refunded")
    })
}

/// The tables of the ticket service as the next version has them: expanded by a column.
fn next_version() -> Schema {
    let mut migrations = urr_ticket::SCHEMA.migrations.to_vec();
    let last = migrations.iter().map(|migration| migration.version).max().unwrap_or(0);
    migrations.push(Migration {
        series: "service",
        version: last + 1,
        name: "a test of upgrades",
        sql: "alter table reservations add column upgrade_note text;",
    });
    Schema { name: urr_ticket::SCHEMA.name, migrations: Vec::leak(migrations) }
}

/// A rush goes on during the upgrade, of which the program that sells knows nothing.
fn sell_during(installation: &Installation, upgrade: impl FnOnce() -> Result<()>) -> Result<()> {
    let event = event_on_sale(installation)?;
    installation.run(&["rush", "prepare", "--fans", "60"])?.succeeded()?;
    let rush = [
        "rush",
        "run",
        "--event",
        &event,
        "--fans",
        "60",
        "--choosing",
        "0.5",
        "--paying",
        "0.5",
        "--max-minutes",
        "3",
        "--expect",
        "bought>=20",
    ];
    let mut rush = Process::start(installation.command(&rush))?;
    eventually("fans are admitted", || {
        let rooms = installation.run(&["queue", "status", "--json"])?.succeeded()?.stdout;
        let rooms: Value = serde_json::from_str(&rooms)?;
        let mut rooms = rooms["rooms"].as_array().into_iter().flatten();
        let room = rooms.find(|room| room["eventId"] == event.as_str());
        Ok(room.is_some_and(|room| room["admittedTotal"].as_u64() > Some(0)))
    })?;
    ensure!(rush.is_running()?, "the rush was over before the upgrade");
    upgrade()?;
    rush.await_end()?.succeeded()?;
    check_whole_audit(installation)
}

#[test]
fn a_data_folder_of_the_first_version_is_upgraded_while_it_sells() -> Result<()> {
    let (installation, _) = restore(OF_FILES)?;
    let urr = installation.up(&[])?;
    check_old_fan(urr.port, "fan-5@example.com")?;
    let path = installation.path("data/reservation_service.db");
    sell_during(&installation, || {
        let applied = migrate::migrate_sqlite(&path, &next_version(), Clock::System.now())?;
        ensure!(applied.len() == 1, "{applied:?}");
        Ok(())
    })?;
    // The next version writes what this one does not know of.
    change(&installation, &urr_ticket::SCHEMA, "update reservations set upgrade_note = 'new'")?;
    urr.stop("TERM")?.succeeded()?;
    // A step back: this version starts on the tables of the next one.
    let urr = installation.up(&[])?;
    check_whole_audit(&installation)?;
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}

#[test]
fn a_schema_of_the_first_version_is_upgraded_while_it_sells() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    // Logins belong to the whole server, so it must be our own.
    let server = PostgresServer::start()?;
    let url = server.create_database("upgrade")?;
    let (mut installation, sql) = restore(OF_POSTGRES)?;
    Client::connect(&url, NoTls)?.batch_execute(&sql)?;
    installation.set("URR_DATABASE_URL", &url);
    let urr = installation.up(&[])?;
    check_old_fan(urr.port, "fan-5@example.com")?;
    let (_, secret) = SHARED_SECRETS
        .into_iter()
        .find(|(name, _)| *name == "URR_DATABASE_ROLE_SECRET")
        .context("the secret of the logins")?;
    let name = "reservation_svc_user".to_owned();
    let password = Secret::new(secret).derive(&format!("urr-database-role:{name}"));
    let role = ServiceRole { name, password };
    sell_during(&installation, || {
        let applied = provision(&url, &next_version(), &role, Clock::System.now())?;
        ensure!(applied.len() == 1, "{applied:?}");
        let changed = Client::connect(&url, NoTls)?
            .execute("update reservation_service.reservations set upgrade_note = 'new'", &[])?;
        // How many there are at this moment does not matter.
        ensure!(changed < 1_000, "{changed}");
        Ok(())
    })?;
    urr.stop("TERM")?.succeeded()?;
    let urr = installation.up(&[])?;
    check_whole_audit(&installation)?;
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}
