//! Rooms in memory: how fast people join so that it lasts, how fast they are told their place, what
//! each takes in memory, and how long a start takes when a million wait.
//!
//! Straight on the rooms, without HTTP. The baseline of the joins is a plain loop that inserts the
//! same rows with the same storage, 256 to a transaction; that of the looks is a line of 1,000.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use urr_kernel::{Clock, IdSource, Timestamp, Uuid};
use urr_room::JOURNAL;
use urr_room::memory::MemoryRooms;
use urr_room::{AdmissionRules, AdmissionState, RoomRequest, UserStatus};
use urr_storage::{Db, SqliteOptions, StorageError, migrate, params};
use urr_test::figures::{BenchFigure, RatioTarget};

const EVENT: Uuid = Uuid::from_u128(1);
const CROWD: u32 = 1_000_000;
const ROUND: Duration = Duration::from_secs(2);
const ROWS_PER_COMMIT: i64 = 256;

const RULES: AdmissionRules = AdmissionRules {
    admission: AdmissionState::Closed,
    threshold: 1_000,
    admitted_per_second_max: 100,
    slot_ttl: Duration::from_secs(600),
    slot_max: Duration::from_secs(1_800),
    waiting_max: 10_000_000,
    queues_per_user_max: 3,
};

fn main() {
    let runtime = Runtime::new().expect("threads can be started");
    let folder = tempfile::tempdir().expect("a folder for the journals");
    runtime.block_on(async {
        joins(folder.path()).await;
        crowd(folder.path()).await;
    });
}

async fn joins(folder: &Path) {
    let baseline = plain_inserts(&open(&folder.join("plain.db"))).await;
    println!("rows inserted by a plain loop, 256 to a commit  {baseline:>10.0} per second");
    for tasks in [1, 64, 256, 1_024] {
        let db = open(&folder.join(format!("joins{tasks}.db")));
        let rooms = open_rooms(&db).await;
        let joined = Arc::new(AtomicU32::new(0));
        let begun = Instant::now();
        let mut all = JoinSet::new();
        for _ in 0..tasks {
            let (rooms, joined) = (rooms.clone(), Arc::clone(&joined));
            all.spawn(async move {
                while begun.elapsed() < ROUND {
                    let user = joined.fetch_add(1, Ordering::Relaxed);
                    rooms.check(request(user), &RULES).await.expect("they join");
                }
            });
        }
        all.join_all().await;
        let rate = f64::from(joined.load(Ordering::Relaxed)) / begun.elapsed().as_secs_f64();
        let commits = db.stats().groups as f64 / begun.elapsed().as_secs_f64();
        println!("{tasks} at once: {commits:.0} commits per second");
        let figure = BenchFigure {
            name: &format!("durable joins, {tasks} at once"),
            value: rate,
            unit: "joins/s",
            baseline: "plain inserts, 256 to a commit",
            baseline_value: baseline,
            target: RatioTarget::None,
        };
        figure.show();
        rooms.close().await;
        db.close();
    }
}

async fn plain_inserts(db: &Db) -> f64 {
    let (begun, mut rows) = (Instant::now(), 0);
    while begun.elapsed() < ROUND {
        let first = rows;
        let written = db.write(move |tx| {
            for arrival in first..first + ROWS_PER_COMMIT {
                let sql = "insert into places (room, arrival, user_id) values ($1, $2, $3)";
                let user_id = Uuid::from_u128(arrival.unsigned_abs().into());
                tx.execute(sql, params![1_i64, arrival, user_id])?;
            }
            Ok(())
        });
        written.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        rows += ROWS_PER_COMMIT;
    }
    rows as f64 / begun.elapsed().as_secs_f64()
}

/// A crowd that grows to a million; then a start from its journal.
async fn crowd(folder: &Path) {
    let db = open(&folder.join("crowd.db"));
    let rooms = open_rooms(&db).await;
    let (mut waiting, mut baseline) = (0, None);
    for crowd in [1_000, 100_000, CROWD] {
        fill(&rooms, waiting, crowd).await;
        waiting = crowd;
        let rate = looks(&rooms, crowd).await;
        let baseline = *baseline.get_or_insert(rate);
        let memory_usage = rooms.memory_usage();
        println!(
            "looks, {crowd:>9} waiting  {rate:>10.0} per second  ratio {:.2}  \
             ({} bytes for each who waits)",
            rate / baseline,
            memory_usage.bytes as u64 / memory_usage.waiting
        );
    }
    longest_lock(&rooms).await;
    rooms.close().await;
    tokio::task::spawn_blocking(move || db.close()).await.expect("it closes");

    let before = resident_bytes();
    let db = open(&folder.join("crowd.db"));
    let begun = Instant::now();
    let ids = IdSource::from_system_randomness(Clock::System);
    let (rooms, recovered) = MemoryRooms::open(db, ids, now()).await.expect("the journal is read");
    let took = begun.elapsed();
    assert_eq!(recovered.waiting, u64::from(CROWD), "nobody is lost");
    println!("a start with {CROWD} waiting  {:.2} s", took.as_secs_f64());
    let memory_usage = rooms.memory_usage();
    println!(
        "  {} bytes for each who waits; the process grew by {} for each",
        memory_usage.bytes as u64 / memory_usage.waiting,
        resident_bytes().saturating_sub(before) / u64::from(CROWD)
    );
    draw(&rooms).await;
    let begun = Instant::now();
    let cleared = rooms.clear(EVENT, now()).await.expect("it is cleared");
    println!("clearing {} people  {:.3} s", cleared.waiting, begun.elapsed().as_secs_f64());
}

async fn fill(rooms: &MemoryRooms, from: u32, to: u32) {
    let next = Arc::new(AtomicU32::new(from));
    let mut all = JoinSet::new();
    for _ in 0..1_024 {
        let (rooms, next) = (rooms.clone(), Arc::clone(&next));
        all.spawn(async move {
            loop {
                let user = next.fetch_add(1, Ordering::Relaxed);
                if user >= to {
                    return;
                }
                rooms.check(request(user), &RULES).await.expect("they join");
            }
        });
    }
    all.join_all().await;
}

/// Everybody in turn, from as many tasks as the machine has cores.
async fn looks(rooms: &MemoryRooms, crowd: u32) -> f64 {
    let begun = Instant::now();
    let tasks = std::thread::available_parallelism().expect("it is known").get();
    let mut all = JoinSet::new();
    for task in 0..tasks {
        let rooms = rooms.clone();
        all.spawn(async move {
            let mut looks = 0_u64;
            let mut user = u32::try_from(task).expect("few");
            while begun.elapsed() < ROUND {
                for _ in 0..256 {
                    // No neighbour of the one before: as people come.
                    user = (user.wrapping_mul(1_664_525)).wrapping_add(1_013_904_223);
                    let snapshot =
                        rooms.poll(request(user % crowd), &RULES).await.expect("it answers");
                    assert!(matches!(snapshot.status, UserStatus::Waiting(_)));
                    looks += 1;
                }
            }
            looks
        });
    }
    let looks: u64 = all.join_all().await.into_iter().sum();
    looks as f64 / begun.elapsed().as_secs_f64()
}

/// How long others wait at worst while the room does what takes long.
async fn longest_lock(rooms: &MemoryRooms) {
    let begun = Instant::now();
    let crowd = rooms.crowd(EVENT, now()).await.expect("it answers");
    println!("crowd with {} marks  {} us", crowd.marks.len(), begun.elapsed().as_micros());
    let begun = Instant::now();
    let long_ago = now() - Duration::from_secs(3_600);
    let dropped = rooms.sweep(EVENT, long_ago, 1_000, now()).await.expect("it answers");
    assert_eq!(dropped, 0);
    println!("a sweep that finds nobody  {} us", begun.elapsed().as_micros());
    let begun = Instant::now();
    let entrants = rooms.entrants(EVENT, i64::MAX).await.expect("it answers");
    println!("{} entrants  {} us", entrants.len(), begun.elapsed().as_micros());
}

/// A draw among all, and the longest that a look had to wait meanwhile.
async fn draw(rooms: &MemoryRooms) {
    let entrants = rooms.entrants(EVENT, i64::MAX).await.expect("it answers");
    let low = |user: &Uuid| user.as_u64_pair().1.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mix = |user: &Uuid| low(user).cast_signed() | i64::MIN;
    let drawn: Vec<(Uuid, i64)> = entrants.iter().map(|user| (*user, mix(user))).collect();
    let begun = Instant::now();
    let draw = tokio::spawn({
        let rooms = rooms.clone();
        async move { rooms.renumber(EVENT, i64::MAX, &drawn).await }
    });
    let mut longest = Duration::ZERO;
    while !draw.is_finished() {
        let begun = Instant::now();
        rooms.poll(request(17), &RULES).await.expect("it answers");
        longest = longest.max(begun.elapsed());
        tokio::task::yield_now().await;
    }
    draw.await.expect("it does not panic").expect("it is drawn");
    println!(
        "a draw among {CROWD}  {:.2} s; the longest look meanwhile {:.3} s",
        begun.elapsed().as_secs_f64(),
        longest.as_secs_f64()
    );
}

fn request(user: u32) -> RoomRequest {
    RoomRequest { event_id: EVENT, user_id: Uuid::from_u128(u128::from(user) + 10), now: now() }
}

/// It stands still: the clock is not what is measured.
fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn open(path: &Path) -> Db {
    migrate::migrate_sqlite(path, &JOURNAL, now()).expect("the journal can be made");
    Db::open_sqlite(path, &SqliteOptions::default()).expect("the journal opens")
}

async fn open_rooms(db: &Db) -> MemoryRooms {
    let ids = IdSource::from_system_randomness(Clock::System);
    let (rooms, _) = MemoryRooms::open(db.clone(), ids, now()).await.expect("the rooms open");
    rooms
}

/// Of this process, as Linux tells; 0 elsewhere.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1_024
}
