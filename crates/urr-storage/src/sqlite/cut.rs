//! A copy of several databases as they were at one moment, while they are written to.
//!
//! The services of an embedded installation have a file each and depend on each other. Copied one
//! after the other, the later files would hold what the earlier ones have never heard of. So all
//! writers are stopped at once, for the moment that it takes to begin a read transaction on every
//! file. From then on these transactions see what a power failure at that moment would have left,
//! which every service can go on from.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::{DbResult, StorageError};

/// How long a writer may keep us from stopping it. Its own patience with us is the same.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// Databases as they were at one moment. It is kept until it is dropped; meanwhile their logs grow.
pub struct SqliteCut {
    readers: Vec<(PathBuf, Connection)>,
    /// For how long nothing could be written.
    pub pause: Duration,
}

impl SqliteCut {
    /// Stops all writers of these files, and lets them go on at once.
    pub fn take(paths: &[PathBuf]) -> DbResult<SqliteCut> {
        // Opened beforehand, so that nothing slow happens while the writers wait.
        let open_all = || paths.iter().map(|path| open(path)).collect::<DbResult<Vec<_>>>();
        let (locks, readers) = (open_all()?, open_all()?);
        let begun = Instant::now();
        for (lock, path) in locks.iter().zip(paths) {
            run(lock, path, "begin immediate")?;
        }
        for (reader, path) in readers.iter().zip(paths) {
            // A transaction sees the state of its first statement.
            run(reader, path, "begin; select count(*) from sqlite_schema")?;
        }
        for (lock, path) in locks.iter().zip(paths) {
            run(lock, path, "rollback")?;
        }
        let pause = begun.elapsed();
        Ok(SqliteCut { readers: paths.iter().cloned().zip(readers).collect(), pause })
    }

    /// Copies each database, as it was, into a folder, under its own name.
    pub fn copy_into(&self, folder: &Path) -> DbResult<()> {
        self.readers.iter().try_for_each(|(path, reader)| {
            let name = path.file_name().expect("a database has a name");
            copy(reader, &folder.join(name))
        })
    }
}

fn open(path: &Path) -> DbResult<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| at(path, &error))?;
    connection.busy_timeout(LOCK_WAIT_MAX).map_err(|error| at(path, &error))?;
    Ok(connection)
}

fn run(connection: &Connection, path: &Path, sql: &str) -> DbResult<()> {
    connection.execute_batch(sql).map_err(|error| at(path, &error))
}

/// Copies what the open transaction of `source` sees. The copy is complete or there is none.
fn copy(source: &Connection, to: &Path) -> DbResult<()> {
    let mut copied = Connection::open(to).map_err(|error| at(to, &error))?;
    let backup = Backup::new(source, &mut copied).map_err(|error| at(to, &error))?;
    match backup.step(-1).map_err(|error| at(to, &error))? {
        StepResult::Done => {}
        other => {
            let problem = format!("{}: the copy stopped: {other:?}", to.display());
            return Err(StorageError::Unavailable(problem));
        }
    }
    drop(backup);
    // One file and no log beside it, so that its hash says everything.
    let mode: String = copied
        .query_row("pragma journal_mode = delete", [], |row| row.get(0))
        .map_err(|error| at(to, &error))?;
    assert_eq!(mode, "delete", "nobody else has the copy");
    copied.close().map_err(|(_, error)| at(to, &error))
}

fn at(path: &Path, error: &rusqlite::Error) -> StorageError {
    StorageError::Unavailable(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Two databases; what is in the second one was in the first one before.
    struct Pair {
        folder: tempfile::TempDir,
        paths: [PathBuf; 2],
    }

    impl Pair {
        fn new() -> Pair {
            let folder = tempfile::tempdir().unwrap();
            let paths = ["first.db", "second.db"].map(|name| folder.path().join(name));
            for path in &paths {
                let db = Connection::open(path).unwrap();
                db.execute_batch(
                    "pragma journal_mode = wal; create table counter (n integer); \
                                  insert into counter values (0)",
                )
                .unwrap();
            }
            Pair { folder, paths }
        }

        fn add(&self) {
            for path in &self.paths {
                let db = open(path).unwrap();
                db.execute("update counter set n = n + 1", []).unwrap();
            }
        }

        /// What copies of the two say, in their order.
        fn copied(&self, name: &str) -> [i64; 2] {
            ["first.db", "second.db"].map(|file| {
                let db = Connection::open(self.folder.path().join(name).join(file)).unwrap();
                db.query_row("select n from counter", [], |row| row.get(0)).unwrap()
            })
        }

        fn make_folder(&self, name: &str) -> PathBuf {
            let path = self.folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        }
    }

    #[test]
    fn a_cut_shows_one_moment_however_late_it_is_copied() {
        let pair = Pair::new();
        let cut = SqliteCut::take(&pair.paths).unwrap();
        pair.add();
        cut.copy_into(&pair.make_folder("cut")).unwrap();
        assert_eq!(pair.copied("cut"), [0, 0]);
        // The control: copied one after the other, the second knows what the first does not.
        let one_by_one = pair.make_folder("one by one");
        for path in &pair.paths {
            let alone = SqliteCut::take(std::slice::from_ref(path)).unwrap();
            alone.copy_into(&one_by_one).unwrap();
            drop(alone);
            pair.add();
        }
        assert_eq!(pair.copied("one by one"), [1, 2]);
    }

    #[test]
    fn cuts_during_writes_never_show_an_effect_without_its_cause() {
        let pair = Pair::new();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    pair.add();
                }
            });
            for round in 0..20 {
                let name = round.to_string();
                let cut = SqliteCut::take(&pair.paths).unwrap();
                cut.copy_into(&pair.make_folder(&name)).unwrap();
                let [first, second] = pair.copied(&name);
                assert!((0..=1).contains(&(first - second)), "{first} {second}");
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_file_that_is_no_database_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letter.db");
        std::fs::write(&path, "Dear reader, this is a letter and not a database at all.").unwrap();
        let error = SqliteCut::take(std::slice::from_ref(&path)).err().unwrap().to_string();
        assert!(error.contains("letter.db"), "{error}");
    }
}
