//! The process that is killed: this test binary once more, with orders.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use urr_kernel::{Clock, IdSource, Timestamp, Uuid};
use urr_room::JOURNAL;
use urr_room::memory::MemoryRooms;
use urr_room::{AdmissionRules, AdmissionState, RoomRequest, Rooms, UserStatus};
use urr_storage::{Db, SqliteOptions, migrate};

use super::audit::Acknowledged;
use crate::fixture::ROOMY;

pub const EVENT: Uuid = Uuid::from_u128(1 << 100);
/// Nobody is let in by coming; the worker opens the door for a few at a time.
pub const RULES: AdmissionRules = AdmissionRules { admission: AdmissionState::Closed, ..ROOMY };
const TASKS: usize = 64;
const VARIABLE: &str = "URR_TEST_ROOM_ORDERS";
const READY: &str = "ready";
/// Nobody should have to wait for a process that is forgotten.
const LIFETIME_MAX: Duration = Duration::from_secs(60);

/// When people are told of their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    WhenKept,
    /// The mistake that the control makes.
    TooEarly,
}

/// What the process shall do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Orders {
    file: PathBuf,
    answer: Answer,
    first_person: u64,
}

impl Orders {
    pub fn new(file: &Path, answer: Answer, first_person: u64) -> Orders {
        Orders { file: file.to_owned(), answer, first_person }
    }

    /// The orders of this process, if it was started to be killed.
    #[expect(clippy::disallowed_methods, reason = "orders, not configuration")]
    pub fn received() -> Result<Option<Orders>> {
        let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
        Ok(Some(serde_json::from_str(&text)?))
    }
}

pub fn user_id(person: u64) -> Uuid {
    Uuid::from_u128(u128::from(person))
}

/// The time stands still, so that no slot ends by itself.
pub fn request(person: u64) -> RoomRequest {
    RoomRequest { event_id: EVENT, user_id: user_id(person), now: now() }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

pub async fn open(file: &Path) -> Result<(Db, Rooms)> {
    let db = Db::open_sqlite(file, &SqliteOptions::default())?;
    let ids = IdSource::from_system_randomness(Clock::System);
    let (rooms, _) = MemoryRooms::open(db.clone(), ids, now()).await?;
    Ok((db, Rooms::Memory(rooms)))
}

pub async fn close(db: Db, rooms: Rooms) -> Result<()> {
    if let Rooms::Memory(rooms) = rooms {
        rooms.close().await;
    }
    Ok(tokio::task::spawn_blocking(move || db.close()).await?)
}

/// A journal in which so many wait.
pub async fn fill(file: &Path, waiting: u64, acknowledged: &mut Acknowledged) -> Result<()> {
    migrate::migrate_sqlite(file, &JOURNAL, now())?;
    let (db, rooms) = open(file).await?;
    let next = Arc::new(AtomicU64::new(1));
    let mut tasks = JoinSet::new();
    for _ in 0..4 * TASKS {
        let (rooms, next) = (rooms.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            let mut places = Vec::new();
            loop {
                let person = next.fetch_add(1, Ordering::SeqCst);
                if person > waiting {
                    return Ok::<_, anyhow::Error>(places);
                }
                places.push((person, Some(line_up(&rooms, person).await?)));
            }
        });
    }
    for places in tasks.join_all().await {
        acknowledged.places.extend(places?);
    }
    close(db, rooms).await
}

async fn line_up(rooms: &Rooms, person: u64) -> Result<i64> {
    match rooms.check(request(person), &RULES).await?.status {
        UserStatus::Waiting(place) => Ok(place.number),
        other => bail!("the door is shut: {other:?}"),
    }
}

/// Starts the process, kills it as soon as it has said so many lines, and notes all that it said.
pub fn run_until_killed(
    orders: &Orders,
    kill_after: usize,
    acknowledged: &mut Acknowledged,
) -> Result<()> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(["--exact", "crash::the_process_that_is_killed", "--nocapture"])
        .env(VARIABLE, serde_json::to_string(orders)?)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = process.stdout.take().context("its output is piped")?;
    let (mut count, mut is_ready, mut is_killed) = (0, false, false);
    // After the kill the pipe still holds what was said before it.
    for line in BufReader::new(output).lines() {
        let line = line?;
        is_ready |= line == READY;
        count += usize::from(is_ready && acknowledged.note(&line)?);
        if is_ready && !is_killed && count >= kill_after {
            process.kill()?;
            is_killed = true;
        }
    }
    let status = process.wait()?;
    ensure!(is_killed, "it ended by itself after {count} lines: {status}");
    Ok(())
}

impl Acknowledged {
    /// Understands a line of the process; false if it is none.
    fn note(&mut self, line: &str) -> Result<bool> {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["place", person, number] => {
                self.places.insert(person.parse()?, number.parse().ok());
            }
            ["slot", person, slot_id] => {
                self.slots.insert(person.parse()?, slot_id.parse()?);
            }
            ["leaving", person] => {
                self.leaving.insert(person.parse()?);
            }
            ["left", person] => {
                self.left.insert(person.parse()?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Works and tells until it is killed. Returning is a failure.
pub fn obey(orders: Orders) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let worked = tokio::time::timeout(LIFETIME_MAX, work(orders)).await;
        worked.context("nobody killed this process")?
    })
}

async fn work(orders: Orders) -> Result<()> {
    let (_db, rooms) = open(&orders.file).await?;
    say("")?;
    say(READY)?;
    let next = Arc::new(AtomicU64::new(orders.first_person));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        tasks.spawn(come_and_go(rooms.clone(), Arc::clone(&next), orders.answer));
    }
    if orders.answer == Answer::WhenKept {
        tasks.spawn(admit_for_ever(rooms));
    }
    match tasks.join_next().await {
        Some(ended) => ended?,
        None => bail!("there are tasks"),
    }
}

async fn come_and_go(rooms: Rooms, next: Arc<AtomicU64>, answer: Answer) -> Result<()> {
    loop {
        let person = next.fetch_add(1, Ordering::SeqCst);
        match answer {
            Answer::WhenKept => {
                let number = line_up(&rooms, person).await?;
                say(&format!("place {person} {number}"))?;
            }
            Answer::TooEarly => {
                say(&format!("place {person} unknown"))?;
                line_up(&rooms, person).await?;
            }
        }
        if answer == Answer::WhenKept && person.is_multiple_of(8) {
            say(&format!("leaving {person}"))?;
            rooms.leave(request(person)).await?;
            say(&format!("left {person}"))?;
        }
    }
}

async fn admit_for_ever(rooms: Rooms) -> Result<()> {
    let mut threshold = rooms.crowd(EVENT, now()).await?.active;
    loop {
        threshold += 3;
        let rules = AdmissionRules { admission: AdmissionState::Open, threshold, ..RULES };
        for admitted in rooms.admit(EVENT, &rules, now()).await? {
            say(&format!("slot {} {}", admitted.user_id.as_u128(), admitted.slot_id))?;
        }
    }
}

/// One line in one system call, which a kill does not tear.
fn say(line: &str) -> Result<()> {
    std::io::stdout().write_all(format!("{line}\n").as_bytes())?;
    Ok(())
}
