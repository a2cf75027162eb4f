//! As many commits of as many transactions, without the program: bare `rusqlite`, and pgbench.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::system::{CommitCount, CommitCounts};

/// Of a transaction, on average over those of a purchase.
const STATEMENTS: u64 = 6;
const ROWS: i64 = 10_000;
/// As long as what is written with most of them: the event that tells of it.
pub const BODY: &str = r#"{"specversion":"1.0","id":"01938d2c-8a00-7000-8000-000000000001","source":"urr/ticket","type":"RESERVATION_CREATED","subject":"01938d2c-8a00-7000-8000-000000000002","time":"2026-12-01T12:00:00Z","datacontenttype":"application/json","data":{"eventId":"01938d2c-8a00-7000-8000-000000000003","expiresAt":"2026-12-01T12:05:00Z","quantity":1,"reservationId":"01938d2c-8a00-7000-8000-000000000002","reservationNumber":"R-0000-0000-0000","seatIds":[12],"totalAmount":99000,"userId":"01938d2c-8a00-7000-8000-000000000004"},"correlationid":"01938d2c-8a00-7000-8000-000000000005"}"#;

const TABLES: &str = "create table if not exists things (id bigint primary key, changes bigint); \
                      create table if not exists news (id bigint, body text);";
const READ: &str = "select changes from things where id = ?1";
const CHANGE: &str = "update things set changes = changes + 1 where id = ?1";
const TELL: &str = "insert into news (id, body) values (?1, ?2)";

/// A file and a thread per service, as the program has them. The files stay: a log that grows for
/// the first time is slower.
pub struct BareSqlite {
    folder: TempDir,
    files: BTreeMap<String, Connection>,
}

impl BareSqlite {
    pub fn open() -> Result<BareSqlite> {
        Ok(BareSqlite { folder: tempfile::tempdir()?, files: BTreeMap::new() })
    }

    pub fn repeat(&mut self, effort: &CommitCounts) -> Result<Duration> {
        for service in effort.keys() {
            if !self.files.contains_key(service) {
                let file = open(&self.folder.path().join(service))?;
                self.files.insert(service.clone(), file);
            }
        }
        let begun = Instant::now();
        thread::scope(|scope| {
            let start = |(service, file)| {
                let work: CommitCount = effort.get(service).copied().unwrap_or_default();
                scope.spawn(move || repeat(file, work))
            };
            let threads: Vec<_> = self.files.iter_mut().map(start).collect();
            let mut ends = threads.into_iter().map(|thread| thread.join());
            ends.try_for_each(|end| end.expect("a loop does not panic"))
        })?;
        Ok(begun.elapsed())
    }
}

fn open(path: &Path) -> Result<Connection> {
    let file = Connection::open(path)?;
    file.execute_batch("pragma journal_mode = wal; pragma synchronous = full;")?;
    file.execute_batch(TABLES)?;
    file.execute_batch("begin")?;
    for id in 0..ROWS {
        file.prepare_cached("insert into things (id, changes) values (?1, 0)")?.execute([id])?;
    }
    file.execute_batch("commit")?;
    Ok(file)
}

fn repeat(file: &mut Connection, work: CommitCount) -> Result<()> {
    let mut done = 0;
    for commit in 1..=work.commits {
        file.execute_batch("begin immediate")?;
        while done < STATEMENTS * work.transactions * commit / work.commits {
            let id = i64::try_from(done)? % ROWS;
            match done % 3 {
                0 => drop(file.prepare_cached(READ)?.query_row([id], |row| row.get::<_, i64>(0))?),
                1 => drop(file.prepare_cached(CHANGE)?.execute([id])?),
                _ => drop(file.prepare_cached(TELL)?.execute(params![id, BODY])?),
            }
            done += 1;
        }
        file.execute_batch("commit")?;
    }
    Ok(())
}

/// With a connection per buyer.
pub fn pgbench(url: &str, effort: &CommitCounts, buyers: usize) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let (tables, script) = (folder.path().join("tables.sql"), folder.path().join("work.sql"));
    let rows = format!(
        "{TABLES} insert into things select id, 0 from generate_series(1, {ROWS}) as id \
         on conflict do nothing;"
    );
    std::fs::write(&tables, rows)?;
    std::fs::write(&script, pgbench_script())?;
    let commits: u64 = effort.values().map(|work| work.commits).sum();
    let each = (commits / u64::try_from(buyers)?).max(1);
    run(Command::new("psql").arg("--quiet").arg(url).arg("--file").arg(&tables))?;
    let text = run(Command::new("pgbench")
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
        .arg(format!("--client={buyers}"))
        .arg(format!("--transactions={each}"))
        .arg(format!("--file={}", script.display()))
        .arg(url))?;
    let line = text.lines().find(|line| line.starts_with("tps = ")).context("pgbench gives tps")?;
    let rate: f64 = line.split_whitespace().nth(2).context("a figure")?.parse()?;
    Ok(Duration::from_secs_f64(commits as f64 / rate))
}

fn pgbench_script() -> String {
    let mut lines = Vec::new();
    // In ascending parts of the table, so that no two of them wait for each other.
    let part = ROWS.unsigned_abs() / STATEMENTS;
    for number in 0..STATEMENTS {
        let (first, last) = (number * part + 1, (number + 1) * part);
        lines.push(format!("\\set id{number} random({first}, {last})"));
    }
    lines.push("begin;".to_owned());
    for number in 0..STATEMENTS {
        let id = format!(":id{number}");
        lines.push(
            match number % 3 {
                0 => READ.replace("?1", &id),
                1 => CHANGE.replace("?1", &id),
                _ => TELL.replace("?1", &id).replace("?2", &format!("'{BODY}'")),
            } + ";",
        );
    }
    lines.push("end;".to_owned());
    lines.join("\n")
}

pub fn run(command: &mut Command) -> Result<String> {
    let output = command.output().context("psql and pgbench come with PostgreSQL")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
